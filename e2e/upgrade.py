"""Upgrade and rollback: two versions of Croft on the same files, records and sockets. What one has made the other takes on, in turns; the
plugin and its agent, the two files of the plugin, and the nodes of a cluster are of different versions; programs are exchanged as
`croftd install` does it while pods come and go. By a ledger no address has two holders and none is lost, and no ADD and no DEL fails.
And what a newer version wrote is refused by name, and stays as it is.

usage: upgrade.py BIN_DIR [PART...]     a part is one of PARTS (all of them if none is named), or the version of a kube-apiserver
"""

import copy
import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import socket
import sys
import time

from agent_etcd import agent_of
from etcd_lib import Etcd, Node
from held_lib import asked_back
from host_local_coexist import Large, storm as host_local_storm
from host_local_lib import Binaries
from kube_agent import LEFT_BY_A_CRASH, findings
from kube_apiserver_lib import KubeApiserver, cache_root
from kube_store import calico_definitions, install_definitions, make_accounts, write_kubeconfig
from lib import (PLUGINS, Controller, World, begin, call_environment, expect, expect_equal, finish, main, own_environment, run, say, skip,
                 wait_for, write_past_croft)
from store_copy import Churn, Ledger
from vpc_lib import Agent, Cloud, settled
from who_held import Recorded, churn

TREE = pathlib.Path(__file__).resolve().parent.parent
# The version before this one, as a tag or a commit of this tree's history. It is here because nothing else needs it; a release names the
# one before it (CONTRIBUTING.md#release). Until 0.1.0 there is none: this is the commit before the code of most formats was written anew.
BEFORE = "23576a10"
TARGETS = ("croft", "croftd", "croft-ipam", "croft-ipam-cluster", "host-local")


def programs_before():
    """The directory of its programs: CROFT_BEFORE, or built once and kept outside any checkout."""
    if "CROFT_BEFORE" in os.environ:
        return pathlib.Path(os.environ["CROFT_BEFORE"])
    commit = run("git", "-C", TREE, "rev-parse", "--verify", "--quiet", f"{BEFORE}^{{commit}}", check=False).stdout.strip()
    if not commit:
        skip(f"{BEFORE} is not in the history of {TREE}, as in a tarball or a shallow clone; CROFT_BEFORE names a directory of its programs")
    place = cache_root() / "versions" / commit
    source, made = place / "source", place / "bin"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            begin = time.monotonic()
            shutil.rmtree(source, ignore_errors=True)
            source.mkdir()
            run("sh", "-c", 'git -C "$1" archive "$2" | tar -x -C "$3"', "sh", TREE, commit, source)
            run("cmake", "-S", source, "--preset", "release", "-D", "CROFT_TESTS=OFF", timeout=300)
            run("cmake", "--build", source / "build" / "release", "-j", str(os.cpu_count()), "--target", *TARGETS, timeout=3000)
            (source / "build" / "release" / "bin").rename(made)
            shutil.rmtree(source)
            say(f"{BEFORE} was built in {time.monotonic() - begin:.0f} s")
    return made


def of_version(world, programs):
    """The same World, with the programs of that directory."""
    twin = copy.copy(world)
    twin.bin = pathlib.Path(programs)
    return twin


def mixed(world, first, second):
    """As while an installer is at work: croft-ipam of the first version beside the second's croft-ipam-cluster."""
    folder = world.directory / f"mixed-{time.monotonic_ns()}"
    folder.mkdir()
    for version, name in ((first, "croft-ipam"), (second, "croft-ipam-cluster")):
        shutil.copy(version.bin / name, folder / name)
    return of_version(world, folder)


# ---------------------------------------------------------------- one register

