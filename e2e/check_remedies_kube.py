"""The findings of `croft check` that only a Kubernetes API shows, provoked on a real kube-apiserver while pods live, and the remedy
of each followed to the letter: each living pod keeps its address and each node its range, nobody else gets it, and the finding
is gone. The others are in check_remedies.py.
"""

import contextlib
import ipaddress
import json

from check_remedies import commands_of
from kube_collect import Cluster, Controller
from kube_store import write_kubeconfig
from lib import cache_entry, call_ipam, expect, expect_equal, say, wait_for

FINDINGS, REFUSED = 3, 5  # exit codes
NODES = "/api/v1/nodes"


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube, self.cluster = world, kube, Cluster(world, kube)
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        self.of_controller = f"kube:{write_kubeconfig(world, kube, 'croft-controller')}"
        self.cache = world.directory / "cache"
        (self.cache / "results").mkdir(parents=True)
        self.controllers = 0

    def cli(self, *arguments, codes=(0,)):
        return self.world.cli(self.store, *arguments, codes=codes)

    def found(self, kind, *more):
        return [one for one in json.loads(self.cli("check", "-o", "json", *more, codes=(0, FINDINGS)).stdout) if one["finding"] == kind]

    def remedy(self, kind, *words):
        """Of the only finding of a kind; it says these words, by which the test acts."""
        found = self.found(kind)
        expect_equal(len(found), 1, f"{kind}: {found}")
        for word in words:
            expect(word in found[0]["remedy"], f"{kind}: the remedy says {word}: {found[0]['remedy']}")
        say(f"  {kind}, {found[0]['subject']}: {found[0]['remedy']}")
        return found[0]["remedy"]

    def follow(self, remedy, codes=(0,)):
        return [self.cli(*words[1:], codes=codes) for words in commands_of(remedy)]

    def made_anew(self, name):
        """A drained node, whose object is deleted; its kubelet makes it anew."""
        self.kube.call("DELETE", f"{NODES}/{name}")
        self.cluster.node(name)

    def said(self, name):
        return self.kube.call("GET", f"{NODES}/{name}")["spec"].get("podCIDRs")

    def ranges(self):
        return {one["cidr"]: one["node"] for one in json.loads(self.cli("node", "range", "list", "-o", "json").stdout)}

    @contextlib.contextmanager
    def controller(self):
        self.controllers += 1
        controller = Controller(self.world, self.of_controller, f"controller-{self.controllers}", "--leader-elect=false",
                                "--allocate-node-cidrs", "--cluster-cidr", "10.244.0.0/21")
        yield
        controller.end()

    def ranges_unharmed(self, living, where):
        """Nobody has a range in common with a node whose pods live, however many others come."""
        fillers = [f"filler-{number}" for number in range(9)]
        for name in fillers:
            self.cluster.node(name)
        for name in fillers:
            self.cli("node", "range", "assign", name, codes=(0, 1))
        taken = [(node, cidr) for cidr, node in self.ranges().items()]
        taken += [(item["metadata"]["name"], cidr) for item in self.kube.call("GET", NODES)["items"] for cidr in item["spec"].get("podCIDRs", [])]
        for node, own in living.items():
            expect_equal(self.said(node), [own], f"{where}: what node {node} says")
            others = [(other, cidr) for other, cidr in taken if other != node and ipaddress.ip_network(cidr).overlaps(ipaddress.ip_network(own))]
            expect_equal(others, [], f"{where}: who has addresses of node {node}")
        for name in fillers:
            self.kube.call("DELETE", f"{NODES}/{name}")
            if name in self.ranges().values():
                self.cli("node", "range", "release", name, "--force")

    def begin(self):
        """No nodes and no ranges; the one with pods in the first."""
        for item in self.kube.call("GET", NODES)["items"]:
            self.kube.call("DELETE", f"{NODES}/{item['metadata']['name']}")
        for name in set(self.ranges().values()):
            self.cli("node", "range", "release", name, "--force")
        self.cluster.node("there", "10.244.0.0/24")
        self.cli("node", "range", "assign", "there", "--cidr", "10.244.0.0/24")
        return {"there": "10.244.0.0/24"}

    def mended(self, kind, living, where):
        wait_for(lambda: not self.found(kind), f"{where}: the finding is gone", 20)
        self.ranges_unharmed(living, where)
        expect_equal(self.found(kind), [], f"{where}: after others came")


