"""A node's agent whose store is damaged, cut, empty, gone, removed while it runs, on a full or on a read-only disk: what
is damaged is set aside and known again from the cloud and the host, no address of before is given away while anything
uses it, and what is no damage changes nothing. The real agent, on a simulated cloud.

usage: vpc_rebuild.py BIN_DIR
"""

import os
import pathlib
import sys
import time

from lib import World, expect, expect_equal, fill_disk, main, require_network_namespaces, run, say, wait_for
from vpc_lib import Agent, Cloud, Process, at_once, field, grpc

PATIENCE = 45  # seconds; the machine may be busy
FAST = ("--doubt-seconds", "2", "--grace-seconds", "1", "--young-seconds", "1", "--reconcile-seconds", "1", "--cooldown-seconds", "1")


class Node(Agent):
    """A node's agent, whose pods' addresses are in a network namespace of the host."""

    def __init__(self, world, name, is_on_own_disk=False):
        super().__init__(Cloud(world, name), low=3, high=8, flags=FAST, name=name)
        self.socket = world.directory / f"{name}.sock"
        self.channel = self.open_channel()
        self.pods = world.netns(name.replace("_", "-"))
        if is_on_own_disk:
            run("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", self.directory)
            world.stack.callback(run, "umount", "-l", self.directory, check=False)

    def begin(self):
        self.process = Process(self.cloud.world, self.name, self.command())
        return self

    def begin_if_it_ended(self):
        if self.process.child.poll() is not None:
            self.begin()

    def begin_with_stock(self):
        self.begin()
        self.wait_for_said(lambda: len(self.stock()) >= 3, "the first addresses")
        return self

    def end(self):
        self.stop(PATIENCE)

    def said(self):
        return self.process.log.read_text(errors="replace")

    def wait_for_said(self, condition, what):
        wait_for(condition, f"{self.name}: {what}\n{self.said()[-3000:]}", PATIENCE)

    def runs_or_ends(self):
        def is_so():
            try:
                return self.process.child.poll() is not None or self.call("Ping", timeout=1) is not None
            except grpc.RpcError:
                return False
        self.wait_for_said(is_so, "it runs, or ends")

    def add_when_served(self, pod):
        def served():
            try:
                return self.add(pod, timeout=PATIENCE)
            except grpc.RpcError as error:
                expect(error.details(), f"{self.name}: a failure without a reason: {error}")
                return None
        return wait_for(served, f"{self.name}: ADD {pod}", PATIENCE)

    def stock(self):
        """Free and cooling ones; nothing while it does not serve."""
        try:
            return set().union(*self.pool())
        except grpc.RpcError:
            return set()

    def release(self, addresses):
        """False while the agent is just asking the cloud for more: what has no record may be what it gets."""
        try:
            self.call("ReleaseIP", b"".join(field(1, address) for address in addresses))
            return True
        except grpc.RpcError as error:
            expect("nothing was released" in error.details(), f"{self.name}: {error}")
            return False

    def use(self, address, verb="add"):
        """As a pod's interface has it."""
        self.pods.run("ip", "address", verb, f"{address}/32", "dev", "lo")

    def set_aside(self):
        return sorted(path.name for path in self.directory.glob("stock.db.damaged*"))

    # Bits all over the database, whose log is folded into it; and so on.
    def flip(self):
        run("sqlite3", self.store, "PRAGMA wal_checkpoint(TRUNCATE)")
        content = bytearray(self.store.read_bytes())
        for at in range(4096, len(content), 97):
            content[at] ^= 1 << at % 8
        self.store.write_bytes(content)

    def cut(self):
        run("sqlite3", self.store, "PRAGMA wal_checkpoint(TRUNCATE)")
        os.truncate(self.store, 5000)

    def empty(self):
        self.store.write_bytes(b"")

    def garble(self):
        self.store.write_bytes(b"this is not a database, it is a sentence" * 200)

    def remove(self, suffixes=("", "-wal", "-shm")):
        for suffix in suffixes:
            pathlib.Path(f"{self.store}{suffix}").unlink(missing_ok=True)

    def remove_all(self):
        self.remove(("", "-wal", "-shm", "-lock"))


