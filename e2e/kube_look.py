"""Reading needs nothing of Croft's: every reading command, and the controller's dry run, on a cluster that has Calico's kinds alone,
by an account that may only view; then without some rights. Of a Calico in etcd: etcd_roles.py.
"""

import contextlib
import json
import subprocess

from kube_collect import Cluster
from kube_store import CALICO, KINDS as CALICOS, apply, is_served, shipped_definitions, write_kubeconfig
from lib import TREE, expect, expect_equal, own_environment, run, say, wait_for

LOOK = TREE / "deploy" / "kubernetes" / "look.yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HANDLES = {f"k8s-pod-network.{i:02x}": (f"web-{i}", f"10.79.0.{i}") for i in range(1, 4)}
BLOCK = "10.79.0.0/26"
FINE, REFUSED, NOT_READ = 0, 4, "not judged, as this account may not read it"

# As each is called by a person who looks; the exit code is 0.
COMMANDS = [
    ["check"], ["check", "--show-all-ips"], ["explain", "--node", "oak"], ["explain", "--node", "oak", "--ip", "10.79.0.9"], ["ip", "list"],
    ["ip", "show", "10.79.0.1"], ["pool", "list"], ["pool", "show", "default-ipv4-ippool"], ["block", "list"], ["block", "show", BLOCK],
    ["config", "show"], ["-o", "json", "node", "range", "list"], ["node", "range", "show"]]
WITH_NODES = [["node", "list"], ["node", "show", "oak"]]
OF_SERVICES = [["-o", "json", "service", "list"]]

# Without a right of the role: what `check` says that it could not judge, and the controller's dry run, if it needs it.
LACKING = (("ipamhandles", "crd.projectcalico.org", "handles", "handles"), ("blockaffinities", "crd.projectcalico.org", "claims on blocks", "claims on blocks"),
           ("pods", "", "running pods", "pods"), ("ipreservations", "crd.projectcalico.org", "reservations", None),
           ("ipamconfigs", "crd.projectcalico.org", "settings", None), ("nodes", "", "nodes", None),
           ("servicecidrs", "networking.k8s.io", "the ranges of Services", None))


def block_spec():
    """As Calico writes it: three pods of oak."""
    taken = len(HANDLES)
    attributes = [{"handle_id": handle, "secondary": {"namespace": "default", "node": "oak", "pod": pod,
                                                      "timestamp": "2026-01-02 03:04:05.678901234 +0000 UTC"}}
                  for handle, (pod, _) in HANDLES.items()]
    return {"affinity": "host:oak", "allocations": [None, *range(taken), *[None] * (63 - taken)], "attributes": attributes,
            "cidr": BLOCK, "deleted": False, "sequenceNumber": taken, "strictAffinity": False,
            "sequenceNumberForAllocation": {str(i): i for i in range(1, taken + 1)}, "unallocated": [*range(taken + 1, 64), 0]}


def make_calicos(world, kube):
    """What Calico's installer, and its plugin for three pods, leave behind."""
    def make(kind, resource, name, spec):
        kube.make(f"{CALICO}/{resource}", kind, name, {"projectcalico.org/metadata": '{"creationTimestamp":null}'}, spec=spec)
    make("IPPool", "ippools", "default-ipv4-ippool", {"cidr": "10.79.0.0/24", "blockSize": 26, "natOutgoing": True, "nodeSelector": "all()",
                                                     "vxlanMode": "Always", "ipipMode": "Never", "allowedUses": ["Workload", "Tunnel"]})
    make("IPAMConfig", "ipamconfigs", "default", {"strictAffinity": False, "autoAllocateBlocks": True, "maxBlocksPerHost": 0})
    make("ClusterInformation", "clusterinformations", "default", {"datastoreReady": True, "clusterType": "k8s"})
    make("IPAMBlock", "ipamblocks", "10-79-0-0-26", block_spec())
    make("BlockAffinity", "blockaffinities", "oak-10-79-0-0-26", {"cidr": BLOCK, "deleted": "false", "node": "oak", "state": "confirmed"})
    for handle in HANDLES:
        make("IPAMHandle", "ipamhandles", handle, {"handleID": handle, "block": {BLOCK: 1}, "deleted": False})
    kube.make_node("oak")
    cluster = Cluster(world, kube)
    for pod, address in HANDLES.values():
        cluster.pod(pod, "oak")
        cluster.report(pod, address)


class Looker:
    """Somebody with a kubeconfig, and with some rights."""

    def __init__(self, world, kube, name, roles):
        self.world, self.kube, self.name = world, kube, name
        kube.make("/api/v1/namespaces/default/serviceaccounts", "ServiceAccount", name)
        for role in roles:
            kube.make(f"{RBAC}/clusterrolebindings", "ClusterRoleBinding", f"{name}-{role.replace(':', '-')}",
                      roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                      subjects=[{"kind": "ServiceAccount", "name": name, "namespace": "default"}])
        self.store = f"kube:{write_kubeconfig(world, kube, name, 'default')}"

    def may(self, verb, resource, group, allowed=True):
        """Waits until the API server has heard of a binding."""
        wait_for(lambda: self.kube.may(self.name, verb, resource, group) == allowed, f"{self.name} may {verb} {resource}: {allowed}", 30)


