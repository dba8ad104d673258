"""The collector on a real kube-apiserver: what it frees, and what it keeps, by the pods and nodes of the API."""

import json
import pathlib
import time

import lib
from etcd_lib import Node
from kube_agent import start_agent
from kube_relay import Relay
from kube_store import CALICO, write_kubeconfig
from lib import call_ipam, expect, expect_equal, run, say, wait_for

PODS = "/api/v1/namespaces/default/pods"
GRACE_SECONDS = 2


class Cluster:
    """Pods and nodes, as kubelets and users would make them."""

    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
        kube.make("/api/v1/namespaces/default/serviceaccounts", "ServiceAccount", "default")

    def node(self, name, pod_cidr=None):
        spec = {"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} if pod_cidr else {}
        self.kube.make_node(name, spec=spec)

    def pod(self, name, node, **spec):
        return self.kube.make_pod(name, node, **spec)

    def report(self, name, address, phase="Running", **status):
        self.kube.patch(f"{PODS}/{name}/status", {"status": {"phase": phase, "podIP": address, "podIPs": [{"ip": address}], **status}})

    def delete_pod(self, name):
        self.kube.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def add(self, pod, node, container=None, uid=""):
        """The address that a container of the pod gets."""
        container = container or pod
        code, answer = call_ipam(self.world, "ADD", container, self.store, node, f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod};K8S_POD_UID={uid}")
        expect_equal(code, 0, f"ADD {container}: {answer}")
        return answer["ips"][0]["address"].split("/")[0]

    def living(self, name, node):
        """A pod that reports its address."""
        uid = self.pod(name, node)
        address = self.add(name, node, uid=uid)
        self.report(name, address)
        return address


class Controller(lib.Controller):
    def __init__(self, world, store, name, *flags):
        super().__init__(world, store, name, "--grace", f"{GRACE_SECONDS}s", "--interval", "300ms",
                         "--leader-elect-lease-duration-ms", "3000", *flags)


def held(world, store):
    return set(world.held(store))


def by_pods(world, cluster, operator, controller_store):
    live = cluster.living("live", "oak")
    deleted = cluster.living("deleted", "oak")
    stateful = cluster.living("web-0", "elm")
    evicted = cluster.living("evicted", "elm")
    starting = cluster.add("starting", "oak", uid=cluster.pod("starting", "oak"))
    # A static pod whose mirror the API refused.
    static = cluster.add("gw-oak", "oak", uid="34fb0746a0c244a9a53059ec1e33297c")
    before = {live, deleted, stateful, evicted, starting, static}
    expect_equal(held(world, operator), before, "held before")

    # A pod that reports another network's address besides, and one in the network of its node.
    cluster.pod("of-the-node", "oak", hostNetwork=True)
    cluster.report("of-the-node", "192.0.2.10")

    dry = Controller(world, controller_store, "dry", "--dry-run")
    cluster.delete_pod("deleted")
    cluster.delete_pod("web-0")
    again = cluster.add("web-0", "elm", container="web-0-again", uid=cluster.pod("web-0", "elm"))
    cluster.report("web-0", again)
    cluster.report("evicted", evicted, phase="Failed", reason="Evicted")
    wait_for(lambda: "would release" in dry.log(), "the dry run tells", 20)
    expect_equal(held(world, operator), before | {again}, "held after a dry run")
    dry.end()

    controller = Controller(world, controller_store, "controller")
    wait_for(lambda: held(world, operator) == {live, starting, again, static}, "what is dead is free", 30)
    for address, pod, reason in ((deleted, "deleted", "pod_gone"), (stateful, "web-0", "pod_replaced"),
                                 (evicted, "evicted", "pod_evicted")):
        lines = lambda address=address: [line for line in controller.log().splitlines()
                                         if " released " in line and address in line]
        wait_for(lines, f"the evidence for {address}", 10)
        evidence = lines()
        for text in (pod, f": {reason}, ", "asked for by itself, it is so"):
            expect(text in evidence[0], f"the evidence for {address}: {evidence}")
        say(evidence[0].split(" ", 2)[-1])
    expect("nodes and pods from the Kubernetes API" in controller.log(), controller.log())
    time.sleep(GRACE_SECONDS + 1)
    expect_equal(held(world, operator), {live, starting, again, static}, "who lives keeps its address")
    return controller, {live, starting, static}, {again}


def unknown_and_damaged(cluster, kube, operator, controller):
    """A node that the API never had, and a block that can't be read, keep nobody else's leak."""
    cluster.node("fir")
    in_damaged, on_ghost, leak = cluster.living("in-damaged", "fir"), cluster.add("on-ghost", "ghost"), cluster.living("leak", "oak")
    key, = (key for key, value in kube.raw("crd.projectcalico.org/ipamblocks/").items() if b'"host:fir"' in value)
    whole = kube.raw(key)[key]
    block = json.loads(whole)
    kube.put_raw(key, json.dumps({**block, "spec": {**block["spec"], "allocations": "none"}}).encode())
    for name in ("leak", "in-damaged"):
        cluster.delete_pod(name)
    released = lambda address: any(" released " in line and address in line for line in controller.log().splitlines())
    wait_for(lambda: released(leak), "the leak is free", 30)
    time.sleep(GRACE_SECONDS + 1)
    for address in (in_damaged, on_ghost):
        expect(not released(address), f"{address} was released: {controller.log()}")
    for name in ("ghost", key.rsplit("/", 1)[-1]):
        expect(name in controller.log(), f"{name} is named: {controller.log()}")
    expect(on_ghost in held(cluster.world, cluster.store), "the unknown node's")
    kube.put_raw(key, whole)
    wait_for(lambda: released(in_damaged), "what can be read again is free", 30)
    run(cluster.world.bin / "croft", "--store", operator, "ip", "release", on_ghost, "--force")


def stalled_watches(world, cluster, kube, operator, controller_store, of_oak):
    """Connections stay and answer, and no watch says anything more: what lives, and came later, keeps its address."""
    relay = Relay(world, kube)
    through = lambda store: f"kube:{relay.kubeconfig(world.directory / store.rsplit('/', 1)[-1])}"
    controller = Controller(world, through(controller_store), "stalled")
    agent, socket = start_agent(world, through(cluster.store), "--plugin-store", cluster.store)
    oak = Node(world, cluster.store, "oak", lambda pod: f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod};K8S_POD_UID={uids[pod]}")
    # By annotations the agent follows pods, too.
    kube.apply((pathlib.Path(__file__).resolve().parent.parent / "deploy" / "kubernetes" / "annotations.yaml").read_text())
    oak.ipam.update(agent=str(socket), annotations="api")
    uids = {name: cluster.pod(name, "oak") for name in ("through-1", "through-2")}
    oak.add("through-1")
    wait_for(lambda: "nodes and pods from the Kubernetes API" in controller.log(), "the controller works", 20)
    time.sleep(1)  # watches of all that they follow are open
    relay.stalled = True
    dead, late = cluster.living("dead", "oak"), cluster.living("late", "oak")
    last = oak.add("through-2")[0].split("/")[0]
    cluster.delete_pod("dead")
    wait_for(lambda: held(world, operator).isdisjoint({dead}), "what is dead is free", 30)
    oak.delete("through-1")
    time.sleep(GRACE_SECONDS + 2)
    expect_equal(held(world, operator), of_oak | {late, last}, "who lives keeps its address")
    for kind in (b'"kind":"Pod"', b'"kind":"IPAMBlock"'):
        expect(any(kind in frame for frame in relay.swallowed), f"a watch had to say something of {kind}: {relay.swallowed}")
    say(f"{len(relay.swallowed)} frames of watches were swallowed, and nothing that lives was freed")
    for process in (controller, agent):
        process.kill()
    oak.ipam["agent"] = "none"
    oak.delete("through-2")
    for name in ("late", "through-1", "through-2"):
        cluster.delete_pod(name)
    run(world.bin / "croft", "--store", operator, "ip", "release", late, "--force")


def by_nodes(world, cluster, kube, operator, controller, of_oak, of_elm):
    """A node that goes takes its blocks with it; its pods go as the garbage collector of pods does it."""
    kube.call("DELETE", "/api/v1/nodes/elm")
    for name in ("web-0", "evicted"):
        cluster.delete_pod(name)
    wait_for(lambda: held(world, operator) == of_oak, "what was on elm is free", 30)
    wait_for(lambda: all(item["spec"]["node"] != "elm" for item in kube.call("GET", f"{CALICO}/blockaffinities")["items"]),
             "elm has no block", 30)
    expect(of_elm.isdisjoint(of_oak), "two nodes, no address of both")
    controller.end()


def play(world, kube):
    cluster = Cluster(world, kube)
    operator = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    controller_store = f"kube:{write_kubeconfig(world, kube, 'croft-controller')}"
    world.pool(operator, "p", "10.79.0.0/24", "--gateway", "none")
    for name in ("oak", "elm"):
        cluster.node(name)
    controller, of_oak, of_elm = by_pods(world, cluster, operator, controller_store)
    unknown_and_damaged(cluster, kube, operator, controller)
    by_nodes(world, cluster, kube, operator, controller, of_oak, of_elm)
    stalled_watches(world, cluster, kube, operator, controller_store, of_oak)
