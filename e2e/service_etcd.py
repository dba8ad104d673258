"""Croft's own Services on a real etcd: by flags and by manifests, in kubectl's words. What is decided is src/services'. Needs no root."""

import ipaddress

from etcd_lib import Etcd
from lib import Commands, expect, expect_equal, main

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


def used(services):
    """Of a register in which nothing is wrong: how many each range has given."""
    report = services.data("audit")
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


def test(world):
    etcd = Etcd(world)
    one = Commands(world, etcd.store, "service")
    by_flags(one)
    by_manifest(one)
    expect_equal(used(one), {"serviceips": 4, "secondaryserviceips": 1, "servicenodeports": 4}, "taken")
    for item in one.data("list", "-A")["items"]:
        one.text("delete", item["metadata"]["name"], "-n", item["metadata"]["namespace"])
    expect_equal(used(one), {"serviceips": 0, "secondaryserviceips": 0, "servicenodeports": 0}, "taken when all are deleted")
    expect_equal(etcd.ctl("get", "--prefix", "--keys-only", "/registry/").stdout.split(),
                 ["/registry/ranges/" + name for name in sorted(used(one))], "ranges where a kube-apiserver has them")
    # A prefix that is not the cluster's: nothing is found, and that is no clean bill.
    text = one.text("audit", "--etcd-servers", etcd.url, "--etcd-prefix", "/k8s-b", code=1)
    expect("--etcd-prefix" in text, text)


main(test)
