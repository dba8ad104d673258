#!/usr/bin/env python3
"""The article's whole way, on nodes that are network namespaces: cluster CIDR -> node range -> pod address.

`croft node range` cuts a range of each family for every node and writes flannel's subnet.env there; the bridge plugin
of Debian with croft-ipam in the name of `host-local` takes the pods' addresses from it; routes between the nodes, and
every pod pings every other across, answered by the other's own stack. Then a cluster CIDR that is full, a node that is
removed and another that gets its range, and the controller that gives a range to a new node.

usage: node_range_path.py BIN_DIR
"""

import ipaddress
import json
import stat
import sys

sys.dont_write_bytecode = True
from flannel_path import (NETCONF, Installation, Pod, delegate_configuration, files, ping_gateways, read_subnet_env,
                          reservations_of)
from lib import (Plugin, World, expect, expect_equal, main, require_network_namespaces, require_programs, run, say)

# Four ranges of IPv4, the last of them the Services'; four of IPv6.
CLUSTER = "10.244.0.0/22,fd00:244::/62"
SERVICES = "10.244.3.0/24"
USAGE = 2


def family_of(address):
    return 6 if ":" in address else 4


class Croft:
    def __init__(self, world, store="croft"):
        self.world, self.store = world, world.store(store)

    def text(self, *arguments, code=0):
        """What a command printed, both streams."""
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def range(self, *arguments, code=0):
        return self.text("node", "range", *arguments, code=code)

    def data(self, *arguments):
        return self.world.croft(self.store, "node", "range", *arguments)


class Node:
    """A namespace that plays a node, with a leg in the segment that all nodes share."""

    def __init__(self, world, croft, segment, name, number, subnet, subnet6):
        self.name, self.number, self.croft = name, number, croft
        self.netns = world.netns(name)
        self.own = {4: f"192.0.2.{number}", 6: f"2001:db8::{number}"}
        leg = f"leg{number}"
        segment.run("ip", "link", "add", leg, "type", "veth", "peer", "name", "uplink", "netns", self.netns.name)
        segment.run("ip", "link", "set", leg, "master", "segment0", "up")
        self.netns.run("ip", "link", "set", "uplink", "up")
        self.netns.run("ip", "address", "add", f"{self.own[4]}/24", "dev", "uplink")
        self.netns.run("ip", "address", "add", f"{self.own[6]}/64", "dev", "uplink", "nodad")
        for setting in ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"):
            self.netns.run("sysctl", "-q", "-w", setting)

        # What a network agent does on the node.
        answer = croft.data("assign", name)[0]
        expect_equal(answer["cidrs"], [subnet, subnet6], f"ranges of {name}")
        expect_equal(answer["added"], answer["cidrs"], f"new ranges of {name}")
        self.ranges = {4: subnet, 6: subnet6}
        env_path = world.directory / name / "flannel" / "subnet.env"
        croft.range("subnet-env", name, "--mtu", "1450", "--out", str(env_path))
        gateways = {family: str(ipaddress.ip_network(cidr)[1]) for family, cidr in self.ranges.items()}
        expect_equal(env_path.read_text(encoding="ascii"),
                     f"FLANNEL_NETWORK=10.244.0.0/22\nFLANNEL_SUBNET={gateways[4]}/24\n"
                     f"FLANNEL_IPV6_NETWORK=fd00:244::/62\nFLANNEL_IPV6_SUBNET={gateways[6]}/64\n"
                     "FLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n", f"subnet.env of {name}")
        expect_equal(stat.S_IMODE(env_path.stat().st_mode), 0o644, "mode of subnet.env")
        expect_equal([entry.name for entry in env_path.parent.iterdir()], ["subnet.env"], "files beside subnet.env")
        expect_equal(croft.range("subnet-env", name), env_path.read_text(encoding="ascii"), "on standard output")

        self.data = world.directory / name / "networks"
        netconf = {**NETCONF, "ipam": {"dataDir": str(self.data)}}
        self.config = delegate_configuration(netconf, read_subnet_env(env_path))
        self.pods = []

    def add_pods(self, world, plugin, *names):
        for name in names:
            pod = Pod(world, plugin, self.config, name)
            self.pods.append(pod)
        expect_equal(files(self.data / "cbr0"), reservations_of(*self.pods), f"reservations on {self.name}")

    def route_to(self, other):
        for family, cidr in other.ranges.items():
            self.netns.run("ip", f"-{family}", "route", "replace", cidr, "via", other.own[family], "dev", "uplink")


