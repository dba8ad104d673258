"""`croft check` finds the leaks of a cluster, planted by Calico's own library on a real kube-apiserver: what it finds is compared with
Calico's `calicoctl ipam check` on the same state. Their remedies are check_remedies_kube.py's.
"""

import json
import os
import re
import sys
import types

from etcd_lib import CalicoPeer
from kube_apiserver_lib import KubeApiserver
from kube_collect import Cluster
from kube_store import CALICO, calico_definitions, install_definitions, make_accounts, write_kubeconfig
from lib import World, expect, expect_equal, main, run, say

FINDINGS = 3  # exit code
# Of the findings, those that pods and nodes tell.
OF_CLUSTER = ("pod_gone", "node_gone", "block_node_gone", "holder_in_doubt", "handle_empty")
TIME = "2026-11-01 10:00:00.123456789 +0000 UTC"


class Rig:
    """A store that Calico's library writes, and the cluster whose pods hold its addresses."""

    def __init__(self, world, place):
        self.world, self.place, self.peer, self.addresses = world, place, CalicoPeer(world, place), {}

    def check(self):
        """Subject -> finding."""
        done = run(self.world.bin / "croft", "--store", self.place.store, "check", "-o", "json", check=False)
        found = [one for one in json.loads(done.stdout) if one["finding"] in OF_CLUSTER]
        expect_equal(done.returncode, FINDINGS if json.loads(done.stdout) else 0, "exit code")
        return {one["subject"]: one for one in found}

    def hold(self, name, node, container=None, **attributes):
        """As Calico's plugin writes it for a pod, or as `attributes` have it."""
        handle = attributes.pop("handle", f"k8s-pod-network.{container or name}")
        attributes = attributes or {"pod": name, "namespace": "default", "timestamp": TIME}
        words = [word for key, value in {**attributes, "node": node}.items() for word in ("--attr", f"{key}={value}")]
        done = self.peer("auto-assign", "--host", node, "--handle", handle, "--num4", "1", *words)
        address = done["v4"]["addresses"][0].split("/")[0]
        self.addresses[container or name] = address
        return address


def live(rig, cluster, name, node, container=None, **spec):
    cluster.pod(name, node, **spec)
    address = rig.hold(name, node, container)
    cluster.report(name, address)
    return address


def plant(rig, cluster):
    """Who lives: subject by subject nothing may be said of them. And what leaked."""
    living = {live(rig, cluster, f"live-{number}", node) for number, node in enumerate(("oak", "oak", "elm"))}
    cluster.pod("starting", "oak")
    living.add(rig.hold("starting", "oak"))
    cluster.pod("web-0", "elm")
    old = rig.hold("web-0", "elm", "web-0-old")
    new = rig.hold("web-0", "elm", "web-0-new")
    cluster.report("web-0", new)
    living.add(new)
    # Of the network of its node, with the name of a pod that had an address of its own before.
    cluster.pod("on-the-node", "oak", hostNetwork=True)
    cluster.report("on-the-node", "192.0.2.10")
    ended = live(rig, cluster, "job", "oak")
    cluster.report("job", ended, phase="Succeeded")
    dead = {rig.hold(f"dead-{number}", "oak") for number in range(2)}
    evicted = live(rig, cluster, "evicted", "elm")
    cluster.report("evicted", evicted, phase="Failed", reason="Evicted")
    on_ash = {rig.hold("on-ash", "ash"), rig.hold("tunnel-ash", "ash", handle="ipip-tunnel-addr-ash", type="ipipTunnelAddress")}
    return types.SimpleNamespace(living=living, old=old, ended=ended, dead=dead | {evicted}, on_ash=on_ash)


