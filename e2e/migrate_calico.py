"""A cluster whose nodes change from calico-ipam to croft-ipam by the commands of docs/runbooks/migrate.md, word for word; what doesn't
work is refused by name.
"""

import json
import os
import re
import shutil
import subprocess

from kube_install import Host
from kube_store import write_kubeconfig
from lib import TREE, begin, call_environment, expect, expect_equal, finish, own_environment, say

RUNBOOK = TREE / "docs" / "runbooks" / "migrate.md"


def commands_of_runbook():
    """The lines of the section `From Calico` that are commands of Croft's, in their order."""
    section = RUNBOOK.read_text().split("\n## From Calico\n")[1].split("\n## ")[0]
    lines = [line for block in re.findall(r"^```\w*\n(.*?)^```", section, re.MULTILINE | re.DOTALL) for line in block.splitlines()]
    commands = [line.split("#")[0].split() for line in lines if line.startswith("croft")]
    expect(len(commands) >= 5, f"the runbook has its commands: {lines}")
    return commands


class CalicoNode:
    """A node as Calico's installer leaves it: its network, its kubeconfig, its plugin."""

    def __init__(self, world, kube, name):
        self.world, self.host = world, Host(world, kube, name)
        shutil.copy(self.host.bin / "ptp", self.host.bin / "calico")
        self.operator = write_kubeconfig(world, kube, "croft-operator")
        self.agent = write_kubeconfig(world, kube, "croft-node")
        self.conflist = self.host.conf / "10-calico.conflist"
        self.calicos = json.dumps({"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [
            {"type": "calico", "datastore_type": "kubernetes", "nodename": name, "mtu": 0, "ipam": {"type": "calico-ipam"},
             "kubernetes": {"kubeconfig": str(self.host.conf / "calico-kubeconfig")}},
            {"type": "portmap", "snat": True, "capabilities": {"portMappings": True}}]})
        self.conflist.write_text(self.calicos)
        self.access = (0o640, 1234, 2345)  # of some tool that reads it
        os.chown(self.conflist, *self.access[1:])
        self.conflist.chmod(self.access[0])
        self.name = name

    def do(self, command):
        """A command of the runbook; the directories of this node stand for those of every node."""
        places = {"/etc/cni/net.d": str(self.host.conf), "/etc/croft/operator-kubeconfig": str(self.operator),
                  "/etc/croft/node-kubeconfig": str(self.agent)}
        words = []
        for word in command:
            for there, here in places.items():
                word = word.replace(there, here)
            words.append(word)
        env = {**own_environment(self.world.directory), "CROFT_CNI_BIN_DIR": str(self.host.bin),
               "CROFT_CNI_CONF_DIR": str(self.host.conf), "CROFT_NODE": self.name, "PATH": os.environ["PATH"]}
        return subprocess.run([str(self.world.bin / words[0]), *words[1:]], env=env, capture_output=True, text=True, timeout=120,
                              check=False)

    def call(self, command, container):
        """As Calico's plugin does it: the IPAM plugin that the file names gets the plugin's whole configuration."""
        network = json.loads(self.conflist.read_text())
        plugin = network["plugins"][0]
        config = {"cniVersion": network["cniVersion"], "name": network["name"], **plugin}
        args = f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={container};K8S_POD_UID=u"
        env = call_environment(self.world, command, container, args, CNI_PATH=str(self.host.bin), PATH=os.environ["PATH"])
        code, answer, err = finish(begin(self.host.bin / plugin["ipam"]["type"], json.dumps(config), env))
        expect_equal(code, 0, f"{command} {container}: {answer} {err}")

    def has_its_access(self, what):
        status = self.conflist.stat()
        expect_equal((status.st_mode & 0o7777, status.st_uid, status.st_gid), self.access, f"{what}: mode and owner of the network")

    def is_untouched(self, what):
        self.has_its_access(what)
        expect_equal(self.conflist.read_text(), self.calicos, f"{what}: the network")
        expect(not list(self.host.conf.glob("10-calico.conflist.*")), f"{what}: nothing beside it: {list(self.host.conf.iterdir())}")