class Register:
    """One that versions take turns on. `store` is an operator's, `of_nodes` a plugin's."""

    def __init__(self, world, store, of_nodes=None, objects=True):
        self.store, self.of_nodes, self.objects = store, of_nodes or store, objects
        self.ledger, self.answers, self.cooling, self.turns = Ledger(), {}, set(), 0
        for name, cidr in (("four", "10.79.0.0/24"), ("six", "fd00:79::/120")):
            world.pool(store, name, cidr, "--block-size", str(int(cidr.split("/")[1]) + 4), cooldown=1000)
        if objects:
            world.cli(self.store, "node", "range", "config", "--cluster-cidr", "10.240.0.0/16")

    def call(self, world, command, container, agent="none", **more):
        node = Node(world, self.of_nodes, "oak")
        node.more = {"cniVersion": "1.1.0", **more}
        code, answer, err = node.finish(node.start(command, container, agent=str(agent), assign_ipv6=True))
        expect_equal((code, err), (0, ""), f"{command} {container} by {world.bin}: {answer}")
        return answer

    def add(self, world, container, agent):
        answer = self.call(world, "ADD", container, agent)
        for number, ip in enumerate(answer["ips"]):
            expect(ip["address"] not in self.cooling, f"{ip['address']} is given to {container}, and cools")
            self.ledger.take((container, number), ip["address"])
        expect_equal(self.ledger.broken, [], "what must not be")
        self.answers[container] = answer

    def delete(self, world, container, agent):
        for number, ip in enumerate(self.answers.pop(container)["ips"]):
            self.ledger.drop((container, number))
            self.cooling.add(ip["address"])
        self.call(world, "DEL", container, agent)

    def looks(self, world):
        """All that an operator sees of it."""
        more = ("node list", "node range list", "service list -A") if self.objects else ()
        return {noun: world.croft(self.store, *noun.split()) for noun in ("pool list", "block list", "ip list", "reservation list", "config show", *more)}

    def turn(self, plugin, agent="none"):
        """What is told stays so; then pods come and go, and other records."""
        self.turns += 1
        for container, answer in list(self.answers.items()):
            expect_equal(self.call(plugin, "ADD", container, agent), answer, f"{container} asked again of {plugin.bin}")
            self.call(plugin, "CHECK", container, agent, prevResult=answer)
        valid = [{"containerID": container, "ifname": "eth0"} for container in self.answers]
        self.call(plugin, "GC", "gc", agent, **{"cni.dev/valid-attachments": valid})
        self.call(plugin, "STATUS", "status", agent)
        for number in range(10):
            self.add(plugin, f"c{self.turns}-{number}", agent)
        for container in sorted(self.answers)[::2]:
            self.delete(plugin, container, agent)

    def change(self, world):
        """By an operator: what no pod makes."""
        name = f"{self.turns}"
        world.cli(self.store, "pool", "create", f"p{name}", "--cidr", f"10.80.{name}.0/24", "--priority", name, "--disabled")
        world.cli(self.store, "reservation", "create", f"r{name}", "--cidr", f"10.80.{name}.128/30")
        if self.objects:
            world.cli(self.store, "node", "label", f"elm-{name}", f"turn={name}")
            world.cli(self.store, "node", "range", "assign", f"elm-{name}")
            world.cli(self.store, "service", "create", f"s{name}", "--tcp", "80", "--type", "NodePort", "--make-ranges")

    def agrees(self, *versions):
        """With the ledger and with itself, as each version sees it."""
        seen = [self.looks(version) for version in versions]
        for noun, rows in seen[0].items():
            expect_equal(in_common(seen[-1][noun], rows), in_common(rows, seen[-1][noun]), f"croft {noun} of {versions[-1].bin} and of {versions[0].bin}")
        told = {address.split("/")[0]: container for (container, _), address in self.ledger.told.items()}
        held = {row["address"]: row["containerId"] for row in seen[0]["ip list"] if row["state"] == "held"}
        expect_equal(held, told, "held, and told")
        for version in versions:
            expect_equal(findings(version, self.store), [], f"croft check of {version.bin}")
        return len(told)


def in_common(told, other):
    """Of a listing what the other version tells too: a newer one may tell more."""
    if isinstance(told, dict) and isinstance(other, dict):
        return {name: in_common(value, other[name]) for name, value in told.items() if name in other}
    if isinstance(told, list) and isinstance(other, list) and len(told) == len(other):
        return [in_common(*pair) for pair in zip(told, other)]
    return told


def takes_turns(new, old, register, name):
    """Alone, with an agent of another version, and with the two files of the plugin of two versions."""
    count = lambda: (new.directory / "ipam.log").read_text().count("via=agent")
    for version in (old, new, old):
        register.turn(version)
        register.change(version)
        register.agrees(old, new)
    for plugin, of_agent in ((new, old), (old, new), (new, new)):
        agent, before = agent_of(of_agent, register.of_nodes, "oak"), count()
        register.turn(plugin, agent.socket)
        expect(count() - before > 20, f"served by the agent: {count() - before} calls")
        status, = plugin.croft(register.store, "agent", "status", "--socket", agent.socket)
        expect_equal((status["node"], status["cacheInUse"]), ("oak", True), "the status of the other version's agent")
        register.agrees(old, new)
        agent.end()
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(new.directory / "mute.sock"))
        mute.listen()
        for first, second in ((old, new), (new, old)):
            plugin = mixed(new, first, second)
            register.turn(plugin)
            register.add(plugin, f"waited-{register.turns}", new.directory / "mute.sock")
    register.turn(new)
    say(f"{name}: {register.turns} turns, {register.agrees(old, new)} addresses are held as told, the versions see the same")