def damaged(how):
    """A node with two pods that live and one that ends while its agent is down."""
    def case(world):
        node = Node(world, how).begin_with_stock()
        living = {node.add("web"), node.add("db")}
        for address in living:
            node.use(address)
        ended = node.add("job")
        node.wait_for_said(lambda: len(node.stock()) >= 3, "the stock is full again")
        while_running = how.startswith("running_")
        if not while_running:
            node.end()
        before = node.cloud.held()["node-a"]
        getattr(node, how.removeprefix("running_"))()
        if while_running:
            node.wait_for_said(lambda: "is begun anew" in node.said(), "the loss is told")
        else:
            node.begin()
        # Whatever is given meanwhile is none of before: who knows what uses those.
        given = {"early": node.add_when_served("early")}
        expect(given["early"] not in before, f"{how}: {given['early']} was given blindly")
        node.use(given["early"])
        node.wait_for_said(lambda: "the stock is known again" in node.said(), "the rebuild ends")
        node.wait_for_said(lambda: ended in node.stock(), f"{ended} is back")
        for i in range(6):
            given[f"late-{i}"] = node.add(f"late-{i}", timeout=PATIENCE)
            node.use(given[f"late-{i}"])
        expect(not living & set(given.values()), f"{how}: {living} are in use, and given away: {given}")
        expect_equal(len(set(given.values())), len(given), f"{how}: each has its own")
        expect(not living & node.stock(), f"{how}: {living} are in the stock")
        if how != "running_remove_all":
            expect(node.set_aside() and "is set aside as" in node.said(), f"{how}: nothing is set aside: {node.said()}")
        # What nobody knows a use of any more goes only when an operator says so.
        for address in living:
            node.use(address, "delete")
        node.wait_for_said(lambda: node.unused() == living, "what is unused")
        node.wait_for_said(lambda: node.release(living), "the release")
        # It may have asked for more meanwhile, and got the very same again.
        gone = {event["ip"] for event in node.cloud.truth()["events"] if event["from"] and not event["to"]}
        expect(living <= gone, f"{how}: {living} went back to the cloud")
        node.end()
        # The new store is a store like any other.
        node.begin()
        expect_equal(node.add_when_served("late-0"), given["late-0"], f"{how}: it has what was recorded")
        node.end()
        node.cloud.check()
    case.__name__ = how
    return case


def read_only(world):
    node = Node(world, "read_only", is_on_own_disk=True).begin_with_stock()
    web = node.add("web")
    node.end()
    run("mount", "-o", "remount,ro", node.directory)
    node.begin()

    node.wait_for_said(lambda: "ead-only" in node.said(), "the reason is told")
    time.sleep(10)  # looks at the store, the cloud and the host, many of each
    expect_equal(node.set_aside(), [], "read-only: it is no damage")
    run("mount", "-o", "remount,rw", node.directory)
    node.begin_if_it_ended()
    db = node.add_when_served("db")
    expect(db != web, f"read-only: {db} is another pod's")
    expect_equal((node.add("web"), node.set_aside()), (web, []), "read-only: nothing is forgotten or set aside")
    node.end()


def full(world):
    node = Node(world, "full", is_on_own_disk=True).begin_with_stock()
    given = {node.add("web")}
    node.end()
    fill_disk(node.directory)
    node.begin().runs_or_ends()
    for i in range(4):
        # What was reserved may serve; whatever does not says why.
        try:
            given.add(node.add(f"full-{i}", timeout=3))
        except grpc.RpcError as error:
            expect(error.details(), f"full: a failure without a reason: {error}")
    expect_equal(node.set_aside(), [], "full: it is no damage")
    # A damaged store on a full disk: it is set aside, and nothing is given from an empty one.
    if node.process.child.poll() is None:
        node.end()
    node.empty()
    before = len(node.said())
    node.begin().runs_or_ends()
    if node.process.child.poll() is not None:
        said = node.said()[before:]
        expect("space" in said and "is set aside as" in said, f"full: the reason is told: {said}")
    (node.directory / "filler").unlink()
    node.begin_if_it_ended()
    address = node.add_when_served("after")
    expect(address not in given, f"full: {address} is another pod's")
    node.wait_for_said(lambda: "known again" in node.said(), "the rebuild ends")
    node.end()


def anothers(world):
    """A path that is wrong is told, and what is there is left alone."""
    node = Node(world, "anothers")
    run("sqlite3", node.store, "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(7)")
    node.begin()
    expect(node.process.child.wait(PATIENCE) != 0 and "another program" in node.said(), node.said())
    expect_equal(run("sqlite3", node.store, "SELECT x FROM theirs").stdout.strip(), "7", "their content")
    expect_equal(node.set_aside(), [], "another program's database stays")


KINDS = ("flip", "cut", "empty", "garble", "remove", "running_remove", "running_remove_all", "running_empty")


def test():
    require_network_namespaces()
    with World("rebuild", sys.argv[1]) as world:
        at_once(world, [*map(damaged, KINDS), read_only, full, anothers], 12)
        say(f"{len(KINDS)} ways to lose a store: each is known again")


main(test, seconds=200)
