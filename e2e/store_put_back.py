"""Files of an earlier moment put back beside newer ones, also across a restore; a restore that is killed at each step; a
restore beside damage: no address gets a second holder, and there is always a way out.

usage: store_put_back.py BIN_DIR
"""

import shutil
import sys
import time

import machine_lib
from lib import World, expect, expect_equal, main, require_programs, run, say
from machine_lib import CORRUPT, NODE, SUFFIXES

MANY = 20


class Machine(machine_lib.Machine):
    """It knows who got which address."""

    def __init__(self, world, name, cooldown=0):
        self.holders = {}
        super().__init__(world, name, "10.79.0.0/22", 28, cooldown)

    def add(self, container, **how):
        address = super().add(container, **how)
        expect(self.holders.get(address, container) == container,
               f"two holders of {address}: {self.holders.get(address)} and {container}")
        self.holders[address] = container
        return address

    def croft(self, *arguments, check=True):
        return super().croft(*arguments, check=check)

    def add_until_log_begins_anew(self, name):
        """Its header has other salts then, once something is written."""
        def salts():
            return self.path("-wal").read_bytes()[16:24]
        before, count = salts(), 0
        while salts() == before:
            self.add(f"{name}{count}")
            count += 1


def put_back(world, restored, back, removed):
    """Older files of those names in place of the newer ones, and others removed, under an agent and alone."""
    what = f"{'restored, ' if restored else ''}older {', '.join('croft.db' + b for b in back)}"
    what += f", without {', '.join(removed)}" if removed else ""
    m = Machine(world, "".join(c if c.isalnum() else "_" for c in what))
    m.add_until_log_begins_anew("a")
    old = {suffix: m.path(suffix).read_bytes() for suffix in SUFFIXES}
    m.add_until_log_begins_anew("b")
    backup = world.directory / f"{m.folder.name}.backup"
    m.croft("store", "backup", backup)
    if restored:
        m.croft("store", "restore", backup)
    with m.agent():
        for i in range(3):
            m.add(f"n{i}", agent=i > 0)
        for suffix in back:
            # At once: beside an empty database the log would go.
            aside = m.folder / "aside"
            aside.write_bytes(old[suffix])
            aside.rename(m.path(suffix))
        for suffix in removed:
            m.path(suffix).unlink()
        for by_agent in (True, False, True):
            code, addresses, text = m.call("ADD", f"x{by_agent}", agent=by_agent)
            expect_equal(code, CORRUPT, f"{what}: ADD {'by the agent' if by_agent else 'alone'}: {addresses} {text}")
        expect_equal(m.croft("check", check=False).returncode, 3, f"{what}: check")
        for name, address in {c: a for a, c in m.holders.items()}.items():
            m.note_running(name, address)
        expect(m.croft("store", "restore", m.db, check=False).returncode != 0, f"{what}: restore of what is left, unforced")
        cache = ("--cni-cache", m.cache, "--node", NODE, "--force")
        # A database and a log of two times may be no tables any more, or have blocks that nobody can read, and the
        # command names whom it could not record; then there is the backup.
        done = m.croft("store", "restore", m.db, *cache, check=False)
        if done.returncode != 0 or "has a wrong checksum" in done.stdout:
            expect("-wal" not in removed, f"{what}: restore of what is left")
            m.croft("store", "restore", backup, *cache)
        for i in range(20):
            m.add(f"y{i}", agent=i % 2 == 0)
        expect_equal({h.split(".")[1] for h in m.held().values()}, set(m.holders.values()), f"{what}: held")
    say(f"{what}: code 101 until it is restored")


def older_files(world):
    put_back(world, True, ("",), ("-wal", "-shm"))
    put_back(world, True, ("", "-wal"), ("-shm",))
    put_back(world, True, ("",), ())
    put_back(world, True, ("",), ("-lock",))
    put_back(world, False, ("",), ("-lock",))
    put_back(world, False, ("", "-lock"), ())


def restore_without_a_block(world):
    """Damage took a block: what else names it tells that somebody held addresses there."""
    m = Machine(world, "no-block")
    for i in range(3):
        m.add(f"c{i}")
    copy = world.directory / "no-block-copy"
    shutil.copytree(m.folder, copy)
    shutil.rmtree(m.folder)
    m.folder.mkdir()
    take = ("import sqlite3, os, sys; c = sqlite3.connect(sys.argv[1]); c.execute('DELETE FROM records WHERE kind=3'); "
            "c.commit(); os._exit(0)")
    run(sys.executable, "-c", take, copy / "croft.db")
    damage(copy, 5, "net.c1")
    done = m.croft("store", "restore", copy / "croft.db", "--force", check=False)
    expect_equal(done.returncode, 0, f"restore: {done.stdout}{done.stderr}")
    expect("/28: affinity host/" in done.stdout and "handle net.c0 (1)" in done.stdout, f"it is named: {done.stdout}")
    say("a block that is gone and named is told")


