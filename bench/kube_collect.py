#!/usr/bin/env python3
"""Measures what a look of the collector costs on a real kube-apiserver whose cluster holds 500,000 addresses, written as
Calico writes them (docs/promises.md#budgets): its memory, its time.

usage: bench/kube_collect.py BUILD_DIR [NODES PODS]      NODES x PODS addresses, else 5000 100
"""

import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from calico_objects import objects, put_all  # noqa: E402
from kube_apiserver_lib import KubeApiserver  # noqa: E402
from kube_store import install_definitions, make_accounts, write_kubeconfig  # noqa: E402
from lib import SKIPPED, Failure, World, own_environment, wait_for  # noqa: E402

VERSION = "1.36"


def look(world, store, *flags):
    """A look of the controller: what it says of it, the seconds of the process, the most memory it had."""
    log = world.directory / "controller.log"
    begin = time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen([world.bin / "croftd", "controller", "--store", store, "--once", "--dry-run",
                                    "--output", "json", *flags],
                                   env=own_environment(world.directory), stdout=subprocess.PIPE, stderr=out)
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise Failure(f"controller ended with {status}: {log.read_text()[-2000:]}")
    return [json.loads(line) for line in said.splitlines()], time.monotonic() - begin, used.ru_maxrss / 1024


def measure():
    build = pathlib.Path(sys.argv[1]).resolve()
    nodes, pods = (int(word) for word in sys.argv[2:4]) if len(sys.argv) > 3 else (5000, 100)
    with World("kube-collect", build / "bin") as world, KubeApiserver(world, VERSION) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        operator = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        world.croft(operator, "pool", "create", "p", "--cidr", "10.128.0.0/9", "--block-size", "26", "--gateway", "none")
        store = f"kube:{write_kubeconfig(world, kube, 'croft-controller')}"
        kube.kill()
        put_all(kube.etcd, objects(nodes, pods))
        kube.start(patience=600)
        addresses = nodes * pods
        wait_for(lambda: kube.call("GET", "/api/v1/pods?limit=1")["items"], "it serves", 300)
        looks, seconds, mebibytes = look(world, store, "--grace", "1s")
        for one in looks:
            print({key: one[key] for key in ("seconds", "held", "blocks", "nodes", "pods", "candidates", "confirmed")}, flush=True)
        if looks[0]["held"] != addresses or looks[0]["pods"] != addresses:
            raise Failure(f"it saw {looks[0]}")
        print(f"{addresses:,} addresses: {mebibytes:.0f} MiB, {len(looks)} looks in {seconds:.1f} s", flush=True)
        rows.record("kube.collect.memory", f"memory of a controller with {addresses:,} addresses, kube-apiserver",
                    round(mebibytes), "MiB", budget=rows.budget("value", "at most", 512))
        rows.record("kube.collect.seconds", f"a look of the collector at {addresses:,} addresses, kube-apiserver",
                    round(max(one["seconds"] for one in looks), 1), "s")


def main():
    try:
        measure()
    except SystemExit as end:
        if end.code != SKIPPED:
            raise
        rows.not_measured("kube.collect", "memory of a controller on a kube-apiserver", "it could not be built (see above)")


if __name__ == "__main__":
    main()
