"""`croft host-local list|check|repair` on a directory of Debian's plugins, after a crash of the node: some pods' namespaces go without a
DEL, other files are laid beside, and all but one is aged. `check` names exactly the leaks, each with its evidence; `repair` removes
exactly those, with --apply alone, under the lock, when a second look agrees. In a PID namespace of its own, whose processes are all
there are: on the machine there may be some that a test may not look at (audit_test.cc).
"""

import base64
import json
import os
import re
import subprocess
import sys
import time

from host_local_lib import Locked, holder
from lib import (PLUGINS, Plugin, expect, expect_equal, main, require_network_namespaces, require_programs, run, say, skip,
                 wait_for)

INSIDE = "CROFT_E2E_INSIDE"
NETWORK = "podnet"
FINDINGS, REFUSED = 3, 5  # exit codes
DAY = 86400
UPTIME = float(open("/proc/uptime", encoding="ascii").read().split()[0])
AGE = int(min(600, UPTIME / 2))  # of what is old: older than the grace period, and since this boot
GRACE = f"{AGE // 2}s"


def enter_own_pid_namespace():
    """Starts this program again in namespaces of its own. Mounts of the machine still go when the machine unmounts
    them; its named network namespaces are covered."""
    if os.environ.get(INSIDE) == "1":
        os.makedirs("/run/netns", exist_ok=True)
        run("mount", "-t", "tmpfs", "croft-e2e", "/run/netns")
        return
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--propagation", "slave", "--kill-child=TERM"]
    probe = run(*command, "true", check=False)
    if probe.returncode != 0:
        skip(f"no PID namespaces here: {probe.stderr.strip()}")
    os.environ[INSIDE] = "1"
    os.execvp(command[0], [*command, sys.executable, "-B", *sys.argv])


class Reference:
    """Debian's plugins alone."""
    cni_path = str(PLUGINS)

    @staticmethod
    def find_plugin(name):
        return PLUGINS / name


class Node:
    def __init__(self, world):
        self.world = world
        self.netns = world.netns("node")
        self.data = world.directory / "networks"
        self.folder = self.data / NETWORK
        self.cache = world.directory / "cache"
        (self.cache / "results").mkdir(parents=True)
        self.bridge = Plugin(Reference(), "bridge", self.netns)
        self.config = {"cniVersion": "1.0.0", "name": NETWORK, "type": "bridge", "bridge": "br0",
                       "ipam": {"type": "host-local", "dataDir": str(self.data),
                                "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd00:77::/64"}]]}}

    def pod(self, name, cached):
        """A pod in a namespace of its own: its namespace and its addresses."""
        netns = self.world.netns(name)
        result = self.bridge.add(self.config, name, netns)
        if cached:
            self.remember(name, result=result)
        return netns, [ip["address"].split("/")[0] for ip in result["ips"]]

    def remember(self, container, netns=None, result=None):
        """What libcni keeps of an ADD; without `netns` as old ones do, whose only trace of it is in the result."""
        entry = {"kind": "cniCacheV1", "containerId": container, "ifName": "eth0", "networkName": NETWORK,
                 **({"netns": netns} if netns else {}), "config": base64.b64encode(json.dumps(self.config).encode()).decode(),
                 "cniArgs": [["K8S_POD_NAMESPACE", "default"], ["K8S_POD_NAME", f"pod-{container}"]],
                 "result": result or {}}
        self.cache_file(container).write_text(json.dumps(entry), encoding="utf-8")

    def cache_file(self, container):
        return self.cache / "results" / f"{NETWORK}-{container}-eth0"

    def lay(self, name, content):
        (self.folder / name).write_bytes(content.encode())

    def age(self, name, seconds):
        moment = time.time() - seconds
        os.utime(self.folder / name, (moment, moment))

    def croft(self, *arguments):
        done = run(self.world.bin / "croft", "-o", "json", "host-local", arguments[0], "--dir", self.folder, "--cni-cache",
                   self.cache, *arguments[1:], check=False)
        return done, json.loads(done.stdout) if done.stdout else None

    def look(self, *arguments):
        """A check or repair that sees everything."""
        return self.croft(*arguments, "--in-container", "--grace", GRACE)

    def picture(self):
        """All that is in the data directory: names, contents, times."""
        return {str(path.relative_to(self.data)): (path.read_bytes(), path.stat().st_mtime_ns)
                for path in self.data.rglob("*") if path.is_file()}

    def names(self):
        return {path.name for path in self.folder.iterdir()} - {"lock", "last_reserved_ip.0", "last_reserved_ip.1"}


