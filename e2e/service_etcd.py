"""Croft's own Services and node ranges on a real etcd: by flags and by manifests, in kubectl's words; whoever asks for ranges at once.
What is decided is src/services' and src/noderanges'. Needs no root.

usage: service_etcd.py BIN_DIR
"""

import concurrent.futures
import ipaddress
import json
import sys

from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, run, say

NODES = 30
MANIFEST = """
apiVersion: v1
kind: Service
metadata:
  name: lb
  namespace: shop
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: lb}
  ports:
  - {name: web, port: 80, targetPort: 8080, nodePort: 30080}
  - {name: dns-t, port: 53}
  - {name: dns-u, port: 53, protocol: UDP}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {type: ExternalName, externalName: db.example.com}
"""


class Services:
    def __init__(self, world, store):
        self.world, self.store = world, store

    def text(self, *arguments, code=0, stdin=""):
        done = run(self.world.bin / "croft", "--store", self.store, "service", *arguments, check=False, stdin=stdin)
        expect_equal(done.returncode, code, f"exit code of {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def data(self, *arguments, stdin=""):
        return json.loads(self.text(*arguments, "-o", "json", stdin=stdin))

    def used(self):
        """Of a register in which nothing is wrong: how many each range has given."""
        report = self.data("audit")
        expect_equal(report["findings"], [], "findings")
        return {one["name"]: one["used"] for one in report["ranges"]}


def by_flags(services):
    text = services.text("create", "web", "--tcp", "80", code=1)
    expect("cannot allocate resources of type serviceipallocations at this time" in text, text)
    make = ("--make-ranges", "--service-cluster-ip-range", "10.96.0.0/24,fd00:10:96::/112")
    made = services.data("create", "web", "--type", "NodePort", "--tcp", "80:8080:30090", *make)
    expect_equal((made["kind"], made["spec"]["ports"][0]["nodePort"], made["spec"]["ports"][0]["targetPort"]), ("Service", 30090, 8080), "made")
    text = services.text("create", "web2", "--cluster-ip", made["spec"]["clusterIP"], "--tcp", "80", code=1)
    expect(text.startswith('The Service "web2" is invalid: spec.clusterIPs: Invalid value: ["') and "provided IP is already allocated" in text, text)
    text = services.text("create", "web", "--tcp", "80", code=1)
    expect_equal(text, 'Error from server (AlreadyExists): services "web" already exists\n', "made twice")
    dual = services.data("create", "dual", "--tcp", "80", "--ip-family-policy", "RequireDualStack", "--ip-families", "IPv6,IPv4")
    expect_equal([ipaddress.ip_address(ip).version for ip in dual["spec"]["clusterIPs"]], [6, 4], "families in order")
    expect("nodePort" not in services.data("update", "web", "--type", "ClusterIP")["spec"]["ports"][0], "its port is given back")
    services.text("create", "takes", "--type", "NodePort", "--tcp", "1::30090")
    services.text("create", "x", "--tcp", "80:a:b:c", code=2)
    expect_equal(services.text("create", "x", "--tcp", "80", "--dry-run"), "service/x created (dry run)\n", "dry run")
    text = services.text("list", "-o", "wide")
    expect("CLUSTER-IP" in text and "SELECTOR" in text and "1:30090/TCP" in text, text)


def by_manifest(services):
    text = services.text("create", "-f", "-", stdin=MANIFEST)
    expect("service/lb created" in text and "service/db created" in text, text)
    made = services.data("show", "lb", "-n", "shop")
    ports = {port["name"]: port["nodePort"] for port in made["spec"]["ports"]}
    expect(ports["web"] == 30080 and ports["dns-t"] == ports["dns-u"], f"node ports: {ports}")
    expect(made["spec"]["healthCheckNodePort"] not in ports.values(), "a health check port of its own")
    services.text("update", "-f", "-", stdin=MANIFEST)
    expect_equal(services.data("show", "lb", "-n", "shop"), made, "the same manifest again changes nothing")
    yaml = services.text("show", "lb", "-n", "shop", "-o", "yaml")
    services.text("delete", "lb", "-n", "shop")
    services.text("create", "-f", "-", stdin=yaml)
    expect_equal(services.data("show", "lb", "-n", "shop")["spec"], made["spec"], "made again from its own YAML")


def services(world, etcd):
    one = Services(world, etcd.store)
    by_flags(one)
    by_manifest(one)
    expect_equal(one.used(), {"serviceips": 4, "secondaryserviceips": 1, "servicenodeports": 4}, "taken")
    for item in one.data("list", "-A")["items"]:
        one.text("delete", item["metadata"]["name"], "-n", item["metadata"]["namespace"])
    expect_equal(one.used(), {"serviceips": 0, "secondaryserviceips": 0, "servicenodeports": 0}, "taken when all are deleted")
    expect_equal(etcd.ctl("get", "--prefix", "--keys-only", "/registry/").stdout.split(),
                 ["/registry/ranges/" + name for name in sorted(one.used())], "ranges where a kube-apiserver has them")
    # A prefix that is not the cluster's: nothing is found, and that is no clean bill.
    text = one.text("audit", "--etcd-servers", etcd.url, "--etcd-prefix", "/k8s-b", code=1)
    expect("--etcd-prefix" in text, text)


def node_ranges(world, etcd):
    """As Calico makes nodes; from two sides."""
    def croft(*arguments):
        return run(world.bin / "croft", "--store", etcd.store, "node", "range", *arguments).stdout

    def assign(names):
        return {name: json.loads(croft("assign", name, "-o", "json"))[0]["cidrs"] for name in names}

    croft("config", "--cluster-cidr=10.244.0.0/19,fd00:244::/58", "--service-cluster-ip-range=10.244.0.0/24")
    names = [f"node-{number}" for number in range(NODES)]
    for name in names:
        etcd.put(f"/calico/resources/v3/projectcalico.org/nodes/{name}", json.dumps(
            {"kind": "Node", "apiVersion": "projectcalico.org/v3", "metadata": {
                "name": name, "uid": "23e80162-d23c-41e0-8326-199c71126ce3", "creationTimestamp": "2026-01-15T10:00:00Z"}, "spec": {}}))
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        upwards, downwards = both.map(assign, (names, names[::-1]))
    expect_equal(upwards, downwards, "each node has its ranges, whoever asks")
    cidrs = [cidr for of_node in upwards.values() for cidr in of_node]
    expect_equal((len(set(cidrs)), "10.244.0.0/24" in cidrs), (2 * NODES, False), "ranges that are distinct, and none of Services")
    expect_equal(sorted(one["cidr"] for one in json.loads(croft("list", "-o", "json"))), sorted(cidrs), "list")
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        list(both.map(lambda some: [croft("release", name, "--force") for name in some], (names[:15], names[15:])))
    expect_equal(json.loads(croft("list", "-o", "json")), [], "who has a range when all gave theirs back")


def test():
    with World("service-etcd", sys.argv[1]) as world:
        etcd = Etcd(world)
        for part in (services, node_ranges):
            part(world, etcd)
            say(f"{part.__name__}: ok")


if __name__ == "__main__":
    main(test)
