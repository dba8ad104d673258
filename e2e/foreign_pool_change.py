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
    expect(isinstance(refused, dict) and "overlaps block" in json.dumps(refused), f"explicit, of the old block: {refused}")
    rig.fill("d", most=60)
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_overlap" not in checked, f"no block overlaps another: {checked}")
    etcd.ctl("del", "--prefix", "")
    say(f"blockSize 26 made {length}: ok")


def what_cools(world, etcd, change):
    """What was released a moment ago rests, under whatever name and in blocks of whatever size the pool comes back."""
    rig = Rig(world, etcd.store, "--block-size", "26", cooldown=600)
    for container in rig.held.values():
        rig.call("DEL", container)
    pool = json.loads(etcd.get(POOL)[POOL])
    etcd.ctl("del", POOL)
    if change == "name":
        pool["metadata"]["name"] = "a2"
        etcd.put(POOL + "2", json.dumps(pool))
    else:
        # Calico gives up the block, which is empty to it.
        etcd.ctl("del", "--prefix", BLOCKS)
        etcd.ctl("del", "--prefix", "/calico/ipam/v2/host/")
        pool["spec"]["blockSize"] = 27
        etcd.put(POOL, json.dumps(pool))
    if change == "length, in blocks of Calico's making":
        for half in ipaddress.ip_network(min(rig.held)).supernet(new_prefix=26).subnets(new_prefix=27):
            make_as_calico(etcd, str(half))
    rig.fill("d", most=40, nodes=("node-a",))
    etcd.ctl("del", "--prefix", "")
    say(f"what cools in a pool of another {change}: ok")


def new_block_over_old(world, etcd, length):
    """A block of the new length, which Calico claims for node-a, over one of the old length with holders of node-a."""
    rig = Rig(world, etcd.store, "--block-size", "27")
    pool = json.loads(etcd.get(POOL)[POOL])
    pool["spec"]["blockSize"] = length
    etcd.put(POOL, json.dumps(pool))
    over = ipaddress.ip_network(f"{min(rig.held, key=ipaddress.ip_address)}/{length}", strict=False)
    make_as_calico(etcd, str(over), node="node-c")
    rig.fill("d", most=40, nodes=("node-c", "node-b"))
    refused = rig.add("x", "node-c", f"IP={min(rig.held)}")
    expect(isinstance(refused, dict), f"explicit: {refused}")
    checked = rig.cli("check", codes=(3,)).stdout
    expect("block_overlap" in checked, f"named by check: {checked}")
    etcd.ctl("del", "--prefix", "")
    say(f"a block of /{length} over holders in /27: ok")


def damage_beside_a_large_block(world, etcd):
    """All of a pool may rest: said at once, and as what it is."""
    rig = Rig(world, etcd.store, "--block-size", "29")
    etcd.put("/croft/v1/beside/block/ipv4/10.79.0.0/24", "garbage")
    for node in ("node-a", "node-b"):
        begun = time.monotonic()
        refused = rig.add("x", node)
        expect(isinstance(refused, dict) and refused["code"] == 101, f"refused: {refused}")
        expect("beside/block/ipv4/10.79.0.0/24" in json.dumps(refused), f"the record is named: {refused}")
        expect(time.monotonic() - begun < 5, "before a runtime gives up")
    rig.cli("record", "remove", "block_beside", "ipv4/10.79.0.0/24", "--force")
    expect(isinstance(rig.add("x"), str), "an ADD afterwards")
    etcd.ctl("del", "--prefix", "")
    say("damage beside a large block: ok")


def make_as_calico(etcd, cidr, node="node-a"):
    """A block that Calico claims for a node, for its tunnel's address say."""
    size = ipaddress.ip_network(cidr).num_addresses
    name = cidr.replace("/", "-")
    etcd.put(f"/calico/ipam/v2/host/{node}/ipv4/block/{name}", json.dumps({"state": "confirmed", "deleted": False}))
    etcd.put(f"{BLOCKS}ipv4/block/{name}", json.dumps(
        {"cidr": cidr, "affinity": f"host:{node}", "allocations": [None] * size, "unallocated": list(range(size)),
         "attributes": [], "deleted": False, "sequenceNumber": time.time_ns(), "sequenceNumberForAllocation": {}}))


def stray_name(world, etcd):
    """A key in the place of blocks that no block can have."""
    rig = Rig(world, etcd.store)
    etcd.put(BLOCKS + "ipv4/block/10.0.0.0-8", "{}")
    rig.fill("d", most=10, nodes=("node-a", "node-b"))
    rig.cli("pool", "create", "b", "--cidr", "10.80.0.0/24")
    rig.cli("node", "range", "config", "--cluster-cidr=10.153.0.0/16", "--node-cidr-mask-size=24")
    etcd.put("/calico/resources/v3/projectcalico.org/nodes/node-a", json.dumps(
        {"kind": "Node", "apiVersion": "projectcalico.org/v3", "metadata": {"name": "node-a"}, "spec": {}}))
    rig.cli("node", "range", "assign", "node-a")
    checked = rig.cli("check", codes=(3,)).stdout
    expect("croft record remove block ipv4/10.0.0.0/8 --force" in checked, f"named by check: {checked}")
    rig.cli("record", "remove", "block", "ipv4/10.0.0.0/8", "--force")
    rig.cli("check")
    etcd.ctl("del", "--prefix", "")
    say("a name that no block can have: ok")


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
    rig.cli("check")


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
        for change in ("name", "length", "length, in blocks of Calico's making"):
            what_cools(world, etcd, change)
        for length in (28, 26):
            new_block_over_old(world, etcd, length)
        damage_beside_a_large_block(world, etcd)
        stray_name(world, etcd)
        deleted_block(Rig(world, etcd.store, "--block-size", "26"), etcd)
        etcd.ctl("del", "--prefix", "")
        damaged_reservations(Rig(world, etcd.store), etcd)
        etcd.ctl("del", "--prefix", "")
        pool_gone(Rig(world, etcd.store), lambda: etcd.ctl("del", POOL))
        etcd.ctl("del", "--prefix", "")
        say("etcd: ok")

        rig = Rig(world, world.store("pool"))
        pool_gone(rig, lambda: remove(rig, "pool", 0, "a"))
        rig = Rig(world, world.store("reservation"))
        remove(rig, "reservation", 1, "pool-a")
        reservation_gone(rig)
        say("sqlite: ok")


main(test, seconds=280)
