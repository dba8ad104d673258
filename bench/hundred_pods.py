"""A hundred pods at once on a node: with Croft as it is installed, and with Debian's host-local under the same bridge.

usage: bench/hundred_pods.py BIN_DIR      e.g. build/release/bin

Two nodes of one cluster take turns: the pods of a turn are all made at once on one of them, and the other one is idle. Each
ADD has to succeed, the addresses differ, and each is held. The time until the last pod runs is printed, and decides nothing.
"""

import http.client
import ipaddress
import json
import pathlib
import re
import ssl
import statistics
import sys
import time
import urllib.parse

E2E = pathlib.Path(__file__).resolve().parent.parent / "e2e"
sys.path[:0] = [str(E2E / "one_node"), str(E2E)]
import rows  # noqa: E402
from article import CHART, CONFLIST, NAMESPACE, Story, deployment, helm, values  # noqa: E402
from cluster import CONTROL, PODS, play  # noqa: E402
from lib import PLUGINS, expect, expect_equal, require_programs, say, wait_for  # noqa: E402

MANY, TURNS, MOST_PODS = 100, 2, 150
OF_CROFT, OF_HOST_LOCAL = map(str, ipaddress.ip_network(PODS).subnets(1))
BUDGET = 1.2  # times host-local
ALL = "/api/v1/namespaces/default/pods"
OURS = {"labelSelector": "app=many"}