def croft(world, store, *arguments):
    return world.cli(store, *arguments, codes=None)


def looks(world, store, commands, not_read=(), code=FINE):
    """Each command works, and what may not be read is named in one line, if anything; the answers by command."""
    answers = {}
    for command in commands:
        done = croft(world, store, *command)
        expect_equal(done.returncode, code, f"croft {' '.join(command)}: {done.stdout}{done.stderr}")
        lines = [line for line in done.stderr.splitlines() if NOT_READ in line]
        expect_equal(len(lines), len(done.stderr.splitlines()), f"croft {' '.join(command)}: {done.stderr}")
        expect(len(lines) <= 1, f"croft {' '.join(command)}: it is told once: {done.stderr}")
        if not not_read:
            expect_equal(done.stderr, "", f"croft {' '.join(command)}")
        answers[" ".join(command)] = (done.stdout, done.stderr)
    checked, told = answers["check"]
    for words in not_read:
        expect(words in told, f"{words} is told by check: {told}")
    expect("nothing found" in checked, f"check: {checked}")
    expect_equal("in what this account may read" in checked, bool(not_read), f"check says whether it saw all: {checked}")
    expect("3 addresses held" in checked, f"check: {checked}")
    listed = json.loads(croft(world, store, "-o", "json", "ip", "list").stdout)
    expect_equal({one["address"]: one["pod"] for one in listed if one["state"] == "held"},
                 {address: pod for pod, address in HANDLES.values()}, "who holds what")
    expect(all(told in answers["explain --node oak"][0] for told in ("10.79.0.4", "1 block of its own")), f"explain: {answers['explain --node oak']}")
    return answers


def dry_run(world, store, code=FINE):
    done = subprocess.run([world.bin / "croftd", "controller", "--store", store, "--once", "--dry-run", "--grace", "200ms"],
                          env=own_environment(world.directory), capture_output=True, text=True, timeout=60, check=False)
    expect_equal(done.returncode, code, f"croftd controller --once --dry-run: {done.stdout}{done.stderr}")
    expect("would release" not in done.stderr, f"all pods live: {done.stderr}")
    expect(done.stderr.count(NOT_READ) <= 1, f"it is told once: {done.stderr}")
    return done.stderr


def state_of(kube):
    """Everything of Calico's, as it is stored."""
    return {resource: kube.call("GET", f"{CALICO}/{resource}")["items"] for resource in CALICOS}


def views(world, kube, before):
    """`view`, and the right to read Calico's kinds: nodes and the ranges of Services are not in it."""
    kube.make(f"{RBAC}/clusterroles", "ClusterRole", "calicos",
              rules=[{"apiGroups": ["crd.projectcalico.org"], "resources": CALICOS, "verbs": ["get", "list"]}])
    # kube-controller-manager, which isn't there, would put the second into the first.
    viewer = Looker(world, kube, "viewer", ["view", "system:aggregate-to-view", "calicos"])
    viewer.may("list", "pods", "")
    viewer.may("list", "ipamblocks", "crd.projectcalico.org")
    answers = looks(world, viewer.store, COMMANDS, ['nodes, the addresses of nodes, which nodes are gone (cannot list resource "nodes" in API group ""',
                                                                   "the ranges of Services (cannot list"])
    say("a view account: " + answers["check"][1].strip())
    for command in (["ip", "list"], ["pool", "list"], ["block", "list"]):
        expect_equal(answers[" ".join(command)][1], "", f"croft {command} misses nothing")
    told = dry_run(world, viewer.store)
    expect("nodes (" in told and "3 pods" in told, f"the dry run: {told}")
    for writes in (["pool", "create", "x", "--cidr", "10.80.0.0/24"], ["ip", "release", "10.79.0.1", "--force"], ["pool", "disable", "default-ipv4-ippool"],
                   ["affinity", "release", "--node", "oak", "--force"]):
        done = croft(world, viewer.store, *writes)
        expect(done.returncode not in (FINE, 3) and ("forbidden" in done.stderr or "CustomResourceDefinition" in done.stderr),
               f"croft {writes}: {done.returncode} {done.stdout}{done.stderr}")
    admin = Looker(world, kube, "admin", ["cluster-admin"])
    admin.may("delete", "ipamblocks", "crd.projectcalico.org")
    done = croft(world, admin.store, "pool", "create", "x", "--cidr", "10.80.0.0/24")
    expect(done.returncode != FINE and "ipam.croft.dev" in done.stderr, f"who writes needs Croft's kinds: {done.returncode} {done.stdout}{done.stderr}")
    expect_equal(state_of(kube), before, "nothing was written")
    say("writes are refused: " + done.stderr.strip())