def findings_of(rows):
    return {(row["finding"], row["subject"]) for row in rows}


def proven_of(rows):
    return {row["subject"] for row in rows if row["proven"]}


def expect_evidence(rows, subject, *texts):
    evidence = "\n".join(next(row["evidence"] for row in rows if row["subject"] == subject))
    for text in texts:
        expect(text in evidence, f"evidence of {subject}: expected {text!r} in:\n{evidence}")


def pinned_namespace(world, address):
    """One that lives by a mount in another mount namespace alone, as container engines keep theirs."""
    pin = world.directory / "pin of a namespace"
    pin.touch()
    script = ('mount --bind /proc/self/ns/net "$1" && ip address add "$2/24" dev lo '
              '&& exec nsenter -t 1 --net sleep 1000')
    process = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", script, "sh",
                                str(pin), address])
    world.stack.callback(process.wait)
    world.stack.callback(process.kill)
    wait_for(lambda: open(f"/proc/{process.pid}/comm", encoding="ascii").read() == "sleep\n", "the namespace's mount")
    expect_equal(os.readlink(f"/proc/{process.pid}/ns/net"), os.readlink("/proc/self/ns/net"), "where sleep is")


def crashed_node(node):
    """The directory that everything below is about; the files that are leaks, and those that must stay."""
    _, alive = node.pod("alive", cached=True)
    uncached_netns, uncached = node.pod("uncached", cached=False)
    gone_netns, gone = node.pod("gone", cached=True)
    forgotten_netns, forgotten = node.pod("forgotten", cached=False)
    expect_equal(len(alive + uncached + gone + forgotten), 8, "addresses of four pods")
    for netns in (gone_netns, forgotten_netns):
        run("ip", "netns", "delete", netns.name)

    node.lay("10.77.0.100", "")                       # a crash of the reference between create and write
    node.lay("10.77.0.101", "long-gone")              # written before v0.8.0
    node.lay("10.77.0.102", "legacy")                 # the same, and its container lives
    node.remember("legacy", uncached_netns.path)
    node.lay("10.77.0.103", holder("doubt"))          # power loss has emptied its cache entry
    node.cache_file("doubt").write_bytes(b"")
    node.lay("10.77.0.104", holder("young"))
    node.lay("10.77.0.105", holder("hidden"))         # lives in a namespace without a name
    node.world.nameless_netns().run("ip", "address", "add", "10.77.0.105/24", "dev", "lo")
    node.lay("10.77.0.106", holder("pinned"))         # lives in one that a mount of another mount namespace keeps
    pinned_namespace(node.world, "10.77.0.106")
    node.lay("192.0.2.7", holder("alive"))            # of ranges that were changed since
    node.lay("last_reserved_ip.1", "junk")
    for path in node.folder.iterdir():
        node.age(path.name, AGE)
    node.age("10.77.0.101", 30 * DAY)
    node.age("10.77.0.104", 1)
    leaks = {*gone, *forgotten, "10.77.0.100", "10.77.0.101"}
    kept = {*alive, *uncached, "10.77.0.102", "10.77.0.103", "10.77.0.104", "10.77.0.105", "10.77.0.106", "192.0.2.7"}
    expect_equal(node.names(), leaks | kept, "files of the directory")
    return {"gone": gone, "forgotten": forgotten, "alive": alive}, leaks, kept


