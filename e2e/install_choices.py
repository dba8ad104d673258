"""What `croftd install` writes and refuses, on a node without a cluster: the register that was named is the one that the plugin
asks.

usage: install_choices.py BIN_DIR [CASE...]
"""

import base64
import fcntl
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from etcd_lib import Etcd
from lib import PLUGINS, World, expect, expect_equal, main, own_environment, run, wait_for

KUBECONFIG = {"apiVersion": "v1", "kind": "Config", "current-context": "a",
              "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:9", "certificate-authority-data": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="}}],
              "users": [{"name": "a", "user": {"token": "t"}}],
              "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}


class Host:
    """The directories of a runtime."""

    def __init__(self, world, name):
        self.world = world
        self.bin, self.conf = world.directory / name / "bin", world.directory / name / "net.d"
        self.bin.mkdir(parents=True)
        self.conf.mkdir()
        for plugin in ("ptp", "bridge", "portmap", "host-local"):
            shutil.copy(PLUGINS / plugin, self.bin / plugin)
        # They only have to be there.
        for plugin in ("flannel", "calico"):
            shutil.copy(PLUGINS / "ptp", self.bin / plugin)

    def install(self, *options, environment=None):
        if "calico" in options and "--calico-kubeconfig" not in options:
            calicos = self.world.directory / "calico-kubeconfig"
            calicos.write_text("apiVersion: v1\n")
            options = (*options, "--calico-kubeconfig", calicos)
        return subprocess.run([str(part) for part in (self.world.bin / "croftd", "install", "--cni-bin-dir", self.bin, "--cni-conf-dir",
                                                      self.conf, *options)],
                              env={**os.environ, **own_environment(self.world.directory), **(environment or {})}, capture_output=True,
                              text=True, timeout=60, check=False)

    def names(self):
        return sorted(path.name for path in self.conf.iterdir())


def done(answer):
    expect_equal((answer.returncode, answer.stderr), (0, ""), f"{answer.args}: {answer.stdout}")
    return answer.stdout


def refused(answer, code, *words):
    expect_equal(answer.returncode, code, f"exit code of {answer.args}: {answer.stdout} {answer.stderr}")
    for word in words:
        expect(str(word) in answer.stderr, f"{word} is named: {answer.stderr}")


def group(world):
    """Of Calico's kinds: the plugin asks the one that was named, and an agent that would ask the other does not start."""
    kubeconfig = world.directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(KUBECONFIG))
    kubeconfig.chmod(0o600)
    host = Host(world, "group")

    def store_of(store, environment=None):
        shown = done(host.install("--dry-run", "--main-plugin", "ptp", "--node", "oak", "--store", store, environment=environment))
        return json.loads(shown[shown.index("{"):])["plugins"][0]["ipam"]["store"]

    url, own = f"kube:{kubeconfig}", f"kube:{host.conf}/croft-kubeconfig"
    v3 = "?group=projectcalico.org/v3"
    expect_equal(store_of(url), own, "no group")
    expect_equal(store_of(url + v3), own + v3, "the group that was named")
    # The kubeconfig that is written has one context.
    expect_equal(store_of(f"{url}?context=a&group=projectcalico.org/v3"), own + v3, "the group, and not the context")
    expect_equal(store_of(url, {"CALICO_API_GROUP": "ProjectCalico.org/v3"}), own + v3, "that of the environment")
    expect_equal(store_of(url + "?group=crd.projectcalico.org/v1"), own + "?group=crd.projectcalico.org/v1", "the older one")
    for store, plugin in ((url + v3, own), (url, own + v3)):
        agent = subprocess.run([str(world.bin / "croftd"), "agent", "--store", store, "--plugin-store", plugin, "--node", "oak", "--socket",
                                str(world.directory / "a.sock"), "--tombstones", "none"],
                               env={**os.environ, **own_environment(world.directory)}, capture_output=True, text=True, timeout=30, check=False)
        refused(agent, 2, "--plugin-store", "--store", "none", "projectcalico.org/v3")


FLANNELS = {"name": "cbr0", "cniVersion": "0.3.1", "plugins": [{"type": "flannel", "delegate": {"hairpinMode": True}}, {"type": "portmap"}]}


def flannel(world):
    """Its network keeps its name, under which host-local has its files: those of pods that live are not given again."""
    host = Host(world, "flannel")
    theirs = host.conf / "10-flannel.conflist"
    own = host.conf / "10-croft.conflist"
    name = lambda: json.loads(own.read_text())["name"]
    install = lambda *more, main="flannel": host.install("--main-plugin", main, "--node", "oak", "--store", world.register, *more)
    theirs.write_text(json.dumps({**FLANNELS, "name": "cbr1"}))
    for main in ("flannel", "ptp"):
        refused(install("--network-name", "k8s-pod-network", main=main), 5, host.conf, theirs.name, own.name, "cbr1", "k8s-pod-network", "--network-name",
                "--replace-network")
    refused(install("--replace-network", "cbr0", main="ptp"), 5, "cbr1", "migrate.md")
    expect_equal(host.names(), [theirs.name], "nothing was written")
    done(install())
    expect_equal(name(), "cbr1", "the name of the network that is there")
    theirs.write_text(json.dumps(FLANNELS))
    done(install())
    expect_equal(name(), "cbr1", "that of the installation before, whatever flannel writes later")
    done(host.install("--uninstall"))
    own.unlink(missing_ok=True)
    done(install("--network-name", "k8s-pod-network", "--replace-network", "cbr0"))
    expect_equal(name(), "k8s-pod-network", "as it was told")
    done(install())
    expect_equal(name(), "k8s-pod-network", "an upgrade keeps it")
    done(host.install("--uninstall"))
    theirs.unlink()
    done(install())
    expect_equal(name(), "cbr0", "what flannel will call it")
    done(host.install("--uninstall"))
    # Others that are there too are no obstacle.
    (host.conf / "87-podman.conflist").write_text(json.dumps({"name": "podman", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}]}))
    done(install(main="ptp"))
    expect_equal(name(), "k8s-pod-network", "the default")


HOST_LOCAL = {"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/25"}]]}


def others(world):
    """Who gives the addresses changes with the network: whoever gives them next does not know what living pods have, and is refused."""
    host = Host(world, "others")
    own, calicos = host.conf / "10-croft.conflist", host.conf / "05-croft.conflist"
    install = lambda *more, main="ptp", store=world.register: host.install("--main-plugin", main, "--node", "oak", "--store", store, *more)

    def network(file, name, plugin):
        for path in host.conf.iterdir():
            path.unlink()
        (host.conf / file).write_text(json.dumps({"cniVersion": "0.3.1", "name": name, "plugins": [plugin, {"type": "portmap"}]}))

    # (file, name, its first plugin, main plugins)
    for file, name, plugin, mains in (
            ("10-kindnet.conflist", "kindnet", {"type": "ptp", "ipam": {**HOST_LOCAL, "dataDir": "/run/cni-ipam-state"}}, ("ptp", "bridge", "flannel")),
            ("10-calico.conflist", "k8s-pod-network", {"type": "calico", "ipam": {"type": "host-local", "subnet": "usePodCidr"}}, ("calico",)),
            ("10-containerd-net.conflist", "containerd-net", {"type": "bridge", "ipam": HOST_LOCAL}, ("ptp", "bridge")),
            ("20-runtime.conflist", "r", {"type": "bridge", "capabilities": {"ipRanges": True}, "ipam": {"type": "host-local"}}, ("ptp",)),
            ("10-weave.conflist", "weave", {"type": "weave-net"}, ("ptp", "flannel")),
            ("20-dhcp.conflist", "lan", {"type": "macvlan", "ipam": {"type": "dhcp"}}, ("ptp",)),
            ("20-vpc.conflist", "cloud", {"type": "ptp", "ipam": {"type": "croft-vpc"}}, ("ptp",)),
            ("20-calico.conflist", "k8s-pod-network", {"type": "calico", "ipam": {"type": "calico-ipam"}}, ("ptp", "flannel")),
            ("20-multus.conflist", "m", {"type": "multus", "clusterNetwork": "/elsewhere/flannel.conflist"}, ("ptp", "flannel"))):
        for main in mains:
            network(file, name, plugin)
            before = (host.names(), sorted(os.listdir(host.bin)))
            for more in ((), ("--dry-run",), ("--network-name", name), ("--replace-network", "another")):
                refused(install(*more, main=main), 5, host.conf, file, name, "--replace-network", "migrate.md", "given again")
            expect_equal((host.names(), sorted(os.listdir(host.bin))), before, "nothing was written")
            said = install("--replace-network", name, main=main)
            if file < (calicos if main == "calico" else own).name:
                refused(said, 5, file, "--conflist-name")
                continue
            expect_equal((said.returncode, said.stderr), (0, ""), "once somebody says that its pods are gone")
            done(install(main=main))
            done(host.install("--uninstall"))

    # A runtime's example, whose addresses are in no pool.
    for file, subnet in (("100-crio-bridge.conflist", "10.85.0.0/16"), ("87-podman.conflist", "10.88.0.0/16")):
        plugin = {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}], [{"subnet": "1100:200::/24"}]]}}
        network(file, "example", plugin)
        refused(install(store=f"sqlite:{world.directory}/without-pools.db"), 5, file, "no pool yet", "--replace-network", "Remove")
        refused(install("--no-probe"), 5, file, "--no-probe")
        refused(install(main="flannel"), 5, file, "podCIDR")
        said = done(install())
        expect(file in said and "keep their addresses" in said, said)
        done(host.install("--uninstall"))
    for plugin in ({"type": "loopback"}, {"type": "bridge", "ipam": {}}, {"type": "bridge", "ipam": {"type": "host-local"}}):
        for main in ("ptp", "flannel"):
            network("87-x.conflist", "x", plugin)
            done(install(main=main))
            done(host.install("--uninstall"))


