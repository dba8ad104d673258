#!/usr/bin/env python3
"""Measures the cluster allocator on a real kube-apiserver with its etcd, beside Calico's own library on the same server in
the same run (docs/promises.md#budgets): assignments a second, requests of each, and what grows with the number of nodes.

usage: bench/kube_cluster.py BUILD_DIR [NODES PODS]      e.g. build/release; NODES x PODS: the large cluster, else 1000 30
"""

import pathlib
import re
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from cluster import CALLERS, BURST_PODS, HOSTS, WAYS, WORKERS, load, show  # noqa: E402
from etcd_lib import CalicoPeer  # noqa: E402
from kube_agent import counts, start_agent  # noqa: E402
from kube_apiserver_lib import KubeApiserver  # noqa: E402
from kube_store import install_definitions, make_accounts, write_kubeconfig  # noqa: E402
from lib import Failure, SKIPPED, World, run, wait_for  # noqa: E402

VERSION = "1.36"
PODS = 30
TURNS = 3
CALICO_NODES, CALICO_PODS = 20, 5  # of Calico's library beside many nodes: each claim lists the blocks of all
SIZES = (10, 1000, 5000)  # nodes that have a block, for what grows with them


class Cluster:
    def __init__(self, build, world, kube):
        self.build, self.world, self.kube = build, world, kube
        # All nodes work as one account, with the rights that the chart gives them; pools are an operator's.
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
        self.operator = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"

    def requests(self, act):
        """What `act` answers, and how many requests it cost the server."""
        before = sum(counts(self.kube).values())
        answer = act()
        return answer, sum(counts(self.kube).values()) - before

    def alone(self, *more, hosts=HOSTS, pods=PODS, workers=WORKERS):
        return load(self.build, self.store, hosts, pods, workers, *more)

    def burst(self, prefix):
        return load(self.build, self.build / "bin", self.store, HOSTS, CALLERS, BURST_PODS, prefix, program="agents_load")


def calico_on(cluster):
    """Calico's library, or nothing where it cannot be built."""
    place = types.SimpleNamespace(store=cluster.store, url=f"kubeconfig:{write_kubeconfig(cluster.world, cluster.kube)}")
    try:
        return CalicoPeer(cluster.world, place)
    except SystemExit as end:
        if end.code != SKIPPED:
            raise
        rows.not_measured("kube.calico", "addresses a second of Calico's library on a kube-apiserver",
                          "it could not be built (bench/peers/build-calico tells why)")
        return None


def storm_of(cluster, peer, hosts=HOSTS, pods=PODS):
    def storm():
        return peer("storm", "--hosts", str(hosts), "--pods", str(pods), "--workers", str(WORKERS), "--release",
                    "--prefix", "node", timeout=1800)
    calico, asked = cluster.requests(storm)
    calico["per_second"] = round(calico["assigned"] / calico["seconds"])
    calico["requests_a_pod"] = round(asked / calico["assigned"], 2)
    show(f"kube-apiserver, Calico's library, {hosts} x {pods}", {k: v for k, v in calico.items() if isinstance(v, (int, float))})
    return calico


def of_croft(cluster, way, turn):
    act = {"alone": lambda: cluster.alone("release"),
           "agent": lambda: cluster.alone("release", "agent"),
           "burst": lambda: cluster.burst(f"burst{turn}")}[way]
    figures, asked = cluster.requests(act)
    figures["requests_a_pod"] = round(asked / figures["assigned"], 2)
    show(f"kube-apiserver, Croft {WAYS[way][0]}", figures)
    return figures