# ---------------------------------------------------------------- ranges of nodes

# Finding, nodes with the ranges that their objects say, ranges that are recorded besides, where pods live, words of the remedy, the drained
# node whose object is deleted, as its kubelet makes it anew, and who says a range then.
RANGES = (
    ("node_range_twice", {"twin-a": "10.244.1.0/24", "twin-b": "10.244.1.128/25"}, {}, {"twin-a": "10.244.1.0/24"},
     ("drain one of the two nodes", "delete its object", "kubelet makes the object anew"), "twin-b", ("twin-b",)),
    # What y has a record of, x says.
    *(("node_range_twice", {"y": None, "x": "10.244.2.0/24"}, {"y": "10.244.2.0/24"}, {has_pods: "10.244.2.0/24"},
       ('find out whose pods live in it; if not those of node "y"', 'drain node "x"', "delete its object"), drained, ("x", "y"))
      for has_pods, drained in (("x", None), ("y", "x"))),
    *(("node_range_differs", {"d": "10.244.4.0/24"}, {"d": "10.244.3.0/24"}, living,
       ("if its pods live in what the object says", "else delete its object once it is drained"), drained, ("d",))
      for living, drained in (({"d": "10.244.4.0/24"}, None), ({}, "d"))),
    ("node_range_unreadable", {"odd": "ten"}, {}, {}, ("drain the node and delete its object", "its kubelet makes it anew"), "odd", ("odd",)),
)


def ranges_of_nodes(rig, kind, nodes, recorded, pods, words, drained, say_one):
    living = rig.begin() | pods
    for name, said in nodes.items():
        if said == "ten":  # no API server admits it: it was written past it
            rig.kube.put_raw(f"minions/{name}", json.dumps({
                "kind": "Node", "apiVersion": "v1", "spec": {"podCIDR": said, "podCIDRs": [said]},
                "metadata": {"name": name, "uid": "575d6752-ce47-11e8-8a72-9cb6d089a923", "creationTimestamp": "2026-11-01T00:00:00Z"}}).encode())
            wait_for(lambda: rig.found(kind), "the API shows it", 20)
            continue
        rig.cluster.node(name, said)
        if name in recorded:
            rig.cli("node", "range", "assign", name, "--cidr", recorded[name])
    remedy = rig.remedy(kind, *words)
    with rig.controller():
        if drained:
            rig.made_anew(drained)
        if not (recorded and drained):  # whose remedy is for the other case
            rig.follow(remedy)
        wait_for(lambda: all(rig.said(name) for name in say_one), f"{say_one} have ranges", 20)
        rig.mended(kind, living, f"{kind} of {list(nodes)}, pods in {pods}")


# ---------------------------------------------------------------- pods and their addresses

class Pods:
    """Who lives, by the register and by trying: 16 addresses a node, which are a block and its podCIDR."""

    def __init__(self, rig):
        self.rig, self.living = rig, {}
        for item in rig.kube.call("GET", NODES)["items"]:
            rig.kube.call("DELETE", f"{NODES}/{item['metadata']['name']}")
        rig.cli("pool", "create", "p", "--cidr", "10.83.0.0/24", "--block-size", "28", "--gateway", "none", "--cooldown-seconds", "0")
        rig.cli("config", "set", "--strict-affinity", "true", "--auto-allocate-blocks", "false")
        for number in (1, 2, 3):
            rig.cluster.node(f"node-{number}", self.cidr(number))
        rig.cli("affinity", "claim", self.cidr(1), "--node", "node-1")
        for number in range(3):
            self.live(f"web-{number}", "node-1")

    @staticmethod
    def cidr(number):
        return f"10.83.0.{16 * number}/28"

    def live(self, name, node):
        self.living[self.rig.cluster.living(name, node)] = name
        return next(address for address, pod in self.living.items() if pod == name)

    def delete(self, name):
        """As a kubelet ends it."""
        self.rig.cluster.delete_pod(name)
        address = next((address for address, pod in self.living.items() if pod == name), None)
        self.living.pop(address, None)
        self.call("DEL", name, "node-1")

    def call(self, command, container, node):
        return call_ipam(self.rig.world, command, container, self.rig.cluster.store, node)

    def unharmed(self, where, free=()):
        """Each that lives has its address, and nobody else gets it; nor one of `free`."""
        held = self.rig.world.held(self.rig.store)
        for address, pod in self.living.items():
            expect_equal(held[address]["pod"] if address in held else None, pod, f"{where}: who has {address}")
        taken = {}
        for number in (1, 2, 3):
            for count in range(16):
                name = f"fill-{number}-{count}"
                code, answer = self.call("ADD", name, f"node-{number}")
                if code != 0:
                    break
                taken[answer["ips"][0]["address"].split("/")[0]] = (name, f"node-{number}")
        expect_equal(sorted(set(taken) & (set(self.living) | set(free))), [], f"{where}: who got an address of another")
        for name, node in taken.values():
            self.call("DEL", name, node)


