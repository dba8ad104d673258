"""croft-ipam on a cluster of three etcd members while members, connections and answers are lost.

usage: etcd_cluster.py BIN_DIR quick|full|FAULT[+FAULT]... [SEED]

Workers add and delete without pause, in a pool that is full at times. A run: traffic, a fault (or two at once), its end, traffic
again; then everybody's last calls succeed, and history.py judges what the workers saw and every revision that etcd has kept.
"""

import collections
import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time

import etcd_cluster_lib as faults
import history as checks
from etcd_cluster_lib import Cluster, Network
from lib import (Failure, call_environment, expect, expect_equal, ipam_config, main, require_network_namespaces,
                 require_programs, say, wait_for)

POOLS = {"four": ("10.88.0.0/26", "29", 0), "six": ("fd88::/119", "124", 1)}
HELD_AT_FIRST, HELD_MAX = 9, 16  # of one worker; all together want more than there is
CALL_MAX = 60  # seconds; an ADD gives up after a fraction of that
TRY_AGAIN, FULL = 11, 100

# Pairs for `full`: one of the members' troubles, and beside it one of the connections'.
FIRST_OF_PAIR = ["kill_leader", "pause_leader", "cut_leader", "mute_leader", "cut_minority"]
SECOND_OF_PAIR = ["drop_replies", "compact", "reset_clients", "deafen_clients"]
PAIRS = 4
QUICK = [["kill_leader"], ["drop_replies"]]


