"""A cluster whose addresses Calico gave, as objects in the etcd of a kube-apiserver."""

import base64
import hashlib
import ipaddress
import json
import urllib.request

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


def in_etcd(every):
    """The blocks, claims and handles among them as Calico keeps them in an etcd of its own, by their key below /calico/ipam/v2/."""
    for key, value in every:
        kind, spec = key.split("/")[1] if key.startswith(CRD) else "", value.get("spec")
        if kind == "ipamblocks":
            yield f"assignment/ipv4/block/{spec['cidr'].replace('/', '-')}", spec
        elif kind == "blockaffinities":
            yield f"host/{spec['node']}/ipv4/block/{spec['cidr'].replace('/', '-')}", {"state": spec["state"]}
        elif kind == "ipamhandles":
            yield f"handle/{spec['handleID']}", {"block": spec["block"], "deleted": False}


def put_all(etcd, every, below="/registry/"):
    """Straight into an etcd, many at once; an API server that it serves is not there meanwhile."""
    def encoded(text):
        return base64.b64encode(text.encode()).decode()

    def send(puts):
        request = urllib.request.Request(f"{etcd.url}/v3/kv/txn", json.dumps({"success": puts}).encode())
        urllib.request.urlopen(request, timeout=60).read()
    puts, total = [], 0
    for key, value in every:
        puts.append({"requestPut": {"key": encoded(below + key), "value": encoded(json.dumps(value))}})
        total += 1
        if len(puts) == 100:
            send(puts)
            puts = []
        if total % 100_000 == 0:
            print(f"{total:,} objects are in etcd", flush=True)
    if puts:
        send(puts)
