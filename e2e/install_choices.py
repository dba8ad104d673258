"""What `croftd install` writes and refuses, on a node without a cluster: the register that was named is the one that the plugin
asks.

usage: install_choices.py BIN_DIR
"""

import json
import os
import shutil
import subprocess
import sys

from lib import PLUGINS, World, expect, expect_equal, main, own_environment

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


def test():
    with World("choices", sys.argv[1]) as world:
        for case in (group,):
            case(world)


main(test)
