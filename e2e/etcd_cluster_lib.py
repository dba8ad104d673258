"""Three real etcd members, each in its own network namespace on one bridge, two namespaces for clients, and the faults
that can be done to them.

    192.0.2.1-3  members        192.0.2.10  clients        192.0.2.11  other clients        192.0.2.254  the test itself

Every fault is a context manager: it is on inside the block and healed when the block is left. Each shows that it took
effect (a new leader, packets that were dropped, an alarm); a fault that did nothing is a failure of the test.
"""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from lib import Daemon, Failure, expect, say, wait_for

CLIENT_PORT, PEER_PORT = 2379, 2380
RELAY_PORT = 23790  # and the two after it: the relay's, on the loopback of a client's namespace


class Network:
    """The bridge and the namespaces. They stay for all runs of a test."""

    def __init__(self, world):
        self.hub = world.netns("hub")
        self.hub.run("ip", "link", "add", "br0", "address", "02:00:00:00:00:01", "type", "bridge")  # else a new port may change its MAC, which others have in their ARP
        self.hub.run("ip", "link", "set", "br0", "up")
        self.hub.run("ip", "address", "add", "192.0.2.254/24", "dev", "br0")
        self.members = [self.join(world, f"m{i}", f"192.0.2.{i}") for i in (1, 2, 3)]
        self.clients = self.join(world, "clients", "192.0.2.10")
        self.others = self.join(world, "others", "192.0.2.11")

    def join(self, world, name, address):
        namespace = world.netns(name)
        namespace.address = address
        self.hub.run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", namespace.name)
        self.hub.run("ip", "link", "set", name, "master", "br0", "up")
        namespace.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
        namespace.run("ip", "link", "set", "eth0", "up")
        return namespace


class Member:
    """One etcd process. Its data outlives it, and ends with the cluster."""

    def __init__(self, world, number, namespace, folder, arguments):
        self.world, self.number, self.namespace = world, number, namespace
        self.address = namespace.address
        self.url = f"http://{self.address}:{CLIENT_PORT}"
        self.peer = f"http://{self.address}:{PEER_PORT}"
        self.data = folder / f"m{number}"
        self.command = ["nsenter", f"--net={namespace.path}", "etcd", "--name", f"m{number}",
                        "--data-dir", self.data,
                        "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                        "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
                        "--heartbeat-interval", "100", "--election-timeout", "500", "--snapshot-count", "100",
                        "--logger", "zap", "--log-level", "error", *arguments]

    def start(self):
        self.process = Daemon(self.world, f"{self.data.parent.name}-m{self.number}", *self.command)

    def kill(self):
        self.process.kill()

    def begin_anew(self):
        """Its next start is that of a new member of the cluster that is there, with nothing."""
        shutil.rmtree(self.data)
        self.command += ["--initial-cluster-state", "existing"]


