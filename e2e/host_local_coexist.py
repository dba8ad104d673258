"""Old and new `host-local` binaries together on one data directory.

1. Workers call either program at once, on ranges that are often full, while somebody else takes the lock for short times: by a
   ledger no address has two owners, and at each checkpoint the files are exactly the ledger.
2. Large directories, where Croft keeps an index: what the old program does is seen at once, and each next address is the one that
   the algorithm of the reference gives (host_local_lib.py).

usage: host_local_coexist.py BIN_DIR [CALLS [SEED]]
"""

import contextlib
import ipaddress
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

from host_local_lib import NAMES, NETWORK, Binaries, Locked, contents, holder, leftovers, next_address, reservations, simple_config
from lib import Failure, expect, expect_equal, main, numbers_given, say

WORKERS = 8
ROUNDS = 4  # checkpoints
HOLDER = """
import fcntl, os, random, sys, time
chance = random.Random(int(sys.argv[1]))
files = [os.open(path, os.O_RDONLY | os.O_CREAT, 0o750) for path in sys.argv[2:]]
while True:
    file = chance.choice(files)
    fcntl.flock(file, fcntl.LOCK_EX)
    time.sleep(chance.uniform(0.001, 0.03))
    fcntl.flock(file, fcntl.LOCK_UN)
    time.sleep(chance.uniform(0.01, 0.15))
"""


class Network:
    """One network and what this process knows of it: the ledger."""

    def __init__(self, world, name, sets, per_worker, ballast=0):
        self.sets, self.per_worker = sets, per_worker
        self.folder = world.directory / name / NETWORK
        self.folder.mkdir(parents=True)
        self.config = json.dumps(simple_config(world.directory / name, sets))
        self.usable = [self.ring(s) for s in sets]
        self.live = {}  # address -> attachment; from the answer of ADD until DEL starts
        self.maybe = 0  # attachments that may hold addresses: from the start of ADD until the end of DEL
        self.watchers = {}  # by id; each sees the highest `maybe` of its time
        self.lock = threading.Lock()
        for i in range(ballast):  # held all the time: so many that Croft keeps an index
            for usable in self.usable:
                self.live[usable[i]] = (f"ballast{i}", "eth0")
                (self.folder / usable[i]).write_bytes(holder(f"ballast{i}").encode())
        self.maybe += ballast

    @staticmethod
    def ring(ranges):
        """Every address that the model hands out."""
        taken, last = set(), None
        while True:
            last = next_address(ranges, taken, last)
            if last is None:
                return sorted(taken)
            taken.add(last)

    def may_hold(self, change):
        with self.lock:
            self.maybe += change
            for watcher in self.watchers.values():
                watcher["most"] = max(watcher["most"], self.maybe)

    @contextlib.contextmanager
    def watch(self):
        with self.lock:
            watcher = {"most": self.maybe}
            self.watchers[id(watcher)] = watcher
        try:
            yield watcher
        finally:
            with self.lock:
                del self.watchers[id(watcher)]

    def answered(self, attachment, addresses):
        with self.lock:
            for address in addresses:
                if address in self.live:
                    raise Failure(f"{address} given to {attachment}, held by {self.live[address]}")
                self.live[address] = attachment

    def gives_up(self, addresses):
        with self.lock:
            for address in addresses:
                del self.live[address]


