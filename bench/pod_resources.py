#!/usr/bin/env python3
"""What the agent's and the controller's pods take of a node: memory and CPU, at rest and while pods come and go.

usage: bench/pod_resources.py BIN_DIR [TURNS]

On the one-node cluster of e2e/one_node, with Croft's chart. A turn makes 30 pods and deletes them. The requests and limits of
deploy/helm/croft/values.yaml come from here, and from the memory at 5,000 nodes and 500,000 addresses (docs/measurements.md).
"""

import os
import pathlib
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "e2e" / part) for part in ("", "one_node")]
from article import CHART, NAMESPACE, Story, deployment, helm, values
from cluster import Cluster, in_cluster_namespaces
from lib import expect, main, say, wait_for

REST_S = 60
PODS_A_TURN = 30
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Process:
    """A program of Croft's in a pod of the node."""

    def __init__(self, node, command):
        self.node, self.command = node, command
        pids = node.run("pgrep", "-f", f"croftd {command}").stdout.split()
        expect(len(pids) == 1, f"one croftd {command}: {pids}")
        self.pid = pids[0]

    def cpu_s(self):
        fields = self.node.read(f"/proc/{self.pid}/stat").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def memory_mib(self):
        """(now, most so far)"""
        status = self.node.read(f"/proc/{self.pid}/status")
        return tuple(int(re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)[1]) / 1024 for name in ("VmRSS", "VmHWM"))


class Meter:
    def __init__(self, processes):
        self.processes = processes

    def over(self, what, action):
        begin, cpu = time.monotonic(), [one.cpu_s() for one in self.processes]
        action()
        seconds = time.monotonic() - begin
        for one, before in zip(self.processes, cpu):
            now, most = one.memory_mib()
            say(f"{what}, {seconds:.0f} s: croftd {one.command}: {1000 * (one.cpu_s() - before) / seconds:.1f} mCPU, "
                f"{now:.1f} MiB now, {most:.1f} MiB at most")


def measure(story, turns):
    story.node.start()
    story.node.import_images("croft")
    helm("install", "croft", CHART, "-n", NAMESPACE, "--create-namespace", *values(**{"defaultPools.ipv4BlockSize": "26"}))
    wait_for(story.node.is_ready, "the node is ready", 120)
    story.wait_running(1, "-n", NAMESPACE, "-l", "app.kubernetes.io/component=controller")
    story.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=120s", timeout=150)
    meter = Meter([Process(story.node, "agent"), Process(story.node, "controller")])
    meter.over("at rest", lambda: time.sleep(REST_S))

    def turn():
        story.cluster.apply(deployment("many", PODS_A_TURN))
        story.wait_running(PODS_A_TURN, "-l", "app=many", patience=200)
        story.cluster.kubectl("delete", "deployment", "many", "--wait=true")
        wait_for(lambda: not story.cluster.pods("-l", "app=many"), "the pods are gone", 200)

    for number in range(turns):
        meter.over(f"turn {number + 1}, {PODS_A_TURN} pods made and deleted", turn)
    meter.over("at rest again", lambda: time.sleep(REST_S))


def inside(bin_dir, directory, apiserver, node_program):
    cluster = Cluster(bin_dir, directory, apiserver, node_program)
    try:
        cluster.start()
        measure(Story(cluster), int(os.environ["CROFT_TURNS"]))
    except BaseException:
        cluster.told()
        raise


if __name__ == "__main__":
    if len(sys.argv) in (2, 3):
        os.environ["CROFT_TURNS"] = sys.argv[2] if len(sys.argv) == 3 else "3"
        main(lambda: in_cluster_namespaces(__file__, sys.argv[1], 1500), 3500)
    elif len(sys.argv) == 5:
        main(lambda: inside(*sys.argv[1:]), 1400)
    else:
        sys.exit(__doc__)
