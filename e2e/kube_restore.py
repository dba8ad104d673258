"""docs/runbooks/restore-kubernetes-api.md on a real kube-apiserver: its etcd is put back to a snapshot while pods live that
`ptp` made with croft-ipam. The runbook's commands are run as they stand there.

Twice: with the kubelets stopped, as the runbook has it, and with those that ran all the time; then beside a plugin alone. What a kubelet does is done
here: it makes the pods that the API has for its node, and stops those that the API does not know.
"""

import json
import os
import re
import shlex
import sys
import time

from etcd_lib import Node
from kube_apiserver_lib import KubeApiserver, program
from kube_collect import PODS, Cluster
from kube_store import calico_definitions, install_definitions, make_accounts, write_kubeconfig
from lib import TREE, CniError, World, expect, expect_equal, main, own_environment, run, say, start_agent, wait_for
from living_lib import Pods, enter_own_namespace

RUNBOOK = TREE / "docs" / "runbooks" / "restore-kubernetes-api.md"
NODE = "oak"
# Addresses are used again soon, and what one pod had another has next.
POOL = ("--cidr", "10.152.0.0/26", "--block-size", "28", "--cooldown-seconds", "0")
FOUND = 3  # exit code
YOUNG_SECONDS = 4  # in the place of the minute for which what was just given is not compared with the runtime


class Runbook:
    """Its commands, word by word; FILE, NODE and the runtime's directory are this test's."""

    def __init__(self, world, kubeconfig, cache):
        self.world = world
        text = re.sub(r"\s*\n\s+", " ", RUNBOOK.read_text())
        self.commands = set(re.findall(r"croft --kubeconfig FILE check[^`\n]*?(?= *(?:`|\n))", text))
        self.places = {"FILE": str(kubeconfig), "NODE": NODE, "/var/lib/cni": str(cache)}

    def run(self, command):
        """What it finds. In a container of this machine paths say less: then the test says that it sees the machine's."""
        expect(command in self.commands, f"the runbook has {sorted(self.commands)}, not {command!r}")
        words = [self.places.get(word, word) for word in shlex.split(command)]
        more = ["--in-container", "--grace-seconds", str(YOUNG_SECONDS)] if "--cni-cache" in words else []
        done = run(self.world.bin / words[0], *words[1:], *more, "-o", "json", check=False, env={**os.environ})
        expect(done.returncode in (0, FOUND), f"{command}: {done}")
        rows = json.loads(done.stdout)
        expect_equal(done.returncode, FOUND if rows else 0, f"exit code of {command}: {done.stderr}")
        return rows

    def on_the_node(self):
        return self.run("croft --kubeconfig FILE check --cni-cache /var/lib/cni --node NODE")

    def of_the_cluster(self):
        return self.run("croft --kubeconfig FILE check")

    def release(self, row):
        """The command that a remedy has."""
        text = row["remedy"]
        words = shlex.split(text[text.index("croft ip release"):])
        run(self.world.bin / words[0], "--kubeconfig", self.places["FILE"], *words[1:], env={**os.environ})


class Kubelet:
    """Of the node: pods of the API are made, others are stopped."""

    def __init__(self, world, cluster, pods):
        self.world, self.cluster, self.pods = world, cluster, pods
        self.sandboxes = {}  # of a pod
        self.made = 0

    def make(self, pod):
        self.made += 1
        sandbox = f"{pod}-{self.made}"
        self.pods.add(sandbox, pod=pod)
        self.sandboxes[pod] = sandbox
        self.cluster.report(pod, self.pods.addresses(sandbox)[0])

    def stop(self, pod):
        self.pods.stop(self.sandboxes.pop(pod))

    def stop_sandbox(self, sandbox):
        """As `crictl stopp` and `crictl rmp` do."""
        pod, = [pod for pod, one in self.sandboxes.items() if one == sandbox]
        self.stop(pod)

    def wanted(self):
        listed = self.cluster.kube.call("GET", PODS)["items"]
        return {one["metadata"]["name"] for one in listed if one["spec"].get("nodeName") == NODE}

    def sync(self):
        """A round of it. Pods are tried again, as a kubelet does."""
        wanted = self.wanted()
        for pod in set(self.sandboxes) - wanted:
            self.stop(pod)
        for pod in sorted(wanted - set(self.sandboxes)):
            self.try_to_make(pod)

    def try_to_make(self, pod):
        def is_made():
            try:
                self.make(pod)
            except CniError as error:
                say(f"  {pod}: {error}")
                time.sleep(0.5)
                return False
            return True
        wait_for(is_made, f"pod {pod}", 60)

    def begin(self, pod):
        self.cluster.pod(pod, NODE)
        self.make(pod)

    def end(self, pod):
        self.cluster.delete_pod(pod)
        self.stop(pod)

    def address(self, pod):
        return self.pods.addresses(self.sandboxes[pod])[0]


