"""The article's question on a real node: who gives the first pod its address, when whoever gives addresses is a pod?

A node without a network says why. helm installs Croft's chart; the agent's init container writes files, the node becomes Ready, and
the controller, a pod like any other, gets its address from the plugin alone. Then pods come and go, the agent is killed, upgraded and
rolled back meanwhile, and the node loses its power.
"""

import ipaddress
import json
import threading
import time

from cluster import BUSYBOX, IMAGE, PODS, TREE, play
from lib import Failure, expect, expect_equal, run, say, wait_for

NAMESPACE = "croft-system"
CHART = TREE / "deploy" / "helm" / "croft"
LATER = "onenode.local/croft:2"  # the same programs under another name: an upgrade
CONFLIST = "/etc/cni/net.d/10-croft.conflist"


def values(**more):
    """Of the chart, as `--set` takes them."""
    all_values = {"mainPlugin": "ptp", "image.repository": IMAGE.split(":")[0], "image.tag": "1", "image.pullPolicy": "Never",
                  "defaultPools.ipv4Cidr": PODS, "defaultPools.ipv4BlockSize": "28", "controller.grace": "20s"} | more
    return [part for name, value in all_values.items() for part in ("--set-string" if name.endswith("tag") else "--set",
                                                                    f"{name}={value}")]


def helm(*arguments, check=True):
    return run("helm", *arguments, check=check, timeout=180)


def deployment(name, replicas, command=("sleep", "100000"), grace_seconds=0):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": grace_seconds, "automountServiceAccountToken": False,
                    "containers": [{"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": list(command)}]}}}}