class Cluster:
    """A fresh cluster on a Network, with empty data."""

    numbers = itertools.count(1)

    def __init__(self, world, network, quota=None):
        self.world, self.network = world, network
        self.name = f"cluster-{next(self.numbers)}"
        self.folder = world.directory / self.name
        arguments = ["--initial-cluster-token", self.name, "--initial-cluster",
                     ",".join(f"m{i}=http://{n.address}:{PEER_PORT}" for i, n in enumerate(network.members, 1))]
        if quota:
            arguments += ["--quota-backend-bytes", str(quota)]
        self.members = [Member(world, i, n, self.folder, arguments) for i, n in enumerate(network.members, 1)]
        self.relays = []
        self.ids = {}  # etcd's own numbers of the members
        self.compacted = False  # old revisions are gone

    def __enter__(self):
        self.folder.mkdir()
        for member in self.members:
            member.start()
        try:
            self.wait_until_healthy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_why):
        for relay in self.relays:
            relay.kill()
            relay.wait()
        for member in self.members:
            member.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_until_healthy(self):
        wait_for(lambda: self.ctl("endpoint", "health", check=False).returncode == 0, "all members are healthy", 60)

    def ctl(self, *arguments, members=None, check=True, timeout=60):
        urls = ",".join(m.url for m in members or self.members)
        return self.network.hub.run("etcdctl", "--endpoints", urls, *arguments, check=check, timeout=timeout,
                                    env={**os.environ, "ETCDCTL_API": "3"})

    def leader(self, members=None):
        """The member that one of these says is the leader; None when none of them knows one."""
        done = self.ctl("--command-timeout", "1s", "endpoint", "status", "-w", "json", members=members, check=False)
        if not done.stdout.strip():
            return None
        members_by_id = self.members_by_id()
        rows = sorted((row["Status"] for row in json.loads(done.stdout)), key=lambda s: -s.get("raftTerm", 0))
        known = [members_by_id[row["leader"]] for row in rows if row.get("leader") in members_by_id]
        return known[0] if known else None

    def members_by_id(self):
        if not self.ids:
            rows = json.loads(self.ctl("member", "list", "-w", "json").stdout)["members"]
            self.ids = {row["ID"]: self.members[int(row["name"][1:]) - 1] for row in rows if row.get("name")}
        return self.ids

    def must_know_leader(self):
        return wait_for(self.leader, "a leader", 30)

    def others(self, member):
        return [m for m in self.members if m is not member]

    def wait_for_other_leader(self, old):
        """Those that are left elect one of their own."""
        return wait_for(lambda: self.leader(self.others(old)) not in (None, old), "another leader", 30)

    def revision(self):
        return json.loads(self.ctl("get", "none", "-w", "json").stdout)["header"]["revision"]

    def contents(self, member):
        """All that one member has by itself: key, value and revisions, in the order of keys."""
        done = self.ctl("get", "", "--prefix", "--consistency=s", "-w", "json", members=[member])
        return sorted((base64.b64decode(kv["key"]).decode(), base64.b64decode(kv.get("value", "")).decode(),
                       kv["create_revision"], kv["mod_revision"])
                      for kv in json.loads(done.stdout).get("kvs", []))

    def all_events(self):
        """Every change since the first revision, in order: (revision, key, value, or None for a deletion)."""
        end = "/observer/end"
        self.ctl("put", end, "now")
        command = ["nsenter", f"--net={self.network.hub.path}", "etcdctl", "--endpoints", self.members[0].url, "watch",
                   "--rev", "1", "--prefix", "", "-w", "json"]
        events = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "ETCDCTL_API": "3"}) as watch:
            timer = threading.Timer(60, watch.kill)
            timer.start()
            try:
                for line in watch.stdout:
                    answer = json.loads(line)
                    expect(not answer.get("CompactRevision"), f"the log of revisions is not whole: {line[:300]}")
                    for event in answer.get("Events", []):
                        kv = event["kv"]
                        key = base64.b64decode(kv["key"]).decode()
                        value = None if event.get("type") == 1 else base64.b64decode(kv.get("value", "")).decode()
                        events.append((kv["mod_revision"], key, value))
                    if events and events[-1][1] == end:
                        return events[:-1]
            finally:
                timer.cancel()
                watch.kill()
        raise Failure(f"the log of revisions ended early, after {len(events)} events")

    def urls(self):
        """What clients are told: the members, or the relays in front of them."""
        if self.relays:
            return [f"http://127.0.0.1:{RELAY_PORT + i}" for i in range(3)]
        return [m.url for m in self.members]

    def start_relays(self, seed):
        """In both namespaces of clients; they pass everything on until they are told to drop."""
        relay = pathlib.Path(__file__).resolve().parent / "etcd_relay.py"
        targets = [f"{RELAY_PORT + i}={m.address}:{CLIENT_PORT}" for i, m in enumerate(self.members)]
        for number, namespace in enumerate((self.network.clients, self.network.others)):
            process = subprocess.Popen(
                ["nsenter", f"--net={namespace.path}", sys.executable, "-B", relay, str(seed + number), *targets],
                stdout=subprocess.PIPE, text=True)
            self.relays.append(process)
            expect(process.stdout.readline().strip() == "ready", "the relay did not start")


