"""croftd install on a real kube-apiserver: the plugin, its kubeconfig with a token of its own, the network configuration
last; the agent keeps the kubeconfig; all of it is taken back. What stands in the way: install_choices.py, and a register that takes no
writes: kube_calico_ipam.py. Another version while pods come and go: upgrade.py.
"""

import base64
import json
import shutil
import subprocess

from etcd_lib import Node
from kube_agent import start_agent
from kube_store import write_kubeconfig
from lib import PLUGINS, expect, expect_equal, own_environment, say, wait_for


class Host:
    """The directories of a runtime."""

    def __init__(self, world, kube, name="host"):
        self.world, self.kube = world, kube
        self.bin, self.conf = world.directory / name / "bin", world.directory / name / "net.d"
        self.bin.mkdir(parents=True)
        self.conf.mkdir()
        for plugin in ("ptp", "portmap"):
            shutil.copy(PLUGINS / plugin, self.bin / plugin)
        self.kubeconfig, self.conflist = self.conf / "croft-kubeconfig", self.conf / "10-croft.conflist"

    def install(self, *options, store=None, main="ptp", server=None):
        store = store or f"kube:{self.world.directory}/kubeconfig-croft-node"
        how = ["--main-plugin", main] if main else []
        return subprocess.run([self.world.bin / "croftd", "install", "--store", store, "--node", "oak", *how,
                               "--cni-bin-dir", self.bin, "--cni-conf-dir", self.conf, "--api-server", server or self.kube.url, *options],
                              env=own_environment(self.world.directory), capture_output=True, text=True, timeout=60, check=False)

    def ipam(self):
        return json.loads(self.conflist.read_text())["plugins"][0]["ipam"]

    def node(self):
        """Calls of what was installed, by what was installed."""
        node = Node(self.world, self.ipam()["store"], "oak")
        node.ipam = {**self.ipam(), "log_file_path": str(self.world.directory / "ipam.log")}
        installed = self.bin

        class There:
            bin, directory = installed, self.world.directory

        node.world = There
        return node


def done(answer, what):
    expect_equal((answer.returncode, answer.stderr), (0, ""), f"{what}: {answer.stdout}")
    return answer.stdout


def refused(host, answer, code, *words):
    expect_equal(answer.returncode, code, f"exit code of {answer.args}: {answer.stdout} {answer.stderr}")
    for word in words:
        expect(str(word) in answer.stderr, f"{word} is named: {answer.stderr}")
    expect(not host.conflist.exists(), f"no configuration was written: {answer.stderr}")
    say(f"refused: {answer.stderr.strip()}")


def claims_of(kubeconfig):
    token = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
    middle = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))


def is_a_node(kube, host):
    """Blocks are claimed for the node that was named: for none that the cluster has not."""
    refused(host, host.install(), 1, "--node", '"oak"', "kubectl get nodes", "--no-probe")
    for directory in ("net.d", b"/etc/\xff"):
        refused(host, host.install("--cni-conf-dir-on-host", directory), 2, "croft-kubeconfig")
    expect_equal(sorted(p.name for p in [*host.bin.iterdir(), *host.conf.iterdir()]), ["portmap", "ptp"], "nothing was written")
    done(host.install("--no-probe"), "a node that joins later")
    done(host.install("--uninstall", main=None), "taken back")
    kube.make_node("oak")


def by_name(world, kube, host):
    """A kubeconfig whose server has a name, as kubeadm's controlPlaneEndpoint: the plugin gets an address, and the certificate's name;
    here another address than those of the certificate, as behind a load balancer."""
    named = json.loads((world.directory / "kubeconfig-croft-node").read_text())
    port = int(kube.url.rsplit(":", 1)[1])
    other = f"https://127.0.0.2:{port}"
    named["clusters"][0]["cluster"]["server"] = f"https://localhost:{port}"
    path = world.directory / "kubeconfig-named"
    path.write_text(json.dumps(named))
    path.chmod(0o600)
    install = lambda server, *more: host.install(*more, store=f"kube:{path}", server=server)
    refused(host, install(f"https://localhost:{port}"), 2, "localhost", "looks up no names", "--api-server", "--api-server-name localhost")
    refused(host, install(other), 4, "the plugin's STATUS", "127.0.0.2")
    done(install(other, "--api-server-name", "localhost"), "with the certificate's name")
    cluster = json.loads(host.kubeconfig.read_text())["clusters"][0]["cluster"]
    expect_equal((cluster["server"], cluster["tls-server-name"]), (other, "localhost"), "what the plugin asks")
    node = host.node()
    node.add("by-name")
    node.delete("by-name")
    done(host.install("--uninstall", main=None), "taken back")