def not_held(rig, pods):
    """An address that the register has as free, and one that it gives to another."""
    lost = pods.live("lost", "node-1")
    rig.cli("ip", "release", lost, "--force")
    rig.remedy("pod_not_held", "delete the pod before another one gets the address", "`croft check --cni-cache` on its node")
    cache_entry(rig.cache / "results", "lost", netns="/proc/self/ns/net", address=lost, pod=("default", "lost"))
    alive = rig.found("not_held", "--cni-cache", rig.cache, "--node", "node-1", "--in-container")
    expect_equal([one["subject"] for one in alive], [lost], "it lives")
    (rig.cache / "results" / "net-lost-eth0").unlink()
    pods.delete("lost")
    expect_equal(rig.found("pod_not_held"), [], "once it is deleted")

    first = next(iter(pods.living))
    rig.cluster.pod("second", "node-1")
    rig.cluster.report("second", first)
    rig.remedy("pod_not_held", "delete the pod at once: it has another's address")
    rig.cluster.delete_pod("second")
    expect_equal(rig.found("pod_not_held"), [], "once the second is deleted")
    pods.unharmed("pod_not_held")


def not_moved(rig, pods):
    """node-2 has host-local, by its own directory and its pods."""
    directory = rig.world.directory / "cbr0"
    directory.mkdir()
    (directory / "lock").touch()
    there = [f"10.83.0.{16 * 2 + number}" for number in (2, 3)]
    for number, address in enumerate(there):
        (directory / address).write_text(f"old-{number}\r\neth0")
        rig.cluster.pod(f"old-{number}", "node-2")
        rig.cluster.report(f"old-{number}", address)
    remedy = rig.remedy("node_not_moved", "claim the podCIDR", "(`croft affinity claim`)", "move the node (docs/runbooks/migrate.md, From host-local)")
    expect(f"with {there[0]} for it" in remedy, remedy)
    rig.cli("affinity", "claim", pods.cidr(2), "--node", "node-2")
    rig.cli("host-local", "import", "--dir", directory, "--pool", "p", "--pod-cidr", pods.cidr(2), "--node", "node-2",
            codes=(0, FINDINGS))
    expect_equal(rig.found("node_not_moved"), [], "moved")
    held = rig.world.held(rig.store)
    expect_equal([held[address]["containerId"] if address in held else None for address in there], ["old-0", "old-1"], "who was moved")
    pods.unharmed("node_not_moved", there)
    for number in range(2):
        rig.cluster.delete_pod(f"old-{number}")
        pods.call("DEL", f"old-{number}", "node-2")


def pod_gone(rig, pods):
    """While it is not there, and when it is back with its address before the remedy is followed."""
    lost = pods.live("gone", "node-1")
    rig.cluster.delete_pod("gone")
    remedy = rig.remedy("pod_gone", f"croft ip release {lost} --handle")
    rig.cluster.pod("gone", "node-1")
    rig.cluster.report("gone", lost)
    rig.follow(remedy, codes=(REFUSED,))
    pods.unharmed("pod_gone, back again")
    rig.cluster.delete_pod("gone")
    del pods.living[lost]
    rig.follow(remedy)
    expect_equal(rig.found("pod_gone"), [], "mended")
    pods.unharmed("pod_gone")