class Restored:
    """The cluster, and its etcd's snapshot."""

    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        install_definitions(world, kube)
        make_accounts(kube)
        self.cluster = Cluster(world, kube)
        self.operator = write_kubeconfig(world, kube, "croft-operator")
        self.store = f"kube:{self.operator}"
        for node in (NODE, "elm"):
            self.cluster.node(node)
        world.croft(self.store, "pool", "create", "p", *POOL)
        self.agent = None
        self.socket = world.directory / "agent.sock"
        self.start_agent()
        self.pods = Pods(world, self.cluster.store, NODE, agent=str(self.socket))
        self.kubelet = Kubelet(world, self.cluster, self.pods)
        self.runbook = Runbook(world, self.operator, self.pods.cache)
        # The list of pods is never empty.
        self.cluster.pod("elsewhere", "elm")
        self.cluster.report("elsewhere", "192.0.2.1")

    def start_agent(self):
        self.agent = start_agent(self.world, self.cluster.store, NODE, self.socket, env=own_environment(self.world.directory))

    def restore(self, snapshot):
        """Steps 2 and 3, with an etcd that lacks --bump-revision: what watches the API is begun anew."""
        self.kube.kill()
        self.kube.etcd.restore(snapshot)
        self.kube.start()
        self.agent.end()
        self.start_agent()

    def churn(self, name):
        """Pods go after a snapshot, and others come, some with the addresses of those."""
        kept = {pod: self.kubelet.address(pod) for pod in self.kubelet.sandboxes}
        before = self.kube.etcd.save(name)
        leaving = sorted(kept)[:2]
        was = {self.kubelet.address(pod) for pod in leaving}
        for pod in leaving:
            self.kubelet.end(pod)
        made = []
        while len(made) < 4 or not was <= {self.kubelet.address(pod) for pod in made}:
            made.append(f"{name}-new-{len(made)}")
            self.kubelet.begin(made[-1])
            expect(len(made) < 30, f"{was} are not given again: {made}")
        return before, leaving, made

    def heed(self, rows):
        """Step 4, of what was found on the node."""
        for row in rows:
            if row["finding"] == "not_held":
                container = re.search(r"container (\S+) interface", row["evidence"])[1]
                if container in self.pods.living:
                    self.kubelet.stop_sandbox(container)
        for row in rows:
            if row["finding"] == "not_attached":
                self.runbook.release(row)

    def held(self):
        return {address: row["containerId"] for address, row in self.world.held(self.store).items()}

    def heed_until_nothing_is_left(self):
        """Steps 4 to 6, as often as it takes: what is held for less than YOUNG_SECONDS is not compared with the runtime."""
        def is_done():
            self.heed(self.runbook.on_the_node())
            self.kubelet.sync()
            alive = {address for container in self.pods.living for address in self.pods.addresses(container)}
            return set(self.held()) == alive and self.runbook.on_the_node() == []
        wait_for(is_done, f"the runbook comes to an end: {self.runbook.on_the_node()}", 150)

    def check_all_is_well(self, what):
        owners = self.pods.check_no_address_twice()
        expect_equal(self.held(), owners, f"{what}: who holds what, and who lives with it")
        expect_equal(self.kubelet.wanted(), set(self.kubelet.sandboxes), f"{what}: pods that the API has, and that run")
        expect_equal(self.runbook.on_the_node(), [], f"{what}: croft check on the node")
        expect_equal(self.runbook.of_the_cluster(), [], f"{what}: croft check of the cluster")
        say(f"  {what}: {len(owners)} pods, each holds what it lives with")