def ping_across(nodes):
    """Every pod pings every pod of another node: its own stack counts the request, and it comes through the routes."""
    pings = 0
    for source in (pod for node in nodes for pod in node.pods):
        for target in (pod for node in nodes if source not in node.pods for pod in node.pods):
            for address in target.addresses:
                before = target.netns.echo_requests(family_of(address))
                source.netns.ping(address)
                expect_equal(target.netns.echo_requests(family_of(address)) - before, 1,
                             f"echo requests of pod {source.name} that reached pod {target.name} at {address}")
                pings += 1
    say(f"  {pings} pings across nodes, each counted by the pod it was for")


def configuration(croft):
    say("what ranges are cut from")
    expect("required" in croft.range("config", code=USAGE), "config without --cluster-cidr")
    for code, flags, text in (
            (USAGE, ["--cluster-cidr=10.244.0.0/16,fd00::/48", "--node-cidr-mask-size=24"],
             "usage of --node-cidr-mask-size is not allowed with dual-stack clusters"),
            (USAGE, ["--cluster-cidr=10.244.0.0/25"], "mask size of cluster CIDR must be less than or equal to"),
            (USAGE, ["--cluster-cidr=fd00::/40"], "New CIDR set failed; the node CIDR size is too big"),
            (1, ["--cluster-cidr=10.244.0.0/16,10.244.1.0/24"],
             "cluster CIDR 10.244.1.0/24 overlaps cluster CIDR 10.244.0.0/16")):
        expect(text in croft.range("config", *flags, code=code), f"config {flags} does not say: {text}")
    # The store is there since the last refusal.
    expect("not configured" in croft.range("assign", "node-a", code=1), "assign before the configuration")
    expect_equal(croft.range("show"), "node ranges are not configured\n", "show before the configuration")
    croft.text("pool", "create", "web", "--cidr", "10.1.0.0/24")
    expect("overlaps pool web" in croft.range("config", "--cluster-cidr=10.0.0.0/14", code=1), "a pool in the way")
    answer = croft.range("config", f"--cluster-cidr={CLUSTER}", f"--service-cluster-ip-range={SERVICES}")
    expect_equal(answer, "node ranges configured\n", "config")
    answer = croft.range("config", f"--cluster-cidr={CLUSTER}", f"--service-cluster-ip-range={SERVICES}")
    expect_equal(answer, "node ranges unchanged\n", "config again")
    refused = croft.text("pool", "create", "late", "--cidr", "10.244.1.0/24", code=1)
    expect("overlaps cluster CIDR 10.244.0.0/22" in refused, f"a pool over the node ranges: {refused}")


