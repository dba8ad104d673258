"""Calico deletes a block in which nothing is held but addresses cool: whoever claims it anew lets them rest.

usage: etcd_cooling_block.py BIN_DIR
"""

import sys

from etcd import Node
from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, say

BLOCK = "/calico/ipam/v2/assignment/ipv4/block/{}"
CLAIM = "/calico/ipam/v2/host/{}/ipv4/block/{}"
BESIDE = "/croft/v1/beside/block/ipv4/{}"


def delete_as_calico(etcd, node, block):
    """What its release of a block does that is empty to it."""
    name = block.replace("/", "-")
    etcd.ctl("del", BLOCK.format(name))
    etcd.ctl("del", CLAIM.format(node, name))


def let_rest(node, count):
    """Addresses that were held a moment ago."""
    held = [node.add(f"c{i}")[0] for i in range(count)]
    for i in range(count):
        node.delete(f"c{i}")
    return held


def some_rest(world, etcd, name, cidr):
    """A block of 16 of which four addresses rest: the others are given out, but the first and the last."""
    world.croft(etcd.store, "pool", "create", name, "--cidr", cidr, "--block-size", "28", "--cooldown-seconds", "600",
                "--gateway", "none")
    node = Node(world, etcd.store, "oak")
    node.ipam["ipv4_pools"] = [name]
    resting = let_rest(node, 4)
    delete_as_calico(etcd, "oak", cidr)
    given = [node.add(f"d{i}")[0] for i in range(10)]
    expect(not set(given) & set(resting), f"{resting} rest, and {given} were given out")
    expect("cool" in str(node.refuse("more")), "why there is no address")
    beside = etcd.get(BESIDE.format(cidr))
    expect_equal(beside[BESIDE.format(cidr)].count('"ordinal"'), 4, "what is recorded beside the block")
    say(f"{name}: four of {cidr} rest on")


def all_rest(world, etcd):
    """Of a block in which everything rests nothing is given out, and the next one is claimed."""
    world.croft(etcd.store, "pool", "create", "b", "--cidr", "10.79.2.0/29", "--block-size", "30", "--cooldown-seconds",
                "600", "--gateway", "none")
    node = Node(world, etcd.store, "elm")
    node.ipam["ipv4_pools"] = ["b"]
    resting = let_rest(node, 3)
    block = next(k for k in etcd.get("/croft/v1/beside/block/") if "10.79.2." in k)[len(BESIDE.format("")):]
    delete_as_calico(etcd, "elm", block)
    given = [node.add(f"e{i}")[0] for i in range(3)]
    expect(not set(given) & set(resting), f"{resting} rest, and {given} were given out")
    node.refuse("e")
    say("all of a block rest on")


def test():
    with World("etcd-cooling-block", sys.argv[1]) as world:
        etcd = Etcd(world)
        some_rest(world, etcd, "a", "10.79.0.0/28")
        all_rest(world, etcd)


if __name__ == "__main__":
    main(test)