class Rules:
    """iptables rules of one fault, and how many packets they met."""

    def __init__(self):
        self.rules = []

    def add(self, namespace, *rule):
        namespace.run("iptables", "-w", "-A", *rule)
        self.rules.append((namespace, rule))

    def cut(self, namespace, addresses, outgoing=True, incoming=True):
        for address in addresses:
            if outgoing:
                self.add(namespace, "OUTPUT", "-d", f"{address}/32", "-j", "DROP")
            if incoming:
                self.add(namespace, "INPUT", "-s", f"{address}/32", "-j", "DROP")

    def remove(self):
        """The packets that were met."""
        met = 0
        for namespace, rule in self.rules:
            wanted = "-A " + " ".join(rule)
            for line in namespace.run("iptables-save", "-c").stdout.splitlines():
                count, _, text = line.partition("] ")
                if text == wanted:
                    met += int(count[1:].split(":")[0])
                    break
            namespace.run("iptables", "-w", "-D", *rule)
        self.rules = []
        return met


@contextlib.contextmanager
def rules_that_meet_packets():
    rules = Rules()
    try:
        yield rules
    except BaseException:
        rules.remove()
        raise
    expect(rules.remove() > 0, "the partition stopped no packet")


@contextlib.contextmanager
def kill_leader(cluster, _draw):
    leader = cluster.must_know_leader()
    leader.kill()
    try:
        cluster.wait_for_other_leader(leader)
        yield
    finally:
        leader.start()


@contextlib.contextmanager
def kill_all(cluster, draw):
    """All at once, twice; they come back with their data, in any order."""
    for _ in range(2):
        for member in cluster.members:
            member.process.send_signal(signal.SIGKILL)
        for member in cluster.members:
            member.kill()
        time.sleep(1)
        for member in draw.sample(cluster.members, 3):
            member.start()
            time.sleep(draw.uniform(0, 0.5))
        cluster.wait_until_healthy()
        time.sleep(2)
    yield


@contextlib.contextmanager
def replace_member(cluster, draw):
    """One goes for good, and its data; the other two are the cluster, until a new one comes under the same address."""
    member = draw.choice(cluster.members)
    rest = cluster.others(member)
    number, = (number for number, known in cluster.members_by_id().items() if known is member)
    member.kill()

    def change(*arguments):
        wait_for(lambda: cluster.ctl("member", *arguments, members=rest, check=False).returncode == 0,
                 f"member {arguments[0]}", 30)
    change("remove", f"{number:x}")
    member.begin_anew()
    cluster.ids = {}
    try:
        yield
    finally:
        change("add", f"m{member.number}", f"--peer-urls={member.peer}")
        cluster.ids = {}
        member.start()


@contextlib.contextmanager
def pause_leader(cluster, draw):
    """It wakes up and still believes to be what it was."""
    leader = cluster.must_know_leader()
    leader.process.send_signal(signal.SIGSTOP)
    try:
        cluster.wait_for_other_leader(leader)
        time.sleep(draw.uniform(3, 10))
        yield
    finally:
        leader.process.send_signal(signal.SIGCONT)


def cut_from_members(name, waits=True, **ways):
    """A fault of the leader's packets to and from the other members; its clients still reach it."""
    @contextlib.contextmanager
    def fault(cluster, _draw):
        leader = cluster.must_know_leader()
        with rules_that_meet_packets() as rules:
            rules.cut(leader.namespace, [m.address for m in cluster.others(leader)], **ways)
            if waits:
                cluster.wait_for_other_leader(leader)
            yield
    fault.__name__ = name
    return fault


cut_leader = cut_from_members("cut_leader")
mute_leader = cut_from_members("mute_leader", incoming=False)
deafen_leader = cut_from_members("deafen_leader", waits=False, outgoing=False)  # the others hear it until it gives up


@contextlib.contextmanager
def cut_minority(cluster, draw):
    """A member and the other clients together on one side, everybody else on the other."""
    member = draw.choice(cluster.members)
    apart = [m.address for m in cluster.others(member)]
    with rules_that_meet_packets() as rules:
        rules.cut(member.namespace, [*apart, cluster.network.clients.address])
        rules.cut(cluster.network.others, apart)
        yield


def cut_of_clients(name, **ways):
    """Of the answers alone: requests arrive and are done."""
    @contextlib.contextmanager
    def fault(cluster, _draw):
        with rules_that_meet_packets() as rules:
            rules.cut(cluster.network.clients, [m.address for m in cluster.members], **ways)
            yield
    fault.__name__ = name
    return fault


cut_clients = cut_of_clients("cut_clients")
deafen_clients = cut_of_clients("deafen_clients", outgoing=False)


