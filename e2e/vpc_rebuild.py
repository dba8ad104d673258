"""A node's agent whose store is damaged, cut, empty, gone, removed while it runs, on a full or on a read-only disk: what
is damaged is set aside and known again from the cloud and the host, no address of before is given away while anything
uses it, and what is no damage changes nothing. The real agent, on a simulated cloud.

usage: vpc_rebuild.py BIN_DIR
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

from lib import World, expect, expect_equal, fill_disk, main, own_environment, require_network_namespaces, run, say, wait_for

try:
    import grpc
except ImportError:
    say("skipped: python3-grpcio is not installed")
    sys.exit(77)

PATIENCE = 45  # seconds; the machine may be busy
FAST = ["--doubt-seconds", "2", "--grace-seconds", "1", "--young-seconds", "1", "--reconcile-seconds", "1",
        "--cooldown-seconds", "1", "--low-water-mark", "3", "--high-water-mark", "8", "--no-probe"]


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def text(number, value):
    return varint(number << 3 | 2) + varint(len(value.encode())) + value.encode()


def fields(message):
    """(number, value) of a message: numbers and bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return value
    while at < len(message):
        tag = number()
        value = number()
        if tag & 7 == 2:
            yield tag >> 3, message[at:at + value]
            at += value
        else:
            yield tag >> 3, value


def addresses(message, wanted):
    return [value.decode() for number, network in fields(message) if number == wanted
            for inner, value in fields(network) if inner == 6]


class Node:
    """A node of the simulated cloud with an agent, whose pods' addresses are in a network namespace of the host."""

    def __init__(self, world, cloud, name, folder=None):
        self.world, self.cloud, self.name = world, cloud, name
        self.folder = folder or world.directory / name
        self.folder.mkdir(exist_ok=True)
        self.database = self.folder / "vpc.db"
        self.socket = world.directory / f"{name}.sock"
        self.log_file = world.directory / f"{name}.log"
        self.pods = world.netns(name)
        self.process = None
        world.stack.callback(self.kill)

    def start(self):
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [self.world.bin / "croftd", "vpc-agent", "--node", self.name, "--store", f"sqlite:{self.database}",
                 "--socket", self.socket, "--api", f"{self.cloud}/", "--metadata", f"{self.cloud}/{self.name}",
                 "--log-directory", "none", *FAST],
                env={**os.environ, **own_environment(self.world.directory)}, stderr=log, stdout=log)
        return self

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.process.terminate()
        expect_equal(self.process.wait(PATIENCE), 0, f"{self.name}: exit code")

    def log(self):
        return self.log_file.read_text(errors="replace")

    def call(self, method, request=b"", seconds=5):
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            return channel.unary_unary(f"/rpc.CNIIpam/{method}")(request, timeout=seconds)

    def add(self, pod, seconds=PATIENCE):
        request = text(1, pod) + text(2, "shop") + text(3, f"sandbox-{pod}") + text(4, "/run/netns/x") + text(5, "eth0")
        return addresses(self.call("AddPodNetwork", request, seconds), 2)[0]

    def add_when_served(self, pod):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.add(pod)
            except grpc.RpcError as error:
                if time.monotonic() > end:
                    raise
                expect(error.details(), f"{self.name}: a failure without a reason: {error}")
                time.sleep(0.1)

    def is_up(self):
        try:
            self.call("Ping", b"", 1)
            return True
        except grpc.RpcError:
            return False

    def stop_if_it_runs(self):
        if self.process.poll() is None:
            self.stop()

    def pool(self):
        """Free and cooling ones; nothing while it does not serve."""
        try:
            answer = self.call("DescribePool")
        except grpc.RpcError:
            return set()
        return set(addresses(answer, 2)) | set(addresses(answer, 3))

    def release(self, unused):
        """False while the agent is just asking the cloud for more: what has no record may be what it gets."""
        try:
            self.call("ReleaseIP", b"".join(text(1, address) for address in unused))
            return True
        except grpc.RpcError as error:
            expect("nothing was released" in error.details(), f"{self.name}: {error}")
            return False

    def use(self, address):
        """As a pod's interface has it."""
        self.pods.run("ip", "address", "add", f"{address}/32", "dev", "lo")

    def set_aside(self):
        return sorted(path.name for path in self.folder.glob("vpc.db.damaged*"))

    def flip(self):
        """Bits all over the database, whose log is folded into it."""
        run("sqlite3", self.database, "PRAGMA wal_checkpoint(TRUNCATE)")
        content = bytearray(self.database.read_bytes())
        for at in range(4096, len(content), 97):
            content[at] ^= 1 << at % 8
        self.database.write_bytes(content)

    def cut(self):
        run("sqlite3", self.database, "PRAGMA wal_checkpoint(TRUNCATE)")
        os.truncate(self.database, 5000)

    def empty(self):
        self.database.write_bytes(b"")

    def garble(self):
        self.database.write_bytes(b"this is not a database, it is a sentence" * 200)

    def remove(self):
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(f"{self.database}{suffix}").unlink(missing_ok=True)

    def remove_all(self):
        self.remove()
        pathlib.Path(f"{self.database}-lock").unlink(missing_ok=True)