# ---------------------------------------------------------------- other files

def host_local(new, old):
    """One directory, with an index and without one; each version is the elder once."""
    binaries = Binaries(new)
    for elder, younger in ((old, new), (new, old)):
        binaries.path = {"reference": elder.bin / "host-local", "croft": younger.bin / "host-local"}
        for count in (300, 1200):
            Large(new, binaries, count + (elder is new), 1).run(30)
    host_local_storm(new, binaries, 800, 1)
    say("host-local: 4 directories in turns, and 3 by both at once")


def stock_of_cloud_addresses(new, old):
    """Agent and plugin of two versions, and each of them without the other."""
    cloud, ledger, pods = Cloud(new, "cloud", length=26), Ledger(), []
    node = Agent(cloud, low=6, high=12, flags=("--reconcile-seconds", "1", "--grace-seconds", "2", "--cooldown-seconds", "1"))

    def come_and_go(plugin, way):
        cloud.world = plugin
        for _ in range(4):
            pods.append(f"c{len(pods)}")
            ledger.take(pods[-1], node.plugin_add(pods[-1]))
            expect(f"via={way}" in node.last_call(), f"an ADD by {plugin.bin}: {node.last_call()}")
        for pod in [pod for pod in pods if pod in ledger.told][::2]:
            ledger.drop(pod)
            node.plugin_delete(pod)
        expect_equal(ledger.broken, [], "what must not be")

    for agent, plugin in ((old, old), (new, old), (old, new), (new, new), (old, new)):
        cloud.world = agent
        node.start()
        wait_for(lambda: len(node.free()) >= 6, "the stock is filled", 30)
        expect_equal(node.records(), {address: pod for pod, address in ledger.told.items()}, f"what the agent of {agent.bin} knows of pods")
        come_and_go(plugin, "agent")
        settled(cloud, [node])
        wait_for(lambda: len(node.free()) >= 6, "the stock is filled again", 30)
        for program in (old, new):
            listed = run(program.bin / "croft", "vpc", "get", "pod", "--agent", f"node-a=unix:{node.socket}").stdout
            expect_equal(set(re.findall(r"\d+\.\d+\.\d+\.\d+", listed)), set(ledger.told.values()), f"croft vpc get pod of {program.bin}")
        node.stop()
        come_and_go(plugin, "store")
    say(f"stock: {len(pods)} pods by agents and plugins of both versions, {len(ledger.told)} addresses are held as told")


def history(new, old):
    recorded, dice, since = Recorded(old, new.store("history")), random.Random(7), time.time()
    old.pool(recorded.of_pods, "pods", "10.79.0.0/27", "--block-size", "27", cooldown=2)
    for version in (old, new, old, new):
        recorded.world, recorded.bin = version, version.bin
        recorded.begin()
        for pod, address in churn(recorded, dice, 5, kills=False)[0].items():
            recorded.delete(pod, address)
        wait_for(lambda: recorded.reaches(time.time() - 2), "the history is as far as the last pod", 30)
        recorded.stop()
    until = time.time() - 4
    for version in (old, new):
        recorded.bin = version.bin
        tally = asked_back(recorded, dice, since, until)
        expect(tally["right"] > 40, f"{tally}: enough is known")


# ---------------------------------------------------------------- a cluster, under load

