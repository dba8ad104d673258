"""Pods of a real kubelet with addresses of a cloud: the DaemonSet cni-vpc-ipamd and the plugin under ptp as they are shipped, the simulated
cloud behind the node's gateway. The agent is scheduled without a network and fills its stock; with the cloud switched off pods come
and go from stock, also while the agent is replaced, or away too; a StatefulSet's pod comes back with its address.
"""

import base64
import ipaddress
import json
import os
import re
import time
import urllib.parse
import urllib.request

from article import Story, deployment
from cluster import CONTROL, IMAGE, TREE, play
from lib import expect, expect_equal, run, say, wait_for

DEPLOY = TREE / "deploy"
SUBNET = "10.200.0.0/24"
API = f"http://{CONTROL}:8080"
LOW = 8
FIXED = {"network.beta.kubernetes.io/ucloud-statefulset-static-ip": "true"}


class VpcStory(Story):
    def ask(self, path, **form):
        data = urllib.parse.urlencode(form).encode() if form else None
        with urllib.request.urlopen(urllib.request.Request(f"{API}{path}", data), timeout=10) as answer:
            return json.loads(answer.read() or b"null")

    def cloud_has(self):
        return {one["ip"] for one in self.ask("/sim/truth")["addresses"] if one["mac"].lower() == self.mac}

    def vpc(self, what):
        done = self.node.run(self.cluster.bin / "croft", "vpc", "get", what, "-o", "json", "--agent",
                             "node-1=unix:/run/cni-vpc-ipamd.sock", check=False)
        found = json.loads(done.stdout) if done.returncode == 0 and done.stdout.startswith(("[", "{")) else []
        return found if isinstance(found, list) else [found]

    def stock(self):
        return {one["ip"] for one in self.vpc("pool")}

    def records(self):
        return {one["vpcip"]: f"{one['pod_ns']}/{one['pod_name']}" for one in self.vpc("pod")}

    def pods_are_as_recorded(self):
        shown = {pod["status"]["podIP"]: f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                 for pod in self.cluster.pods("-A") if not pod["spec"].get("hostNetwork") and pod["status"].get("podIP")
                 and pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")}
        wait_for(lambda: self.records() == shown, f"the records are {shown}", 60)
        return shown

    def ping_all(self, pods):
        self.ping(pods[0], *(pod["status"]["podIP"] for pod in pods[1:]))

    def agents(self):
        return self.running("-n", "kube-system", "-l", "app=cni-vpc-ipamd")

    def replace_agent(self):
        """With the cloud away the next one knows no interface yet, as the metadata are the cloud's: it serves, and is not ready."""
        before = self.agents()[0]["metadata"]["uid"]
        self.cluster.kubectl("-n", "kube-system", "delete", "pod", "-l", "app=cni-vpc-ipamd")
        wait_for(lambda: [pod for pod in self.cluster.pods("-n", "kube-system", "-l", "app=cni-vpc-ipamd")
                          if pod["metadata"]["uid"] != before and pod["status"]["phase"] == "Running"], "another agent runs", 90)
        wait_for(self.stock, "it serves", 60)

    # ---------------------------------------------------------------- the chapters

    def cloud_and_node(self):
        self.node.start()
        self.mac = json.loads(self.node.run("ip", "-j", "link", "show", "eth0").stdout)[0]["address"]
        config = self.cluster.place / "cloud.json"
        config.write_text(json.dumps({
            "region": "cn-bj2", "zone": "cn-bj2-04", "project": "org-test", "vpc": "uvnet-1", "publicKey": "public", "privateKey": "private",
            "subnets": [{"id": "subnet-1", "range": SUBNET, "gateway": CONTROL}],
            "nodes": [{"name": "node-1", "mac": self.mac, "subnet": "subnet-1", "address": self.node.address}]}))
        self.cluster.daemon(str(self.cluster.bin / "croft-vpc-sim"), "--listen", f"{CONTROL}:8080", "--config", config, log="cloud")
        wait_for(lambda: "listening" in (self.cluster.logs / "cloud.log").read_text(), "the simulator listens")
        # What the packages put on a node, and how UK8S' nodes are set up.
        self.node.run("cp", self.cluster.bin / "croft-ipam", "/opt/cni/bin/croft-vpc")
        self.node.run("cp", self.cluster.bin / "croft-ipam-cluster", "/opt/cni/bin/croft-ipam-cluster")
        self.node.run("sysctl", "-q", "-w", "net.ipv4.conf.eth0.proxy_arp=1")
        conflist = json.loads((DEPLOY / "cni" / "10-croft-vpc.conflist").read_text())
        # Where the plugin asks the cloud itself: the agent's place is its own.
        conflist["plugins"][0]["ipam"] |= {"api": API, "metadata": f"{API}/node-1"}
        self.node.run("sh", "-c", "cat > /etc/cni/net.d/10-croft-vpc.conflist", given=json.dumps(conflist))
        self.node.import_images("croft")

    def agent_fills_its_stock(self):
        self.cluster.apply((DEPLOY / "kubernetes" / "crds-vpc.yaml").read_text())
        wait_for(lambda: self.cluster.kubectl("get", "ipamds", "-A", check=False).returncode == 0, "the kinds are served", 30)
        made, page = self.cluster.place / "vpc-tls", (TREE / "docs/runbooks/vpc-certificates.md").read_text()
        made.mkdir()
        for command in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            run("sh", "-ec", f"cd {made}\n{command}", env={**os.environ, "NODE": "node-1"})
        self.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cni-vpc-ipamd-tls", "namespace": "kube-system"},
                            "data": {name: base64.b64encode((made / name).read_bytes()).decode()
                                     for name in ("ca.crt", "node-1.crt", "node-1.key")}})
        self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "uk8sconfig", "namespace": "kube-system"},
                            "data": {"UCLOUD_API_ENDPOINT": API}})
        text = (DEPLOY / "kubernetes" / "cni-vpc-ipamd.yml").read_text()
        for old, new in (("image: localhost/croft:0.1.0", f"image: {IMAGE}"), ("LowWatermark=3", f"LowWatermark={LOW}"),
                         ("cooldownPeriodSeconds=30", "cooldownPeriodSeconds=5"),
                         ("- --metrics=", f"- --metadata={API}/node-1\n            - --metrics=")):
            expect(text.count(old) == 1, f"cni-vpc-ipamd.yml has {old!r} once")
            text = text.replace(old, new)
        self.cluster.apply(text)
        wait_for(lambda: len(self.agents()) == 1, "the agent runs and is ready", 120)
        wait_for(lambda: len(self.stock()) >= LOW, f"{LOW} are in stock", 60)
        wait_for(self.node.is_ready, "the node is ready", 60)
        kept = wait_for(lambda: self.cluster.get("ipamds", "-n", "kube-system")["items"], "what the agent says of itself", 60)
        say(f"stock {sorted(self.stock())}; ipamds {kept[0]['metadata']['name']}")

    def pods_get_addresses(self):
        self.cluster.apply(deployment("web", 3))
        pods = self.wait_running(3, "-l", "app=web")
        addresses = [pod["status"]["podIP"] for pod in pods]
        expect_equal(len(set(addresses)), 3, f"{addresses} differ")
        expect(all(ipaddress.ip_address(one) in ipaddress.ip_network(SUBNET) for one in addresses), f"{addresses} are the subnet's")
        self.ping_all(pods)
        expect_equal(set(self.pods_are_as_recorded()), set(addresses), "who has addresses")
        name = pods[0]["metadata"]["name"]
        wait_for(lambda: self.cluster.get("pod", name)["metadata"].get("annotations", {}).get("cni.projectcalico.org/podIP", "")
                 .startswith(pods[0]["status"]["podIP"]), "the pod's annotation for Calico's policies", 60)
        say(f"three pods: {', '.join(sorted(addresses))}")

    def cloud_is_away(self):
        wait_for(lambda: len(self.stock()) >= LOW, "the stock is full again", 60)
        self.ask("/sim/outage", mode="hang")
        begin = time.monotonic()
        self.cluster.kubectl("scale", "deployment/web", "--replicas=7")
        pods = self.wait_running(7, "-l", "app=web")
        expect_equal(len({pod["status"]["podIP"] for pod in pods}), 7, "addresses differ")
        say(f"the cloud hangs: four pods more in {time.monotonic() - begin:.1f} s")
        gone = {pod["metadata"]["name"] for pod in pods[:3]}
        self.cluster.kubectl("delete", "pod", "--wait=true", *gone)
        wait_for(lambda: not gone & {pod["metadata"]["name"] for pod in self.running("-l", "app=web")}, "three went", 60)
        pods = self.wait_running(7, "-l", "app=web")
        self.ping_all(pods)
        self.pods_are_as_recorded()
        self.replace_agent()
        self.cluster.kubectl("scale", "deployment/web", "--replicas=8")
        self.ping_all(self.wait_running(8, "-l", "app=web"))
        self.pods_are_as_recorded()

    def agent_is_away_too(self):
        self.cluster.kubectl("-n", "kube-system", "patch", "daemonset", "cni-vpc-ipamd", "-p", json.dumps(
            {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": "yes"}}}}}))
        wait_for(lambda: not self.cluster.pods("-n", "kube-system", "-l", "app=cni-vpc-ipamd"), "no agent runs", 90)
        expect(not self.node.exists("/run/cni-vpc-ipamd.sock"), "its socket went with it")
        victim = self.running("-l", "app=web")[0]["metadata"]["name"]
        self.cluster.kubectl("delete", "pod", "--wait=true", victim)
        pods = self.wait_running(8, "-l", "app=web")
        self.ping_all(pods)
        expect_equal(len({pod["status"]["podIP"] for pod in pods}), 8, "addresses differ")
        say("neither cloud nor agent: a pod went and one came")
        self.ask("/sim/heal")
        self.cluster.kubectl("-n", "kube-system", "patch", "daemonset", "cni-vpc-ipamd", "-p", json.dumps(
            {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": None}}}}}))
        wait_for(lambda: len(self.agents()) == 1, "the agent is ready again", 90)
        self.pods_are_as_recorded()

    def fixed_address(self):
        labels = {"app": "db"}
        self.cluster.apply({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
                "replicas": 1, "serviceName": "db", "selector": {"matchLabels": labels}, "template": {
                    "metadata": {"labels": labels, "annotations": FIXED},
                    "spec": deployment("db", 1)["spec"]["template"]["spec"]}}})
        pod, = self.wait_running(1, "-l", "app=db")
        self.cluster.kubectl("delete", "pod", "db-0", "--wait=true")
        wait_for(lambda: [one for one in self.running("-l", "app=db") if one["metadata"]["uid"] != pod["metadata"]["uid"]],
                 "its next pod runs", 90)
        expect_equal(self.running("-l", "app=db")[0]["status"]["podIP"], pod["status"]["podIP"], "its address stays")
        say(f"db-0 keeps {pod['status']['podIP']}")

    def all_is_accounted_for(self):
        self.cluster.kubectl("delete", "deployment", "web", "--wait=true")
        wait_for(lambda: not self.cluster.pods("-l", "app=web"), "the pods went", 60)
        wait_for(lambda: list(self.pods_are_as_recorded().values()) == ["default/db-0"], "one holds an address", 60)
        wait_for(lambda: self.stock() | set(self.records()) | {one["IP"] for one in self.vpc("unuse")} == self.cloud_has(),
                 "the cloud has what the records have", 60)
        expect_equal(self.ask("/sim/check"), [], "what contradicts itself in the cloud")


def chapters_of(cluster):
    story = VpcStory(cluster)
    return (story.cloud_and_node, story.agent_fills_its_stock, story.pods_get_addresses, story.cloud_is_away,
            story.agent_is_away_too, story.fixed_address, story.all_is_accounted_for)


if __name__ == "__main__":
    play(__file__, chapters_of, 600)