def middle(figures, name):
    return sorted(figure[name] for figure in figures)[len(figures) // 2]


def beside_calico(cluster, peer):
    budgets = {"alone": 5, "agent": None, "burst": 20}
    calico, croft = [], {way: [] for way in WAYS}
    for turn in range(TURNS):
        if peer:
            calico.append(storm_of(cluster, peer))
        for way in WAYS:
            croft[way].append(of_croft(cluster, way, turn))
    for way, (name, _) in WAYS.items():
        what = f"addresses a second, one kube-apiserver, {HOSTS} nodes, {name}"
        pods = f"requests of a pod's ADD and DEL, kube-apiserver, {name}"
        if not peer:
            rows.record(f"kube.{way}", what, middle(croft[way], "per_second"), "/s")
            rows.record(f"kube.requests.{way}", pods, middle(croft[way], "requests_a_pod"), "requests")
            continue
        ratio = sorted(c["per_second"] / p["per_second"] for c, p in zip(croft[way], calico))[len(calico) // 2]
        print(f"{what}: median {ratio:.1f} x Calico's library", flush=True)
        rows.record(f"kube.{way}", what, middle(croft[way], "per_second"), "/s",
                    peer=rows.figure("Calico's library", middle(calico, "per_second"), "/s"), ratio=ratio,
                    ratio_of="Calico's library",
                    budget=rows.budget("ratio", "at least", budgets[way]) if budgets[way] else None)
        rows.record(f"kube.requests.{way}", pods, middle(croft[way], "requests_a_pod"), "requests",
                    peer=rows.figure("Calico's library", middle(calico, "requests_a_pod"), "requests"))


def of_an_add(cluster, prefix, *more):
    """Requests of an ADD in a block with space: the first of each node, which claims a block, does not count."""
    cluster.alone(f"prefix={prefix}", *more, pods=1)
    _, asked = cluster.requests(lambda: cluster.alone(f"prefix={prefix}", *more, pods=1))
    figures, more_asked = cluster.requests(lambda: cluster.alone(f"prefix={prefix}", *more, pods=PODS))
    # In both runs the first pod asks again for what it has, and a memory is filled.
    return (more_asked - asked) / (HOSTS * (PODS - 1)), figures


def agent_alone(cluster):
    """How long an agent that starts has no memory of the register, and how much it then takes."""
    began = time.monotonic()
    agent, socket = start_agent(cluster.world, cluster.store)
    try:
        def is_filled():
            return "true" in run(cluster.world.bin / "croft", "agent", "status", "--socket", socket).stdout
        wait_for(is_filled, "the agent's memory is filled", 120)
        took = time.monotonic() - began
        status = pathlib.Path(f"/proc/{agent.pid}/status").read_text()
        return took, int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1024
    finally:
        agent.terminate()
        agent.wait(timeout=20)


def grows(cluster):
    """The same calls with more and more nodes that have a block each."""
    filled, seen = 0, []
    for size in SIZES:
        filling = cluster.alone(f"prefix=fill{size}x", hosts=size - filled, pods=1)
        show(f"kube-apiserver, claims of {size - filled} nodes", filling)
        filled = size
        alone, alone_figures = of_an_add(cluster, f"s{size}a")
        agent, agent_figures = of_an_add(cluster, f"s{size}b", "agent")
        one = {"requests alone": round(alone, 2), "p50 us alone": alone_figures["p50_us"],
               "requests agent": round(agent, 2), "p50 us agent": agent_figures["p50_us"],
               "claim p50 us": filling["p50_us"]}
        took, mebibytes = agent_alone(cluster)
        one.update({"agent filled after s": round(took, 1), "agent MiB": round(mebibytes, 1)})
        show(f"an ADD beside {size} nodes", one)
        seen.append(one)
    first, last = seen[0], seen[-1]
    for way, limit in (("alone", 9), ("agent", 2.1)):
        rows.record(f"kube.add.requests.{way}", f"requests of an ADD beside {SIZES[-1]:,} nodes, kube-apiserver, {way}",
                    last[f"requests {way}"], "requests",
                    limit=rows.figure(f"beside {SIZES[0]} nodes", first[f"requests {way}"], "requests"),
                    budget=rows.budget("value", "at most", limit))
        slope = (last[f"p50 us {way}"] - first[f"p50 us {way}"]) / (SIZES[-1] - SIZES[0]) * 1000
        print(f"slope of an ADD {way}: {slope:+.1f} us for 1,000 nodes more", flush=True)
    rows.record("kube.agent.memory", f"memory of an agent beside {SIZES[-1]:,} nodes, kube-apiserver", last["agent MiB"], "MiB",
                limit=rows.figure(f"beside {SIZES[0]} nodes", first["agent MiB"], "MiB"))


def large(cluster, peer, nodes, pods):
    """Pods of many nodes made and deleted by a few clients."""
    figures, asked = cluster.requests(lambda: cluster.alone("release", "prefix=large", hosts=nodes, pods=pods))
    figures["requests_a_pod"] = round(asked / figures["assigned"], 2)
    show(f"kube-apiserver, Croft alone, {nodes} x {pods}", figures)
    calico = None
    try:
        calico = storm_of(cluster, peer, hosts=min(nodes, CALICO_NODES), pods=CALICO_PODS) if peer else None
    except Failure as failure:  # beside thousands of blocks its calls take longer than they may
        print(f"Calico's library did not end: {failure}", flush=True)
        rows.not_measured("kube.large.calico", "addresses a second of Calico's library beside 5,000 nodes, kube-apiserver",
                          "a call of it ended with its own deadline exceeded")
    rows.record("kube.large", f"addresses a second, kube-apiserver, {nodes:,} nodes x {pods} pods", figures["per_second"], "/s",
                peer=rows.figure(f"Calico's library, {CALICO_NODES} x {CALICO_PODS}", calico["per_second"], "/s") if calico else None,
                ratio=figures["per_second"] / calico["per_second"] if calico else None,
                ratio_of="Calico's library" if calico else None)


def main():
    try:
        measure()
    except SystemExit as end:
        if end.code != SKIPPED:
            raise
        rows.not_measured("kube.cluster", "addresses a second on a kube-apiserver", "it could not be built (see above)")


def measure():
    build = pathlib.Path(sys.argv[1]).resolve()
    nodes, pods = (int(word) for word in sys.argv[2:4]) if len(sys.argv) > 3 else (1000, 30)
    with World("kube-bench", build / "bin") as world, KubeApiserver(world, VERSION) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        cluster = Cluster(build, world, kube)
        for name in [f"n{i}" for i in range(HOSTS)] + [f"node-{i}" for i in range(CALICO_NODES)]:
            kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        world.croft(cluster.operator, "pool", "create", "p", "--cidr", "10.128.0.0/10", "--block-size", "26", "--gateway", "none",
                    "--cooldown-seconds", "0")
        wait_for(lambda: world.croft(cluster.operator, "pool", "list"), "the pool is there", 20)
        peer = calico_on(cluster)
        beside_calico(cluster, peer)
        grows(cluster)
        large(cluster, peer, nodes, pods)


if __name__ == "__main__":
    main()
