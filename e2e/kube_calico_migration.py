"""A migration of Calico's data from crd.projectcalico.org/v1 to projectcalico.org/v3 on a real kube-apiserver, while nodes add and
delete pods all the time: what Calico's controller does is done here step by step, as kube-controllers/pkg/controllers/migration has it
(projectcalico/calico 87c15906f20c; its module can't be had by Go's proxy). No address gets two holders, calls are refused
with the reason while the data is locked, nothing is written in v1 behind the copy, and afterwards all goes on in v3 with what was there:
on a node that was told the new group at Converged, and on nodes, with an agent and without, that were told nothing. An agent ends then, and
is started again here as a service manager does.

usage: kube_calico_migration.py BIN_DIR VERSION
"""

import copy
import json
import sys
import threading
import time

from etcd import Node
from history import History, changed_answers, overlapping_holds
from kube_agent import start_agent
from kube_apiserver_lib import KubeApiserver, Refused
from kube_store import both_groups, write_kubeconfig
from lib import World, expect, expect_equal, main, run, say, wait_for

V1, V3 = "/apis/crd.projectcalico.org/v1", "/apis/projectcalico.org/v3"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# resources.go: in this order; (plural in v1, plural in v3, kind in v3).
ORDER = (("ippools", "ippools", "IPPool"), ("ipreservations", "ipreservations", "IPReservation"),
         ("ipamconfigs", "ipamconfigurations", "IPAMConfiguration"), ("blockaffinities", "blockaffinities", "BlockAffinity"),
         ("ipamblocks", "ipamblocks", "IPAMBlock"), ("ipamhandles", "ipamhandles", "IPAMHandle"))
MIGRATED_BY, ID = "migration.projectcalico.org/migrated-by", "0b0d4d5e-0000-4000-8000-000000000001"
DRAIN = 10  # defaultDrainPeriod
BLOCK = ("cidr", "affinity", "affinityClaimTime", "allocations", "unallocated", "sequenceNumber", "sequenceNumberForAllocation", "deleted")
ATTRIBUTE = ("handle_id", "secondary", "alternateOwnerAttrs")


class Migration:
    """Calico's controller."""

    def __init__(self, kube):
        self.kube = kube

    def items(self, where, plural):
        return self.kube.call("GET", f"{where}/{plural}")["items"]

    def make_v1_information(self):
        self.kube.call("POST", f"{V1}/clusterinformations", {
            "apiVersion": "crd.projectcalico.org/v1", "kind": "ClusterInformation", "metadata": {"name": "default"},
            "spec": {"clusterGUID": "0123", "calicoVersion": "v3.32.1", "datastoreReady": True}})

    def set_ready(self, where, ready):
        info = self.kube.call("GET", f"{where}/clusterinformations/default")
        info["spec"]["datastoreReady"] = ready
        self.kube.call("PUT", f"{where}/clusterinformations/default", info)

    def lock_v3(self):
        spec = self.kube.call("GET", f"{V1}/clusterinformations/default")["spec"]
        self.kube.call("POST", f"{V3}/clusterinformations", {
            "apiVersion": "projectcalico.org/v3", "kind": "ClusterInformation",
            "metadata": {"name": "default", "annotations": {MIGRATED_BY: ID}}, "spec": {**spec, "datastoreReady": False}})

    @staticmethod
    def converted(kind, item):
        """resources.go: blocks and handles are made anew from what Calico knows of them, all else is copied (convert.go)."""
        old, spec = item["metadata"], copy.deepcopy(item["spec"])
        meta = {"name": old["name"], "annotations": {}}
        if kind == "IPAMBlock":
            attributes = [{name: one[name] for name in ATTRIBUTE if one.get(name) is not None} for one in spec["attributes"]]
            spec = {**{name: spec[name] for name in BLOCK if name in spec}, "attributes": attributes}
        elif kind == "IPAMHandle":
            spec = {name: spec[name] for name in ("handleID", "block", "deleted") if name in spec}
        else:
            meta["labels"] = old.get("labels", {})
            meta["annotations"] = {name: text for name, text in old.get("annotations", {}).items() if name != "projectcalico.org/metadata"}
        if kind == "BlockAffinity":
            spec["deleted"] = spec.get("deleted") == "true"
        return {"metadata": meta, "spec": spec}

    def copy(self):
        """How many objects of each kind."""
        counts = {}
        for plural, new_plural, kind in ORDER:
            for item in self.items(V1, plural):
                made = self.converted(kind, item)
                made["metadata"]["annotations"][MIGRATED_BY] = ID
                self.kube.call("POST", f"{V3}/{new_plural}", {"apiVersion": "projectcalico.org/v3", "kind": kind, **made})
                counts[kind] = counts.get(kind, 0) + 1
        return counts

    def versions(self):
        return {(plural, item["metadata"]["name"]): item["metadata"]["resourceVersion"] for plural, _, _ in ORDER
                for item in self.items(V1, plural)}

    def delete_v1(self):
        """handleCompletedCleanup."""
        for item in self.kube.call("GET", CRDS)["items"]:
            if item["spec"]["group"] == "crd.projectcalico.org":
                self.kube.call("DELETE", f"{CRDS}/{item['metadata']['name']}")

    def v1_is_gone(self):
        return not any(group["name"] == "crd.projectcalico.org" for group in self.kube.call("GET", "/apis")["groups"])