def installs(world, kube, host):
    say(done(host.install("--dry-run"), "a dry run").splitlines()[0])
    expect_equal(sorted(p.name for p in [*host.bin.iterdir(), *host.conf.iterdir()]), ["portmap", "ptp"], "a dry run writes nothing")
    done(host.install(), "the first installation")
    expect_equal(host.kubeconfig.stat().st_mode & 0o777, 0o600, "mode of the kubeconfig")
    expect_equal(claims_of(host.kubeconfig)["sub"], "system:serviceaccount:croft-system:croft-plugin", "whose token")
    node = host.node()
    node.add("first")
    shown = world.croft(f"kube:{world.directory}/kubeconfig-croft-operator", "node", "show", "oak", "--plugin-kubeconfig",
                        str(host.kubeconfig))[0]
    expect_equal((shown["held"], shown["pluginToken"]["hasEnded"]), (1, False), f"croft node show: {shown}")
    inode = (host.bin / "croft-ipam").stat().st_ino
    done(host.install(), "the same again")
    expect_equal((host.bin / "croft-ipam").stat().st_ino, inode, "the same program is left as it is")
    node.delete("first")
    # The plugin's token can't make tokens.
    answer = host.install(store=f"kube:{host.kubeconfig}")
    expect_equal(answer.returncode, 4, f"a plugin's token makes tokens: {answer.stdout} {answer.stderr}")
    expect("serviceaccounts/token" in answer.stderr and "access.yaml" in answer.stderr, answer.stderr)


def keeps_and_takes_back(world, kube, host):
    """The agent writes what is missing or of another server."""
    store = f"kube:{world.directory}/kubeconfig-croft-node"
    agent, _ = start_agent(world, store, "--plugin-kubeconfig", str(host.kubeconfig), "--api-server", kube.url)
    log = lambda: (world.directory / "agent.log").read_text()
    host.kubeconfig.unlink()
    wait_for(host.kubeconfig.exists, "a kubeconfig that was deleted comes back", 30)
    # The line comes once the file is there.
    wait_for(lambda: "it was not there" in log(), "why it was written is told", 30)
    host.node().add("after-deletion")

    other = json.loads(host.kubeconfig.read_text())
    other["clusters"][0]["cluster"]["server"] = "https://192.0.2.7:6443"
    host.kubeconfig.write_text(json.dumps(other))
    wait_for(lambda: kube.url in host.kubeconfig.read_text(), "an API server that moved is written down", 30)
    expect_equal(host.kubeconfig.stat().st_mode & 0o777, 0o600, "mode of the kubeconfig")
    token = json.loads(host.kubeconfig.read_text())["users"][0]["user"]["token"]
    expect(token not in log() and token.split(".")[1] not in log(), "a token in the log")
    host.node().delete("after-deletion")
    # What was taken back it writes not anew.
    text = done(host.install("--uninstall", main=None), "taking back")
    wait_for(lambda: "Croft was taken back from this node" in log(), "the agent says why it writes none", 60)
    say(text.strip())
    expect_equal(sorted(p.name for p in [*host.bin.iterdir(), *host.conf.iterdir()]), ["portmap", "ptp"], "what is left")
    agent.terminate()
    expect_equal(agent.wait(20), 0, "the agent ends")


def play(world, kube):
    write_kubeconfig(world, kube, "croft-node")
    operator = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    host = Host(world, kube)
    is_a_node(kube, host)
    world.croft(operator, "pool", "create", "a", "--cidr", "10.79.0.0/24", "--block-size", "28")
    by_name(world, kube, host)
    installs(world, kube, host)
    keeps_and_takes_back(world, kube, host)
    expect_equal(world.held(operator), {}, "all is given back")
