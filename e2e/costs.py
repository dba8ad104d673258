"""Counts what one ADD and one DEL cost: system calls, page faults, syncs, bytes read, and requests of the store, for each plugin, with
the node's agent and alone, on each store. More than e2e/costs.txt says is a failure, and so is less than 90 % of it. Of several
rounds the least counts: what a busy machine adds is not in all.

usage: costs.py BIN_DIR [kube VERSION] [--rewrite]

  kube VERSION   the rows of a real kube-apiserver, and only these
  --rewrite      writes the rows anew with what is counted now: read the diff, it is the change of costs
"""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from lib import (Failure, World, expect, expect_equal, main, own_environment, require_network_namespaces, require_programs, say,
                 start_agent, wait_for, wait_for_agents_memory)

TABLE = pathlib.Path(__file__).resolve().parent / "costs.txt"
COLUMNS = ("calls", "faults", "syncs", "bytes", "requests")
# How much more than counted a row that is written anew allows, in percent: kernels map pages in different portions, and
# a record has a few digits more or less. The others are exact, but for those of a TLS connection.
ROOM = {"faults": 8, "bytes": 2}
ROOM_OF_TLS = {**ROOM, "calls": 5, "bytes": 4}
LOWER_BELOW = 90  # percent of what was counted when the table was written
ROUNDS_LEAST, ROUNDS_MOST = 3, 15
SYNCS = {"fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"}
# How often these are called is a matter of how an answer is cut, and when it comes.
WAITS = {"poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "recvfrom", "recvmsg", "restart_syscall", "clock_nanosleep"}
READS = {"read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg"}
LINE = re.compile(r"^\d+ +(?:(\w+)\(|<\.\.\. (\w+) resumed>)")
RESULT = re.compile(r" = (\d+)(?: |$)")
NODE = "node-a"


def counted(trace):
    """Calls (but those that wait), syncs and bytes read, in what strace wrote."""
    calls = syncs = size = 0
    for line in trace.splitlines():
        found = LINE.match(line)
        if not found or "<unfinished ...>" in line:
            continue
        name = found[1] or found[2]
        calls += name not in WAITS and " = -1 EAGAIN " not in line
        syncs += name in SYNCS
        result = RESULT.search(line)
        if name in READS and result:
            size += int(result[1])
    return {"calls": calls, "syncs": syncs, "bytes": size}


class Agents:
    """Syncs of a process that goes on, as long as this is open."""

    def __init__(self, world, process):
        self.trace = world.directory / "agent-trace"
        self.trace.write_text("")
        self.process = process
        self.tracer = subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=" + ",".join(sorted(SYNCS)), "-e", "signal=none", "-o",
                                        self.trace, "-p", str(process.pid)], stderr=subprocess.DEVNULL)
        world.stack.callback(self.stop)
        wait_for(lambda: self.tracer.poll() is not None or self.is_attached(), "strace has attached")
        expect(self.tracer.poll() is None, "strace may not attach to a process here")

    def is_attached(self):
        return all("TracerPid:\t0\n" not in (task / "status").read_text()
                   for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir())

    def stop(self):
        if self.tracer.poll() is None:
            self.tracer.terminate()
        self.tracer.wait()

    def syncs(self):
        return counted(self.trace.read_text())["syncs"]