class Host:
    """A node as a DaemonSet keeps it: the installer, then the agent, of one version; `flags` are the installer's, `of_agent` the agent's."""

    def __init__(self, world, store, name, flags=(), of_agent=()):
        self.world, self.store, self.name, self.flags, self.agent = world, store, name, flags, None
        self.bin, self.conf = world.directory / name / "bin", world.directory / name / "net.d"
        self.of_agent = [str(word).replace("CONF", str(self.conf)) for word in of_agent]
        self.bin.mkdir(parents=True)
        self.conf.mkdir()
        for plugin in ("ptp", "portmap"):
            shutil.copy(PLUGINS / plugin, self.bin / plugin)

    def install(self, version, *more):
        return run(version.bin / "croftd", "install", "--cni-bin-dir", self.bin, "--cni-conf-dir", self.conf, *more, env=own_environment(version.directory))

    def become(self, version):
        self.install(version, "--store", self.store, "--node", self.name, "--main-plugin", "ptp", "--source", version.bin, *self.flags)
        expect_equal((self.bin / "croft-ipam").read_bytes(), (version.bin / "croft-ipam").read_bytes(), "the program that is installed")
        if self.agent:
            self.agent.end()
        self.agent = agent_of(version, self.store, self.name, *self.of_agent)

    def call(self, command, container, **env):
        ipam = json.loads((self.conf / "10-croft.conflist").read_text())["plugins"][0]["ipam"]
        node, log = Node(of_version(self.world, self.bin), ipam["store"], self.name), self.world.directory / f"{self.name}.log"
        node.ipam, node.env = {**ipam, "agent": str(self.agent.socket), "log_file_path": str(log)}, env
        return node.finish(node.start(command, container))


class Storm(Churn):
    workers, held_of_a_worker = 3, 10

    def __init__(self, world, hosts, seed):
        super().__init__(world, {host.name: host.store for host in hosts}, seed)
        self.ledger.cooldown = 2
        self.hosts = {host.name: host for host in hosts}

    def call(self, name, command, container, chance):
        code, answer, err = self.hosts[name].call(command, container, CROFT_TOMBSTONES=str(self.tombstones))
        expect_equal((code, err), (0, ""), f"{command} {container} on {name}: {answer}")
        return code, answer


def under_load(new, old, operator, store, of_controller, flags=(), of_agent=()):
    """Controller first, nodes one by one, and back; then nodes first."""
    old.pool(operator, "load", "10.81.0.0/20", "--block-size", "28", "--gateway", "10.81.0.1", cooldown=2)
    hosts, since = [Host(new, store, name, flags, of_agent) for name in ("ash", "fir")], time.monotonic()
    for host in hosts:
        host.become(old)
    start_controller = lambda version: Controller(version, of_controller, "controller", "--grace", "10s")
    controller, steps = start_controller(old), ("controller", "ash", "fir", "ash", "fir", "controller", "fir", "ash", "controller", "ash", "ash")
    with Storm(new, hosts, 1) as pods:
        for number, changed in enumerate(steps):
            for name in pods.stores:
                pods.wait_for_told(name, 8)
            version = new if steps[:number].count(changed) % 2 == 0 else old
            if changed != "controller":
                pods.hosts[changed].become(version)
                continue
            controller.end()
            controller = start_controller(version)
    pods.check()
    expect_equal((pods.ledger.refusals, list(pods.tombstones.glob("*"))), ({}, []), "calls that failed, and DELs that wait")
    for version in (old, new):
        expect_equal(version.holders(operator), {container: [address] for container, address in pods.ledger.told.items()}, "held, and told")
        found = {kind for kind, _ in findings(version, operator)} - set(LEFT_BY_A_CRASH if operator.startswith("kube:") else ())
        expect_equal(found, set(), f"croft check of {version.bin}")
    log = "".join((new.directory / f"{name}.log").read_text() for name in pods.hosts)
    say(f"{operator.split(':')[0]}: {len(steps)} exchanges in {time.monotonic() - since:.0f} s; {sum(pods.told.values())} ADDs {pods.told}, {len(pods.ledger.gone)} "
        f"DELs, {log.count('via=agent')} calls by an agent and {log.count('via=store')} without; none failed, {len(pods.ledger.told)} addresses are held as told")
    for name, containers in pods.holding.items():
        for container in containers:
            pods.delete(name.rsplit("-", 1)[0], container, None)
    expect_equal(new.holders(operator), {}, "held in the end")
    # A handle may count too much where an agent ended in the midst of a call; its DEL or the collector takes it away.
    wait_for(lambda: not findings(new, operator), "nothing is left over", 60)
    controller.end()
    new.cli(operator, "pool", "disable", "load")
    for host, first, last in zip(hosts, (old, new), (new, old)):
        host.become(first)
        host.agent.end()
        host.install(last, "--uninstall")
        expect_equal(sorted(path.name for path in [*host.bin.iterdir(), *host.conf.iterdir()]), ["portmap", "ptp"], "taken back by the other version")


