"""Two nodes: pods of one reach pods of the other over routes to the nodes' blocks; what the API server does while it is
away; a node that is gone for good.
"""

import json

from article import NAMESPACE, Story, deployment, helm, values, CHART
from cluster import play
from lib import expect, say, wait_for


class TwoNodes(Story):
    def __init__(self, cluster):
        super().__init__(cluster)
        self.other = cluster.node("node-2")
        self.nodes = (self.node, self.other)

    def both_are_ready(self):
        for node in self.nodes:
            node.start()
            node.import_images("croft")
        # A controller that saw the node collects what it leaves; one that began later says that it never did (nodes_unknown).
        helm("install", "croft", CHART, "-n", NAMESPACE, "--create-namespace",
             *values(**{r"controller.nodeSelector.kubernetes\.io/hostname": "node-1"}))
        for node in self.nodes:
            wait_for(node.is_ready, f"{node.name} is ready", 120)
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=90s", timeout=120)
        # By a Job of its own, which nobody above waits for.
        wait_for(lambda: len(self.cluster.get("ippools.crd.projectcalico.org")["items"]) == 1, "the default pool is made", 90)

    def make_routes(self):
        """As a cloud's route table, or whoever makes routes: to each node's blocks."""
        owners = {}
        for block in json.loads(self.croft("block", "list", "-o", "json").stdout):
            owners.setdefault((block["affinity"] or "nobody").removeprefix("host:"), []).append(block["cidr"])
        for node in self.nodes:
            for other in self.nodes:
                for cidr in owners.get(other.name, []) if other is not node else []:
                    node.run("ip", "route", "replace", cidr, "via", other.address)
        return owners

    def pods_reach_the_other_node(self):
        self.cluster.apply(deployment("web", 8, grace_seconds=8))
        pods = self.wait_running(8, "-l", "app=web")
        by_node = {node.name: [pod for pod in pods if pod["spec"]["nodeName"] == node.name] for node in self.nodes}
        expect(all(by_node.values()), f"both nodes have pods: { {name: len(of) for name, of in by_node.items()} }")
        owners = self.make_routes()
        self.holders_are_right()
        for here, there in (self.nodes, self.nodes[::-1]):
            self.ping(by_node[here.name][0], *(pod["status"]["podIP"] for pod in by_node[there.name]))
        say(f"{len(pods)} pods on two nodes reach each other; blocks: {owners}")

    def notes(self):
        """Of DELs on the other node that wait to be made up for."""
        return [name for name in self.other.run("ls", "/var/lib/croft/tombstones", check=False).stdout.split()
                if name != "lock"]

    def api_server_is_away(self):
        """Pods that run go on, one that ends on its node leaves a note, and all is made up for."""
        before = set(self.held())
        victim = next(pod for pod in self.running("-l", "app=web") if pod["spec"]["nodeName"] == self.other.name)
        self.cluster.kubectl("scale", "deployment", "web", "--replicas=0")
        # kubelet knows, and lets the containers run as long as their grace; then their DELs find no API server.
        log = self.cluster.logs / f"{self.other.name}-kubelet.log"
        told = f'"SyncLoop DELETE" source="api" pods=["default/{victim["metadata"]["name"]}"]'
        wait_for(lambda: told in log.read_text(), "kubelet is told that the pod is to end", 60)
        self.cluster.stop_apiserver()
        notes = wait_for(self.notes, "DELs leave notes", 90)
        self.cluster.start_apiserver()
        wait_for(lambda: not self.cluster.pods("-l", "app=web"), "the pods are gone", 90)
        wait_for(lambda: not [row for row in self.held().values() if (row["pod"] or "").startswith("web-")],
                 f"{len(before)} addresses come back", 90)
        wait_for(lambda: not self.notes(), "no note is left", 60)
        say(f"the API server was away while {victim['metadata']['name']} and others ended; {len(notes)} notes of node-2, all made up for")
        self.check()

    def a_node_is_gone(self):
        self.cluster.apply(deployment("last", 6))
        self.wait_running(6, "-l", "app=last")
        on_other = {address for address, row in self.held().items() if row["node"] == self.other.name}
        expect(on_other, "the node holds some")
        self.other.kill()
        self.cluster.kubectl("delete", "node", self.other.name)
        self.wait_running(6, "-l", "app=last", patience=150)
        told = []

        def is_collected():
            if not on_other & {address for address, row in self.held().items() if row["node"] == self.other.name}:
                return True
            # One that lost its Lease on a busy machine began anew, maybe behind the node's end: an operator's turn.
            log = self.cluster.kubectl("-n", NAMESPACE, "logs", "deployment/croft-controller", check=False).stdout
            if not told and "nodes_unknown" in log:
                told.append(self.croft("node", "remove", self.other.name, "--force").stdout.strip())
            return False

        wait_for(is_collected, "what the node held is collected", 150)
        self.holders_are_right()
        blocks = json.loads(self.croft("block", "list", "-o", "json").stdout)
        left = [block for block in blocks if block.get("affinity") == f"host:{self.other.name}"]
        say(f"{len(on_other)} addresses of a node that is gone are collected; blocks that it still has: {len(left)}; {told}")
        self.check()


def chapters_of(cluster):
    story = TwoNodes(cluster)
    return (story.both_are_ready, story.pods_reach_the_other_node, story.api_server_is_away, story.a_node_is_gone)


if __name__ == "__main__":
    play(__file__, chapters_of, 900)