class Story:
    def __init__(self, cluster):
        self.cluster = cluster
        self.node = cluster.node("node-1")

    def croft(self, *arguments):
        return run(self.cluster.bin / "croft", "--store", f"kube:{self.cluster.pki}/admin.conf", *arguments)

    def held(self):
        """Address -> row of `croft ip list`, of what pods hold."""
        return {row["address"]: row for row in json.loads(self.croft("ip", "list", "--state", "held", "-o", "json").stdout)}

    def cooling(self):
        return {row["address"] for row in json.loads(self.croft("ip", "list", "--state", "cooling", "-o", "json").stdout)}

    def running(self, *selector):
        return [pod for pod in self.cluster.pods(*selector) if pod["status"]["phase"] == "Running"
                and not pod["metadata"].get("deletionTimestamp")
                and all(one["ready"] for one in pod["status"].get("containerStatuses", [{"ready": False}]))]

    def ping(self, pod, *addresses):
        """From a pod."""
        for address in addresses:
            done = self.cluster.kubectl("exec", pod["metadata"]["name"], "--", "ping", "-c", "1", "-W", "5", address)
            expect("1 packets received" in done.stdout, done.stdout)

    def wait_running(self, count, *selector, patience=90):
        return wait_for(lambda: (lambda pods: pods if len(pods) == count else None)(self.running(*selector)),
                        f"{count} pods of {selector} run", patience)

    def check(self, in_doubt=()):
        """Nothing is found once the collector has given back what sandboxes and nodes of before left. Of pods whose names
        begin as `in_doubt` the address of an older sandbox may be left: over two blocks nothing proves which is the older."""
        said = []

        def is_clean():
            done = run(self.cluster.bin / "croft", "--store", f"kube:{self.cluster.pki}/admin.conf", "check", "-o", "json", check=False)
            said[:] = [done.stdout + done.stderr]
            return done.returncode in (0, 3) and all(
                one["finding"] == "holder_in_doubt" and any(f" by pod {name}" in one["evidence"] for name in in_doubt)
                for one in json.loads(done.stdout))

        try:
            wait_for(is_clean, "croft check finds nothing", 120)
        except Failure as failure:
            raise Failure(f"croft check: {said}") from failure

    def holders_are_right(self):
        """Each running pod holds what the API says that it has, nobody else does."""
        held = self.held()
        taken = {}
        for pod in self.cluster.pods("-A"):
            if pod["spec"].get("hostNetwork") or pod["status"]["phase"] != "Running":
                continue
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for address in [one["ip"] for one in pod["status"].get("podIPs", [])]:
                expect(address not in taken, f"{address} is of {name} and of {taken.get(address)}")
                taken[address] = name
                row = held.get(address)
                expect(row is not None, f"{address} of {name} is held by nobody")
                expect_equal(f"{row['namespace']}/{row['pod']}", name, f"who holds {address}")
        return taken

    # ---------------------------------------------------------------- the chapters

    def without_a_network(self):
        self.node.start()
        wait_for(lambda: self.cluster.kubectl("get", "node", "node-1", check=False).returncode == 0, "the node exists", 60)
        ready = wait_for(lambda: (lambda c: c if c and "cni" in c["message"] else None)(self.node.conditions().get("Ready")),
                         "kubelet says why", 60)
        expect_equal(ready["status"], "False", "Ready")
        expect("cni plugin not initialized" in ready["message"], ready["message"])
        wait_for(lambda: "node.kubernetes.io/not-ready" in self.node.taints(), "the node is tainted", 30)
        say(f"without a network: {ready['message']}")

    def refuses_without_a_choice(self):
        done = helm("install", "croft", CHART, "-n", NAMESPACE, check=False)
        expect(done.returncode != 0 and "mainPlugin" in done.stderr, f"no choice of a plugin: {done.stdout}{done.stderr}")
        say(f"no choice: {done.stderr.strip().splitlines()[-1]}")

    def installs(self):
        """Something lies where the agent's socket belongs: files are written, and no agent answers."""
        self.node.import_images("croft")
        self.node.run("mkdir", "-p", "/run/croft/agent.sock")
        self.cluster.apply(deployment("first", 1))
        begin = time.monotonic()
        helm("install", "croft", CHART, "-n", NAMESPACE, "--create-namespace", "-f", TREE / "deploy/kubeadm/values.yaml", *values())
        wait_for(self.node.is_ready, "the node is ready", 120)
        say(f"ready {time.monotonic() - begin:.1f} s after helm install began")
        kept = json.loads(self.node.read(CONFLIST))
        expect_equal(kept["plugins"][0]["ipam"]["type"], "croft-ipam", "whom the runtime asks")
        expect_equal(self.node.run("stat", "-c", "%a", "/etc/cni/net.d/croft-kubeconfig").stdout.strip(), "600", "mode")

    def controller_has_an_address(self):
        pod, = self.wait_running(1, "-n", NAMESPACE, "-l", "app.kubernetes.io/component=controller")
        expect(not pod["spec"].get("hostNetwork"), "the controller is an ordinary pod")
        address = pod["status"]["podIP"]
        expect(ipaddress.ip_address(address) in ipaddress.ip_network(PODS), f"{address} is of the pool")
        row = self.held()[address]
        expect_equal((row["namespace"], row["pod"]), (NAMESPACE, pod["metadata"]["name"]), "who holds it")
        log = self.node.read("/var/log/croft/ipam.log")
        line = next(line for line in log.splitlines() if address in line and " ADD " in line)
        expect("via=store" in line, f"the plugin was alone: {line}")
        expect("via=agent" not in log, "no agent served anybody")
        say(f"the controller's own address, by the plugin alone: {line}")
        self.wait_running(1, "-l", "app=first")

    def network_is_unavailable(self, status, reason):
        self.cluster.kubectl("patch", "node", "node-1", "--subresource=status", "--type=strategic", "-p", json.dumps(
            {"status": {"conditions": [{"type": "NetworkUnavailable", "status": status, "reason": reason, "message": reason}]}}))

    def agent_comes(self):
        """It takes NetworkUnavailable back, as a cloud's controller leaves it on a node that is new."""
        self.network_is_unavailable("True", "NoRouteCreated")
        wait_for(lambda: "node.kubernetes.io/network-unavailable" in self.node.taints(), "the node is tainted", 30)
        self.node.run("rmdir", "/run/croft/agent.sock")
        # At once, and not when kubelet tries it again.
        self.cluster.kubectl("-n", NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/component=agent")
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=120s", timeout=150)
        wait_for(lambda: self.node.conditions()["NetworkUnavailable"]["status"] == "False", "the agent takes it back", 60)
        wait_for(lambda: not self.node.taints(), "no taint is left", 30)
        say(f"NetworkUnavailable: {self.node.conditions()['NetworkUnavailable']['message']}")
        self.describe()

    def describe(self):
        text = self.cluster.kubectl("describe", "node", "node-1").stdout
        at = text.index("Conditions:")
        say("\n".join(line[:150] for line in text[at:].splitlines()[:9]))

    def pods_reach_each_other(self):
        self.cluster.apply(deployment("web", 6, ("httpd", "-f", "-p", "8080")))
        self.cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})
        pods = self.wait_running(6, "-l", "app=web")
        self.ping(pods[0], *(pod["status"]["podIP"] for pod in pods[1:]))
        service = self.cluster.get("service", "web")["spec"]["clusterIP"]
        said = []

        def answers():
            asked = f"printf 'GET /none HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {service} 80"
            done = self.cluster.kubectl("exec", pods[0]["metadata"]["name"], "--", "sh", "-c", asked, check=False)
            said[:] = [done.stdout + done.stderr]
            return "404" in said[0]

        try:
            wait_for(answers, "the Service answers", 30)
        except Failure as failure:
            raise Failure(f"{failure}: {said}") from failure
        self.holders_are_right()
        expect("via=agent" in self.node.read("/var/log/croft/ipam.log"), "the agent serves by now")
        self.check()
        say("six pods ping each other, kubectl exec works, a Service answers")

    def addresses_cool(self):
        before = set(self.held())
        self.cluster.kubectl("delete", "deployment", "web", "--wait=true")
        wait_for(lambda: not self.cluster.pods("-l", "app=web"), "the pods are gone", 60)
        # kubelet takes a sandbox down after the pod's object is gone.
        gone = wait_for(lambda: (lambda left: left if len(left) == 6 else None)(before - set(self.held())),
                        "six addresses are given back", 60)
        expect_equal(self.cooling() & gone, gone, "what cools")
        self.cluster.apply(deployment("soon", 4))
        soon = {pod["status"]["podIP"] for pod in self.wait_running(4, "-l", "app=soon")}
        expect_equal(soon & gone, set(), "what cools is given to nobody")
        self.cluster.kubectl("delete", "deployment", "soon", "first", "--wait=true")

    def agent_ends_in_the_middle_of_churn(self):
        """Killed, upgraded, rolled back, while pods come and go: no ADD fails."""
        log_before = len(self.node.read("/var/log/croft/ipam.log"))
        ended, turns, trouble = threading.Event(), [0], []

        def churn():
            try:
                while not ended.is_set():
                    name = f"churn-{turns[0]}"
                    self.cluster.apply(deployment(name, 3))
                    self.wait_running(3, "-l", f"app={name}")
                    self.holders_are_right()
                    self.cluster.kubectl("delete", "deployment", name, "--wait=true")
                    turns[0] += 1
            except (Failure, KeyError) as failure:
                trouble.append(failure)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            self.node.ctr("images", "tag", IMAGE, LATER)
            for _ in range(2):
                self.node.run("pkill", "-KILL", "-f", "croftd agent")
                time.sleep(1)
                wait_for(lambda: self.node.run("pgrep", "-f", "croftd agent", check=False).returncode == 0,
                         "kubelet starts the agent again", 60)
            for revision, tag in enumerate(("2", "1")):
                helm("upgrade", "croft", CHART, "-n", NAMESPACE, *values(**{"image.tag": tag}))
                self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=120s",
                                     timeout=150)
                say(f"{'upgraded' if revision == 0 else 'rolled back'}, {turns[0]} turns of pods so far")
            wait_for(lambda: turns[0] >= 3 or trouble, "some turns of pods", 120)
        finally:
            ended.set()
            thread.join(timeout=200)
        expect_equal(trouble, [], "the churn")
        log = self.node.read("/var/log/croft/ipam.log")[log_before:]
        adds = [line for line in log.splitlines() if " ADD " in line]
        failed = [line for line in adds if " ok" not in line]
        expect_equal(failed, [], "ADDs that failed")
        alone = sum("via=store" in line for line in adds)
        say(f"{turns[0]} turns, {len(adds)} ADDs, none failed; {alone} of them without the agent")

    def power_cut(self):
        """All of the node is killed, its runtime forgets its pods; what they held is found and collected, with evidence."""
        self.cluster.apply(deployment("left", 5))
        self.wait_running(5, "-l", "app=left")
        before = set(self.held())
        self.node.kill()
        # A container's record of a runtime that lost its disk: kubelet can't take down what it doesn't know.
        run("rm", "-rf", self.node.disk / "containerd", self.node.disk / "kubelet" / "pods")
        self.cluster.kubectl("scale", "deployment", "left", "--replicas=0")
        self.cluster.kubectl("delete", "pods", "-l", "app=left", "--force", "--grace-period=0")
        leaked = set(self.held()) & before
        expect(len(leaked) >= 5, f"addresses of pods that are gone: {leaked}")
        self.node.start()
        self.node.import_images("pause", "busybox", "croft")
        wait_for(self.node.is_ready, "the node is ready again", 90)
        self.wait_running(1, "-n", NAMESPACE, "-l", "app.kubernetes.io/component=controller", patience=120)
        wait_for(lambda: not [row for row in self.held().values() if (row["pod"] or "").startswith("left-")],
                 "what leaked is collected", 150)
        log = self.cluster.kubectl("-n", NAMESPACE, "logs", "deployment/croft-controller").stdout
        evidence = [line for line in log.splitlines() if "left-" in line]
        expect(evidence, f"the controller says why: {log[-1500:]}")
        say(f"collected: {evidence[-1][:300]}")
        self.holders_are_right()
        self.check(in_doubt=(f"{NAMESPACE}/croft-controller-",))

    def takes_itself_back(self):
        self.cluster.kubectl("delete", "deployment", "left", "--wait=true")
        # Its pod lived through the power cut, and what it had before may be in another block than what it has: that is collected
        # when the pod ends, by who comes after it.
        controller = ("-n", NAMESPACE, "-l", "app.kubernetes.io/component=controller")
        self.cluster.kubectl("delete", "pod", *controller, "--wait=true")
        pod, = self.wait_running(1, *controller)
        wait_for(lambda: set(self.held()) == {pod["status"]["podIP"]}, "who collects holds an address, and nobody else", 150)
        self.cluster.kubectl("-n", NAMESPACE, "scale", "deployment", "croft-controller", "--replicas=0")
        wait_for(lambda: not self.held(), "nobody holds an address", 60)
        helm("upgrade", "croft", CHART, "-n", NAMESPACE, *values(uninstall="true", **{"controller.replicas": "0"}))
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=90s", timeout=120)
        for path in (CONFLIST, "/etc/cni/net.d/croft-kubeconfig", "/opt/cni/bin/croft-ipam", "/etc/cni/net.d/croft-install.record"):
            expect(not self.node.exists(path), f"{path} is gone")
        expect(self.node.exists("/opt/cni/bin/ptp"), "what is another's stays")
        wait_for(lambda: not self.node.is_ready(), "the node has no network again", 60)
        helm("uninstall", "croft", "-n", NAMESPACE, "--wait")
        pools = self.cluster.get("ippools.crd.projectcalico.org")["items"]
        expect_equal(len(pools), 1, "the register stays")


def chapters_of(cluster):
    story = Story(cluster)
    return (story.without_a_network, story.refuses_without_a_choice, story.installs, story.controller_has_an_address,
            story.agent_comes, story.pods_reach_each_other, story.addresses_cool,
            story.agent_ends_in_the_middle_of_churn, story.power_cut, story.takes_itself_back)


if __name__ == "__main__":
    play(__file__, chapters_of, 900)
