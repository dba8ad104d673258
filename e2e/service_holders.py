"""Croft's own Services and those of a Kubernetes on one etcd: they take from the same ranges, so whoever looks after the
ranges sees both. Kubernetes' records are written by hand, as a kube-apiserver keeps them. Needs no root.

usage: service_holders.py BIN_DIR
"""

import base64
import json
import sys

from etcd_lib import Etcd
from kube_storage import Range
from lib import World, expect, expect_equal, main, run, say

FOUND = 3
OLD = "2020-01-15T10:00:00Z"


class Cluster:
    def __init__(self, world, etcd, prefix="/registry"):
        self.world, self.etcd, self.prefix = world, etcd, prefix

    def croft(self, *arguments, code=0, store=None):
        """What a command printed, both streams."""
        done = run(self.world.bin / "croft", "--store", store or self.etcd.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def audit(self, *flags, code=0):
        return self.croft("service", "audit", *flags, code=code)

    def kubernetes(self, verb, *arguments, code=0):
        """As an operator of the Kubernetes calls it."""
        return self.croft("service", verb, "--etcd-servers", self.etcd.url, "--etcd-prefix", self.prefix, *arguments,
                          code=code)

    def put_json(self, place, document):
        self.etcd.put(f"{self.prefix}/{place}", json.dumps(document))

    def put_service(self, name, address, node_port=None, **spec):
        port = {"port": 80, "protocol": "TCP", **({"nodePort": node_port} if node_port else {})}
        self.put_json(f"services/specs/default/{name}", {
            "kind": "Service", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "NodePort" if node_port else "ClusterIP", "clusterIP": address, "clusterIPs": [address],
                     "ipFamilies": ["IPv4"], "ports": [port], **spec}})

    def put_range(self, name, text, members):
        data = base64.b64encode(Range.of(text, members).data).decode()
        self.put_json(f"ranges/{name}", {"kind": "RangeAllocation", "apiVersion": "v1",
                                         "metadata": {"creationTimestamp": None}, "range": text, "data": data})

    def put_cidr(self, name, *cidrs):
        self.put_json(f"servicecidrs/{name}", {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1",
                                               "metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}})

    def put_address(self, address, service):
        self.put_json(f"ipaddresses/{address}", {
            "kind": "IPAddress", "apiVersion": "networking.k8s.io/v1",
            "metadata": {"name": address, "creationTimestamp": OLD, "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}},
            "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": service}}})

    def members(self, name):
        value = self.etcd.ctl("get", "--write-out=json", f"{self.prefix}/ranges/{name}").stdout
        return Range.decode(base64.b64decode(json.loads(value)["kvs"][0]["value"])).members

    def start_anew(self):
        self.etcd.ctl("del", "--prefix", "/")


def repaired_from_the_other_side(cluster):
    """What Croft's own Service holds stays taken when somebody repairs the ranges of the Kubernetes."""
    cluster.start_anew()
    cluster.put_service("kubernetes", "10.0.0.1")
    cluster.put_range("serviceips", "10.0.0.0/24", ["10.0.0.1"])
    cluster.put_range("servicenodeports", "30000-32767", [])
    mine = ("--type", "NodePort", "--tcp", "80::30090", "--cluster-ip", "10.0.0.40")
    cluster.croft("service", "create", "mine", *mine)
    text = cluster.kubernetes("repair", "--apply", "--passes", "4", "--interval", "1ms")
    expect("2 services" in text and "no findings" in text, text)
    expect_equal((cluster.members("serviceips"), cluster.members("servicenodeports")),
                 ({"10.0.0.1", "10.0.0.40"}, {30090}), "what is taken after the repair")
    for flags in (("--cluster-ip", "10.0.0.40", "--tcp", "80"), ("--type", "NodePort", "--tcp", "80::30090")):
        expect("already allocated" in cluster.croft("service", "create", "second", *flags, code=1), f"second: {flags}")
    say("Kubernetes' repair leaves Croft's own Services what they hold")


def repaired_from_croft(cluster):
    """And the other way round, with the store as the agents have it."""
    cluster.start_anew()
    cluster.put_service("kubernetes", "10.96.0.1")
    cluster.put_service("web", "10.96.0.9", 30080)
    cluster.put_range("serviceips", "10.96.0.0/16", ["10.96.0.1", "10.96.0.9"])
    cluster.put_range("servicenodeports", "30000-32767", [30080])
    text = cluster.croft("service", "repair", "--apply", "--passes", "4", "--interval", "1ms")
    expect("2 services" in text and "no findings" in text, text)
    done = run(cluster.world.bin / "croftd", "controller", "--store", cluster.etcd.store, "--once", "--grace", "0s",
               "--repair-service-ranges", check=False)
    expect("service ranges: 2 services, 0 findings" in done.stderr, done.stderr)
    expect_equal((cluster.members("serviceips"), cluster.members("servicenodeports")),
                 ({"10.96.0.1", "10.96.0.9"}, {30080}), "what is taken after the repair")
    # A collision of the two kinds is one of two holders.
    cluster.croft("service", "create", "mine", "--cluster-ip", "10.96.0.30", "--tcp", "80")
    cluster.put_service("theirs", "10.96.0.30")
    expect("assigned to multiple services" in cluster.audit(code=FOUND), "a collision, seen from Croft's side")
    expect("assigned to multiple services" in cluster.kubernetes("audit", code=FOUND), "and from the other")
    say("Croft's repair leaves Kubernetes' Services what they hold")


def made_beside(cluster):
    """A range that Croft makes has what Kubernetes' Services hold; beside objects it makes none."""
    cluster.start_anew()
    cluster.put_service("web", "10.0.0.9", 30080)
    cluster.croft("service", "create", "mine", "--tcp", "80", "--make-ranges")
    expect({"10.0.0.9"} < cluster.members("serviceips"), "addresses of the range made")
    expect_equal(cluster.members("servicenodeports"), {30080}, "ports of the range made")
    cluster.start_anew()
    cluster.put_cidr("kubernetes", "10.96.0.0/12")
    cluster.put_service("kubernetes", "10.96.0.1")
    cluster.put_address("10.96.0.1", "kubernetes")
    text = cluster.croft("service", "create", "mine", "--tcp", "80", "--make-ranges", code=1)
    expect("as IPAddress objects" in text, text)
    # A bitmap that an older Kubernetes left is none either.
    cluster.put_range("serviceips", "10.0.0.0/24", [])
    text = cluster.croft("service", "create", "mine", "--tcp", "80", code=1)
    expect("as IPAddress objects" in text, text)
    say("what Croft makes beside a Kubernetes")


def nothing_there(cluster):
    """A prefix that is not the cluster's: nothing is found, and that is no clean bill."""
    cluster.start_anew()
    other = Cluster(cluster.world, cluster.etcd, "/k8s-b")
    other.put_service("kubernetes", "10.96.0.1")
    other.put_range("serviceips", "10.96.0.0/16", ["10.96.0.1"])
    other.put_range("servicenodeports", "30000-32767", [])
    for verb in (("audit",), ("repair",), ("repair", "--apply", "--passes", "1", "--service-cluster-ip-range", "10.96.0.0/16")):
        text = cluster.kubernetes(*verb, code=1)
        expect("--etcd-prefix" in text, text)
    expect_equal(cluster.etcd.get("/registry/"), {}, "what a repair of nothing wrote")
    other.kubernetes("audit")
    done = run(cluster.world.bin / "croftd", "controller", "--store", cluster.etcd.store + "?kubernetes=/registry",
               "--once", "--grace", "0s", "--repair-service-ranges", check=False)
    expect(done.returncode == 1 and "--etcd-prefix" in done.stderr, f"controller: {done.returncode} {done.stderr}")
    # Croft's own Services take from the ranges of /registry, and are nobody's elsewhere.
    cluster.croft("service", "create", "mine", "--tcp", "80", "--make-ranges")
    expect("1 service;" in other.kubernetes("audit"), "Services of another prefix")
    say("a wrong prefix is an error")


def address_objects(cluster):
    """An object without a Service may belong to one in the making, whatever this machine's clock says of its age."""
    cluster.start_anew()
    cluster.put_cidr("kubernetes", "10.96.0.0/16")
    cluster.put_service("kubernetes", "10.96.0.1")
    cluster.put_address("10.96.0.1", "kubernetes")
    cluster.put_address("10.96.0.7", "in-the-making")
    text = cluster.kubernetes("repair", "--apply", "--passes", "3", "--interval", "1ms", code=FOUND)
    expect("may have leaked" in text or "flagging for later" in text, text)
    expect("/registry/ipaddresses/10.96.0.7" in cluster.etcd.get("/registry/ipaddresses/"), "one look freed an address")
    # Croft's own Service of the same name as one of Kubernetes': no object is its.
    cluster.etcd.ctl("del", "/registry/ipaddresses/10.96.0.7")
    cluster.put_range("servicenodeports", "30000-32767", [])
    cluster.croft("service", "create", "headless", "--cluster-ip", "None", "--tcp", "80")
    cluster.kubernetes("audit")
    say("IPAddress objects are freed by two looks")


def address_space(cluster):
    """Node ranges and pools keep out of Service ranges in both forms, and a repair moves no range over them."""
    def put_node(name):
        cluster.etcd.put(f"/calico/resources/v3/projectcalico.org/nodes/{name}", json.dumps(
            {"kind": "Node", "apiVersion": "projectcalico.org/v3", "metadata": {
                "name": name, "uid": "23e80162-d23c-41e0-8326-199c71126ce3", "creationTimestamp": OLD},
             "spec": {}, "status": {}}))
    cluster.start_anew()
    cluster.put_cidr("kubernetes", "10.96.0.0/12")
    put_node("oak")
    expect("overlaps ServiceCIDR" in cluster.croft("pool", "create", "web", "--cidr", "10.100.0.0/16", code=1),
           "a pool over a ServiceCIDR")
    cluster.croft("node", "range", "config", "--cluster-cidr", "10.96.0.0/11", "--node-cidr-mask-size", "20")
    expect_equal(cluster.croft("node", "range", "assign", "oak"), "node/oak got 10.112.0.0/20\n",
                 "the first range that is no Service's")
    put_node("elm")
    expect("10.96.0.0/12" in cluster.croft("node", "range", "assign", "elm", "--cidr", "10.96.16.0/20", code=1), "elm")

    cluster.start_anew()
    cluster.put_service("kubernetes", "10.96.0.1")
    cluster.put_range("serviceips", "10.96.0.0/16", ["10.96.0.1"])
    cluster.put_range("servicenodeports", "30000-32767", [])
    refused = cluster.croft("pool", "create", "web", "--cidr", "10.96.128.0/24", code=1)
    expect("overlaps the Service range 10.96.0.0/16" in refused, refused)
    cluster.croft("pool", "create", "web", "--cidr", "10.97.0.0/24")
    for prefix in ("10.97.0.0/16", "10.97.0.0/25"):
        text = cluster.kubernetes("repair", "--apply", "--passes", "1", "--service-cluster-ip-range", prefix, code=1)
        expect("overlaps pool web" in text, text)
    expect_equal(cluster.members("serviceips"), {"10.96.0.1"}, "the range that was not moved")
    put_node("oak")
    cluster.croft("node", "range", "config", "--cluster-cidr", "10.98.0.0/16")
    cluster.croft("node", "range", "assign", "oak")
    text = cluster.kubernetes("repair", "--apply", "--passes", "1", "--service-cluster-ip-range", "10.98.0.0/16", code=1)
    expect("10.98.0.0/24" in text, text)
    cluster.kubernetes("repair", "--apply", "--service-cluster-ip-range", "10.96.0.0/17")
    say("one place knows who claims what")


def test():
    with World("holders", sys.argv[1]) as world:
        cluster = Cluster(world, Etcd(world))
        for part in (repaired_from_the_other_side, repaired_from_croft, made_beside, nothing_there, address_objects,
                     address_space):
            part(cluster)


if __name__ == "__main__":
    main(test)