def check_names_the_leaks(node, pods, leaks):
    say("check: exactly the leaks, each with its evidence")
    done, rows = node.look("check")
    expect_equal(done.returncode, FINDINGS, "exit code of check")
    expect_equal(proven_of(rows), leaks, "proven leaks")
    expect_equal(findings_of(rows),
                 {("leak", name) for name in leaks - {"10.77.0.100"}}
                 | {("empty_file", "10.77.0.100"), ("undecided", "10.77.0.103")}, "findings")
    nowhere = "configured in none of the "
    for address in pods["gone"]:
        expect_evidence(rows, address, "held by container gone, interface eth0", nowhere, "of its cache entry",
                        " is gone", "written ")
    for address in pods["forgotten"]:
        expect_evidence(rows, address, "held by container forgotten", nowhere, "cache has no entry", "written ")
    expect_evidence(rows, "10.77.0.101", "interface not recorded", "before this boot")
    expect_evidence(rows, "10.77.0.103", "its cache entry can't be read")
    expect_equal({row["subject"] for row in rows if row["beforeBoot"]}, {"10.77.0.101"}, "written before this boot")


def changes_nothing_unasked(node, leaks):
    say("list, check, repair without --apply, and a repair of too much change nothing")
    before = node.picture()
    for arguments in (["list"], ["check"], ["repair", "--in-container"]):
        node.croft(*arguments)
    done, rows = node.look("repair")
    expect_equal((done.returncode, proven_of(rows)), (FINDINGS, leaks), "repair without --apply")
    done, _ = node.look("repair", "--apply", "--max-share", "0.3")
    expect_equal(done.returncode, REFUSED, "exit code of a repair of too much")
    expect("5 of 16 reservations" in done.stderr and "--max-share 1" in done.stderr, f"the refusal: {done.stderr}")
    expect_equal(node.picture(), before, "data directory")


def second_look(node, pods):
    """While repair waits for the lock, an address comes to life that the first look thought dead, which keeps the other
    one of its container too, and another file is released and reserved again."""
    say("repair --apply: the second look, under the lock")
    alive = node.world.netns("late")
    one, other = pods["forgotten"][0], pods["gone"][0]
    with Locked(node.folder):
        repair = subprocess.Popen(
            [node.world.bin / "croft", "-o", "json", "host-local", "repair", "--dir", node.folder, "--cni-cache",
             node.cache, "--in-container", "--grace", GRACE, "--apply"], stdout=subprocess.PIPE, text=True)
        waits = re.compile(rf"-> FLOCK .* {repair.pid} ")
        wait_for(lambda: waits.search(open("/proc/locks", encoding="ascii").read()), "repair to wait for the lock")
        alive.run("ip", "address", "add", f"{one}/24", "dev", "lo")
        node.lay(other, holder("again"))
        node.age(other, AGE)
    out, _ = repair.communicate(timeout=30)
    expect_equal(repair.returncode, 0, "exit code of repair --apply")
    removed = {row["subject"] for row in json.loads(out)}
    revived = {*pods["forgotten"], other}
    expect(not removed & revived, f"removed what had come to life: {removed}")
    alive.run("ip", "address", "delete", f"{one}/24", "dev", "lo")
    return removed, revived


def repair_removes(node, pods, leaks, kept):
    removed, revived = second_look(node, pods)
    expect_equal(removed, leaks - revived, "removed")
    expect_equal(node.names(), kept | revived, "files after repair --apply")
    done, rows = node.look("repair", "--apply")
    expect_equal((done.returncode, proven_of(rows)), (0, revived), "the next repair, when nothing comes to life")
    expect_equal(node.names(), kept, "files after the second repair --apply")
    done, rows = node.look("repair", "--apply")
    expect_equal((done.returncode, rows), (0, []), "repair of what is mended")
    say("  removed: " + " ".join(sorted(leaks)))


def test(world):
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    node = Node(world)
    pods, leaks, kept = crashed_node(node)
    check_names_the_leaks(node, pods, leaks)
    changes_nothing_unasked(node, leaks)
    repair_removes(node, pods, leaks, kept)
    _, addresses = node.pod("new", cached=False)  # the directory still serves
    say(f"the reference's next ADD got {' and '.join(addresses)}")


if __name__ == "__main__":
    require_programs("ip", "nsenter", "unshare", "mount", "bridge", "host-local")
    require_network_namespaces()
    enter_own_pid_namespace()
    main(test)