class Place:
    """A plugin, the way it takes, and its store."""

    def __init__(self, world, plugin, way, store, config, env=None, agent=None, requests=None, log=None, via=None):
        self.world, self.plugin, self.way, self.store = world, plugin, way, store
        self.config, self.env, self.agent = json.dumps(config), env or {}, agent
        self.requests, self.log, self.via = requests, log, via

    def name(self, command):
        return self.plugin, self.way, self.store, command

    def call(self, command, container, before=()):
        """The page faults of a call, or of the program `before` that runs it."""
        env = {**own_environment(self.world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container,
               "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": str(self.world.bin), **self.env}
        words = [*before, str(self.world.bin / self.plugin)]
        with tempfile.TemporaryFile(dir=self.world.directory) as given, tempfile.TemporaryFile(dir=self.world.directory) as answer:
            given.write(self.config.encode())
            given.seek(0)
            # Neither fork() nor a thread of this process: what they fault in would count as the plugin's.
            child = os.posix_spawn(words[0], words, env, file_actions=[
                (os.POSIX_SPAWN_DUP2, given.fileno(), 0), (os.POSIX_SPAWN_DUP2, answer.fileno(), 1)])
            _, status, usage = os.wait4(child, 0)
            answer.seek(0)
            expect_equal(os.waitstatus_to_exitcode(status), 0, f"{' '.join(self.name(command))}: {answer.read().decode()}")
        return usage.ru_minflt + usage.ru_majflt

    def went_its_way(self):
        """On a machine that is too busy an agent may not answer in time: such a call counts for nothing."""
        return not self.via or re.search(f"via=({self.via})", self.log.read_text().splitlines()[-1])

    def count(self, command, container):
        """One call traced."""
        trace = self.world.directory / "trace"
        before, syncs = self.requests() if self.requests else 0, self.agent.syncs() if self.agent else 0
        self.call(command, container, ["/usr/bin/strace", "-f", "-qq", "-s", "0", "-e", "signal=none", "-o", str(trace)])
        found = counted(trace.read_text())
        if self.agent:
            time.sleep(0.05)  # what strace of the agent says comes a moment later
            found["syncs"] += self.agent.syncs() - syncs
        if self.requests:
            time.sleep(0.1)
            found["requests"] = self.requests() - before
        return found if self.went_its_way() else {}

    def round(self, number):
        """What each command costs, as far as it can be told."""
        found = {"ADD": {}, "DEL": {}}
        for command in found:
            found[command].update(self.count(command, f"{number:064x}"))
        for command in found:
            faults = self.call(command, f"{number + 1000:064x}")
            if self.went_its_way():
                found[command]["faults"] = faults
        return found


class Table:
    """Rows of words and numbers, with a head of comments that stays."""

    def __init__(self, path):
        self.path, self.head, self.rows = path, [], {}
        for line in path.read_text().splitlines() if path.exists() else []:
            words = line.split()
            if not words or line.startswith("#"):
                self.head.append(line)
                continue
            expect_equal(len(words), 4 + len(COLUMNS), f"words of {path.name}: {line}")
            self.rows[tuple(words[:4])] = {c: int(w) for c, w in zip(COLUMNS, words[4:]) if w != "-"}

    def write(self):
        lines = [f"{plugin:<12} {way:<6} {store:<7} {command:<4} " + " ".join(f"{row.get(c, '-'):>8}" for c in COLUMNS)
                 for (plugin, way, store, command), row in sorted(self.rows.items())]
        self.path.write_text("\n".join([*self.head, *lines]) + "\n")


def least_of(rounds, command):
    return {c: min(r[command][c] for r in rounds if c in r[command]) for c in COLUMNS
            if any(c in r[command] for r in rounds)}


def differences(name, got, wanted):
    """What is wrong with a row."""
    for column in sorted({*got, *wanted}, key=COLUMNS.index):
        if column not in got or column not in wanted:
            yield f"{' '.join(name)}: {column}: {got.get(column, 'not counted')}, the table says {wanted.get(column, 'nothing')}"
        # With an agent one call more comes now and then, by the timing of its answer.
        elif got[column] > wanted[column] + (column == "calls" and "agent" in name):
            yield f"{' '.join(name)}: {got[column]} {column}, the table says {wanted[column]}: make it cheaper, or raise the table"
        elif got[column] * (100 + ROOM.get(column, 0)) < wanted[column] * LOWER_BELOW:
            yield f"{' '.join(name)}: {got[column]} {column}, the table says {wanted[column]}: lower the table"


def measure(table, rewrite, fresh, room=None):
    """`fresh` gives a Place anew for each round."""
    rounds, wrong = [], []
    for number in range(ROUNDS_MOST):
        place = fresh()
        rounds.append(place.round(number))
        if number + 1 < ROUNDS_LEAST:
            continue
        wrong = [text for command in ("ADD", "DEL")
                 for text in differences(place.name(command), least_of(rounds, command), table.rows.get(place.name(command), {}))]
        if rewrite or not wrong:
            break
    for command in ("ADD", "DEL"):
        got = least_of(rounds, command)
        say(f"{' '.join(place.name(command)):<34}" + "".join(f"{got.get(c, '-'):>9} {c}" for c in COLUMNS))
        if rewrite:
            percent = room or ROOM
            table.rows[place.name(command)] = {c: n + (n * percent.get(c, 0) + 99) // 100 for c, n in got.items()}
    return wrong


# ---------------------------------------------------------------- places

def make_pool(world, store):
    """Of one block: its address tells nothing of the costs."""
    world.croft(store, "pool", "create", "a", "--cidr", "10.81.0.0/26", "--block-size", "26", "--cooldown-seconds", "0")


def plugin_config(world, plugin, store):
    log = world.directory / f"{plugin}.log"
    config = {"cniVersion": "1.0.0", "name": "net", "log_file_path": str(log), "nodename": NODE,
              "ipam": {"type": plugin, "store": store, "nodename": NODE, "log_file_path": str(log)}}
    if plugin == "calico-ipam":
        config["type"] = "calico"
        config["ipam_lock_file"] = str(world.directory / "ipam.lock")
    return config, log


def block_place(world, plugin, url, way, env=None, **more):
    config, log = plugin_config(world, plugin, url)
    own = {"CROFT_TOMBSTONES": str(world.directory / "tombstones"), **(env or {})}
    via = {"agent": "agent", "alone": "store"}[way] if plugin == "croft-ipam" else None
    return Place(world, plugin, way, url.split(":")[0], config, own, log=log, via=via, **more)


def agent_of(world, url):
    """With the environment of who asks it."""
    socket = world.directory / f"{url.split(':')[0]}.sock"
    process = start_agent(world, url, NODE, socket, "--tombstones", "none")
    wait_for_agents_memory(world, socket)
    return process, {"CROFT_AGENT": str(socket)}


def host_local(world, table, rewrite):
    config = {"cniVersion": "1.0.0", "name": "net", "ipam": {
        "type": "host-local", "dataDir": str(world.directory / "ranges"), "ranges": [[{"subnet": "10.82.0.0/24"}]]}}
    place = Place(world, "host-local", "alone", "files", config)
    place.call("ADD", "first")
    return measure(table, rewrite, lambda: place)


def on_sqlite(world, table, rewrite):
    wrong = []
    for plugin in ("croft-ipam", "calico-ipam"):
        numbers = itertools.count(1)

        def fresh(plugin=plugin, numbers=numbers):
            # A new file each time: what a lone process reads of the log grows with every commit.
            url = world.store(f"{plugin}-{next(numbers):03}")
            make_pool(world, url)
            place = block_place(world, plugin, url, "alone")
            place.call("ADD", "first")
            return place
        wrong += measure(table, rewrite, fresh)
    url = world.store("agent")
    make_pool(world, url)
    process, env = agent_of(world, url)
    agent = Agents(world, process)
    for plugin in ("croft-ipam", "calico-ipam"):
        place = block_place(world, plugin, url, "agent", env, agent=agent)
        place.call("ADD", f"first-of-{plugin}")
        wrong += measure(table, rewrite, lambda place=place: place)
    agent.stop()
    return wrong


def both_ways(world, table, rewrite, url, requests, room_alone=None):
    wrong = []
    for way in ("alone", "agent"):
        _, env = agent_of(world, url) if way == "agent" else (None, {})
        for plugin in ("croft-ipam", "calico-ipam"):
            place = block_place(world, plugin, url, way, env, requests=requests)
            place.call("ADD", f"first-of-{plugin}-{way}")
            wrong += measure(table, rewrite, lambda place=place: place, room_alone if way == "alone" else None)
    return wrong


def on_etcd(world, table, rewrite):
    from etcd_lib import Etcd
    etcd = Etcd(world)
    make_pool(world, etcd.store)
    return both_ways(world, table, rewrite, etcd.store, lambda: sum(etcd.requests().values()))


def on_a_cloud(world, table, rewrite):
    try:
        import vpc_lib
    except SystemExit:
        say("skipped: croft-vpc, whose agent is asked by gRPC here")
        return []
    log = world.directory / "vpc" / "ipam.log"
    log.parent.mkdir()

    def place(way, cloud, socket, store, **more):
        config = {"cniVersion": "1.0.0", "name": "demo", "type": "croft-vpc", "ipam": {
            "type": "croft-vpc", "agent": str(socket), "store": store, "api": cloud.url, "metadata": f"{cloud.url}/node-a",
            "probe": False}}
        return Place(world, "croft-vpc", way, "stock", config, {"CROFT_LOG_DIRECTORY": str(log.parent)}, log=log, **more)
    numbers = itertools.count(1)

    def fresh():
        # As on sqlite; of a cloud that knows nothing of the files before.
        count = next(numbers)
        cloud = vpc_lib.Cloud(world, f"alone-{count:03}")
        lone = place("alone", cloud, "none", world.store(f"stock-{count:03}"), requests=lambda: len(cloud.calls()), via="cloud|store")
        lone.call("ADD", "first")
        return lone
    wrong = measure(table, rewrite, fresh)
    cloud = vpc_lib.Cloud(world, "agent")
    agent = vpc_lib.Agent(cloud, low=3, high=6).start()
    through = place("agent", cloud, agent.socket, f"sqlite:{agent.store}", agent=Agents(world, agent.process), via="agent")
    through.call("ADD", "first")
    return wrong + measure(table, rewrite, lambda: through)


def on_kube(world, table, rewrite, version):
    from kube_agent import counts
    from kube_apiserver_lib import KubeApiserver
    from kube_store import install_definitions, make_accounts, write_kubeconfig
    with KubeApiserver(world, version) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        make_pool(world, f"kube:{write_kubeconfig(world, kube, 'croft-operator')}")
        url = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
        def requests():
            # But for what an agent asks every few seconds, whatever it is asked.
            return sum(n for what, n in counts(kube).items() if what != ("GET", "clusterinformations"))
        return both_ways(world, table, rewrite, url, requests, ROOM_OF_TLS)


def read_anew(plugin):
    """A program that was just linked lies in the page cache in larger pieces than one that was read, and faults less."""
    with plugin.open("rb") as program:
        os.fsync(program.fileno())
        os.posix_fadvise(program.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        program.read()


def in_a_namespace():
    """Begins anew in a network namespace of its own, on a path as short everywhere."""
    if os.environ.get("CROFT_COSTS_INSIDE"):
        return
    require_programs("strace")
    require_network_namespaces()
    env = {**os.environ, "CROFT_COSTS_INSIDE": "1", "TMPDIR": "/tmp"}
    os.execvpe("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B", *sys.argv], env)


def test():
    words = [word for word in sys.argv[1:] if word != "--rewrite"]
    rewrite = "--rewrite" in sys.argv
    table = Table(TABLE)
    parts = [host_local, on_sqlite, on_etcd, on_a_cloud]
    if len(words) == 3:
        parts = [lambda *three: on_kube(*three, words[2])]
    wrong = []
    bin_dir = pathlib.Path(words[0])
    for plugin in ("calico-ipam", "croft-ipam", "croft-ipam-cluster", "croft-vpc", "host-local"):
        read_anew(bin_dir / plugin)
    for part in parts:
        world = World("costs", words[0])
        world.prefix = "croft-costs"  # the number of a process has more digits or fewer
        with world:
            wrong += part(world, table, rewrite)
    if rewrite:
        table.write()
        return
    if wrong:
        raise Failure("\n".join([*wrong, f"{TABLE.name}: {pathlib.Path(__file__).name} BIN_DIR --rewrite writes it anew; say why in the commit"]))


if __name__ == "__main__":
    in_a_namespace()
    main(test, seconds=280 if "kube" not in sys.argv else 1000)
