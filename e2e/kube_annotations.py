"""What pods and namespaces ask for in annotations, of a real kube-apiserver: by a plugin alone, and by the agent, which follows them."""

import time

from etcd_lib import Node
from kube_agent import REQUESTS, LABEL, start_agent
from kube_store import write_kubeconfig
from lib import TREE, expect, expect_equal, run, say

CALICO, CROFT = "cni.projectcalico.org", "ipam.croft.dev"


def reads(kube):
    """GETs of pods and namespaces so far: kube-apiserver's own client asks for none of these by name but its own."""
    total = 0
    for labels, value in REQUESTS.findall(kube._send("GET", "/metrics")):
        of = dict(LABEL.findall(labels.decode()))
        if of.get("verb") == "GET" and of.get("resource") in ("pods", "namespaces"):
            total += int(float(value))
    return total


class Pods:
    def __init__(self, kube, oak):
        self.kube, self.oak, self.uids = kube, oak, {}
        oak.args = lambda name: (f"IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={name};"
                                 f"K8S_POD_UID={self.uids.get(name, 'none')}")

    def annotated(self, name, annotations):
        self.uids[name] = self.kube.make_pod(name, "oak", "shop", annotations)

    def add(self, name):
        code, answer, _ = self.oak.finish(self.oak.start("ADD", name))
        return code, [ip["address"] for ip in answer["ips"]] if code == 0 else answer

    def annotate_namespace(self, annotations):
        self.kube.patch("/api/v1/namespaces/shop", {"metadata": {"annotations": annotations}})


def begins(answer, *prefixes):
    code, addresses = answer
    expect(code == 0 and len(addresses) == len(prefixes) and
           all(any(a.startswith(p) for a in addresses) for p in prefixes), f"wanted {prefixes}: {answer}")


# Who asks for what, and how what it gets begins.
ASKS = (("plain", {}, "10.79."),
        ("pool", {f"{CALICO}/ipv4pools": '["b"]'}, "10.80."),
        ("croft", {f"{CALICO}/ipv4pools": '["b"]', f"{CROFT}/ipv4pools": '["c"]'}, "10.81."),
        ("dual", {f"{CALICO}/ipFamilies": '["IPv4","IPv6"]'}, "10.79.", "fd00:79:"))
REFUSED = (("wrong", {f"{CALICO}/ipv4pools": "b"}, f"{CALICO}/ipv4pools"),
           ("past", {f"{CALICO}/ipAddrsNoIpam": '["10.80.0.9"]'}, "ipAddrsNoIpam"))
IN_NAMESPACE = (("in-namespace", {}, "10.81."), ("over-namespace", {f"{CALICO}/ipv4pools": '["b"]'}, "10.80."))


def asks(pods, way):
    """The same answers with and without agent."""
    def gets(rows):
        for what, annotations, *prefixes in rows:
            pods.annotated(f"{way}-{what}", annotations)
            begins(pods.add(f"{way}-{what}"), *prefixes)
    fixed = f"10.80.0.{200 if way == 'alone' else 201}"
    gets((*ASKS, ("fixed", {f"{CALICO}/ipAddrs": f'["{fixed}"]'}, f"{fixed}/")))
    for what, annotations, named in REFUSED:
        pods.annotated(f"{way}-{what}", annotations)
        code, answer = pods.add(f"{way}-{what}")
        expect(code != 0 and answer["code"] == 7 and named in answer["msg"], f"{what}: {answer}")
    # A pod that the API does not know: a static one, say.
    begins(pods.add(f"{way}-static"), "10.79.")
    pods.annotate_namespace({f"{CALICO}/ipv4pools": '["c"]'})
    time.sleep(1)  # an agent's watch
    gets(IN_NAMESPACE)
    pods.annotate_namespace({f"{CALICO}/ipv4pools": None})
    time.sleep(1)
    say(f"{way}: as annotated")


def play(world, kube):
    kube.apply((TREE / "deploy" / "kubernetes" / "annotations.yaml").read_text())
    store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    of_nodes = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
    kube.make_node("oak")
    kube.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    for pool, cidr in (("a", "10.79.0.0/16"), ("b", "10.80.0.0/16"), ("c", "10.81.0.0/16"), ("six", "fd00:79::/64")):
        run(world.bin / "croft", "--store", store, "pool", "create", pool, "--cidr", cidr, "--gateway", "none")
    oak = Node(world, of_nodes, "oak")
    oak.ipam["annotations"] = "api"
    pods = Pods(kube, oak)
    asks(pods, "alone")
    agent, socket = start_agent(world, of_nodes)
    oak.ipam["agent"] = str(socket)
    asks(pods, "agent")

    # What it follows it does not read.
    names = [f"many{i}" for i in range(5)]
    for name in names:
        pods.annotated(name, {f"{CALICO}/ipv4pools": '["b"]'})
    time.sleep(1)
    before = reads(kube)
    for name in names:
        begins(pods.add(name), "10.80.")
    expect_equal(reads(kube) - before, 0, "GETs of pods and namespaces")
    agent.terminate()
    expect_equal(agent.wait(timeout=10), 0, "the agent's end")

    # On another kind of store there is nothing to read them from.
    oak.ipam.update(agent="none", store=world.store())
    code, answer = pods.add("elsewhere")
    expect(code != 0 and answer["code"] == 7 and "ipam.annotations" in answer["msg"], f"another store: {answer}")
