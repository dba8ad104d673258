"""Files of an earlier moment put back beside newer ones, also across a restore; a restore beside damage (one that is killed:
restore_crash_test.cc): no address gets a second holder, and there is always a way out, if only an empty register.
"""

import contextlib
import pathlib
import shutil
import sys

from lib import cache_entry, call_ipam, expect, expect_equal, main, run, say, start_agent, wait_for

NODE = "node-a"
SUFFIXES = ("", "-wal", "-shm", "-lock")
CORRUPT = 101


class Machine:
    """A store in a directory of its own, plugins, perhaps an agent, and a runtime's cache. It knows who got which address."""

    def __init__(self, world, name, cooldown=0):
        self.world, self.holders, self.cidr = world, {}, "10.79.0.0/22"
        self.folder = world.directory / name
        self.folder.mkdir()
        self.db = self.folder / "croft.db"
        self.store = f"sqlite:{self.db}"
        self.socket = world.directory / f"{name}.sock"
        self.log = world.directory / f"{name}.log"
        self.cache = world.directory / f"{name}-cni"
        (self.cache / "results").mkdir(parents=True)
        self.croft("pool", "create", "a", "--cidr", self.cidr, "--block-size", 28, "--cooldown-seconds", cooldown)

    def call(self, command, container, agent=False, **ipam):
        """(CNI code, 0 for success; the addresses; the text)"""
        code, answer = call_ipam(self.world, command, container, self.store, NODE, version="1.1.0", log_file_path=str(self.log), **ipam,
                                 agent=str(self.socket) if agent else "none")
        expect(code in (0, 1), f"{command} {container}: exit {code}")
        if code != 0:
            return answer["code"], [], answer["msg"]
        return 0, [ip["address"].split("/")[0] for ip in (answer or {}).get("ips", [])], ""

    def add(self, container, **how):
        code, addresses, text = self.call("ADD", container, **how)
        expect_equal(code, 0, f"ADD {container}: {text}")
        holder = self.holders.setdefault(addresses[0], container)
        expect(holder == container, f"two holders of {addresses[0]}: {holder} and {container}")
        return addresses[0]

    def path(self, suffix):
        return pathlib.Path(str(self.db) + suffix)

    def note_running(self, container, address):
        """As libcni does after an ADD."""
        cache_entry(self.cache / "results", container, address=address)

    def croft(self, *arguments, check=True):
        return run(self.world.bin / "croft", "--store", self.store, *arguments, check=check)

    def held(self):
        return {address: row["handle"] for address, row in self.world.held(self.store).items()}

    @contextlib.contextmanager
    def agent(self):
        agent = start_agent(self.world, self.store, NODE, self.socket)
        yield
        agent.end(30)

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
        expect("backup-and-restore.md" in text, f"{what}: {text}")
        again = ("store", "restore", "--empty", "--cni-cache", m.cache, "--node", NODE)
        expect_equal(m.croft(*again, "--dry-run", check=False).returncode, 0, f"{what}: a look")
        expect_equal(m.croft(*again, check=False).returncode, 5, f"{what}: the pools are not named")
        m.croft(*again, "--pool", f"a={m.cidr}")
        for name, address in {c: a for a, c in m.holders.items()}.items():
            expect_equal(m.held().get(address), f"net.{name}", f"{what}: who holds {address}")
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


def damage(folder, kind, name):
    """As a bad disk would, but with right checksums of the log's frames."""
    script = ("import sqlite3, os, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA wal_autocheckpoint=0'); "
              "n = c.execute('UPDATE records SET checksum=checksum+1 WHERE kind=? AND name LIKE ?', "
              "(int(sys.argv[2]), sys.argv[3])).rowcount; c.commit(); os._exit(0 if n == 1 else 1)")
    run(sys.executable, "-c", script, folder / "croft.db", kind, name)


