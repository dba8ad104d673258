"""110 pods at once on one node, on a store whose writes take long: all get an address, soon, and nobody is refused.

usage: slow_burst.py BIN_DIR ROW ...    a row is STORE:WAY:SECONDS, as `etcd:agent:0.3` or `kube-1.36:alone:0.1`

Only etcd's disk is slow (etcd_lib.Etcd.slow_down). The pods come as kubelet brings them: a try that fails is followed by
the DEL of its sandbox, and 5 s later by a try in a new one.
"""

import collections
import contextlib
import json
import re
import subprocess
import sys
import threading
import time

from agent_etcd import agent_of
from etcd_lib import Etcd
from kube_agent import counts
from kube_apiserver_lib import KubeApiserver
from kube_store import install_definitions, make_accounts, write_kubeconfig
from lib import World, call_environment, expect, expect_equal, ipam_config, main, say, wait_for

NODE = "oak"
PODS = 110
PAUSE = 5  # kubelet's, between two tries of a pod
PATIENCE = 90
ALONE = 300  # writes in whose time all are up without an agent: 30 s at 0.1 s a write

Burst = collections.namedtuple("Burst", "write took limit refused up alone")
Answer = collections.namedtuple("Answer", "sandbox command code body at")


class Pods:
    """All pods of a burst, and the ledger of every answer."""

    def __init__(self, world, store, agent):
        self.world, self.store, self.agent = world, store, agent
        self.log = world.directory / f"ipam-{time.monotonic_ns()}.log"
        self.tombstones = world.directory / "tombstones"
        self.ledger, self.lock = [], threading.Lock()
        self.config = ipam_config(store, NODE, log_file_path=str(self.log), agent=agent)

    def begin(self, command, sandbox):
        env = call_environment(self.world, command, sandbox, CROFT_TOMBSTONES=str(self.tombstones))
        return subprocess.Popen([self.world.bin / "croft-ipam"], env=env, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, process, command, sandbox):
        out, _ = process.communicate(self.config, timeout=200)
        answer = Answer(sandbox, command, process.returncode, json.loads(out) if out.strip() else None, time.monotonic())
        with self.lock:
            self.ledger.append(answer)
        return answer

    def bring(self, pod, process, until):
        """One pod, as kubelet brings it."""
        for turn in range(100):
            sandbox = f"{pod}-{turn}"
            if self.end(process or self.begin("ADD", sandbox), "ADD", sandbox).code == 0 or time.monotonic() > until:
                return
            process = None
            while self.end(self.begin("DEL", sandbox), "DEL", sandbox).code != 0 and time.monotonic() < until:
                time.sleep(PAUSE)
            time.sleep(PAUSE)

    def together(self, work):
        """Calls work(pod, process) of each pod, when all first processes are there."""
        first = {f"pod{i}": self.begin(work.__name__, f"pod{i}-0") for i in range(PODS)}
        threads = [threading.Thread(target=work, args=one) for one in first.items()]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return begin

    def up(self):
        """How long it took until all pods were up, and how many tries failed."""
        until = time.monotonic() + PATIENCE
        def ADD(pod, process):
            self.bring(pod, process, until)
        begin = self.together(ADD)
        return max(a.at for a in self.ledger) - begin, [a for a in self.ledger if a.code != 0]

    def holding(self):
        """Sandbox -> address, by the answers alone."""
        held = {}
        for answer in self.ledger:
            if answer.command == "DEL":
                held.pop(answer.sandbox, None)
            elif answer.code == 0:
                held[answer.sandbox] = answer.body["ips"][0]["address"].split("/")[0]
        return held

    def down(self):
        """All pods go."""
        for sandbox in list(self.holding()):
            wait_for(lambda s=sandbox: self.end(self.begin("DEL", s), "DEL", s).code == 0, f"{sandbox} is gone")

    def alone(self):
        """The ADDs that succeeded without the agent."""
        text = self.log.read_text() if self.log.exists() else ""
        return len(re.findall(r" ADD .*via=store", text))


