"""Every finding of `croft check`, provoked in a register with living pods, and its remedy followed to the letter: each living
pod keeps its address, nobody else gets it, and what the remedy promises comes true. A finding without a row fails the test.
Then `croft ip release`, of what lives and of what is gone. Neither root nor network.
"""

import ipaddress
import json
import os
import pathlib
import pty
import re
import shlex
import subprocess

from etcd_lib import Etcd
from lib import TREE, cache_entry, call_ipam, expect, expect_equal, main, say, write_past_croft

FINDINGS, REFUSED = 3, 5  # exit codes
# The numbers of kinds in a sqlite store (docs/formats/records.md).
KINDS = {"pool": 0, "reservation": 1, "ipam_config": 2, "block": 3, "affinity": 4, "handle": 5, "vacancy": 6,
         "high_water_mark": 8, "pool_set": 9, "node": 10, "service": 12, "node_range": 15, "removed_node": 17}
# Those that only a Kubernetes API shows: that test follows the remedy of each.
ELSEWHERE = {kind: "check_remedies_kube.py" for kind in (
    "pod_range_overlap", "pod_not_held", "node_not_moved", "pod_gone", "node_gone", "block_node_gone", "holder_in_doubt", "node_range_differs", "node_range_unreadable")} | {"store_paused": "store_copy.py"}
CALICO = "/calico/resources/v3/projectcalico.org/"
BLOCK = "/calico/ipam/v2/assignment/ipv4/block/"


