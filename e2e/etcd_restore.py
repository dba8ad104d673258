"""etcd is put back to an older state under a running agent, as docs/runbooks/backup-and-restore-etcd.md says.

usage: etcd_restore.py BIN_DIR case|storm [ROUNDS [SEED]]

case: until `croft store new-epoch` everything is refused but what only looks; then revisions repeat with other contents (A-B-A), what
a lone plugin was acknowledged stays, and a disabled pool is not served from memory. storm: workers through two agents and past them,
while etcd is put back to states that it had; history.py judges what was seen since the last restore.
"""

import itertools
import json
import random
import sys
import threading
import time

import history as checks
from agent_etcd import NodeWithAgent, agent_of
from etcd_lib import Etcd, Node
from lib import expect, expect_equal, main, run, say, wait_for


def etcd_with_pool(world, cidr, block_length=26):
    etcd = Etcd(world)
    world.pool(etcd.store, "a", cidr, "--block-size", f"{block_length}")
    return etcd


def revision(etcd):
    return json.loads(etcd.ctl("get", "none", "-w", "json").stdout)["header"]["revision"]


def begin_epoch(etcd):
    """Step 6 of the runbook."""
    etcd.world.cli(etcd.store, "store", "new-epoch")


def alone(world, etcd, name):
    node = Node(world, etcd.store, name)
    node.ipam["agent"] = "none"
    return node


def plain(addresses):
    return sorted(a.split("/")[0] for a in addresses)


def acknowledged_adds_stay(world):
    """The agent commits a revision, the restore takes it back, a lone plugin commits another one of the same number."""
    etcd = etcd_with_pool(world, "10.81.0.0/24")
    agent = agent_of(world, etcd.store, "oak")
    oak, oak_alone = NodeWithAgent(world, etcd.store, agent, "oak"), alone(world, etcd, "oak")
    oak.warm(etcd)
    for behind in (1, 2, 3):
        snapshot, at = etcd.save("behind"), revision(etcd)
        for i in range(behind + 1):
            oak.add(f"lost-{behind}-{i}")
        before = revision(etcd)
        expect_equal(before, at + behind + 1, "each ADD is one revision")
        etcd.restore(snapshot)
        begin_epoch(etcd)
        acknowledged = {}
        for i in range(behind):
            container = f"new-{behind}-{i}"
            acknowledged[container] = plain(oak_alone.add(container))
        expect_equal(revision(etcd), before, "the revisions repeat")
        for i in range(3):
            acknowledged[f"later-{behind}-{i}"] = plain(oak.add(f"later-{behind}-{i}"))
        held = world.holders(etcd.store)
        for container, addresses in acknowledged.items():
            expect_equal(held.get(container), addresses, f"what {container} holds after a restore by {behind}")
        oak.warm(etcd)
    findings = world.croft(etcd.store, "check", check=False)
    expect(not findings, f"croft check: {findings}")
    agent.kill()
    etcd.kill()
    say("acknowledged ADDs stay after restores by one, two and three revisions")


def a_disabled_pool_is_not_served(world):
    """By a revision that the agent's watch believes to have seen; the block's own is older than the snapshot."""
    etcd = etcd_with_pool(world, "10.82.0.0/24")
    agent = agent_of(world, etcd.store, "oak")
    oak = NodeWithAgent(world, etcd.store, agent, "oak")
    oak.warm(etcd)
    snapshot = etcd.save("enabled")
    for i in range(5):
        alone(world, etcd, "elm").add(f"lost{i}")
    time.sleep(0.5)
    etcd.restore(snapshot)
    begin_epoch(etcd)
    run(world.bin / "croft", "--store", etcd.store, "pool", "disable", "a")
    # An agent that began anew before the pool was disabled hears of that as of any change: in a moment.
    tried = itertools.count()
    def is_refused():
        code, answer, _ = oak.finish(oak.start("ADD", f"after{next(tried)}"))
        expect(code == 0 or answer["code"] == 102, f"every pool is disabled: {answer}")
        return code != 0
    wait_for(is_refused, "a disabled pool gives nothing", 10)
    agent.kill()
    etcd.kill()
    say("a disabled pool is not served from memory after a restore")


