"""How full pools are, told by `croftd controller` in a real kube-apiserver: what kubectl shows of it, and that only changes are written.
Node ranges, definitions that lack, and writes that cross are status_board_test.cc's.
"""

import re

from kube_apiserver_lib import if_there, program
from kube_store import CALICO, OWN, Controller, plugin, write_kubeconfig
from lib import expect, expect_equal, own_environment, run, say, wait_for

INTERVAL = "300ms"


class Kubectl:
    """Kubernetes' own, by which the API of every version is looked at."""

    def __init__(self, config):
        self.config, self.program = config, config.parent / "kubectl"
        self.program.symlink_to(program("1.36", "kube-node"))

    def __call__(self, *arguments):
        folder = self.config.parent
        return run(self.program, "--kubeconfig", self.config, *arguments, env={**own_environment(folder), "HOME": str(folder)}).stdout


def controller(world, store, name, *flags):
    return Controller(world, store, name, "--interval", "500ms", "--status-interval", INTERVAL, *flags)


def status(kube, pool):
    return (if_there(kube.call, "GET", f"{OWN}/croftpools/{pool}") or {}).get("status", {})


def condition(told, kind):
    return next((c for c in told.get("conditions", []) if c["type"] == kind), {})


def version(kube, path):
    return kube.call("GET", path)["metadata"]["resourceVersion"]


def pools(world, kube, store, croft, kubectl):
    run(*croft, "pool", "create", "small", "--cidr", "10.1.0.0/29", "--block-size", "29", "--gateway", "none", "--cooldown-seconds", "600")
    run(*croft, "pool", "create", "wide", "--cidr", "fd00:10::/64")
    one = controller(world, store["controller"], "first")
    wait_for(lambda: status(kube, "small") and status(kube, "wide"), "both pools are shown", 20)
    told = status(kube, "wide")
    expect_equal((told["cidr"], told["capacity"], told["held"], told["blocks"]), ("fd00:10::/64", str(2**64), 0, 0), "an empty pool")
    ready = condition(told, "Ready")
    expect_equal((ready["status"], ready["reason"], ready["observedGeneration"]), ("True", "AddressesFree", 1), "it is ready")
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", ready["lastTransitionTime"]), str(ready))

    # An ADD reads and writes none of it.
    seen = version(kube, f"{OWN}/croftpools/wide")
    free = int(status(kube, "small")["free"])
    for number in range(free):
        plugin(world, "ADD", f"c{number}", store["node"])
    wait_for(lambda: status(kube, "small")["free"] == "0", "the small one is full", 20)
    told = status(kube, "small")
    expect_equal((told["held"], told["blocks"], condition(told, "Ready")["status"], condition(told, "Ready")["reason"],
                  condition(told, "Exhausted")["status"]), (free, 1, "False", "Exhausted", "True"), "the full pool")

    def events():
        return [(event["reason"], event["involvedObject"]["kind"], event["involvedObject"]["name"]) for event in
                kube.call("GET", "/api/v1/namespaces/default/events")["items"] if event["source"].get("component") == "croft-controller"]

    wait_for(events, "an Event", 20)
    described = kubectl("describe", "croftpool", "small")
    expect("PoolFull" in described and "pool small (10.1.0.0/29) is full: 0 of 8 addresses are free" in described, described)
    plugin(world, "DEL", "c0", store["node"])
    wait_for(lambda: status(kube, "small")["cooling"] == 1, "one cools", 20)
    expect_equal(events(), [("PoolFull", "CroftPool", "small")], "told once")
    expect_equal(status(kube, "small")["held"], free - 1, "held")
    expect_equal(condition(status(kube, "small"), "Exhausted")["lastTransitionTime"], condition(told, "Exhausted")["lastTransitionTime"],
                 "it has been full since then")
    expect_equal(version(kube, f"{OWN}/croftpools/wide"), seen, "what did not change is not written")

    run(*croft, "pool", "disable", "wide")
    wait_for(lambda: condition(status(kube, "wide"), "Disabled").get("status") == "True", "it is disabled", 20)
    expect_equal(condition(status(kube, "wide"), "Ready")["reason"], "Disabled", "why it is not ready")
    # As no Croft makes it.
    kube.make(f"{CALICO}/ippools", "IPPool", "under",
        spec={"cidr": "10.1.0.0/16", "blockSize": 26, "nodeSelector": "all()", "disabled": True})
    wait_for(lambda: condition(status(kube, "small"), "Overlaps").get("status") == "True", "they overlap", 20)
    expect("10.1.0.0/29 overlaps pool under (10.1.0.0/16)" in condition(status(kube, "small"), "Overlaps")["message"], str(status(kube, "small")))
    # The pools themselves are Calico's, in which nothing was written.
    for pool in kube.call("GET", f"{CALICO}/ippools")["items"]:
        expect("status" not in pool, f"a status in Calico's object: {pool}")

    kubectl_shows(kubectl)
    kube.call("DELETE", f"{CALICO}/ippools/under")
    wait_for(lambda: not status(kube, "under"), "what shows no pool goes", 20)
    wait_for(lambda: "croftpools under shows no pool: deleted" in one.log(), "that it went is told", 20)
    one.end()


def kubectl_shows(kubectl):
    lines = [re.split(r"\s{2,}", line.strip()) for line in kubectl("get", "croftpools").strip().splitlines()]
    say("\n" + kubectl("get", "croftpools"))
    expect_equal(lines[0], ["NAME", "CIDR", "CAPACITY", "HELD", "COOLING", "FREE", "BLOCKS", "READY", "REASON", "AGE"], "columns")
    rows = {line[0]: line[1:] for line in lines[1:]}
    expect_equal(sorted(rows), ["small", "under", "wide"], "rows")
    expect_equal(rows["small"][:8], ["10.1.0.0/29", "8", "5", "1", "0", "1", "False", "Exhausted"], "a row")
    expect("small" in kubectl("get", "croft"), "the category has them")
    explained = kubectl("explain", "croftpools.status")
    expect("What the controller that leads tells of it" in explained and "held\t<integer>" in explained, explained)
    waited = kubectl("wait", "--for=condition=Ready=false", "croftpools/small", "--timeout=5s")
    expect("condition met" in waited, waited)


def play(world, kube):
    store = {name: f"kube:{write_kubeconfig(world, kube, f'croft-{name}')}" for name in ("node", "controller", "operator")}
    croft = [world.bin / "croft", "--store", store["operator"]]
    kubectl = Kubectl(write_kubeconfig(world, kube))
    pools(world, kube, store, croft, kubectl)
