"""`croft check` finds the leaks of a cluster, planted by Calico's own library on a real kube-apiserver, and in an etcd beside
one; what it finds is compared with Calico's `calicoctl ipam check` on the same state, and given back.

usage: kube_leaks.py BIN_DIR VERSION
"""

import json
import os
import re
import sys
import types

from etcd_lib import CalicoPeer, Etcd
from kube_apiserver_lib import KubeApiserver
from kube_collect import PODS, Cluster
from kube_store import CALICO, calico_definitions, install_definitions, make_accounts, write_kubeconfig
from lib import World, expect, expect_equal, main, run, say

FINDINGS, REFUSED = 3, 5  # exit codes
# Of the findings, those that pods and nodes tell.
OF_CLUSTER = ("pod_gone", "node_gone", "block_node_gone", "holder_in_doubt", "handle_empty")
TIME = "2026-11-01 10:00:00.123456789 +0000 UTC"


class Rig:
    """A store that Calico's library writes, and the cluster whose pods hold its addresses."""

    def __init__(self, world, kube, place, more=()):
        self.world, self.kube, self.place, self.more = world, kube, place, more
        self.peer = CalicoPeer(world, place)
        self.addresses = {}
        # All that a dead node holds goes: where the store is not the cluster's own, that wants a word.
        self.share = ("--max-share", "1") if more else ()

    def croft(self, *arguments, codes=(0,)):
        done = run(self.world.bin / "croft", "--store", self.place.store, *self.more, *arguments, check=False)
        expect(done.returncode in codes, f"croft {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def check(self, *more):
        """Subject -> finding."""
        done = self.croft("check", "-o", "json", *more, codes=(0, FINDINGS))
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

    def held(self):
        return set(self.world.held(self.place.store))


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


def expect_found(rig, planted, empty_handle, looks=1):
    found = rig.check()
    block, = (subject for subject, one in found.items() if one["finding"] == "block_node_gone")
    wanted = {**{address: "pod_gone" for address in planted.dead}, **{address: "node_gone" for address in planted.on_ash},
              planted.old: "holder_in_doubt", planted.ended: "holder_in_doubt", block: "block_node_gone"}
    if empty_handle:
        wanted[f"handle {empty_handle}"] = "handle_empty"
    expect_equal({subject: one["finding"] for subject, one in found.items()}, wanted, "what is found")
    for address in planted.dead | {rig.addresses["on-ash"], planted.old, planted.ended}:
        expect_equal((found[address]["since"], found[address]["looks"]), ("2026-11-01T10:00:00Z", looks), f"{address}: since and looks")
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


# ---------------------------------------------------------------- two looks, and giving back

def waits(rig, planted):
    """What is released in between is of the first look alone."""
    report = rig.world.directory / "two-looks"
    found = rig.check("--wait", "2s", "--report", report)
    for address in planted.dead:
        expect_equal(found[address]["looks"], 2, f"{address}: looks")
        expect("seen in two looks, 2 s apart" in found[address]["evidence"], found[address]["evidence"])
    text = rig.croft("check", "--wait", "1s", codes=(FINDINGS,)).stdout
    expect("seen in two looks, 1 s apart" in text, text)
    allocations = json.loads(report.read_text())["allocations"]
    unused = {address for address, (one,) in allocations.items() if not one["inUse"]}
    expect_equal(unused, planted.dead | planted.on_ash, "unused by the report")
    return report


def gives_back(rig, cluster, planted, report):
    """A pod that comes, with the address, after the report was made keeps it."""
    back = sorted(planted.dead - {rig.addresses["evicted"]})[0]
    name = next(name for name, address in rig.addresses.items() if address == back)
    cluster.pod(name, "oak")
    cluster.report(name, back)
    refused = rig.croft("ip", "release", "--from-report", report, *rig.share, codes=(REFUSED,)).stderr
    expect(back in refused, f"who lives is named: {refused}")
    expect(planted.living | planted.dead | planted.on_ash <= rig.held(), "nothing was released")
    cluster.delete_pod(name)
    before = rig.held()
    would = rig.croft("ip", "release", "--from-report", report, *rig.share, "--dry-run").stdout
    expect_equal(set(re.findall(r"^(\S+) would be released", would, re.M)), planted.dead | planted.on_ash, "would be released")
    expect_equal(rig.held(), before, "a dry run")
    # What is of a dead node goes with the node.
    shown = rig.croft("node", "remove", "ash", "--release", "--dry-run").stdout
    expect_equal(set(re.findall(r"^(\S+) would be released", shown, re.M)), planted.on_ash, shown)
    expect("would be given up" in shown, shown)
    expect_equal(rig.held(), before, "a dry run of a node's removal")
    rig.croft("node", "remove", "oak", "--release", codes=(REFUSED,))
    rig.croft("node", "remove", "ash", "--release")
    rig.croft("ip", "release", "--from-report", report, *rig.share, codes=(0,))
    expect_equal(rig.held(), before - planted.dead - planted.on_ash, "held afterwards")
    left = {subject: one["finding"] for subject, one in rig.check().items()}
    expect_equal({subject for subject, kind in left.items() if kind != "holder_in_doubt"}, set(), f"found afterwards: {left}")


def hidden(rig, kube):
    """Who may not list pods, or nodes, is told of nobody gone by it, and that once."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/croft-operator"
    rights = kube.call("GET", role)
    store = f"kube:{write_kubeconfig(rig.world, kube, 'croft-operator')}"
    kube.call("PUT", role, {**rights, "rules": [rule for rule in rights["rules"] if "pods" not in rule.get("resources", [])]})
    done = run(rig.world.bin / "croft", "--store", store, "check", "-o", "json", check=False)
    said = [line for line in done.stderr.splitlines() if "pods" in line]
    expect(len(said) == 1 and "the addresses of running pods" in said[0], done.stderr)
    found = {one["finding"] for one in json.loads(done.stdout)}
    expect("pod_gone" not in found and "node_gone" in found, f"{found} {done.stderr}")
    kube.call("PUT", role, {**kube.call("GET", role), "rules": rights["rules"]})


def test():
    calico_definitions()
    with World("kube-leaks", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        config = write_kubeconfig(world, kube)
        cluster = Cluster(world, kube)
        rig = Rig(world, kube, types.SimpleNamespace(store=f"kube:{config}", url=f"kubeconfig:{config}"))
        for name in ("oak", "elm", "ash"):
            cluster.node(name)
        rig.peer("pool-create", "--name", "p", "--cidr", "10.79.0.0/24", "--block-size", "28")
        tunnel = rig.hold("tunnel-oak", "oak", handle="ipip-tunnel-addr-oak", type="ipipTunnelAddress")
        kube._send("PATCH", "/api/v1/nodes/oak", json.dumps(
            {"metadata": {"annotations": {"projectcalico.org/IPv4IPIPTunnelAddr": tunnel}}}).encode(), media="application/merge-patch+json")
        planted = plant(rig, cluster)
        planted.living.add(tunnel)
        kube.call("DELETE", "/api/v1/nodes/ash")
        kube.call("POST", f"{CALICO}/ipamhandles", {
            "apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMHandle", "metadata": {"name": "k8s-pod-network.ghost"},
            "spec": {"handleID": "k8s-pod-network.ghost", "block": {"10.79.0.0/28": 1}, "deleted": False}})
        kube.call("POST", f"{CALICO}/clusterinformations", {
            "apiVersion": "crd.projectcalico.org/v1", "kind": "ClusterInformation", "metadata": {"name": "default"},
            "spec": {"datastoreReady": True}})
        found = expect_found(rig, planted, "k8s-pod-network.ghost")
        say(f"  {len(found)} leaks of a cluster are found, and none of {len(planted.living)} that live")
        beside_calicoctl(rig, config, planted, found)
        hidden(rig, kube)
        report = waits(rig, planted)
        gives_back(rig, cluster, planted, report)
        in_etcd(world, kube, cluster, config)
        of_another_cluster(world, kube, config)


def of_another_cluster(world, kube, config):
    """Nodes of the store's own records are none of the cluster that a wrong --kubeconfig names: nothing is concluded, nothing freed."""
    etcd = Etcd(world)
    rig = Rig(world, kube, etcd, ("--kubeconfig", config))
    rig.peer("node-create", "pine")
    rig.peer("pool-create", "--name", "p", "--cidr", "10.81.0.0/24", "--block-size", "28")
    address = rig.hold("elsewhere", "pine")
    done = rig.croft("check")
    expect("none of the cluster's" in done.stdout, done.stdout)
    for command in (("ip", "release", address), ("node", "remove", "pine", "--release")):
        refused = rig.croft(*command, codes=(REFUSED,)).stderr
        expect("none of the cluster's" in refused, refused)
    expect_equal(rig.held(), {address}, "what is held")


def in_etcd(world, kube, cluster, config):
    """Calico's records in an etcd, its pods in the cluster that --kubeconfig names."""
    for item in kube.call("GET", PODS)["items"]:
        cluster.delete_pod(item["metadata"]["name"])
    etcd = Etcd(world)
    alone = Rig(world, kube, etcd)
    for name in ("oak", "elm", "ash"):
        alone.peer("node-create", name)
    alone.peer("pool-create", "--name", "p", "--cidr", "10.80.0.0/24", "--block-size", "28")
    planted = plant(alone, cluster)
    # Of a node that the cluster has not, the store's own record may be there: its removal asks the cluster.
    shown = Rig(world, kube, etcd, ("--kubeconfig", config)).croft("node", "remove", "ash", "--release", "--dry-run", codes=(0, REFUSED))
    expect("is in the cluster" not in shown.stderr, shown.stderr)
    etcd.ctl("del", "/calico/resources/v3/projectcalico.org/nodes/ash")
    etcd.put("/calico/ipam/v2/handle/k8s-pod-network.ghost", '{"block":{"10.80.0.0/28":1},"deleted":false}')
    done = alone.croft("check", codes=(FINDINGS,)).stdout
    expect_equal(done.count("pods and nodes were not asked"), 1, done)
    expect_equal({one["finding"] for one in alone.check().values()}, {"handle_empty"}, "of the etcd alone")
    rig = Rig(world, kube, etcd, ("--kubeconfig", config))
    rig.addresses = alone.addresses
    found = expect_found(rig, planted, "k8s-pod-network.ghost")
    for one in found.values():
        if one["finding"] == "pod_gone":
            expect(f" --kubeconfig {config}" in one["remedy"], one["remedy"])
    report = waits(rig, planted)
    refused = alone.croft("ip", "release", "--from-report", report, codes=(REFUSED,)).stderr
    expect("--kubeconfig" in refused, refused)
    gives_back(rig, cluster, planted, report)
    say("  the same in an etcd, by the pods of the cluster that --kubeconfig names")


if __name__ == "__main__":
    main(test, 3500)