@contextlib.contextmanager
def etcd_place(world):
    etcd = Etcd(world, slowable=True)
    world.croft(etcd.store, "pool", "create", "p", "--cidr", "10.79.0.0/16", "--gateway", "none", "--cooldown-seconds", "0")
    yield etcd, etcd.store, etcd.store, lambda: etcd.requests().get("Txn", 0)


@contextlib.contextmanager
def kube_place(world, version):
    etcd = Etcd(world, slowable=True)
    with KubeApiserver(world, version, etcd=etcd) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        of_nodes = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
        kube.make_node(NODE)
        world.croft(store, "pool", "create", "p", "--cidr", "10.79.0.0/16", "--gateway", "none", "--cooldown-seconds", "0")
        yield etcd, of_nodes, store, lambda: counts(kube).get(("PUT", "ipamblocks"), 0)


def place_of(world, kind):
    return etcd_place(world) if kind == "etcd" else kube_place(world, kind.removeprefix("kube-"))


def measure(world, place, way, seconds):
    """What a write took, when the last pod was up, who was refused, how many pods have an address, and how many went alone."""
    etcd, store, operators, writes = place
    with agent_of(world, store, NODE) if way == "agent" else contextlib.nullcontext() as process:
        agent = str(process.socket) if process else "none"
        # The node has its block, as after its first pod.
        first = Pods(world, store, agent)
        expect_equal(first.end(first.begin("ADD", "first"), "ADD", "first").code, 0, "the node's first pod")
        write = etcd.slow_down(seconds)
        before = writes()
        pods = Pods(world, store, agent)
        took, refused = pods.up()
        written = writes() - before
        etcd.slow_down(0)
        held = {**pods.holding(), **first.holding()}
        said = (f"a write {write:.3f} s: last of {PODS} pods after {took:.2f} s, {len(refused)} refusals, "
                f"{pods.alone()} alone, {written} writes of blocks tried")
        say(f"{way}: {said}")
        expect_equal(len(set(held.values())), len(held), f"addresses of {len(held)} sandboxes")
        recorded = {row["containerId"]: address for address, row in world.held(operators).items()}
        wrong = {sandbox: (address, recorded.get(sandbox)) for sandbox, address in held.items() if recorded.get(sandbox) != address}
        expect_equal(wrong, {}, "told another address than the register has")
        # A DEL may be left for later; nothing else may hold one.
        expect(set(recorded) - set(held) <= {answer.sandbox for answer in pods.ledger if answer.command == "DEL"}, "holders unknown")
        pods.down()
        first.down()
    limit = 8 * write + 1 if way == "agent" else max(ALONE * write, 30)
    return Burst(write, took, limit, refused, len(held) - 1, pods.alone())


def judge(way, burst):
    """What of a burst is not as wanted; nothing when all is."""
    faults = []
    if burst.up != PODS:
        faults.append(f"{burst.up} of {PODS} pods have an address")
    if burst.refused:
        faults.append(f"{len(burst.refused)} refusals, as {burst.refused[0].body}")
    if burst.took > burst.limit:
        faults.append(f"{burst.took:.2f} s, wanted {burst.limit:.2f}")
    if way == "agent" and burst.alone:
        faults.append(f"{burst.alone} went alone")
    return faults


def test():
    rows = [row.split(":") for row in sys.argv[2:]]
    failures = []
    for kind in dict.fromkeys(kind for kind, _, _ in rows):
        with World("slow-burst", sys.argv[1]) as world:
            with place_of(world, kind) as place:
                for _, way, seconds in (row for row in rows if row[0] == kind):
                    say(f"--- {kind} {way} {seconds}")
                    failures += [f"{kind} {way} {seconds}: {fault}" for fault in
                                 judge(way, measure(world, place, way, float(seconds)))]
    expect(not failures, "; ".join(failures))


if __name__ == "__main__":
    main(test, 1500)