def behind(world):
    """What a runtime passes over, or took only later, hides no network behind it, whose pods may live."""
    host = Host(world, "behind")
    install = lambda *more, main="ptp", store=world.register: host.install("--main-plugin", main, "--node", "oak", "--store", store, *more)
    kindnet = {"cniVersion": "0.3.1", "name": "kindnet", "plugins": [{"type": "ptp", "ipam": HOST_LOCAL}, {"type": "portmap"}]}
    loopback, podmans = {"type": "loopback"}, {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]]}}
    shutil.copy(PLUGINS / "loopback", host.bin / "loopback")

    def files(**texts):
        for path in host.conf.iterdir():
            path.unlink()
        for file, text in texts.items():
            (host.conf / file).write_text(text if isinstance(text, str) else json.dumps(text))

    podman = {"cniVersion": "0.4.0", "name": "podman", "plugins": [podmans, {"type": "portmap"}]}
    for file, front in (("11-x.conflist", {"cniVersion": "0.4.0", "plugins": [loopback]}), ("11-x.conflist", {"cniVersion": "0.4.0", "name": "x", **loopback}),
                        ("11-x.conf", {"cniVersion": "0.4.0", "name": "x", "plugins": [loopback]}), ("11-x.conf", {"cniVersion": "0.4.0", **loopback}),
                        ("11-x.conflist", {"cniVersion": "0.4.0", "name": "x", "plugins": [loopback, {"foo": 1}]}),
                        ("11-x.conflist", {"cniVersion": 4, "name": "x", "plugins": [loopback]}),
                        ("11-x.conflist", {"cniVersion": "0.4.0", "name": "x", "plugins": [{"type": "macvlan", "master": "eth1"}]}),
                        ("11-podman.conflist", {**podman, "plugins": [podmans, {"type": "firewall"}, {"type": "tuning"}]}), ("11-podman.conflist", podman)):
        for main in ("ptp", "bridge", "flannel"):
            files(**{file: front, "20-kindnet.conflist": kindnet})
            if main == "flannel" and "podman" in file:
                continue  # it is refused itself
            refused(install(main=main), 5, "20-kindnet.conflist", "kindnet", "given again", "--replace-network", "Remove")
            expect_equal(host.names(), sorted([file, "20-kindnet.conflist"]), "nothing was written")
            done(install("--replace-network", "kindnet", main=main))
            # What has its place is not asked again.
            done(install(main=main))
            if main != "flannel":  # whose own network nothing tells from flannel's
                (host.conf / "croft-install.record").unlink()
                done(install(main=main))
            done(host.install("--uninstall"))
    # What is beside the network in use and gives none of ours stops nothing, and where nobody knows neither.
    for main, own, first in (("flannel", "10-croft.conflist", FLANNELS), ("calico", "05-croft.conflist", CALICOS)):
        store = f"kube:{world.directory}/kubeconfig" if main == "calico" else world.register
        files(**{f"10-{main}.conflist": first, "87-podman.conflist": podman, "200-loopback.conf": {"cniVersion": "0.4.0", "name": "lo", **loopback}})
        for plugin in ("bandwidth", "calico-ipam"):
            shutil.copy(PLUGINS / "ptp", host.bin / plugin)
        said = install("--dry-run", "--no-probe", main=main, store=store)
        expect("87-podman.conflist" in done(said) and "is there too" in said.stdout and own in said.stdout, said.stdout)
    files(**{"87-podman.conflist": podman, "100-crio-bridge.conflist": {**podman, "name": "crio"}, "99-broken.conf": ""})
    expect("87-podman" in done(install()), "their ranges are apart, and what can't be read is behind")
    done(host.install("--uninstall"))


def switched(world):
    """The same of Croft's own networks: under flannel host-local gives, else the register."""
    host = Host(world, "switched")
    own, record = host.conf / "10-croft.conflist", host.conf / "croft-install.record"
    install = lambda main, *more: host.install("--main-plugin", main, "--node", "oak", "--store", world.register, *more)
    from_register, from_host_local = ("ptp", "bridge", "calico"), ("flannel",)
    for before, after in ((from_host_local, from_register), (from_register, from_host_local)):
        for first in before:
            done(install(first))
            for second in after:
                for more in ((), ("--dry-run",), ("--network-name", json.loads(record.read_text())["network"])):
                    files = {path.name: path.read_bytes() for path in host.conf.iterdir()}
                    refused(install(second, *more), 5, "croft.conflist", "given again", "--replace-network", "migrate.md")
                    expect_equal({path.name: path.read_bytes() for path in host.conf.iterdir()}, files, "nothing was written")
                # Nor once its file is lost: the record knows.
                lost = next(path for path in host.conf.iterdir() if path.name.endswith("-croft.conflist"))
                text = lost.read_bytes()
                lost.unlink()
                refused(install(second), 5, record.name, "given again", "--replace-network")
                lost.write_bytes(b"")
                refused(install(second), 5, "--replace-network")
                for spoiled in ({}, {"cniVersion": "1.0.0", "name": "k8s-pod-network", "plugins": []},
                                {"cniVersion": "1.0.0", "name": "x", "plugins": [{"type": "loopback"}]}):
                    lost.write_text(json.dumps(spoiled))
                    refused(install(second), 5, record.name, "given again", "--replace-network")
                    done(install(first, "--dry-run"))
                lost.write_bytes(text)
            for other in before:
                done(install(other))
            done(install(after[0], "--replace-network", json.loads(record.read_text())["network"]))
            done(install(after[0]))
            done(host.install("--uninstall"))
    # host-local's directory has the network's name.
    done(install("flannel"))
    refused(install("flannel", "--network-name", "other"), 5, own.name, "cbr0", "other", "Leave --network-name out")
    done(install("flannel", "--network-name", "other", "--replace-network", "cbr0"))


def older_record(world):
    """A version that does not note who gives, as one that was rolled back to: the programs that it wrote say it."""
    for first, second in (("flannel", "ptp"), ("ptp", "flannel")):
        host = Host(world, f"older-{first}")
        (host.bin / "host-local").unlink()  # as Croft's own
        install = lambda main, *more: host.install("--main-plugin", main, "--node", "oak", "--store", world.register, *more)  # pylint: disable=cell-var-from-loop
        done(install(first))
        record = host.conf / "croft-install.record"
        noted = json.loads(record.read_text())
        for member in ("addressesFrom", "store"):
            noted.pop(member, None)
        record.write_text(json.dumps(noted) + "\n")
        own = host.conf / "10-croft.conflist"
        text = own.read_text()
        refused(install(second), 5, own.name, "given again")
        own.unlink()
        refused(install(second), 5, record.name, "given again", "--replace-network")
        done(install(first))
        record.write_text(json.dumps(noted) + "\n")
        expect_equal(own.read_text(), text, "the same again")
    # Under two names it may be either: the file says which, where it is there.
    host = Host(world, "older-both")
    (host.bin / "host-local").unlink()
    install = lambda main, *more: host.install("--main-plugin", main, "--node", "oak", "--store", world.register, "--also-as", "host-local", *more)
    done(install("ptp"))
    record = host.conf / "croft-install.record"
    noted = {key: value for key, value in json.loads(record.read_text()).items() if key != "addressesFrom"}
    record.write_text(json.dumps(noted) + "\n")
    done(install("bridge"))


