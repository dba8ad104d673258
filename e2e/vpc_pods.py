#!/usr/bin/env python3
"""Pods with addresses of a cloud, in network namespaces made here: two nodes on one network that plays the VPC, each with
an agent, Debian's `ptp` with croft-vpc as its IPAM plugin, and the simulator as the cloud.

Pods of both nodes ping each other. One for which nothing is in stock waits as long as cloud and probing take. A duplicate
that somebody really has on the wire is quarantined with its MAC. With the cloud switched off pods come and go from stock;
with the agent killed the plugin does it alone; a new agent knows all of it. A node's card is replaced under its agent, by
one with another MAC and by one with the same: pods start as before. What the simulator has is what the stocks have, all the
time.

usage: vpc_pods.py BIN_DIR
"""

import json
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
import subprocess

from lib import World, expect, expect_equal, main, require_network_namespaces, require_programs, run, say, wait_for

MACS = {"node-a": "52:54:00:00:00:0a", "node-b": "52:54:00:00:00:0b", "node-c": "52:54:00:00:00:0c"}
HOSTS = {"node-a": "10.9.0.250", "node-b": "10.9.0.251", "node-c": "10.9.0.252"}
GATEWAY = "10.9.0.1"
DUPLICATE = "10.9.0.4"
API = f"http://{GATEWAY}:8080"
PROBE_WINDOW_LEAST_S, FRESH_MOST_S = 4, 15


class Cloud:
    """The VPC's switch with the API behind its gateway."""

    def __init__(self, world):
        self.world = world
        self.netns = world.netns("vpc")
        self.netns.run("ip", "link", "add", "br0", "type", "bridge")
        self.netns.run("ip", "address", "add", f"{GATEWAY}/24", "dev", "br0")
        self.netns.run("ip", "link", "set", "br0", "up")
        config = world.directory / "cloud.json"
        config.write_text(json.dumps({
            "region": "cn-bj2", "zone": "cn-bj2-04", "project": "org-test", "vpc": "uvnet-1", "publicKey": "public",
            "privateKey": "private", "subnets": [{"id": "subnet-1", "range": "10.9.0.0/24", "gateway": GATEWAY}],
            "nodes": [{"name": name, "mac": mac, "subnet": "subnet-1", "address": HOSTS[name]} for name, mac in MACS.items()]}))
        self.process = start(world, self.netns, "sim", "croft-vpc-sim", "--listen", f"{GATEWAY}:8080", "--config", config)
        wait_for(lambda: "listening" in (world.directory / "sim.log").read_text(), "the simulator listens")

    def plug(self, netns, name, mac=None, address=None):
        """A cable from the switch to a namespace's eth0."""
        port = f"p-{name}"
        self.netns.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", netns.path)
        self.netns.run("ip", "link", "set", port, "master", "br0", "up")
        if mac:
            netns.run("ip", "link", "set", "eth0", "address", mac)
        netns.run("ip", "link", "set", "eth0", "up")
        if address:
            netns.run("ip", "address", "add", f"{address}/24", "dev", "eth0")

    def ask(self, path, **form):
        data = ["--data", urllib.parse.urlencode(form)] if form else []
        script = ("import sys,urllib.request as u;"
                  "print(u.urlopen(u.Request(sys.argv[1],sys.argv[2].encode() if len(sys.argv)>2 else None),timeout=10)"
                  ".read().decode())")
        return self.netns.run(sys.executable, "-c", script, f"{API}{path}", *data[1:]).stdout

    def addresses_of(self, node):
        truth = json.loads(self.ask("/sim/truth"))
        return {one["ip"] for one in truth["addresses"] if one["mac"].lower() == MACS[node]}


