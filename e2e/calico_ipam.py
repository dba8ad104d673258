"""The personality calico-ipam as a runtime calls it: the real program on a register in a file. Results byte for byte,
addresses that were asked for, both families, releases and their old handles, pools, the node's name, the lock, and
errors in Calico's words.

usage: calico_ipam.py BIN_DIR
"""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time

from lib import World, expect, expect_equal, main, own_environment, say

PROCESSES = 32


class Rig:
    def __init__(self, world, name="croft"):
        self.world = world
        self.store = world.store(name)
        self.lock = world.directory / name / "run" / "ipam.lock"
        self.nodename = world.directory / f"{name}-nodename"
        self.nodename.write_text("node-a")

    def pool(self, name, cidr, block_size, *more):
        self.world.croft(self.store, "pool", "create", name, "--cidr", cidr, "--block-size", str(block_size),
                         "--cooldown-seconds", "0", *more)

    def config(self, ipam, more):
        config = {"cniVersion": "1.0.0", "name": "net", "type": "calico", "nodename_file": str(self.nodename),
                  "ipam_lock_file": str(self.lock), "log_file_path": str(self.world.directory / "cni.log"),
                  "ipam": {"type": "calico-ipam", "store": self.store, **(ipam or {})}, **(more or {})}
        if config["ipam"]["store"] is None:
            del config["ipam"]["store"]
        return json.dumps(config)

    def start(self, command, container="c1", ipam=None, more=None, args="", ifname="eth0", **env):
        variables = {**own_environment(self.world.directory),
                     "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": "/var/run/netns/none",
                     "CNI_IFNAME": ifname, "CNI_PATH": str(self.world.bin), "CNI_ARGS": args, **env}
        process = subprocess.Popen([self.world.bin / "calico-ipam"], env=variables, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with contextlib.suppress(BrokenPipeError):  # VERSION reads nothing
            process.stdin.write(self.config(ipam, more))
            process.stdin.close()
        process.stdin = None
        return process

    def raw(self, command, *arguments, **options):
        """Exit code and standard output of one call, which must say nothing on standard error."""
        process = self.start(command, *arguments, **options)
        out, err = process.communicate(timeout=60)
        expect_equal(err, "", f"{command}: standard error")
        return process.returncode, out

    def add(self, *arguments, **options):
        code, out = self.raw("ADD", *arguments, **options)
        expect_equal(code, 0, f"ADD: {out}")
        return [ip["address"] for ip in json.loads(out)["ips"]]

    def delete(self, *arguments, **options):
        expect_equal(self.raw("DEL", *arguments, **options), (0, ""), "DEL")

    def refused(self, what, code, text, *arguments, command="ADD", **options):
        exit_code, out = self.raw(command, *arguments, **options)
        expect_equal(exit_code, 1, f"{what}: exit code ({out})")
        answer = json.loads(out)
        expect_equal(answer["code"], code, f"{what}: code of {answer}")
        shown = answer["msg"] + " | " + answer.get("details", "")
        expect(text in shown, f"{what}: expected {text!r} in {shown!r}")
        say(f"{what}: {code} {answer['msg'].strip()}")

    def held(self):
        return sorted(self.world.held(self.store))


def printed(version, address, form):
    """What the plugin prints for one IPv4 address, byte for byte (docs/notes/calico-ipam.md#plugin-result)."""
    if form == "by family":
        return (f'{{\n    "cniVersion": "{version}",\n    "ip4": {{\n        "ip": "{address}",\n        "routes": [\n'
                f'            {{\n                "dst": "{address}"\n            }}\n        ]\n    }},\n'
                '    "dns": {}\n}')
    before = '            "version": "4",\n' if form == "list" else ""
    after = ',\n    "dns": {}' if form == "list" else ""
    return (f'{{\n    "cniVersion": "{version}",\n    "ips": [\n        {{\n{before}            "address": "{address}"\n'
            f'        }}\n    ],\n    "routes": [\n        {{\n            "dst": "{address}"\n        }}\n    ]{after}\n}}')


FORMS = {"0.1.0": "by family", "0.2.0": "by family", "0.3.0": "list", "0.3.1": "list", "0.4.0": "list", "1.0.0": "newest"}


def results(world):
    rig = Rig(world, "results")
    rig.pool("default-ipv4-ippool", "10.0.0.64/26", 26)  # .64 and .65, network and gateway, are kept out of use
    for version, form in FORMS.items():
        wanted = (0, printed(version, "10.0.0.66/26", form))
        expect_equal(rig.raw("ADD", more={"cniVersion": version}), wanted, f"ADD in {version}")
    expect_equal(rig.held(), ["10.0.0.66"], "asked six times, assigned once")
    expect_equal(rig.raw("ADD", "c2", args="IP=10.0.0.70"), (0, printed("1.0.0", "10.0.0.70/32", "newest")), "ADD with IP")
    rig.delete("c1")
    rig.delete("c1")
    rig.delete("c2")
    expect_equal(rig.held(), [], "held after DEL")
    expect_equal(rig.raw("VERSION"), (0, '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1",'
                                         '"0.4.0","1.0.0"]}\n'), "VERSION")
    expect_equal(rig.raw("CHECK", "nobody"), (0, ""), "CHECK works on nothing")
    for command in ("STATUS", "GC"):
        rig.refused(command, 1, f"plugin version does not allow {command}", command=command, more={"cniVersion": "1.1.0"})


def article(world):
    rig = Rig(world, "article")
    rig.pool("pods", "10.10.0.0/24", 28)
    expect_equal(rig.add("c1", args="IP=10.10.0.17"), ["10.10.0.17/32"], "the article's address")
    row = world.held(rig.store)["10.10.0.17"]
    expect_equal(row["block"], "10.10.0.16/28", "its block")
    expect_equal(row["node"], "node-a", "its node")


def families(world):
    rig = Rig(world, "families")
    rig.pool("four", "10.1.0.0/24", 26)
    rig.pool("six", "fd00::/125", 125, "--gateway", "none")  # one block of 8 addresses, of which the first is kept
    both = {"assign_ipv6": "true"}
    v4, v6 = rig.add("c1", ipam=both)
    expect(v4.startswith("10.1.0.") and v4.endswith("/26"), v4)
    expect(v6.startswith("fd00::") and v6.endswith("/125"), v6)
    expect_equal(rig.add("c0", ipam={"assign_ipv4": "false", "assign_ipv6": "true"})[0][:6], "fd00::", "IPv6 alone")
    for i in range(2, 7):
        rig.add(f"c{i}", ipam=both)
    before = rig.held()
    rig.refused("one family full", 100, "failed to request IPv6 addresses: Assigned 0 out of 1 requested IPv6 addresses; "
                "No IPs available in pools: [fd00::/125]", "late", ipam=both)
    expect_equal(rig.held(), before, "a failed dual stack leaves nothing")
    rig.delete("c1")
    expect_equal(len(rig.held()), len(before) - 2, "DEL gives both families back")


def releases(world):
    rig = Rig(world, "releases")
    rig.pool("four", "10.1.0.0/24", 26)
    rig.add("c1")
    rig.add("c1", ifname="net1")
    rig.delete("c1", ifname="net1")
    expect_equal(len(rig.held()), 1, "the other interface keeps its address")
    rig.delete("c1")
    kubernetes = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"
    # The handle is shop.web-0, as Calico before 3.0 named that pod's; it may as well be another network's container.
    rig.add("web-0", more={"name": "shop"}, args="IgnoreUnknown=1;K8S_POD_NAMESPACE=else;K8S_POD_NAME=victim")
    rig.delete("c2", args=kubernetes)
    expect_equal(len(rig.held()), 1, "another pod's address under that handle")
    rig.delete("web-0", more={"name": "shop"})
    rig.add("web-0", more={"name": "shop"}, args=kubernetes)
    rig.delete("c2")
    expect_equal(len(rig.held()), 1, "somebody else's DEL")
    rig.delete("c2", args=kubernetes)
    expect_equal(rig.held(), [], "held after the DEL of the pod with an old handle")
    rig.add("victim")
    rig.delete("c3", args="K8S_POD_NAMESPACE=net;K8S_POD_NAME=victim")
    expect_equal(len(rig.held()), 1, "a pod named like a container reaches nothing")
    rig.delete("c4", more={"nodename": "a/b"}, args="what is this")
    rig.delete("c1", ipam={"store": f"sqlite:{world.directory}/nowhere/croft.db"})
    expect(not (world.directory / "nowhere").exists(), "DEL on an absent store makes nothing")


def pools_and_errors(world):
    rig = Rig(world, "errors")
    rig.refused("no pool", 11, "cannot find a qualified ippool")
    rig.pool("a", "10.1.0.0/29", 29)
    rig.pool("b", "10.2.0.0/24", 26)
    expect(rig.add("c1", ipam={"ipv4_pools": ["b"]})[0].startswith("10.2.0."), "pool by name")
    expect(rig.add("c2", ipam={"ipv4_pools": ["10.2.0.0/24"]})[0].startswith("10.2.0."), "pool by CIDR")
    rig.refused("unknown pool", 102, 'error parsing pool "zz": invalid CIDR address: zz', "c9", ipam={"ipv4_pools": ["zz"]})
    rig.refused("unknown CIDR", 102, "the given pool (10.9.0.0/24) does not exist, or is not enabled", "c9",
                ipam={"ipv4_pools": ["10.9.0.0/24"]})
    for i in range(5):
        rig.add(f"a{i}", ipam={"ipv4_pools": ["a"]})
    rig.refused("full", 100, "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No IPs "
                "available in pools: [10.1.0.0/29] | pool a (10.1.0.0/29): ", "c9", ipam={"ipv4_pools": ["a"]})
    rig.refused("taken", 100, "resource already exists: 10.1.0.3 | pool a (10.1.0.0/29): the address is held by net.a",
                "c9", args="IP=10.1.0.3")
    rig.refused("in no pool", 102, "The provided IP address is not in a configured pool\n", "c9", args="IP=10.3.0.1")
    rig.refused("bad argument", 4, "ARGS: ", "c9", args="IP=10.1")
    rig.refused("node name", 7, "nodename", "c9", more={"nodename": "a/b"})
    rig.refused("type", 999, "etcd_endpoints: an integer (5)", "c9", more={"etcd_endpoints": 5})
    rig.refused("Kubernetes", 7, "kubernetes.kubeconfig: is missing", "c9", ipam={"store": None}, more={"datastore_type": "kubernetes"})
    rig.refused("Kubernetes, DEL", 7, "KUBECONFIG", "c9", ipam={"store": None}, command="DEL")
    expect_equal(len(rig.add("c8", ipam={"store": None}, CROFT_STORE=rig.store)), 1, "CROFT_STORE names the store")
    done = subprocess.run([world.bin / "calico-ipam", "-upgrade"], capture_output=True, text=True, check=False)
    expect_equal(done.returncode, 1, "an option that is not known is no success")
    done = subprocess.run([world.bin / "calico-ipam", "-v"], capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and done.stdout.count(".") == 2, f"-v: {done.stdout}")
    log = (world.directory / "cni.log").read_text()
    expect("ADD network=net container=c9" in log and "pool a (10.1.0.0/29): " in log, "the log has refusals whole")


def together(world):
    """All at once, with the host's lock; then with the lock held by somebody else for a while."""
    rig = Rig(world, "together")
    rig.pool("four", "10.1.0.0/24", 26)
    processes = [rig.start("ADD", f"c{i}") for i in range(PROCESSES)]
    answers = [(p.communicate(timeout=60), p.returncode) for p in processes]
    expect_equal([a for a in answers if a[1] != 0], [], "failed ADDs")
    expect_equal(len(rig.held()), PROCESSES, "distinct addresses")
    with open(rig.lock, "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = rig.start("ADD", "waits")
        time.sleep(0.3)
        expect(waiting.poll() is None, "an ADD waits for the host's lock")
        fcntl.flock(lock, fcntl.LOCK_UN)
        out, _ = waiting.communicate(timeout=60)
        expect_equal(waiting.returncode, 0, out)
    for i in range(PROCESSES):
        rig.delete(f"c{i}")
    rig.delete("waits")
    expect_equal(rig.held(), [], "held after all DELs")
    world.croft(rig.store, "check")


def the_lock_is_no_condition(world):
    rig = Rig(world, "lock")
    rig.pool("four", "10.1.0.0/24", 26)
    rig.lock.parent.mkdir(parents=True)
    os.mkfifo(rig.lock)
    rig.add("c1")
    expect("going on without the host-wide lock" in (world.directory / "cni.log").read_text(), "a line in the log")


def test():
    with World("calico", sys.argv[1]) as world:
        for part in (results, article, families, releases, pools_and_errors, together, the_lock_is_no_condition):
            part(world)


main(test)
