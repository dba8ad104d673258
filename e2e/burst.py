"""Many plugins at once on one node, through one agent or alone: one address each, few commits, and nothing lost when
the agent dies."""

import random
import subprocess
import threading
import time

from etcd_lib import Etcd
from lib import address_of, call_environment, expect, expect_equal, finish, ipam_config, main, say, start_agent, wait_for, wait_for_agents_memory

NODE = "node-a"
PODS = 110
SEED = 20261123


class Burst:
    """A store, an agent on it that comes and goes, and plugins that all begin at the same moment."""

    def __init__(self, world, store):
        self.world, self.store = world, store
        self.socket = world.directory / "run" / "agent.sock"
        self.socket.parent.mkdir(exist_ok=True)
        self.log = world.directory / "ipam.log"
        world.pool(store, "a", "10.81.0.0/20", "--block-size", "26")

    def agent(self, *more):
        agent = start_agent(self.world, self.store, NODE, self.socket, *more)
        wait_for_agents_memory(self.world, self.socket)
        return agent

    def status(self):
        return self.world.croft(self.store, "agent", "status", "--socket", self.socket)[0]

    def start(self, command, container, agent=None):
        config = ipam_config(self.store, NODE, log_file_path=str(self.log), agent=str(agent or self.socket))
        process = subprocess.Popen([self.world.bin / "croft-ipam"], env=call_environment(self.world, command, container),
                                   text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return process, config

    def together(self, calls):
        """All processes are there before the first of them is told what to do. The answers in order; all succeed."""
        started = [self.start(*call) for call in calls]
        for process, config in started:
            process.stdin.write(config)
            process.stdin.close()
            process.stdin = None
        answers = []
        for (process, _), call in zip(started, calls):
            code, answer, err = finish(process)
            expect_equal((code, err), (0, ""), f"{call}: {answer}")
            answers.append(answer and address_of(answer))
        return answers

    def add(self, names):
        addresses = self.together([("ADD", name) for name in names])
        expect_equal(len(set(addresses)), len(names), "distinct addresses")
        return dict(zip(names, addresses))

    def delete(self, names):
        self.together([("DEL", name) for name in names])

    def sound(self, held):
        """The register says what the plugins were told, and nothing else."""
        recorded = self.world.held(self.store)
        expect_equal(sorted(recorded), sorted(held.values()), "held")
        self.world.croft(self.store, "check")


def alone(burst):
    """Lone plugins add at once, then delete at once."""
    names = [f"s{i}" for i in range(64)]
    for _ in range(3):
        addresses = burst.together([("ADD", name, "none") for name in names])
        expect_equal(len(set(addresses)), len(names), "distinct addresses")
        burst.sound(dict(zip(names, addresses)))
        burst.together([("DEL", name, "none") for name in names])
        burst.sound({})
    say(f"3 times {len(names)} alone at once: distinct addresses, no error, all given back")


def at_once(burst, count_commits):
    with burst.agent():
        names = [f"pod-{i}" for i in range(PODS)]
        for _ in range(2):
            before = count_commits()
            held = burst.add(names)
            commits = count_commits() - before
            burst.sound(held)
            # One after the other it would be as many as there are pods. How many gather while a commit is under way
            # depends on the machine.
            expect(commits <= PODS // 2, f"{commits} commits for {PODS} pods")
            say(f"{PODS} plugins at once: {commits} commits")
            burst.delete(names)
            burst.sound({})
        status = burst.status()
        expect(int(status["servedFromCache"]) > 3 * PODS, f"the memory hardly ever served: {status}")
        expect_equal(status["failed"], "0", "calls that failed")


def killed_in_a_burst(burst):
    """kill -9 somewhere in a burst: who was not answered goes alone, and nobody gets what another has."""
    chance = random.Random(SEED)
    for turn in range(4):
        names = [f"k{turn}-{i}" for i in range(48)]
        with burst.agent() as agent:
            killer = threading.Timer(chance.uniform(0.0, 0.12), agent.kill)
            killer.start()
            held = burst.add(names)
            killer.join()
        burst.sound(held)
        with burst.agent() as agent:
            killer = threading.Timer(chance.uniform(0.0, 0.12), agent.kill)
            killer.start()
            burst.delete(names)
            killer.join()
        burst.sound({})
    say(f"4 agents killed in bursts of ADDs and 4 in bursts of DELs (seed {SEED}): nothing lost, nothing held twice")


def with_lone_plugins(burst):
    """Others write the same block in the middle of the batches."""
    with burst.agent():
        for turn in range(2):
            calls = [("ADD", f"l{turn}-{i}", "none" if i % 5 == 0 else None) for i in range(60)]
            addresses = burst.together(calls)
            expect_equal(len(set(addresses)), len(calls), "distinct addresses")
            burst.sound(dict(zip((name for _, name, _ in calls), addresses)))
            burst.together([("DEL", name, via) for _, name, via in calls])
            burst.sound({})
        # Of one container by both ways at once: one address.
        for i in range(10):
            both = burst.together([("ADD", f"same-{i}"), ("ADD", f"same-{i}", "none"), ("ADD", f"same-{i}")])
            expect_equal(len(set(both)), 1, "one owner, one address")
            burst.together([("DEL", f"same-{i}"), ("DEL", f"same-{i}", "none")])
        burst.sound({})
    say("beside lone plugins on the same block: one address each, and one for each owner")


def claims_ahead(burst):
    """The next block is there before it is needed, and goes when nobody uses it."""
    with burst.agent("--claim-ahead-hold-seconds", "2"):
        names = [f"a{i}" for i in range(60)]
        held = burst.add(names)
        wait_for(lambda: len(burst.world.croft(burst.store, "block", "list")) == 2, "a second block, ahead of need")
        burst.sound(held)
        wait_for(lambda: len(burst.world.croft(burst.store, "block", "list")) == 1, "it is given back unused")
        more = burst.add(["one-more"])  # and is claimed again when there is reason
        wait_for(lambda: int(burst.status()["blocksAhead"]) == 1, "a block ahead again")
        used = burst.add([f"b{i}" for i in range(10)])
        time.sleep(3)
        expect_equal(len(burst.world.croft(burst.store, "block", "list")), 2, "what is used stays")
        burst.sound({**held, **more, **used})
        burst.delete([*names, "one-more", *used])
    burst.sound({})
    say("a block is claimed ahead, given back unused, and kept when it is used")


def test(world):
    etcd = Etcd(world)
    burst, on_etcd = Burst(world, world.store()), Burst(world, etcd.store)
    alone(burst)
    for one, commits in ((burst, lambda: int(burst.status()["commits"])), (on_etcd, lambda: etcd.requests().get("Txn", 0))):
        at_once(one, commits)
        killed_in_a_burst(one)
        with_lone_plugins(one)
    claims_ahead(Burst(world, world.store("ahead")))


main(test)
