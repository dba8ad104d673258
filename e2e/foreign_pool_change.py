"""Pools that another program changes or deletes over blocks that are in use, large blocks of Calico's, and blocks that say
they are deleted, in a real etcd: no address gets a second holder. Each decision is foreign_lengths_test.cc's.

usage: foreign_pool_change.py BIN_DIR
"""

import ipaddress
import json
import sys
import time

from etcd_lib import Etcd
from lib import World, call_ipam, expect, expect_equal, main, run, say

POOL = "/calico/resources/v3/projectcalico.org/ippools/a"
BLOCKS = "/calico/ipam/v2/assignment/"


class Rig:
    """A store with a pool a, 10.79.0.0/24, and eight containers with addresses of one block."""

    def __init__(self, world, store):
        self.world, self.store = world, store
        self.cli("pool", "create", "a", "--cidr", "10.79.0.0/24", "--cooldown-seconds", "0", "--block-size", "26")
        self.held = {self.add(f"c{i}"): f"c{i}" for i in range(8)}
        expect_equal(len(self.held), 8, "eight addresses")

    def cli(self, *arguments, codes=(0,)):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect(done.returncode in codes, f"croft {' '.join(arguments)}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def call(self, command, container, node="node-a", args=""):
        return call_ipam(self.world, command, container, self.store, node, args)

    def add(self, container, node="node-a", args=""):
        """The address, or the error."""
        code, answer = self.call("ADD", container, node, args)
        return answer["ips"][0]["address"].split("/")[0] if code == 0 else answer

    def fill(self, name, most=300, nodes=("node-b", "node-a")):
        """Addresses until there are none for any of the nodes; each is given once."""
        for node in nodes:
            for i in range(most):
                address = self.add(f"{name}-{node}-{i}", node)
                if isinstance(address, dict):
                    break
                expect(address not in self.held, f"{address} of {self.held.get(address)} is given to {name}-{node}-{i}")
                self.held[address] = f"{name}-{node}-{i}"
        return address


def change_of_length(rig, etcd, length):
    """As `calicoctl delete ippool` and `create` with another blockSize leave it; then Calico claims a block of the new
    length over one of the old: no other node takes from either."""
    pool = json.loads(etcd.get(POOL)[POOL])
    pool["spec"]["blockSize"] = length
    etcd.put(POOL, json.dumps(pool))
    old = sorted(rig.held)[0]
    refused = rig.add("x", "node-b", f"IP={old}")
    expect(isinstance(refused, dict), f"an address that somebody holds: {refused}")
    rig.fill("d", most=30)
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_overlap" not in checked, f"no block overlaps another: {checked}")
    over = ipaddress.ip_network(f"{old}/{length}", strict=False)
    make_as_calico(etcd, str(over), node="node-c")
    rig.fill("e", most=30, nodes=("node-b",))
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_overlap" in checked, f"named by check: {checked}")


def make_as_calico(etcd, cidr, node="node-a", handles=()):
    """A block that Calico claims for a node, for its tunnel's address say, or with these holders."""
    size = ipaddress.ip_network(cidr).num_addresses
    name = cidr.replace("/", "-")
    held = len(handles)
    for handle in handles:
        etcd.put(f"/calico/ipam/v2/handle/{handle}", json.dumps({"block": {cidr: 1}, "deleted": False}))
    etcd.put(f"/calico/ipam/v2/host/{node}/ipv4/block/{name}", json.dumps({"state": "confirmed", "deleted": False}))
    etcd.put(f"{BLOCKS}ipv4/block/{name}", json.dumps(
        {"cidr": cidr, "affinity": f"host:{node}", "allocations": list(range(held)) + [None] * (size - held),
         "unallocated": list(range(held, size)),
         "attributes": [{"handle_id": handle, "secondary": {"node": node}} for handle in handles], "deleted": False, "sequenceNumber": time.time_ns(), "sequenceNumberForAllocation": {}}))


def large_blocks(rig, etcd):
    """A block larger than Croft makes any: taken whole, read where it can be read, and never called nobody's."""
    key = BLOCKS + "ipv4/block/10.233.96.0-19"
    make_as_calico(etcd, "10.233.96.0/19", "w5", [f"net.pod{i}" for i in range(3)])
    etcd.put(POOL[:-1] + "p", json.dumps(
        {"kind": "IPPool", "apiVersion": "projectcalico.org/v3", "metadata": {"name": "p"},
         "spec": {"cidr": "10.233.96.0/19", "blockSize": 21, "nodeSelector": "all()"}}))
    rig.cli("pool", "disable", "a")
    for node in ("n1", "w5"):
        refused = rig.add("x", node)
        expect(isinstance(refused, dict) and "10.233.96.0/19" in json.dumps(refused), f"inside of the large block: {refused}")
    expect_equal(rig.call("DEL", "pod1")[0], 0, "DEL of a pod of the large block")
    held = [i for i, one in enumerate(json.loads(etcd.get(key)[key])["allocations"]) if one is not None]
    expect_equal(held, [0, 2], "what is held there")
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_corrupt" not in checked and "stay taken" not in checked, f"it is read by check: {checked}")
    etcd.put(key, "garbage")
    expect(isinstance(rig.add("x", "n1"), dict), "inside of one that cannot be read")
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block 10.233.96.0/19" in checked and "its addresses stay taken" in checked, f"named by check: {checked}")


def host_bits(rig, etcd):
    """Pools as Calico before 3.19 let them be written: used, with a note, and left as they are."""
    rig.cli("pool", "disable", "a")
    etcd.put(POOL[:-1] + "four", json.dumps(
        {"kind": "IPPool", "apiVersion": "projectcalico.org/v3", "metadata": {"name": "four"},
         "spec": {"cidr": "10.5.0.1/24", "blockSize": 26, "nodeSelector": "all()"}}))
    before = etcd.get(POOL[:-1] + "four")
    address = rig.add("c")
    expect(isinstance(address, str) and address.startswith("10.5.0."), f"of the pool with host bits: {address}")
    checked = rig.cli("check").stdout
    expect("10.5.0.1/24" in checked and "10.5.0.0/24" in checked, f"a note of check: {checked}")
    expect_equal(etcd.get(POOL[:-1] + "four"), before, "the record stays as it was")


def pool_gone(rig, etcd):
    """A pool that is deleted under living pods: the very same is made again, another is not, nor ranges over its blocks."""
    etcd.ctl("del", POOL)
    done = rig.cli("node", "range", "config", "--cluster-cidr=10.79.0.0/22", "--node-cidr-mask-size=24", codes=(1, 5))
    expect("block 10.79.0." in done.stderr, f"the block is named: {done.stderr}")
    again = ("pool", "create", "a", "--cidr", "10.79.0.0/24", "--cooldown-seconds", "0")
    done = rig.cli(*again, "--block-size", "28", codes=(1, 5))
    expect("blockSize 26" in done.stderr, f"the length is named: {done.stderr}")
    rig.cli(*again, "--block-size", "26")
    rig.fill("again", most=60)


def deleted_block(rig, etcd):
    """A block with holders that says it is deleted is damaged: named, and nothing is given out of it."""
    [(key, value)] = etcd.get(BLOCKS).items()
    block = json.loads(value)
    block["deleted"] = True
    etcd.put(key, json.dumps(block))
    rig.fill("d", most=70)
    done = rig.cli("check", codes=(3,))
    expect("it is deleted, and 8 of its addresses are taken" in done.stdout, f"named by check: {done.stdout}{done.stderr}")
    done = rig.cli("ip", "list", codes=(0, 3))
    expect("it is deleted" in done.stderr, f"named by the list: {done.stderr}")
    etcd.put(key, value)
    expect_equal(rig.add("c3"), next(a for a, c in rig.held.items() if c == "c3"), "mended, it is as before")


def test():
    with World("foreign-pool-change", sys.argv[1]) as world:
        etcd = Etcd(world)
        for case, *more in ((change_of_length, 28), (change_of_length, 24), (large_blocks,), (host_bits,), (deleted_block,), (pool_gone,)):
            case(Rig(world, etcd.store), etcd, *more)
            etcd.ctl("del", "--prefix", "")
            say(f"{case.__name__} {more}: ok")


main(test)