def node_gone(rig, pods):
    """A node whose object went, once with a pod that lives on it, which the cluster still has."""
    rig.cluster.node("dead")
    rig.cli("affinity", "claim", "10.83.0.64/28", "--node", "dead")
    for name in ("orphan", "lost"):
        pods.live(name, "dead")
    rig.kube.call("DELETE", f"{NODES}/dead")
    rig.cluster.delete_pod("lost")
    lost = next(address for address, pod in pods.living.items() if pod == "lost")
    remedy = rig.remedy("node_gone", "if the node is gone for good", "without --dry-run gives it back")
    block = rig.remedy("block_node_gone", "`croft node remove dead --release --dry-run`")
    rig.follow(remedy, codes=(REFUSED,))
    words = commands_of(block)[0]
    rig.cli(*[word for word in words[1:] if word != "--dry-run"], codes=(REFUSED,))
    pods.unharmed("node_gone, with a pod that lives")
    rig.cluster.delete_pod("orphan")
    pods.living = {address: pod for address, pod in pods.living.items() if pod not in ("orphan", "lost")}
    rig.follow(remedy)
    expect_equal(len(rig.found("node_gone")), 2, f"a dry run changes nothing, and {lost} is held")
    rig.cli(*[word for word in words[1:] if word != "--dry-run"])
    expect_equal([rig.found(kind) for kind in ("node_gone", "block_node_gone")], [[], []], "mended")
    pods.unharmed("node_gone")


def holder_in_doubt(rig, pods):
    """A pod that has ended, and a StatefulSet's two sandboxes: the runtime of the node says who lives."""
    job = pods.live("job", "node-1")
    rig.cluster.report("job", job, phase="Succeeded")
    remedy = rig.remedy("holder_in_doubt", "`kubectl delete pod --namespace default job`")
    rig.follow(remedy)
    pods.delete("job")
    expect_equal(rig.found("holder_in_doubt"), [], "once it is deleted")
    pods.unharmed("a pod that has ended")

    rig.cluster.pod("db-0", "node-1")
    old, new = (rig.cluster.add("db-0", "node-1", container=container) for container in ("db-old", "db-new"))
    rig.cluster.report("db-0", new)
    remedy = rig.remedy("holder_in_doubt", "`croft check --cni-cache /var/lib/cni --node node-1`")
    expect_equal([one["subject"] for one in rig.found("holder_in_doubt")], [old], "the other sandbox's")
    pods.living[new] = "db-0"
    rig.follow(remedy.replace("/var/lib/cni", str(rig.cache)), codes=(0, FINDINGS))
    pods.unharmed("holder_in_doubt", (old,))
    rig.cluster.delete_pod("db-0")
    del pods.living[new]
    for container in ("db-old", "db-new"):
        pods.call("DEL", container, "node-1")


def another_nodes_range(rig, pods):
    """node-1 has the podCIDR of node-3 as a block, and a pod in it."""
    rig.cli("affinity", "claim", pods.cidr(3), "--node", "node-1")
    rig.cli("config", "set", "--auto-allocate-blocks", "true")
    while not any(ipaddress.ip_address(address) in ipaddress.ip_network(pods.cidr(3)) for address in pods.living):
        pods.live(f"more-{len(pods.living)}", "node-1")
    there = [pod for address, pod in pods.living.items() if ipaddress.ip_address(address) in ipaddress.ip_network(pods.cidr(3))]
    remedy = rig.remedy("pod_range_overlap", "drain node", "claim its own podCIDR")
    # Who does not drain harms nobody: the block is not given up while its pod lives.
    rig.follow(remedy, codes=(0, 1, FINDINGS, REFUSED))
    pods.unharmed("pod_range_overlap, undrained")
    for pod in there:
        pods.delete(pod)
    rig.follow(remedy)
    expect_equal(rig.found("pod_range_overlap"), [], "mended")
    pods.unharmed("pod_range_overlap")


def play(world, kube):
    rig = Rig(world, kube)
    rig.cli("node", "range", "config", "--cluster-cidr", "10.244.0.0/21")
    for row in RANGES:
        ranges_of_nodes(rig, *row)
    pods = Pods(rig)
    not_held(rig, pods)
    not_moved(rig, pods)
    pod_gone(rig, pods)
    node_gone(rig, pods)
    holder_in_doubt(rig, pods)
    another_nodes_range(rig, pods)
