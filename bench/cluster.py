#!/usr/bin/env python3
"""Measures the cluster allocator: in memory, and on one etcd beside Calico's own library in the same run
(docs/promises.md#budgets).

usage: bench/cluster.py BUILD_DIR      e.g. build/release
"""

import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from etcd_lib import CalicoPeer, Etcd  # noqa: E402
from lib import SKIPPED, World  # noqa: E402

HOSTS, PODS, WORKERS = 8, 100, 8
CALLERS, BURST_PODS = 8, 50  # of each node, and of each of these


def load(build, *arguments, program="cluster_load"):
    done = subprocess.run([build / "bench" / program, *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def show(title, figures):
    print(f"{title:<46} " + "  ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in figures.items()),
          flush=True)


def in_memory(build):
    figures = load(build, "memory:", 5000, 110, 2, "release")
    show("memory, 5,000 nodes x 110 pods, 2 workers", figures)
    rows.record("cluster.memory", "addresses a second, a store in memory, 5,000 nodes x 110 pods", figures["per_second"], "/s")


def claims(build, world):
    """One address each for nodes without a block: in an empty pool, and in one of which 99 % of the blocks are taken."""
    etcd = Etcd(world)
    world.croft(etcd.store, "pool", "create", "p", "--cidr", "10.80.0.0/14", "--block-size", "26",
                "--gateway", "none", "--cooldown-seconds", "0")
    blocks = 1 << 12
    empty = load(build, etcd.store, 40, 1, 1, "prefix=first")
    empty_agent = load(build, etcd.store, 4, 1, 4, "prefix=early", "agent")
    filled = load(build, etcd.store, blocks * 99 // 100 - 44, 1, 8, "prefix=fill")
    time.sleep(5)  # etcd goes on writing for a while
    full = load(build, etcd.store, 20, 1, 1, "prefix=last")
    agents = load(build, etcd.store, 4, 1, 4, "prefix=agent", "agent")
    show(f"etcd, claim in an empty pool of {blocks} blocks", empty)
    show("      filling it to 99 %", filled)
    show("      claim at 99 %", full)
    show("      empty, 4 nodes with agents", empty_agent)
    show("      at 99 %, 4 nodes with agents", agents)
    print(f"claim at 99 % / claim when empty: {full['p50_us'] / empty['p50_us']:.2f} x p50 alone, "
          f"{agents['p50_us'] / empty_agent['p50_us']:.2f} x with agents, budget 2")
    for name, early, late in (("alone", empty, full), ("agent", empty_agent, agents)):
        rows.record(f"cluster.claim.{name}", f"a claim of a block in a pool 99 % full, etcd, {name}", late["p50_us"], "us",
                    limit=rows.figure("in an empty pool", early["p50_us"], "us"),
                    ratio=late["p50_us"] / early["p50_us"], ratio_of="an empty pool",
                    budget=rows.budget("ratio", "at most", 2))
    etcd.kill()


def calico_on(world, etcd):
    """Calico's library with a pool and the nodes, or nothing where it cannot be built."""
    try:
        peer = CalicoPeer(world, etcd)
    except SystemExit as end:
        if end.code != SKIPPED:
            raise
        world.croft(etcd.store, "pool", "create", "p", "--cidr", "10.84.0.0/14", "--block-size", "26", "--gateway", "none")
        return None
    peer("pool-create", "--name", "p", "--cidr", "10.84.0.0/14", "--block-size", "26")
    for i in range(HOSTS):
        for prefix in ("node-", "n"):
            peer("node-create", f"{prefix}{i}")
    return peer


def storm_of(peer):
    calico = peer("storm", "--hosts", str(HOSTS), "--pods", str(PODS), "--workers", str(WORKERS), "--release",
                  "--prefix", "node", timeout=900)
    calico["per_second"] = round(calico["assigned"] / calico["seconds"])
    show("etcd, Calico's library", {k: v for k, v in calico.items() if isinstance(v, (int, float))})
    return calico["per_second"]


WAYS = {"alone": ("without agents", None), "agent": ("with agents", 5), "burst": (f"with agents, {CALLERS} callers a node", 20)}


def beside_calico(build, world):
    etcd = Etcd(world)
    peer = calico_on(world, etcd)
    calico, croft = [], {way: [] for way in WAYS}
    for turn in range(3):
        if peer:
            calico.append(storm_of(peer))
        figures = {"alone": load(build, etcd.store, HOSTS, PODS, WORKERS, "release"),
                   "agent": load(build, etcd.store, HOSTS, PODS, WORKERS, "release", "agent"),
                   "burst": load(build, build / "bin", etcd.store, HOSTS, CALLERS, BURST_PODS, f"burst{turn}",
                                 program="agents_load")}
        for way, (name, budget) in WAYS.items():
            show(f"etcd, Croft {name}", figures[way])
            croft[way].append(figures[way]["per_second"])
            if peer:
                print(f"run {turn + 1}: {croft[way][-1] / calico[-1]:.1f} x Calico's assignments per second"
                      + (f", budget {budget}" if budget else ""), flush=True)
    if not peer:
        rows.not_measured("cluster.calico", "addresses a second of Calico's library",
                          "it could not be built (bench/peers/build-calico tells why)")
    for way, (name, budget) in WAYS.items():
        what = f"addresses a second, one etcd, {HOSTS} nodes, {name}"
        middle = sorted(croft[way])[1]
        if not peer:
            rows.record(f"cluster.{way}", what, middle, "/s")
            continue
        # The ratio of each turn, because a busy machine is busy for both.
        ratio = sorted(c / p for c, p in zip(croft[way], calico))[1]
        print(f"{what}: median {ratio:.1f} x Calico's library", flush=True)
        rows.record(f"cluster.{way}", what, middle, "/s", peer=rows.figure("Calico's library", sorted(calico)[1], "/s"),
                    ratio=ratio, ratio_of="Calico's library",
                    budget=rows.budget("ratio", "at least", budget) if budget else None)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    in_memory(build)
    with World("bench", build / "bin") as world:
        claims(build, world)
        beside_calico(build, world)


if __name__ == "__main__":
    main()