def back_to_another(world):
    """What comes to the front when Croft's is taken back knows nothing of Croft's pods either."""
    host = Host(world, "back")
    install = lambda main, *more: host.install("--main-plugin", main, "--node", "oak", "--store", world.register, *more)
    kindnet = lambda subnet="10.9.0.0/25": json.dumps({"cniVersion": "0.3.1", "name": "kindnet", "plugins": [
        {"type": "ptp", "ipam": {"type": "host-local", "subnet": subnet}}]})
    ipam = {"cniVersion": "1.0.0", "name": "k8s-pod-network", "ipam": {"type": "croft-ipam", "store": world.register, "nodename": "oak",
                                                                     "log_file_path": str(world.directory / "back.log")}}

    def call(command):
        env = {"CNI_COMMAND": command, "CNI_CONTAINERID": "lives", "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0",
               "CNI_PATH": str(world.bin), **own_environment(world.directory)}
        run(world.bin / "croft-ipam", stdin=json.dumps(ipam), env=env)

    for place in ("20-kindnet.conflist", "10-croft.conflist"):  # behind Croft's, and kept under its name
        (host.conf / place).write_text(kindnet())
        done(install("ptp", "--replace-network", "kindnet"))
        call("ADD")
        names = (host.names(), sorted(os.listdir(host.bin)))
        for more in ((), ("--dry-run",)):
            refused(host.install("--uninstall", *more), 5, "nothing was changed", place, "host-local", "10.9.0.", "given again", "DaemonSets", "--force")
            expect_equal((host.names(), sorted(os.listdir(host.bin))), names, "nothing was taken back")
        call("DEL")
        done(host.install("--uninstall", "--dry-run"))
        call("ADD")
        if place.startswith("20"):
            (host.conf / place).write_text(kindnet("10.77.0.0/24"))
            done(host.install("--uninstall", "--dry-run"))
        done(host.install("--uninstall", "--force"))
        expect_equal([name for name in host.names() if name.endswith(".conflist")], [place], "what is in use then")
        (host.conf / place).unlink()
        call("DEL")
    # One that goes by the same records, and none at all.
    done(install("ptp"))
    call("ADD")
    done(host.install("--uninstall", "--dry-run"))
    call("DEL")
    done(host.install("--uninstall"))


