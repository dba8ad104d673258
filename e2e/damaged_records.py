"""Damaged records, one by one: what rests on the record fails and names it, all else goes on, also the collector. No root.

usage: damaged_records.py BIN_DIR
"""

import collections
import json
import os
import subprocess
import sys
import time

from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, own_environment, run, say, start_agent, write_past_croft

POOLS = [{"name": name, "cidr": cidr, "blockSize": 29, "cooldownSeconds": 0}
         for name, cidr in (("a", "10.79.0.0/24"), ("b", "10.80.0.0/24"))]
A, B = "10.79.0.", "10.80.0."
CALICO, RESOURCES, BESIDE = "/calico/ipam/v2/", "/calico/resources/v3/projectcalico.org/", "/croft/v1/beside/"

# One damaged record, by its kind's number (docs/formats/records.md) and name in sqlite and its key in etcd; how errors and
# `croft check` call it; where a new address on node-a comes from (None: it is refused); the codes of c1's next ADD and DEL.
# BLOCK is that of c1.
Row = collections.namedtuple("Row", "what sqlite etcd named gives add delete", defaults=(A, 0, 0))

ROWS = [
    Row("pool", (0, "a"), RESOURCES + "ippools/a", "pool a", B, 101),
    Row("reservation of a pool", (1, "pool-a"), None, "reservation pool-a", B),
    Row("any other reservation", (1, "gateways"), RESOURCES + "ipreservations/gateways", "reservation gateways", None),
    Row("configuration", (2, "default"), CALICO + "config", "ipam_config default"),
    Row("block", (3, "ipv4/BLOCK"), CALICO + "assignment/ipv4/block/BLOCK", "block BLOCK", A, 101, 101),
    Row("affinity", (4, "host/node-a/ipv4/BLOCK"), CALICO + "host/node-a/ipv4/block/BLOCK", "affinity host/node-a/ipv4/BLOCK"),
    Row("handle", (5, "net.c1"), CALICO + "handle/net.c1", "handle net.c1", A, 101, 101),
    Row("high-water mark", (8, "ipv4/10.79.0.248/29"), None, "high_water_mark ipv4/10.79.0.248/29"),
    Row("node", (10, "node-a"), RESOURCES + "nodes/node-a", "node node-a"),
    # What Croft keeps beside Calico's records: gateway, cooldown, addresses that rest.
    Row("beside a pool", None, BESIDE + "pool/a", "pool a", B, 101),
    Row("beside a block", None, BESIDE + "block/ipv4/BLOCK", "block_beside ipv4/BLOCK", A, 101, 101),
]


