"""A cluster of IPv6 alone, on a real node: nodes, pods, Services and the API server have no IPv4 address between them.

helm installs Croft, the controller becomes Ready by a probe over IPv6, pods reach each other and a Service, metrics are read,
an upgrade ends and leaves one controller, and a drain is not refused.
"""

import ipaddress
import os

os.environ["CROFT_ONE_NODE_FAMILY"] = "IPv6"

from article import CHART, IMAGE, LATER, NAMESPACE, Story, helm, values  # noqa: E402
from cluster import PODS, play  # noqa: E402
from lib import expect, expect_equal, say, wait_for  # noqa: E402

CONTROLLER = ("-n", NAMESPACE, "-l", "app.kubernetes.io/component=controller")
ALONE = {"install.ipv4": "false", "install.ipv6": "true", "defaultPools.ipv4Cidr": "none", "defaultPools.ipv4BlockSize": "",
         "defaultPools.ipv6Cidr": PODS}


class Alone(Story):
    def controller(self):
        """The only one, once it is Ready."""
        pod, = self.wait_running(1, *CONTROLLER, patience=120)
        addresses = [one["ip"] for one in pod["status"]["podIPs"]]
        expect_equal(len(addresses), 1, f"addresses: {addresses}")
        expect(ipaddress.ip_address(addresses[0]) in ipaddress.ip_network(PODS), f"{addresses} are of {PODS}")
        return pod

    def controller_becomes_ready(self):
        self.node.start()
        self.node.import_images("croft")
        helm("install", "croft", CHART, "-n", NAMESPACE, "--create-namespace", *values(**ALONE))
        wait_for(self.node.is_ready, "the node is ready", 120)
        pod = self.controller()
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=120s", timeout=150)
        metrics = f"http://[{pod['status']['podIP']}]:9600/metrics"
        wait_for(lambda: "croft_pool_capacity{" in self.node.run("/bin/busybox", "wget", "-q", "-O", "-", metrics).stdout,
                 "it leads, and tells of its pools", 30)
        say(f"the controller is Ready at [{pod['status']['podIP']}]:9600, and serves its metrics there")

    def upgrade_ends(self):
        before = self.controller()["metadata"]["name"]
        self.node.ctr("images", "tag", IMAGE, LATER)
        helm("upgrade", "croft", CHART, "-n", NAMESPACE, *values(**ALONE, **{"image.tag": "2"}))
        for what in ("deployment/croft-controller", "daemonset/croft-agent"):
            self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", what, "--timeout=120s", timeout=150)
        wait_for(lambda: len(self.cluster.pods(*CONTROLLER)) == 1, "the controller before is gone", 60)
        after = self.controller()
        expect(after["metadata"]["name"] != before, "it is another pod")
        expect_equal(after["spec"]["containers"][0]["image"], LATER, "its image")
        lease = self.cluster.get("lease", "-n", NAMESPACE)["items"]
        say(f"an upgrade ends; who leads: {[one['spec'].get('holderIdentity') for one in lease]}")

    def drain_is_not_refused(self):
        self.cluster.kubectl("drain", "node-1", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s", timeout=120)
        wait_for(lambda: not self.held(), "who is drained holds nothing", 60)
        self.cluster.kubectl("uncordon", "node-1")
        self.controller()


def chapters_of(cluster):
    story = Alone(cluster)
    return story.controller_becomes_ready, story.pods_reach_each_other, story.upgrade_ends, story.drain_is_not_refused


if __name__ == "__main__":
    play(__file__, chapters_of, 600)