def test():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    require_programs("ip", "nsenter", "ping", "bridge", "sysctl")
    require_network_namespaces()
    with World("noderange", sys.argv[1]) as world:
        croft = Croft(world)
        configuration(croft)
        segment = world.netns("segment")
        segment.run("ip", "link", "add", "segment0", "type", "bridge")
        segment.run("ip", "link", "set", "segment0", "up")
        installation = Installation(world, "croft", {"host-local": world.bin / "host-local"})

        def node_of(name, number, *ranges):
            node = Node(world, croft, segment, name, number, *ranges)
            node.plugin = Plugin(installation, "bridge", node.netns)
            return node

        say("two nodes")
        first = node_of("node-a", 1, "10.244.0.0/24", "fd00:244::/64")
        second = node_of("node-b", 2, "10.244.1.0/24", "fd00:244:0:1::/64")
        expect_equal(croft.data("assign", "node-a")[0], {"node": "node-a", "cidrs": list(first.ranges.values()),
                                                         "added": []}, "assign again")
        first.add_pods(world, first.plugin, "a1", "a2")
        second.add_pods(world, second.plugin, "b1", "b2")
        expect_equal(first.pods[0].with_length, ["10.244.0.2/24", "fd00:244::2/64"], "first pod of node-a")
        expect_equal(second.pods[1].with_length, ["10.244.1.3/24", "fd00:244:0:1::3/64"], "second pod of node-b")
        expect_equal(json.loads(second.pods[0].netns.run("ip", "-json", "link", "show", "eth0").stdout)[0]["mtu"], 1450,
                     "MTU of a pod")
        for node in (first, second):
            ping_gateways(node.pods, node.netns)
        first.route_to(second)
        second.route_to(first)
        ping_across([first, second])

        say("full")
        expect_equal(croft.range("assign", "node-c"), "node/node-c got 10.244.2.0/24, fd00:244:0:2::/64\n",
                     "third node")
        full = croft.range("assign", "node-d", code=1)
        for part in ("cluster CIDR 10.244.0.0/22 is full (4 of 4 node ranges of length 24 taken, 1 of them excluded)",
                     "add another IPv4 CIDR to --cluster-cidr"):
            expect(part in full, f"the refusal does not say `{part}`: {full}")
        show = croft.data("show")[0]
        expect_equal(show["clusterCidrs"],
                     [{"cidr": "10.244.0.0/22", "nodeLength": 24, "ranges": 4, "taken": 4, "excluded": 1, "free": 0},
                      {"cidr": "fd00:244::/62", "nodeLength": 64, "ranges": 4, "taken": 3, "excluded": 0, "free": 1}],
                     "show")
        expect_equal(croft.data("list")[0], {"node": "node-a", "cidr": "10.244.0.0/24", "clusterCidr": "10.244.0.0/22",
                                             "nodeRecorded": True}, "list")

        say("a node goes, another gets its range")
        for pod in second.pods:
            second.plugin.delete(second.config, pod.container, pod.netns)
        refused = croft.text("node", "remove", "node-b", code=5)
        expect("10.244.1.0/24" in refused and "--force" in refused, f"a node that has a record: {refused}")
        removed = croft.text("node", "remove", "node-b", "--force")
        expect("node range 10.244.1.0/24 given back" in removed and "record deleted" in removed, removed)
        # IPv6 had one left: round robin gives that first, and what came back when its turn is.
        fourth = node_of("node-d", 4, "10.244.1.0/24", "fd00:244:0:3::/64")
        fourth.add_pods(world, fourth.plugin, "d1")
        expect_equal(fourth.pods[0].with_length, ["10.244.1.2/24", "fd00:244:0:3::2/64"], "first pod of node-d")
        first.route_to(fourth)
        fourth.route_to(first)
        ping_gateways(fourth.pods, fourth.netns)
        ping_across([first, fourth])

        say("taken down from elsewhere, and given back")
        expect("the range of node node-a" in croft.range("assign", "node-e", "--cidr", "10.244.0.128/25", code=1),
               "a range over another node's")
        expect_equal(croft.range("release", "node-c", "--force"), "node/node-c gave back 10.244.2.0/24, fd00:244:0:2::/64\n",
                     "release")
        expect_equal(croft.range("release", "node-c"), "node/node-c has no range\n", "release again")
        expect_equal(croft.range("assign", "node-e", "--cidr", "10.244.2.0/25"), "node/node-e got 10.244.2.0/25\n",
                     "adopted")
        croft.text("node", "remove", "node-e", "--force")

        say("the controller")
        croftd = [world.bin / "croftd", "controller", "--store", croft.store, "--once", "--grace", "0s"]
        done = run(*croftd, "--allocate-node-cidrs")
        expect("node node-c got 10.244.2.0/24, fd00:244:0:1::/64" in done.stderr, f"the log: {done.stderr}")
        croft.text("node", "label", "node-f", "zone=a")
        done = run(*croftd, "--allocate-node-cidrs")
        expect("CIDRNotAvailable: no IPv4 range is left for node node-f" in done.stderr, f"the log: {done.stderr}")
        done = run(*croftd, "--allocate-node-cidrs", "--node-cidr-mask-size-ipv4", "24",
                   f"--cluster-cidr={CLUSTER},10.245.0.0/24", f"--service-cluster-ip-range={SERVICES}")
        expect("node node-f got 10.245.0.0/24, fd00:244:0:2::/64" in done.stderr, f"a cluster CIDR more: {done.stderr}")
        expect_equal([row["cidr"] for row in croft.data("show", "node-f")], ["10.245.0.0/24", "fd00:244:0:2::/64"],
                     "ranges of node-f")
        # Where nothing says what ranges are cut from, the controller does not pretend to work.
        empty = Croft(world, "empty")
        empty.text("pool", "create", "web", "--cidr", "10.1.0.0/24")
        done = run(world.bin / "croftd", "controller", "--store", empty.store, "--once", "--grace", "0s",
                   "--allocate-node-cidrs", check=False)
        expect(done.returncode == USAGE and "Must specify --cluster-cidr if --allocate-node-cidrs is set" in done.stderr,
               f"without a cluster CIDR: {done.returncode} {done.stderr}")


if __name__ == "__main__":
    main(test, seconds=240)
