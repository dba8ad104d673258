#!/usr/bin/env python3
"""Runs clusters on a real etcd and a real kube-apiserver, and the same in `croft plan-capacity`: docs/four-answers.md#compared.

usage: bench/simulated.py BUILD_DIR [NODES PODS]      e.g. build/release; else 200 nodes that get 10 pods each

Prints a table for each store: addresses a second until all pods have one, and requests of an ADD and a DEL where the store
counts them. In a turn 8 clients serve all nodes; with agents each node is its own client.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import cluster  # noqa: E402
from etcd_lib import CalicoPeer, Etcd  # noqa: E402
from kube_apiserver_lib import KubeApiserver  # noqa: E402
from kube_cluster import Cluster, calico_on  # noqa: E402
from kube_store import install_definitions, make_accounts  # noqa: E402
from lib import SKIPPED, World, run, wait_for  # noqa: E402

CORES = 2  # of the machine on which the simulation's times were measured
POOL = ("--cidr", "10.128.0.0/12", "--block-size", "26")
FLAGS = {"alone": f"--way alone --in-flight {cluster.WORKERS}",
         "agent": "--at-once 1 --in-flight {nodes}"}
NAMES = {"calico": "Calico's library", "alone": "Croft without agents", "agent": "Croft with agents"}


def simulated(build, datastore, way, nodes, pods):
    flags = f"--datastore {datastore} --nodes {nodes} --pods {pods} {FLAGS[way].format(nodes=nodes)} --pool 10.128.0.0/12"
    done = run(build / "bin" / "croft", "plan-capacity", *flags.split(), "--cores", str(CORES), "--failures", "0", "--churn", "0",
               "--cooldown-seconds", "0", "--hours", "0.02", "--no-advice", "-o", "json", timeout=600)
    return json.loads(done.stdout)[0], flags


def compare(title, build, datastore, nodes, pods, real):
    """`real`: addresses a second, by way."""
    print(f"\n| {title} | Real | Simulated | | Flags |\n|---|---|---|---|---|")
    for way, measured in real.items():
        if way not in FLAGS:
            print(f"| {NAMES[way]} | {measured:,.0f}/s | – | – | – |", flush=True)
            continue
        plan, flags = simulated(build, datastore, way, nodes, pods)
        print(f"| {NAMES[way]} | {measured:,.0f}/s | {plan['addsPerSecond']:,.0f}/s | "
              f"{(plan['addsPerSecond'] / measured - 1) * 100:+.0f} % | `{flags}` |", flush=True)


def rates(build, store, peer, nodes, pods):
    real = {}
    if peer:
        storm = peer("storm", "--hosts", str(nodes), "--pods", str(pods), "--workers", str(cluster.WORKERS), "--release",
                     "--prefix", "node", timeout=1800)
        real["calico"] = storm["assigned"] / storm["seconds"]
    for way, workers, more in (("alone", cluster.WORKERS, ()), ("agent", nodes, ("agent",))):
        figures = cluster.load(build, store, nodes, pods, workers, "release", *more)
        cluster.show(f"{store.partition(':')[0]}, {NAMES[way]}", figures)
        real[way] = figures["per_second"]
    return real


def on_etcd(build, nodes, pods):
    with World("simulated", build / "bin") as world:
        etcd = Etcd(world)
        peer = CalicoPeer(world, etcd)
        peer("pool-create", "--name", "p", *POOL)
        for i in range(nodes):
            for prefix in ("node-", "n"):
                peer("node-create", f"{prefix}{i}")
        compare("etcd", build, "etcd", nodes, pods, rates(build, etcd.store, peer, nodes, pods))


def on_kubernetes(build, nodes, pods):
    with World("simulated-kube", build / "bin") as world, KubeApiserver(world, "1.36") as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        there = Cluster(build, world, kube)
        for name in [f"{prefix}{i}" for i in range(nodes) for prefix in ("n", "node-")]:
            kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        world.croft(there.operator, "pool", "create", "p", *POOL, "--gateway", "none", "--cooldown-seconds", "0")
        wait_for(lambda: world.croft(there.operator, "pool", "list"), "the pool is there", 20)
        compare("Kubernetes", build, "kubernetes", nodes, pods, rates(build, there.store, calico_on(there), nodes, pods))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    nodes, pods = (int(word) for word in sys.argv[2:4]) if len(sys.argv) > 3 else (200, 10)
    for store in (on_etcd, on_kubernetes):
        try:
            store(build, nodes, pods)
        except SystemExit as end:
            if end.code != SKIPPED:
                raise
            print("not measured: a part of it could not be built (see above)")


if __name__ == "__main__":
    main()