def living(world):
    """Who says that no pod of a network lives is told which do, as far as its node can see it."""
    host, directory = Host(world, "living"), world.directory / "networks"
    (directory / "kindnet").mkdir(parents=True)
    (host.conf / "20-kindnet.conflist").write_text(json.dumps({"cniVersion": "0.3.1", "name": "kindnet", "plugins": [
        {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.9.0.0/25", "dataDir": str(directory)}}]}))
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, *more)
    refused(install(), 5, "drain", "DaemonSets", "static pods", "--replace-network")
    # What rests in the register is given again after that.
    resting = pod(world, "ADD", world.register, "rests")
    pod(world, "DEL", world.register, "rests")
    (directory / "kindnet" / resting).touch()
    refused(install("--replace-network", "kindnet", "--dry-run"), 5, resting, "give again")
    (directory / "kindnet" / resting).unlink()
    (directory / "kindnet" / "10.9.0.9").write_text("lives\r\neth0")
    (directory / "kindnet" / "last_reserved_ip.0").write_text("10.9.0.9")
    for more in ((), ("--dry-run",)):
        refused(install("--replace-network", "kindnet", *more), 5, f"10.9.0.9 ({directory}/kindnet/10.9.0.9)", "DaemonSets", "give again")
        expect_equal(host.names(), ["20-kindnet.conflist"], "nothing was written")
    (directory / "kindnet" / "10.9.0.9").rename(directory / "kindnet" / "10.200.0.9")  # which no pool has
    done(install("--replace-network", "kindnet", "--dry-run"))
    (directory / "kindnet" / "10.200.0.9").unlink()
    said = done(install("--replace-network", "kindnet"))
    expect("takes out" not in said, said)
    # What has no use is told.
    for name in ("kindnet", "kindnett"):
        said = done(install("--replace-network", name))
        expect(f'--replace-network "{name}" names no network' in said and "take it out" in said, said)
    expect("--force is for --uninstall" in done(install("--force")), "told")
    for main, other in (("bridge", "ptp"), ("ptp", "bridge")):
        said = done(host.install("--main-plugin", main, "--node", "oak", "--store", world.register))
        expect(f"from {main} now and had them from {other}" in said and "do not reach each other" in said, said)
        expect("do not reach" not in done(host.install("--main-plugin", main, "--node", "oak", "--store", world.register)), "told once it changes")
    done(host.install("--uninstall"))


def pod(world, command, store, name="lives", network="k8s-pod-network"):
    """Its address, by the plugin's own answer."""
    ipam = {"cniVersion": "1.0.0", "name": network, "ipam": {"type": "croft-ipam", "store": store, "nodename": "oak",
                                                            "log_file_path": str(world.directory / "pod.log")}}
    env = {"CNI_COMMAND": command, "CNI_CONTAINERID": name, "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0",
           "CNI_PATH": str(world.bin), **own_environment(world.directory)}
    answer = run(world.bin / "croft-ipam", stdin=json.dumps(ipam), env=env).stdout
    return json.loads(answer)["ips"][0]["address"].split("/")[0] if command == "ADD" else None


def over_croft(world):
    """What lives by Croft's own register is seen too, where another takes its place."""
    host, other = Host(world, "over"), f"sqlite:{world.directory}/over.db"
    run(world.bin / "croft", "--store", other, "pool", "create", "p", "--cidr", "10.9.0.0/24")
    env = world.directory / "over.env"
    env.write_text("FLANNEL_NETWORK=10.9.0.0/16\nFLANNEL_SUBNET=10.9.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n")
    install = lambda main, store, *more: host.install("--main-plugin", main, "--node", "oak", "--store", store, "--flannel-subnet-env", env, *more)
    changes = (("flannel", world.register, "--replace-network", "k8s-pod-network"), ("ptp", other, "--replace-store", world.register))
    for change in changes:
        done(install("ptp", world.register))
        address = pod(world, "ADD", world.register)
        names = host.names()
        for more in ((), ("--dry-run",)):
            refused(install(*change, *more), 5, "nothing was changed", address, "give again", "released")
            expect_equal(host.names(), names, "nothing was written")
        pod(world, "DEL", world.register)
        done(install(*change))
        done(host.install("--uninstall", "--node", "oak"))
    # In two steps.
    done(install("ptp", world.register))
    address = pod(world, "ADD", world.register)
    said = done(host.install("--uninstall", "--node", "oak"))
    expect("croft-install.record stays" in said and host.names() == ["croft-install.record"], f"{said} {host.names()}")
    for change in changes:
        refused(install(*change[:2]), 5, "croft-install.record", "given again")
        refused(install(*change), 5, address, "give again")
    done(install("ptp", world.register))
    done(host.install("--uninstall", "--node", "oak"))
    expect("stays" in done(host.install("--uninstall")), "still")
    pod(world, "DEL", world.register)
    expect("no pod of this node" in done(host.install("--uninstall")), "told")
    expect_equal(host.names(), [], "all of it")


def another_giver(world):
    """What lies behind Croft's own file was asked of the giver and the register of then."""
    host, other, apart = Host(world, "giver"), f"sqlite:{world.directory}/giver.db", f"sqlite:{world.directory}/apart.db"
    run(world.bin / "croft", "--store", other, "pool", "create", "p", "--cidr", "10.99.0.0/24")
    run(world.bin / "croft", "--store", apart, "pool", "create", "p", "--cidr", "10.50.0.0/24")
    env = world.directory / "giver.env"
    env.write_text("FLANNEL_NETWORK=10.9.0.0/16\nFLANNEL_SUBNET=10.9.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n")
    (host.conf / "20-old.conflist").write_text(json.dumps({"cniVersion": "0.3.1", "name": "old", "plugins": [
        {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.99.0.0/24"}]]}}]}))
    install = lambda main, store, *more: host.install("--main-plugin", main, "--node", "oak", "--store", store, "--flannel-subnet-env", env, *more)
    refused(install("ptp", other), 5, "20-old.conflist")
    for first, more in ((("flannel", other), ("--replace-network", "cbr0")), (("ptp", apart), ("--replace-store", apart))):
        done(install(*first))
        refused(install("ptp", other, *more), 5, "20-old.conflist", '"old"', "given again", "10.99.0.0/24")
        done(install(*first))
        done(host.install("--uninstall"))
    # By hand, with another register, before it.
    (host.conf / "10-own.conflist").write_text(json.dumps({"cniVersion": "1.0.0", "name": "own", "plugins": [
        {"type": "ptp", "ipam": {"type": "croft-ipam", "store": other}}]}))
    refused(install("ptp", other, "--conflist-name", "05-croft.conflist"), 5, "20-old.conflist", '"old"')


def edited(world):
    """Croft's own file, changed by hand to what some runtimes pass over: then they go by what lies behind."""
    host = Host(world, "edited")
    own = host.conf / "10-croft.conflist"
    kindnet = host.conf / "20-kindnet.conflist"
    kindnet.write_text(json.dumps({"cniVersion": "0.3.1", "name": "kindnet", "plugins": [{"type": "ptp", "ipam": HOST_LOCAL}]}))
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, *more)
    for change in ({"dns": "8.8.8.8"}, {"capabilities": ["portMappings"]}):
        done(install("--replace-network", "kindnet"))
        done(install())
        network = json.loads(own.read_text())
        network["plugins"][0].update(change)
        own.write_text(json.dumps(network))
        refused(install(), 5, kindnet.name, "--replace-network")
    done(install("--replace-network", "kindnet"))
    for version in ("1.1.0", "1.0"):
        own.write_text(own.read_text().replace('"1.0.0"', f'"{version}"'))
        refused(install(), 5, kindnet.name, "--replace-network")
        done(install("--replace-network", "kindnet"))


def unclear(world):
    """Members that are there twice: runtimes and plugins read them in several ways."""
    host = Host(world, "unclear")
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, *more)
    gives = '{"type":"host-local","ranges":[[{"subnet":"10.9.0.0/25"}]]}'
    for file, plugin in (("20-k.conf", f'"ipam":{gives},"ipam":{{"routes":[]}}'), ("20-k.conf", f'"ipam":{gives},"IPAM":{{"routes":[]}}'),
                         ("20-k.conflist", f'"ipam":{gives},"IPAM":{{"routes":[]}}'),
                         ("20-k.conflist", f'"ipam":{gives},"Ipam":{{"type":"host-local","subnet":"192.168.0.0/24"}}'),
                         ("20-k.conflist", '"ipam":{"type":"host-local","subnet":"10.9.0.0/25","SUBNET":"192.168.0.0/24"}'),
                         ("20-k.conflist", '"ipam":{"type":"host-local","subnet":"10.9.0.0/25","TYPE":"static"}')):
        one = f'"type":"bridge",{plugin}'
        text = f'{{"cniVersion":"0.4.0","name":"k",{one}}}' if file.endswith(".conf") else f'{{"cniVersion":"0.4.0","name":"k","plugins":[{{{one}}}]}}'
        (host.conf / file).write_text(text)
        refused(install(), 5, file, '"k"', "given again", "--replace-network")
        (host.conf / file).unlink()
    # In a .conf a list beside the plugin is nothing.
    (host.conf / "20-k.conf").write_text(f'{{"cniVersion":"0.4.0","name":"k","type":"bridge","ipam":{gives},"plugins":[]}}')
    refused(install(), 5, "20-k.conf", "given again")
    (host.conf / "20-k.conf").unlink()
    (host.conf / "00-multus.conf").write_text(json.dumps({"cniVersion": "0.4.0", "name": "m", "type": "multus",
                                                          "clusterNetwork": "/elsewhere/10-croft.conflist"}))
    refused(install(), 5, "00-multus.conf", "/elsewhere/10-croft.conflist")


def another_cluster(world):
    """The plugin's kubeconfig has one name, whatever cluster it leads to."""
    host = Host(world, "cluster")
    kubeconfig = lambda server, ca: {**KUBECONFIG, "clusters": [{"name": "a", "cluster": {"server": server, "certificate-authority-data": base64.b64encode(
        f"-----BEGIN CERTIFICATE-----\n{ca}\n-----END CERTIFICATE-----\n".encode()).decode()}}]}
    own, mine = host.conf / "croft-kubeconfig", world.directory / "mine"
    for path in (own, mine):
        path.touch(mode=0o600)
    mine.write_text(json.dumps(kubeconfig("https://127.0.0.1:9", "QUFBQQ==")))
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", f"kube:{mine}", "--no-probe", "--dry-run", *more)
    shown = done(install())
    (host.conf / "10-croft.conflist").write_text(shown[shown.index("{"):])
    own.write_text(json.dumps(kubeconfig("https://127.0.0.1:10", "QkJCQg==")))
    refused(install(), 5, "10-croft.conflist", "another cluster", "--replace-store \"kube:", "given again")
    refused(host.install("--no-conflist", "--node", "oak", "--store", f"kube:{mine}", "--dry-run"), 5, own.name, "another cluster")
    done(install("--replace-store", f"kube:{own}"))
    for server, ca in (("https://127.0.0.1:9", "QkJCQg=="), ("https://127.0.0.1:10", "QUFBQQ=="), ("https://127.0.0.1:9", "QUFBQQ==")):
        own.write_text(json.dumps(kubeconfig(server, ca)))
        done(install())


def multus_stays(world):
    """What multus names goes with Croft: then it gives none. And what comes with no address in common stops nothing."""
    host = Host(world, "multus-stays")
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, *more)
    shutil.copy(PLUGINS / "ptp", host.bin / "multus")
    for clusters in ("k8s-pod-network", "/host/etc/cni/net.d/10-croft.conflist"):
        done(install())
        (host.conf / "00-multus.conf").write_text(json.dumps({"cniVersion": "0.4.0", "name": "m", "type": "multus", "clusterNetwork": clusters}))
        pod(world, "ADD", world.register)
        done(host.install("--uninstall", "--dry-run"))
        (host.conf / "20-kindnet.conflist").write_text(json.dumps({"cniVersion": "0.3.1", "name": "kindnet", "plugins": [{"type": "ptp", "ipam": HOST_LOCAL}]}))
        refused(host.install("--uninstall"), 5, "20-kindnet.conflist")
        pod(world, "DEL", world.register)
        done(host.install("--uninstall"))
        for path in host.conf.iterdir():
            path.unlink()
    env = world.directory / "stays.env"
    env.write_text("FLANNEL_NETWORK=10.9.0.0/16\nFLANNEL_SUBNET=10.9.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n")
    done(host.install("--main-plugin", "flannel", "--node", "oak", "--store", world.register, "--flannel-subnet-env", env))
    podmans = lambda subnet: (host.conf / "87-podman.conflist").write_text(json.dumps({"cniVersion": "0.4.0", "name": "podman", "plugins": [
        {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]]}}]}))
    in_container = ("--uninstall", "--dry-run", "--cni-bin-dir-on-host", "/opt/cni/bin", "--flannel-subnet-env", env)
    podmans("10.88.0.0/16")
    done(host.install(*in_container))
    podmans("10.9.0.0/24")
    refused(host.install(*in_container), 5, "87-podman.conflist", "can't be seen")


def no_podcidr(world):
    """Flannel needs no register: an API that can't be asked is one thing that nobody knows, and flannel's agent may say it."""
    host, env = Host(world, "no-podcidr"), world.directory / "subnet.env"
    (host.conf / "87-podman.conflist").write_text(json.dumps({"cniVersion": "0.4.0", "name": "podman", "plugins": [
        {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]]}}]}))
    install = lambda *more: host.install("--main-plugin", "flannel", "--node", "oak", "--flannel-subnet-env", env, *more, environment={"HOME": "/nonexistent"})
    for more in ((), ("--no-probe",), ("--store", world.register)):
        refused(install(*more), 5, "87-podman.conflist", "no podCIDR of this node is known here", "--flannel-subnet-env", "--replace-network")
    text = "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET={}\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"
    env.write_text(text.format("10.88.3.1/24"))
    refused(install(), 5, "10.88.0.0/16 overlaps the node's podCIDR 10.88.3.0/24")
    env.write_text(text.format("10.244.3.1/24"))
    expect("87-podman" in done(install()), "they are apart")
    done(host.install("--uninstall"))


def multus(world):
    """What is put over Croft's network, and has no other addresses, is no obstacle to the same installation again."""
    shim = {"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus-shim", "logLevel": "verbose"}
    kindnet = {"cniVersion": "0.3.1", "name": "kindnet", "plugins": [{"type": "ptp", "ipam": HOST_LOCAL}]}
    for main, croft in (("ptp", "10-croft.conflist"), ("flannel", "10-croft.conflist"), ("calico", "05-croft.conflist")):
        host = Host(world, f"multus-{main}")
        over = host.conf / "00-multus.conf"
        install = lambda *more: host.install("--main-plugin", main, "--node", "oak", "--store", world.register, *more)  # pylint: disable=cell-var-from-loop
        done(install())
        own = json.loads((host.conf / croft).read_text())
        for text in ({**shim, "type": "multus", "delegates": [own]}, {**shim, "clusterNetwork": f"/host/etc/cni/net.d/{croft}"},
                     {**shim, "type": "multus", "clusterNetwork": own["name"]}):
            over.write_text(json.dumps(text))
            names = host.names()
            said = done(install())
            expect(f"comes before {croft}" in said, said)
            expect_equal((host.names(), json.loads((host.conf / croft).read_text())), (names, own), "all is as it was")
        for text in (shim, {**shim, "type": "multus", "delegates": [own, kindnet]}, {**shim, "type": "multus", "delegates": [kindnet]},
                     {**shim, "clusterNetwork": "/host/etc/cni/net.d/20-kindnet.conflist"}):
            over.write_text(json.dumps(text))
            refused(install(), 5, over.name)