def restore_beside_damage(world):
    """One damaged record of the backup, and somebody runs that it is about."""
    pools, blocks, handles = 0, 3, 5
    for kind, name, moved in ((blocks, "ipv4/10.79.%", False), (pools, "a", False), (handles, "net.c1", True)):
        m = Machine(world, f"damage-{kind}", cooldown=600)
        m.croft("pool", "create", "b", "--cidr", "10.80.0.0/24", "--cooldown-seconds", "600")
        kept = [m.add(f"c{i}", ipv4_pools=["a"]) for i in range(4)]
        backup = world.directory / f"damage-{kind}-backup"
        shutil.copytree(m.folder, backup)
        damage(backup, kind, name)
        cache = ["--cni-cache", m.cache, "--node", NODE]
        for i, address in enumerate(kept):
            m.note_running(f"c{i}", "10.79.3.77" if moved and i == 1 else address)
        expect(m.croft("store", "restore", backup / "croft.db", *cache, check=False).returncode != 0, "restore, unforced")
        done = m.croft("store", "restore", backup / "croft.db", *cache, "--force", check=False)
        expect_equal(done.returncode, 0, f"damaged {kind} {name}: {done.stdout}{done.stderr}")
        named = "10.79.3.77" if moved else kept[1]
        expect(named in done.stdout, f"{named} is named: {done.stdout}")
        for i in range(12):
            code, addresses, _ = m.call("ADD", f"d{i}", ipv4_pools=["b"] if kind == pools else ["a"])
            expect_equal(code, 0, "ADD after the restore")
            expect(not set(addresses) & set(kept), f"{addresses} is in other hands")
    say("a damaged record of a backup stops no restore that is asked for; what hangs on it is named")


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


def backup_and_restore(world):
    """While an agent serves: what the runtime knows to run is recorded, and what is lost is said."""
    m = Machine(world, "restore")
    backup = world.directory / "croft.backup"
    with m.agent():
        for i in range(5):
            m.note_running(f"c{i}", m.add(f"c{i}", agent=True))
        m.croft("store", "backup", backup)
        expect_equal(m.croft("store", "backup", backup, check=False).returncode, 1, "a backup is not overwritten")
        for i in range(3):  # gone since, and their addresses are in other hands
            expect_equal(m.call("DEL", f"c{i}", agent=True)[0], 0, "DEL")
            (m.cache / "results" / f"net-c{i}-eth0").unlink()
        m.holders = {address: name for address, name in m.holders.items() if name in ("c3", "c4")}
        running = {f"n{i}": m.add(f"n{i}", agent=True) for i in range(8)}
        for name, address in running.items():
            m.note_running(name, address)
        lost, before = m.add("unknown", agent=True), m.held()
        again = ("store", "restore", backup, "--cni-cache", m.cache, "--node", NODE)
        expect_equal(m.croft("store", "restore", backup, check=False).returncode, 5, "a restore that forgets addresses")
        done = m.croft(*again, check=False)
        expect(done.returncode == 5 and lost in done.stdout, f"what the runtime does not know is lost: {done}")
        expect_equal(m.held(), before, "held after a refusal")
        m.croft(*again, "--force")
        held = m.held()
        expect_equal({name: held.get(address) for name, address in running.items()}, {name: f"net.{name}" for name in running}, "held")
        m.holders = {address: handle.split(".")[1] for address, handle in held.items()}
        for i in range(20):
            m.add(f"x{i}", agent=i % 2 == 0)
        wait_for(lambda: (m.add("last", agent=True), "via=agent" in m.log.read_text().splitlines()[-1])[1], "the agent serves the restored register")
        for garbage in (b"", b"no register", backup.read_bytes()[:9000]):
            (world.directory / "garbage").write_bytes(garbage)
            expect_equal(m.croft("store", "restore", world.directory / "garbage", "--force", check=False).returncode, 1, "restore of garbage")
        m.croft("check")
    say("backup and restore while an agent serves")


def test(world):
    for part in (older_files, backup_and_restore, restore_of_what_cooled, restore_beside_damage):
        part(world)


main(test, 280)
