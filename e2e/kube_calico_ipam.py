"""calico-ipam on a cluster as Calico's installer leaves it: Calico's definitions and no others, the rights of its CNI
account, a kubeconfig in YAML with a token, and nothing of Croft but the file of the plugin.
"""

import base64
import json

from kube_store import CALICO
from lib import begin, call_environment, expect, expect_equal, finish, say

# What Calico's manifests allow the account calico-cni-plugin.
RIGHTS = """
apiVersion: v1
kind: ServiceAccount
metadata:
  name: calico-cni-plugin
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: calico-cni-plugin
rules:
  - apiGroups: [""]
    resources: [pods, nodes, namespaces]
    verbs: [get]
  - apiGroups: [crd.projectcalico.org]
    resources: [blockaffinities, ipamblocks, ipamhandles, clusterinformations, ippools, ipreservations, ipamconfigs]
    verbs: [get, list, create, update, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: calico-cni-plugin
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: calico-cni-plugin
subjects:
  - kind: ServiceAccount
    name: calico-cni-plugin
    namespace: kube-system
"""

KUBECONFIG = """# Kubeconfig file for Calico CNI plugin. Installed by calico/node.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: {server}
    certificate-authority-data: "{authority}"
users:
- name: calico
  user:
    token: {token}
contexts:
- name: calico-context
  context:
    cluster: local
    user: calico
current-context: calico-context
"""


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        self.kubeconfig = world.directory / "calico-kubeconfig"
        self.write_kubeconfig(kube.token_of("calico-cni-plugin", "kube-system"))

    def write_kubeconfig(self, token):
        authority = base64.b64encode(self.kube.ca.certificate.read_bytes()).decode()
        self.kubeconfig.write_text(KUBECONFIG.format(server=self.kube.url, authority=authority, token=token))
        self.kubeconfig.chmod(0o600)

    def call(self, command, container, pod=None, node="node-a", more=None, ipam=None, variables=None):
        config = {"name": "k8s-pod-network", "cniVersion": "0.3.1", "type": "calico", "log_level": "info",
                  "datastore_type": "kubernetes", "nodename": node, "mtu": 0,
                  "ipam_lock_file": str(self.world.directory / "ipam.lock"),
                  "ipam": {"type": "calico-ipam", **(ipam or {})}, "policy": {"type": "k8s"},
                  "kubernetes": {"kubeconfig": str(self.kubeconfig)}, **(more or {})}
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod or container}"
        env = call_environment(self.world, command, container, args, **(variables or {}))
        return finish(begin(self.world.bin / "calico-ipam", json.dumps(config), env))

    def add(self, container, **how):
        code, answer, err = self.call("ADD", container, **how)
        expect_equal(code, 0, f"ADD {container}: {answer} {err}")
        return answer["ips"][0]["address"]

    def delete(self, container, **how):
        code, answer, err = self.call("DEL", container, **how)
        expect_equal((code, answer), (0, None), f"DEL {container}: {err}")

    def refused(self, words, code, container, **how):
        _, error, _ = self.call("ADD", container, **how)
        expect_equal(error.get("code"), code, f"ADD {container} is refused: {error}")
        expect(words in error["msg"] + error.get("details", ""), f"{words!r} in {error}")

    def items(self, plural):
        return self.kube.call("GET", f"{CALICO}/{plural}")["items"]


def make_cluster(kube):
    kube.apply(RIGHTS)
    kube.make(f"{CALICO}/clusterinformations", "ClusterInformation", "default",
        spec={"datastoreReady": True, "clusterGUID": "0", "calicoVersion": "v3.30.3"})
    kube.make(f"{CALICO}/ippools", "IPPool", "default-ipv4-ippool",
        spec={"cidr": "192.168.0.0/16", "blockSize": 26, "ipipMode": "Never", "natOutgoing": True, "nodeSelector": "all()",
              "vxlanMode": "CrossSubnet", "allowedUses": ["Workload", "Tunnel"]})
    for node in ("node-a", "node-b"):
        kube.make_node(node)


def lives(rig):
    first = rig.add("c1")
    expect(first.startswith("192.168.") and first.endswith("/26"), f"an address with its block's length: {first}")
    expect_equal(rig.add("c1"), first, "asked again")
    second = rig.add("c2", node="node-b")
    expect(first.split(".")[:3] != second.split(".")[:3] or first != second, f"{first} and {second}")
    block, = [b for b in rig.items("ipamblocks") if b["spec"]["affinity"] == "host:node-a"]
    attribute = block["spec"]["attributes"][0]
    expect_equal((attribute["handle_id"], attribute["secondary"]["pod"], attribute["secondary"]["namespace"],
                  attribute["secondary"]["node"]), ("k8s-pod-network.c1", "c1", "default", "node-a"), "whose it is")
    expect_equal(rig.add("c3", more={}, ipam={"ipv4_pools": ["default-ipv4-ippool"]}).split("/")[1], "26", "from a pool")
    rig.refused("error parsing pool", 102, "c4", ipam={"ipv4_pools": ["nowhere"]})
    for container, node in (("c1", "node-a"), ("c2", "node-b"), ("c3", "node-a"), ("c3", "node-a")):
        rig.delete(container, node=node)
    expect_equal(rig.items("ipamhandles"), [], "handles")
    held = [a for b in rig.items("ipamblocks") for a in b["spec"]["allocations"] if a is not None]
    cooling = [a for b in rig.items("ipamblocks") for a in b["spec"]["attributes"] if a.get("handle_id")]
    expect_equal((held, cooling), ([], []), "nothing is held")


def troubles(rig):
    """What keeps it from the API is said, with the part that is to be mended."""
    good = rig.kubeconfig.read_text()
    rig.write_kubeconfig("not.a.token")
    rig.refused("Unauthorized", 11, "t1")
    rig.kubeconfig.write_text(good)
    rig.refused("kubernetes.kubeconfig: is missing", 7, "t1", more={"kubernetes": {}})
    # The members and variables that take the place of what the file says. Others: kubeconfig_test.cc.
    address = rig.add("t2", more={"kubernetes": {}}, variables={"KUBECONFIG": str(rig.kubeconfig)})
    token = rig.kube.token_of("calico-cni-plugin", "kube-system")
    expect_equal(rig.add("t2", more={"kubernetes": {"k8s_api_root": rig.kube.url}, "policy": {"k8s_auth_token": token}},
                         variables={"K8S_CA_FILE": str(rig.kube.ca.certificate)}), address, "no kubeconfig")
    rig.delete("t2")
    # Calico's upgrade stops the world.
    info = rig.kube.call("GET", f"{CALICO}/clusterinformations/default")
    info["spec"]["datastoreReady"] = False
    info = rig.kube.call("PUT", f"{CALICO}/clusterinformations/default", info)
    rig.refused("datastoreReady", 11, "t3")
    info["spec"]["datastoreReady"] = True
    rig.kube.call("PUT", f"{CALICO}/clusterinformations/default", info)
    rig.add("t3")
    rig.delete("t3")


def play(world, kube):
    make_cluster(kube)
    rig = Rig(world, kube)
    lives(rig)
    say("addresses come and go with the rights of Calico's own account")
    troubles(rig)
