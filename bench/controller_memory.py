#!/usr/bin/env python3
"""Measures the memory of a `croftd controller --history` on an etcd whose register holds 500,000 addresses on 5,000 nodes, written as
Calico writes them: the recorder's first look, a pass of the collector beside it, and holders that come and go.

usage: bench/controller_memory.py BUILD_DIR [NODES PODS]      NODES x PODS addresses, else 5000 100
"""

import json
import pathlib
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from calico_objects import in_etcd, objects, put_all  # noqa: E402
from etcd_lib import Etcd  # noqa: E402
from lib import Controller, Failure, World, memory_of, run, wait_for  # noqa: E402


def measure(world, build, store, addresses):
    past = world.directory / "history.db"
    begin = time.monotonic()
    with Controller(world, store, "controller", "--history", past, "--dry-run", "--interval", "5s") as controller:
        def has_said(text):
            if controller.poll() is not None:
                raise Failure(f"the controller ended: {controller.tail()}")
            return text in controller.log()
        wait_for(lambda: has_said(f"history: {addresses} holders are recorded"), "the history begins", 900)
        seconds = time.monotonic() - begin
        run(build / "bench" / "cluster_load", store, 20, 50, 1, "release", "prefix=new", timeout=600)
        wait_for(lambda: has_said(" addresses in "), "a pass of the collector", 600)
        counted = lambda: json.loads(run(world.bin / "croft", "forecast", "--history", past, "-o", "json").stdout)
        wait_for(counted, "the pool's use is counted", 600)
        mebibytes = memory_of(controller.pid)
        controller.end(60)
    print(f"{addresses:,} addresses: {mebibytes:.0f} MiB at most, the first look took {seconds:.0f} s, the history has "
          f"{past.stat().st_size >> 20} MiB", flush=True)
    rows.record("controller.memory", f"memory of a controller with a history, {addresses:,} addresses, etcd", round(mebibytes), "MiB",
                budget=rows.budget("value", "at most", 512))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    nodes, pods = (int(word) for word in sys.argv[2:4]) if len(sys.argv) > 3 else (5000, 100)
    if not (shutil.which("etcd") and shutil.which("etcdctl")):
        rows.not_measured("controller.memory", "memory of a controller with a history, etcd", "etcd is not installed")
        return
    with World("controller-memory", build / "bin") as world:
        etcd = Etcd(world, "--quota-backend-bytes", str(8 << 30))
        world.pool(etcd.store, "p", "10.128.0.0/9", "--block-size", "26", "--gateway", "none")
        put_all(etcd, in_etcd(objects(nodes, pods)), "/calico/ipam/v2/")
        measure(world, build, etcd.store, nodes * pods)


if __name__ == "__main__":
    main()
