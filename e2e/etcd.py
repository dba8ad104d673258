"""croft-ipam on a real etcd: what is stored, and a pool as an older Calico left it. Storms, and members that fail: etcd_cluster.py."""

import json
import os

from etcd_lib import Etcd
from lib import begin, call_environment, expect, expect_equal, finish, main, run, say

class Node:
    """Calls of croft-ipam as a node makes them; `args` may give the CNI_ARGS of a container."""

    def __init__(self, world, store, name, args=None):
        self.world, self.name, self.args = world, name, args
        self.env = {}  # of its own, in place of what every call has
        self.network = "net"
        self.more = {}  # of the network configuration
        self.ipam = {"type": "croft-ipam", "store": store, "nodename": name,
                     "log_file_path": str(world.directory / "ipam.log")}

    def start(self, command, container, **ipam):
        config = json.dumps({"cniVersion": "1.0.0", "name": self.network, **self.more, "ipam": {**self.ipam, **ipam}})
        env = call_environment(self.world, command, container, self.args(container) if self.args else "",
                               **{"PATH": os.environ["PATH"], **self.env})
        return begin(self.world.bin / "croft-ipam", config, env)

    finish = staticmethod(finish)

    def add(self, container, **ipam):
        code, answer, err = self.finish(self.start("ADD", container, **ipam))
        expect_equal((code, err), (0, ""), f"ADD {container} on {self.name}: {answer}")
        return [ip["address"] for ip in answer["ips"]]

    def refuse(self, container, **ipam):
        code, answer, _ = self.finish(self.start("ADD", container, **ipam))
        expect(code != 0, f"ADD {container} on {self.name} was to fail: {answer}")
        return answer

    def delete(self, container):
        code, answer, err = self.finish(self.start("DEL", container))
        expect_equal((code, err), (0, ""), f"DEL {container} on {self.name}: {answer}")


def what_is_stored(etcd, world):
    """Calico's keys hold Calico's records, Croft's its own."""
    oak = Node(world, etcd.store, "oak")
    expect_equal(oak.add("c1"), oak.add("c1"), "asked again, the same")
    blocks = etcd.get("/calico/ipam/v2/assignment/")
    expect_equal(len(blocks), 1, "blocks")
    (key, value), = blocks.items()
    block = json.loads(value)
    expect_equal(key, "/calico/ipam/v2/assignment/ipv4/block/" + block["cidr"].replace("/", "-"), "key of the block")
    expect_equal(block["affinity"], "host:oak", "affinity")
    attribute, = block["attributes"]
    taken = block["allocations"].index(0)
    expect_equal(attribute["handle_id"], "net.c1", "handle")
    expect_equal(attribute["secondary"]["node"], "oak", "node")
    affinity = etcd.get("/calico/ipam/v2/host/oak/")
    expect_equal([json.loads(v) for v in affinity.values()], [{"state": "confirmed", "deleted": False}], "affinity")
    handle = etcd.get("/calico/ipam/v2/handle/")
    expect_equal({k: json.loads(v) for k, v in handle.items()},
                 {"/calico/ipam/v2/handle/net.c1": {"block": {block["cidr"]: 1}, "deleted": False}}, "handle")
    pool = json.loads(etcd.get("/calico/resources/v3/projectcalico.org/ippools/")[
        "/calico/resources/v3/projectcalico.org/ippools/a"])
    expect_equal((pool["kind"], pool["spec"]["cidr"], pool["spec"]["blockSize"]), ("IPPool", "10.77.0.0/24", 28), "pool")

    oak.delete("c1")
    block = json.loads(etcd.get(key)[key])
    expect_equal(block["allocations"], [None] * 16, "an older Calico sees a cooling address as free")
    expect_equal(len(set(block["unallocated"])), 16, "all free")
    expect_equal(block["unallocated"][-1], taken, "and takes it last")
    expect_equal(etcd.get("/calico/ipam/v2/handle/"), {}, "no handle is left")
    rows = world.croft(etcd.store, "ip", "list")
    expect_equal(len([r for r in rows if r["state"] == "cooling"]), 1, "cooling addresses")


def first_of_a_node(etcd, world):
    """docs/promises.md#budget-round-trips; of later ADDs and DELs: costs.txt."""
    elm = Node(world, etcd.store, "elm")
    made = etcd.requests_of(lambda: elm.add("first"))
    expect(sum(made.values()) <= 5, f"a node's first ADD makes {made}")
    elm.delete("first")


def host_bits(etcd, world):
    """A pool as Calico before 3.19 let it be written: used, with a note, and left as it is."""
    key = "/calico/resources/v3/projectcalico.org/ippools/older"
    etcd.ctl("del", "--prefix", "")
    etcd.put(key, json.dumps({"kind": "IPPool", "apiVersion": "projectcalico.org/v3", "metadata": {"name": "older"},
                              "spec": {"cidr": "10.5.0.1/24", "blockSize": 26, "nodeSelector": "all()"}}))
    before = etcd.get(key)
    (address,) = Node(world, etcd.store, "oak").add("older")
    expect(address.startswith("10.5.0."), f"of the pool with host bits: {address}")
    checked = run(world.bin / "croft", "--store", etcd.store, "check").stdout
    expect("10.5.0.1/24" in checked and "10.5.0.0/24" in checked, f"a note of check: {checked}")
    expect_equal(etcd.get(key), before, "the record stays as it was")


def test(world):
    etcd = Etcd(world)
    world.croft(etcd.store, "pool", "create", "a", "--cidr", "10.77.0.0/24", "--block-size", "28")
    what_is_stored(etcd, world)
    say("stored in Calico's keys and records")
    first_of_a_node(etcd, world)
    host_bits(etcd, world)


if __name__ == "__main__":
    main(test)