def by_the_runbook(world, kube):
    """Each command as it stands there, then pods, then the way back."""
    world.pool(f"kube:{write_kubeconfig(world, kube, 'croft-operator')}", "q", "10.61.0.0/24", "--gateway", "none")
    node, commands = CalicoNode(world, kube, "oak"), commands_of_runbook()
    ways_back = [c for c in commands if "--uninstall" in c]
    expect_equal(commands[-1:], ways_back, "the way back is at the end of the section")
    for command in commands[:-len(ways_back)]:
        done = node.do(command)
        expect_equal((done.returncode, done.stderr), (0, ""), f"{' '.join(command)}: {done.stdout}")
        say(f"{' '.join(command)}: {done.stdout.strip().splitlines()[-1]}")
    expect_equal(json.loads(node.conflist.read_text())["plugins"][0]["ipam"]["type"], "croft-ipam", "the IPAM of the file")
    node.has_its_access("switched")
    node.call("ADD", "pod")
    listed = world.croft(f"kube:{node.operator}", "ip", "list")
    expect(any(one["containerId"] == "pod" and one["node"] == "oak" for one in listed if one["state"] == "held"), f"{listed}")
    node.call("DEL", "pod")
    os.replace(f"{node.conflist}.before-croft", node.conflist)
    for command in ways_back:
        done = node.do(command)
        expect_equal((done.returncode, done.stderr), (0, ""), f"{' '.join(command)}: {done.stdout}")
    node.is_untouched("after the way back")
    expect_equal(sorted(p.name for p in node.host.bin.iterdir()), ["calico", "portmap", "ptp"], "programs after the way back")


def refuses(world, kube):
    """A file is not switched to what is not there, and not taken back over what somebody wrote."""
    node = CalicoNode(world, kube, "elm")
    switch = ["croft", "migrate", "calico", "--conflist", str(node.conflist)]
    with_store = [*switch, "--plugin-store", "kube:/etc/cni/net.d/croft-kubeconfig"]
    program = node.host.bin / "croft-ipam"

    def refused(command, *words):
        before = node.conflist.read_text()
        done = node.do(command)
        expect_equal(done.returncode, 5, f"{' '.join(command)}: {done.stdout}{done.stderr}")
        for word in words:
            expect(str(word) in done.stderr, f"{word} is named: {done.stderr}")
        expect_equal(node.conflist.read_text(), before, "the network is as it was")
        say("refused: " + done.stderr.strip())

    refused([*with_store, "--apply"], program, "is not there", "croftd install --no-conflist", "--cni-bin-dir")
    install = ["croftd", "install", "--no-conflist", "--store", "kube:/etc/croft/node-kubeconfig"]
    asked = node.do([*install, "--main-plugin", "calico"])
    expect(asked.returncode != 0 and "--no-conflist" in asked.stderr, f"both: {asked.stdout}{asked.stderr}")
    done = node.do(install)
    expect_equal((done.returncode, done.stderr), (0, ""), f"{done.stdout}")
    expect_equal(sorted(p.name for p in node.host.conf.iterdir()), ["10-calico.conflist", "croft-install.record", "croft-kubeconfig"],
                 "no network was written")
    refused([*switch, "--apply"], node.host.conf / "calico-kubeconfig", "STATUS", "--plugin-store")
    node.is_untouched("after all refusals")

    backup = node.conflist.with_name(node.conflist.name + ".before-croft")

    def switched(what, *words):
        done = node.do([*with_store, "--apply"])
        expect((done.returncode, done.stderr) == (0, "") and all(word in done.stdout for word in words), f"{what}: {done}")
        expect('"croft-ipam"' in node.conflist.read_text(), f"{what}: {node.conflist.read_text()}")
        expect_equal(backup.read_text(), node.calicos, f"{what}: what was kept")

    switched("at first", "switched; ")
    switched("once more", "nothing to switch")
    node.conflist.write_text(node.calicos)  # as when it is killed after the copy
    switched("after a kill", "switched; ")
    node.conflist.write_text(node.calicos.replace('"mtu": 0', '"mtu": 1400'))
    refused([*with_store, "--apply"], backup, "has something else than", "remove the older one")
    expect_equal(backup.read_text(), node.calicos, "what was kept, beside a newer one")

    # Calico's records are in an etcd, of which this register knows nothing.
    config = json.loads(node.calicos)
    plugin = {**config["plugins"][0], "datastore_type": "etcdv3", "etcd_endpoints": "https://10.0.0.9:2379"}
    node.conflist.write_text(json.dumps({**config, "plugins": [plugin]}))
    refused([*with_store, "--apply"], "etcd:", "--plugin-store", "another kind")


def play(world, kube):
    by_the_runbook(world, kube)
    refuses(world, kube)
