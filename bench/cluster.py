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
from etcd_lib import CalicoPeer, Etcd  # noqa: E402
from lib import World  # noqa: E402

HOSTS, PODS, WORKERS = 8, 100, 8


def load(build, *arguments):
    done = subprocess.run([build / "bench" / "cluster_load", *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def show(title, figures):
    print(f"{title:<46} " + "  ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in figures.items()),
          flush=True)


def in_memory(build):
    show("memory, 5,000 nodes x 110 pods, 2 workers", load(build, "memory:", 5000, 110, 2, "release"))


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
    etcd.kill()


def beside_calico(build, world):
    etcd = Etcd(world)
    peer = CalicoPeer(world, etcd)
    peer("pool-create", "--name", "p", "--cidr", "10.84.0.0/14", "--block-size", "26")
    for i in range(HOSTS):
        for prefix in ("node-", "n"):
            peer("node-create", f"{prefix}{i}")
    ratios = []
    for turn in range(3):
        calico = peer("storm", "--hosts", str(HOSTS), "--pods", str(PODS), "--workers", str(WORKERS), "--release",
                      "--prefix", "node", timeout=900)
        alone = load(build, etcd.store, HOSTS, PODS, WORKERS, "release")
        croft = load(build, etcd.store, HOSTS, PODS, WORKERS, "release", "agent")
        calico["per_second"] = round(calico["assigned"] / calico["seconds"])
        show("etcd, Calico's library", {k: v for k, v in calico.items() if isinstance(v, (int, float))})
        show("etcd, Croft without agents", alone)
        show("etcd, Croft with agents", croft)
        ratios.append(croft["per_second"] / calico["per_second"])
        print(f"run {turn + 1}: {ratios[-1]:.1f} x Calico's assignments per second, budget 5; without agents "
              f"{alone['per_second'] / calico['per_second']:.1f} x")
    print(f"median {sorted(ratios)[1]:.1f} x")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    in_memory(build)
    with World("bench", build / "bin") as world:
        claims(build, world)
        beside_calico(build, world)


main()
