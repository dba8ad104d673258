"""Ranges of nodes on a real kube-apiserver: spec.podCIDRs as Kubernetes' own controller gives them, both families; what is
there already, what a controller that was killed left, another program that gives ranges too, and what nodes say that cannot be
taken down or says another too.

usage: kube_node_ranges.py BIN_DIR VERSION
"""

import functools
import json
import subprocess
import sys
import time

import kube_collect
from kube_apiserver_lib import KubeApiserver, Refused
from kube_store import calico_definitions, install_definitions, make_accounts, write_kubeconfig
from lib import World, expect, expect_equal, main, own_environment, run, say, wait_for


class Controller(kube_collect.Controller):
    def __init__(self, world, store, name):
        super().__init__(world, store, name, "--allocate-node-cidrs", "--cluster-cidr", "10.244.0.0/21,fd00:244::/48", "--leader-elect=false")


def make_node(kube, name, **spec):
    kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec})


def said(kube, name):
    spec = kube.call("GET", f"/api/v1/nodes/{name}")["spec"]
    expect_equal(spec.get("podCIDR"), spec.get("podCIDRs", [None])[0], "podCIDR is the first")
    return spec.get("podCIDRs")


def a_pool_in_the_way(world, kube, store):
    """Node ranges are refused: the controller says so and collects all the same, and gives ranges once the pool is gone."""
    croft = [world.bin / "croft", "--store", f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"]
    run(*croft, "pool", "create", "in-the-way", "--cidr", "10.244.0.0/16")
    controller = Controller(world, store, "refused")
    trouble = "cluster CIDR 10.244.0.0/21 overlaps pool in-the-way (10.244.0.0/16)"
    # Each pass has both lines.
    wait_for(lambda: controller.log().count(trouble) > 2 and controller.log().count(" addresses") > 2, "it says it and collects", 20)
    expect("node-ranges.md" in controller.log(), controller.log())
    expect_equal(controller.process.poll(), None, "it works on")
    expect_equal(said(kube, "oak"), None, "no range meanwhile")
    run(*croft, "pool", "delete", "in-the-way")
    wait_for(lambda: said(kube, "oak"), "oak says its ranges", 20)
    controller.end()


def what_nodes_say(world, kube, store):
    """Ranges that cannot be taken down, and one that two nodes say: nobody else gets them, and they are told."""
    croft = functools.partial(run, world.bin / "croft", "--store",
                              f"kube:{write_kubeconfig(world, kube, 'croft-operator')}", check=False)
    for node in kube.call("GET", "/api/v1/nodes")["items"]:
        kube.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
    for node in {one["node"] for one in json.loads(croft("node", "range", "list", "-o", "json").stdout)}:
        expect_equal(croft("node", "range", "release", node).returncode, 0, f"release {node}")

    # Of the eight /24 none by whom says all there is, four in another mask size, one that two nodes say, one with host bits where the API admits it.
    said_before = {"all": "0.0.0.0/0", "wide": "10.244.0.0/22", "twin-a": "10.244.4.0/24", "twin-b": "10.244.4.128/25", "bits": "10.244.5.7/24"}
    for name, cidr in list(said_before.items()):
        try:
            make_node(kube, name, podCIDR=cidr, podCIDRs=[cidr])
        except Refused as refused:
            expect(name == "bits" and refused.code == 422, f"{name}: {refused}")
            say(f"this kube-apiserver admits no {cidr}")
            del said_before[name]
    free = [f"10.244.{i}.0/24" for i in range(5 + ("bits" in said_before), 8)]
    names = [f"s{i}" for i in range(len(free) + 1)]
    for name in names:
        make_node(kube, name)
    controller = Controller(world, store, "fourth")
    wait_for(lambda: sum(bool(said(kube, name)) for name in names) == len(free), "all but one say their ranges", 20)
    wait_for(lambda: "CIDRNotAvailable" in controller.log(), "it says that they are used up", 20)
    given = sorted(said(kube, name)[0] for name in names if said(kube, name))
    expect_equal(given, free, "what new nodes got")
    expect("that nodes' objects say without a record" in controller.log(), controller.log())
    expect("node all: cidr 0.0.0.0/0 can't be one node's" in controller.log(), controller.log())
    told = "the object of node twin-a says 10.244.4.0/24, and the object of node twin-b 10.244.4.128/25"
    expect(told in controller.log(), controller.log())
    for name, cidr in said_before.items():
        expect_equal(said(kube, name), [cidr], name)

    waiting, = (name for name in names if not said(kube, name))
    refused = croft("node", "range", "assign", waiting)
    expect(refused.returncode != 0 and "nodes' objects say" in refused.stderr, f"by hand: {refused}")
    shown = croft("node", "range", "show")
    expect("node/twin-b says 10.244.4.128/25, which is not recorded; nobody else gets it" in shown.stdout, shown.stdout)
    expect("node/twin-a stays IPv4 until the node is deleted and rejoins" in shown.stdout, shown.stdout)
    expect(f"node range assign {waiting}`" in shown.stdout and "node range assign twin-a" not in shown.stdout, shown.stdout)
    recorded = {one["cidr"]: one["node"] for one in json.loads(croft("node", "range", "list", "-o", "json").stdout)}
    expect_equal(recorded.get("10.244.0.0/22"), "wide", "a range of another length is recorded")
    checked = croft("check", "-o", "json")
    found = [one for one in json.loads(checked.stdout) if one["finding"].startswith("node_range_")]
    expect(checked.returncode == 3 and [one["finding"] for one in found] == ["node_range_twice", "node_range_too_wide"], checked.stdout)
    expect("twin-a" in found[0]["subject"] and "twin-b" in found[0]["subject"], found)
    say(f"{found[0]['subject']}: {found[0]['remedy']}")

    # The remedy: its kubelet makes the node anew.
    kube.call("DELETE", "/api/v1/nodes/twin-b")
    kube.call("DELETE", "/api/v1/nodes/all")
    kube.call("DELETE", f"/api/v1/nodes/{waiting}")
    wait_for(lambda: "node_range_" not in croft("check", "-o", "json").stdout, "it is mended", 20)
    controller.end()


def several_at_once(world, kube):
    """Whoever gives a node a range at the same time as others: the node has one of a family, and all say the same."""
    store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    command = [world.bin / "croft", "--store", store, "node", "range"]
    for node in kube.call("GET", "/api/v1/nodes")["items"]:
        kube.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
    for node in {one["node"] for one in json.loads(run(*command, "list", "-o", "json").stdout)}:
        run(*command, "release", node, "--force")
    names = [f"at-once-{number}" for number in range(6)]
    for name in names:
        make_node(kube, name)
        running = [subprocess.Popen([*command, "assign", name, "-o", "json"], env=own_environment(world.directory), stdout=subprocess.PIPE,
                                    text=True) for _ in range(3)]
        told = [process.communicate(timeout=60)[0] for process in running]
        expect_equal([process.returncode for process in running], [0, 0, 0], f"exit codes for {name}")
        cidrs = [json.loads(text)[0]["cidrs"] for text in told]
        expect(len(cidrs[0]) == 2 and all(one == cidrs[0] for one in cidrs), f"all say the same of {name}: {told}")
    recorded = [one["node"] for one in json.loads(run(*command, "list", "-o", "json").stdout)]
    expect_equal(sorted(recorded), sorted(names * 2), "one range of a family each")


def grows_while_it_moves(world, kube):
    """docs/runbooks/migrate.md, From host-local: a node that joins meanwhile is no danger, and a block that is another node's podCIDR is told."""
    croft = functools.partial(run, world.bin / "croft", "--store", f"kube:{write_kubeconfig(world, kube, 'croft-operator')}", check=False)
    plugins = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
    for node in kube.call("GET", "/api/v1/nodes")["items"]:
        kube.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")

    def add(node, container):
        netconf = {"cniVersion": "1.0.0", "name": "cbr0", "ipam": {"type": "croft-ipam", "store": plugins, "nodename": node, "agent": "none"}}
        return run(world.bin / "croft-ipam", check=False, stdin=json.dumps(netconf),
                   env={**own_environment(world.directory), "CNI_COMMAND": "ADD", "CNI_CONTAINERID": container, "CNI_NETNS": "/x",
                        "CNI_IFNAME": "eth0", "CNI_PATH": "/x"})

    def found():
        done = croft("check", "-o", "json")
        return done.returncode, [one for one in json.loads(done.stdout) if one["finding"] == "pod_range_overlap"]

    cidr = lambda number: f"10.79.{number}.0/24"
    for number in range(1, 4):
        make_node(kube, f"node-{number}", podCIDR=cidr(number), podCIDRs=[cidr(number)])
    expect_equal(croft("pool", "create", "a", "--cidr", "10.79.0.0/16", "--block-size", "24").returncode, 0, "the pool")
    expect_equal(croft("config", "set", "--strict-affinity", "true", "--auto-allocate-blocks", "false").returncode, 0, "as the page has it")
    for number in (1, 2):
        done = croft("affinity", "claim", cidr(number), "--node", f"node-{number}")
        expect_equal((done.returncode, done.stderr), (0, ""), f"its own podCIDR: {done}")
    expect('"10.79.1.' in add("node-1", "c1").stdout, "of its own block")
    # One that joins and has no claim yet takes no block by itself.
    make_node(kube, "joined", podCIDR=cidr(9), podCIDRs=[cidr(9)])
    done = add("joined", "c2")
    expect(done.returncode != 0 and "autoAllocateBlocks" in done.stdout, f"it says why: {done.stdout}")
    expect_equal(found(), (0, []), "nothing is wrong yet")
    # As a node does where it may: a block that is the podCIDR of another.
    done = croft("affinity", "claim", cidr(3), "--node", "joined")
    expect(done.returncode == 0 and cidr(3) in done.stderr and '"node-3"' in done.stderr, f"it is told: {done}")
    code, told = found()
    expect_equal((code, [one["subject"] for one in told]), (3, [f'block {cidr(3)} of node "joined"']), "a finding")
    for word in ('"node-3"', f"affinity release --node joined --cidr {cidr(3)}", f"affinity claim {cidr(3)} --node node-3"):
        expect(word in told[0]["evidence"] + told[0]["remedy"], f"{word}: {told}")
    directory = world.directory / "cbr0"
    directory.mkdir()
    (directory / "lock").touch()
    done = croft("host-local", "import", "--dir", directory, "--pool", "a", "--pod-cidr", cidr(9), "--node", "node-3", "--dry-run")
    expect('"joined"' in done.stderr, f"the import says it too: {done}")
    # The remedy.
    expect_equal(croft("affinity", "release", "--node", "joined", "--cidr", cidr(3)).returncode, 0, "released")
    for name, number in (("node-3", 3), ("joined", 9)):
        expect_equal(croft("affinity", "claim", cidr(number), "--node", name).stderr, "", f"{name} has its own")
    expect_equal(found(), (0, []), "mended")
    expect('"10.79.9.' in add("joined", "c3").stdout, "of its own block")
    # Without strict affinity podCIDRs are nobody's, as kubeadm gives them beside pools.
    croft("affinity", "release", "--node", "joined", "--cidr", cidr(9), "--force")
    croft("config", "set", "--auto-allocate-blocks", "true", "--strict-affinity", "false")
    croft("affinity", "claim", cidr(9), "--node", "node-1")
    expect_equal(found()[1], [], "without strict affinity")
    say(f"{told[0]['subject']}: {told[0]['evidence']}")


def test():
    calico_definitions()
    with World("kube-node-ranges", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        store = f"kube:{write_kubeconfig(world, kube, 'croft-controller')}"
        make_node(kube, "there", podCIDR="10.244.0.0/24", podCIDRs=["10.244.0.0/24"])
        make_node(kube, "oak")
        a_pool_in_the_way(world, kube, store)
        first = Controller(world, store, "first")
        wait_for(lambda: said(kube, "oak"), "oak says its ranges", 20)
        expect_equal(said(kube, "oak"), ["10.244.1.0/24", "fd00:244::/64"], "oak, beside what is there")
        expect_equal(said(kube, "there"), ["10.244.0.0/24"], "what was there")
        say(f"oak {said(kube, 'oak')}, there {said(kube, 'there')}")

        # A burst of nodes, and a controller that dies in the middle of it.
        names = [f"n{i}" for i in range(5)]
        for name in names:
            make_node(kube, name)
        first.process.kill()
        first.process.wait()
        second = Controller(world, store, "second")
        wait_for(lambda: all(said(kube, name) for name in names), "all say their ranges", 20)
        given = [said(kube, name)[0] for name in names]
        expect_equal(len(set(given)), len(names), f"ranges of {names}: {given}")

        # Eight ranges of IPv4, one of them free; the ninth node waits until another goes.
        for name in ("eighth", "ninth"):
            make_node(kube, name)
        wait_for(lambda: "CIDRNotAvailable" in second.log(), "it says that they are used up", 20)
        waiting = [name for name in ("eighth", "ninth") if not said(kube, name)]
        expect_equal(len(waiting), 1, "who waits")

        def told():
            events = kube.call("GET", "/api/v1/namespaces/default/events")["items"]
            return [event["message"] for event in events if event["reason"] == "CIDRNotAvailable" and
                    event["involvedObject"]["name"] == waiting[0] and event["type"] == "Normal"]
        wait_for(lambda: told() == [f"Node {waiting[0]} status is now: CIDRNotAvailable"], "its node says so", 10)
        kube.call("DELETE", "/api/v1/nodes/oak")
        wait_for(lambda: said(kube, waiting[0]), "who waited has one", 30)
        expect_equal(said(kube, waiting[0])[0], "10.244.1.0/24", "that of the node that went")
        second.end()

        # Another program gives a range to a node that waits for one.
        third = Controller(world, store, "third")
        make_node(kube, "tenth")
        wait_for(lambda: third.log().count("CIDRNotAvailable") > 1, "the tenth waits", 20)
        kube._send("PATCH", "/api/v1/nodes/tenth?fieldManager=kube-controller-manager",
                   b'{"spec":{"podCIDR":"10.244.99.0/24","podCIDRs":["10.244.99.0/24"]}}',
                   media="application/strategic-merge-patch+json")
        wait_for(lambda: "by another program" in third.log(), "it notices the other", 20)
        expect("kube-controller-manager" in third.log() and "--allocate-node-cidrs=false" in third.log(), third.log())
        kube.call("DELETE", "/api/v1/nodes/n0")
        make_node(kube, "eleventh")
        time.sleep(3)
        expect_equal(said(kube, "eleventh"), None, "nothing is given beside another")
        third.end()

        what_nodes_say(world, kube, store)
        grows_while_it_moves(world, kube)
        several_at_once(world, kube)


if __name__ == "__main__":
    main(test, 3500)
