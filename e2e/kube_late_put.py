"""What an ADD that died has on its way to a kube-apiserver: its block's write comes after its DEL, and takes no address. ADDs that
fail behind their handle leave none, with no controller that would collect it.

usage: kube_cases.py BIN_DIR VERSION kube_late_put
"""

import time

from etcd import Node
from kube_agent import findings, start_agent, together
from kube_relay import Relay
from kube_store import CALICO, write_kubeconfig
from lib import expect, expect_equal, run, say, wait_for

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/croft-node"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
FAILED, AT_ONCE, SECONDS = 300, 100, 30


def handles(kube):
    return sorted(item["spec"]["handleID"] for item in kube.call("GET", f"{CALICO}/ipamhandles")["items"])


def late(world, kube, store, relay, oak, beyond, container, what, mark, counted=True):
    """The ADD is killed as its block is on the way, the DEL goes past the relay."""
    relay.hold = mark
    adding = beyond.start("ADD", container)
    wait_for(lambda: relay.held, f"{what} is on its way")
    expect_equal(f"net.{container}" in handles(kube), counted, f"{what}: its handle was first: {handles(kube)}")
    adding.kill()
    adding.communicate()
    oak.delete(container)
    relay.release()
    wait_for(lambda: not relay.waiting, f"{what} is answered")
    held = {row["containerId"] for row in world.held(store).values()}
    expect(container not in held, f"{what}: its DEL is done, and it holds an address: {held}, handles {handles(kube)}")
    oak.delete(container)
    expect(f"net.{container}" not in handles(kube), f"{what}: {handles(kube)}")
    say(f"{what} after the DEL of its ADD takes no address, and no handle is left")


def failed(kube, oak):
    """No block may be written: an ADD makes its handle and fails. Its DEL comes as the right is back."""
    def allow(verbs):
        rights = kube.call("GET", ROLE)
        rule, = (rule for rule in rights["rules"] if "ipamblocks" in rule["resources"])
        allowed, rule["verbs"] = rule["verbs"], verbs
        kube.call("PUT", ROLE, rights)
        review = {"spec": {"user": "system:serviceaccount:croft-system:croft-node", "resourceAttributes": {
            "verb": "update", "group": "crd.projectcalico.org", "resource": "ipamblocks"}}}
        wait_for(lambda: kube.call("POST", REVIEWS, review)["status"]["allowed"] == ("update" in verbs), "the right is as told")
        return allowed

    before, done, seen, end = handles(kube), 0, 0, time.monotonic() + SECONDS
    while done < FAILED and time.monotonic() < end:
        batch = [f"f{i}" for i in range(done, done + AT_ONCE)]
        allowed = allow(["get", "list", "watch"])
        for container, (code, answer) in together(oak, "ADD", batch).items():
            expect(code != 0, f"ADD {container} may write no block: {answer}")
        seen = max(seen, len(handles(kube)) - len(before))
        allow(allowed)
        for container, (code, answer) in together(oak, "DEL", batch).items():
            expect_equal(code, 0, f"DEL {container}: {answer}")
        done += AT_ONCE
    expect(done >= 2 * AT_ONCE and seen > 0, f"only {done} ADDs in {SECONDS} s, with {seen} handles")
    expect_equal(handles(kube), before, f"handles after {done} failed ADDs")
    say(f"{done} failed ADDs, with up to {seen} handles at a time, leave none")


def play(world, kube):
    store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    of_nodes = write_kubeconfig(world, kube, "croft-node")
    kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "oak"}})
    run(world.bin / "croft", "--store", store, "pool", "create", "p", "--cidr", "10.80.0.0/16", "--gateway", "none",
        "--cooldown-seconds", "0")
    relay = Relay(world, kube)
    oak, beyond = Node(world, f"kube:{of_nodes}", "oak"), Node(world, f"kube:{relay.kubeconfig(of_nodes)}", "oak")
    at_work = world, kube, store, relay, oak, beyond
    late(*at_work, "c1", "a new block", b'"allocations":[null', counted=False)
    late(*at_work, "c2", "its first address", b'"allocations":[0')
    oak.add("lives")
    late(*at_work, "c3", "one address more", b'"allocations":[0')
    oak.ipam["agent"] = str(start_agent(world, f"kube:{of_nodes}")[1])
    oak.add("lives-too")
    failed(kube, oak)
    expect_equal(sorted(row["containerId"] for row in world.held(store).values()), ["lives", "lives-too"], "who holds")
    # A claim on its way died with its ADD: the node's next claim takes it up.
    expect_equal([one for one in findings(world, store) if one[0] not in ("affinity_unconfirmed", "affinity_stale")], [], "croft check")
