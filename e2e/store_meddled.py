"""A real agent and plugins on one sqlite store while the store's files are swapped, cut, removed and restored: no address
gets a second holder, and no acknowledged one is lost, unless the plugin says that the register is damaged (code 101).

usage: store_meddled.py BIN_DIR [quick|full]
"""

import ctypes
import fcntl
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time

import machine_lib
from history import History, changed_answers, overlapping_holds
from lib import World, expect, expect_equal, main, run, say, wait_for
from machine_lib import CORRUPT, NODE, SUFFIXES

WORKERS = 8


class Machine(machine_lib.Machine):
    """Served by its agent as a rule."""

    def __init__(self, world, name, cooldown=0):
        super().__init__(world, name, "10.79.0.0/24", 26, cooldown)

    def call(self, command, container, agent=True, **how):
        return super().call(command, container, agent=agent, **how)


def copied(machine, name):
    to = machine.world.directory / name
    shutil.copytree(machine.folder, to)
    return to


def swapped_for_backup(world):
    m = Machine(world, "swap")
    with m.agent():
        one = m.add("c1")
        backup = copied(m, "swap-backup")
        m.add("c2")
        m.add("c3")
        m.folder.rename(world.directory / "swap-aside")
        backup.rename(m.folder)
        taken = m.add("new", agent=False)
        again = m.add("c2")
        expect(again not in (one, taken), f"c2 was answered from the dead file: {again}")
        expect_equal(m.call("DEL", "c3")[0], 0, "DEL c3")
        expect_equal(m.add("c1"), one, "asked again")
        expect("via=agent" in m.last_line(), f"the agent serves the new files: {m.last_line()}")
        expect_equal(sorted(m.held()), sorted([one, taken, again]), "held")
    say("a directory swapped for a backup: the agent goes on with what is there")


def index_removed(world):
    m = Machine(world, "index")
    with m.agent():
        m.add("c1")
        m.path("-shm").unlink()
        alone, by_agent = m.add("c2", agent=False), m.add("c3")
        expect(alone != by_agent, f"two holders of {alone}")
        expect_equal(len(m.held()), 3, "held")
    say("-shm removed: nothing is lost")


def older_copy_in_place(world):
    m = Machine(world, "inplace")
    with m.agent():
        m.add("c1")
        backup = copied(m, "inplace-backup")
        m.add("c2")
        for suffix in ("", "-wal"):
            shutil.copyfile(str(backup / "croft.db") + suffix, m.path(suffix))
        m.path("-shm").unlink()
        for agent in (True, False):
            code, _, text = m.call("ADD", f"d{agent}", agent=agent)
            expect_equal(code, CORRUPT, f"ADD on a register that lost commits ({text})")
        done = m.croft("check")
        expect(done.returncode == 3 and "register_damaged" in done.stdout and "store restore" in done.stdout + done.stderr, f"check: {done}")
        # What is left is taken only with --force, and then everything serves again.
        expect_equal(m.croft("store", "restore", m.db).returncode != 0, True, "restore of what is left, unforced")
        m.note_running("c2", "10.79.0.1")
        done = m.croft("store", "restore", m.db, "--force", "--cni-cache", m.cache, "--node", NODE)
        expect_equal(done.returncode, 0, f"restore: {done.stdout}{done.stderr}")
        m.add("e1")
        wait_for(lambda: (m.add("e2"), "via=agent" in m.last_line())[1], "the agent serves again")
    say("an older copy in place: code 101 by plugin and agent until it is restored")


def log_removed(world):
    m = Machine(world, "log")
    with m.agent():
        m.add("c1")
        m.path("-wal").unlink()
        m.path("-shm").unlink()
        for agent in (True, False):
            expect_equal(m.call("ADD", f"d{agent}", agent=agent)[0], CORRUPT, "ADD without the log")
    say("-wal and -shm removed: code 101")