def on_kubernetes(new, old, version):
    """With the definitions and rights of this version, which come first."""
    calico_definitions()
    with KubeApiserver(new, version) as kube:
        install_definitions(new, kube)
        make_accounts(kube)
        for name in ("oak", "ash", "fir"):
            kube.make_node(name)
        operator, store, of_controller = (f"kube:{write_kubeconfig(new, kube, f'croft-{account}')}" for account in ("operator", "node", "controller"))
        under_load(new, old, operator, store, of_controller, ("--api-server", kube.url), (
            "--api-server", kube.url, "--plugin-store", "kube:CONF/croft-kubeconfig", "--plugin-kubeconfig", "CONF/croft-kubeconfig"))
        takes_turns(new, old, Register(old, operator, store, objects=False), f"Kubernetes {version}")


# ---------------------------------------------------------------- what a newer version wrote

NEWER = re.compile("upgrade Croft here|let the newer `croftd install --uninstall` take it back")


def of_a_newer_version(new, _old):
    """Whatever reads it says so and what to do, and leaves it as it is. Single records: records_test.cc, check_remedies.py."""
    store, past, conf = new.store("newer"), new.directory / "history.db", new.directory / "net.d"
    new.pool(store, "a", "10.82.0.0/24")
    controller = Controller(new, store, "recorder", "--history", past)
    wait_for(lambda: "are recorded in" in controller.log(), "the history is begun")
    controller.end()
    conf.mkdir()
    (conf / "croft-install.record").write_text('{"version":99,"files":[]}')
    database = pathlib.Path(store.removeprefix("sqlite:"))
    for path in (database, past):
        (version,), = write_past_croft(path, ("PRAGMA user_version", ()))[0][0]
        write_past_croft(path, (f"PRAGMA user_version={version + 1}", ()))
    files = lambda: {path: path.read_bytes() for path in [*database.parent.glob("croft.db*"), past, *conf.iterdir()] if "-shm" not in path.name}
    before, cloud = files(), {"api": "http://127.0.0.1:1", "metadata": "http://127.0.0.1:1"}
    for plugin, more in (("croft-ipam", {}), ("croft-vpc", cloud)):
        for command, code in (("ADD", 101), ("DEL", 101), ("CHECK", 101), ("STATUS", 50)):
            config = {"cniVersion": "1.1.0", "name": "net", "ipam": {"type": plugin, "store": store, "agent": "none", **more}}
            ended, answer, _ = finish(begin(new.bin / plugin, json.dumps(config), call_environment(new, command, "c1")))
            expect(ended == 1 and answer["code"] == code and NEWER.search(answer["msg"]), f"{plugin} {command}: {answer}")
    own = ("--store", store, "--node", "oak", "--socket", new.directory / "agent.sock")
    for words in (("croft", "--store", store, "ip", "list"), ("croft", "--store", store, "check"), ("croftd", "agent", *own),
                  ("croft", "--store", store, "store", "backup", new.directory / "backup"), ("croftd", "controller", "--store", store),
                  ("croftd", "vpc-agent", *own, "--no-probe", *(word for name, url in cloud.items() for word in (f"--{name}", url))),
                  ("croft", "who", "10.82.0.1", "--history", past), ("croft", "forecast", "--history", past),
                  ("croftd", "install", "--uninstall", "--cni-conf-dir", conf, "--cni-bin-dir", PLUGINS)):
        done = run(new.bin / words[0], *words[1:], check=False, env={}, timeout=30)
        expect(done.returncode == 1 and NEWER.search(done.stderr), f"{words}: {done}")
    expect_equal(files(), before, "what a newer version wrote")
    say("what a newer version wrote is refused by name, and stays as it is")


PARTS = {"sqlite": lambda new, old: takes_turns(new, old, Register(old, new.store()), "sqlite"),
         "etcd": lambda new, old: takes_turns(new, old, Register(old, Etcd(new).store), "etcd"),
         "host-local": host_local, "stock": stock_of_cloud_addresses, "history": history,
         "load": lambda new, old: under_load(new, old, *[Etcd(new).store] * 3), "newer": of_a_newer_version}


def test():
    programs = programs_before()
    for name in sys.argv[2:] or PARTS:
        since = time.monotonic()
        with World("upgrade", sys.argv[1]) as world:
            PARTS.get(name, lambda new, old, version=name: on_kubernetes(new, old, version))(world, of_version(world, programs))
        say(f"== {name}: {time.monotonic() - since:.0f} s")


main(test, 3500)
