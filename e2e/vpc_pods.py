"""Pods with addresses of a cloud, by Debian's `ptp` with croft-vpc: three nodes on one network that plays the VPC, and the simulator as the
cloud. Pods of two nodes ping each other; one for which nothing is in stock waits as long as cloud and probing take; a duplicate on
the wire is quarantined with its MAC. Pods come and go with the cloud switched off, and with the agent killed; a new agent knows all
of it. A card is replaced by one with another MAC, and under its agent by one with the same.
"""

import sys
import time

from lib import World, expect, expect_equal, main, require_programs, run, say, wait_for
from living_lib import enter_own_namespace
from vpc_lib import Agent, Cloud, settled

GATEWAY, DUPLICATE = "10.9.0.1", "10.9.0.4"
HOSTS = {"node-a": "10.9.0.250", "node-b": "10.9.0.251", "node-c": "10.9.0.252"}
PROBE_WINDOW_LEAST_S, FRESH_MOST_S = 4, 15


def plug(netns, name, mac=None, address=None):
    """A cable from the VPC's switch, which is in this namespace, to a namespace's eth0."""
    run("ip", "link", "add", f"p-{name}", "type", "veth", "peer", "name", "eth0", "netns", netns.path)
    run("ip", "link", "set", f"p-{name}", "master", "br0", "up")
    if mac:
        netns.run("ip", "link", "set", "eth0", "address", mac)
    netns.run("ip", "link", "set", "eth0", "up")
    netns.run("ip", "address", "add", f"{address}/24", "dev", "eth0")


class Node(Agent):
    def __init__(self, world, cloud, name, *flags, low=3, high=50, probe_unit_milliseconds=50):
        super().__init__(cloud, name, low, high, ["-cooldownPeriodSeconds=2", *flags, "--probe-unit-milliseconds", probe_unit_milliseconds], name)
        self.world, self.netns, self.cards = world, world.netns(name), 0
        self.before = ("nsenter", f"--net={self.netns.path}")
        self.plug()
        self.main_plugin = world.plugin("ptp", self.netns)
        self.config = {"cniVersion": "1.0.0", "name": "vpc", "type": "ptp", "mtu": 1452,
                       "ipam": {"type": "croft-vpc", "agent": str(self.socket), "store": f"sqlite:{self.store}", "api": cloud.url,
                                "metadata": f"{cloud.url}/{name}", "interface": "eth0", "probeUnitMilliseconds": 50,
                                "log_file_path": str(world.directory / "ipam.log")}}

    def command(self, *marks):
        return [word for word in super().command(*marks) if word != "--no-probe"]

    def start_with_stock(self):
        self.start()
        wait_for(lambda: len(self.free()) >= self.low, f"{self.name} has {self.low} addresses in stock", 30)
        return self

    def plug(self):
        """A card: another index, and the MAC that the cloud says."""
        if self.cards > 0:
            self.netns.run("ip", "link", "delete", "eth0")
        self.cards += 1
        plug(self.netns, f"{self.name[-1]}{self.cards}", self.cloud.nodes[self.name], HOSTS[self.name])
        self.netns.run("ip", "route", "add", "default", "via", GATEWAY)
        # As UK8S' nodes are set up: the node answers on the VPC for its pods.
        for key in ("net.ipv4.ip_forward", "net.ipv4.conf.eth0.proxy_arp"):
            self.netns.run("sysctl", "-q", "-w", f"{key}=1")

    def pod(self, name):
        return Pod(self, name)


class Pod:
    def __init__(self, node, name):
        self.node, self.name = node, name
        self.netns = node.world.netns(name)
        self.args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={name}"
        result = node.main_plugin.add(node.config, f"container-{name}", self.netns, args=self.args)
        self.address = result["ips"][0]["address"].split("/")[0]

    def delete(self):
        self.node.main_plugin.delete(self.node.config, f"container-{self.name}", self.netns, args=self.args)


def fresh_address(world, cloud):
    """UK8S' third promise, on the wire with RFC 5227's own times: a pod for which nothing is in stock waits for the cloud and
    one window of probing, and the next one, whose address comes from stock, does not."""
    c = Node(world, cloud, "node-c", low=0, high=0, probe_unit_milliseconds=1000).start()
    began = time.monotonic()
    first = c.pod("c1")
    waited = time.monotonic() - began
    expect(PROBE_WINDOW_LEAST_S <= waited <= FRESH_MOST_S, f"a fresh address took {waited:.1f} s")
    first.netns.ping(GATEWAY)
    first.delete()
    wait_for(lambda: c.pool() == ({first.address}, set()), "its cooldown is over")
    began = time.monotonic()
    second = c.pod("c2")
    again = time.monotonic() - began
    expect_equal(second.address, first.address, "the address of the stock")
    expect(again < PROBE_WINDOW_LEAST_S, f"one out of stock took {again:.1f} s")
    second.delete()
    say(f"  a fresh address took {waited:.1f} s, one of the stock {again:.1f} s")
    return c