def start(world, netns, log, program, *arguments):
    """A program in a namespace, which ends with the world."""
    with open(world.directory / f"{log}.log", "ab") as out:
        process = subprocess.Popen(["nsenter", f"--net={netns.path}", world.bin / program, *map(str, arguments)],
                                   stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    world.stack.callback(lambda: (process.kill(), process.wait()))
    return process


class Node:
    def __init__(self, world, cloud, name):
        self.world, self.cloud, self.name = world, cloud, name
        self.netns = world.netns(name)
        self.cards = 0
        self.plug()
        self.socket = world.directory / f"{name}.sock"
        self.store = f"sqlite:{world.directory / name}/vpc.db"
        (world.directory / name).mkdir()
        self.plugin = world.plugin("ptp", self.netns)
        self.config = {"cniVersion": "1.0.0", "name": "vpc", "type": "ptp", "mtu": 1452,
                       "ipam": {"type": "croft-vpc", "agent": str(self.socket), "store": self.store, "api": API,
                                "metadata": f"{API}/{name}", "interface": "eth0", "probeUnitMilliseconds": 50,
                                "log_file_path": str(world.directory / "ipam.log")}}
        self.agent = None

    def plug(self):
        """A card: another index, and the MAC that MACS says."""
        if self.cards > 0:
            self.netns.run("ip", "link", "delete", "eth0")
        self.cards += 1
        self.cloud.plug(self.netns, f"{self.name[-1]}{self.cards}", MACS[self.name], HOSTS[self.name])
        self.netns.run("ip", "route", "add", "default", "via", GATEWAY)
        # As UK8S' nodes are set up: the node answers on the VPC for its pods.
        for key in ("net.ipv4.ip_forward", "net.ipv4.conf.eth0.proxy_arp"):
            self.netns.run("sysctl", "-q", "-w", f"{key}=1")

    def start_agent(self, *which, low=3, high=50, probe_unit_milliseconds=50):
        self.agent = start(self.world, self.netns, self.name, "cni-vpc-ipamd", f"-availablePodIPLowWatermark={low}",
                           f"-availablePodIPHighWatermark={high}", "-cooldownPeriodSeconds=2", "--node", self.name,
                           "--socket", self.socket, "--store", self.store, "--api", API,
                           "--metadata", f"{API}/{self.name}", *which, "--probe-unit-milliseconds", probe_unit_milliseconds,
                           "--log-directory", "none")
        wait_for(lambda: self.socket.exists() and len(self.stock()) >= low, f"{self.name} has {low} addresses in stock")

    def vpc(self, what):
        done = run(self.world.bin / "croft", "vpc", "get", what, "-o", "json", "--agent",
                   f"{self.name}=unix:{self.socket}", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else []

    def stock(self):
        return {one["ip"] for one in self.vpc("pool")}

    def held(self):
        return {one["vpcip"] for one in self.vpc("pod")}

    def unused(self):
        return {one["IP"] for one in self.vpc("unuse")}

    def pod(self, name):
        return Pod(self, name)

    def expect_as_in_the_cloud(self, when):
        wait_for(lambda: self.stock() | self.held() | self.unused() == self.cloud.addresses_of(self.name),
                 f"{when}: the records of {self.name} are what the cloud has", 30)


class Pod:
    def __init__(self, node, name):
        self.node, self.name = node, name
        self.netns = node.world.netns(name)
        self.result = node.plugin.add(node.config, f"container-{name}", self.netns, args=self.args)
        self.address = self.result["ips"][0]["address"].split("/")[0]

    @property
    def args(self):
        return f"IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={self.name}"

    def delete(self):
        self.node.plugin.delete(self.node.config, f"container-{self.name}", self.netns, args=self.args)


def fresh_address(world, cloud):
    """UK8S' third promise, on the wire with RFC 5227's own times: a pod for which nothing is in stock waits for the cloud and
    one window of probing, and the next one, whose address comes from stock, does not."""
    c = Node(world, cloud, "node-c")
    c.start_agent(low=0, high=0, probe_unit_milliseconds=1000)
    began = time.monotonic()
    first = c.pod("c1")
    waited = time.monotonic() - began
    expect(PROBE_WINDOW_LEAST_S <= waited <= FRESH_MOST_S, f"a fresh address took {waited:.1f} s")
    first.netns.ping(GATEWAY)
    first.delete()
    wait_for(lambda: [one["ip"] for one in c.vpc("pool") if not one["cooldown"]] == [first.address], "its cooldown is over")
    began = time.monotonic()
    second = c.pod("c2")
    again = time.monotonic() - began
    expect_equal(second.address, first.address, "the address of the stock")
    expect(again < PROBE_WINDOW_LEAST_S, f"one out of stock took {again:.1f} s")
    second.delete()
    c.expect_as_in_the_cloud("without marks")
    c.agent.kill()
    say(f"  a fresh address took {waited:.1f} s, one of the stock {again:.1f} s")


def replaced_card(cloud, node, far, pods):
    """Under its agent, which is not begun anew."""
    log = node.world.directory / f"{node.name}.log"
    for number, mac in enumerate(("52:54:00:00:00:1b", "52:54:00:00:00:1b")):
        known = node.stock() | node.held()
        if mac != MACS[node.name]:
            MACS[node.name] = mac
            cloud.ask("/sim/replace-interface", node=node.name, mac=mac)
            node.plug()
            wait_for(lambda: "is replaced" in log.read_text() and mac in log.read_text().split("is replaced")[1],
                     "the agent has found the new card", 30)
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
        node.expect_as_in_the_cloud("with another card")
        pods += fresh
        expect(node.agent.poll() is None, "it is the same agent")
        say(f"  card {number + 2} of {node.name}, {mac}: {len(fresh)} pods with addresses on it")


def check(bin_dir):
    require_programs("ip", "nsenter", "sysctl", "ping")
    require_network_namespaces()
    with World("vpc", bin_dir) as world:
        cloud = Cloud(world)
        duplicate = world.nameless_netns()
        cloud.plug(duplicate, "dup", address=DUPLICATE)
        a, b = Node(world, cloud, "node-a"), Node(world, cloud, "node-b")
        a.start_agent("--interface", "eth0")
        b.start_agent("--reconcile-seconds", 1)  # finds its interface by the MAC
        expect_equal(a.unused() | b.unused(), {DUPLICATE}, "what somebody else has on the wire")
        whose = a if DUPLICATE in a.unused() else b
        mac = duplicate.mac()
        expect(mac in (world.directory / f"{whose.name}.log").read_text(), f"the agent's log names {mac}")
        say(f"  {DUPLICATE} is quarantined: {mac} answers for it")

        pods = [a.pod("a1"), a.pod("a2"), b.pod("b1"), b.pod("b2")]
        expect_equal(len({pod.address for pod in pods}), len(pods), "number of different addresses")
        expect(DUPLICATE not in {pod.address for pod in pods}, "nobody got the duplicate")
        for source in pods:
            for target in pods:
                if source is not target:
                    source.netns.ping(target.address)
            source.netns.ping(GATEWAY)
        say(f"  4 pods on 2 nodes ping each other and the gateway: {', '.join(pod.address for pod in pods)}")
        a.expect_as_in_the_cloud("with pods")
        b.expect_as_in_the_cloud("with pods")

        wait_for(lambda: len(a.stock()) >= 3, "the stock is filled again")
        fresh_address(world, cloud)
        cloud.ask("/sim/outage", mode="refuse")
        more = [a.pod("a3"), a.pod("a4")]
        more[0].netns.ping(pods[2].address)
        pods[0].delete()
        say("  the cloud is away: two pods came and one went")
        a.agent.kill()
        a.agent.wait()
        again = a.pod("a5")
        again.netns.ping(more[0].address)
        more.append(again)
        pods[1].delete()
        say(f"  and the agent too: the plugin gave {again.address} from stock, and took one back")
        cloud.ask("/sim/heal")
        a.start_agent("--interface", "eth0")
        expect_equal(a.held(), {pod.address for pod in more}, "what the new agent knows of pods")
        a.expect_as_in_the_cloud("with the new agent")
        of_b = pods[2:]
        replaced_card(cloud, b, more[0], of_b)
        for pod in more + of_b:
            pod.delete()
        expect_equal((a.held(), b.held()), (set(), set()), "held in the end")
        a.expect_as_in_the_cloud("in the end")
        b.expect_as_in_the_cloud("in the end")
        expect_equal(json.loads(cloud.ask("/sim/check")), [], "what contradicts itself in the cloud")


if __name__ == "__main__":
    main(lambda: check(sys.argv[1]), 120)