def looks_with_its_role(world, kube, before):
    """deploy/kubernetes/look.yaml, and then without parts of it."""
    kube.apply(LOOK.read_text())
    looker = Looker(world, kube, "looker", ["croft-look"])
    looker.may("list", "ipamblocks", "crd.projectcalico.org")
    looks(world, looker.store, COMMANDS + WITH_NODES + OF_SERVICES)
    told = croft(world, looker.store, "service", "audit")  # of bitmaps, which no API shows
    expect(told.returncode == 1 and "--etcd-servers" in told.stderr, f"{told}")
    expect(NOT_READ not in dry_run(world, looker.store), "the dry run may read all")
    say("look.yaml is enough for every reading command, and nothing is missing")

    role = f"{RBAC}/clusterroles/croft-look"
    whole = kube.call("GET", role)["rules"]

    @contextlib.contextmanager
    def without(resource, group):
        def put(rules):
            kube.call("PUT", role, {**kube.call("GET", role), "rules": rules})
        put([{**rule, "resources": left} for rule in whole if (left := [one for one in rule["resources"] if one != resource])])
        looker.may("list", resource, group, False)
        yield
        put(whole)
        looker.may("list", resource, group)

    for resource, group, words, of_dry_run in LACKING:
        with without(resource, group):
            told = croft(world, looker.store, "check")
            expect(told.returncode == FINE and len(told.stderr.splitlines()) == 1 and words in told.stderr and f'resource "{resource}"' in told.stderr,
                   f"check without {resource}: {told.returncode} {told.stdout}{told.stderr}")
            expect("nothing found in what" in told.stdout, told.stdout)
            if of_dry_run:
                expect(f"{of_dry_run} (" in dry_run(world, looker.store), f"the dry run without {resource} says so")
    # What an address is free by is not guessed.
    for resource in ("ipreservations", "ipamblocks"):
        with without(resource, "crd.projectcalico.org"):
            refused = croft(world, looker.store, "explain", "--node", "oak")
            expect(refused.returncode == REFUSED and f'resource "{resource}" in API group' in refused.stderr and "10.79.0." not in refused.stdout,
                   f"{refused.returncode} {refused.stdout}{refused.stderr}")
    with without("ipamblocks", "crd.projectcalico.org"):
        refused = croft(world, looker.store, "check")
        expect(refused.returncode == REFUSED and "ipamblocks" in refused.stderr and "nothing found" not in refused.stdout, f"{refused}")
    expect_equal(state_of(kube), before, "nothing was written")
    say("each right that lacks is named once, and what was not judged")

    # Croft's kinds come, and the account has no right to them.
    for name in [apply(kube, text) for text in shipped_definitions("croft")]:
        wait_for(lambda name=name: is_served(kube, name), f"{name} is served", 30)
    looks(world, looker.store, COMMANDS)
    with without("croftremovednodes", "ipam.croft.dev"):
        expect("nodes that were removed (" in dry_run(world, looker.store), "the dry run says so")
    put = [{**rule} for rule in whole if "ipam.croft.dev" not in rule["apiGroups"]]
    kube.call("PUT", role, {**kube.call("GET", role), "rules": put})
    looker.may("list", "croftpoolsets", "ipam.croft.dev", False)
    answers = looks(world, looker.store, COMMANDS, ['what is Croft\'s own (cannot list resource "croftpoolsets" in API group "ipam.croft.dev"'])
    expect(all("what is Croft's own" in told for _, told in answers.values()), f"every command says so: {answers}")
    expect("what is Croft's own" in dry_run(world, looker.store), "the dry run says so")


def is_as_the_readme_says(world, kube):
    """One pod goes, and a handle counts what no block holds: README.md shows what `croft check` says then."""
    kube.call("DELETE", "/api/v1/namespaces/default/pods/web-2?gracePeriodSeconds=0")
    handle = "k8s-pod-network.9f"
    kube.make(f"{CALICO}/ipamhandles", "IPAMHandle", handle, spec={"handleID": handle, "block": {BLOCK: 1}, "deleted": False})
    looker = Looker(world, kube, "reader-of-the-readme", ["cluster-admin"])
    looker.may("list", "ipamblocks", "crd.projectcalico.org")
    done = run(world.bin / "croft", "--kubeconfig", looker.store.removeprefix("kube:"), "check", check=False, env={**own_environment(world.directory)})
    readme = (LOOK.parent.parent.parent / "README.md").read_text()
    expect(done.returncode == 3 and f"$ croft --kubeconfig ~/.kube/config check\n{done.stdout}```" in readme, f"README.md shows:\n{done.stdout}{done.stderr}")
    say("check finds what README.md shows")


def play(world, kube):
    make_calicos(world, kube)
    before = state_of(kube)
    views(world, kube, before)
    looks_with_its_role(world, kube, before)
    is_as_the_readme_says(world, kube)
