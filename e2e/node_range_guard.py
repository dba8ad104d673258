"""What keeps node ranges where they are: the list of nodes that is gone for a while, cluster CIDRs in two forms; and the
files that `--out` and `--report` may replace. Neither root nor network.

usage: node_range_guard.py BIN_DIR
"""

import contextlib
import os
import re
import stat
import subprocess
import sys

from lib import World, expect, expect_equal, main, run, wait_for, write_past_croft

NODES = 6
GRACE = 1.5  # seconds


class Croft:
    def __init__(self, world):
        self.world, self.store = world, world.store()

    def text(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def ranges(self):
        return {row["node"]: row["cidr"] for row in self.world.croft(self.store, "node", "range", "list")}

    def forget_nodes(self):
        """The records of all nodes are gone, as when their list is; returns what was there."""
        return write_past_croft(self.store, ("SELECT * FROM records WHERE kind=10", ()),
                                ("DELETE FROM records WHERE kind=10", ()))[0][0]

    def put_back(self, rows):
        write_past_croft(self.store, *(("INSERT INTO records VALUES(?, ?, ?, ?, ?, ?)", row) for row in rows))


@contextlib.contextmanager
def controller(croft, log):
    with open(log, "w") as out:
        daemon = subprocess.Popen([str(croft.world.bin / "croftd"), "controller", "--store", croft.store, "--grace",
                                   f"{int(GRACE * 1000)}ms", "--interval", "200ms", "--allocate-node-cidrs"], stderr=out)
    try:
        yield lambda: log.read_text().count("node ranges: ") and len(re.findall(r"controller: node ranges: \d+ nodes",
                                                                                log.read_text()))
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)


def nodes_away(croft):
    croft.text("node", "range", "config", "--cluster-cidr=10.244.0.0/21")
    for number in range(NODES):
        croft.text("node", "range", "assign", f"node-{number}")
    before = croft.ranges()
    log = croft.world.directory / "controller.log"
    with controller(croft, log) as passes:
        wait_for(lambda: passes() >= 2, "two looks that see all nodes")
        rows = croft.forget_nodes()
        seen = passes()
        # Looks without any node for longer than the grace, then one that sees a single one.
        wait_for(lambda: passes() >= seen + int(GRACE / 0.2) + 4, "looks that see no node", seconds=60)
        croft.put_back(rows[:1])
        seen = passes()
        wait_for(lambda: passes() >= seen + 2, "looks that see one node")
        croft.text("node", "label", "new", "zone=a")
        wait_for(lambda: "new" in croft.ranges(), "a range for the new node")
        croft.put_back(rows[1:])
        seen = passes()
        wait_for(lambda: passes() >= seen + 2, "looks that see all nodes again")
    text = log.read_text()
    after = croft.ranges()
    expect_equal({node: after.get(node) for node in before}, before, f"ranges of the nodes that were away: {text}")
    expect(after["new"] not in before.values(), f"the new node has a range of another's: {after}")
    expect("nodes_empty" in text and "nodes_shrunken" in text, f"no alarm in the log: {text}")


def one_node_goes(croft):
    """The rule still frees: one node of many, gone for the grace."""
    log = croft.world.directory / "controller-2.log"
    rows = [row for row in croft.forget_nodes()]
    names = [row for row in rows if "node-3" not in [str(cell) for cell in row]]
    expect_equal(len(names), len(rows) - 1, f"records of nodes: {rows}")
    croft.put_back(names)
    with controller(croft, log) as passes:
        wait_for(lambda: "node-3" not in croft.ranges(), f"the range of a node that is gone: {log.read_text()}",
                 seconds=60)
        wait_for(lambda: passes() >= 1, "a look")


def two_forms(croft):
    text = croft.text("node", "range", "config", "--cluster-cidr=10.30.0.0/16,::ffff:10.30.0.0/112",
                      "--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=120", code=2)
    expect("IPv4-mapped" in text, text)
    text = croft.text("pool", "create", "mapped", "--cidr", "::ffff:10.40.0.0/112", "--block-size", "122", code=2)
    expect("IPv4-mapped" in text, text)


def files_written(croft):
    directory = croft.world.directory
    fifo, device, link, target = (directory / name for name in ("fifo", "device", "link", "target"))
    os.mkfifo(fifo)
    target.write_text("kept")
    link.symlink_to(target)
    places = [fifo, link, directory]
    if os.geteuid() == 0:
        try:
            os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 7))  # /dev/full
            places.append(device)
        except PermissionError:
            pass
    before = {place: (place.lstat().st_mode, place.lstat().st_ino) for place in places}
    for command in (("node", "range", "subnet-env", "node-0", "--out"), ("check", "--report")):
        for place in places:
            done = run(croft.world.bin / "croft", "--store", croft.store, *command, place, check=False, timeout=20)
            expect_equal(done.returncode, 2, f"exit code of {command} {place}: {done.stdout}{done.stderr}")
            expect(str(place) in done.stderr and "regular file" in done.stderr, done.stderr)
        new = directory / f"new-{command[0]}"
        for content in (None, "older"):
            if content:
                new.write_text(content)
            run(croft.world.bin / "croft", "--store", croft.store, *command, new, check=False)
            expect(new.is_file() and new.read_text() not in ("", "older"), f"{command}: a regular file, or a new name")
    expect_equal({place: (place.lstat().st_mode, place.lstat().st_ino) for place in places}, before, "what was there")
    expect_equal(target.read_text(), "kept", "where a link led")


def test():
    with World("rangeguard", sys.argv[1]) as world:
        croft = Croft(world)
        nodes_away(croft)
        two_forms(croft)
        files_written(croft)
        one_node_goes(croft)


if __name__ == "__main__":
    main(test)