def meanwhile(world):
    """Another network comes while an installation waits for its turn: what it saw before does not count."""
    croftd = [world.bin / "croftd", "install", "--node", "oak", "--store", world.register]
    environment = {**os.environ, **own_environment(world.directory)}
    kindnet = json.dumps({"cniVersion": "0.3.1", "name": "kindnet", "plugins": [{"type": "ptp", "ipam": HOST_LOCAL}]})
    for number, (first, second) in enumerate((("ptp", "flannel"), ("flannel", "ptp"), (None, "ptp"), (None, "flannel"))):
        host = Host(world, f"meanwhile{number}")
        lock = host.conf / "croft-install.lock"
        with open(lock, "w", encoding="utf-8") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            waits = subprocess.Popen([str(part) for part in (*croftd, "--main-plugin", second, "--cni-bin-dir", host.bin, "--cni-conf-dir", host.conf)],
                                     env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            # It looked, and tries the lock: its file is open.
            wait_for(lambda: any(os.path.realpath(fd) == str(lock) for fd in pathlib.Path(f"/proc/{waits.pid}/fd").iterdir()), "it waits", 30)  # pylint: disable=cell-var-from-loop
            if first is None:
                (host.conf / "20-kindnet.conflist").write_text(kindnet)
            else:
                os.kill(waits.pid, signal.SIGSTOP)
            lock.unlink()
        if first is not None:
            done(host.install("--main-plugin", first, "--node", "oak", "--store", world.register))
            os.kill(waits.pid, signal.SIGCONT)
        out, err = waits.communicate(timeout=60)
        expect_equal(waits.returncode, 5, f"{first}, {second}: {out} {err}")
        expect("given again" in err and ("kindnet" if first is None else "croft") in err, err)
        expect_equal([name for name in host.names() if name.endswith(".conflist")], ["20-kindnet.conflist" if first is None else "10-croft.conflist"], "files")


def folder(world):
    """libcni 1.3 adds to a list the plugins of the folder of its name."""
    host = Host(world, "folder")
    own, place = host.conf / "10-croft.conflist", host.conf / "netx"
    install = lambda main: host.install("--main-plugin", main, "--node", "oak", "--store", world.register)
    place.mkdir()
    files = {"10-flannel.conf": '{"type": "flannel"}', "20-x.conflist": "no JSON", "30-portmap.conf": '{"type": "portmap"}'}
    for label, plugins in (("none", {}), ("empty", {"plugins": []}), ("one", {"plugins": [{"type": "portmap"}]})):
        for file, text in files.items():
            (place / file).write_text(text)
        (place / "a.conf").mkdir(exist_ok=True)
        theirs = host.conf / "10-theirs.conflist"
        theirs.write_text(json.dumps({"cniVersion": "1.1.0", "name": "netx", **plugins}))
        refused(install("ptp"), 5, theirs.name, '"netx"', "host-local", "--replace-network")
        done(install("flannel"))
        shown = json.loads(own.read_text())
        expect_equal((shown["name"], shown["loadOnlyInlinedPlugins"]), ("netx", True), f"plugins: {label}")
        done(host.install("--uninstall"))
        # What libcni can't read there takes the list's place away.
        for text in ("", "{}"):
            (place / "10-flannel.conf").write_text(text)
            refused(install("ptp"), 5, theirs.name, "netx/10-flannel.conf", "can't be read")
        # Nor is the folder looked at where the list forbids it, or is none.
        theirs.write_text(json.dumps({"cniVersion": "1.1.0", "name": "netx", "loadOnlyInlinedPlugins": True, "plugins": [{"type": "loopback"}]}))
        done(install("ptp"))
        done(host.install("--uninstall"))
        theirs.unlink()
        (host.conf / "20-one.conf").write_text(json.dumps({"name": "netx", "type": "loopback"}))
        done(install("ptp"))
        done(host.install("--uninstall"))
        (host.conf / "20-one.conf").unlink()
    # What stays and calls the plugin from there.
    done(install("ptp"))
    (host.conf / "20-theirs.conflist").write_text(json.dumps({"cniVersion": "1.1.0", "name": "netx"}))
    (place / "10-flannel.conf").write_text(json.dumps({"type": "ptp", "ipam": {"type": "croft-ipam"}}))
    refused(host.install("--uninstall"), 5, "20-theirs.conflist", "croft-ipam", "--force")


def other_store(world):
    """Croft's register in place of another of Croft's: whose living pods' addresses it would give again, unless all of that was moved into it."""
    croft = lambda *words: run(world.bin / "croft", *words)
    first, second = world.register, f"sqlite:{world.directory}/second.db"
    croft("--store", second, "pool", "create", "a", "--cidr", "10.9.0.0/24")
    host = Host(world, "other-store")
    own, record = host.conf / "10-croft.conflist", host.conf / "croft-install.record"
    install = lambda store, *more, main="ptp": host.install("--main-plugin", main, "--node", "oak", "--store", store, *more)

    def kept(answer, *words):
        before = {path.name: path.read_bytes() for path in host.conf.iterdir()}
        refused(answer(), 5, first, "given again", "--replace-store", "migrate.md", *words)
        expect_equal({path.name: path.read_bytes() for path in host.conf.iterdir()}, before, "nothing was written")

    done(install(first))
    expect_equal(json.loads(record.read_text())["store"], first, "of the record")
    done(install("sqlite:/" + first.removeprefix("sqlite:")))  # the same path
    done(install(first))
    for store in (second, f"kube:{world.directory}/kubeconfig", "etcd:http://127.0.0.1:1"):
        for more in (("--dry-run",), (), ("--no-probe",), ("--replace-store", second), ("--network-name", "other")):
            kept(lambda: install(store, *more), own.name)  # pylint: disable=cell-var-from-loop
    kept(lambda: install(second, main="bridge"), own.name, second)
    text = own.read_bytes()
    for spoiled in (None, b""):
        own.unlink(missing_ok=True)
        if spoiled is not None:
            own.write_bytes(spoiled)
        kept(lambda: install(second), record.name, second)
    own.write_bytes(text)
    # A list of the node's own that calls the plugin, with a store of its own or the plugin's.
    for store, named in ((first, first), (None, "sqlite:/var/lib/croft/croft.db")):
        other = Host(world, f"other-store-{store is None}")
        theirs = json.loads(text)
        theirs["plugins"][0]["ipam"].update(store=store) if store else theirs["plugins"][0]["ipam"].pop("store")
        (other.conf / "20-own.conflist").write_text(json.dumps(theirs))
        refused(other.install("--main-plugin", "ptp", "--node", "oak", "--store", second), 5, "20-own.conflist", named, "--replace-store")
        done(other.install("--main-plugin", "ptp", "--node", "oak", "--store", second, "--replace-store", named))
    done(install(second, "--replace-store", first))
    expect_equal(json.loads(own.read_text())["plugins"][0]["ipam"]["store"], second, "once somebody says that no pod has its address from it")
    done(install(second))
    done(install(first, "--replace-network", "k8s-pod-network"))
    # The members of an etcd change, and so does a cluster's kubeconfig: that is told.
    etcds = "etcd:http://127.0.0.1:1", "etcd:http://127.0.0.1:1,http://127.0.0.1:2", "etcd:http://127.0.0.1:3"
    done(install(etcds[0], "--no-probe", "--replace-store", first))
    for before, store in zip(etcds, etcds[1:]):
        said = done(install(store, "--no-probe"))
        expect(before in said and store in said and "is the same one" in said, said)
        expect("is the same one" not in done(install(store, "--no-probe")), "once")


def moved_store(world):
    """One whose register was moved by `croft store copy` is paused for good: nothing is to say, of the store that it went to."""
    etcds = [Etcd(world) for _ in range(2)]
    host = Host(world, "moved-store")
    source = f"sqlite:{world.directory}/moved.db"
    run(world.bin / "croft", "--store", source, "pool", "create", "m", "--cidr", "10.8.0.0/24")
    install = lambda etcd, *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", etcd.store, *more)
    done(host.install("--main-plugin", "ptp", "--node", "oak", "--store", source))
    refused(install(etcds[0]), 5, source, "was not moved", "--replace-store")
    run(world.bin / "croft", "store", "copy", source, etcds[0].store, timeout=240)
    refused(install(etcds[1]), 5, source, f"moved to {etcds[0].store}", "--replace-store")
    refused(install(etcds[0], "--no-probe"), 5, source, "--no-probe", "--replace-store")
    done(install(etcds[0], "--dry-run"))
    done(install(etcds[0]))
    closed_register(world, source, etcds[0])


def closed_register(world, moved, etcd):
    """No ADD would succeed, and the node would be ready."""
    host = Host(world, "closed")
    install = lambda store, *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", store, *more)
    refused(install(moved), 1, "nothing was changed", f"moved to \"{etcd.store}\"", "--store")
    pause = {"version": 1, "phase": "filling", "other": "sqlite:/a.db", "since": "2026-01-01T00:00:00Z"}
    etcd.ctl("put", "/croft/v1/pause", json.dumps(pause))
    refused(install(etcd.store), 4, "being filled", "run it again then")
    etcd.ctl("put", "/croft/v1/pause", "x")
    refused(install(etcd.store), 1, "pause", "migrate.md#damaged-pause")
    expect_equal((host.names(), (host.bin / "croft-ipam").exists()), ([], False), "nothing was written")
    done(install(etcd.store, "--no-probe"))
    etcd.ctl("del", "/croft/v1/pause")
    done(install(etcd.store))


def hidden(world):
    """A configuration that can't be read may be flannel's, whose pods live. Where Go reads it, it is read as Go does."""
    host = Host(world, "hidden")
    theirs, own = host.conf / "10-flannel.conflist", host.conf / "10-croft.conflist"
    name = lambda: json.loads(own.read_text())["name"]
    install = lambda *more, main="flannel": host.install("--main-plugin", main, "--node", "oak", "--store", world.register, *more)
    text = json.dumps({**FLANNELS, "name": "netx"}).encode()

    def again(*files):
        done(host.install("--uninstall"))
        for path in host.conf.iterdir():
            path.unlink()
        for file, content in files:
            (host.conf / file).write_bytes(content)

    for label, content in (("no UTF-8", text.replace(b"portmap", b"port\xffmap")), ("half a surrogate", text[:-1] + b', "x": "\\ud800"}'),
                           ("name twice", text.replace(b'"name": "netx"', b'"name": "first", "name": "netx"')),
                           ("Type", text.replace(b'"type": "flannel"', b'"Type": "flannel"')),
                           ("multus", json.dumps({"name": "m", "type": "multus", "delegates": [json.loads(text)]}).encode())):
        again((theirs.name, content))
        done(install())
        expect_equal(name(), "netx", f"flannel's own: {label}")
        again((theirs.name, content))
        refused(install(main="ptp"), 5, theirs.name, "netx", "--replace-network")
    large, cut = text + b" " * (2 << 20), text[:-20]
    for main in ("ptp", "bridge", "calico", "flannel"):
        for files in ([(theirs.name, large)], [(theirs.name, cut)], [("10-flannel.conf", b"")], [("10-d.conf", b"\xff"), (theirs.name, text)]):
            again(*files)
            refused(install(main=main), 5, files[0][0], "can't be read", "--network-name")
            expect(not (host.conf / "croft-install.record").exists(), "nothing was written")
            is_flannel = main == "flannel"
            if not is_flannel:
                refused(install("--network-name", "netx", main=main), 5, files[0][0], "--replace-network")
            done(install("--network-name", "netx", *(() if is_flannel else ("--replace-network", "netx")), main=main))
            expect_equal(name() if main != "calico" else "netx", "netx", "as it was told")
    again((theirs.name, text), ("20-broken.conf", b""))
    done(install())
    # What comes behind the network in use hides nothing, and it keeps its name whatever becomes of its file.
    for remains in ([], [(theirs.name, text)]):
        for spoil in (own.unlink, lambda: own.write_bytes(b""), lambda: own.write_bytes(own.read_bytes().replace(b"portmap", b"port\xff\x00map"))):
            again((theirs.name, text))
            done(install())
            theirs.unlink()
            spoil()
            for file, content in remains:
                (host.conf / file).write_bytes(content)
            said = done(install())
            expect_equal(name(), "netx", "that of the installation before")
            expect("can't be read" in said or spoil == own.unlink, f"it is told: {said}")  # pylint: disable=comparison-with-callable
    record = host.conf / "croft-install.record"
    record.write_text(json.dumps({part: value for part, value in json.loads(record.read_text()).items() if part != "network"}))
    own.write_bytes(b"")
    refused(install(), 5, own.name, "can't be read", "--network-name")  # an older program's record has no name
    done(install("--network-name", "netx"))
    expect_equal(json.loads(record.read_text())["network"], "netx", "of the record")


# As Calico's operator writes it, cut.
CALICOS = {"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [
    {"type": "calico", "datastore_type": "kubernetes", "mtu": 1430, "ipam": {"type": "calico-ipam", "assign_ipv4": "true"},
     "container_settings": {"allow_ip_forwarding": True}, "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}},
    {"type": "bandwidth", "capabilities": {"bandwidth": True}}, {"type": "portmap", "snat": True, "capabilities": {"portMappings": True}}]}


def calico(world):
    """Beside the configuration that Calico writes again and again, under a name that comes before it; what that has is told."""
    host = Host(world, "calico")
    theirs, own = host.conf / "10-calico.conflist", host.conf / "05-croft.conflist"
    any_store = lambda store, *more: host.install("--main-plugin", "calico", "--node", "oak", "--store", store, *more)
    # A file of Croft's alone has none of what Calico's own IPAM gave; the API that Calico uses has all of it.
    install = lambda *more: any_store(world.register, "--replace-network", "of-calico", *more)
    theirs.write_text(json.dumps({**CALICOS, "name": "of-calico"}))
    refused(any_store(world.register), 5, theirs.name, "calico-ipam", "of-calico")
    done(any_store(f"kube:{world.directory}/kubeconfig", "--dry-run"))
    # In an etcd of its own the API has nothing of it.
    first, *others_of_list = CALICOS["plugins"]
    for etcd in ("etcd_endpoints", "etcd_discovery_srv", "etcd_authority"):
        plugin = {**{member: value for member, value in first.items() if member != "datastore_type"}, etcd: "https://10.0.0.9:2379"}
        theirs.write_text(json.dumps({**CALICOS, "name": "of-calico", "plugins": [plugin, *others_of_list]}))
        refused(any_store(f"kube:{world.directory}/kubeconfig", "--dry-run"), 5, theirs.name, "calico-ipam", "of-calico")
    theirs.write_text(json.dumps({**CALICOS, "name": "of-calico"}))
    refused(install("--conflist-name", "10-croft.conflist"), 5, theirs.name, "--conflist-name")
    said = done(install())
    expect_equal(host.names(), [own.name, theirs.name, "croft-install.record"], "the first by name is Croft's")
    for word in (theirs, "mtu 1430", "container_settings", "the plugin bandwidth", "--mtu", "croft migrate calico"):
        expect(str(word) in said, f"{word}: {said}")
    expect_equal(json.loads(own.read_text())["name"], "of-calico", "the name under which pods that live hold theirs")
    said = done(install("--mtu", "1430"))
    expect("mtu 1430" not in said and "container_settings" in said, said)
    theirs.unlink()
    expect("container_settings" not in done(install()), "nothing is lost without it")
    expect_equal(json.loads(own.read_text())["name"], "of-calico", "that of the installation before")
    # An installation of another main plugin has its own name again.
    done(host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register))
    expect_equal(host.names(), ["10-croft.conflist", "croft-install.record"], "one configuration")


