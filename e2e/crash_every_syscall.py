"""Kills croft-ipam, or fails a system call of it, at every system call of an ADD and a DEL, one after the other. After each: no address
has two holders, what was acknowledged is there, `croft check` names what is left over and how to collect it, the next ADD works,
the interrupted call can be repeated, and everything can be given back. `quick`: at calls that change what is on disk, and at one in
OTHERS_ONE_IN of the others, and of those in a row of the same.

usage: crash_every_syscall.py BIN_DIR [kill|EIO|ENOSPC] [quick]
"""

import json
import pathlib
import shutil
import subprocess
import sys

from lib import (cache_entry, call_environment, expect, expect_equal, ipam_config, main, require_strace, run, say, system_calls,
                 was_injected)

POOLS = [{"name": "a", "cidr": "10.77.0.0/27", "blockSize": 29, "cooldownSeconds": 0},
         {"name": "six", "cidr": "fd77::/123", "blockSize": 125, "cooldownSeconds": 0}]
# Calls that can meet an error on a sick disk; a kill can come at any.
DISK_CALLS = {"openat", "write", "pwrite64", "pread64", "fsync", "fdatasync", "ftruncate", "fallocate", "rename",
              "renameat2", "link", "linkat", "unlink", "mkdir", "flock"}
CHANGES = DISK_CALLS - {"openat", "pread64", "flock"} | {"writev", "pwritev", "renameat", "unlinkat", "mkdirat", "truncate",
                                                         "fchmod", "fchown", "sync_file_range"}
OTHERS_ONE_IN = 25
ROW = 10  # of the same call