class Worker(threading.Thread):
    """Calls one after the other on attachments of its own."""

    def __init__(self, number, seed, networks, binaries):
        super().__init__(daemon=True)
        self.number, self.binaries = number, binaries
        self.chance = random.Random(seed * 1000 + number)
        self.networks = networks
        self.held = [{} for _ in networks]  # attachment -> addresses
        self.ops, self.counts, self.error = 0, {}, None

    def run(self):
        try:
            for _ in range(self.ops):
                self.one()
        except Exception as error:  # told by the main thread
            self.error = error

    def call(self, network, command, attachment, args=""):
        who = self.chance.choice(NAMES)
        answer = self.binaries.call(who, command, network.config, container=attachment[0], ifname=attachment[1],
                                    args=args)
        if answer.code != 0:
            expect_equal((answer.code, json.loads(answer.out)["code"]), (1, 999), f"{who} {command}: {answer}")
        self.counts[who, command, answer.code] = self.counts.get((who, command, answer.code), 0) + 1
        return who, answer

    def one(self):
        index = self.chance.randrange(len(self.networks))
        network, held = self.networks[index], self.held[index]
        attachment = (f"w{self.number}-{self.chance.randrange(network.per_worker)}", self.chance.choice(["eth0", "eth1"]))
        what = self.chance.random()
        if what < 0.15:
            who, answer = self.call(network, "CHECK", attachment)
            expect_equal(answer.code == 0, attachment in held, f"{who} CHECK of {attachment}: {answer}")
        elif attachment in held:
            if what < 0.25:
                who, answer = self.call(network, "ADD", attachment)
                expect(answer.code == 1 and "duplicate allocation is not allowed" in answer.message(),
                       f"{who}: second ADD of {attachment}: {answer}")
            else:
                self.delete(network, held, attachment)
        elif what < 0.25:
            who, answer = self.call(network, "DEL", attachment)
            expect_equal(answer.code, 0, f"{who} DEL of unknown {attachment}: {answer}")
        else:
            self.add(network, held, attachment)

    def add(self, network, held, attachment):
        asked = self.chance.choice(network.usable[0]) if self.chance.random() < 0.2 else ""
        network.may_hold(1)
        with network.watch() as watcher:
            who, answer = self.call(network, "ADD", attachment, f"IP={asked}" if asked else "")
        if answer.code == 0:
            addresses = answer.addresses()
            network.answered(attachment, addresses)
            held[attachment] = addresses
            expect_equal(len(addresses), len(network.sets), f"addresses of {attachment}")
            for address, usable, ranges in zip(addresses, network.usable, network.sets):
                expect(address in usable, f"{who}: {address} is not of {ranges}")
            expect(asked in ("", addresses[0]), f"{who}: asked for {asked}, got {addresses}")
            return
        network.may_hold(-1)
        if asked and "is not available in range set" in answer.message():
            return
        expect("no IP addresses available in range set" in answer.message(), f"{who} ADD: {answer}")
        capacity = [len(usable) for usable in network.usable]
        expect(watcher["most"] > min(capacity),
               f"{who}: full, but at most {watcher['most'] - 1} others may have had one of {capacity}")

    def delete(self, network, held, attachment):
        network.gives_up(held.pop(attachment))
        who, answer = self.call(network, "DEL", attachment)
        network.may_hold(-1)
        expect_equal(answer.code, 0, f"{who} DEL of {attachment}: {answer}")


def checkpoint(network, binaries, chance):
    """Nothing runs now: the files are the ledger, and each program reads what the other wrote."""
    expect_equal(reservations(network.folder), {a: holder(*who) for a, who in network.live.items()}, "files and ledger")
    expect_equal(leftovers(network.folder), [], "temporary files")
    attachments = sorted(set(network.live.values()))
    for attachment in chance.sample(attachments, min(10, len(attachments))):
        for who in NAMES:
            answer = binaries.call(who, "CHECK", network.config, container=attachment[0], ifname=attachment[1])
            expect_equal(answer.code, 0, f"{who} CHECK of {attachment}: {answer}")


