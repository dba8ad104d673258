"""`croft service` on one sqlite store: by flags and by manifests, refusals in kubectl's words, several at once. Neither
root nor network.

usage: service_commands.py BIN_DIR
"""

import json
import subprocess
import sys

from lib import World, expect, expect_equal, main, run


class Services:
    """`croft service` on a store; `creating`: flags that each creation has besides."""

    def __init__(self, world, store, creating=()):
        self.world, self.store, self.creating = world, store, creating

    def command(self, verb, *arguments):
        more = self.creating if verb == "create" else ()
        return [str(self.world.bin / "croft"), "--store", self.store, "service", verb, *arguments, *more]

    def text(self, *arguments, code=0, stdin=""):
        done = run(*self.command(*arguments), check=False, stdin=stdin)
        expect_equal(done.returncode, code, f"exit code of {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def data(self, *arguments, stdin=""):
        return json.loads(self.text(*arguments, "-o", "json", stdin=stdin))

    def names(self, *arguments):
        return [item["metadata"]["name"] for item in self.data("list", *arguments)["items"]]


MANIFEST = """
apiVersion: v1
kind: Service
metadata:
  name: lb
  namespace: shop
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  sessionAffinity: None
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


def by_flags(services):
    ranges = ("--service-cluster-ip-range", "10.96.0.0/24,fd00:10:96::/112")
    made = services.data("create", "web", "--type", "NodePort", "--tcp", "80:8080:30090", *ranges)
    expect_equal((made["kind"], made["spec"]["ports"][0]["nodePort"], made["spec"]["ports"][0]["targetPort"]),
                 ("Service", 30090, 8080), "the Service made")
    expect_equal(services.names(), ["web"], "list")
    text = services.text("create", "web2", "--cluster-ip", made["spec"]["clusterIP"], "--tcp", "80", code=1)
    expect(text.startswith('The Service "web2" is invalid: spec.clusterIPs: Invalid value: ["' + made["spec"]["clusterIP"]
                           + '"]: failed to allocate IP') and "provided IP is already allocated" in text, text)
    text = services.text("create", "web", "--tcp", "80", code=1)
    expect_equal(text, 'Error from server (AlreadyExists): services "web" already exists\n', "made twice")
    dual = services.data("create", "dual", "--tcp", "80", "--ip-family-policy", "RequireDualStack")
    expect_equal((dual["spec"]["ipFamilies"], len(dual["spec"]["clusterIPs"])), (["IPv4", "IPv6"], 2), "both families")
    single = services.data("update", "dual", "--ip-family-policy", "SingleStack")
    expect_equal(single["spec"]["clusterIPs"], dual["spec"]["clusterIPs"][:1], "one family again")
    services.text("create", "none", "--cluster-ip", "None", "--tcp", "80")
    changed = services.data("update", "web", "--type", "ClusterIP")
    expect("nodePort" not in changed["spec"]["ports"][0], f"node port after the change: {changed}")
    services.text("create", "takes", "--type", "NodePort", "--tcp", "1::30090")
    text = services.text("create", "x", "--tcp", "80", "--service-cluster-ip-range", "10.97.0.0/24", code=1)
    expect("the provided range does not match the current range" in text, text)
    services.text("create", "x", "--tcp", "80:a:b:c", code=2)
    services.text("create", "--tcp", "80", code=2)
    text = services.text("create", "x", "--tcp", "80", "--dry-run")
    expect_equal(text, "service/x created (dry run)\n", "dry run")
    expect("x" not in services.names(), "a dry run makes nothing")
    text = services.text("list", "-o", "wide")
    expect("CLUSTER-IP" in text and "SELECTOR" in text and "1:30090/TCP" in text, text)
    text = services.text("show", "takes")
    expect("NodePort:" in text and "30090" in text, text)
    services.text("show", "nobody", code=1)


def by_manifest(services):
    text = services.text("create", "-f", "-", stdin=MANIFEST)
    expect("service/lb created" in text and "service/db created" in text, text)
    made = services.data("show", "lb", "-n", "shop")
    ports = {port["name"]: port["nodePort"] for port in made["spec"]["ports"]}
    expect(ports["web"] == 30080 and ports["dns-t"] == ports["dns-u"], f"node ports: {ports}")
    expect(made["spec"]["healthCheckNodePort"] not in ports.values(), "a health check port of its own")
    services.text("update", "-f", "-", stdin=MANIFEST)
    expect_equal(services.data("show", "lb", "-n", "shop"), made, "the same manifest again changes nothing")
    stale = dict(made, metadata=dict(made["metadata"], labels={"a": "b"}))
    services.text("update", "-f", "-", stdin=json.dumps(stale))
    stale["metadata"]["labels"] = {"c": "d"}
    text = services.text("update", "-f", "-", stdin=json.dumps(stale), code=1)
    expect("the object has been modified" in text, text)
    expect_equal([item["metadata"]["namespace"] for item in services.data("list", "-A")["items"]
                  if item["metadata"]["name"] == "lb"], ["shop"], "list -A")
    yaml = services.text("show", "lb", "-n", "shop", "-o", "yaml")
    services.text("delete", "lb", "-n", "shop")
    services.text("delete", "lb", "-n", "shop", code=1)
    services.text("create", "-f", "-", stdin=yaml)
    again = services.data("show", "lb", "-n", "shop")
    expect_equal(again["spec"], made["spec"], "made again from its own YAML")
    file = services.world.directory / "db.json"
    file.write_text(json.dumps(services.data("show", "db")))
    services.text("delete", "db")
    services.text("create", "-f", str(file))
    text = services.text("create", "-f", "-", stdin="apiVersion: v1\nkind: Pod\n", code=2)
    expect('document 1 is a "Pod"' in text, text)


def several_at_once(services):
    """More processes than addresses: each address goes to one, the others are told."""
    fresh = Services(services.world, services.world.store("many"))
    fresh.text("create", "first", "--tcp", "80", "--service-cluster-ip-range", "10.1.0.0/28")
    running = [subprocess.Popen(fresh.command("create", f"s{i}", "--tcp", "80"), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True) for i in range(24)]
    said = [process.communicate()[0] for process in running]
    made = [text for text in said if text.startswith("service/")]
    full = [text for text in said if text.endswith("range is full\n")]
    expect_equal((len(made), len(full)), (13, 11), f"of 24 on 13 addresses: {said}")
    addresses = [item["spec"]["clusterIP"] for item in fresh.data("list")["items"]]
    expect_equal((len(addresses), len(set(addresses))), (14, 14), "addresses")


def test():
    with World("service", sys.argv[1]) as world:
        services = Services(world, world.store())
        by_flags(services)
        by_manifest(services)
        several_at_once(services)


if __name__ == "__main__":
    main(test)
