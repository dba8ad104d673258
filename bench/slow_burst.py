#!/usr/bin/env python3
"""110 pods at once on a store whose writes take long: when the last is up, on an etcd with a slow disk, and on a
kube-apiserver on one. e2e/slow_burst.py brings them and looks after the ledger.

usage: slow_burst.py BUILD_DIR
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
import slow_burst  # noqa: E402
from lib import SKIPPED, World, main  # noqa: E402

WAYS = (("agent", 0.1), ("agent", 0.3), ("agent", 1), ("alone", 0.1))


def on(kind):
    store = "etcd" if kind == "etcd" else "kube-apiserver"
    with World("slow-burst", pathlib.Path(sys.argv[1]).resolve() / "bin") as world, slow_burst.place_of(world, kind) as place:
        for way, seconds in WAYS:
            burst = slow_burst.measure(world, place, way, seconds)
            rows.record(f"slow_burst.{store}.{way}.{seconds}",
                        f"{slow_burst.PODS} pods at once, {store}, {seconds:g} s a write, {way}: the last is up", burst.took, "s",
                        limit=rows.figure("a write", burst.write, "s"), budget=rows.budget("value", "at most", burst.limit),
                        note="; ".join(slow_burst.judge(way, burst)) or None)


def measure():
    on("etcd")
    try:
        on("kube-1.36")
    except SystemExit as end:
        if end.code != SKIPPED:
            raise
        rows.not_measured("slow_burst.kube", "pods at once on a slow kube-apiserver", "it could not be built (see above)")


main(measure, 1800)
