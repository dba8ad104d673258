"""Pools that another program changes or deletes over blocks that are in use, reservations that are gone, and blocks that
say they are deleted: no address gets a second holder, neither a pod nor a node range nor a Service. Neither root nor
network.

usage: foreign_pool_change.py BIN_DIR
"""

import ipaddress
import json
import subprocess
import sys
import time

from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, own_environment, run, say, write_past_croft

POOL = "/calico/resources/v3/projectcalico.org/ippools/a"
RESERVATIONS = "/calico/resources/v3/projectcalico.org/ipreservations/"
BLOCKS = "/calico/ipam/v2/assignment/"


class Rig:
    """A store with a pool a, 10.79.0.0/24, and eight containers with addresses of one block."""

    def __init__(self, world, store, *more, cooldown=0):
        self.world, self.store = world, store
        self.cli("pool", "create", "a", "--cidr", "10.79.0.0/24", "--cooldown-seconds", str(cooldown), *more)
        self.held = {self.add(f"c{i}"): f"c{i}" for i in range(8)}
        expect_equal(len(self.held), 8, "eight addresses")

    def cli(self, *arguments, codes=(0,)):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect(done.returncode in codes, f"croft {' '.join(arguments)}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def call(self, command, container, node="node-a", args="", agent="none"):
        config = {"cniVersion": "1.1.0", "name": "net",
                  "ipam": {"type": "croft-ipam", "store": self.store, "nodename": node, "agent": agent,
                           "log_file_path": str(self.world.directory / "ipam.log")}}
        variables = {**own_environment(self.world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container,
                     "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": str(self.world.bin),
                     "CNI_ARGS": args}
        done = subprocess.run([self.world.bin / "croft-ipam"], input=json.dumps(config).encode(), env=variables,
                              capture_output=True, timeout=60, check=False)
        return done.returncode, json.loads(done.stdout) if done.stdout else None

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


def change_of_length(world, etcd, length):
    """As `calicoctl delete ippool` and `create` with another blockSize leave it."""
    rig = Rig(world, etcd.store, "--block-size", "26")
    pool = json.loads(etcd.get(POOL)[POOL])
    pool["spec"]["blockSize"] = length
    etcd.put(POOL, json.dumps(pool))
    wanted = sorted(rig.held)[2]
    refused = rig.add("x", "node-b", f"IP={wanted}")
    expect(isinstance(refused, dict), f"an address that somebody holds: {refused}")
    # Beside the old block, in a block of the new length that does not exist yet.
    beside = next(a for a in (f"10.79.0.{i}" for i in range(wanted_base(wanted) + 62, wanted_base(wanted), -1))
                  if a not in rig.held)
    refused = rig.add("x", "node-b", f"IP={beside}")
    expect(isinstance(refused, dict) and "shares addresses with block" in json.dumps(refused), f"explicit, of the old block: {refused}")
    rig.fill("d", most=60)
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_overlap" not in checked, f"no block overlaps another: {checked}")
    etcd.ctl("del", "--prefix", "")
    say(f"blockSize 26 made {length}: ok")


def what_cools(world, etcd):
    """What was released a moment ago rests, under whatever name the pool comes back."""
    rig = Rig(world, etcd.store, "--block-size", "26", cooldown=600)
    for container in rig.held.values():
        rig.call("DEL", container)
    pool = json.loads(etcd.get(POOL)[POOL])
    etcd.ctl("del", POOL)
    pool["metadata"]["name"] = "a2"
    etcd.put(POOL + "2", json.dumps(pool))
    rig.fill("d", most=40, nodes=("node-a",))
    etcd.ctl("del", "--prefix", "")
    say("what cools in a pool of another name: ok")


def new_block_over_old(world, etcd, length):
    """A block of the new length, which Calico claims for node-c, over one of the old length with holders: no other node
    takes from either."""
    rig = Rig(world, etcd.store, "--block-size", "27")
    pool = json.loads(etcd.get(POOL)[POOL])
    pool["spec"]["blockSize"] = length
    etcd.put(POOL, json.dumps(pool))
    over = ipaddress.ip_network(f"{min(rig.held, key=ipaddress.ip_address)}/{length}", strict=False)
    make_as_calico(etcd, str(over), node="node-c")
    rig.fill("d", most=40, nodes=("node-b",))
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_overlap" in checked, f"named by check: {checked}")
    etcd.ctl("del", "--prefix", "")
    say(f"a block of /{length} over holders in /27: ok")


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


def large_blocks(world, etcd):
    """Blocks larger than Croft makes any: taken whole, read where they can be read, and never called nobody's."""
    rig = Rig(world, etcd.store)
    etcd.put(BLOCKS + "ipv4/block/10.80.0.0-14", "{}")
    rig.fill("d", most=10, nodes=("node-a", "node-b"))
    done = rig.cli("pool", "create", "b", "--cidr", "10.80.0.0/24", codes=(1, 5))
    expect("10.80.0.0/14" in done.stderr, f"the block is named: {done.stderr}")
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block 10.80.0.0/14" in checked and "its addresses stay taken" in checked, f"named by check: {checked}")
    rig.cli("record", "remove", "block", "ipv4/10.80.0.0/14", "--force")
    rig.cli("check")

    key = BLOCKS + "ipv4/block/10.233.96.0-19"
    make_as_calico(etcd, "10.233.96.0/19", "w5", [f"net.pod{i}" for i in range(3)])
    etcd.put(POOL[:-1] + "p", json.dumps(
        {"kind": "IPPool", "apiVersion": "projectcalico.org/v3", "metadata": {"name": "p"},
         "spec": {"cidr": "10.233.96.0/19", "blockSize": 21, "nodeSelector": "all()"}}))
    rig.cli("pool", "disable", "a")
    for i in range(4):
        refused = rig.add(f"l{i}", f"n{i}")
        expect(isinstance(refused, dict) and "10.233.96.0/19" in json.dumps(refused), f"inside of the large block: {refused}")
    held = lambda: [i for i, one in enumerate(json.loads(etcd.get(key)[key])["allocations"]) if one is not None]
    expect_equal(rig.call("DEL", "pod1")[0], 0, "DEL of a pod of the large block")
    expect_equal(held(), [0, 2], "what is held there")
    refused = rig.add("own", "w5")
    expect(isinstance(refused, dict) and "10.233.96.0/19" in json.dumps(refused), f"nor for its own node: {refused}")
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_corrupt" not in checked and "stay taken" not in checked, f"it is read by check: {checked}")
    whole = etcd.get(key)[key]
    for spoiled in ("garbage", whole.replace('"deleted":false', '"deleted":"x"')):
        etcd.put(key, spoiled)
        expect(isinstance(rig.add("x", "n1"), dict), "inside of one that cannot be read")
    etcd.put(key, whole.replace("10.233.96.0/19", "10.233.96.5/19"))
    expect_equal(rig.call("DEL", "pod2")[0], 0, "DEL where its CIDR has host bits")
    expect_equal(held(), [0], "what is held there")
    etcd.put(BLOCKS + "ipv4/block/10.9.0.5-24", whole.replace("10.233.96.0/19", "10.9.0.0/24"))
    checked = rig.cli("check", codes=(3,)).stdout
    expect("10.9.0" in checked, f"a key with host bits is named: {checked}")
    rig.cli("record", "remove", "block", "ipv4/10.9.0.5/24", "--force")
    expect("10.9.0" not in rig.cli("check", codes=(3,)).stdout, "it is gone")
    etcd.ctl("del", "--prefix", "")
    say("large blocks: ok")


def host_bits(world, etcd):
    """Pools as Calico before 3.19 let them be written: used, with a note, and left as they are."""
    rig = Rig(world, etcd.store)
    rig.cli("pool", "disable", "a")
    for name, cidr, size in (("four", "10.5.0.1/24", 26), ("six", "C001:C0AF::12/120", 122)):
        etcd.put(POOL[:-1] + name, json.dumps(
            {"kind": "IPPool", "apiVersion": "projectcalico.org/v3", "metadata": {"name": name},
             "spec": {"cidr": cidr, "blockSize": size, "nodeSelector": "all()"}}))
    before = etcd.get(POOL[:-1])
    address = rig.add("c")
    expect(isinstance(address, str) and address.startswith("10.5.0."), f"of the pool with host bits: {address}")
    checked = rig.cli("check").stdout
    for word in ("10.5.0.1/24", "10.5.0.0/24", "C001:C0AF::12/120", "c001:c0af::/120"):
        expect(word in checked, f"{word} in a note of check: {checked}")
    rig.cli("pool", "disable", "six")
    rig.cli("pool", "enable", "six")
    after = etcd.get(POOL[:-1])
    expect_equal(after[POOL[:-1] + "four"], before[POOL[:-1] + "four"], "the record stays as it was")
    expect("C001:C0AF::12/120" in after[POOL[:-1] + "six"], "its text stays when another member changes")
    etcd.ctl("del", "--prefix", "")
    say("pools with host bits: ok")


def made_again(rig, gone):
    """A pool that is deleted under living pods: the very same is made again, another is not."""
    gone()
    again = ("pool", "create", "a", "--cidr", "10.79.0.0/24", "--cooldown-seconds", "0")
    done = rig.cli(*again, "--block-size", "28", codes=(1, 5))
    expect("blockSize 26" in done.stderr, f"the length is named: {done.stderr}")
    rig.cli(*again, "--block-size", "26")
    rig.fill("again", most=60)


def wanted_base(address):
    return int(address.split(".")[3]) // 64 * 64


def pool_gone(rig, gone):
    rig.cli("node", "range", "config", "--cluster-cidr=10.79.0.0/22", "--node-cidr-mask-size=24", codes=(1, 5))
    gone()
    done = rig.cli("node", "range", "config", "--cluster-cidr=10.79.0.0/22", "--node-cidr-mask-size=24", codes=(1, 5))
    expect("block 10.79.0." in done.stderr, f"the block is named: {done.stderr}")
    if not rig.store.startswith("sqlite:"):
        return  # a range of Services is Kubernetes' there
    base = wanted_base(min(rig.held, key=lambda a: int(a.split(".")[3])))
    done = rig.cli("service", "create", "web", "--tcp", "80:80", "--service-cluster-ip-range", f"10.79.0.{base}/27",
                   codes=(1, 5))
    expect("block 10.79.0." in done.stderr, f"the block is named: {done.stderr}")


def reservation_gone(rig):
    """Of the pool only the addresses that it keeps out of use are not given."""
    rig.fill("d", nodes=("node-a",))
    for kept in ("10.79.0.0", "10.79.0.1", "10.79.0.255"):
        expect(kept not in rig.held, f"{kept} is given to {rig.held.get(kept)}")
    expect_equal(len(rig.held), 253, "all others are given")
    checked = rig.cli("check", codes=(3,)).stdout
    expect("reservation_missing" in checked and "croft pool create a --cidr 10.79.0.0/24" in checked, f"named: {checked}")
    rig.cli("pool", "create", "a", "--cidr", "10.79.0.0/24")
    checked = rig.cli("check", codes=(3,)).stdout
    expect(checked.count("remedy:") == 1 and "pool_full" in checked, f"that the pool is full, and no more: {checked}")


def damage(store, kind, name):
    write_past_croft(store, ("UPDATE records SET value=? WHERE kind=? AND name=?", (b"garbage", kind, name)))


def remove(rig, kind, number, name):
    damage(rig.store, number, name)
    rig.cli("record", "remove", kind, name, "--force")


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


def damaged_reservations(rig, etcd):
    """What they reserve counts as long as it can be read; of the cluster's other pools every ADD goes on."""
    key = RESERVATIONS + "pool-a"
    value = etcd.get(key)[key]
    for spoiled in (value.replace("IPReservation", "IPReservatiom"), value.replace("creationTimestamp\":\"2", "creationTimestamp\":\"x"),
                    value.replace("\"name\":\"pool-a\"", "\"name\":\"pool-b\"")):
        expect(spoiled != value, "something is spoiled")
        etcd.put(key, spoiled)
        address = rig.add("after")
        expect(isinstance(address, str), f"an ADD: {address}")
        rig.call("DEL", "after")
    etcd.put(key, value)


def test():
    with World("foreign-pool-change", sys.argv[1]) as world:
        etcd = Etcd(world)
        for length in (28, 24):
            change_of_length(world, etcd, length)
        what_cools(world, etcd)
        for length in (28, 26):
            new_block_over_old(world, etcd, length)
        large_blocks(world, etcd)
        host_bits(world, etcd)
        deleted_block(Rig(world, etcd.store, "--block-size", "26"), etcd)
        etcd.ctl("del", "--prefix", "")
        damaged_reservations(Rig(world, etcd.store), etcd)
        etcd.ctl("del", "--prefix", "")
        pool_gone(Rig(world, etcd.store), lambda: etcd.ctl("del", POOL))
        etcd.ctl("del", "--prefix", "")
        made_again(Rig(world, etcd.store, "--block-size", "26"), lambda: etcd.ctl("del", POOL))
        etcd.ctl("del", "--prefix", "")
        say("etcd: ok")

        rig = Rig(world, world.store("pool"))
        pool_gone(rig, lambda: remove(rig, "pool", 0, "a"))
        rig = Rig(world, world.store("again"))
        made_again(rig, lambda: remove(rig, "pool", 0, "a"))
        rig = Rig(world, world.store("reservation"))
        remove(rig, "reservation", 1, "pool-a")
        reservation_gone(rig)
        say("sqlite: ok")


main(test, seconds=280)