def damaged(world, cloud, how):
    """A node with two pods that live and one that ends while its agent is down."""
    node = Node(world, cloud, f"n-{how.replace('_', '-')}").start()
    wait_for(lambda: len(node.pool()) >= 3, f"{how}: the first addresses\n{node.log()}", PATIENCE)
    living = {node.add("web"), node.add("db")}
    for address in living:
        node.use(address)
    ended = node.add("job")
    wait_for(lambda: len(node.pool()) >= 3, f"{how}: the stock is full again", PATIENCE)
    while_running = how.startswith("running_")
    if not while_running:
        node.stop()
    before = owned(cloud, node.name)
    getattr(node, how.removeprefix("running_"))()
    if not while_running:
        node.start()
    # Whatever is given meanwhile is none of before: who knows what uses those.
    given = {}
    if while_running:
        wait_for(lambda: "is begun anew" in node.log(), f"{how}: the loss is told\n{node.log()}", PATIENCE)
    given["early"] = node.add_when_served("early")
    expect(given["early"] not in before, f"{how}: {given['early']} was given blindly")
    node.use(given["early"])
    wait_for(lambda: "the stock is known again" in node.log(), f"{how}: the rebuild ends\n{node.log()}", PATIENCE)
    wait_for(lambda: ended in node.pool(), f"{how}: {ended} is back, not {node.pool()}\n{node.log()}", PATIENCE)
    for i in range(6):
        given[f"late-{i}"] = node.add(f"late-{i}")
        node.use(given[f"late-{i}"])
    expect(not living & set(given.values()), f"{how}: {living} are in use, and given away: {given}")
    expect_equal(len(set(given.values())), len(given), f"{how}: each has its own")
    expect(not living & node.pool(), f"{how}: {living} are in the stock")
    if how != "running_remove_all":
        expect(node.set_aside(), f"{how}: nothing is set aside")
        expect("is set aside as" in node.log(), f"{how}: {node.log()}")
    # What nobody knows a use of any more goes only when an operator says so.
    for address in living:
        node.pods.run("ip", "address", "delete", f"{address}/32", "dev", "lo")
    wait_for(lambda: set(addresses(node.call("ListUnuse"), 2)) == living, f"{how}: what is unused\n{node.log()}", PATIENCE)
    wait_for(lambda: node.release(living), f"{how}: the release\n{node.log()}", PATIENCE)
    # It may have asked for more meanwhile, and got the very same again.
    expect(living <= given_back(cloud, node.name), f"{how}: {living} went back to the cloud")
    node.stop()
    # The new store is a store like any other.
    node.start()
    expect_equal(node.add_when_served("late-0"), given["late-0"], f"{how}: it has what was recorded")
    node.stop()
    return f"{how}: {len(before)} addresses are known again"


def on_its_own_disk(world, name):
    mount = world.directory / f"disk-{name}"
    mount.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", mount)
    world.stack.callback(run, "umount", "-l", mount, check=False)
    return mount


def read_only(world, cloud):
    mount = on_its_own_disk(world, "ro")
    node = Node(world, cloud, "n-read-only", mount).start()
    wait_for(lambda: len(node.pool()) >= 3, f"read-only: the first addresses\n{node.log()}", PATIENCE)
    web = node.add("web")
    node.stop()
    run("mount", "-o", "remount,ro", mount)
    node.start()

    def refused():
        try:
            return not node.add("db", 5)
        except grpc.RpcError as error:
            return "ead-only" in error.details() or "read-only" in node.log()
    wait_for(refused, f"read-only: the reason is told\n{node.log()}", PATIENCE)
    expect_equal(node.set_aside(), [], "read-only: it is no damage")
    run("mount", "-o", "remount,rw", mount)
    if node.process.poll() is not None:
        node.start()
    db = node.add_when_served("db")
    expect(db != web, f"read-only: {db} is another pod's")
    expect_equal(node.add("web"), web, "read-only: nothing is forgotten")
    expect_equal(node.set_aside(), [], "read-only: nothing is set aside")
    node.stop()
    return "read-only: told, and served from the same store afterwards"