def restore_after_a_look(world):
    """Another program was the last to close the register, and its pages have no checksum of Croft's: a restore holds the
    lock that giving them one needs."""
    look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM records').fetchall()"
    for is_damaged in (False, True):
        m = Machine(world, f"look-{is_damaged}", cooldown=600)
        for i in range(MANY):
            m.add(f"c{i}")
        backup = world.directory / f"look-{is_damaged}.backup"
        m.croft("store", "backup", backup)
        m.add("late")
        run(sys.executable, "-c", look, m.db)
        if is_damaged:
            content = bytearray(m.path("").read_bytes())
            at = content.rindex(b"10.79.")
            content[at] ^= 1
            m.path("").write_bytes(content)
        started = time.monotonic()
        done = m.croft("store", "restore", backup, "--force", check=False)
        expect_equal(done.returncode, 0, f"restore after a look, damaged: {is_damaged}: {done.stdout}{done.stderr}")
        expect(time.monotonic() - started < 60, "a restore waits for the lock that it has")
        expect(("held now and not in" in done.stdout) != is_damaged, f"what is lost is named where it can be read: {done.stdout}")
        expect_equal(len(m.held()), MANY, "held")
    say("a restore reads what another program has copied, and waits for nobody")


def restore_of_a_shorter_cooldown(world):
    """What rests now would rest less long in what is restored: that is a loss, and told."""
    m = Machine(world, "shorter", cooldown=1)
    backup = world.directory / "shorter.backup"
    m.croft("store", "backup", backup)
    m.croft("pool", "delete", "a")
    m.croft("pool", "create", "a", "--cidr", "10.79.0.0/22", "--block-size", "28", "--cooldown-seconds", "600")
    address = m.add("c0")
    expect_equal(m.call("DEL", "c0")[0], 0, "DEL")
    done = m.croft("store", "restore", backup, check=False)
    expect(done.returncode == 5 and f"{address}: rests until" in done.stdout, f"restore: {done}")
    done = m.croft("store", "restore", backup, "--force", check=False)
    expect(done.returncode == 0 and f"{address}: rests until" in done.stdout, f"restore --force: {done}")
    say("a cooldown that a restore would shorten is told before")


def restore_in_another_place(world):
    """The remedy of a refused register restores that one, and not the one that a forgotten --store means."""
    m, other = Machine(world, "refused"), Machine(world, "default")
    kept = [m.add(f"c{i}") for i in range(4)]
    others = {other.add(f"d{i}") for i in range(3)}
    run(sys.executable, "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE notes(x)')", m.db)
    code, _, text = m.call("ADD", "c9")
    remedy = f"--store {m.store} store restore {m.db} --force"
    expect(code == CORRUPT and remedy in text, f"ADD: {code} {text}")
    done = other.croft("store", "restore", m.db, "--force", check=False)
    expect(done.returncode != 0 and f"--store {m.store}" in done.stderr, f"restore elsewhere: {done}")
    expect_equal(set(other.held()), others, "the other register")
    run(world.bin / "croft", *remedy.split())
    expect_equal(set(m.held()), set(kept), "held")
    say("a remedy names the store that it is for")


def restore_killed(world):
    """At every call that makes something durable or gives a name: the register is the old one or the new one."""
    m = Machine(world, "killed")
    for i in range(MANY):
        m.add(f"a{i}")
    backup = world.directory / "killed.backup"
    m.croft("store", "backup", backup)
    in_backup = m.held()
    for i in range(3):
        m.add(f"b{i}")
    now = m.held()
    aside = world.directory / "killed-aside"
    shutil.copytree(m.folder, aside)
    seen = set()
    for call in ("rename,renameat2", "unlink,unlinkat", "fsync,fdatasync", "flock"):
        for number in range(1, 60):
            shutil.rmtree(m.folder)
            shutil.copytree(aside, m.folder)
            done = run("strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                       f"inject={call}:signal=KILL:when={number}", world.bin / "croft", "--store", m.store, "store",
                       "restore", backup, "--force", check=False)
            held = m.held()
            expect(held in (now, in_backup), f"killed at {call} {number}: {done}: neither the old register nor the new")
            seen.add(held == now)
            m.holders = {a: h.split(".")[1] for a, h in held.items()}
            m.add("new")
            if done.returncode == 0:
                break
        expect(done.returncode == 0, f"more calls of {call} than looked at")
    expect_equal(seen, {True, False}, "killed before and after the rename")
    say("a restore that is killed anywhere leaves the old register or the new one, and both serve")