def with_kubelets_stopped(cluster):
    snapshot, left, made = cluster.churn("stopped")
    cluster.restore(snapshot)
    rows = cluster.runbook.on_the_node()
    expect_equal({row["pod"] for row in rows if row["finding"] == "not_held"}, set(made), "who lives and holds nothing")
    two = [row for row in rows if "two have it" in row["evidence"]]
    expect_equal(len(two), len(left), "addresses that the register gives to those that left")
    of_the_gone = lambda: {row["pod"] for row in cluster.runbook.on_the_node() if row["finding"] == "not_attached"}
    wait_for(lambda: of_the_gone() == set(left), f"{left} are named, whose containers are gone", 100)
    cluster.heed(rows)
    expect_equal([row for row in cluster.runbook.on_the_node() if row["finding"] == "not_held"], [], "not_held before step 5")
    cluster.heed_until_nothing_is_left()
    cluster.check_all_is_well("kubelets stopped")


def with_kubelets_running(cluster):
    """Pods are made at once, of the API's list and new ones."""
    snapshot, left, made = cluster.churn("running")
    alive = {cluster.kubelet.address(pod): pod for pod in made}
    cluster.restore(snapshot)
    for number in range(3):
        cluster.cluster.pod(f"at-once-{number}", NODE)
        cluster.kubelet.try_to_make(f"at-once-{number}")
    owners = cluster.pods.check_no_address_twice()
    expect("passed over" in cluster.agent.log(), f"the agent passes over what lives: {cluster.agent.log()}")
    say(f"  {len(owners)} pods live, {len(alive)} of them with what the register has as free")
    found = cluster.runbook.on_the_node()
    expect_equal({row["pod"] for row in found if row["finding"] == "not_held"}, set(made), "who lives and holds nothing")
    # As a kubelet does it in a moment: those that the API does not know are stopped.
    cluster.kubelet.sync()
    cluster.heed_until_nothing_is_left()
    cluster.check_all_is_well("kubelets running")


def alone_beside_an_agent(cluster):
    """What a plugin alone writes at revisions that come a second time is nobody else's to the agent, and the register is whole."""
    oak, through = Node(cluster.world, cluster.cluster.store, NODE), {"agent": str(cluster.socket)}

    def add(container, **ipam):
        """As a runtime does it, until the store is back."""
        said = []
        wait_for(lambda: said.append(oak.finish(oak.start("ADD", container, **ipam))) or said[-1][0] == 0, f"ADD {container}: {said[-1:]}", 60)
        return said[-1][1]["ips"][0]["address"].split("/")[0]
    told = {f"a{i}": add(f"a{i}", **through) for i in range(3)}
    snapshot = cluster.kube.etcd.save("alone")
    lost = {f"b{i}": add(f"b{i}", **through) for i in range(6)}
    cluster.restore(snapshot)
    told |= {f"c{i}": add(f"c{i}", agent="none") for i in range(6)}
    told |= {f"d{i}": add(f"d{i}", **through) for i in range(6)}
    # What was lost with the restore is nobody's: a repeated ADD gets an address that no other has.
    told["b0"] = add("b0", **through)
    say(f"  lost {lost}, and told {told}")
    expect_equal(len(set(told.values())), len(told), "addresses told since, and before the snapshot")
    held = {container: address for address, container in cluster.held().items() if container not in cluster.pods.living}
    expect_equal(held, told, "who holds what")
    expect_equal(cluster.runbook.of_the_cluster(), [], "croft check")


def test():
    if "CROFT_TEST_IN_OWN_NAMESPACE" not in os.environ:
        calico_definitions()
        program(sys.argv[2])
    enter_own_namespace()
    with World("kube-restore", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        cluster = Restored(world, kube)
        for number in range(4):
            cluster.kubelet.begin(f"first-{number}")
        cluster.check_all_is_well("before")
        with_kubelets_stopped(cluster)
        with_kubelets_running(cluster)
        alone_beside_an_agent(cluster)


main(test, 3500)
