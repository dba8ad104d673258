#!/usr/bin/env python3
"""Measures what `croft check` costs on a real kube-apiserver whose cluster holds 100,000 addresses on 1,000 nodes, written as
Calico writes them, one in a hundred of a pod that is not there: its memory, its time, and what it finds.

usage: bench/kube_check.py BUILD_DIR [NODES PODS]      NODES x PODS addresses, else 1000 100
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
LEAKED_OF = 100


def without_some_pods(every):
    count = 0
    for key, value in every:
        if key.startswith("pods/"):
            count += 1
            if count % LEAKED_OF == 0:
                continue
        yield key, value


def check(world, store):
    """The findings, the seconds of the process, the most memory it had."""
    begin = time.monotonic()
    process = subprocess.Popen([world.bin / "croft", "--store", store, "check", "-o", "json"],
                               env=own_environment(world.directory), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = process.stdout.read()
    warned = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 3:
        raise Failure(f"croft check ended with {status}: {warned}")
    return json.loads(said), time.monotonic() - begin, used.ru_maxrss / 1024


def measure():
    build = pathlib.Path(sys.argv[1]).resolve()
    nodes, pods = (int(word) for word in sys.argv[2:4]) if len(sys.argv) > 3 else (1000, 100)
    with World("kube-check", build / "bin") as world, KubeApiserver(world, VERSION) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        world.croft(store, "pool", "create", "p", "--cidr", "10.128.0.0/9", "--block-size", "26", "--gateway", "none")
        kube.kill()
        put_all(kube.etcd, without_some_pods(objects(nodes, pods)))
        kube.start(patience=600)
        wait_for(lambda: kube.call("GET", "/api/v1/pods?limit=1")["items"], "it serves", 300)
        found, seconds, mebibytes = check(world, store)
        gone = [one for one in found if one["finding"] == "pod_gone"]
        # The pool keeps its first address to itself, which Calico gave.
        if len(gone) != nodes * pods // LEAKED_OF or len(found) != len(gone) + 1:
            raise Failure(f"{len(gone)} of {len(found)} findings are leaks: {found[:3]}")
        print(f"{nodes * pods:,} addresses: {mebibytes:.0f} MiB, {seconds:.1f} s, {len(gone)} leaks", flush=True)
        rows.record("kube.check.memory", f"memory of `croft check` at {nodes * pods:,} addresses, kube-apiserver",
                    round(mebibytes), "MiB", budget=rows.budget("value", "at most", 128))
        rows.record("kube.check.seconds", f"`croft check` of {nodes * pods:,} addresses, kube-apiserver",
                    round(seconds, 1), "s", budget=rows.budget("value", "at most", 10))


def main():
    try:
        measure()
    except SystemExit as end:
        if end.code != SKIPPED:
            raise
        rows.not_measured("kube.check", "`croft check` on a kube-apiserver", "it could not be built (see above)")


if __name__ == "__main__":
    main()