class Register:
    """A store with a pool of two blocks of 8, and three pods on node-a with addresses of one of them."""

    def __init__(self, world, store, cache):
        self.world, self.store, self.cache = world, store, cache
        self.etcd = None
        self.cli("pool", "create", "a", "--cidr", "10.79.0.0/28", "--block-size", "29", "--cooldown-seconds", "0")
        self.living, self.ranges = {}, {}
        for number in range(3):
            self.living[self.add(f"c{number}", pod=f"web-{number}")] = f"c{number}"
        self.address = next(iter(self.living))
        self.block = [row["block"] for row in self.rows() if row["address"] == self.address][0]

    def cli(self, *arguments, codes=(0,)):
        return self.world.cli(self.store, *arguments, codes=codes)

    def rows(self):
        return json.loads(self.cli("ip", "list", "-o", "json").stdout)

    def call(self, command, container, node="node-a", pod=None, store=None, **env):
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={pod};K8S_POD_UID=uid-{pod}" if pod else ""
        return call_ipam(self.world, command, container, store or self.store, node, args, env)[1]

    def add(self, container, node="node-a", pod=None):
        """The address; None when it is refused."""
        answer = self.call("ADD", container, node, pod)
        return answer["ips"][0]["address"].split("/")[0] if "ips" in answer else None

    def check(self, *more):
        done = self.cli("check", "-o", "json", *more, codes=(0, FINDINGS))
        return json.loads(done.stdout)

    def entry(self, container, netns="/proc/self/ns/net", address=None, pod=None):
        """Of the runtime's cache."""
        (self.cache / "results").mkdir(parents=True, exist_ok=True)
        cache_entry(self.cache / "results", container, netns=netns, address=address, pod=pod and ("shop", pod))

    def all_live(self):
        for address, container in self.living.items():
            self.entry(container, address=address)
        return ("--cni-cache", str(self.cache), "--node", "node-a", "--grace-seconds", "0", "--in-container")

    def damage(self, kind, name=None, value=b"{damaged"):
        """A record of a sqlite store, or one that is not there yet."""
        if name is None:
            name = write_past_croft(self.store, ("SELECT name FROM records WHERE kind=?", (KINDS[kind],)))[0][0][0][0]
        write_past_croft(self.store, ("DELETE FROM records WHERE kind=? AND name=?", (KINDS[kind], name)),
                         ("INSERT INTO records(kind,name,revision,token,checksum,value) VALUES(?,?,1,?,0,?)",
                          (KINDS[kind], name, bytes(16), value)))
        return name

    def drop(self, kind):
        write_past_croft(self.store, ("DELETE FROM records WHERE kind=?", (KINDS[kind],)))

    # Of an etcd.
    def edit(self, key, change):
        value = json.loads(self.etcd.get(key)[key])
        change(value)
        self.etcd.put(key, json.dumps(value))

    def edit_block(self, change):
        self.edit(BLOCK + self.block.replace("/", "-"), change)

    def resource(self, plural, kind, name, spec):
        self.etcd.put(f"{CALICO}{plural}/{name}", json.dumps(
            {"kind": kind, "apiVersion": "projectcalico.org/v3",
             "metadata": {"name": name, "uid": "575d6752-ce47-11e8-8a72-9cb6d089a923", "creationTimestamp": "2018-10-12T17:50:43Z"},
             "spec": spec}))

    def expect_unharmed(self, where, is_recorded=True):
        """Whoever lives has its address alone."""
        if is_recorded:
            held = {row["address"]: row["containerId"] for row in self.rows() if row["state"] == "held"}
            for address, container in self.living.items():
                expect_equal(held.get(address), container, f"{where}: who has {address}")
        given = dict(self.living)
        for node in ("node-a", "node-b"):
            for number in range(40):
                name = f"fill-{node}-{number}"
                address = self.add(name, node)
                if address is None:
                    break
                expect(address not in given, f"{where}: {address} of {given.get(address)} is given to {name}")
                given[address] = name
        for name in set(given.values()) - set(self.living.values()):
            self.call("DEL", name, node=name.removeprefix("fill-")[:6])
        self.expect_ranges_unharmed(where)

    # Ranges of nodes.
    def node(self, name):
        self.resource("nodes", "Node", name, {})

    def configure_ranges(self):
        """Four, of which node-a's pods live in the first."""
        self.node("node-a")
        self.cli("node", "range", "config", "--cluster-cidr", "10.244.0.0/22")
        self.cli("node", "range", "assign", "node-a", "--cidr", "10.244.0.0/24")
        self.ranges["node-a"] = "10.244.0.0/24"

    def record_range(self, node, cidr):
        """As no program of Croft's does here."""
        self.node(node)
        self.etcd.put(f"/croft/v1/node_range/ipv4/{cidr}", json.dumps(
            {"token": "0" * 32, "record": {"v": 1, "node": node, "cidr": cidr}}, separators=(",", ":")))

    def expect_ranges_unharmed(self, where):
        """Nobody has a range in common with a node whose pods live, however many others come."""
        if not self.ranges:
            return
        for number in range(4):
            self.node(f"filler-{number}")
            self.cli("node", "range", "assign", f"filler-{number}", codes=(0, 1))
        taken = [(one["node"], one["cidr"]) for one in json.loads(self.cli("node", "range", "list", "-o", "json").stdout)]
        for node, own in self.ranges.items():
            near = [one for one in taken if ipaddress.ip_network(one[1]).overlaps(ipaddress.ip_network(own))]
            expect_equal(near, [(node, own)], f"{where}: who has addresses of {own}")

    def end_pods(self):
        for container in self.living.values():
            self.call("DEL", container)
        for file in (self.cache / "results").glob("*") if (self.cache / "results").exists() else ():
            if file.name.split("-")[1] in self.living.values():
                file.unlink()
        self.living = {}


def commands_of(remedy):
    """As somebody types them."""
    return [shlex.split(one or two) for one, two in re.findall(r"`(croft [^`]+)`|(?:^|, )(croft [^`;]+)$", remedy)]


def follow(register, remedy, where):
    for words in commands_of(remedy):
        words = [str(register.world.directory / "report") if word == "FILE" else word for word in words]
        done = register.cli(*words[1:], codes=None)
        expect(done.returncode in (0, 1, 2, FINDINGS, REFUSED), f"{where}: {words}: {done}")


ROWS = []


