"""Each network configuration that croftd install writes, on a real node: pods get their interfaces from bridge, from Calico's
own plugin or from flannel's, and their addresses from Croft.

usage: main_plugins.py BIN_DIR bridge|calico|flannel
"""

import ipaddress
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from article import CHART, NAMESPACE, Story, deployment, helm, values
from cluster import CONTROL, PODS, TREE, in_cluster_namespaces, inside
from etcd_lib import CalicoPeer
from kube_store import calico_definitions
from lib import PLUGINS, Failure, World, expect, expect_equal, main, run, say, skip, wait_for

KUBECONFIG = "/etc/cni/net.d/calico-kubeconfig"
# flannel's plugin as it was before it moved to a module of its own, which not every module proxy gives.
FLANNEL_MODULE = "github.com/containernetworking/plugins"
FLANNEL_VERSION = "v0.9.1"
FLANNEL_CHECKSUM = "h1:FD1tADPls2EEi3flPc2OegIY1M9pUa9r2Quag7HMLV8="
FLANNEL_PACKAGE = "./plugins/meta/flannel"


def find_flannel(world):
    """The real flannel CNI plugin, or why there is none."""
    given = os.environ.get("CROFT_FLANNEL_CNI")
    for path in [given] if given else [PLUGINS / "flannel", "/opt/cni/bin/flannel"]:
        if pathlib.Path(path).exists():
            return pathlib.Path(path).resolve(), None
    if given:
        raise Failure(f"CROFT_FLANNEL_CNI={given}: no such file")
    if not shutil.which("go"):
        return None, "Go is not installed"
    # FLANNEL_CHECKSUM stands for the checksum database; what the module needs is checked with its own go.sum.
    environment = {**os.environ, "GOFLAGS": "-modcacherw", "GONOSUMDB": FLANNEL_MODULE, "GOTOOLCHAIN": "local",
                   "GOMODCACHE": str(world.directory / "go-modules"), "GOCACHE": str(world.directory / "go-cache"),
                   "CGO_ENABLED": "0"}
    module = f"{FLANNEL_MODULE}@{FLANNEL_VERSION}"
    try:
        done = run("go", "mod", "download", "-json", module, env=environment, check=False, timeout=60)
        answer = json.loads(done.stdout or "{}")
        if done.returncode != 0 or "Dir" not in answer:
            reason = (answer.get("Error") or done.stderr).strip().splitlines()
            return None, f"the module proxy does not give {module}: {reason[0] if reason else 'no answer'}"
        expect_equal(answer["Sum"], FLANNEL_CHECKSUM, f"checksum of {module}")
        target = world.directory / "flannel"
        done = run("go", "build", "-C", answer["Dir"], "-p", "1", "-mod", "readonly", "-o", target, FLANNEL_PACKAGE,
                   env=environment, check=False, timeout=240)
    except subprocess.TimeoutExpired as late:
        return None, f"took too long: {' '.join(str(c) for c in late.cmd[:3])}"
    if done.returncode != 0:
        return None, f"{module} can't be built here: {done.stderr.strip().splitlines()[-1]}"
    return target, None


def others_plugins(which, bin_dir, folder):
    """Puts the plugins of others into a folder that the nodes take theirs from."""
    if which == "bridge":
        return
    with World("plugins", bin_dir) as world:
        if which == "calico":
            shutil.copy(CalicoPeer(world, None).bin / "calico", folder)
            return
        flannel, why_not = find_flannel(world)
        if why_not:
            skip(f"flannel's plugin: {why_not}")
        shutil.copy(flannel, os.path.join(folder, "flannel"))


