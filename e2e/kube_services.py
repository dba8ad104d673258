"""Service addresses and node ports on a real kube-apiserver, looked at and mended through its API alone: no credentials
of etcd, the accounts of deploy/.

usage: kube_cases.py BIN_DIR VERSION kube_services
"""

import json

from kube_apiserver_lib import Refused
from kube_store import write_kubeconfig
from lib import expect, expect_equal, run, say

ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
HAS_OBJECTS = ("1.33", "1.34", "1.35", "1.36")


class Croft:
    def __init__(self, world, store):
        self.world, self.store = world, store

    def run(self, *arguments):
        return run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)

    def audit(self, *flags, code=0):
        done = self.run("service", "audit", "-o", "json", *flags)
        expect_equal(done.returncode, code, f"audit: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)


def reasons(report):
    return sorted((one["reason"], one["value"]) for one in report["findings"])


def bitmaps_only(kube, croft):
    done = croft.run("service", "audit")
    expect_equal(done.returncode, 1, f"{done.stdout}{done.stderr}")
    expect("--etcd-servers" in done.stderr and "no IPAddress" in done.stderr, done.stderr)
    say(f"as expected on {kube.version}: {done.stderr.strip()}")


def play(world, kube):
    croft = Croft(world, f"kube:{write_kubeconfig(world, kube, 'croft-operator')}")
    web = kube.create_service("web", {"ports": [{"port": 80}]})
    kube.create_service("shop", {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]})
    if kube.version not in HAS_OBJECTS:
        return bitmaps_only(kube, croft)

    report = croft.audit()
    expect_equal((report["form"], report["services"], report["findings"]), ("objects", 3, []), "all is well")
    expect("no API shows it" in croft.run("service", "audit").stdout, "it says what it can't see")
    listed = croft.run("service", "list", "-A")
    expect("shop" in listed.stdout and "30080" in listed.stdout, f"{listed.stdout}{listed.stderr}")
    made = croft.run("service", "create", "mine", "--tcp", "80")
    expect(made.returncode != 0 and "use kubectl" in made.stderr, made.stderr)
    say(f"a Service of Croft's own is refused: {made.stderr.strip()}")

    # An address without its object would be given to the next Service that asks for it by name.
    address = web["spec"]["clusterIP"]
    kube.call("DELETE", f"{ADDRESSES}/{address}")
    expect_equal(reasons(croft.audit(code=3)), [("ClusterIPNotAllocated", address)], "an object is missing")
    dry = croft.run("service", "repair")
    expect_equal(dry.returncode, 3, f"{dry.stdout}{dry.stderr}")
    try:
        kube.call("GET", f"{ADDRESSES}/{address}")
        expect(False, "a repair without --apply wrote")
    except Refused as refused:
        expect_equal(refused.code, 404, "the object is still missing")
    mended = croft.run("service", "repair", "--apply")
    expect_equal(mended.returncode, 0, f"{mended.stdout}{mended.stderr}")
    parent = kube.call("GET", f"{ADDRESSES}/{address}")
    expect_equal(parent["spec"]["parentRef"],
                 {"resource": "services", "namespace": "default", "name": "web"}, "whose it is")
    expect_equal(parent["metadata"]["labels"]["ipaddress.kubernetes.io/managed-by"], "ipallocator.k8s.io", "label")
    try:
        kube.create_service("thief", {"clusterIP": address, "ports": [{"port": 80}]})
        expect(False, "the address was given twice")
    except Refused as refused:
        expect("already allocated" in refused.message, refused.message)
    say(f"the object of {address} was made anew")

    # A pool over the Services' range is refused: their ServiceCIDR is known.
    over = croft.run("pool", "create", "over", "--cidr", "10.96.0.0/16")
    expect(over.returncode != 0 and 'ServiceCIDR "kubernetes"' in over.stderr, f"{over.stdout}{over.stderr}")
    say(f"a pool there is refused: {over.stderr.strip()}")