def row(kind, store, gone=None, is_recorded=True, cycle=("",)):
    """`gone`: when the remedy has mended it: "now", or "later", once the pods have ended. `is_recorded`: the register still
    says who holds what. `cycle`: what the provocation is called with, one after the other."""
    def add(provoke):
        for more in cycle:
            ROWS.append((kind, store, gone, is_recorded, lambda register, more=more: provoke(*([register, more] if more else [register])), more))
        return provoke
    return add

# ---------------------------------------------------------------- blocks

row("block_corrupt", "etcd", is_recorded=False)(lambda r: r.etcd.put(BLOCK + r.block.replace("/", "-"), "{"))
row("block_corrupt", "sqlite", is_recorded=False)(lambda r: r.damage("block"))
row("block_corrupt", "etcd", is_recorded=False)(lambda r: r.edit_block(lambda block: block["unallocated"].append(block["unallocated"][0])))


@row("block_overlap", "etcd", gone="later")
def overlap(r):
    half = re.sub(r"/\d+$", "/30", r.block)
    r.etcd.put(BLOCK + half.replace("/", "-"), json.dumps(
        {"cidr": half, "affinity": "host:node-b", "allocations": [None] * 4, "unallocated": list(range(4)), "attributes": [],
         "sequenceNumber": 7, "sequenceNumberForAllocation": {}, "deleted": False}))
    r.etcd.put(f"/calico/ipam/v2/host/node-b/ipv4/block/{half.replace('/', '-')}", '{"state":"confirmed","deleted":false}')


row("block_without_pool", "etcd", gone="later")(lambda r: r.edit(CALICO + "ippools/a", lambda pool: pool["spec"].update(blockSize=30)))
row("block_without_pool", "etcd")(lambda r: r.etcd.ctl("del", CALICO + "ippools/a"))


@row("sequence_behind", "etcd")
def sequence_behind(r):
    r.etcd.put(f"/croft/v1/high_water_mark/ipv4/{r.block}", json.dumps(
        {"token": "0" * 32, "record": {"v": 1, "sequenceNumber": 2**63 - 2**22}}, separators=(",", ":")))


row("affinity_missing", "sqlite", gone="later")(lambda r: r.drop("affinity"))
row("affinity_stale", "etcd", gone="now")(lambda r: r.etcd.put(f"/calico/ipam/v2/host/node-b/ipv4/block/{r.block.replace('/', '-')}", '{"state":"confirmed","deleted":false}'))
row("affinity_unconfirmed", "etcd")(lambda r: r.edit(f"/calico/ipam/v2/host/node-a/ipv4/block/{r.block.replace('/', '-')}", lambda one: one.update(state="pending")))
row("vacancy_missing", "sqlite", gone="now")(lambda r: r.drop("vacancy"))

# ---------------------------------------------------------------- handles

row("handle_missing", "sqlite")(lambda r: r.drop("handle"))
row("handle_miscount", "etcd", gone="later")(lambda r: r.edit("/calico/ipam/v2/handle/net.c0", lambda handle: handle["block"].update({r.block: 2})))
row("handle_undercount", "etcd")(lambda r: r.edit("/calico/ipam/v2/handle/net.c0", lambda handle: handle["block"].clear()))
row("handle_empty", "etcd", gone="now")(lambda r: r.etcd.put("/calico/ipam/v2/handle/net.ghost", json.dumps({"block": {r.block: 1}, "deleted": False})))

# ---------------------------------------------------------------- pools and reservations

row("pool_overlap", "etcd")(lambda r: r.resource("ippools", "IPPool", "b", {"cidr": "10.79.0.0/26", "blockSize": 29, "nodeSelector": "all()"}))
row("pool_not_allocatable", "etcd")(lambda r: r.resource("ippools", "IPPool", "small", {"cidr": "10.80.0.0/29", "blockSize": 26, "nodeSelector": "all()"}))


@row("pool_full", "sqlite", gone="later")
def pool_full(r):
    for number in range(3, 40):
        address = r.add(f"c{number}", pod=f"web-{number}")
        if address is None:
            break
        r.living[address] = f"c{number}"