@contextlib.contextmanager
def in_background(step, pause):
    """Does `step` again and again beside the block; an exception of it is raised at the end."""
    over = threading.Event()
    trouble = []

    def loop():
        try:
            while not over.is_set():
                step()
                over.wait(pause())
        except Exception as error:  # pylint: disable=broad-except
            trouble.append(error)
    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if trouble:
        raise trouble[0]


@contextlib.contextmanager
def reset_clients(cluster, draw):
    """Every connection of a client is reset, again and again; new ones are refused for a moment."""
    met = []

    def once():
        rules = Rules()
        try:
            for member in cluster.members:
                for client in (cluster.network.clients, cluster.network.others):
                    rules.add(member.namespace, "INPUT", "-s", f"{client.address}/32", "-p", "tcp", "-m", "tcp",
                              "--dport", str(CLIENT_PORT), "-j", "REJECT", "--reject-with", "tcp-reset")
            time.sleep(draw.uniform(0.02, 0.2))
        finally:
            met.append(rules.remove())
    with in_background(once, lambda: draw.uniform(0.2, 0.6)):
        yield
    expect(sum(met) > 0, "no connection was reset")


@contextlib.contextmanager
def drop_replies(cluster, _draw):
    """The relay passes requests on and cuts, or swallows, some of the answers."""
    for relay in cluster.relays:
        relay.send_signal(signal.SIGUSR1)
    try:
        yield
    finally:
        for relay in cluster.relays:
            relay.send_signal(signal.SIGUSR2)
    counts = [json.loads(relay.stdout.readline()) for relay in cluster.relays]
    lost = {how: sum(c[how] for c in counts) for how in counts[0]}
    say(f"answers: {lost}")
    expect(lost["cut"] > 0, "no answer was lost")


@contextlib.contextmanager
def compact(cluster, draw):
    """Every revision but the newest is forgotten, every 100 to 200 ms."""
    cluster.compacted = True
    done = []

    def once():
        # During another fault there may be nobody to ask.
        answer = cluster.ctl("--command-timeout", "1s", "get", "none", "-w", "json", check=False)
        if answer.returncode == 0:
            revision = json.loads(answer.stdout)["header"]["revision"]
            done.append(cluster.ctl("--command-timeout", "1s", "compact", str(revision), check=False).returncode == 0)
    with in_background(once, lambda: draw.uniform(0.1, 0.2)):
        yield
    expect(any(done), "nothing was compacted")


@contextlib.contextmanager
def defragment(cluster, _draw):
    """A member answers nothing while it rewrites its file."""
    def once():
        for member in cluster.members:
            cluster.ctl("defrag", members=[member])
    with in_background(once, lambda: 0.5):
        yield


@contextlib.contextmanager
def no_space(cluster, _draw):
    """The alarm that makes etcd refuse every write, until room is made and the alarm is disarmed."""
    cluster.compacted = True
    filler = "x" * 500_000
    for _ in range(100):
        if "space exceeded" in cluster.network.hub.run(
                "etcdctl", "--endpoints", cluster.members[0].url, "put", "/filler", stdin=filler, check=False,
                env={**os.environ, "ETCDCTL_API": "3"}).stderr:
            break
    wait_for(lambda: "NOSPACE" in cluster.ctl("alarm", "list").stdout, "the alarm NOSPACE")
    try:
        yield
    finally:
        cluster.ctl("compact", "--physical", str(cluster.revision()))
        for member in cluster.members:
            cluster.ctl("defrag", members=[member])
        cluster.ctl("alarm", "disarm")
        wait_for(lambda: "NOSPACE" not in cluster.ctl("alarm", "list").stdout, "no alarm any more")
    cluster.ctl("del", "/filler")


@contextlib.contextmanager
def lose_packets(cluster, _draw):
    """Half of all packets between the members, and from the clients."""
    with rules_that_meet_packets() as rules:
        for member in cluster.members:
            rules.add(member.namespace, "INPUT", "-m", "statistic", "--mode", "random", "--probability",
                      "0.50000000000", "-j", "DROP")
        yield


NO_SPACE_QUOTA = 16 << 20
FAULTS = [kill_leader, kill_all, replace_member, pause_leader, cut_leader, mute_leader, deafen_leader,
          cut_minority, cut_clients, deafen_clients, reset_clients, drop_replies, compact, defragment, no_space,
          lose_packets]