def storm(world, binaries, ops, seed):
    networks = [Network(world, "small", [["10.7.0.0/27 e=10.7.0.20"]], 4),
                Network(world, "dual", [["10.8.0.0/28"], ["fd08::/124", "fd08::100/126"]], 2),
                Network(world, "wide", [["10.9.0.0/24 e=10.9.0.130"], ["fd09::/120"]], 4, 100)]
    chance = random.Random(seed)
    workers = [Worker(i, seed, networks, binaries) for i in range(WORKERS)]
    for number in range(ROUNDS):
        with subprocess.Popen([sys.executable, "-c", HOLDER, str(seed + number),
                               *[str(n.folder / "lock") for n in networks]]) as interference:
            for i, old in enumerate(workers):  # a thread runs once
                workers[i] = Worker(i, seed + number * 100, networks, binaries)
                workers[i].held, workers[i].counts, workers[i].ops = old.held, old.counts, ops // (ROUNDS * WORKERS)
                workers[i].start()
            for worker in workers:
                worker.join()
            interference.kill()
        for worker in workers:
            if worker.error:
                raise worker.error
        for network in networks:
            checkpoint(network, binaries, chance)
    counts = {}
    for key, n in itertools.chain.from_iterable(w.counts.items() for w in workers):
        counts[key] = counts.get(key, 0) + n
    for (who, command, code), n in sorted(counts.items()):
        say(f"  {who} {command} {'refused' if code else 'done'}: {n}")
    for who in NAMES:
        expect(counts.get((who, "ADD", 1), 0) > ops // 100, f"{who}: the range was hardly ever full")
    for network in networks:
        for attachment in sorted(set(network.live.values())):
            who = chance.choice(NAMES)
            answer = binaries.call(who, "DEL", network.config, container=attachment[0], ifname=attachment[1])
            expect_equal(answer.code, 0, f"{who} DEL at the end: {answer}")
        cursors = {f"last_reserved_ip.{i}" for i in range(len(network.sets))}
        expect_equal(set(contents(network.folder)), cursors, "files after all DELs")


class Large:
    """A directory of many reservations and one caller."""

    SETS = [["10.64.0.0/20"]]

    def __init__(self, world, binaries, count, seed):
        self.binaries, self.new, self.old = binaries, "croft", "reference"
        self.chance, self.count, self.number = random.Random(seed), count, 0
        self.folder = world.directory / f"large-{count}" / NETWORK
        self.folder.mkdir(parents=True)
        self.config = json.dumps(simple_config(self.folder.parent, self.SETS))
        first = int(ipaddress.ip_address("10.64.0.2"))
        for i in range(count):
            (self.folder / str(ipaddress.ip_address(first + i))).write_bytes(holder(f"c{i}").encode())
        (self.folder / "last_reserved_ip.0").write_text(str(ipaddress.ip_address(first + count - 1)), encoding="ascii")
        self.live = {f"c{i}": str(ipaddress.ip_address(first + i)) for i in range(count)}

    def fresh(self):
        self.number += 1
        return f"n{self.number}"

    def any_live(self):
        return self.chance.choice(list(self.live))

    def expected(self):
        cursor = (self.folder / "last_reserved_ip.0").read_text(encoding="ascii")
        return next_address(self.SETS[0], set(os.listdir(self.folder)), cursor)

    def call(self, who, command, container):
        return self.binaries.call(who, command, self.config, container=container)

    def add(self, who, container, wanted=None):
        """An ADD; `wanted` is looked up before unless given (looking takes time in which a clock goes on)."""
        answer = self.call(who, "ADD", container)
        expect_equal(answer.code, 0, f"{who} ADD of {container}: {answer}")
        got = answer.addresses()[0]
        if wanted:
            expect_equal(got, wanted, f"{who} ADD: the next address")
        expect_equal((self.folder / got).read_bytes().decode(), holder(container), f"file of {got}")
        expect(got not in self.live.values(), f"{who}: {got} was held")
        self.live[container] = got

    def delete(self, who, container):
        address = self.live.pop(container)
        answer = self.call(who, "DEL", container)
        expect_equal(answer.code, 0, f"{who} DEL of {container}: {answer}")
        expect(not (self.folder / address).exists(), f"{who} DEL of {container} left {address}")

    def refused(self, who, container):
        answer = self.call(who, "ADD", container)
        expect(answer.code == 1 and answer.message().startswith(
            f"failed to allocate for range 0: {self.live[container]} has been allocated to {container}"),
            f"{who}: second ADD of {container}: {answer}")

    def check(self, who, container, held):
        answer = self.call(who, "CHECK", container)
        expect_equal(answer.code == 0, held, f"{who} CHECK of {container}: {answer}")

    # Each scenario is a few calls without a pause; `old` is the reference's program, `new` Croft's.

    def old_adds_new_deletes(self):
        name = self.fresh()
        self.add(self.old, name, self.expected())
        self.delete(self.new, name)

    def new_adds_old_knows(self):
        name = self.fresh()
        self.add(self.new, name, self.expected())
        self.refused(self.old, name)
        self.check(self.old, name, True)
        self.delete(self.old, name)
        self.check(self.new, name, False)

    def old_deletes_new_adds_again(self):
        name = self.any_live()
        self.check(self.new, name, True)
        self.delete(self.old, name)
        self.add(self.new, name)

    def new_sees_the_gap(self):
        """The address that the old one has just given back is the next one when the cursor stands before it."""
        name = self.any_live()
        address = self.live[name]
        before = str(ipaddress.ip_address(address) - 1)
        self.check(self.new, name, True)
        with Locked(self.folder):
            (self.folder / "last_reserved_ip.0").write_text(before, encoding="ascii")
        self.delete(self.old, name)
        if before != "10.64.0.1":
            self.add(self.new, self.fresh(), address)

    def collected(self):
        """Croft's GC frees what is not alive, and the old one sees it."""
        gone = [self.live[self.any_live()] for _ in range(3)]
        hour_ago = time.time() - 3600
        for address in gone:
            os.utime(self.folder / address, (hour_ago, hour_ago))
        alive = {name: address for name, address in self.live.items() if address not in gone}
        valid = {"cni.dev/valid-attachments": [{"containerID": name, "ifname": "eth0"} for name in alive]}
        answer = self.binaries.call(self.new, "GC", simple_config(self.folder.parent, self.SETS, "1.1.0", **valid))
        expect_equal((answer.code, answer.out), (0, b""), "GC")
        expect_equal(reservations(self.folder), {a: holder(c) for c, a in alive.items()}, "files after GC")
        again = next(name for name in self.live if name not in alive)
        self.live = alive
        self.check(self.old, again, False)
        self.check(self.new, again, False)
        self.add(self.new, again)

    def removed_and_made_again(self):
        """Operators empty the directory; what was known of it counts no more."""
        gone = self.any_live()
        shutil.rmtree(self.folder)
        self.live.clear()
        self.check(self.new, gone, False)
        self.add(self.new, gone, "10.64.0.2")
        self.add(self.old, self.fresh(), "10.64.0.3")
        self.add(self.new, self.fresh(), "10.64.0.4")

    def run(self, steps):
        scenarios = [self.old_adds_new_deletes, self.new_adds_old_knows, self.old_deletes_new_adds_again, self.new_sees_the_gap, self.collected]
        for step in range(steps + 1):
            scenario = scenarios[step % len(scenarios)] if step < steps else self.removed_and_made_again
            try:
                scenario()
            except Failure as failure:
                raise Failure(f"{self.count} reservations, step {step}, {scenario.__name__}: {failure}") from failure
            while len(self.live) > self.count:
                self.delete(self.chance.choice((self.old, self.new)), self.any_live())
        expect_equal(reservations(self.folder), {a: holder(c) for c, a in self.live.items()}, "files and ledger")
        expect_equal(leftovers(self.folder), [], "temporary files")


def test(world):
    ops, seed = numbers_given(1500, random.randrange(1 << 24))
    say(f"seed {seed}")
    binaries = Binaries(world)
    begin = time.monotonic()
    storm(world, binaries, ops, seed)
    say(f"{ops} calls at once in {time.monotonic() - begin:.1f} s: no address twice, files and ledger agree")
    for count, steps in ((300, ops // 60), (1200, ops // 120)):
        begin = time.monotonic()
        Large(world, binaries, count, seed).run(steps)
        say(f"{count} reservations: {steps} scenarios in {time.monotonic() - begin:.1f} s, each seen by the other")


if __name__ == "__main__":
    main(test, seconds=240)
