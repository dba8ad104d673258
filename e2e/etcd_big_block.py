"""Blocks whose records come near the 1.5 MiB that etcd takes at once: an ADD goes to another block, a DEL always fits.

usage: etcd_big_block.py BIN_DIR
"""

import json
import os
import sys

from etcd import Node, together
from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, run, say

BLOCK = "/calico/ipam/v2/assignment/ipv4/block/"
BESIDE = "/croft/v1/beside/block/ipv4/"
REQUEST_MAX = 1536 * 1024
NAMESPACE = "n" * 253


def pod_of(container):
    """Names as long as Kubernetes allows them."""
    return f"K8S_POD_NAMESPACE={NAMESPACE};K8S_POD_NAME={container:p<253};K8S_POD_UID={container:0<36}"


def put(etcd, key, value):
    run("etcdctl", "--endpoints", etcd.url, "put", key, stdin=value, env={**os.environ, "ETCDCTL_API": "3"})


def fill_as_calico(etcd, cidr, bytes_max):
    """Takes addresses of a block for other pods, as many as its record can have in so many bytes; how many are free
    then."""
    key = BLOCK + cidr.replace("/", "-")
    block = json.loads(etcd.get(key)[key])

    def record():
        return json.dumps(block, separators=(",", ":"))

    size = len(record())
    while block["unallocated"]:
        number = len(block["attributes"])
        attribute = {"handle_id": f"k8s-pod-network.{number:064}",
                     "secondary": {"namespace": NAMESPACE, "node": "oak", "pod": f"{number:0>253}",
                                   "timestamp": "2026-01-15 10:00:00.123456789 +0000 UTC", "type": "t" * 253}}
        if size > bytes_max - 40000:
            size = len(record())  # only near the end it is worth the time
        if size > bytes_max - 1100:
            break
        size += 1000
        ordinal = block["unallocated"].pop()
        block["attributes"].append(attribute)
        block["allocations"][ordinal] = number
        block["sequenceNumberForAllocation"][str(ordinal)] = block["sequenceNumber"]
    put(etcd, key, record())
    return len(block["unallocated"])


def stored(etcd, cidr):
    """The bytes of a block and of what is beside it."""
    keys = {**etcd.get(BLOCK + cidr.replace("/", "-")), **etcd.get(BESIDE + cidr)}
    return sum(len(value.encode()) for value in keys.values())


def block_of(etcd, address):
    """The block of 2048 that has an address."""
    a, b, c, _ = (int(part) for part in address.split("/")[0].split("."))
    return f"{a}.{b}.{c & ~7}.0/21"


def another_block(world, etcd):
    """With a second block: the ADD goes there, and what is held in the first one can be given back."""
    world.croft(etcd.store, "pool", "create", "a", "--cidr", "10.80.0.0/20", "--block-size", "21", "--cooldown-seconds",
                "600", "--gateway", "none")
    oak = Node(world, etcd.store, "oak", pod_of)
    oak.ipam["ipv4_pools"] = ["a"]
    containers = [f"{i:064}" for i in range(24)]
    first = block_of(etcd, oak.add(containers[0])[0])
    together(oak, "ADD", containers[1:])
    free = fill_as_calico(etcd, first, REQUEST_MAX - 200)
    expect(free > 100 and stored(etcd, first) > REQUEST_MAX - 10000, f"{free} free, {stored(etcd, first)} bytes")

    more = [f"m{i}" for i in range(4)]
    for container in more:
        expect(block_of(etcd, oak.add(container)[0]) != first, f"{container} is in the full block")
    say("an ADD passes over a block that is too large")
    for container in containers + more:
        oak.delete(container)
        expect(stored(etcd, first) < REQUEST_MAX, "more bytes than etcd takes")
    rows = world.croft(etcd.store, "ip", "list")
    expect(not [r for r in rows if r["handle"] and r["handle"].startswith("net.") and r["state"] == "held"], "held still")
    beside = json.loads(etcd.get(BESIDE + first)[BESIDE + first])
    expect_equal(len(beside["cooling"]), len(containers), "addresses that cool")
    world.croft(etcd.store, "ip", "release", "--force", *[r["address"] for r in rows if r["state"] == "held"][:5])
    say("whatever is held in it can be released")


def test():
    with World("etcd-big-block", sys.argv[1]) as world:
        etcd = Etcd(world)
        another_block(world, etcd)


if __name__ == "__main__":
    main(test)
