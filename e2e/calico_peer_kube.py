"""Croft and Calico's own library on the same Kubernetes API: each reads what the other wrote, and both work at once.

usage: calico_peer_kube.py BIN_DIR VERSION
"""

import sys
import types

from calico_peer import both_at_once, check
from etcd import Node
from etcd_lib import CalicoPeer
from kube_apiserver_lib import KubeApiserver
from kube_store import CALICO, install_definitions, write_kubeconfig
from lib import World, expect, expect_equal, main, say


def reads_each_other(world, place, peer, kube):
    oak = Node(world, place.store, "oak")
    addresses = [oak.add(f"c{i}")[0].split("/")[0] for i in range(12)]
    attributes = peer("attributes", addresses[0])
    expect("oak" in str(attributes), f"attributes of {addresses[0]}: {attributes}")
    ips = peer("ips-by-handle", "net.c3")
    expect(addresses[3] in str(ips), f"addresses of the handle: {ips}")

    theirs = peer("auto-assign", "--host", "elm", "--handle", "k8s.x1", "--num4", "5", "--attr", "node=elm")
    rows = world.held(place.store)
    mine = [a for a, row in rows.items() if row["handle"] == "k8s.x1"]
    expect_equal(len(mine), 5, f"Croft reads Calico's addresses: {sorted(rows)} {theirs}")
    check(world, place)

    # Calico releases on Croft's block, and Croft goes on with what it left.
    peer("release-by-handle", "net.c3")
    expect(addresses[3] not in world.held(place.store), "released by Calico")
    oak.delete("c3")
    again = oak.add("c3")[0].split("/")[0]
    expect(again in world.held(place.store), "assigned again")
    for i in range(12):
        oak.delete(f"c{i}")
    peer("release-by-handle", "k8s.x1")
    expect_equal(world.held(place.store), {}, "all given back")
    expect_equal(kube.call("GET", f"{CALICO}/ipamhandles")["items"], [], "handles")
    check(world, place)


def test():
    with World("calico-kube", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        install_definitions(world, kube)
        config = write_kubeconfig(world, kube)
        place = types.SimpleNamespace(store=f"kube:{config}", url=f"kubeconfig:{config}")
        peer = CalicoPeer(world, place)
        for name in ("oak", "elm"):
            kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        peer("pool-create", "--name", "p", "--cidr", "10.79.0.0/22", "--block-size", "28")
        reads_each_other(world, place, peer, kube)
        say("each reads, and releases, what the other wrote")
        both_at_once(world, place, peer)


if __name__ == "__main__":
    main(test, 3500)