class Plugin(Story):
    def __init__(self, cluster, which):
        super().__init__(cluster)
        self.which = which

    def before(self):
        """What Calico's and flannel's own daemons leave on a node."""
        if self.which == "calico":
            for text in calico_definitions():
                self.cluster.kubectl("apply", "--server-side", "-f", "-", given=text)
            for kind in ("clusterinformations", "ippools"):
                wait_for(lambda kind=kind: self.cluster.kubectl("get", f"{kind}.crd.projectcalico.org", check=False).returncode == 0,
                         f"{kind} are served", 30)
            self.cluster.apply({"apiVersion": "crd.projectcalico.org/v1", "kind": "ClusterInformation",
                                "metadata": {"name": "default"}, "spec": {"datastoreReady": True, "calicoVersion": "v3.30.3"}})
            kubeconfig = (self.cluster.pki / "admin.conf").read_text()
            self.node.run("sh", "-c", f"umask 077; cat > {KUBECONFIG}", given=kubeconfig)
            self.node.run("sh", "-c", "mkdir -p /var/lib/calico /var/log/calico/cni; printf node-1 > /var/lib/calico/nodename")
        if self.which == "flannel":
            wait_for(lambda: self.cluster.kubectl("get", "node", "node-1", check=False).returncode == 0, "the node exists", 60)
            self.network_is_unavailable("True", "NoRouteCreated")

    def flanneld_starts(self):
        """What flanneld does once its node has a range, which Croft's controller gives: a pod that runs without a pod network."""
        wait_for(lambda: "node.kubernetes.io/network-unavailable" in self.node.taints(), "the node is tainted", 30)
        spec = wait_for(lambda: (lambda node: node["spec"] if node["spec"].get("podCIDR") else None)(
            self.cluster.get("node", "node-1")), "the controller gives the node its range", 120)
        expect_equal(spec["podCIDRs"], [spec["podCIDR"]], "one range of the family")
        range_ = ipaddress.ip_network(spec["podCIDR"])
        expect(range_.subnet_of(ipaddress.ip_network(PODS)), f"the node's range {range_}")
        # No flanneld is here that would masquerade, so its plugin has bridge do it.
        self.node.run("sh", "-c", "mkdir -p /run/flannel; cat > /run/flannel/subnet.env",
                      given=f"FLANNEL_NETWORK={PODS}\nFLANNEL_SUBNET={range_[1]}/{range_.prefixlen}\nFLANNEL_MTU=1450\n"
                            "FLANNEL_IPMASQ=false\n")
        self.network_is_unavailable("False", "FlannelIsUp")
        return range_

    def host_locals_files(self):
        """Of flannel's network, by whose name the files of pods before Croft lie there."""
        return set(self.node.run("ls", "/var/lib/cni/networks/cbr0").stdout.split())

    def gives_addresses(self):
        self.node.start()
        self.node.import_images("croft")
        self.before()
        ranges = {"controller.allocateNodeCidrs": "true", "controller.clusterCidr": PODS} if self.which == "flannel" else {}
        helm("install", "croft", CHART, "-n", NAMESPACE, "--create-namespace", *values(mainPlugin=self.which, **ranges))
        range_ = self.flanneld_starts() if self.which == "flannel" else ipaddress.ip_network(PODS)
        wait_for(self.node.is_ready, "the node is ready", 120)
        self.cluster.apply(deployment("web", 5))
        pods = self.wait_running(5, "-l", "app=web")
        addresses = [pod["status"]["podIP"] for pod in pods]
        expect_equal(len(set(addresses)), 5, f"addresses: {addresses}")
        expect(all(ipaddress.ip_address(address) in range_ for address in addresses), f"{addresses} are of {range_}")
        # Under Calico it is Felix that lets pods out of the pods' network; there is none here.
        self.ping(pods[0], *addresses[1:], *([] if self.which == "calico" else [CONTROL]))
        if self.which == "flannel":
            expect(set(addresses) <= self.host_locals_files(), f"host-local's files: {self.host_locals_files()}")
        else:
            self.holders_are_right()
            self.check()
        self.cluster.kubectl("delete", "deployment", "web", "--wait=true")
        if self.which == "flannel":
            wait_for(lambda: not set(addresses) & self.host_locals_files(), "files go", 60)
        else:
            wait_for(lambda: not set(addresses) & set(self.held()), "addresses are given back", 60)
        number = "05" if self.which == "calico" else "10"
        said = json.loads(self.node.read(f"/etc/cni/net.d/{number}-croft.conflist"))["plugins"][0]
        expect_equal(said["type"], self.which, "who gives interfaces")
        say(f"{self.which}: five pods reach each other in {range_}, and give their addresses back")

    def is_taken_back_without_helm(self):
        """As docs/install.md says, but for what deletes the objects."""
        page = (TREE / "docs" / "install.md").read_text()
        commands = page[page.index("**Uninstall without helm.**"):].split("```")[1].splitlines()
        for line in commands:
            program, *words = shlex.split(line, comments=True) or [""]
            if program == "kubectl" and words[0] == "-n":
                self.cluster.kubectl(*words, timeout=180)
                wait_for(lambda: not self.held(), "nobody holds an address", 90)
        for path in ("/etc/cni/net.d/10-croft.conflist", "/etc/cni/net.d/croft-kubeconfig", "/opt/cni/bin/croft-ipam"):
            expect(not self.node.exists(path), f"{path} is gone")
        wait_for(lambda: not self.node.is_ready(), "the node has no network again", 60)
        say("taken back by kubectl alone")


def chapters_of(cluster):
    plugin = Plugin(cluster, os.environ["CROFT_MAIN_PLUGIN_TEST"])
    return (plugin.gives_addresses, *([plugin.is_taken_back_without_helm] if plugin.which == "bridge" else []))


def outside(bin_dir, which):
    with tempfile.TemporaryDirectory(prefix="croft-plugins-") as folder:
        others_plugins(which, bin_dir, folder)
        os.environ["CROFT_OTHERS_PLUGINS"], os.environ["CROFT_MAIN_PLUGIN_TEST"] = folder, which
        in_cluster_namespaces(__file__, bin_dir, 400)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(lambda: outside(sys.argv[1], sys.argv[2]), 3500)
    else:
        main(lambda: inside(*sys.argv[1:], chapters_of), 380)