@row("pool_full", "sqlite")
def pool_cools(r):
    """A main plugin fails behind each ADD, and the DEL lets the address cool. The refusal, `croft explain` and `croft check` say the same."""
    r.cli("pool", "create", "b", "--cidr", "10.80.0.0/29", "--cooldown-seconds", "600")
    r.cli("pool", "disable", "a")
    while r.add("tried"):
        r.call("DEL", "tried")
    said = r.call("ADD", "tried")["details"]
    clause = said[said.index("all 5 addresses cool down"):]
    expect(clause in r.cli("explain", "--node", "node-a", codes=None).stdout, f"croft explain: {clause}")
    expect(any(clause in one["evidence"] for one in r.check()), f"croft check: {clause}: {r.check()}")
    r.cli("pool", "enable", "a")


@row("pool_half_made", "etcd", gone="now", cycle=("beingMade",))
@row("pool_half_deleted", "etcd", gone="now", cycle=("beingDeleted",))
def pool_half_done(r, member):
    r.edit(CALICO + "ippools/a", lambda pool: pool["spec"].update(disabled=True))
    r.edit("/croft/v1/beside/pool/a", lambda beside: beside.update({member: True}))
    key = "/croft/v1/beside/pool/a"
    r.etcd.put(key, json.dumps(json.loads(r.etcd.get(key)[key]), separators=(",", ":")))


row("selector_invalid", "etcd")(lambda r: r.edit(CALICO + "ippools/a", lambda pool: pool["spec"].update(nodeSelector="((")))
row("config_contradicts", "etcd")(lambda r: r.etcd.put("/calico/ipam/v2/config", '{"strict_affinity":false,"auto_allocate_blocks":false}'))
row("reservation_missing", "sqlite", gone="now")(lambda r: r.drop("reservation"))
row("reservation_left", "etcd", gone="now")(lambda r: r.resource("ipreservations", "IPReservation", "pool-gone", {"reservedCIDRs": ["10.81.0.0/32", "10.81.0.1/32", "10.81.0.255/32"]}))
row("reserved_held", "etcd", gone="later")(lambda r: r.resource("ipreservations", "IPReservation", "mine", {"reservedCIDRs": [f"{r.address}/32"]}))

# ---------------------------------------------------------------- addresses, and who lives

@row("release_in_future", "etcd")
def release_in_future(r):
    r.etcd.put("/calico/ipam/v2/config", '{"strict_affinity":false,"auto_allocate_blocks":true,"ipCooldownSeconds":600}')
    r.add("rests")
    r.call("DEL", "rests")

    def change(block):
        for attribute in block["attributes"]:
            if "releasedAt" in attribute:
                attribute["releasedAt"] = "2099-01-01T00:00:00Z"
    r.edit_block(change)


@row("not_attached", "sqlite", gone="now")
@row("not_attached", "etcd", gone="now")
def not_attached(r):
    r.add("dead")
    r.entry("dead", r.world.directory / "gone")
    return r.all_live()


@row("not_held", "sqlite")
def not_held(r):
    r.entry("stranger", address="10.79.0.9", pod="stranger")
    return r.all_live()


@row("pod_twice", "sqlite", cycle=("/proc/self/ns/net", "nowhere"))
def pod_twice(r, netns):
    again = r.add("again", pod="web-0")
    r.entry("again", netns if netns.startswith("/") else "", address=again)
    r.living[again] = "again"
    return r.all_live()


@row("cache_empty", "sqlite")
def cache_empty(r):
    (r.cache / "results").mkdir(parents=True, exist_ok=True)
    return "--cni-cache", str(r.cache), "--grace-seconds", "0"


@row("cache_unreadable", "sqlite")
def cache_unreadable(r):
    more = r.all_live()
    (r.cache / "results" / "net-c0-eth0").write_text("")
    return more

# ---------------------------------------------------------------- records, and DELs that wait

