"""Services and node ranges on a real etcd: what the commands do on sqlite they do there; writers that are killed. Needs no root.

usage: service_etcd.py BIN_DIR
"""

import concurrent.futures
import ipaddress
import json
import random
import subprocess
import sys
import time

import service_commands
from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, run, say
from service_commands import Services

FOUND = 3
KILLS = 10
NODES = 30


def taken(services):
    """What all Services say they hold, as a list."""
    held = []
    for item in services.data("list", "-A")["items"]:
        spec = item["spec"]
        held += [ip for ip in spec.get("clusterIPs", []) if ip != "None"]
        held += [str(number) for number in {port["nodePort"] for port in spec.get("ports", []) if "nodePort" in port}]
        held += [str(spec["healthCheckNodePort"])] if "healthCheckNodePort" in spec else []
    return held


def expect_clean(services):
    """Nothing to find, nothing twice, and the ranges count what the Services hold."""
    report = services.data("audit")
    expect_equal(report["findings"], [], "findings")
    held = taken(services)
    expect_equal(len(set(held)), len(held), f"held twice: {sorted(held)}")
    expect_equal(sum(one["used"] for one in report["ranges"]), len(held), f"taken in the ranges: {report['ranges']}")
    return {one["name"]: one for one in report["ranges"]}


def start_anew(etcd):
    etcd.ctl("del", "--prefix", "/")


def as_on_sqlite(world, etcd):
    bare = Services(world, etcd.store)
    text = bare.text("create", "web", "--tcp", "80", code=1)
    expect("cannot allocate resources of type serviceipallocations at this time" in text, text)
    services = Services(world, etcd.store, ("--make-ranges",))
    service_commands.by_flags(services)
    service_commands.by_manifest(services)
    services.text("create", "balancer", "--type", "LoadBalancer", "--tcp", "80,443", "--udp", "443",
                  "--ip-family-policy", "RequireDualStack", "--ip-families", "IPv6,IPv4")
    made = services.data("show", "balancer")
    expect_equal([ipaddress.ip_address(ip).version for ip in made["spec"]["clusterIPs"]], [6, 4], "families in order")
    ranges = expect_clean(services)
    expect_equal(sorted(ranges), ["secondaryserviceips", "serviceips", "servicenodeports"], "ranges")
    for item in services.data("list", "-A")["items"]:
        services.text("delete", item["metadata"]["name"], "-n", item["metadata"]["namespace"])
    expect_equal({name: one["used"] for name, one in expect_clean(services).items()},
                 {"serviceips": 0, "secondaryserviceips": 0, "servicenodeports": 0}, "taken when all are deleted")
    expect_equal(etcd.ctl("get", "--prefix", "--keys-only", "/registry/").stdout.split(),
                 ["/registry/ranges/" + name for name in sorted(ranges)], "ranges where a kube-apiserver has them")
    say("as on sqlite, and all given back")


def killed(world, etcd):
    start_anew(etcd)
    services = Services(world, etcd.store, ("--make-ranges",))
    flags = ("--type", "NodePort", "--tcp", "80,443", "--ip-family-policy", "RequireDualStack")
    services.text("create", "first", *flags, "--service-cluster-ip-range", "10.96.0.0/24,fd00:10:96::/112")
    began = time.monotonic()
    services.text("create", "second", *flags)
    usual = time.monotonic() - began
    chance = random.Random()
    mended = 0
    for number in range(KILLS):
        pause = chance.uniform(0, usual * 1.2)
        process = subprocess.Popen(services.command("create", f"killed-{number}", *flags), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(pause)
        process.kill()
        process.wait()
        audit = run(*services.command("audit"), check=False)
        if audit.returncode != 0:
            expect_equal(audit.returncode, FOUND, f"audit after a kill at {pause:.4f} s: {audit.stdout}{audit.stderr}")
            services.text("repair", "--apply", "--interval", "1ms")
            mended += 1
    expect_clean(services)
    left = [item for item in services.data("list")["items"] if item["metadata"]["name"].startswith("killed-")]
    for item in left:
        spec = item["spec"]
        expect_equal((len(spec["clusterIPs"]), len({port["nodePort"] for port in spec["ports"]})), (2, 2),
                     "a Service that is there is whole")
        services.text("delete", item["metadata"]["name"])
    expect_equal({name: one["used"] for name, one in expect_clean(services).items()},
                 {"serviceips": 2, "secondaryserviceips": 2, "servicenodeports": 4}, "taken by the two that are left")
    say(f"of {KILLS} killed {len(left)} had made their Service, {mended} left something to mend")


def put_node(etcd, name):
    """As Calico makes it."""
    etcd.put(f"/calico/resources/v3/projectcalico.org/nodes/{name}", json.dumps(
        {"kind": "Node", "apiVersion": "projectcalico.org/v3", "metadata": {
            "name": name, "uid": "23e80162-d23c-41e0-8326-199c71126ce3", "creationTimestamp": "2026-01-15T10:00:00Z"},
         "spec": {}, "status": {}}))


def node_ranges(world, etcd):
    start_anew(etcd)
    def croft(*arguments, code=0):
        done = run(world.bin / "croft", "--store", etcd.store, "node", "range", *arguments, check=False)
        expect_equal(done.returncode, code, f"croft node range {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout
    def assign(names):
        return {name: json.loads(croft("assign", name, "-o", "json"))[0]["cidrs"] for name in names}
    croft("config", "--cluster-cidr=10.244.0.0/19,fd00:244::/58", "--service-cluster-ip-range=10.244.0.0/24")
    expect('there is no node' in run(world.bin / "croft", "--store", etcd.store, "node", "range", "assign", "oak",
                                     check=False).stderr, "in an etcd nodes are Calico's to make")
    for number in range(NODES + 2):
        put_node(etcd, f"node-{number}")
    names = [f"node-{number}" for number in range(NODES)]
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        upwards, downwards = both.map(assign, (names, names[::-1]))
    expect_equal(upwards, downwards, "each node has its ranges, whoever asks")
    expect(all([ipaddress.ip_network(cidr).version for cidr in cidrs] == [4, 6] for cidrs in upwards.values()),
           f"one range of each family: {upwards}")
    cidrs = [cidr for of_node in upwards.values() for cidr in of_node]
    expect_equal(len(set(cidrs)), 2 * NODES, "ranges that are distinct")
    expect("10.244.0.0/24" not in cidrs, "the range of Services was given to a node")
    listed = json.loads(croft("list", "-o", "json"))
    expect_equal(sorted(one["cidr"] for one in listed), sorted(cidrs), "list")
    show = json.loads(croft("show", "-o", "json"))[0]
    expect_equal([(one["taken"], one["excluded"], one["free"]) for one in show["clusterCidrs"]],
                 [(NODES + 1, 1, 1), (NODES, 0, 34)], "show")
    croft("assign", "node-30")
    croft("assign", "node-31", code=1)
    croft("release", "node-7", "--force")
    expect_equal(upwards["node-7"][:1], assign(["node-31"])["node-31"][:1], "the range that was given back")
    def release(some):
        return [croft("release", name, "--force") for name in some]
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        list(both.map(release, (names[:15], names[15:])))
    expect_equal({one["node"] for one in json.loads(croft("list", "-o", "json"))}, {"node-30", "node-31"},
                 "who has a range when 30 gave theirs back")
    say(f"{NODES} nodes, asked for from two sides")


def test():
    with World("service-etcd", sys.argv[1]) as world:
        etcd = Etcd(world)
        for part in (as_on_sqlite, killed, node_ranges):
            began = time.monotonic()
            part(world, etcd)
            say(f"  {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(test)
