"""A migration of Calico's data from crd.projectcalico.org/v1 to projectcalico.org/v3 while nodes add and delete pods; Calico's controller
is played here as kube-controllers/pkg/controllers/migration has it (projectcalico/calico 87c15906f20c). No address gets two holders,
calls are refused with the reason while the data is locked, nothing is written in v1 behind the copy, and all goes on in v3 with what
was there: on a node that was told the new group at Converged, and on nodes, with an agent and without, that were told nothing.
"""

import copy
import itertools
import json
import time

from etcd_lib import Node
from kube_agent import LEFT_BY_A_CRASH, findings, start_agent
from kube_store import newer_group, write_kubeconfig
from lib import expect, expect_equal, say, wait_for

V1, V3 = "/apis/crd.projectcalico.org/v1", "/apis/projectcalico.org/v3"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# resources.go: in this order; (plural in v1, plural in v3, kind in v3).
ORDER = (("ippools", "ippools", "IPPool"), ("ipreservations", "ipreservations", "IPReservation"),
         ("ipamconfigs", "ipamconfigurations", "IPAMConfiguration"), ("blockaffinities", "blockaffinities", "BlockAffinity"),
         ("ipamblocks", "ipamblocks", "IPAMBlock"), ("ipamhandles", "ipamhandles", "IPAMHandle"))
MIGRATED_BY, ID = "migration.projectcalico.org/migrated-by", "0b0d4d5e-0000-4000-8000-000000000001"
DRAIN = 10  # defaultDrainPeriod
LATER = 11  # CNI's "try again later"
BLOCK = ("cidr", "affinity", "affinityClaimTime", "allocations", "unallocated", "sequenceNumber", "sequenceNumberForAllocation", "deleted")
ATTRIBUTE = ("handle_id", "secondary", "alternateOwnerAttrs")


class Migration:
    """Calico's controller."""

    def __init__(self, kube):
        self.kube = kube

    def items(self, where, plural):
        return self.kube.call("GET", f"{where}/{plural}")["items"]

    def make_v1_information(self):
        self.kube.make(f"{V1}/clusterinformations", "ClusterInformation", "default",
            spec={"clusterGUID": "0123", "calicoVersion": "v3.32.1", "datastoreReady": True})

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


class Rig:
    """Three nodes, one with an agent that knows no group, and who was told which address."""

    def __init__(self, world, kube):
        self.world, self.kube, self.count, self.told = world, kube, itertools.count(), {}
        config = write_kubeconfig(world, kube)
        self.store, self.store_v3 = f"kube:{config}", f"kube:{config}?group=projectcalico.org/v3"
        self.nodes = {}
        for name in ("lone", "oak", "told"):
            node = self.nodes[name] = Node(world, self.store, name)
            node.ipam["ipv4_pools"] = ["p"]
            node.env = {"CROFT_TOMBSTONES": str(world.directory / f"tombstones-{name}")}
        self.agent, self.socket = None, None

    def start_agent(self):
        self.agent, self.socket = start_agent(self.world, self.store, "--tombstones", self.world.directory / "tombstones-oak")
        self.nodes["oak"].ipam["agent"] = str(self.socket)

    def begin(self, name):
        container = f"{name}-{next(self.count)}"
        return name, container, self.nodes[name].start("ADD", container)

    def end(self, name, container, process):
        """Nothing when it was done; the answer of a call that is to come again later."""
        code, answer, err = self.nodes[name].finish(process)
        if code == 0:
            address = answer["ips"][0]["address"].split("/")[0]
            expect(address not in self.told.values(), f"{container} was told {address}, which another has: {self.told}")
            self.told[container] = address
            return None
        expect_equal(answer["code"], LATER, f"ADD {container}: {answer} {err}")
        return answer

    def add(self, name):
        return self.end(*self.begin(name))

    def goes_on(self, name, seconds, what):
        """It adds, and deletes what it added first."""
        begin = time.monotonic()
        wait_for(lambda: self.add(name) is None, f"{name} adds {what}", seconds)
        first = next(container for container in self.told if container.startswith(name))
        self.nodes[name].delete(first)
        del self.told[first]
        return time.monotonic() - begin

    def is_refused(self, name):
        answer = self.add(name)
        return answer is not None and "datastoreReady" in json.dumps(answer)


def aborts(rig):
    """handleAbort: v1 is ready again, and all go on there."""
    migration = Migration(rig.kube)
    migration.set_ready(V1, False)
    for name in rig.nodes:
        wait_for(lambda name=name: rig.is_refused(name), f"{name} is refused", 20)
    migration.set_ready(V1, True)
    for name in rig.nodes:
        rig.goes_on(name, 30, "in v1 after an abort")


def migrates(rig):
    migration = Migration(rig.kube)
    under_way = [rig.begin(name) for name in rig.nodes for _ in range(8)]
    migration.set_ready(V1, False)
    late = [rig.begin(name) for name in rig.nodes for _ in range(8)]
    for call in under_way + late:
        rig.end(*call)
    time.sleep(DRAIN)
    before = migration.versions()
    for name in rig.nodes:
        expect(rig.is_refused(name), f"{name} is told why")
    migration.lock_v3()
    counts = migration.copy()
    expect(all(counts.get(kind) for kind in ("IPPool", "IPReservation", "BlockAffinity", "IPAMBlock", "IPAMHandle")), f"copied: {counts}")
    for name in rig.nodes:
        expect(rig.is_refused(name), f"{name} waits behind the copy")
    expect_equal(migration.versions(), before, "what was written in v1 behind the copy")

    migration.set_ready(V3, True)
    rig.nodes["told"].env["CALICO_API_GROUP"] = "projectcalico.org/v3"
    took = rig.goes_on("told", 30, "in v3 at Converged")
    say(f"{counts} copied; Converged: the node that was told goes on within {took:.1f} s")
    expect(all(rig.is_refused(name) for name in ("lone", "oak")), "who was not told waits")
    expect_equal(migration.versions(), before, "what was written in v1 at Converged")

    migration.delete_v1()
    wait_for(migration.v1_is_gone, "the older group is gone", 60)
    wait_for(lambda: rig.agent.poll() is not None or not [rig.add("oak")], "the agent ends", 60)
    rig.start_agent()
    for name in ("lone", "oak"):
        took = rig.goes_on(name, 60, "in v3 without being told")
        say(f"{name} goes on in v3 within {took:.1f} s")
    # By the agent itself, which no plugin has to go past.
    log = rig.world.directory / "ipam.log"
    wait_for(lambda: rig.add("oak") is None and "via=agent" in log.read_text().splitlines()[-1], "the agent answers in v3", 40)


def play(world, kube):
    """The last case of a server: the older group is gone behind it."""
    newer_group(kube)
    rig = Rig(world, kube)
    Migration(kube).make_v1_information()
    world.pool(rig.store, "p", "10.100.0.0/16", "--block-size", "28", "--gateway", "10.100.0.1", cooldown=600)
    rig.start_agent()
    for name in rig.nodes:
        for _ in range(5):
            expect_equal(rig.add(name), None, "before it")
    aborts(rig)
    migrates(rig)
    held = {row["containerId"]: address for address, row in world.held(rig.store_v3).items()}
    expect_equal(held, rig.told, "who holds what in v3")
    pool, = world.croft(rig.store_v3, "pool", "list")
    expect_equal((pool["gateway"], pool["cooldownSeconds"]), ("10.100.0.1", 600), f"the pool is as it was: {pool}")
    left = {kind for kind, _ in findings(world, rig.store_v3)}
    expect(left <= set(LEFT_BY_A_CRASH), f"croft check: {left}")
