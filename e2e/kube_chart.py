"""The chart: what a real helm renders is what deploy/kubernetes has, what a real API server takes, and no more; values that
make no sense are refused by name.

usage: kube_chart.py BIN_DIR VERSION
"""

import json
import os
import pathlib
import re
import sys

from kube_apiserver_lib import KubeApiserver, program
from kube_store import calico_definitions, write_kubeconfig
from lib import World, expect, expect_equal, main, run, say

TREE = pathlib.Path(__file__).resolve().parent.parent
CHART = TREE / "deploy" / "helm" / "croft"
PLUGINS = ("ptp", "bridge", "calico", "flannel")
EVERYTHING = ["namespace.create=true", "agent.annotationsFromApi=true", "install.ipv6=true", "install.mtu=1400",
              "install.masquerade=false", "install.alsoAs={host-local,calico-ipam}", "apiServer.host=10.0.0.1",
              "apiServer.port=6443", "controller.replicas=3", "controller.allocateNodeCidrs=true",
              "controller.clusterCidr=10.0.0.0/8", "controller.repairServiceRanges=true", "defaultPools.ipv4Cidr=10.1.0.0/16",
              "defaultPools.ipv6Cidr=fd00::/48", "agent.extraArgs={--log-calls}"]
REFUSED = (("", "mainPlugin"), ("mainPlugin=cilium", "mainPlugin"), ("mainPlugin=ptp,typo=1", "typo"),
           ("mainPlugin=ptp,install.mtu=70000", "mtu"), ("mainPlugin=ptp,install.conflistName=../x.conflist", "conflistName"),
           ("mainPlugin=ptp,defaultPools.ipv4Cidr=ten", "ipv4Cidr"), ("mainPlugin=ptp,install.cniBinDir=opt", "cniBinDir"),
           ("mainPlugin=ptp,controller.grace=5", "grace"))


class Tools:
    """helm and kubectl, by these names."""

    def __init__(self, world):
        self.folder = world.directory / "tools"
        self.folder.mkdir()
        for name in ("helm", "kubectl"):
            (self.folder / name).symlink_to(program("1.36", "kube-node"))
        self.home = {"HOME": str(world.directory), "PATH": os.environ["PATH"]}

    def helm(self, *arguments, check=True):
        return run(self.folder / "helm", *arguments, check=check, env=self.home)

    def render(self, *values, check=True):
        return self.helm("template", "croft", CHART, "-n", "croft-system", *(["--set", ",".join(values)] if any(values) else []),
                         check=check)

    def kubectl(self, kubeconfig, *arguments, given=""):
        return run(self.folder / "kubectl", "--kubeconfig", kubeconfig, *arguments, env=self.home, stdin=given)


def renders(world, tools):
    run(TREE / "scripts" / "manifests", "--check", world.bin, env={**tools.home, "HELM": str(tools.folder / "helm")})
    for values, word in REFUSED:
        done = tools.render(values, check=False)
        expect(done.returncode != 0 and word in done.stderr, f"{values}: {done.returncode} {done.stderr}")
    for plugin in PLUGINS:
        text = tools.render(f"mainPlugin={plugin}", *EVERYTHING).stdout
        expect(f"--main-plugin={plugin}" in text, plugin)
    text = tools.render("mainPlugin=ptp", "metrics.serviceMonitor=true", "metrics.prometheusRule=true",
                        "metrics.dashboard=true").stdout
    kinds = set(re.findall(r"^kind: (\w+)$", text, re.MULTILINE))
    expect({"ServiceMonitor", "PrometheusRule", "ConfigMap"} <= kinds, f"{kinds}")
    board = json.loads(json.loads(re.search(r'^  croft\.json: (".*")$', text, re.MULTILINE)[1]))
    named = set(re.findall(r"\b((?:kube_)?(?:apiserver|node_ipam|leader)_\w+)", json.dumps(board) + text))
    known = (TREE / "src" / "edge" / "metrics" / "metrics.cc").read_text()
    expect_equal({name for name in named if f'"{name}"' not in known}, set(), "figures that nobody gives")
    for page in re.findall(r"runbook: (\S+)", text):
        expect((TREE / page).exists(), f"{page} is there")
    say(f"rendered for {', '.join(PLUGINS)}; {len(REFUSED)} bad values refused by name; alerts and board name {len(named)} figures")


def is_taken(world, tools):
    with KubeApiserver(world, sys.argv[2]) as kube:
        admin = write_kubeconfig(world, kube)
        tools.kubectl(admin, "create", "namespace", "croft-system")
        for plugin in PLUGINS:
            text = tools.render(f"mainPlugin={plugin}", *EVERYTHING[1:]).stdout
            said = tools.kubectl(admin, "apply", "--dry-run=server", "-f", "-", given=text).stdout
            expect("daemonset.apps/croft-agent" in said and "deployment.apps/croft-controller" in said, said)
        # What the tree ships of Calico's kinds goes beside, and under, what Calico ships.
        for name in ("crds-croft.yaml", "crds-calico.yaml"):
            tools.kubectl(admin, "apply", "--server-side", "-f", TREE / "deploy" / "kubernetes" / name)
        for page in sorted((TREE / "deploy" / "kubernetes").glob("*.yaml")):
            tools.kubectl(admin, "apply", "--dry-run=server", "-f", page)
        for text in calico_definitions():
            tools.kubectl(admin, "apply", "--server-side", "--force-conflicts", "-f", "-", given=text)
        say("a real API server takes all of it, and Calico's own kinds over Croft's")


def test():
    with World("chart", sys.argv[1]) as world:
        tools = Tools(world)
        renders(world, tools)
        is_taken(world, tools)


if __name__ == "__main__":
    main(test)