def a_restored_etcd_is_refused_until_its_epoch_is_another(world):
    etcd = etcd_with_pool(world, "10.83.0.0/24")
    agent = agent_of(world, etcd.store, "oak")
    oak, elm = NodeWithAgent(world, etcd.store, agent, "oak"), alone(world, etcd, "elm")
    tombstones = world.directory / "tombstones"
    elm.env = {"CROFT_TOMBSTONES": str(tombstones)}
    kept = {"kept": plain(oak.add("kept")), "kept-too": plain(elm.add("kept-too"))}
    snapshot = etcd.save("refused")
    lost = {"lost": plain(oak.add("lost")), "lost-too": plain(elm.add("lost-too"))}
    etcd.restore(snapshot)
    for node, container in ((elm, "early"), (oak, "early-too"), (oak, "early-again")):
        code, answer, _ = node.finish(node.start("ADD", container))
        expect(code != 0 and answer["code"] == 11, f"{container}: {code} {answer}")
    expect("croft store new-epoch" in f"{answer}", f"{answer}")
    refused = run(world.bin / "croft", "--store", etcd.store, "pool", "disable", "a", check=False)
    expect(refused.returncode != 0 and "new-epoch" in refused.stderr, f"{refused}")
    # Step 5: who lives without being held. A DEL waits.
    held = world.holders(etcd.store)
    for container, addresses in kept.items():
        expect_equal(held.get(container), addresses, f"what {container} holds in the snapshot")
    expect(not set(lost) & set(held), f"{held}")
    elm.delete("lost-too")
    expect_equal(len(list(tombstones.glob("*.json"))), 1, "tombstones")
    begin_epoch(etcd)
    for number in range(3):
        kept[f"new{number}"] = plain((elm if number == 1 else oak).add(f"new{number}"))
    held = world.holders(etcd.store)
    for container, addresses in kept.items():
        expect_equal(held.get(container), addresses, f"what {container} holds")
    everybody = [address for addresses in held.values() for address in addresses]
    expect_equal(len(everybody), len(set(everybody)), "each address has one holder")
    agent.kill()
    etcd.kill()
    say("a restored etcd is refused until its epoch is another")


class Worker(threading.Thread):
    """Calls of one node, one after the other, while the gate is open; some nodes ask an agent."""

    def __init__(self, storm, number, node):
        super().__init__(name=f"worker{number}")
        self.storm, self.node = storm, node
        self.draw = random.Random(f"{storm.seed}-{number}")
        self.held, self.made, self.trouble = [], 0, None
        self.busy = threading.Lock()  # while a call is under way

    def call(self, op, container):
        storm = self.storm
        history, begin = storm.history, storm.history.now()
        code, answer, err = self.node.finish(self.node.start(op, container))
        line = {"worker": self.name, "op": op, "container": container, "begin": begin, "end": history.now(),
                "addresses": []}
        if code == 0:
            line["outcome"] = "ok"
            if op == "ADD":
                line["addresses"] = plain(ip["address"] for ip in answer["ips"])
        else:
            line["outcome"] = "refused" if op == "ADD" and answer and answer.get("code") == 100 else "unknown"
            expect(answer is not None and answer.get("code") in (11, 100), f"{line}: {code} {answer} {err}")
        if history is not storm.history:
            line["outcome"] = "unknown"  # it was answered by an etcd that is no more, or by the one after it
        storm.history.add(**line)
        return line

    def run(self):
        while not self.storm.over.is_set():
            if not self.storm.gate.wait(0.1):
                continue
            try:
                with self.busy:
                    if self.storm.gate.is_set():
                        self.step()
            except Exception as error:  # pylint: disable=broad-except
                self.trouble = error
                return

    def step(self):
        if self.held and (len(self.held) > 6 or self.draw.random() < 0.4):
            container = self.held.pop(self.draw.randrange(len(self.held)))
            if self.call("DEL", container)["outcome"] != "ok":
                self.held.append(container)
            return
        self.made += 1
        container = f"{self.name}-{self.made}"
        if self.call("ADD", container)["outcome"] != "refused":
            self.held.append(container)