def flipped_bit(world):
    """In any frame: SQLite takes the rest of the log for a torn end."""
    m = Machine(world, "bit")
    held = {m.add(f"c{i}", agent=False): f"c{i}" for i in range(8)}
    whole = copied(m, "bit-whole")
    log = m.path("-wal").read_bytes()
    frame = 24 + 4096
    refused = 0
    frames = [i for i in range((len(log) - 32) // frame) if any(log[32 + i * frame:32 + i * frame + 24])]
    for number in frames:
        shutil.rmtree(m.folder)
        shutil.copytree(whole, m.folder)
        damaged = bytearray(log)
        damaged[32 + number * frame + 24 + 200] ^= 4
        m.path("-wal").write_bytes(damaged)
        code, addresses, text = m.call("ADD", "d", agent=False)
        expect(code in (0, CORRUPT) and not set(addresses) & set(held), f"a bit of frame {number}: {code} {addresses} {text}")
        expect(code == 0 or "backup-and-restore.md" in text, text)
        refused += code == CORRUPT
    expect(refused >= len(frames) // 2, f"{refused} of {len(frames)} frames")
    shutil.rmtree(m.folder)
    shutil.copytree(whole, m.folder)
    damaged = bytearray(log)
    damaged[32 + frames[len(frames) // 2] * frame + 24 + 200] ^= 4
    m.path("-wal").write_bytes(damaged)
    with m.agent_or_refusal():
        expect_equal(m.call("ADD", "d")[0], CORRUPT, "ADD beside an agent")
    found = m.croft("check", "-o", "json")
    expect(found.returncode == 3 and "store restore" in found.stdout and json.loads(found.stdout), f"{found}")
    done = m.croft("check")
    expect(done.returncode == 3 and "register_damaged" in done.stdout and "store restore" in done.stdout + done.stderr, f"check: {done}")
    say("one flipped bit in -wal: code 101, and check says so")


def backup_and_restore(world):
    m = Machine(world, "restore")
    backup = world.directory / "croft.backup"
    with m.agent():
        for i in range(5):
            m.note_running(f"c{i}", m.add(f"c{i}"))
        expect_equal(m.croft("store", "backup", backup).returncode, 0, "backup")
        expect_equal(m.croft("store", "backup", backup).returncode, 1, "a backup is not overwritten")
        for i in range(3):  # gone since, and their addresses are in other hands
            expect_equal(m.call("DEL", f"c{i}")[0], 0, "DEL")
            (m.cache / "results" / f"net-c{i}-eth0").unlink()
        running = {}
        for i in range(8):
            running[f"n{i}"] = m.add(f"n{i}")
            m.note_running(f"n{i}", running[f"n{i}"])
        lost = m.add("unknown")
        before = m.held()
        done = m.croft("store", "restore", backup, "--dry-run")
        expect(done.returncode == 0 and all(a in done.stdout for a in running.values()), f"--dry-run: {done}")
        expect_equal(m.held(), before, "held after --dry-run")
        expect_equal(m.croft("store", "restore", backup).returncode, 5, "a restore that forgets addresses")
        done = m.croft("store", "restore", backup, "--cni-cache", m.cache, "--node", NODE)
        expect(done.returncode == 5 and lost in done.stdout, f"what the runtime does not know is lost: {done}")
        expect_equal(m.held(), before, "held after a refusal")
        done = m.croft("store", "restore", backup, "--cni-cache", m.cache, "--node", NODE, "--force")
        expect_equal(done.returncode, 0, f"restore: {done.stdout}{done.stderr}")
        held = m.held()
        for container, address in running.items():
            expect_equal(held.get(address), f"net.{container}", f"the holder of {address}")
        fresh = [m.add(f"x{i}", agent=i % 2 == 0) for i in range(20)]
        expect(not set(fresh) & set(running.values()), f"given out twice: {set(fresh) & set(running.values())}")
        expect_equal(m.add("c4"), next(a for a, h in held.items() if h == "net.c4"), "asked again")
        wait_for(lambda: (m.add("last"), "via=agent" in m.last_line())[1], "the agent serves the restored register")
        for garbage in (b"", b"no register", backup.read_bytes()[:9000]):
            (world.directory / "garbage").write_bytes(garbage)
            done = m.croft("store", "restore", world.directory / "garbage", "--force")
            expect_equal(done.returncode, 1, f"restore of {len(garbage)} bytes: {done.stdout}{done.stderr}")
        expect_equal(m.croft("check").returncode, 0, "check")
    say("backup and restore while an agent serves: what runs is recorded, what is lost is said")


def behind_a_lock(world):
    m = Machine(world, "lock")
    m.add("c1", agent=False)
    with open(m.path("-lock"), "r+", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begin = time.monotonic()
        expect_equal(m.call("STATUS", "c1", agent=False)[0], 0, "STATUS behind a lock")
        expect(time.monotonic() - begin < 5, "STATUS waited for a lock")
        expect_equal(m.croft("store", "backup", world.directory / "locked.backup").returncode, 0, "backup")
    say("STATUS and backup need no lock")


def file_size_limit(world):
    m = Machine(world, "limit")
    m.add("c1", agent=False)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    code, _, text = m.call("ADD", "c2", agent=False, preexec=limited)
    expect_equal(code, 11, f"ADD below a limit of file sizes: {text}")
    m.add("c2", agent=False)
    expect_equal(len(m.held()), 2, "held")
    done = subprocess.run([m.world.bin / "croft", "--store", m.store, "pool", "create", "b", "--cidr", "10.80.0.0/24"],
                          preexec_fn=limited, capture_output=True, text=True, timeout=60, check=False)
    expect(done.returncode in (1, 4), f"croft below a limit of file sizes: {done}")
    say("a file-size limit is an error")


# ------------------------------------------------------------------------------------------------ at random


class Meddled:
    """Workers add and delete while the files change; the history decides."""

    def __init__(self, machine):
        self.m, self.history = machine, History()
        self.stop = threading.Event()
        self.errors, self.damaged = [], threading.Event()

    def work(self, number):
        mine, count = [], 0
        rng = random.Random(number)
        while not self.stop.is_set():
            count += 1
            agent = number % 2 == 0
            delete = mine and (len(mine) > 3 or rng.random() < 0.4)
            container = mine.pop(rng.randrange(len(mine))) if delete else f"w{number}x{count}"
            op, begin = "DEL" if delete else "ADD", self.history.now()
            try:
                code, addresses, text = self.m.call(op, container, agent=agent)
            except Exception as error:  # pylint: disable=broad-except
                self.errors.append(f"{op} {container}: {error}")
                return
            outcome = "ok" if code == 0 else "unknown"
            if code == CORRUPT:
                self.damaged.set()
            self.history.add(begin=begin, end=self.history.now(), container=container, op=op, outcome=outcome,
                             addresses=addresses, said=text, code=code)
            if not delete and code == 0:
                mine.append(container)
            if code != 0:
                time.sleep(0.05)

    def run(self, meddle, rounds):
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        try:
            for i in range(rounds):
                time.sleep(0.7)
                if self.damaged.is_set():
                    break
                meddle(i)
            time.sleep(0.7)
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(60)
        expect_equal(self.errors, [], "calls that ended otherwise")

    def check(self, what, damage_allowed):
        wrong = overlapping_holds(self.history, lambda _: 0) + changed_answers(self.history)
        expect_equal(wrong, [], f"{what}: the history")
        acknowledged = sum(1 for c in self.history.calls if c["outcome"] == "ok")
        expect(acknowledged > 0, f"{what}: nothing was acknowledged")
        if self.damaged.is_set():
            said = [f"{c['op']} {c['container']}: {c['said']}" for c in self.history.calls if c["code"] == CORRUPT]
            expect(damage_allowed, f"{what}: code 101 although nothing was lost: {said[:3]}")
        else:
            held = self.m.held()
            for container, calls in self.history.by_container().items():
                last = calls[-1]
                if last["op"] == "ADD" and last["outcome"] == "ok":
                    for address in last["addresses"]:
                        expect_equal(held.get(address), f"net.{container}", f"{what}: acknowledged and lost: {address}")
        say(f"{what}: {acknowledged} calls acknowledged, {len(self.history.calls) - acknowledged} not"
            + (", then code 101" if self.damaged.is_set() else ""))


def exchange(one, other):
    """Two names change places at once: for a moment without the directory a plugin would make a new register."""
    exchange_flag, at_cwd = 2, -100
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange_flag) != 0:
        raise OSError(ctypes.get_errno(), f"exchange {one} and {other}")


def locked_copy_swap(m, i):
    """The whole directory by a whole copy of the same moment: nothing may be lost."""
    copy = m.world.directory / f"{m.folder.name}-copy-{i}"
    with open(m.path("-lock"), "r+", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.copytree(m.folder, copy)
        exchange(m.folder, copy)


def remove(*suffixes):
    def meddle(m, _i):
        for suffix in suffixes:
            m.path(suffix).unlink(missing_ok=True)
    return meddle


def cut(suffix, size):
    def meddle(m, _i):
        os.truncate(m.path(suffix), size)
    return meddle


def at_random(world, rounds):
    kinds = [
        ("swapped by a copy", locked_copy_swap, False),
        ("-shm removed", remove("-shm"), False),
        ("-lock removed", remove("-lock"), False),
        ("-wal removed", remove("-wal"), True),
        ("-wal and -shm removed", remove("-wal", "-shm"), True),
        ("-wal cut", cut("-wal", 5000), True),
        ("-wal emptied", cut("-wal", 0), True),
        ("database emptied", cut("", 0), True),
        ("database removed", remove(""), True),
    ]
    for number, (what, meddle, damage_allowed) in enumerate(kinds):
        m = Machine(world, f"random{number}")
        with m.agent():
            meddled = Meddled(m)
            meddled.run(lambda i, m=m, meddle=meddle: meddle(m, i), rounds)
            meddled.check(what, damage_allowed)


def test():
    full = len(sys.argv) > 2 and sys.argv[2] == "full"
    with World("meddled", sys.argv[1]) as world:
        for part in (swapped_for_backup, index_removed, older_copy_in_place, log_removed, flipped_bit,
                     backup_and_restore, behind_a_lock, file_size_limit):
            part(world)
        at_random(world, 12 if full else 1)


if __name__ == "__main__":
    main(test, 900 if len(sys.argv) > 2 and sys.argv[2] == "full" else 280)
