"""Kills `host-local`, or fails a system call of it, at every system call of ADD, DEL and GC, one after the other. After each: what was
acknowledged is whole, no reservation is empty or torn, an ADD that said no has left nothing, a DEL that said yes has, the next ADD
takes a temporary file away, no address is given to a second holder, and both programs work.

usage: host_local_crash.py BIN_DIR kill|EIO|ENOSPC [quick]
"""

import dataclasses
import json
import os
import shutil
import sys
import time

from host_local_lib import NETWORK, Binaries, holder, leftovers, range_of, reservations, simple_config
from lib import Failure, expect, expect_equal, main, require_strace, say, system_calls, was_injected

WRITING = {"write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "fallocate", "open", "openat", "rename",
           "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat"}
CALLS = {"EIO": WRITING | {"read", "pread64", "getdents64", "stat", "lstat", "fstat", "newfstatat", "statx", "flock", "close",
                           "fchmod", "utimensat"}, "ENOSPC": WRITING}
ONE = [["10.77.0.0/24"]]
TWO = [["10.77.0.0/24"], ["fd77::/120"]]
FULL = [["10.77.0.0/24"], ["10.78.0.0/30"]]  # the second set is taken before


@dataclasses.dataclass
class Scenario:
    command: str
    victim: str
    sets: list
    before: int  # how many others hold something
    fails: bool = False  # also undisturbed
    kept: tuple = ()  # GC: who is still alive

    @property
    def others(self):
        """The sets with which anybody can add."""
        return self.sets[:1] if self.sets is FULL else self.sets

    def __str__(self):
        return f"{self.command}{' that fails' * self.fails} of {len(self.sets)} sets, {self.before} reservations before"