def full(world, cloud):
    mount = on_its_own_disk(world, "full")
    node = Node(world, cloud, "n-full", mount).start()
    wait_for(lambda: len(node.pool()) >= 3, f"full: the first addresses\n{node.log()}", PATIENCE)
    given = {node.add("web")}
    node.stop()
    fill_disk(mount)
    node.start()
    wait_for(lambda: node.is_up() or node.process.poll() is not None, f"full: it runs, or ends\n{node.log()}", PATIENCE)
    for i in range(4):
        # What was reserved may serve; whatever does not says why.
        try:
            given.add(node.add(f"full-{i}", 3))
        except grpc.RpcError as error:
            expect(error.details(), f"full: a failure without a reason: {error}")
    expect_equal(node.set_aside(), [], "full: it is no damage")
    # A damaged store on a full disk: it is set aside, and nothing is given from an empty one.
    node.stop_if_it_runs()
    node.empty()
    before = len(node.log())
    node.start()
    wait_for(lambda: node.is_up() or node.process.poll() is not None, f"full: it runs, or ends\n{node.log()}", PATIENCE)
    if node.process.poll() is not None:
        said = node.log()[before:]
        expect("space" in said and "is set aside as" in said, f"full: the reason is told: {node.log()[before:]}")
    (mount / "filler").unlink()
    if node.process.poll() is not None:
        node.start()
    address = node.add_when_served("after")
    expect(address not in given, f"full: {address} is another pod's")
    wait_for(lambda: "known again" in node.log(), f"full: the rebuild ends\n{node.log()}", PATIENCE)
    node.stop()
    return "full: nothing is given twice"


def anothers(world, cloud):
    """A path that is wrong is told, and what is there is left alone."""
    node = Node(world, cloud, "n-other")
    run("sqlite3", node.database, "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(7)")
    node.start()
    expect(node.process.wait(PATIENCE) != 0, "another program's database: it ends")
    expect("another program" in node.log(), node.log())
    expect_equal(run("sqlite3", node.database, "SELECT x FROM theirs").stdout.strip(), "7", "their content")
    expect_equal(node.set_aside(), [], "another program's database stays")
    return "another program's database: left alone"


def ask(url, form=None):
    with urllib.request.urlopen(url, data=None if form is None else form.encode(), timeout=10) as answer:
        return json.load(answer)


def owned(cloud, node):
    return {entry["ip"] for entry in ask(f"{cloud}/sim/truth")["addresses"] if entry["node"] == node}


def given_back(cloud, node):
    return {event["ip"] for event in ask(f"{cloud}/sim/truth")["events"]
            if event["from"].lower() == MACS[node] and not event["to"]}


KINDS = ("flip", "cut", "empty", "garble", "remove", "running_remove", "running_remove_all", "running_empty")
NODES = [f"n-{kind.replace('_', '-')}" for kind in KINDS] + ["n-read-only", "n-full", "n-other"]
MACS = {name: f"52:54:00:00:01:{i:02x}" for i, name in enumerate(NODES)}


def test():
    require_network_namespaces()
    with World("rebuild", sys.argv[1]) as world:
        config = world.directory / "cloud.json"
        config.write_text(json.dumps({
            "subnets": [{"id": "subnet-1", "range": "10.60.0.0/22", "gateway": "10.60.0.1"}],
            "nodes": [{"name": name, "mac": mac, "subnet": "subnet-1"} for name, mac in MACS.items()]}))
        simulator = subprocess.Popen([world.bin / "croft-vpc-sim", "--config", config], stdout=subprocess.PIPE, text=True)
        world.stack.callback(lambda: (simulator.kill(), simulator.wait(), simulator.stdout.close()))
        cloud = "http://" + simulator.stdout.readline().removeprefix("listening on ").strip()
        with concurrent.futures.ThreadPoolExecutor(max_workers=12) as pool:
            parts = [pool.submit(damaged, world, cloud, kind) for kind in KINDS]
            parts += [pool.submit(part, world, cloud) for part in (read_only, full, anothers)]
            for part in parts:
                say(part.result())
        expect_equal(ask(f"{cloud}/sim/check", ""), [], "what contradicts itself in the cloud")


main(test, seconds=200)
