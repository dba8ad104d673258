#!/usr/bin/env python3
"""Measures the next Service address beside Kubernetes' own allocator, doing the same work
(docs/promises.md#budget-next-service).

usage: bench/service_range.py BUILD_DIR [TURNS]     e.g. build/release; TURNS (default 3) of both, one process at a time

Of each row the best turn of either side counts. Kubernetes' allocator has its lock inside; Croft's rows have a lock
around, as a process with threads would, once more none, and once more one with the numbers of the kernel
(os::SystemRandom) instead of a generator's as cheap as the peer's. Without Go only Croft's side is shown.
"""

import json
import pathlib
import subprocess
import sys

import rows as table

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def rows(program):
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def merge(best, turn):
    for row in turn:
        name = row["row"]
        if "fnv" in row:
            best[name] = row["fnv"]
        else:
            best[name] = min(best.get(name, row["ns"]), row["ns"])


def peer_of(build):
    done = subprocess.run([HERE / "peers" / "build-kubernetes-allocator", build / "bench"], check=False)
    if done.returncode == SKIPPED:
        return None
    if done.returncode != 0:
        sys.exit("bench/peers/build-kubernetes-allocator failed")
    return build / "bench" / "kubernetes-peer"


def budget_of(name):
    """The least ratio that a row promises; None where nothing is promised."""
    if not name.startswith("next "):
        return None
    full = float(name.split(" at ")[1].split(" ")[0])
    return 10 if full >= 90 else 2


def record(name, ns, kubernetes):
    more = {}
    if kubernetes:
        budget = budget_of(name)
        more = {"peer": table.figure("Kubernetes' allocator", kubernetes, "ns"), "ratio": kubernetes / ns,
                "ratio_of": "as fast as Kubernetes' allocator",
                "budget": table.budget("ratio", "at least", budget) if budget else None}
    table.record("service_range." + name.replace(" ", "_"), f"Service addresses: {name}", ns, "ns", **more)


def show(croft, kubernetes):
    print(f"{'ns':<34}{'croft':>12}{'no lock':>12}{'system':>12}{'kubernetes':>14}{'ratio':>12}{'budget':>8}")
    for name, ns in croft.items():
        if name.endswith((", no lock", ", system")):
            continue
        if name.startswith("bytes "):
            if kubernetes and kubernetes[name] != ns:
                sys.exit(f"{name}: {ns} is not {kubernetes[name]}: the two kept different bytes")
            continue
        line = f"{name:<34}{ns:>12,.1f}"
        for variant in (", no lock", ", system"):
            other = croft.get(name + variant)
            line += f"{f'{other:,.1f}' if other else '':>12}"
        record(name, ns, kubernetes.get(name))
        if kubernetes:
            ratio, budget = kubernetes[name] / ns, budget_of(name)
            line += f"{kubernetes[name]:>14,.1f}{ratio:>10,.1f} x"
            if budget:
                line += f"{budget:>6} x" + ("" if ratio >= budget else "  missed")
        print(line, flush=True)
    if kubernetes:
        print("both kept the same bytes of the same addresses")
    for prefix in ("/12", "/16", "/24", "v6 /112"):
        levels = [ns for name, ns in croft.items() if name.startswith(f"next {prefix} at ") and "," not in name]
        print(f"flat: {prefix} at its slowest level / at its fastest: {max(levels) / min(levels):.1f} x")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    build = pathlib.Path(sys.argv[1]).resolve()
    turns = int(sys.argv[2]) if len(sys.argv) == 3 else 3
    peer = peer_of(build)
    croft, kubernetes = {}, {}
    for _ in range(turns):
        merge(croft, rows(build / "bench" / "service_range_bench"))
        if peer:
            merge(kubernetes, rows(peer))
    if not peer:
        table.not_measured("service_range.kubernetes", "Kubernetes' allocator",
                           "it could not be built (bench/peers/build-kubernetes-allocator tells why)")
    show(croft, kubernetes)


main()
