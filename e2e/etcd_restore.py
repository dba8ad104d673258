"""etcd is put back to an older state under a running agent, as docs/runbooks/backup-and-restore-etcd.md says.

usage: etcd_restore.py BIN_DIR case|storm [ROUNDS [SEED]]

case: until `croft store new-epoch` everything is refused but what only looks; then revisions repeat with other contents (A-B-A), what
a lone plugin was acknowledged stays, and a disabled pool is not served from memory. storm: workers through two agents and past them,
while etcd is put back to states that it had; what was seen since the last restore is held against the register.
"""

import itertools
import json
import random
import sys
import time

from agent_etcd import NodeWithAgent, agent_of
from etcd_lib import Etcd, Node
from lib import expect, expect_equal, main, run, say, wait_for
from store_copy import Churn, Ledger


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


class Storm(Churn):
    """Pods of two nodes. Half of the calls go past the agent of their node: they write what it remembers."""

    workers, held_of_a_worker = 4, 7

    def __init__(self, world, etcd, seed):
        super().__init__(world, dict.fromkeys(("node0", "node1"), etcd.store), seed)
        self.agents = {name: agent_of(world, etcd.store, name) for name in self.stores}

    def call(self, name, command, container, chance):
        node = Node(self.world, self.stores[name], name)
        node.ipam["agent"] = str(self.agents[name].socket) if int(container.split("-")[1]) % 2 == 0 else "none"
        code, answer, err = node.finish(node.start(command, container))
        expect(code == 0 or answer and answer["code"] in (11, 100), f"{command} {container}: {code} {answer} {err}")
        return code, answer

    def end_of_round(self, store):
        """What was seen is held against the register, from which the next round goes on."""
        self.check()
        held, ledger = self.world.holders(store), self.ledger
        expect_equal({c: a for c, a in ledger.told.items() if held.get(c) != [a]}, {}, "what was acknowledged")
        expect_equal(ledger.gone & set(held), set(), "who holds an address after its DEL")
        expect(ledger.told, f"no call was answered: {ledger.refusals}")
        say(f"{len(ledger.told)} containers hold what they were told, {len(ledger.gone)} were deleted: as the register says")
        self.ledger, self.seed = Ledger(), self.seed + 100
        self.ledger.told = {container: address for container, (address,) in held.items()}
        for prefix, mine in self.holding.items():
            mine[:] = [container for container in held if container.startswith(prefix + "-")]


def storm(world, rounds, seed):
    etcd, dice = etcd_with_pool(world, "10.84.0.0/24", block_length=28), random.Random(seed)
    pods, snapshots = Storm(world, etcd, seed), [etcd.save("start")]
    for number in range(rounds):
        with pods:
            time.sleep(0.8)
            snapshots.append(etcd.save(f"round{number}"))
            time.sleep(0.4)
        pods.end_of_round(etcd.store)
        with pods:
            time.sleep(0.3)
            # In the midst of calls. Those that begin before it is over may be lost with the state that is gone.
            chosen = dice.choice(snapshots)
            snapshots = snapshots[:snapshots.index(chosen) + 1]
            etcd.restore(chosen)
            time.sleep(0.3)
            begin_epoch(etcd)
            pods.ledger = Ledger()
            time.sleep(0.8)
        pods.end_of_round(etcd.store)


def test(world):
    if sys.argv[2] == "case":
        a_restored_etcd_is_refused_until_its_epoch_is_another(world)
        acknowledged_adds_stay(world)
        a_disabled_pool_is_not_served(world)
    else:
        storm(world, *(int(word) for word in (*sys.argv[3:], *("5", "1")[len(sys.argv) - 3:])))


main(test, 850)