def calicos_plugin(world):
    """Calico's plugin asks the API with a kubeconfig of its own, which Calico's installer writes, by a configuration whose datastore is the API."""
    host = Host(world, "calicos-plugin")
    kubeconfig, theirs = host.conf / "calico-kubeconfig", host.conf / "10-calico.conflist"
    install = lambda *more, path=kubeconfig, store=world.register: host.install("--main-plugin", "calico", "--node", "oak", "--store", store, "--calico-kubeconfig", path, *more)
    absent = ("no pod would start", "install-cni", "--calico-kubeconfig", "--no-probe")
    before = sorted(os.listdir(host.bin))
    for more in ((), ("--dry-run",)):
        refused(install(*more), 1, kubeconfig, "is not there", *absent)
    refused(install(path=world.directory / "nope"), 1, world.directory / "nope", "is not there", *absent)
    kubeconfig.symlink_to("/nonexistent/kubeconfig")
    refused(install(), 1, kubeconfig, "is a link to nothing", *absent)
    # In a container a link may lead where only the node sees it.
    on_node = ("--cni-conf-dir-on-host", "/etc/cni/net.d")
    done(install(*on_node, "--dry-run", path="/etc/cni/net.d/calico-kubeconfig"))
    kubeconfig.unlink()
    kubeconfig.write_text("")
    refused(install(), 1, kubeconfig, "is empty", *absent)
    kubeconfig.unlink()
    kubeconfig.mkdir()
    refused(install(), 1, kubeconfig, "is no file", *absent)
    kubeconfig.rmdir()
    refused(install(path="calico-kubeconfig"), 2, "--calico-kubeconfig", "absolute path")
    refused(install(*on_node, path="/etc/cni/net.d/calico-kubeconfig"), 1, "/etc/cni/net.d/calico-kubeconfig", "is not there", *absent)
    expect("can't be seen from here" in done(install(*on_node, "--dry-run", path="/etc/calico/kubeconfig")), "outside of what the container has")
    expect_equal((host.names(), sorted(os.listdir(host.bin))), ([], before), "nothing was written")
    done(install("--no-probe"))
    done(host.install("--uninstall"))
    # Calico's own says where it is.
    first, *more_plugins = CALICOS["plugins"]
    croft = {"type": "croft-ipam", "store": world.register}
    write = lambda **members: theirs.write_text(json.dumps({**CALICOS, "plugins": [{**first, "ipam": croft, **members}, *more_plugins]}))
    write(kubernetes={"kubeconfig": "/var/lib/calico/kubeconfig"})
    refused(install(), 1, 'names "/var/lib/calico/kubeconfig"', *absent)
    kubeconfig.write_text("apiVersion: v1\n")
    done(install())
    done(host.install("--uninstall", "--force"))
    # On an etcd: by what takes over its addresses, and by one that was switched.
    etcd = "etcd:http://10.0.0.9:2379"
    for ipam in (croft, {"type": "calico-ipam"}):
        for members in ({"datastore_type": "etcdv3", "etcd_endpoints": "http://10.0.0.9:2379"}, {"datastore_type": None, "etcd_endpoints": "http://10.0.0.9:2379"}):
            write(ipam=ipam, **members)
            store = etcd if ipam["type"] == "calico-ipam" else world.register
            refused(install("--no-probe", store=store), 1, theirs.name, "an etcd", "05-croft.conflist", "`croft migrate calico`", "--no-conflist", "migrate.md")
            expect_equal(host.names(), [theirs.name, kubeconfig.name], "nothing was written")
    # Whose plugin gives the interfaces matters under calico alone.
    done(host.install("--main-plugin", "ptp", "--node", "oak", "--store", etcd, "--no-probe", "--conflist-name", "05-croft.conflist", "--dry-run"))