class Rig:
    def __init__(self, world, binaries, fault):
        self.world, self.binaries, self.fault = world, binaries, fault
        self.top, self.template = world.directory / "d", world.directory / "template"
        self.folder = self.top / NETWORK
        self.trace = world.directory / "trace"
        self.failed = 0

    def call(self, who, command, container, sets, fault=None, **more):
        """One call, traced when `fault` is given: options for strace."""
        before = () if fault is None else ("strace", "-f", "-o", str(self.trace), *fault)
        config = simple_config(self.top, sets, "1.1.0" if command == "GC" else "1.0.0", **more)
        return self.binaries.call(who, command, config, before=before, container=container)

    def must(self, who, command, container, sets, where, **more):
        answer = self.call(who, command, container, sets, **more)
        expect_equal(answer.code, 0, f"{where}: {who} {command} of {container}: {answer}")
        return answer.addresses() if command == "ADD" else None

    def run(self, scenario, fault):
        more = {}
        if scenario.command == "GC":
            more["cni.dev/valid-attachments"] = [{"containerID": c, "ifname": "eth0"} for c in scenario.kept]
        return self.call("croft", scenario.command, scenario.victim, scenario.sets, fault, **more)

    def prepare(self, scenario):
        shutil.rmtree(self.template, ignore_errors=True)
        shutil.rmtree(self.top, ignore_errors=True)
        if scenario.before or scenario.sets is FULL:
            self.folder.mkdir(parents=True)
        for i in range(scenario.before):
            self.must("croft", "ADD", f"c{i}", scenario.others, "set-up")
        if scenario.sets is FULL:
            (self.folder / range_of(FULL[1][0])["subnet"].replace("0/30", "2")).write_bytes(holder("full").encode())
        if scenario.command == "GC":
            hour_ago = time.time() - 3600  # younger ones would stay
            for name in reservations(self.folder):
                os.utime(self.folder / name, (hour_ago, hour_ago))
        if self.top.exists():
            shutil.copytree(self.top, self.template)

    def fresh(self, scenario):
        """The prepared directory, and the index as good as a call leaves it."""
        shutil.rmtree(self.top, ignore_errors=True)
        if self.template.exists():
            shutil.copytree(self.template, self.top)
        if scenario.before > 1:
            self.must("croft", "ADD", "warm", scenario.others, "set-up")
            self.must("croft", "DEL", "warm", scenario.others, "set-up")
        return reservations(self.folder)

    def points(self, scenario):
        """Every system call of an undisturbed run as (name, which of that name)."""
        self.fresh(scenario)
        answer = self.run(scenario, [])
        expect_equal(answer.code, 1 if scenario.fails else 0, f"{scenario}, undisturbed: {answer}")
        points = []
        for name, nth, line in system_calls(self.trace):
            if self.fault == "ENOSPC" and name.startswith("open") and "O_CREAT" not in line:
                continue  # needs no space
            if self.fault == "kill" or name in CALLS[self.fault]:
                points.append((name, nth))
        return points

    def line_of_the_fault(self):
        lines = self.trace.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line for line in lines if "INJECTED" in line), lines[-2] if len(lines) > 1 else "")

    def scenario(self, scenario):
        self.prepare(scenario)
        points, hit, begin = self.points(scenario), 0, time.monotonic()
        what = "signal=KILL" if self.fault == "kill" else f"error={self.fault}"
        outcomes = {}
        for name, nth in points:
            held = self.fresh(scenario)
            answer = self.run(scenario, ["-e", f"inject={name}:{what}:when={nth}"])
            if not was_injected(self.trace):
                continue  # this run took another way and never made that call
            hit += 1
            try:
                outcome = self.after(scenario, held, answer, f"{scenario}, {self.fault} at {name} {nth}")
            except Failure as failure:
                self.failed += 1
                outcome = "WRONG"
                say(f"{failure} [{self.line_of_the_fault()}]")
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        expect(hit > 2 and hit * 10 > len(points) * 9, f"{scenario}: only {hit} of {len(points)} points were hit")
        say(f"{scenario}: {hit} points in {time.monotonic() - begin:.1f} s: "
            + ", ".join(f"{n} {text}" for text, n in sorted(outcomes.items())))

    def decoded(self, scenario, answer, where):
        """killed, done, refused (with an error object) or unheard (the answer itself was hit)."""
        if answer.code in (-9, 137):
            return "killed"
        expect(answer.code in (0, 1), f"{where}: exit {answer.code}: {answer}")
        if answer.code == 0:
            expect((answer.out != b"") == (scenario.command == "ADD"), f"{where}: {answer}")
            return "done"
        try:
            return "refused" if json.loads(answer.out)["code"] else "unheard"
        except ValueError:
            return "unheard"

    def after(self, scenario, held, answer, where):
        """Everything that must be true after the fault."""
        outcome = self.decoded(scenario, answer, where)
        present = reservations(self.folder)
        mine = {a: text for a, text in present.items() if text == holder(scenario.victim)}
        expect_equal([a for a, text in present.items() if not text], [], f"{where}: empty reservations")
        temporary = leftovers(self.folder)
        expect(len(temporary) <= 1, f"{where}: temporary files {temporary}")
        if outcome in ("done", "refused"):
            expect_equal(temporary, [], f"{where}, {outcome}: temporary files")
        if scenario.command == "GC":
            kept = {a: text for a, text in held.items() if text in [holder(c) for c in scenario.kept]}
            expect(kept.items() <= present.items() and present.items() <= held.items(),
                   f"{where}: GC kept {sorted(present.items())}")
            if outcome == "done":
                expect_equal(sorted(set(present) - set(kept)), [], f"{where}: GC said yes, these stay")
        else:
            others = {a: text for a, text in held.items() if text != holder(scenario.victim)}
            expect_equal({a: text for a, text in present.items() if a not in mine}, others, f"{where}: those of others")
        if scenario.command == "ADD":
            if outcome == "done":
                expect_equal(sorted(mine), sorted(answer.addresses()), f"{where}: answered and recorded")
            if outcome == "refused":
                expect_equal(mine, {}, f"{where}: refused ({answer.message()}), yet reserved")
        if scenario.command == "DEL":
            expect(outcome != "done" or not mine, f"{where}: DEL said yes, {sorted(mine)} stay")
        self.go_on(scenario, present, where)
        return outcome

    def go_on(self, scenario, present, where):
        """Both programs go on working."""
        sets, victim = scenario.others, scenario.victim
        first = self.must("croft", "ADD", "other", sets, where)
        expect_equal(leftovers(self.folder), [], f"{where}: temporary files after the next ADD")
        second = self.must("reference", "ADD", "another", sets, where)
        expect(not set(present) & {*first, *second}, f"{where}: {first} or {second} had a holder")
        expect(not set(first) & set(second), f"{where}: {first} given twice")
        if scenario.command == "GC":
            answer = self.run(scenario, None)
            expect_equal(answer.code, 0, f"{where}: GC again: {answer}")
            others = {holder(c) for c in (*scenario.kept, "other", "another")}
            expect_equal(set(reservations(self.folder).values()), others, f"{where}: after GC again")
        else:
            self.must("croft", "DEL", victim, scenario.sets, where)
            expect(holder(victim) not in reservations(self.folder).values(), f"{where}: after DEL again")
            again = self.must("croft", "ADD", victim, sets, where)
            for who in ("reference", "croft"):
                self.must(who, "CHECK", victim, sets, where)
            now = reservations(self.folder)
            for address in again:
                expect_equal(now[address], holder(victim), f"{where}: {address} of {victim}")
            self.must("reference", "DEL", victim, sets, where)
        self.must("reference", "DEL", "other", sets, where)
        self.must("croft", "DEL", "another", sets, where)
        mine = [holder(c) for c in ("other", "another", victim)]
        expect_equal({a: text for a, text in reservations(self.folder).items() if text in mine}, {},
                     f"{where}: after all DELs")