class Api:
    """One connection to the API server: a kubectl for each pod would be what is measured."""

    def __init__(self, cluster):
        self.connection = http.client.HTTPSConnection(
            CONTROL, 6443, timeout=30, context=ssl.create_default_context(cafile=str(cluster.ca.certificate)))
        self.headers = {"Authorization": f"Bearer {cluster.tokens['admin']}", "Content-Type": "application/json"}

    def call(self, method, body=None, **query):
        self.connection.request(method, f"{ALL}?{urllib.parse.urlencode(query)}", json.dumps(body) if body else None, self.headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        expect(answer.status < 300, f"{method} {query}: {answer.status} {text}")
        return json.loads(text)

    def pods(self, **query):
        return self.call("GET", **OURS, **query)["items"]


class Side:
    """A node, and what gives addresses there."""

    def __init__(self, name, node):
        self.name, self.node, self.times = name, node, []

    def failures(self, begin):
        """Tries to make a pod's sandbox that failed, as kubelet tells them."""
        return [line for line in self.kubelet().read_text(errors="replace")[begin:].splitlines()
                if "CreatePodSandbox for pod failed" in line]

    def kubelet(self):
        return self.node.cluster.logs / f"{self.node.name}-kubelet.log"

    def containers(self):
        return set(self.node.ctr("containers", "list", "-q").stdout.split())


class HundredPods(Story):
    def __init__(self, cluster):
        super().__init__(cluster)
        self.croft_side = Side("Croft", self.node)
        self.host_local = Side("host-local", cluster.node("node-2"))
        for side in (self.croft_side, self.host_local):
            side.node.like_a_machine(MOST_PODS)

    # ---------------------------------------------------------------- the chapters

    def croft_is_installed(self):
        self.node.start()
        self.node.import_images("croft")
        here = {rf"{who}.nodeSelector.kubernetes\.io/hostname": "node-1" for who in ("agent", "controller")}
        helm("install", "croft", CHART, "-n", NAMESPACE, "--create-namespace",
             *values(mainPlugin="bridge", **{"defaultPools.ipv4Cidr": OF_CROFT, "defaultPools.ipv4BlockSize": "26"}, **here))
        wait_for(self.node.is_ready, "the node is ready", 120)
        self.wait_running(1, "-n", NAMESPACE, "-l", "app.kubernetes.io/component=controller")
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=120s", timeout=150)

    def host_local_is_installed(self):
        """The same configuration but for who gives addresses."""
        node = self.host_local.node
        node.start()
        node.run("cp", PLUGINS / "host-local", "/opt/cni/bin/")
        config = json.loads(self.node.read(CONFLIST))
        config["plugins"][0]["ipam"] = {"type": "host-local", "ranges": [[{"subnet": OF_HOST_LOCAL}]]}
        node.run("sh", "-c", f"cat > {CONFLIST}", given=json.dumps(config))
        self.files = f"/var/lib/cni/networks/{config['name']}"
        wait_for(lambda: self.cluster.kubectl("get", "node", node.name, check=False).returncode == 0, "the other node exists", 60)
        wait_for(node.is_ready, "the other node is ready", 120)

    def they_take_turns(self):
        for _ in range(TURNS):
            for side in (self.host_local, self.croft_side):
                self.turn(side)
        ours, theirs = (min(side.times) for side in (self.croft_side, self.host_local))
        say(f"best of {TURNS}: Croft {ours:.1f} s, host-local {theirs:.1f} s: {ours / theirs:.2f} x host-local, "
            f"budget at most {BUDGET} x")
        rows.record("node.hundred_pods", f"{MANY} pods at once on a node, kube-apiserver: the last one runs", ours, "s",
                    peer=rows.figure("Debian's host-local", theirs, "s"), ratio=ours / theirs, ratio_of="Debian's host-local",
                    budget=rows.budget("ratio", "at most", BUDGET))

    # ---------------------------------------------------------------- a turn

    def turn(self, side):
        self.api = Api(self.cluster)
        before, begin_of_log, log = side.containers(), len(side.kubelet().read_text(errors="replace")), self.croft_log()
        pod = deployment("many", 1, grace_seconds=1)["spec"]["template"]
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": side.node.name}
        begin = time.monotonic()
        for number in range(MANY):
            self.api.call("POST", {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {**pod["metadata"], "name": f"many-{number}"}})
        made = time.monotonic() - begin
        wait_for(self.all_run, f"{MANY} pods run", 180)
        side.times.append(time.monotonic() - begin)
        failed = side.failures(begin_of_log)
        say(f"{side.name}: {MANY} pods made in {made:.1f} s run after {side.times[-1]:.1f} s; {len(failed)} sandboxes failed")
        expect_equal(failed, [], f"{side.name}: sandboxes that failed")
        addresses = [pod["status"]["podIP"] for pod in self.api.pods()]
        expect_equal(len(set(addresses)), MANY, f"{side.name}: addresses that differ")
        if side is self.croft_side:
            self.adds_of(self.croft_log()[len(log):])
            expect(set(addresses) <= set(self.holders_are_right()), "Croft's addresses are held")
        else:
            expect(set(addresses) <= self.host_locals_files(), "host-local's addresses are held")
        self.api.call("DELETE", **OURS)
        wait_for(lambda: not self.api.pods(limit=1), "the pods are gone", 180)
        # kubelet takes the last of a pod away within a minute or two: it does not work for this turn during the next one.
        wait_for(lambda: side.containers() <= before, "their containers are gone", 240)
        held = set(self.held()) if side is self.croft_side else self.host_locals_files()
        expect_equal(set(addresses) & held, set(), f"{side.name}: what is still held")

    def all_run(self):
        time.sleep(0.2)  # between two questions, which cost the node's processors too
        return not self.api.pods(fieldSelector="status.phase!=Running", limit=1)

    def croft_log(self):
        return self.node.run("cat", "/var/log/croft/ipam.log", check=False).stdout

    def host_locals_files(self):
        return set(self.host_local.node.run("ls", self.files).stdout.split())

    def adds_of(self, log):
        adds = [line for line in log.splitlines() if " ADD " in line]
        expect_equal([line for line in adds if " ok " not in line], [], "ADDs that failed")
        took = sorted(int(re.search(r" us=(\d+)", line)[1]) / 1000 for line in adds)
        say(f"  {len(adds)} ADDs of Croft, {sum('via=agent' in line for line in adds)} by the agent: "
            f"{took[0]:.1f} / {statistics.median(took):.1f} / {took[-1]:.1f} ms (min, median, max)")


def chapters_of(cluster):
    story = HundredPods(cluster)
    return (story.croft_is_installed, story.host_local_is_installed, story.they_take_turns)


if __name__ == "__main__":
    require_programs("host-local")
    play(str(pathlib.Path(__file__).resolve()), chapters_of, 1500)