def conflist(world):
    """The file is a list, which a runtime sees by its name alone."""
    host = Host(world, "conflist")
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, *more)
    for name in ("10-croft.conf", "10-croft.json", "10-croft", "conflist", "../a.conflist"):
        refused(install("--conflist-name", name), 2, "--conflist-name", name, ".conflist")
    refused(host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, environment={"CNI_CONF_NAME": "10-calico.conf"}), 2,
            "10-calico.conf", ".conflist")
    expect_equal(host.names(), [], "nothing was written")


def renamed(world):
    """Who gives the network another name is told what that means."""
    host = Host(world, "renamed")
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, *more)
    expect("the network was" not in done(install()), "the first time")
    expect("the network was" not in done(install()), "the same again")
    for said in (done(install("--network-name", "other", "--dry-run")), done(install("--network-name", "other"))):
        for word in ('"k8s-pod-network"', '"other"', "--network-name", "controller"):
            expect(word in said, f"{word}: {said}")
    expect("the network was" not in done(install()), "it is the name of before")
    # Nor is it lost with the record, which is removed where it is damaged.
    own, record = host.conf / "10-croft.conflist", host.conf / "croft-install.record"
    for main in ("ptp", "bridge", "calico"):
        record.write_text("{")
        refused(host.install("--main-plugin", main, "--node", "oak", "--store", world.register), 1, record.name, "remove it")
        record.unlink()
        said = done(host.install("--dry-run", "--main-plugin", main, "--node", "oak", "--store", world.register))
        expect_equal(json.loads(said[said.index("{"):])["name"], "other", f"{main}: of the network that is there")
    said = done(install("--network-name", "third", "--dry-run"))
    expect('"other"' in said and '"third"' in said and "controller" in said, f"that it changes is told: {said}")
    said = done(install("--mtu", "1400"))
    expect("another's" not in said and "calls Croft" in said and "kept as" in said, said)
    expect_equal(json.loads(own.read_text())["name"], "other", "it stays")


def register(world):
    """A node is not made ready by a register that the plugin refuses, or that is not there."""
    host = Host(world, "register")
    install = lambda store, *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", store, *more)
    for store in ("nonsense", "memory:", "", "sqlite:rel/x.db", "etcd:http://localhost:2379", "etcd:", "kube:rel", "kube:?x=y",
                  "etcd:https://10.0.0.1:2379", "etcd:http://10.0.0.1:2379?nope=1"):
        for more in ((), ("--no-probe",)):
            refused(install(store, *more), 2, "store")
    refused(install("etcd:http://127.0.0.1:1"), 4, "nothing was changed", "127.0.0.1:1", "--no-probe")
    refused(install("etcd:https://127.0.0.1:1?ca=/nope"), 4, "nothing was changed", "--no-probe")
    damaged = world.directory / "damaged.db"
    damaged.write_bytes(b"no database " * 1000)
    expect(install(f"sqlite:{damaged}").returncode != 0, "a damaged register")
    expect_equal((host.names(), (host.bin / "croft-ipam").exists()), ([], False), "nothing was written")
    done(install("etcd:http://127.0.0.1:1", "--no-probe"))
    done(install(f"sqlite:{world.directory}/later.db", "--replace-store", "etcd:http://127.0.0.1:1"))
    done(install(world.register, "--replace-store", f"sqlite:{world.directory}/later.db"))


def named_pools(world):
    """A node is not made ready whose every ADD would be refused, as of a pool that was misspelt."""
    host, store = Host(world, "named-pools"), f"sqlite:{world.directory}/named-pools.db"
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", store, *more)
    croft = lambda *words: run(world.bin / "croft", "--store", store, *words)
    croft("pool", "create", "node-7", "--cidr", "10.7.0.0/24")
    croft("pool", "create", "six", "--cidr", "fd00:7::/112")
    for pools, words in ((("nodee-7",), ("nodee-7", "no such pool", '"node-7"', "croft pool create")), (("node-7", "nodee-7"), ("nodee-7", '"node-7"')),
                         (("six",), ("six", "is of IPv6", '"node-7"')), (("10.7.0.0/25",), ("10.7.0.0/25", "no such pool"))):
        refused(install(*[part for pool in pools for part in ("--ipv4-pool", pool)]), 1, "nothing was changed", "--ipv4-pool", "no pod of this node would start", *words)
    refused(install("--ipv6", "--ipv6-pool", "node-7"), 1, "--ipv6-pool", "is of IPv4", '"six"')
    expect_equal((host.names(), (host.bin / "croft-ipam").exists()), ([], False), "nothing was written")
    for more in (("--ipv4-pool", "node-7"), ("--ipv4-pool", "10.7.0.0/24"), ("--ipv6", "--ipv6-pool", "six")):
        expect("starts" not in done(install(*more)), f"nothing to tell of {more}")
    done(install("--ipv4-pool", "nodee-7", "--no-probe"))
    # What may be mended without another installation is told.
    croft("pool", "disable", "node-7")
    expect('croft pool enable "node-7"' in done(install("--ipv4-pool", "node-7")), "it is told")
    expect("no pod of this node starts as it is now" in done(install()), "it is told")
    done(host.install("--uninstall"))


def gateways(world):
    """ptp and bridge fail each ADD with an address of a pool without a gateway, as `croft pool defaults` makes it for Calico's plugin."""
    for number, main in enumerate(("ptp", "bridge")):
        host, store = Host(world, f"gateways{number}"), f"sqlite:{world.directory}/gateways{number}.db"
        install = lambda *more, main=main: host.install("--main-plugin", main, "--node", "oak", "--store", store, *more)  # pylint: disable=cell-var-from-loop
        croft = lambda *words: run(world.bin / "croft", "--store", store, *words)  # pylint: disable=cell-var-from-loop
        croft("pool", "defaults", "--ipv4-cidr", "10.244.0.0/24")
        refused(install(), 1, "nothing was changed", main, "no IPv4 pool", "default-ipv4-ippool", "croft pool delete", "croft pool defaults --gateways first")
        expect_equal(host.names(), [], "nothing was written")
        done(install(main="calico"))
        done(host.install("--uninstall"))
        said = croft("pool", "defaults", "--ipv4-cidr", "10.244.0.0/24", "--gateways", "first")
        expect("unchanged" in said.stdout and "has no gateway" in said.stderr, f"{said}")
        croft("pool", "delete", "default-ipv4-ippool")
        expect("no gateway" not in croft("pool", "defaults", "--ipv4-cidr", "10.244.0.0/24", "--gateways", "first").stderr, "made anew")
        expect("without a gateway" not in done(install()), "nothing to tell")
        # One that comes first by name is what pods get.
        croft("pool", "create", "a", "--cidr", "10.66.0.0/24", "--gateway", "none")
        expect('without a gateway: "a"' in done(install()), "it is told")
        croft("pool", "disable", "a")
        expect("without a gateway" not in done(install()), "nothing to tell")