def after_the_reference(rig):
    """The reference's own crash leaves an empty file (this also shows that the checks above can see one). Croft goes on
    beside it: its next ADD gives that address, and the reference can go on too."""
    found = 0
    for nth in range(1, 9):
        shutil.rmtree(rig.top, ignore_errors=True)
        rig.call("reference", "ADD", "first", ONE, ["-e", f"inject=write:signal=KILL:when={nth}"])
        empty = [a for a, text in reservations(rig.folder).items() if not text]
        if not empty:
            continue
        found += 1
        where = f"reference killed at write {nth}"
        for address in empty:
            os.utime(rig.folder / address, times=(time.time() - 20,) * 2)
        expect_equal(rig.must("croft", "ADD", "next", ONE, where), empty, f"{where}: the address of the empty file")
        rig.must("reference", "CHECK", "next", ONE, where)
        rig.must("reference", "ADD", "third", ONE, where)
        rig.must("croft", "DEL", "first", ONE, where)
        expect_equal(sorted(reservations(rig.folder).values()), sorted([holder("next"), holder("third")]), where)
    expect(found > 0, "the reference was never killed between a name and its content")
    say(f"the reference killed between a name and its content: {found} points, the address comes again")


def without_nameless_files(rig):
    """A file system that knows no files without a name: each content has a draft's name until it is linked."""
    shutil.rmtree(rig.top, ignore_errors=True)
    rig.must("croft", "ADD", "first", TWO, "set-up")
    rig.must("croft", "DEL", "first", TWO, "set-up")
    trace = rig.top / "trace"
    trace.parent.mkdir(exist_ok=True)
    rig.call("croft", "ADD", "first", TWO, ["-o", str(trace), "-e", "trace=openat"])
    rig.must("croft", "DEL", "first", TWO, "set-up")
    opens = [line for line in trace.read_text().splitlines() if "openat(" in line]
    first = 1 + next(i for i, line in enumerate(opens) if "O_TMPFILE" in line)
    # Each draft: the refused one, the one with a name, the cursor.
    answer = rig.call("croft", "ADD", "second", TWO, ["-o", str(trace), "-e", "trace=all", "-e",
                                                      f"inject=openat:error=EOPNOTSUPP:when={first}+3"])
    text = trace.read_text()
    expect_equal(text.count("(INJECTED)"), 2, f"refused opens in {text}")
    expect_equal(answer.code, 0, f"ADD with drafts that have names: {answer}")
    expect_equal(sorted(reservations(rig.folder).values()), [holder("second")] * 2, "reservations")
    expect_equal(leftovers(rig.folder), [], "drafts left behind")
    say("a file system without nameless files: two drafts with names, none left behind")


LONG = [Scenario("ADD", "first", ONE, 60), Scenario("DEL", "c7", ONE, 60),
        Scenario("ADD", "first", TWO, 0), Scenario("ADD", "first", TWO, 60),
        Scenario("ADD", "first", FULL, 0, fails=True), Scenario("ADD", "first", FULL, 60, fails=True),
        Scenario("DEL", "c0", TWO, 1), Scenario("DEL", "c0", TWO, 60),
        Scenario("GC", "", ONE, 5, kept=("c1", "c3")),
        Scenario("GC", "", TWO, 60, kept=tuple(f"c{i}" for i in range(10, 60)))]


def test(world):
    require_strace()
    fault = sys.argv[2]
    quick = "quick" in sys.argv[3:]
    rig = Rig(world, Binaries(world), fault)
    if fault == "kill":
        after_the_reference(rig)
        without_nameless_files(rig)
    rig.scenario(Scenario("ADD", "first", ONE, 0))
    rig.scenario(Scenario("DEL", "c0", ONE, 1))
    if not quick:
        for scenario in LONG:
            rig.scenario(scenario)
    expect(not rig.failed, f"{rig.failed} points are not as they must be")


main(test, seconds=1100)
