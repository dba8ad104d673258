#!/usr/bin/env python3
"""Measures what a look of the collector costs on a real kube-apiserver whose cluster holds 500,000 addresses, written as
Calico writes them (docs/promises.md#budgets): its memory, its time.

usage: bench/kube_collect.py BUILD_DIR [NODES PODS]      NODES x PODS addresses, else 5000 100
"""

import base64
import hashlib
import ipaddress
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from kube_apiserver_lib import KubeApiserver  # noqa: E402
from kube_store import install_definitions, make_accounts, write_kubeconfig  # noqa: E402
from lib import SKIPPED, Failure, World, own_environment, wait_for  # noqa: E402

VERSION = "1.36"
IN_A_BLOCK = 50  # of 64
WHEN = "2026-01-15T10:00:00Z"
CRD = "crd.projectcalico.org"


def metadata(number, name, **more):
    return {"name": name, "uid": f"00000000-0000-4000-8000-{number:012x}", "creationTimestamp": WHEN, "generation": 1, **more}


def objects(nodes, pods):
    """Key below the registry, and the object, of a cluster whose every node has as many pods with an address."""
    number = 0
    blocks = -(-pods // IN_A_BLOCK)
    base = int(ipaddress.ip_address("10.128.0.0"))
    for n in range(nodes):
        node = f"node-{n}"
        number += 1
        yield f"minions/{node}", {"apiVersion": "v1", "kind": "Node", "metadata": metadata(number, node)}
        left = pods
        for b in range(blocks):
            first = base + (n * blocks + b) * 64
            cidr = f"{ipaddress.ip_address(first)}/26"
            name = cidr.replace(".", "-").replace("/", "-")
            count = min(left, IN_A_BLOCK)
            left -= count
            attributes = []
            for i in range(count):
                number += 1
                pod = f"web-{n}-{b}-{i}-7c9f6d5b8"
                handle = f"k8s-pod-network.{hashlib.sha256(pod.encode()).hexdigest()}"
                address = str(ipaddress.ip_address(first + i))
                attributes.append({"handle_id": handle, "secondary": {
                    "namespace": f"team-{n % 50}", "node": node, "pod": pod, "timestamp": "2026-01-15 10:00:00.0 +0000 UTC"}})
                yield f"{CRD}/ipamhandles/{handle}", {
                    "apiVersion": f"{CRD}/v1", "kind": "IPAMHandle", "metadata": metadata(number, handle),
                    "spec": {"block": {cidr: 1}, "deleted": False, "handleID": handle}}
                yield f"pods/team-{n % 50}/{pod}", {
                    "apiVersion": "v1", "kind": "Pod", "metadata": metadata(
                        number, pod, namespace=f"team-{n % 50}", labels={"app": "web", "pod-template-hash": "7c9f6d5b8"}),
                    "spec": {"nodeName": node, "containers": [{"name": "web", "image": "registry.invalid/team/web:1.2.3"}]},
                    "status": {"phase": "Running", "hostIP": "192.0.2.1", "podIP": address, "podIPs": [{"ip": address}]}}
            number += 1
            yield f"{CRD}/ipamblocks/{name}", {
                "apiVersion": f"{CRD}/v1", "kind": "IPAMBlock", "metadata": metadata(number, name),
                "spec": {"affinity": f"host:{node}", "allocations": [*range(count), *[None] * (64 - count)],
                         "attributes": attributes, "cidr": cidr, "deleted": False, "sequenceNumber": number,
                         "sequenceNumberForAllocation": {}, "strictAffinity": False,
                         "unallocated": [*range(count, 64)]}}
            number += 1
            claim = f"{node}-{name}"
            yield f"{CRD}/blockaffinities/{claim}", {
                "apiVersion": f"{CRD}/v1", "kind": "BlockAffinity", "metadata": metadata(number, claim),
                "spec": {"cidr": cidr, "deleted": "false", "node": node, "state": "confirmed", "type": "host"}}


def put_all(kube, every):
    """Straight into etcd, many at once; the API server is not there meanwhile."""
    def encoded(text):
        return base64.b64encode(text.encode()).decode()

    def send(puts):
        request = urllib.request.Request(f"{kube.etcd.url}/v3/kv/txn", json.dumps({"success": puts}).encode())
        urllib.request.urlopen(request, timeout=60).read()
    puts, total = [], 0
    for key, value in every:
        puts.append({"requestPut": {"key": encoded(f"/registry/{key}"), "value": encoded(json.dumps(value))}})
        total += 1
        if len(puts) == 100:
            send(puts)
            puts = []
        if total % 100_000 == 0:
            print(f"{total:,} objects are in etcd", flush=True)
    if puts:
        send(puts)


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
        put_all(kube, objects(nodes, pods))
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