def names(world):
    """A program that is named twice is written once."""
    for number, (main, more) in enumerate((("ptp", ("croft-ipam",)), ("ptp", ("host-local", "host-local")), ("flannel", ("host-local",)))):
        host = Host(world, f"names{number}")
        before = (host.bin / "host-local").read_bytes()
        done(host.install("--main-plugin", main, "--node", "oak", "--store", world.register, *[part for name in more for part in ("--also-as", name)]))
        done(host.install("--uninstall"))
        expect_equal((host.bin / "host-local").read_bytes(), before, "what it was before")


def still_called(world):
    """What goes is called by nothing that stays: no pod would start, and none be taken down."""
    host = Host(world, "called")
    install = lambda *more: host.install("--node", "oak", "--store", world.register, *more)
    uninstall = lambda *more: host.install("--uninstall", *more)
    ipam = {"type": "croft-ipam", "store": world.register}

    def stays(file, text, *words):
        (host.conf / file).write_text(text)
        before = (host.names(), sorted(os.listdir(host.bin)))
        for more in ((), ("--dry-run",)):
            refused(uninstall(*more), 5, "nothing was changed", host.conf / file, "croft-ipam", "--force", *words)
            expect_equal((host.names(), sorted(os.listdir(host.bin))), before, "nothing was taken back")

    done(install("--no-conflist"))
    # As croft migrate calico leaves it.
    calicos = {**CALICOS, "plugins": [{**CALICOS["plugins"][0], "ipam": ipam}]}
    (host.conf / "10-calico.conflist.before-croft").write_text("")
    stays("10-calico.conflist", json.dumps(calicos), f"`mv {host.conf}/10-calico.conflist.before-croft")
    (host.conf / "10-calico.conflist").write_text(json.dumps(CALICOS))
    done(uninstall())
    expect(not (host.bin / "croft-ipam").exists(), "it went")
    for path in host.conf.iterdir():
        path.unlink()
    # A second list of Croft's, and its own that somebody edited.
    for file in ("20-second.conflist", "10-croft.conflist"):
        done(install("--main-plugin", "ptp"))
        stays(file, (host.conf / "10-croft.conflist").read_text().replace('"1.0.0"', '"1.0.0" '), "change or remove it")
        (host.conf / file).unlink()
        done(uninstall())
    done(install("--main-plugin", "ptp"))
    stays("20-second.conflist", (host.conf / "10-croft.conflist").read_text(), "change or remove it")
    done(uninstall("--force"))
    expect_equal((host.names()[-1], (host.bin / "croft-ipam").exists()), ("20-second.conflist", False), "as it was told")
    (host.conf / "20-second.conflist").unlink()
    # Flannel's own configuration calls host-local: that of before comes back, and one that was Croft's alone goes.
    (host.conf / "10-flannel.conflist").write_text(json.dumps(FLANNELS))
    done(install("--main-plugin", "flannel"))
    done(uninstall())
    (host.bin / "host-local").unlink()
    done(install("--main-plugin", "flannel"))
    refused(uninstall(), 5, "10-flannel.conflist", "host-local", "--force")
    (host.conf / "10-flannel.conflist").unlink()
    done(uninstall())


def kubeconfigs(world):
    """Of who asks the register: host-local, whose name the plugin has under flannel, keeps files on the node."""
    host = Host(world, "kubeconfigs")
    for also_as, is_wanted in (((), False), (("host-local",), False), (("calico-ipam",), True), (("host-local", "croft-ipam"), True)):
        said = done(host.install("--dry-run", "--main-plugin", "flannel", "--node", "oak", "--store", f"kube:{world.directory}/kubeconfig",
                                 *[part for name in also_as for part in ("--also-as", name)]))
        expect_equal("croft-kubeconfig would be written" in said, is_wanted, f"{also_as}: {said}")


def runtimes_directory(world):
    """containerd that looks elsewhere finds no plugin, on a node that is ready."""
    host, config = Host(world, "runtime"), world.directory / "containerd.toml"
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", world.register, "--containerd-config", config, *more)
    told = f"containerd looks for plugins in /usr/lib/cni, by {config}, and not in {host.bin}"
    expect("containerd" not in done(install()), "there is no such file")
    text = '[plugins."io.containerd.grpc.v1.cri".cni]\n  bin_dir = "{}"\n'
    config.write_text(text.format("/usr/lib/cni"))
    said = done(install())
    expect(told in said and "--cni-bin-dir /usr/lib/cni" in said, said)
    expect_equal(said.count(told), 1, "once")
    expect("containerd" not in done(install("--cni-bin-dir-on-host", "/opt/cni/bin")), "a container's file is not the node's")
    for same in (host.bin, world.directory / "link"):
        if same != host.bin:
            same.symlink_to(host.bin)
        config.write_text(text.format(same))
        expect("containerd" not in done(install()), f"{same} is it")


def pools_to_come(world):
    """A node gets its network once something has made the first pool, or when that takes too long."""
    host, store = Host(world, "pools-to-come"), f"sqlite:{world.directory}/to-come.db"
    register = lambda *words: run(world.bin / "croft", "--store", store, "pool", *words)
    register("create", "gone", "--cidr", "10.7.0.0/24")
    register("delete", "gone")
    install = lambda *more: host.install("--main-plugin", "ptp", "--node", "oak", "--store", store, *more)
    expect("waiting" not in done(install()), "where nobody says that one comes")
    done(host.install("--uninstall"))
    said = done(install("--await-pools", "1"))
    expect("waiting up to 1 s" in said and "no pool after 1 s" in said and "10-croft.conflist" in host.names(), said)
    done(host.install("--uninstall"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(install, "--await-pools", "50")
        time.sleep(1.5)
        expect_equal((waiting.done(), [name for name in host.names() if name.endswith(".conflist")]), (False, []), "while there is none")
        register("create", "a", "--cidr", "10.7.0.0/24")
        said = done(waiting.result())
    expect("no pool after" not in said and "10-croft.conflist" in host.names(), said)


def on_host(world):
    """What a container asks is the file that the node calls otherwise, however its directory is written."""
    host = Host(world, "on-host")
    text = json.dumps({"cniVersion": "1.0.0", "name": "k8s-pod-network", "plugins": [
        {"type": "ptp", "ipam": {"type": "croft-ipam", "store": "kube:/on/host/croft-kubeconfig"}}]})
    (host.conf / "10-croft.conflist").write_text(text)
    (host.conf / "croft-install.record").write_text(json.dumps({"version": 1, "files": [
        {"kind": "network", "name": "10-croft.conflist", "sha256": hashlib.sha256(text.encode()).hexdigest()}]}))
    (host.conf / "20-kindnet.conflist").write_text(json.dumps({"cniVersion": "1.0.0", "name": "kindnet", "plugins": [
        {"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/24"}]]}}]}))
    for directory in ("/on/host", "/on/host/", "/on/host//"):
        refused(host.install("--uninstall", "--cni-conf-dir-on-host", directory), 5, "20-kindnet.conflist", f"{host.conf}/croft-kubeconfig")


def source(world):
    """As packages put it: croftd in /usr/bin, croft-ipam where the runtime looks."""
    host = Host(world, "source")
    elsewhere = world.directory / "usr-bin"
    elsewhere.mkdir()
    shutil.copy(world.bin / "croftd", elsewhere / "croftd")

    def install(*more):
        return subprocess.run([str(part) for part in (elsewhere / "croftd", "install", "--main-plugin", "ptp", "--node", "oak", "--store",
                                                      world.register, "--cni-bin-dir", host.bin, "--cni-conf-dir", host.conf, *more)],
                              env={**os.environ, **own_environment(world.directory)}, capture_output=True, text=True, timeout=60, check=False)

    if not os.path.exists("/opt/cni/bin/croft-ipam"):
        refused(install(), 1, elsewhere, host.bin, "/opt/cni/bin", "--source")
    shutil.copy(world.bin / "croft-ipam", host.bin / "croft-ipam")
    refused(install(), 1, "croft-ipam-cluster", "--source")
    shutil.copy(world.bin / "croft-ipam-cluster", host.bin / "croft-ipam-cluster")
    refused(install("--source", elsewhere), 1, elsewhere, "--source")
    done(install())
    done(host.install("--uninstall"))
    expect((host.bin / "croft-ipam").exists(), "the package's file stays")


def test():
    with World("choices", sys.argv[1]) as world:
        world.register = world.store()
        run(world.bin / "croft", "--store", world.register, "pool", "create", "a", "--cidr", "10.9.0.0/24")
        cases = (over_croft, another_giver, edited, unclear, another_cluster, multus_stays, group, flannel, others, behind, switched, older_record, back_to_another, living, no_podcidr, multus, meanwhile, folder, other_store, hidden, calico, calicos_plugin, conflist, renamed, register, named_pools, gateways, names, still_called, kubeconfigs, runtimes_directory, pools_to_come, on_host, source, moved_store)
        for case in cases:
            if not sys.argv[2:] or case.__name__ in sys.argv[2:]:
                case(world)


if __name__ == "__main__":
    main(test, 400)