@row("record_unreadable", "sqlite", cycle=("pool", "reservation", "handle", "affinity"))
def damaged_record(r, kind):
    r.damage(kind)


@row("record_unreadable", "sqlite", gone="now", cycle=("ipam_config default", "node node-a", "removed_node node-b",
                                                       f"high_water_mark ipv4/10.79.0.0/29"))
@row("record_unreadable", "sqlite", cycle=("service shop/web", "node_range ipv4/10.244.0.0/24", "pool_set default"))
def damaged_small_record(r, what):
    r.damage(*what.split(" "))


@row("record_unreadable", "etcd", cycle=("ippools/a",))
@row("record_unreadable", "etcd", cycle=("ipreservations/mine", "nodes/node-a"))
def damaged_resource(r, what):
    r.etcd.put(CALICO + what, "{")


@row("record_unreadable", "etcd", cycle=("handle/net.c0", "config"))
def damaged_calicos(r, what):
    r.etcd.put("/calico/ipam/v2/" + what, "{")


@row("record_unreadable", "etcd", cycle=("pool/a",))
@row("block_corrupt", "etcd", gone="now", cycle=("block",))
def damaged_beside(r, what):
    r.etcd.put("/croft/v1/beside/" + (what if what != "block" else f"block/ipv4/{r.block}"), "{")


row("record_newer", "etcd")(lambda r: r.etcd.put(f"/croft/v1/removed_node/node-b", '{"token":"' + "0" * 32 + '","record":{"v":99}}'))


@row("release_waiting", "sqlite")
def release_waiting(r):
    place = r.world.directory / "tombstones"
    answer = r.call("DEL", "elsewhere", store="etcd:http://127.0.0.1:9", CROFT_TOMBSTONES=str(place))
    expect(answer is None, f"a DEL that leaves a tombstone: {answer}")
    for file in place.glob("*.json"):
        content = json.loads(file.read_text())
        content["leftAt"] = "2026-11-01T00:00:00Z"
        file.write_text(json.dumps(content, separators=(",", ":")))
    return "--tombstones", str(place)


@row("release_unreadable", "sqlite")
def release_unreadable(r):
    place = r.world.directory / "tombstones-damaged"
    place.mkdir(mode=0o700, exist_ok=True)
    (place / ("0" * 64 + ".json.damaged")).write_text("{")
    return "--tombstones", str(place)


@row("register_damaged", "sqlite", is_recorded=False)
def register_damaged(r):
    path = r.store.removeprefix("sqlite:")
    for suffix in ("-wal", "-shm"):
        pathlib.Path(path + suffix).unlink(missing_ok=True)
    with open(path, "r+b") as file:
        file.write(b"no database" * 100)

# ---------------------------------------------------------------- ranges of nodes

@row("node_range_twice", "etcd", gone="now")
def two_records(r):
    r.configure_ranges()
    r.record_range("drained", "10.244.0.128/25")


@row("node_range_surplus", "etcd", gone="now")
def range_twice(r):
    r.configure_ranges()
    r.record_range("node-a", "10.244.2.0/24")

# ---------------------------------------------------------------- the table

def of_all_findings(world, etcd):
    source = (TREE / "src/ipam/audit/findings.h").read_text()
    table = re.search(r"kFindings = .*?\(\{(.*?)\}\);", source, re.S).group(1)
    known = set(re.findall(r'^    \{"(\w+)', table, re.M))
    expect(len(known) > 40, f"findings: {known}")
    expect_equal(sorted(known - {kind for kind, *_ in ROWS} - set(ELSEWHERE)), [], "findings without a row here")
    for kind, file in ELSEWHERE.items():
        expect(kind in (TREE / "e2e" / file).read_text(), f"{kind} in {file}")
    for number, (kind, store, gone, is_recorded, provoke, more) in enumerate(ROWS):
        where = f"{kind} {more} in {store}"
        if store == "etcd":
            etcd.ctl("del", "--prefix", "")
        register = Register(world, etcd.store if store == "etcd" else world.store(f"row-{number}"), world.directory / f"cache-{number}")
        register.etcd = etcd
        options = provoke(register)
        options = options if isinstance(options, tuple) else ()
        found = [one for one in register.check(*options) if one["finding"] == kind]
        expect(found, f"{where}: {register.check(*options)}")
        for one in found:
            follow(register, one["remedy"], where)
        if kind != "register_damaged":
            register.expect_unharmed(where, is_recorded)
        if gone == "later":
            register.end_pods()
            for one in found:
                follow(register, one["remedy"], where)
        if gone:
            left = [one for one in register.check(*options) if one["finding"] == kind]
            expect_equal(left, [], f"{where}: after the remedy")
    say(f"  {len(ROWS)} ways to {len(known) - len(ELSEWHERE)} findings, their remedies followed while pods live")