class Rig:
    """c1 on node-a, c2 on node-b in pool b, c3 on a node that no list has; `lost` on node-b is of a pod that is gone."""

    def __init__(self, world, name, store):
        self.world, self.store, self.log = world, store, world.directory / f"{name}.log"
        self.held = {pod: self.add(pod, node, pools=POOLS, ipv4_pools=[pool]) for pod, node, pool in
                     (("c1", "node-a", "a"), ("c2", "node-b", "b"), ("lost", "node-b", "b"), ("c3", "node-x", "b"))}
        self.block = world.held(store)[self.held["c1"]]["block"]

    def call(self, command, container, node="node-a", agent="none", **more):
        config = {"cniVersion": "1.1.0", "name": "net", "ipam": {
            "type": "croft-ipam", "store": self.store, "nodename": node, "agent": str(agent), "log_file_path": str(self.log), **more}}
        done = run(self.world.bin / "croft-ipam", check=False, stdin=json.dumps(config), env={
            **own_environment(self.world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container,
            "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": str(self.world.bin),
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME={container}"})
        return json.loads(done.stdout) if done.stdout else {}

    def add(self, container, node="node-a", **more):
        answer = self.call("ADD", container, node, **more)
        return answer["ips"][0]["address"].split("/")[0] if "ips" in answer else answer

    def cli(self, *arguments, codes=(0,)):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect(done.returncode in codes, f"croft {arguments}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def collect(self):
        """What two looks free."""
        facts = self.world.directory / "facts.json"
        facts.write_text(json.dumps({"nodes": [{"name": "node-a"}, {"name": "node-b"}], "complete": True, "pods": [
            {"namespace": "ns", "name": pod, "node": "node-a", "phase": "Running", "addresses": [self.held[pod]]}
            for pod in ("c1", "c2", "c3")]}))
        command = [self.world.bin / "croftd", "controller", "--store", self.store, "--facts", facts, "--grace", "1s", "--once"]
        process = subprocess.Popen([*command, "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while process.poll() is None:
            os.utime(facts)
            time.sleep(0.05)
        return [one["subject"] for one in json.loads(process.stdout.readlines()[-1])["released"] if one["what"] == "address"]

    def goes_on(self, row):
        name = row.named.replace("BLOCK", self.block)
        expect_equal(self.call("ADD", "c2", "node-b").get("code", 0), 0, f"{row.what}: another owner asks again")
        self.log.write_text("")
        given = self.add("new")
        expect(self.log.read_text().count("DAMAGED") <= 1, f"{row.what}: named once in a call: {self.log.read_text()}")
        expect(given.startswith(row.gives) if row.gives else given["code"] == 101 and "gateways" in given["msg"],
               f"{row.what}: a new ADD: {given}")
        expect_equal(self.call("DEL", "new"), {}, f"{row.what}: its DEL")
        expect_equal(self.call("STATUS", ""), {}, f"{row.what}: no node becomes unready")
        for command in ("ip", "block", "pool", "node"):
            said = self.cli(command, "list").stderr
            expect(said.count("set aside") <= 1, f"{row.what}: {command} list names it once: {said}")
        found = [one for one in json.loads(self.cli("check", "-o", "json", codes=(3,)).stdout) if one["subject"] == name]
        expect(len(found) == 1 and found[0]["remedy"], f"{row.what}: check names it once: {found}")
        expect_equal(self.collect(), [self.held["lost"]], f"{row.what}: what the collector frees")
        expect_equal(self.call("ADD", "c1").get("code", 0), row.add, f"{row.what}: its owner asks again")
        expect_equal(self.call("DEL", "c1").get("code", 0), row.delete, f"{row.what}: its owner's DEL")
        say(f"{row.what}: ok")


def on_sqlite(world):
    for row in (row for row in ROWS if row.sqlite):
        rig = Rig(world, "sqlite", world.store(row.what.replace(" ", "-")))
        where = (row.sqlite[0], row.sqlite[1].replace("BLOCK", rig.block))
        write_past_croft(rig.store, ("DELETE FROM records WHERE kind=? AND name=?", where), (
            "INSERT INTO records(kind,name,revision,token,checksum,value) VALUES(?,?,1,?,0,?)", (*where, bytes(16), b"{")))
        rig.goes_on(row)


def on_etcd(world):
    etcd = Etcd(world)
    for row in (row for row in ROWS if row.etcd):
        etcd.ctl("del", "--prefix", "")
        rig = Rig(world, "etcd", etcd.store)
        key = row.etcd.replace("BLOCK", rig.block if row.etcd.startswith(BESIDE) else rig.block.replace("/", "-"))
        etcd.put(key, "{")
        calicos = etcd.get("/calico/resources/")
        rig.goes_on(row)
        expect_equal(etcd.get(key), {key: "{"}, f"{row.what}: left as it is")
        expect_equal(etcd.get("/calico/resources/"), calicos, f"{row.what}: nothing of Calico's is written over")
        if key.startswith(BESIDE):
            rig.cli("record", "remove", *row.named.replace("BLOCK", rig.block).split(), "--force")
            expect_equal(etcd.get("/calico/resources/").keys(), calicos.keys(), f"{row.what}: removed alone")
            expect(rig.add("c1").startswith(A), f"{row.what}: the pool gives again")


def by_an_agent(world):
    """It serves from the other pool, and names the damaged one once."""
    rig = Rig(world, "agent", world.store("agent"))
    write_past_croft(rig.store, ("UPDATE records SET value=? WHERE kind=0 AND name='a'", (b"{",)))
    socket = world.directory / "agent.sock"
    start_agent(world, rig.store, "node-a", socket)
    for i in range(12):
        given = rig.add(f"e{i}", agent=socket)
        expect(isinstance(given, str) and given.startswith(B), f"by the agent: {given}")
    expect("via=agent" in rig.log.read_text().splitlines()[-1], "served by the agent")
    expect_equal(rig.call("DEL", "c1", agent=socket), {}, "a DEL of an address of the damaged pool")
    expect_equal((world.directory / "agent.log").read_text().count("record pool a "), 1, "named once")


def test():
    with World("damaged-records", sys.argv[1]) as world:
        on_sqlite(world)
        on_etcd(world)
        by_an_agent(world)


main(test)