def expect_found(rig, planted, empty_handle):
    found = rig.check()
    block, = (subject for subject, one in found.items() if one["finding"] == "block_node_gone")
    wanted = {**{address: "pod_gone" for address in planted.dead}, **{address: "node_gone" for address in planted.on_ash},
              planted.old: "holder_in_doubt", planted.ended: "holder_in_doubt", block: "block_node_gone"}
    wanted[f"handle {empty_handle}"] = "handle_empty"
    expect_equal({subject: one["finding"] for subject, one in found.items()}, wanted, "what is found")
    for address in planted.dead | {rig.addresses["on-ash"], planted.old, planted.ended}:
        expect_equal((found[address]["since"], found[address]["looks"]), ("2026-11-01T10:00:00Z", 1), f"{address}: since and looks")
        expect("in one look" in found[address]["evidence"], found[address]["evidence"])
    return found


# ---------------------------------------------------------------- beside calicoctl

def calicoctl(rig, config):
    env = {"PATH": os.environ["PATH"], "DATASTORE_TYPE": "kubernetes", "KUBECONFIG": str(config)}
    done = run(rig.peer.bin / "calicoctl", "ipam", "check", "--show-problem-ips", "--show-all-ips", "--allow-version-mismatch",
               env=env, check=False)
    expect_equal(done.returncode, 0, f"calicoctl: {done.stdout}{done.stderr}")
    return done.stdout


def beside_calicoctl(rig, config, planted, found):
    """Everything that it names is found, but for what docs/troubleshooting.md names."""
    said = calicoctl(rig, config)
    problems = int(re.search(r"found (\d+) problems", said).group(1))
    leaked = set(re.findall(r"^  (\S+) leaked;", said, re.M))
    handles = set(re.findall(r"^  (\S+) doesn't have any active IPs", said, re.M))
    other = re.findall(r"^  \S+ in use by .*(?:no IPAM allocation|not in any active IP pool)\.$", said, re.M)
    expect_equal(problems, len(leaked) + len(handles) + len(other), f"its problems:\n{said}")
    # Of a pod that has not reported its address yet.
    starting = rig.addresses["starting"]
    expect(starting in leaked, f"it takes a pod that starts for a leak:\n{said}")
    named = set(found) | {subject.removeprefix("handle ") for subject in found}
    expect_equal((leaked | handles) - {starting} - named, set(), "named by calicoctl alone")
    expect_equal(other, [], "in use and not held")
    more = {subject: one["finding"] for subject, one in found.items() if subject.removeprefix("handle ") not in leaked | handles}
    say(f"  calicoctl ipam check: {problems} problems; croft check: {len(found)}, of which calicoctl has not {more}")


def test():
    calico_definitions()
    with World("kube-leaks", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        config = write_kubeconfig(world, kube)
        cluster = Cluster(world, kube)
        rig = Rig(world, types.SimpleNamespace(store=f"kube:{config}", url=f"kubeconfig:{config}"))
        for name in ("oak", "elm", "ash"):
            cluster.node(name)
        rig.peer("pool-create", "--name", "p", "--cidr", "10.79.0.0/24", "--block-size", "28")
        tunnel = rig.hold("tunnel-oak", "oak", handle="ipip-tunnel-addr-oak", type="ipipTunnelAddress")
        kube.patch("/api/v1/nodes/oak", {"metadata": {"annotations": {"projectcalico.org/IPv4IPIPTunnelAddr": tunnel}}})
        planted = plant(rig, cluster)
        planted.living.add(tunnel)
        kube.call("DELETE", "/api/v1/nodes/ash")
        kube.make(f"{CALICO}/ipamhandles", "IPAMHandle", "k8s-pod-network.ghost",
            spec={"handleID": "k8s-pod-network.ghost", "block": {"10.79.0.0/28": 1}, "deleted": False})
        kube.make(f"{CALICO}/clusterinformations", "ClusterInformation", "default", spec={"datastoreReady": True})
        found = expect_found(rig, planted, "k8s-pod-network.ghost")
        say(f"  {len(found)} leaks of a cluster are found, and none of {len(planted.living)} that live")
        beside_calicoctl(rig, config, planted, found)


main(test, 3500)
