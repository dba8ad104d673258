"""How full pools are, told by `croftd controller` in a real kube-apiserver: what kubectl shows of it, and that only changes are written.
Each condition: pool_status_test.cc; objects that go, node ranges, definitions that lack, and writes that cross: status_board_test.cc.
"""

import re

from kube_apiserver_lib import if_there
from kube_chart import Tools
from kube_store import CALICO, OWN, plugin, write_kubeconfig
from lib import Controller, expect, expect_equal, run, say, wait_for


def status(kube, pool):
    return (if_there(kube.call, "GET", f"{OWN}/croftpools/{pool}") or {}).get("status", {})


def condition(told, kind):
    return next((c for c in told.get("conditions", []) if c["type"] == kind), {})


def events(kube):
    return [(event["reason"], event["involvedObject"]["kind"], event["involvedObject"]["name"]) for event in
            kube.call("GET", "/api/v1/namespaces/default/events")["items"] if event["source"].get("component") == "croft-controller"]


def fills(world, kube, store, kubectl):
    """A pool that becomes full; an ADD reads and writes none of it, and what did not change is not written."""
    seen = kube.call("GET", f"{OWN}/croftpools/wide")["metadata"]["resourceVersion"]
    free = int(status(kube, "small")["free"])
    for number in range(free):
        plugin(world, "ADD", f"c{number}", store["node"])
    wait_for(lambda: status(kube, "small")["free"] == "0", "the small one is full", 20)
    told = status(kube, "small")
    expect_equal((told["held"], told["blocks"], condition(told, "Ready")["reason"], condition(told, "Exhausted")["status"]),
                 (free, 1, "Exhausted", "True"), "the full pool")
    wait_for(lambda: events(kube), "an Event", 20)
    described = kubectl("describe", "croftpool", "small")
    expect("PoolFull" in described and "pool small (10.1.0.0/29) is full: 0 of 8 addresses are free" in described, described)
    plugin(world, "DEL", "c0", store["node"])
    wait_for(lambda: status(kube, "small")["cooling"] == 1, "one cools", 20)
    expect_equal(events(kube), [("PoolFull", "CroftPool", "small")], "told once")
    expect_equal(kube.call("GET", f"{OWN}/croftpools/wide")["metadata"]["resourceVersion"], seen, "what did not change is not written")
    # The pools themselves are Calico's, in which nothing was written.
    for pool in kube.call("GET", f"{CALICO}/ippools")["items"]:
        expect("status" not in pool, f"a status in Calico's object: {pool}")


def kubectl_shows(kubectl):
    lines = [re.split(r"\s{2,}", line.strip()) for line in kubectl("get", "croftpools").strip().splitlines()]
    expect_equal(lines[0], ["NAME", "CIDR", "CAPACITY", "HELD", "COOLING", "FREE", "BLOCKS", "READY", "REASON", "AGE"], "columns")
    rows = {line[0]: line[1:] for line in lines[1:]}
    expect_equal(sorted(rows), ["small", "wide"], "rows")
    expect_equal(rows["small"][:8], ["10.1.0.0/29", "8", "5", "1", "0", "1", "False", "Exhausted"], "a row")
    expect("small" in kubectl("get", "croft"), "the category has them")
    explained = kubectl("explain", "croftpools.status")
    expect("What the controller that leads tells of it" in explained and "held\t<integer>" in explained, explained)
    waited = kubectl("wait", "--for=condition=Ready=false", "croftpools/small", "--timeout=5s")
    expect("condition met" in waited, waited)
    say("\n" + kubectl("get", "croftpools"))


def play(world, kube):
    store = {name: f"kube:{write_kubeconfig(world, kube, f'croft-{name}')}" for name in ("node", "controller", "operator")}
    croft, tools, admin = [world.bin / "croft", "--store", store["operator"]], Tools(world), write_kubeconfig(world, kube)
    kubectl = lambda *words: tools.kubectl(admin, *words).stdout
    run(*croft, "pool", "create", "small", "--cidr", "10.1.0.0/29", "--block-size", "29", "--gateway", "none", "--cooldown-seconds", "600")
    run(*croft, "pool", "create", "wide", "--cidr", "fd00:10::/64")
    with Controller(world, store["controller"], "controller", "--interval", "500ms", "--status-interval", "300ms") as one:
        wait_for(lambda: status(kube, "small") and status(kube, "wide"), "both pools are shown", 20)
        told = status(kube, "wide")
        expect_equal((told["cidr"], told["capacity"], told["held"], told["blocks"]), ("fd00:10::/64", str(2**64), 0, 0), "an empty pool")
        ready = condition(told, "Ready")
        expect_equal((ready["status"], ready["reason"], ready["observedGeneration"]), ("True", "AddressesFree", 1), "it is ready")
        fills(world, kube, store, kubectl)
        kubectl_shows(kubectl)
        one.end()
