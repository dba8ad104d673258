"""Damaged records, one by one: what does not rest on the record goes on, and the record is named once. And what comes from
outside reaches no terminal as more than text. Neither root nor network.

usage: damaged_records.py BIN_DIR
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys

from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, own_environment, run, say, wait_for, write_past_croft

POOLS = [{"name": "a", "cidr": "10.79.0.0/24", "blockSize": 29, "cooldownSeconds": 0},
         {"name": "b", "cidr": "10.80.0.0/24", "blockSize": 29, "cooldownSeconds": 0}]
# What no output may hold: C0 but newline and tab, DEL, C1, marks of direction.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def expect_plain(what, data):
    text = data.decode("utf-8", errors="strict")
    found = HARMFUL.search(text)
    expect(not found, f"{what}: {found and found.group()!r} in {text!r}")


class Rig:
    """A store with pools a and b; c1 on node-a and c2 on node-b hold an address of pool a."""

    def __init__(self, world, name, store, pools=POOLS):
        self.world, self.store, self.pools = world, store, pools
        self.log = world.directory / f"{name}.log"
        for container, node in (("c1", "node-a"), ("c2", "node-b")):
            expect_equal(self.call("ADD", container, node)[0], 0, f"ADD of {container}")

    def call(self, command, container="c1", node="node-a", pools=True, ifname="eth0", agent="none",
             statusWhenFull=False, **env):
        ipam = {"type": "croft-ipam", "store": self.store, "nodename": node, "agent": str(agent),
                "log_file_path": str(self.log), "statusWhenFull": statusWhenFull}
        if pools:
            ipam["pools"] = self.pools
        config = {"cniVersion": "1.1.0", "name": "net", "ipam": ipam}
        variables = {**own_environment(self.world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": "/var/run/netns/none",
                     "CNI_IFNAME": ifname, "CNI_PATH": str(self.world.bin), **env}
        done = subprocess.run([self.world.bin / "croft-ipam"], input=json.dumps(config).encode(), env=variables,
                              capture_output=True, timeout=60, check=False)
        expect_plain(f"{command} stdout", done.stdout)
        expect_plain(f"{command} stderr", done.stderr)
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    def add(self, container, node="node-a"):
        """The address, or the error."""
        code, answer = self.call("ADD", container, node, pools=False)
        return answer["ips"][0]["address"].split("/")[0] if code == 0 else answer

    def cli(self, *arguments, codes=(0,)):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect(done.returncode in codes, f"croft {' '.join(arguments)}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def controller(self):
        done = run(self.world.bin / "croftd", "controller", "--store", self.store, "--once", "--grace", "1ms",
                   check=False)
        expect(done.returncode in (0, 3), f"controller: exit {done.returncode}: {done.stderr}")
        return done.stderr

    @contextlib.contextmanager
    def agent(self, node):
        """(its socket, its log)"""
        place, log = self.world.directory / "agent.sock", self.world.directory / "agent.stderr"
        with open(log, "wb") as out:
            process = subprocess.Popen([self.world.bin / "croftd", "agent", "--store", self.store, "--socket", place,
                                        "--node", node], stderr=out)
        try:
            def answers():
                with socket.socket(socket.AF_UNIX) as probe:
                    return probe.connect_ex(str(place)) == 0
            wait_for(lambda: process.poll() is not None or answers(), "the agent serves")
            expect(process.poll() is None, f"the agent ended: {log.read_text()}")
            yield place, log
        finally:
            process.kill()
            process.wait()

    def everything_goes_on(self, what, name, look_for=("ip", "list"), holder=("c2", "node-b")):
        """What does not rest on the damaged record."""
        before = self.log.read_text().count("DAMAGED")
        container, node = holder
        code, answer = self.call("ADD", container, node, pools=False)
        if look_for == ("pool", "list"):
            # Prefix and gateway of its address are not known.
            expect_equal((code, answer.get("code")), (1, 101), f"{what}: an owner asks again: {answer}")
            expect(name in answer["msg"], f"{what}: its refusal names it: {answer}")
        else:
            expect_equal(code, 0, f"{what}: an owner asks again: {answer}")
        self.log.write_text("")
        fresh = self.add("fresh-" + what)
        expect(isinstance(fresh, str), f"{what}: a new ADD: {fresh}")
        lines = [line for line in self.log.read_text().splitlines() if "DAMAGED" in line]
        expect(len(lines) <= 1, f"{what}: named more than once in one call: {lines}")
        expect_equal(self.call("DEL", "fresh-" + what, pools=False)[0], 0, f"{what}: DEL")
        expect_equal(self.call("STATUS", pools=False)[0], 0, f"{what}: STATUS")
        for command in (("ip", "list"), ("block", "list"), ("pool", "list"), ("pool", "show"), ("node", "list")):
            done = self.cli(*command)
            expect(done.stderr.count("set aside") <= 1, f"{what}: {command} names it more than once: {done.stderr}")
        named = self.cli(*look_for, codes=(0, 3))
        expect_equal(named.stderr.count("set aside"), 1, f"{what}: {look_for} names it: {named.stderr}")
        expect(name in named.stderr, f"{what}: {look_for} names it: {named.stderr}")
        checked = self.cli("check", codes=(3,))
        expect(name in checked.stdout, f"{what}: check names it: {checked.stdout}")
        log = self.controller()
        expect("pass" in log or "addresses" in log, f"{what}: the controller passes: {log}")
        say(f"{what}: ok ({before} named before)")
        return fresh


def in_sqlite(world):
    """(kind of damage, its maker) for a store in sqlite."""
    def damage(store, kind, name):
        write_past_croft(store, ("UPDATE records SET value=? WHERE kind=? AND name=?", (b"{\x1b[2Jgarbage", kind, name)),
                         ("INSERT OR IGNORE INTO records(kind,name,revision,token,checksum,value) VALUES(?,?,1,?,0,?)",
                          (kind, name, bytes(16), b"garbage")))
    return damage


# The numbers of kinds in the store (docs/formats/records.md).
POOL, RESERVATION, CONFIG, BLOCK, AFFINITY, HANDLE, VACANCY, _, MARK = range(9)
NODE, NODE_RANGE = 10, 15


def names(store, kind, like):
    rows = write_past_croft(store, ("SELECT name FROM records WHERE kind=? AND name LIKE ?", (kind, like)))[0][0]
    found = [name for (name,) in rows]
    expect(found, f"records of kind {kind} like {like}")
    return found


def removal(rig):
    """`croft record remove`, of a damaged reservation gateways."""
    for what, why in ((("pool", "a"), "is not damaged"), (("pool", "nope"), "there is no record"),
                      (("gateway", "a"), "there is no kind")):
        done = rig.cli("record", "remove", *what, codes=(1, 2, 5))
        expect(why in done.stderr, f"record remove {what}: {done.stderr}")
    checked = json.loads(rig.cli("check", "-o", "json", codes=(3,)).stdout)
    remedies = [finding["remedy"] for finding in checked if "gateways" in finding["subject"]]
    command = remedies[0].split("`")[1].split()
    expect_equal(command[:3], ["croft", "record", "remove"], f"the remedy of check: {remedies}")
    expect_equal(command[-1], "--force", f"what it kept from pods is given out: {remedies}")
    rig.cli(*command[1:-1], codes=(5,))
    rig.cli(*command[1:])
    expect(isinstance(rig.add("after-removal"), str), "without the record there are addresses again")
    rig.cli("check")


def nodes(rig, damage):
    """A damaged record of a node or of its range: what removes it frees nothing that lives."""
    for node in ("node-a", "node-b"):
        rig.cli("node", "label", node, "zone=a")
    rig.cli("node", "range", "config", "--cluster-cidr=10.244.0.0/22")
    rig.cli("node", "range", "assign", "node-a")
    held = json.loads(rig.cli("ip", "list", "-o", "json").stdout)
    damage(rig.store, NODE, "node-b")
    said = rig.cli("record", "remove", "node", "node-b").stdout
    expect("written anew" in said, said)
    rig.controller()
    expect_equal(json.loads(rig.cli("ip", "list", "-o", "json").stdout), held, "what pods of the node hold")
    damage(rig.store, NODE_RANGE, "ipv4/10.244.0.0/24")
    refused = rig.cli("record", "remove", "node_range", "ipv4/10.244.0.0/24", codes=(5,))
    expect("another node gets the range" in refused.stderr, refused.stderr)


def releases_of_ranges(rig):
    rig.cli("node", "range", "config", "--cluster-cidr=10.244.0.0/22")
    rig.cli("node", "range", "assign", "node-a")
    rig.cli("node", "range", "release", "node-a", codes=(5,))
    rig.cli("node", "range", "release", "node-a", "--dry-run", codes=(5,))
    rig.cli("node", "range", "release", "nope", codes=(1,))
    expect("would give back" in rig.cli("node", "range", "release", "node-a", "--force", "--dry-run").stdout, "dry run")
    rig.cli("node", "range", "release", "node-a", "--force")


def sqlite(world):
    damage = in_sqlite(world)

    def fresh(name):
        return Rig(world, name, f"sqlite:{world.directory}/{name}/croft.db")

    rig = fresh("pool")
    damage(rig.store, POOL, "a")
    address = rig.everything_goes_on("pool", "a", ("pool", "list"))
    expect(address.startswith("10.80.0."), f"a pool that is damaged gives nothing: {address}")
    made = rig.cli("pool", "create", "c", "--cidr", "10.81.0.0/24", codes=(1,))
    expect(made.stderr.count("pool a ") == 2, f"nothing is made that it may overlap: {made.stderr}")

    rig = fresh("reservation")
    damage(rig.store, RESERVATION, "pool-a")
    address = rig.everything_goes_on("reservation", "pool-a")
    expect(address.startswith("10.80.0."), f"what the reservation may keep is not given: {address}")

    rig = fresh("other-reservation")
    damage(rig.store, RESERVATION, "gateways")
    refused = rig.add("c9")
    expect(isinstance(refused, dict) and refused["code"] == 101 and "gateways" in refused["msg"], f"refused: {refused}")
    expect_equal(rig.call("ADD", "c1", pools=False)[0], 0, "an owner is answered")
    expect_equal(rig.call("DEL", "c1", pools=False)[0], 0, "and released")
    expect_equal(rig.call("STATUS", pools=False)[0], 0, "no node becomes unready by it")
    code, answer = rig.call("STATUS", pools=False, statusWhenFull=True)
    expect(code == 1 and answer["code"] == 50 and "gateways" in json.dumps(answer), f"unless that is wanted: {answer}")
    removal(rig)

    rig = fresh("all-pools")
    damage(rig.store, POOL, "a")
    damage(rig.store, POOL, "b")
    refused = rig.add("c9")
    expect(isinstance(refused, dict) and refused["code"] == 101 and "record pool" in refused["msg"],
           f"not as if there were no pool: {refused}")
    expect_equal(rig.call("STATUS", pools=False)[0], 0, "no node becomes unready by it")
    expect_equal(rig.call("DEL", "c1", pools=False)[0], 0, "DEL needs no pool")

    rig = fresh("config")
    damage(rig.store, CONFIG, "default")
    rig.everything_goes_on("config", "default")

    nodes(fresh("nodes"), damage)
    releases_of_ranges(fresh("ranges"))

    rig = fresh("block")
    held = json.loads(rig.cli("ip", "list", "-o", "json").stdout)
    block = [entry["block"] for entry in held if entry["node"] == "node-a"][0]
    damage(rig.store, BLOCK, f"ipv4/{block}")
    address = rig.everything_goes_on("block", block)
    shown = json.loads(rig.cli("ip", "list", "-o", "json").stdout)
    expect([entry for entry in shown if entry["node"] == "node-b"], "the others are listed")
    # What it holds, and for which node, is not known; a dry run says what the command would.
    for node in ("node-a", "node-b"):
        for dry_run in ((), ("--dry-run",)):
            refused = rig.cli("node", "remove", node, *dry_run, codes=(5,)).stderr
            expect("holds 1 address " in refused or block in refused, f"node remove {node} {dry_run}: {refused}")
    for dry_run in (("--dry-run",), ()):
        refused = rig.cli("node", "remove", "node-a", "--force", *dry_run, codes=(1,)).stderr
        expect(block in refused, f"node remove --force {dry_run}: {refused}")
    refused = rig.add("c1")
    expect(isinstance(refused, dict) and refused["code"] == 101, f"who may hold an address there is told: {refused}")
    code, answer = rig.call("DEL", "c1", pools=False)
    expect(code == 1 and answer["code"] == 101, f"and not released: {answer}")
    rig.cli("record", "remove", "block", f"ipv4/{block}", codes=(5,))
    rig.cli("record", "remove", "block", f"ipv4/{block}", "--force")
    expect(isinstance(rig.add("c1"), str), "without the block its owner gets another address")

    rig = fresh("affinity")
    for name in names(rig.store, AFFINITY, "%node-a%"):
        damage(rig.store, AFFINITY, name)
    rig.everything_goes_on("affinity", "node-a", ("check",))

    rig = fresh("agent")
    damage(rig.store, POOL, "a")
    with rig.agent("node-a") as (socket_path, log):
        for i in range(12):
            code, answer = rig.call("ADD", f"e{i}", pools=False, agent=socket_path)
            expect_equal(code, 0, f"an ADD by the agent: {answer}")
            expect(answer["ips"][0]["address"].startswith("10.80.0."), f"from the pool that is left: {answer}")
        line = rig.log.read_text().splitlines()[-1]
        expect("via=agent" in line, f"served by the agent: {line}; {log.read_text()}")
        for i in range(12):
            expect_equal(rig.call("DEL", f"e{i}", pools=False, agent=socket_path)[0], 0, "a DEL by the agent")
        expect_equal(rig.call("DEL", "c1", pools=False, agent=socket_path)[0], 0, "also of the damaged pool's")
        expect_equal(rig.call("STATUS", pools=False, agent=socket_path)[0], 0, "STATUS beside the agent")
        said = log.read_text()
        expect_equal(said.count("record pool a "), 1, f"the agent names it once: {said}")
        expect_plain("the agent's log", log.read_bytes())

    rig = fresh("handle")
    damage(rig.store, HANDLE, "net.c1")
    expect(isinstance(rig.add("c8"), str), "a damaged handle is its owner's trouble")


def etcd(world):
    server = Etcd(world)
    rig = Rig(world, "etcd", server.store)
    ip = json.loads(rig.cli("ip", "list", "-o", "json").stdout)
    block = [entry["block"] for entry in ip if entry["node"] == "node-a"][0]
    keys = server.ctl("get", "--prefix", "/", "--keys-only").stdout.split()

    def key_of(*parts):
        found = [key for key in keys if all(part in key for part in parts)]
        expect(found, f"a key with {parts} in {keys}")
        return found[0]

    pool = key_of("ippools", "/a") if [k for k in keys if "ippools" in k and k.endswith("/a")] else key_of("ippools")
    for what, key, name in (("block", key_of("/assignment/", block.replace("/", "-")), block.split("/")[0]),
                            ("pool", pool, "a")):
        before = server.ctl("get", key, "--print-value-only").stdout.rstrip("\n")
        server.ctl("put", key, "{garbage")
        rig.everything_goes_on(what, name, ("block", "list") if what == "block" else ("pool", "list"))
        expect_equal(server.ctl("get", key, "--print-value-only").stdout.rstrip("\n"), "{garbage",
                     f"{what}: what is damaged is left alone")
        server.ctl("put", key, before)
    expect_equal(rig.call("DEL", "c1", pools=False)[0], 0, "mended, c1 is released")


def beside_calicos(world):
    """What Croft keeps beside an IPPool or a block of Calico's is damaged: what is advised takes nothing of Calico's."""
    server = Etcd(world)
    rig = Rig(world, "beside", server.store, [{"name": "a", "cidr": "10.79.0.0/24", "blockSize": 29,
                                               "cooldownSeconds": 600}])
    rests = rig.add("c3")
    expect_equal(rig.call("DEL", "c3")[0], 0, "DEL")
    held = {entry["address"]: entry["handle"] for entry in json.loads(rig.cli("ip", "list", "-o", "json").stdout)
            if entry["state"] == "held"}
    expect_equal(len(held), 2, f"two addresses are held: {held}")

    def stored(prefix):
        return server.get(prefix)

    def findings():
        done = rig.cli("check", "-o", "json", codes=(0, 3))
        return json.loads(done.stdout)

    def remedy_of(finding):
        found = re.findall("`croft ([^`]+)`", finding["remedy"])
        expect_equal(len(found), 1, f"one command: {finding}")
        return found[0].split()

    def in_use():
        return {entry["address"]: entry["handle"] for entry in json.loads(rig.cli("ip", "list", "-o", "json").stdout)
                if entry["state"] == "held"}

    def damage(key):
        value = stored(key)[key]
        server.put(key, value[:-2] + "?" + value[-1])
        return value

    # Beside the pool.
    key, calicos = "/croft/v1/beside/pool/a", stored("/calico/")
    good = damage(key)
    found = findings()
    expect_equal([finding["subject"] for finding in found], ["pool a"], f"one finding: {found}")
    expect(key in found[0]["evidence"] and "is whole" in found[0]["evidence"], f"what is damaged, and what is not: {found}")
    expect("gateway" in found[0]["remedy"] and "cooldown" in found[0]["remedy"], f"what it costs: {found}")
    expect_equal(rig.add("c4")["code"], 101, "an ADD")
    said = rig.cli(*remedy_of(found[0])).stdout
    expect("gateway" in said, f"the price is said: {said}")
    expect_equal(stored("/calico/"), calicos, "all of Calico's is as it was")
    expect_equal(stored(key), {}, "what was damaged is gone")
    rig.cli("check")
    expect("none" in rig.cli("pool", "list").stdout, "without a gateway")
    expect(isinstance(rig.add("c4"), str), "an ADD")
    expect_equal(rig.call("DEL", "c4", pools=False)[0], 0, "DEL")
    # As docs/runbooks/damaged-records.md says; agents that run notice it.
    with rig.agent("node-a") as (socket_path, _log):
        def gateway_of(container):
            code, answer = rig.call("ADD", container, pools=False, agent=socket_path)
            expect_equal(code, 0, f"an ADD by the agent: {answer}")
            expect_equal(rig.call("DEL", container, pools=False, agent=socket_path)[0], 0, "its DEL")
            return answer["ips"][0].get("gateway")

        expect_equal(gateway_of("c5"), None, "the gateway, before")
        server.put(key, '{"v":1,"cidr":"10.79.0.0/24","gateway":"10.79.0.1","cooldownSeconds":600}')
        expect_equal(stored(key)[key], good, "written anew")
        wait_for(lambda: gateway_of("c6") == "10.79.0.1", "the agent to see what was put back")
    rig.cli("check")
    say("beside a pool: ok")

    # Beside a block, also while an agent has it in its memory.
    key = next(key for key in stored("/croft/v1/beside/block/")
               if json.loads(stored(key)[key])["cooling"][0]["previousHandle"].startswith("net.c3"))
    name = key.removeprefix("/croft/v1/beside/block/")
    calicos = stored("/calico/")
    good = damage(key)
    found = findings()
    subjects = [finding["subject"] for finding in found]
    expect_equal(subjects, [f"block_beside {name}"], f"one finding: {found}")
    expect(key in found[0]["evidence"] and "is whole" in found[0]["evidence"], f"what is damaged, and what is not: {found}")
    expect("given out at once" in found[0]["remedy"], f"what it costs: {found}")
    for more in ((), ("--force",)):
        refused = rig.cli("record", "remove", "block", name, *more, codes=(5,))
        expect(f"record remove block_beside {name}" in refused.stderr, f"the one to remove: {refused.stderr}")
    expect_equal(stored("/calico/"), calicos, "all of Calico's is as it was")
    with rig.agent("node-a") as (socket_path, log):
        expect_equal(rig.call("ADD", "c1", pools=False, agent=socket_path)[1].get("code"), 101, "its holder asks again")
        command = remedy_of(found[0])
        expect_equal(command, ["record", "remove", "block_beside", name, "--force"], "the remedy")
        rig.cli(*command[:-1], codes=(5,))
        rig.cli(*command)
        expect_equal(stored("/calico/"), calicos, "all of Calico's is as it was")
        expect_equal(stored(key), {}, "what was damaged is gone")
        code, answer = rig.call("ADD", "c1", pools=False, agent=socket_path)
        expect_equal(code, 0, f"the agent gives its holder the same: {answer}; {log.read_text()}")
        expect("via=agent" in rig.log.read_text().splitlines()[-1], "served by the agent")
    rig.cli("check")
    expect_equal(in_use(), held, "who held an address holds it")
    # The node's blocks of lower addresses come first.
    for i in range(60):
        if rests in held:
            break
        address = rig.add(f"d{i}")
        expect(address not in held, f"{address} of {held.get(address)} is given to d{i}")
        held[address] = f"d{i}"
    expect(rests in held, "what rested is given out: that is the price")

    # What of Calico's is damaged itself goes as ever, and what is beside it.
    calicos = next(key for key in stored("/calico/ipam/v2/assignment/") if name.split("/")[1] in key)
    server.put(calicos, "{")
    server.put(key, good[:-2])
    found = findings()
    expect("record remove block " not in json.dumps(found), f"pods may live in the block itself: {found}")
    rig.cli("record", "remove", "block", name, "--force")
    expect_equal((stored(calicos), stored(key)), ({}, {}), "both are gone")
    say("beside a block: ok")


def escapes(world):
    """Escape sequences by every channel there is."""
    evil = "\x1b[2J\x07\u202e\u009b31m\x7f"
    rig = Rig(world, "escapes", f"sqlite:{world.directory}/escapes/croft.db")
    # Variables, configuration, arguments.
    rig.call("ADD", "c3", ifname="eth\x1b[2J")
    rig.call("ADD", "c\x1b]0;x")
    rig.call("ADD", "c4", CNI_ARGS="K8S_POD_NAME=\x1b[31m;K8S_POD_NAMESPACE=\u202eabc")
    rig.call("ADD", "c5", node="node\x1b[1m")
    rig.call("DEL", "c5", node=evil)
    host_local = subprocess.run(
        [world.bin / "host-local"], capture_output=True, check=False, env={
            "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c1", "CNI_NETNS": "/x", "CNI_IFNAME": evil, "CNI_PATH": "/x"},
        input=json.dumps({"cniVersion": "1.0.0", "name": "n", "ipam": {"type": "host-local", "dataDir": str(
            world.directory / "hl"), "subnet": evil}}).encode()) if (world.bin / "host-local").exists() else None
    if host_local:
        expect_plain("host-local", host_local.stdout + host_local.stderr)
    # The command line's own arguments, and what a damaged record says.
    write_past_croft(rig.store, ("INSERT INTO records(kind,name,revision,token,checksum,value) VALUES(?,?,1,?,0,?)",
                                 (POOL, "p" + evil, bytes(16), evil.encode())))
    reports = world.directory / "report.json"
    reports.write_text(json.dumps({"findings": [{"subject": evil, "remedy": evil}]}))
    facts = world.directory / "facts.json"
    facts.write_text(json.dumps({"nodes": [evil]}))
    directory = world.directory / "cbr0"
    directory.mkdir()
    (directory / "10.0.0.5").write_bytes(b"c1\x1b[2J\r\neth0\xc2\x9b31m")
    (directory / f"10.0.0.6{evil}".replace("/", "")).write_bytes(b"x")
    for arguments in (("pool", "list"), ("pool", "list", "-o", "json"), ("pool", "list", "-o", "yaml"), ("ip", "list"),
                      ("ip", "list", "-o", "wide"), ("check",), ("pool", "show", evil), ("ip", "show", evil),
                      (evil,), ("ip", "release", "--from-report", str(reports)), ("block", "show", evil),
                      ("node", "label", "n" + evil, "a=b"), ("node", "label", "node-a", "a" + evil + "=b" + evil),
                      ("host-local", "check", "--dir", str(directory)), ("host-local", "list", "--dir", str(directory)),
                      ("host-local", "list", "--dir", str(directory), "-o", "json"),
                      ("host-local", "check", "--dir", str(directory), "-o", "yaml"), ("service", "list"),
                      ("service", "create", evil), ("explain", "--node", evil)):
        done = subprocess.run([world.bin / "croft", "--store", rig.store, *arguments], capture_output=True, check=False)
        expect_plain(f"croft {arguments!r} stdout", done.stdout)
        expect_plain(f"croft {arguments!r} stderr", done.stderr)
        if "json" in arguments and done.stdout:
            json.loads(done.stdout)
    for arguments in (("controller", "--once", "--grace", "1ms"),
                      ("controller", "--once", "--grace", "1ms", "--facts", str(facts)), (evil,)):
        done = subprocess.run([world.bin / "croftd", *arguments], capture_output=True, check=False,
                              env={**os.environ, "CROFT_STORE": rig.store})
        expect_plain(f"croftd {arguments!r}", done.stdout + done.stderr)
    expect_plain("the plugin's log", rig.log.read_bytes())
    say("escapes: ok")


def test():
    with World("damaged-records", sys.argv[1]) as world:
        sqlite(world)
        escapes(world)
        etcd(world)
        beside_calicos(world)


if __name__ == "__main__":
    main(test)