class Storm:
    """Agents and lone plugins on two nodes, and an etcd that goes back now and then."""

    def __init__(self, world, seed, rounds):
        self.world, self.seed, self.rounds = world, seed, rounds
        self.draw = random.Random(f"storm-{seed}")
        self.history = checks.History()
        self.over, self.gate = threading.Event(), threading.Event()

    def run(self):
        world = self.world
        etcd = etcd_with_pool(world, "10.84.0.0/24", block_length=28)
        workers = []
        for number in range(8):
            name = f"node{number // 4}"
            if number % 4 == 0:
                agent = agent_of(world, etcd.store, name)
            # Two of four go past the agent of their node: they write what it remembers.
            node = NodeWithAgent(world, etcd.store, agent, name) if number % 2 == 0 else alone(world, etcd, name)
            workers.append(Worker(self, number, node))
        snapshots = [etcd.save("start")]
        for worker in workers:
            worker.start()
        try:
            for number in range(self.rounds):
                self.gate.set()
                time.sleep(0.8)
                snapshots.append(etcd.save(f"round{number}"))
                time.sleep(0.4)
                self.check(etcd, workers)
                self.gate.set()
                time.sleep(0.3)
                # In the midst of calls. Those that begin before it is over may be lost with the state that is gone.
                chosen = self.draw.choice(snapshots)
                snapshots = snapshots[:snapshots.index(chosen) + 1]
                etcd.restore(chosen)
                time.sleep(0.3)
                begin_epoch(etcd)
                self.history = checks.History()
                time.sleep(0.8)
                self.check(etcd, workers)
        finally:
            self.over.set()
            for worker in workers:
                worker.join()

    def check(self, etcd, workers):
        """What the workers saw since the last restore, against each other and against the register."""
        self.gate.clear()
        for worker in workers:
            expect(worker.busy.acquire(timeout=60), "a worker does not come back")
        try:
            for worker in workers:
                if worker.trouble:
                    raise worker.trouble
            held = self.world.holders(etcd.store)
            self.compare(held)
            self.history = checks.History()
            now = self.history.now()
            for container, addresses in held.items():
                self.history.add(worker="register", op="ADD", container=container, begin=now, end=now, outcome="ok",
                                 addresses=sorted(addresses))
            for worker in workers:
                worker.held = [c for c in held if c.startswith(worker.name + "-")]
        finally:
            for worker in workers:
                worker.busy.release()

    def compare(self, held):
        unsure = {c["container"] for c in self.history.calls if c["outcome"] == "unknown"}
        surely, gone = {}, set()
        for container, calls in self.history.by_container().items():
            if container in unsure:
                continue
            holds = checks.holds_of(calls)
            if holds and holds[-1][1] == checks.FOREVER:
                surely[container] = holds[-1][2]
            elif calls[-1]["op"] == "DEL":
                gone.add(container)
        for container, addresses in surely.items():
            expect_equal(sorted(held.get(container, [])), addresses, f"what {container} was acknowledged")
        for container in gone:
            expect(container not in held, f"{container} holds {held.get(container)} after its DEL")
        wrong = checks.overlapping_holds(self.history, lambda _: 0) + checks.changed_answers(self.history)
        expect(not wrong, "\n".join(wrong))
        done = sum(c["outcome"] == "ok" and c["worker"] != "register" for c in self.history.calls)
        expect(done > 0, f"no call was answered: {len(self.history.calls)}")
        say(f"{done} calls acknowledged, {len(surely)} containers surely hold addresses: as the register says")


def test(world):
    if sys.argv[2] == "case":
        a_restored_etcd_is_refused_until_its_epoch_is_another(world)
        acknowledged_adds_stay(world)
        a_disabled_pool_is_not_served(world)
    else:
        rounds, seed = (*sys.argv[3:], *("5", "1")[len(sys.argv) - 3:])
        Storm(world, seed, int(rounds)).run()


main(test, 850)