class Worker:
    """A runtime on one node: pods come and go; who is told to come again later (code 11) does, all else is written down."""

    def __init__(self, node, history, number):
        self.node, self.history, self.number = node, history, number
        self.stopping, self.refused, self.wrong, self.done = False, [], [], []
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def call(self, op, container):
        """Whether it was done."""
        begin = self.history.now()
        code, answer, err = self.node.finish(self.node.start(op, container))
        end = self.history.now()
        if code == 0:
            more = {"addresses": [ip["address"].split("/")[0] for ip in answer["ips"]]} if op == "ADD" else {}
            self.history.add(begin=begin, end=end, container=container, op=op, outcome="ok", **more)
            self.done.append((end, op))
            return True
        self.history.add(begin=begin, end=end, container=container, op=op, outcome="unknown")
        (self.refused if answer and answer.get("code") == 11 else self.wrong).append((end, op, container, json.dumps(answer) + err))
        return False

    def until_done(self, op, container):
        while not self.call(op, container):
            if self.stopping:
                return
            time.sleep(0.1)

    def _work(self):
        kept = []
        count = 0
        while not self.stopping:
            container = f"{self.node.name}-{self.number}-{count}"
            count += 1
            self.until_done("ADD", container)
            kept.append(container)
            # Every fourth stays.
            if len(kept) > 2 and count % 4:
                self.until_done("DEL", kept.pop(-2))
            time.sleep(0.02)

    def stop(self):
        self.stopping = True
        self.thread.join(90)
        expect(not self.thread.is_alive(), f"a worker of {self.node.name} does not end")

    def last(self, op="ADD"):
        return max((at for at, what in self.done if what == op), default=0)


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube, self.history = world, kube, History()
        config = write_kubeconfig(world, kube)
        self.store, self.store_v3 = f"kube:{config}", f"kube:{config}?group=projectcalico.org/v3"
        self.nodes = {}
        for name in ("lone", "oak", "told"):
            node = self.nodes[name] = Node(world, self.store, name)
            node.ipam["ipv4_pools"] = ["p"]
            node.env = {"CROFT_TOMBSTONES": str(world.directory / f"tombstones-{name}")}
        self.workers, self.socket, self.process = [], None, None

    def croft(self, store, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", store, *arguments, check=False)
        expect(done.returncode in (code if isinstance(code, tuple) else (code,)), f"croft {arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def of(self, name):
        return [worker for worker in self.workers if worker.node.name == name]

    def goes_on(self, name, seconds, what):
        """Every worker of a node adds and deletes something that began from now on."""
        now = self.history.now()
        wait_for(lambda: all(worker.last(op) > now + 1 for worker in self.of(name) for op in ("ADD", "DEL")),
                 f"{name} goes on {what}", seconds)
        return self.history.now() - now

    def start_agent(self):
        """One that knows no group."""
        self.process, self.socket = start_agent(self.world, self.store, "--tombstones", self.world.directory / "tombstones-oak")

    def agent(self):
        """What its status says; nothing while it says nothing."""
        done = run(self.world.bin / "croft", "agent", "status", "--socket", self.socket, "-o", "json", check=False)
        said = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else {}
        return said[0] if isinstance(said, list) else said

    def agent_follows(self, since):
        """Whether it has the node's blocks in memory, and has answered by them more often than then."""
        said = self.agent()
        return said and said["cacheInUse"] and int(said["ownBlocks"]) > 0 and int(said["servedFromCache"]) > int(since["servedFromCache"])

    def refused_since(self, name, since):
        return [text for worker in self.of(name) for at, _, _, text in worker.refused if at > since]


def migrates(rig):
    migration = Migration(rig.kube)
    for name in rig.nodes:
        rig.goes_on(name, 30, "before it")

    migration.set_ready(V1, False)
    locked = rig.history.now()
    say(f"{locked:.1f} s: v1 is locked")
    time.sleep(DRAIN)
    before = migration.versions()
    migration.lock_v3()
    counts = migration.copy()
    expect(all(counts.get(kind) for kind in ("IPPool", "IPReservation", "BlockAffinity", "IPAMBlock", "IPAMHandle")), f"copied: {counts}")
    time.sleep(1)
    expect_equal(migration.versions(), before, "what was written in v1 behind the copy")
    for name in rig.nodes:
        told = rig.refused_since(name, locked)
        expect(told and all("datastoreReady" in text for text in told), f"{name} is told why: {told[:3]}")
        late = [at - locked for worker in rig.of(name) for at, op in worker.done if op == "ADD" and at > locked + 9]
        expect(not late, f"{name}: ADDs that were answered {late} s after the lock")
    say(f"{rig.history.now():.1f} s: {counts} copied, nothing written behind it")

    migration.set_ready(V3, True)
    rig.nodes["told"].env["CALICO_API_GROUP"] = "projectcalico.org/v3"
    took = rig.goes_on("told", 30, "in v3 at Converged")
    say(f"{rig.history.now():.1f} s: Converged; the node that was told goes on within {took:.1f} s")
    expect_equal(migration.versions(), before, "what was written in v1 at Converged")
    for name in ("lone", "oak"):
        expect(rig.refused_since(name, rig.history.now() - 1), f"{name}, which was not told, waits")

    migration.delete_v1()
    wait_for(migration.v1_is_gone, "the older group is gone", 60)
    gone = rig.history.now()
    say(f"{gone:.1f} s: the older group is gone")
    rig.process.wait(60)
    say(f"the agent has ended {rig.history.now() - gone:.1f} s later")
    rig.start_agent()
    then = rig.agent() or {"servedFromCache": 0}
    for name in ("lone", "oak"):
        took = rig.goes_on(name, 60, "in v3 without being told")
        say(f"{name} goes on in v3 within {took:.1f} s")
    # By the agent itself, which no plugin has to go past.
    wait_for(lambda: rig.agent_follows(then), "the agent answers by its memory of the register in v3", 40)
    took = rig.history.now() - gone
    say(f"the agent does so {took:.1f} s after the older group was gone: {rig.agent()}")
    for worker in rig.workers:
        early = [text for at, op, container, text in worker.wrong if not gone - 30 < at < gone + 30]
        expect(not early, f"refusals with another code than 11: {early[:3]}")


def kept(rig, before):
    """What there was before, and what the history says, is there in v3."""
    expect_equal(overlapping_holds(rig.history, lambda _address: 0), [], "addresses held twice")
    expect_equal(changed_answers(rig.history), [], "answers that changed")
    rows = rig.world.held(rig.store_v3)
    holders = {}
    for row in rows.values():
        holders.setdefault(row["containerId"], set()).add(row["address"])
    for container, address in before.items():
        expect_equal(holders.get(container), {address}, f"what {container} has had since before the migration")
    for container, calls in rig.history.by_container().items():
        last = calls[-1]
        if last["op"] == "ADD" and last["outcome"] == "ok":
            expect_equal(holders.get(container), set(last["addresses"]), f"what {container} holds")
    pool, = json.loads(rig.croft(rig.store_v3, "-o", "json", "pool", "list"))
    expect_equal((pool["gateway"], pool["cooldownSeconds"]), ("10.100.0.1", 2), f"the pool is as it was: {pool}")
    say(f"{len(holders)} holders in v3, {len(rig.history.calls)} calls")


def aborts(rig):
    """handleAbort: v1 is ready again, and all go on there."""
    migration = Migration(rig.kube)
    locked = rig.history.now()
    migration.set_ready(V1, False)
    wait_for(lambda: all(rig.refused_since(name, locked) for name in rig.nodes), "all are refused", 20)
    migration.set_ready(V1, True)
    for name in rig.nodes:
        rig.goes_on(name, 30, "in v1 after an abort")


def left_over(rig):
    """Nothing contradicts itself but what DELs wait for."""
    done = run(rig.world.bin / "croft", "--store", rig.store_v3, "-o", "json", "check", check=False)
    findings = {finding["finding"] for finding in json.loads(done.stdout)}
    expect(findings <= {"handle_miscount", "handle_empty", "affinity_unconfirmed", "affinity_stale"}, f"croft check: {done.stdout}")


def test():
    with World("kube-calico-migration", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        both_groups(kube)
        rig = Rig(world, kube)
        Migration(kube).make_v1_information()
        rig.croft(rig.store, "pool", "create", "p", "--cidr", "10.100.0.0/16", "--block-size", "28", "--gateway", "10.100.0.1",
                  "--cooldown-seconds", "2")
        rig.start_agent()
        rig.nodes["oak"].ipam["agent"] = str(rig.socket)
        before = {}
        for name, node in rig.nodes.items():
            for number in range(5):
                before[f"old-{name}-{number}"] = node.add(f"old-{name}-{number}")[0].split("/")[0]
        rig.workers = [Worker(node, rig.history, number) for node in rig.nodes.values() for number in range(2)]
        try:
            aborts(rig)
            migrates(rig)
        finally:
            for worker in rig.workers:
                worker.stopping = True
        for worker in rig.workers:
            worker.stop()
        kept(rig, before)
        left_over(rig)


if __name__ == "__main__":
    main(test, 300)
