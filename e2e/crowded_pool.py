"""A pool whose places are 99 % blocks of other nodes, with half of the pool reserved: a new node's ADD finds the one place that
is free and not reserved, in few requests. When that one is taken too, a block that is empty goes over to it.

usage: crowded_pool.py BIN_DIR, kube_cases.py BIN_DIR VERSION crowded_pool
"""

import ipaddress

from etcd_lib import Etcd, Node
from kube_agent import cost
from kube_store import write_kubeconfig
from lib import expect, expect_equal, main, own_environment, run, say, start_agent, wait_for_agents_memory

POOL = ipaddress.ip_network("10.98.0.0/16")
RESERVED, OPEN = POOL.subnets(1)
BLOCK = 26
PLACES = list(POOL.subnets(new_prefix=BLOCK))
FREE = PLACES[853]
BESIDE = [PLACES[i] for i in (0, 1, 2, 99, 100, 255, 256, 400, 511)]  # free, and reserved
# At most, of a lone plugin: that finds the place, and that takes an empty block over; and of an agent, twice those in an
# empty pool (docs/promises.md#budget-claim). On Kubernetes a lone plugin asks for 16 places, then for the names of blocks by pages
# of 500, and for the 16 once more before the claim; etcd gives pages of keys.
REQUESTS = {"etcd": (8, 18, 6), "kube": (60, 85, 16)}


def crowd(world, kind, store, of_nodes, requests_of):
    """`store` as an operator, `of_nodes` as nodes know it; `requests_of`: those that a call makes."""
    croft = [world.bin / "croft", "--store", store]
    run(*croft, "pool", "create", "p", "--cidr", POOL, "--block-size", BLOCK, "--gateway", "none", "--cooldown-seconds", "0")
    for part in ipaddress.collapse_addresses(place for place in PLACES if place not in (FREE, *BESIDE)):
        run(*croft, "affinity", "claim", part, "--node", "old", "--force", timeout=120)
    run(*croft, "reservation", "create", "half", "--cidr", RESERVED)
    expect_equal(len(world.croft(store, "block", "list")), len(PLACES) - len(BESIDE) - 1, "blocks")

    def adds(node, container, into, what, most, **ipam):
        told = []
        made = requests_of(lambda: told.extend(Node(world, of_nodes, node).add(container, **ipam)))
        address = ipaddress.ip_interface(told[0]).ip
        expect(address in into, f"{what}: {address} is not in {into}")
        say(f"{kind}: {what}: {address}: {sum(made.values())} requests: {made}")
        expect(sum(made.values()) <= most, f"{what}: {made}")

    finding, taking_over, by_agent = REQUESTS["etcd" if kind == "etcd" else "kube"]
    adds("new", "c1", FREE, "the only free place", finding)
    adds("newer", "c2", OPEN, "no place is left", taking_over)
    expect_equal(len(world.croft(store, "block", "list")), len(PLACES) - len(BESIDE), "no reserved place became a block")
    Node(world, of_nodes, "new").delete("c1")
    run(*croft, "affinity", "release", "--node", "new")
    socket = world.directory / "agent.sock"
    start_agent(world, of_nodes, "with-agent", socket, env=own_environment(world.directory))
    wait_for_agents_memory(world, socket)
    adds("with-agent", "c1", FREE, "the only free place, by an agent", by_agent, agent=str(socket))
    run(*croft, "check")


def play(world, kube):
    for name in ("old", "new", "newer", "with-agent"):
        kube.make_node(name)
    crowd(world, "kube", f"kube:{write_kubeconfig(world, kube, 'croft-operator')}", f"kube:{write_kubeconfig(world, kube, 'croft-node')}",
          lambda call: cost(kube, call))


def test(world):
    etcd = Etcd(world)
    crowd(world, "etcd", etcd.store, etcd.store, etcd.requests_of)


if __name__ == "__main__":
    main(test, 280)