def replaced_card(cloud, node, far, pods):
    """One with another MAC, whose node's agent begins anew; and one with the same, under its agent."""
    for number, mac in enumerate(("52:54:00:00:00:1b", "52:54:00:00:00:1b")):
        known = node.known()
        if mac != cloud.nodes[node.name]:
            cloud.nodes[node.name] = mac
            cloud.do("replace-interface", node=node.name, mac=mac)
            node.plug()
            node.restart()
            process = node.process
            wait_for(lambda: f"interface {mac}" in node.process.log(), "the agent has found the new card", 30)
        else:
            node.plug()
        # Those in stock, however many a refill on its way made them, and then one that is asked for and probed on the new card.
        fresh = []
        while not fresh or fresh[-1].address in known:
            expect(len(fresh) <= len(known), "those of the stock come to an end")
            fresh.append(node.pod(f"{node.name[-1]}-card{number}-{len(fresh)}"))
        for pod in fresh:
            pod.netns.ping(GATEWAY)
        far.netns.ping(fresh[-1].address)
        pods += fresh
        expect(node.process is process and process.poll() is None, "it is the same agent")
        say(f"  card {number + 2} of {node.name}, {mac}: {len(fresh)} pods with addresses on it")


def test():
    require_programs("ip", "nsenter", "sysctl", "ping")
    enter_own_namespace()
    with World("vpc", sys.argv[1]) as world:
        run("ip", "link", "add", "br0", "address", "02:00:00:00:00:01", "type", "bridge")  # else a new port may change its MAC, which others have in their ARP
        run("ip", "address", "add", f"{GATEWAY}/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        cloud = Cloud(world, "cloud", HOSTS, prefix="10.9.0", listen=GATEWAY, addresses=HOSTS)
        duplicate = world.nameless_netns()
        plug(duplicate, "dup", address=DUPLICATE)
        a = Node(world, cloud, "node-a", "--interface", "eth0").start_with_stock()
        b = Node(world, cloud, "node-b", "--reconcile-seconds", 1).start_with_stock()  # finds its interface by the MAC
        expect_equal(a.unused() | b.unused(), {DUPLICATE}, "what somebody else has on the wire")
        whose = a if DUPLICATE in a.unused() else b
        expect(duplicate.mac() in whose.process.tail(), f"the agent's log names {duplicate.mac()}")
        say(f"  {DUPLICATE} is quarantined: {duplicate.mac()} answers for it")

        pods = [a.pod("a1"), a.pod("a2"), b.pod("b1"), b.pod("b2")]
        expect_equal(len({pod.address for pod in pods} | {DUPLICATE}), len(pods) + 1, "number of different addresses, with the duplicate")
        for source in pods:
            for target in (GATEWAY, *(pod.address for pod in pods if pod is not source)):
                source.netns.ping(target)
        say(f"  4 pods on 2 nodes ping each other and the gateway: {', '.join(pod.address for pod in pods)}")
        wait_for(lambda: len(a.free()) >= 3, "the stock is filled again")
        c = fresh_address(world, cloud)
        settled(cloud, [a, b, c], {DUPLICATE})
        c.kill()
        cloud.do("outage", mode="refuse")
        more = [a.pod("a3"), a.pod("a4")]
        more[0].netns.ping(pods[2].address)
        pods[0].delete()
        say("  the cloud is away: two pods came and one went")
        a.kill()
        again = a.pod("a5")
        again.netns.ping(more[0].address)
        more.append(again)
        pods[1].delete()
        say(f"  and the agent too: the plugin gave {again.address} from stock, and took one back")
        cloud.do("heal")
        a.start_with_stock()
        expect_equal(set(a.records()), {pod.address for pod in more}, "what the new agent knows of pods")
        of_b = pods[2:]
        replaced_card(cloud, b, more[0], of_b)
        for pod in more + of_b:
            pod.delete()
        expect_equal((a.records(), b.records()), ({}, {}), "held in the end")
        c.start()
        settled(cloud, [a, b, c], {DUPLICATE})


main(test, 150)
