"""Croft and Calico's own library on the same etcd, or on the same Kubernetes API: each reads what the other wrote, and both work at once.

usage: calico_peer.py BIN_DIR etcd|VERSION    a version is that of a kube-apiserver
"""

import contextlib
import json
import random
import sys
import types

from etcd_lib import CalicoPeer, Etcd, Node
from kube_apiserver_lib import KubeApiserver
from kube_store import install_definitions, write_kubeconfig
from lib import World, expect, expect_equal, main, say


def held_of(dump):
    """Address -> handle, as Calico's library reads the blocks."""
    held = {}
    for block in (row["value"] for row in dump["blocks"]):
        for ordinal, index in enumerate(block["allocations"]):
            if index is not None:
                held[(block["cidr"], ordinal)] = block["attributes"][index].get("handle_id")
    return held


def check(world, place, allowed=()):
    left = [one for one in world.croft(place.store, "check", check=False) if one["finding"] not in allowed]
    expect_equal(left, [], "croft check")


def reads_each_other(world, place, peer):
    oak = Node(world, place.store, "oak")
    addresses = [oak.add(f"c{i}")[0].split("/")[0] for i in range(20)]
    if isinstance(place, Etcd):
        dump = peer("dump")
        expect(not dump.get("undecoded"), f"Calico's library can't read: {dump.get('undecoded')}")
        expect_equal(sorted(h for h in held_of(dump).values()), sorted(f"net.c{i}" for i in range(20)), "handles it reads")
    for address in addresses[:3]:
        attributes = peer("attributes", address)
        expect("oak" in json.dumps(attributes), f"attributes of {address}: {attributes}")
    ips = peer("ips-by-handle", "net.c3")
    expect(addresses[3] in json.dumps(ips), f"addresses of the handle: {ips}")

    theirs = peer("auto-assign", "--host", "elm", "--handle", "k8s.x1", "--num4", "5", "--attr", "node=elm")
    rows = world.held(place.store)
    mine = [a for a, row in rows.items() if row["handle"] == "k8s.x1"]
    expect_equal(len(mine), 5, f"Croft reads Calico's addresses: {rows.keys()} {theirs}")
    check(world, place)

    # Calico releases on Croft's block, and Croft goes on with what it left.
    peer("release-by-handle", "net.c3")
    expect(addresses[3] not in world.held(place.store), "released by Calico")
    oak.delete("c3")
    expect(oak.add("c3")[0].split("/")[0] in world.held(place.store), "assigned again")
    for i in range(20):
        oak.delete(f"c{i}")
    peer("release-by-handle", "k8s.x1")
    expect_equal(world.held(place.store), {}, "all given back")
    check(world, place)


def both_at_once(world, etcd, peer):
    """Both allocate and release for the same two nodes until the time is over; no address has two holders."""
    seconds = 12
    loop = peer.start("loop", "--seconds", str(seconds), "--host", "oak", "--host", "elm", "--workers", "2",
                      "--held-max", "30", "--seed", "7")
    nodes = [Node(world, etcd.store, name) for name in ("oak", "elm")]
    draw = random.Random(7)
    mine, number = {}, 0
    while loop.poll() is None:
        node = draw.choice(nodes)
        if mine and (len(mine) > 25 or draw.random() < 0.4):
            container = draw.choice(sorted(mine))
            mine.pop(container)
            node.delete(container)
        else:
            number += 1
            batch = [f"m{number}-{k}" for k in range(3)]
            processes = [node.start("ADD", c) for c in batch]
            for container, process in zip(batch, processes):
                code, answer, err = node.finish(process)
                expect_equal((code, err), (0, ""), f"ADD {container}: {answer}")
                mine[container] = answer["ips"][0]["address"].split("/")[0]
            expect_equal(len(set(mine.values())), len(mine), "Croft's own addresses")
    out, err = loop.communicate(timeout=60)
    answer = json.loads(out)
    expect_equal(loop.returncode, 0, f"calico-peer loop: {out}{err}")
    expect(not answer.get("violations"), f"Calico's side saw: {answer.get('violations')}")
    rows = world.held(etcd.store)
    for container, address in mine.items():
        expect(address in rows and rows[address]["containerId"] == container, f"{address} of {container}: {rows.get(address)}")
    expect(number > 5, "Croft did something")
    say(f"both at once for {seconds} s: Croft made {3 * number} assignments, Calico {answer['assigns']}")
    # Without transactions an ADD that lost a block to another has counted there: nothing has to be done.
    check(world, etcd, () if isinstance(etcd, Etcd) else ("handle_miscount",))


@contextlib.contextmanager
def place_of(world, kind):
    if kind == "etcd":
        etcd = Etcd(world)
        peer = CalicoPeer(world, etcd)
        for node in ("oak", "elm"):
            peer("node-create", node)
        yield etcd, peer
        return
    with KubeApiserver(world, kind) as kube:
        install_definitions(world, kube)
        config = write_kubeconfig(world, kube)
        for name in ("oak", "elm"):
            kube.make_node(name)
        place = types.SimpleNamespace(store=f"kube:{config}", url=f"kubeconfig:{config}")
        yield place, CalicoPeer(world, place)


def test():
    with World("calico", sys.argv[1]) as world, place_of(world, sys.argv[2]) as (place, peer):
        peer("pool-create", "--name", "p", "--cidr", "10.79.0.0/22", "--block-size", "28")
        reads_each_other(world, place, peer)
        say("each reads, and releases, what the other wrote")
        both_at_once(world, place, peer)


main(test, 3500)