class Worker(threading.Thread):
    """A node, whose calls come one after the other."""

    def __init__(self, run_, number, namespace, urls):
        super().__init__(name=f"node{number}")
        self.run_, self.namespace = run_, namespace
        self.store = "etcd:" + ",".join(urls)
        self.draw = random.Random(f"{run_.seed}-{number}")
        self.held, self.doubtful, self.gone = {}, [], []
        self.doubtful_deletes = set()
        self.number = 0
        self.filled, self.trouble = False, None

    def call(self, op, container, kill_after=None):
        """One call; its line of history. An answer that no fault excuses is a failure."""
        config = ipam_config(self.store, self.name, assign_ipv6=True)
        env = call_environment(self.run_.world, op, container, PATH=os.environ["PATH"],
                               CROFT_AGENT=str(self.run_.world.directory / "no-agent"))
        begin = self.run_.history.now()
        program = ["nsenter", f"--net={self.namespace.path}", self.run_.world.bin / "croft-ipam"]
        with subprocess.Popen(program, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            timer = threading.Timer(kill_after if kill_after is not None else CALL_MAX, process.kill)
            timer.start()
            try:
                out, err = process.communicate(config)
            finally:
                timer.cancel()
        line = {"worker": self.name, "op": op, "container": container, "begin": round(begin, 6),
                "end": round(self.run_.history.now(), 6), "addresses": []}
        if process.returncode == -9:
            line["outcome"], line["said"] = "unknown", "killed"
        elif process.returncode == 0:
            line["outcome"] = "ok"
            if op == "ADD":
                line["addresses"] = sorted(ip["address"].split("/")[0] for ip in json.loads(out)["ips"])
        else:
            answer = json.loads(out) if out.strip() else {}
            line["said"] = f"{answer.get('code')}: {answer.get('msg')} {answer.get('details', '')}"
            line["outcome"] = "refused" if op == "ADD" and answer.get("code") == FULL else "unknown"
            expect(line["outcome"] == "refused" or answer.get("code") == TRY_AGAIN,
                   f"no fault explains this answer: exit {process.returncode}: {line}\n{out}{err}")
        self.run_.history.add(**line)
        expect(process.returncode != -9 or kill_after is not None, f"{CALL_MAX} s were not enough: {line}")
        expect(not err.strip(), f"{line}: it said: {err}")
        return line

    def add(self, container, kill_after=None):
        line = self.call("ADD", container, kill_after)
        if line["outcome"] == "ok":
            expect_equal(len(line["addresses"]), 2, f"both families or none: {line}")
            self.held[container] = line["addresses"]
            if container in self.doubtful:
                self.doubtful.remove(container)
        elif line["outcome"] == "unknown" and container not in self.held and container not in self.doubtful:
            self.doubtful.append(container)
        return line

    def delete(self, container):
        line = self.call("DEL", container)
        self.held.pop(container, None)
        if container in self.doubtful:
            self.doubtful.remove(container)
        if line["outcome"] == "ok":
            self.gone.append(container)
        else:
            # Only another DEL may follow: an ADD could be answered before the DEL that is on its way arrives.
            self.doubtful_deletes.add(container)
        return line

    def new_container(self):
        self.number += 1
        return f"{self.name}-{self.number}"

    def step(self):
        """One call of the workload, by chance."""
        chance = self.draw.random()
        if self.doubtful_deletes and chance < 0.5:
            container = self.draw.choice(sorted(self.doubtful_deletes))
            self.doubtful_deletes.remove(container)
            self.delete(container)
        elif self.doubtful and chance < 0.5:
            # What a runtime does after an error: ask again, or give up.
            container = self.draw.choice(self.doubtful)
            if self.draw.random() < 0.5:
                self.add(container)
            else:
                self.delete(container)
        elif self.held and chance < 0.58:
            self.add(self.draw.choice(sorted(self.held)))
        elif self.gone and chance < 0.66:
            self.delete(self.draw.choice(self.gone[-20:]))
        elif self.held and (len(self.held) >= HELD_MAX or chance < 0.71 + 0.15 * len(self.held) / HELD_MAX):
            self.delete(self.draw.choice(sorted(self.held)))
        elif chance > 0.97:
            self.add(self.new_container(), kill_after=self.draw.uniform(0, 0.05))
        else:
            self.add(self.new_container())

    def run(self):
        try:
            for _ in range(HELD_AT_FIRST):
                self.add(self.new_container())
            self.filled = True
            while not self.run_.over.is_set():
                self.step()
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = error

    def make_room(self):
        """Deletes half of what it holds, and all that is in doubt; every call must succeed."""
        for container in [*sorted(self.held)[::2], *self.doubtful, *sorted(self.doubtful_deletes)]:
            expect_equal(self.delete(container)["outcome"], "ok", f"after the fault: DEL {container}")
        self.doubtful_deletes.clear()

    def last_calls(self):
        for _ in range(2):
            container = self.new_container()
            line = self.add(container)
            expect_equal(line["outcome"], "ok", f"after the fault: {line}")
            expect_equal(self.add(container)["addresses"], line["addresses"], "asked again, the same")
        expect_equal(self.delete(container)["outcome"], "ok", f"after the fault: DEL {container}")


class Run:
    """One cluster, one fault or several at once."""

    def __init__(self, world, network, names, seed, seconds):
        self.world, self.network, self.names, self.seed, self.seconds = world, network, names, seed, seconds
        self.history = checks.History()
        self.over = threading.Event()
        self.marks = {}
        self.capacity = 0  # of the IPv4 pool, the small one without a cooldown

    def croft(self, cluster, *arguments, check=True):
        store = "etcd:" + ",".join(m.url for m in cluster.members)
        return self.network.hub.run(self.world.bin / "croft", "--store", store, "-o", "json", *arguments, check=check)

    def held(self, cluster):
        """Addresses by container, as the register has them."""
        held = collections.defaultdict(list)
        for row in json.loads(self.croft(cluster, "ip", "list").stdout):
            if row["state"] == "held":
                held[row["containerId"]].append(row["address"])
        return {container: sorted(addresses) for container, addresses in held.items()}

    def workers(self, cluster):
        urls, clients, others = cluster.urls(), self.network.clients, self.network.others
        where = [(clients, urls), (clients, urls), (others, urls), *((clients, [url]) for url in urls)]
        return [Worker(self, number, namespace, some) for number, (namespace, some) in enumerate(where, 1)]

    def mark(self, name):
        self.marks[name] = self.history.now()

    def rate(self, begin, end):
        """(calls that succeeded, all calls) that ended between two marks."""
        calls = [c for c in self.history.calls if self.marks[begin] <= c["end"] < self.marks[end]]
        return sum(c["outcome"] == "ok" for c in calls), len(calls)

    def traffic(self, cluster, workers, draw):
        before, during, after = self.seconds
        for worker in workers:
            worker.start()
        try:
            wait_for(lambda: all(w.filled or w.trouble for w in workers), "every node holds addresses", 60)
            self.mark("start")
            time.sleep(before)
            self.mark("fault")
            with contextlib.ExitStack() as active:
                for name in self.names:
                    active.enter_context(getattr(faults, name)(cluster, draw))
                time.sleep(during)
            cluster.wait_until_healthy()
            self.mark("healed")
            time.sleep(after)
        finally:
            self.over.set()
            for worker in workers:
                worker.join()
            self.mark("end")
        for worker in workers:
            if worker.trouble:
                raise worker.trouble

    def __call__(self):
        draw = random.Random(self.seed)
        quota = faults.NO_SPACE_QUOTA if "no_space" in self.names else None
        with Cluster(self.world, self.network, quota) as cluster:
            for name, (cidr, block_size, cooldown) in POOLS.items():
                self.croft(cluster, "pool", "create", name, "--cidr", cidr, "--block-size", block_size,
                           "--cooldown-seconds", str(cooldown))
            pool, = json.loads(self.croft(cluster, "pool", "show", "four").stdout)
            self.capacity = pool["usage"]["free"]
            if "drop_replies" in self.names:
                cluster.start_relays(self.seed)
            workers = self.workers(cluster)
            self.traffic(cluster, workers, draw)
            for worker in workers:
                worker.make_room()
            for worker in workers:
                worker.last_calls()
            self.check(cluster, workers)

    def check(self, cluster, workers):
        wrong = [*checks.overlapping_holds(self.history, cooldown_of), *checks.changed_answers(self.history),
                 *checks.untrue_refusals(self.history, self.capacity, "no IPv4 address")]
        late = self.check_register(cluster)
        wrong += self.release_all(cluster, workers, late)
        self.check_members_agree(cluster)
        replayed = "compacted"
        if not cluster.compacted:
            replay = checks.Replay(cluster.all_events())
            wrong += replay.flaws + checks.never_stored(self.history, replay, lambda c: f"net.{c}")
            replayed = f"{replay.versions} versions of blocks in {replay.revisions} revisions"
        if wrong:
            raise Failure(f"{len(wrong)} violations, the first:\n  " + "\n  ".join(wrong[:20]))
        self.report(replayed, len(late))

    def check_register(self, cluster):
        """Everybody's addresses are there, and nobody else's. Answers the containers that hold some although their
        DEL was acknowledged, because an ADD that was in doubt before it arrived after it."""
        certain, maybe = checks.expected_holders(self.history)
        held = self.held(cluster)
        for container, addresses in certain.items():
            expect_equal(held.get(container), addresses, f"addresses of {container}, whose ADD was acknowledged")
        late = held.keys() - certain.keys()
        expect(late <= maybe, f"held without reason: { {c: held[c] for c in late - maybe} }")
        return late

    def release_all(self, cluster, workers, late):
        for worker in workers:
            for container in [*sorted(worker.held), *(c for c in sorted(late) if c.startswith(worker.name + "-"))]:
                expect_equal(worker.delete(container)["outcome"], "ok", f"the last DEL of {container}")
        expect_equal(self.held(cluster), {}, "held after everything was released")
        found = self.croft(cluster, "check", check=False)
        expect_equal(found.returncode, 0, f"croft check: {found.stdout}{found.stderr}")
        left = cluster.ctl("get", "--prefix", "--keys-only", checks.HANDLES).stdout.split()
        return [f"handles are left: {left}"] if left else []

    def check_members_agree(self, cluster):
        def same():
            contents = [cluster.contents(member) for member in cluster.members]
            return contents[0] == contents[1] == contents[2] and contents[0]
        wait_for(same, "all members have the same content", 30)

    def report(self, replayed, late):
        parts = []
        for begin, end in (("start", "fault"), ("fault", "healed"), ("healed", "end")):
            succeeded, calls = self.rate(begin, end)
            expect(succeeded > 0 or begin == "fault", f"nothing succeeded from {begin} to {end}")
            parts.append(f"{succeeded}/{calls} in {self.marks[end] - self.marks[begin]:.0f} s")
        outcomes = collections.Counter(c["outcome"] for c in self.history.calls)
        longest = max(c["end"] - c["begin"] for c in self.history.calls)
        say(f"{'+'.join(self.names)}: succeeded before {parts[0]}, during {parts[1]}, after {parts[2]}; "
            f"refused {outcomes['refused']}, unknown {outcomes['unknown']}, longest {longest:.1f} s, late ADDs {late}; "
            + replayed)


def cooldown_of(address):
    return POOLS["six" if ":" in address else "four"][2]


def plan(mode, draw):
    """The runs, each a list of faults at once."""
    if mode == "quick":
        return QUICK
    if mode == "full":
        pairs = draw.sample([[a, b] for a in FIRST_OF_PAIR for b in SECOND_OF_PAIR], PAIRS)
        return [[fault.__name__] for fault in faults.FAULTS] + pairs
    names = mode.split("+")
    known = {fault.__name__ for fault in faults.FAULTS}
    if not set(names) <= known:
        raise Failure(f"no such fault: {mode}; there are: {', '.join(sorted(known))}")
    return [names]


def test(world):
    require_programs("etcd", "etcdctl", "iptables", "iptables-save", "ip", "tc")
    require_network_namespaces()
    mode, seed = sys.argv[2], int((*sys.argv[3:], 1)[0])
    network = Network(world)
    for number, names in enumerate(plan(mode, random.Random(seed))):
        try:
            Run(world, network, names, seed + number, (4, 3, 4) if mode == "quick" else (10, 6, 10))()
        except Exception as error:
            raise Failure(f"{'+'.join(names)} with the seed {seed}: {error}") from error


main(test, 150 if sys.argv[2] == "quick" else 1700)