def damage(folder, kind, name):
    """As a bad disk would, but with right checksums of the log's frames."""
    script = ("import sqlite3, os, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA wal_autocheckpoint=0'); "
              "n = c.execute('UPDATE records SET checksum=checksum+1 WHERE kind=? AND name LIKE ?', "
              "(int(sys.argv[2]), sys.argv[3])).rowcount; c.commit(); os._exit(0 if n == 1 else 1)")
    run(sys.executable, "-c", script, folder / "croft.db", kind, name)


def restore_beside_damage(world):
    """One damaged record of the backup, and something cools or runs that it is about."""
    pools, blocks, handles = 0, 3, 5
    for kind, name, what in ((blocks, "ipv4/10.79.%", "cools"), (blocks, "ipv4/10.79.%", "runs"), (pools, "a", "cools"),
                             (pools, "a", "runs"), (handles, "net.c1", "runs"), (handles, "net.c1", "moved")):
        m = Machine(world, f"damage-{kind}-{what}", cooldown=600)
        m.croft("pool", "create", "b", "--cidr", "10.80.0.0/24", "--cooldown-seconds", "600")
        kept = [m.add(f"c{i}", ipv4_pools=["a"]) for i in range(4)]
        backup = world.directory / f"damage-{kind}-{what}-backup"
        shutil.copytree(m.folder, backup)
        damage(backup, kind, name)
        rests = m.add("late", ipv4_pools=["a"])
        expect_equal(m.call("DEL", "late")[0], 0, "DEL")
        cache = []
        if what != "cools":
            cache = ["--cni-cache", m.cache, "--node", NODE]
            for i, address in enumerate(kept):
                m.note_running(f"c{i}", address if what == "runs" or i != 1 else "10.79.3.77")
        expect(m.croft("store", "restore", backup / "croft.db", *cache, check=False).returncode != 0, "restore, unforced")
        done = m.croft("store", "restore", backup / "croft.db", *cache, "--force", check=False)
        expect_equal(done.returncode, 0, f"damaged {kind} {name}, {what}: {done.stdout}{done.stderr}")
        named = {"cools": rests if kind == blocks else "", "runs": kept[1] if kind != handles else "", "moved": "10.79.3.77"}[what]
        expect(named in done.stdout, f"{named} is named: {done.stdout}")
        for i in range(12):
            code, addresses, _ = m.call("ADD", f"d{i}", ipv4_pools=["b"] if kind == pools else ["a"])
            expect_equal(code, 0, "ADD after the restore")
            expect(not set(addresses) & {rests, *kept}, f"{addresses} is in other hands or rests")
    say("a damaged record of a backup stops no restore that is asked for; what hangs on it is named")


def restore_without_a_pool(world):
    """A pool made since the backup: what cools in it nobody can get."""
    m = Machine(world, "no-pool", cooldown=600)
    m.add("c0")
    backup = world.directory / "no-pool.backup"
    m.croft("store", "backup", backup)
    m.croft("pool", "create", "q", "--cidr", "10.80.0.0/28", "--cooldown-seconds", "600")
    m.add("c1", ipv4_pools=["q"])
    expect_equal(m.call("DEL", "c1")[0], 0, "DEL")
    for arguments in (("--dry-run",), ()):
        done = m.croft("store", "restore", backup, *arguments, check=False)
        expect_equal(done.returncode, 0, f"restore {arguments}: {done.stdout}{done.stderr}")
    m.add("c2")
    say("what cools in a pool that a backup does not know stops no restore")


def restore_of_what_cooled(world):
    """What cools in a backup may have ended cooling since, and be somebody's who runs."""
    m = Machine(world, "cooled", cooldown=600)
    kept = [m.add(f"c{i}") for i in range(3)]
    expect_equal(m.call("DEL", "c0")[0], 0, "DEL")
    backup = world.directory / "cooled.backup"
    m.croft("store", "backup", backup)
    m.note_running("d0", kept[0])
    for i in (1, 2):
        m.note_running(f"c{i}", kept[i])
    done = m.croft("store", "restore", backup, "--cni-cache", m.cache, "--node", NODE, check=False)
    expect_equal(done.returncode, 0, f"restore: {done.stdout}{done.stderr}")
    expect_equal(m.held().get(kept[0]), "net.d0", "who holds what cooled")
    m.croft("check")
    say("who runs with an address that cools in a backup is recorded")


def test():
    require_programs("strace")
    with World("put-back", sys.argv[1]) as world:
        for part in (older_files, restore_without_a_pool, restore_of_what_cooled, restore_beside_damage,
                     restore_without_a_block, restore_after_a_look, restore_of_a_shorter_cooldown, restore_in_another_place,
                     restore_killed):
            part(world)


main(test, 280)