# ---------------------------------------------------------------- release and remove

def releases(world, etcd):
    for store in ("sqlite", "etcd"):
        etcd.ctl("del", "--prefix", "")
        r = Register(world, etcd.store if store == "etcd" else world.store("release"), world.directory / f"cache-{store}")
        r.etcd = etcd
        for words in ((r.address,), (r.address, "--handle", "net.c0"), ("--pod", "shop/web-0", "--max-share", "1"),
                      ("--pod", "shop/web-0", "--handle", "net.c0", "--max-share", "1"), (*r.living,)):
            said = r.cli("ip", "release", *words, codes=(REFUSED,)).stderr
            for word in (r.address, "pod shop/web-0", "node node-a", "since 20", "--force"):
                expect(word in said, f"release {words} names {word}: {said}")
            said = r.cli("ip", "release", *words, "--dry-run").stderr
            expect("would be refused" in said, f"a dry run of {words}: {said}")
        r.expect_unharmed(f"refusals in {store}")
        # The runtime of the node proves it, and no other.
        with_cache = r.all_live()
        r.cli("ip", "release", r.address, *with_cache, codes=(REFUSED,))
        r.entry("c0", world.directory / "gone", address=r.address)
        r.cli("ip", "release", r.address, *with_cache)
        expect(r.address not in world.held(r.store), "proven gone")
        # An operator says so.
        second = list(r.living)[1]
        r.cli("ip", "release", second, "--force")
        expect(second not in world.held(r.store), "by force")
        third = list(r.living)[2]
        r.cli("node", "remove", "node-a", codes=(REFUSED,))
        r.cli("node", "remove", "node-a", "--force")
        r.cli("ip", "release", third)
        expect(third not in world.held(r.store), "of a node that was removed")
        r.cli("ip", "release", third, codes=(1,))
    say("  ip release frees what is proven gone, and else refuses with the holder's name")


def all_of(terminal):
    """What a terminal got whose other end is closed: the kernel hands it over in pieces."""
    text = b""
    while True:
        try:
            piece = os.read(terminal, 10000)
        except OSError:  # EIO: that was all
            piece = b""
        if not piece:
            return text.decode()
        text += piece


def on_a_terminal(world):
    r = Register(world, world.store("terminal"), world.directory / "cache-terminal")
    for answer, code in (("n\n", REFUSED), ("\n", REFUSED), ("y\n", 0)):
        ours, theirs = pty.openpty()
        os.write(ours, answer.encode())
        done = subprocess.run([world.bin / "croft", "--store", r.store, "ip", "release", r.address], stdin=theirs, stdout=theirs,
                              stderr=theirs, timeout=60, check=False)
        os.close(theirs)
        text = all_of(ours)
        os.close(ours)
        expect_equal(done.returncode, code, f"answer {answer!r}: {text}")
        expect("pod shop/web-0" in text and "[y/N]" in text, f"the question: {text}")
    expect(r.address not in world.held(r.store), "released after yes")
    say("  on a terminal it asks")


def test(world):
    etcd = Etcd(world)
    of_all_findings(world, etcd)
    releases(world, etcd)
    on_a_terminal(world)


if __name__ == "__main__":
    main(test, 250)