class Rig:
    def __init__(self, world, fault, quick):
        self.world, self.fault, self.quick = world, fault, quick
        self.state = world.directory / "state"
        self.cache = world.directory / "cache"
        self.trace = world.directory / "trace"
        (self.cache / "results").mkdir(parents=True)

    @property
    def store(self):
        return f"sqlite:{self.state}/croft.db"

    def config(self):
        return ipam_config(self.store, "node-a", pools=POOLS, assign_ipv6="true")

    def call(self, command, container, fault=None):
        """One CNI call, traced when `fault` is given: options for strace. (finished, answer): not finished means killed."""
        words = [str(self.world.bin / "croft-ipam")]
        if fault is not None:
            words = ["strace", "-f", "-o", str(self.trace), *fault] + words
        done = subprocess.run(words, input=self.config(), env=call_environment(self.world, command, container), capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode in (-9, 137):
            return False, None
        expect(done.returncode in (0, 1), f"{command} {fault}: exit {done.returncode}: {done.stdout} {done.stderr}")
        try:
            answer = json.loads(done.stdout) if done.stdout.strip() else None
        except json.JSONDecodeError:
            # Only a fault in writing the answer itself can cut it.
            expect(done.returncode == 1, f"{command} {fault}: broken answer with exit 0: {done.stdout!r}")
            answer = None
        return done.returncode == 0, answer

    def points(self, command, container):
        """System calls of an undisturbed run as (name, which of that name)."""
        finished, answer = self.call(command, container, [])
        expect(finished, f"{command} undisturbed: {answer}")
        points, row = [], [None, 0]
        for number, (name, nth, line) in enumerate(system_calls(self.trace), 1):
            changes = name in CHANGES or (name == "openat" and "O_CREAT" in line)
            row = [name, row[1] + 1 if row[0] == name else 1]
            if self.quick and (not changes or row[1] > ROW) and number % OTHERS_ONE_IN != 0:
                continue
            if self.fault == "kill" or name in DISK_CALLS:
                points.append((name, nth))
        return points

    def add(self, container):
        done, answer = self.call("ADD", container)
        expect(done, f"ADD of {container}: {answer}")
        return sorted(ip["address"].split("/")[0] for ip in answer["ips"])

    def rows(self):
        return self.world.croft(self.store, "ip", "list")

    def holders(self):
        """Addresses by holder; fails when an address has two."""
        rows = [row for row in self.rows() if row["state"] == "held"]
        addresses = [row["address"] for row in rows]
        expect_equal(len(addresses), len(set(addresses)), "addresses held once")
        holders = {}
        for row in rows:
            holders.setdefault(row["containerId"], []).append(row["address"])
        return {name: sorted(addresses) for name, addresses in holders.items()}

    def attach(self, *containers):
        """What the runtime's cache knows."""
        shutil.rmtree(self.cache / "results")
        (self.cache / "results").mkdir()
        for name in (*containers, "bystander"):  # an empty cache would prove nothing
            cache_entry(self.cache / "results", name)

    def findings(self):
        done = run(self.world.bin / "croft", "--store", self.store, "-o", "json", "check", "--cni-cache", self.cache,
                   "--grace-seconds", "0", check=False)
        expect(done.returncode in (0, 3), f"croft check: exit {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)


def scenario(rig, command, victim, held_before, absent_store=False):
    """Walks through the calls of `command` for container `victim`; `held_before` containers hold addresses first."""
    template = rig.world.directory / "template"
    shutil.rmtree(template, ignore_errors=True)
    shutil.rmtree(rig.state, ignore_errors=True)
    acknowledged = {}
    if not absent_store:
        for name in held_before:
            acknowledged[name] = rig.add(name)
        expect_equal(rig.holders(), acknowledged, "the set-up")
        shutil.copytree(rig.state, template)
    def fresh():
        shutil.rmtree(rig.state, ignore_errors=True)
        if not absent_store:
            shutil.copytree(template, rig.state)
    fresh()
    points = rig.points(command, victim)
    hit = leftovers = 0
    what = "signal=KILL" if rig.fault == "kill" else f"error={rig.fault}"
    for at, (name, nth) in enumerate(points):
        fresh()
        finished, _ = rig.call(command, victim, ["-e", f"inject={name}:{what}:when={nth}"])
        if not was_injected(rig.trace):
            continue  # this run took another way and never made that call
        hit += 1
        leftovers += after(rig, command, victim, acknowledged, finished, f"{name} {nth}", at)
    expect(hit > 10 and hit * 10 > len(points) * 9, f"only {hit} of {len(points)} points were hit")
    say(f"{command} of {victim}, {len(held_before)} held before: {hit} points, {leftovers} addresses left over in all")


def after(rig, command, victim, acknowledged, finished, point, at):
    """Everything that must be true after the fault; the number of addresses left over."""
    where = f"{command} at {point}"
    left = 0
    if pathlib.Path(rig.state / "croft.db").exists():
        present = rig.holders()
        for name, addresses in acknowledged.items():
            if not (command == "DEL" and name == victim):
                expect_equal(present.get(name), addresses, f"{where}: acknowledged to {name}")
        if command == "DEL" and finished:
            expect(victim not in present, f"{where}: DEL said yes, {victim} still holds {present.get(victim)}")
        rig.attach(*[n for n in acknowledged if not (command == "DEL" and n == victim)])
        findings = rig.findings()
        expect_equal({f["finding"] for f in findings} - {"not_attached"}, set(), f"{where}: contradictions")
        # What the runtime does not know is named, with the command that collects it.
        expect_equal(sorted(f["subject"] for f in findings), present.get(victim, []), f"{where}: left over")
        left = len(findings)
        for finding in findings:
            words = finding["remedy"].split()
            expect_equal(words[:3], ["croft", "ip", "release"], f"{where}: remedy")
        if findings and at % 3 == 0:
            for finding in findings:
                run(rig.world.bin / "croft", "--store", rig.store, *finding["remedy"].split()[1:])
            expect_equal(rig.findings(), [], f"{where}: after the remedy")
    taken = {a for addresses in rig.holders().values() for a in addresses} if (rig.state / "croft.db").exists() else set()
    other = rig.add("other")
    expect(not taken & set(other), f"{where}: {other} had a holder")
    done, answer = rig.call(command, victim)
    expect(done, f"{where}: repeated: {answer}")
    if command == "ADD":
        got = sorted(ip["address"].split("/")[0] for ip in answer["ips"])
        expect_equal(rig.holders()[victim], got, f"{where}: repeated ADD")
    for name in list(acknowledged) + ["other", victim]:
        done, answer = rig.call("DEL", name)
        expect(done, f"{where}: DEL of {name}: {answer}")
    expect_equal(rig.holders(), {}, f"{where}: after all DELs")
    rig.attach()
    expect_equal(rig.findings(), [], f"{where}: at the end")
    return left


def test(world):
    require_strace()
    fault = sys.argv[2] if len(sys.argv) > 2 else "kill"
    rig = Rig(world, fault, "quick" in sys.argv[3:])
    scenario(rig, "ADD", "first", [], absent_store=True)
    scenario(rig, "ADD", "next", ["c1", "c2"])
    scenario(rig, "ADD", "claims", [f"c{i}" for i in range(6)])
    scenario(rig, "DEL", "c1", ["c1", "c2"])


main(test, seconds=900)
