"""The history of a real node: who held an address, held against what the node's container runtime knows.

Pods come and go in waves by kubelet and containerd while `croftd controller --history` records; API server and recorder are killed
at random. containerd's log tells when each sandbox got its network and lost it, the results that libcni keeps tell the address, and
a DEL that waits on the disk while the API server is away keeps its address until it is made up for. CROFT_PODS: how many.
"""

import collections
import contextlib
import datetime
import json
import os
import random
import re
import signal
import threading
import time

from article import CHART, NAMESPACE, Story, deployment, helm, values
from cluster import play
from held_lib import INSTANTS, Recorder, Stay, asked_back
from lib import expect, say, wait_for

COUNT, WAVE, LOOK_S = int(os.environ.get("CROFT_PODS", "500")), 20, 0.2
OURS = ("-l", "app=churned")
LINE = re.compile(r'time="([^"]+)" level=\w+ msg="((?:[^"\\]|\\.)*)"(.*)')
BEGINS = re.compile(r'RunPodSandbox for (&PodSandboxMetadata{Name:([^,]+),.*Namespace:default,.*})(?: returns sandbox id "(\w+)"| (failed), error)?')
ENDS = re.compile(r'(?:StopPodSandbox for|(TearDown) network for sandbox) "(\w+)"(?: successfully)?')


class Recorded(Story):
    def __init__(self, cluster):
        super().__init__(cluster)
        self.dice, self.kills = random.Random(int(os.environ.get("SEED", "7"))), collections.Counter()
        self.addresses, self.waited = {}, collections.Counter()  # of sandboxes; until when their DELs waited

    def watch_disk(self):
        disk = self.node.disk / "var" / "up" / "lib"
        while True:
            for path in [*disk.glob("cni/results/*-eth0"), *disk.glob("croft/tombstones/*.json")]:
                # One that is being written or taken away: at the next look, or never.
                with contextlib.suppress(OSError, ValueError):
                    kept = json.loads(path.read_text())
                    if "containerID" in kept:
                        self.waited[kept["containerID"]] = time.time() + LOOK_S
                    else:
                        self.addresses[kept["containerId"]] = kept["result"]["ips"][0]["address"].split("/")[0]
            time.sleep(LOOK_S)

    def stays(self):
        """Sandbox -> Stay, and those whose ADD failed, by the runtime's log."""
        begun, stays, failed = {}, {}, []
        log = self.cluster.logs / f"{self.node.name}-containerd.log"
        for line in filter(None, map(LINE.match, log.read_text(errors="replace").splitlines())):
            at, text = datetime.datetime.fromisoformat(line[1]).timestamp(), line[2].replace('\\"', '"')
            if found := BEGINS.fullmatch(text):
                which, pod, sandbox, has_failed = found.groups()
                if sandbox:
                    stays[sandbox] = Stay(pod, begun.pop(which), at)
                elif has_failed:
                    named = re.search(r'sandbox \\"(\w+)', line[3])
                    failed.append(Stay(pod, begun.pop(which), deleted=max(at, self.waited[named and named[1]])))
                else:
                    begun[which] = at
            elif (found := ENDS.fullmatch(text)) and found[2] in stays:
                stay = stays[found[2]]
                stay.deleting = min(stay.deleting, at)
                if found[1]:
                    stay.deleted = min(stay.deleted, max(at, self.waited[found[2]]))
        return stays, failed

    def trouble(self):
        time.sleep(self.dice.random() * 3)
        server, recorder = self.dice.random() < 0.15, self.dice.random() < 0.2
        self.kills.update(server=server, recorder=recorder)
        if server:
            self.cluster.stop_apiserver()
        if recorder:
            self.recorder.stop(signal.SIGKILL)
        time.sleep(self.dice.random() * 3)
        if server:
            self.recorder.revive()
            self.cluster.start_apiserver()
        self.recorder.revive()

    # ---------------------------------------------------------------- the chapters

    def croft_is_installed(self):
        """All but its controller, which runs where it can be killed, with the rights of the chart's."""
        self.node.start()
        self.node.import_images("croft")
        helm("install", "croft", CHART, "-n", NAMESPACE, "--create-namespace", *values(**{
            "defaultPools.ipv4Cidr": "10.244.0.0/25", "controller.replicas": "0", "controller.history.enabled": "true"}))
        wait_for(self.node.is_ready, "the node is ready", 120)
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/croft-agent", "--timeout=120s", timeout=150)
        token = self.cluster.kubectl("-n", NAMESPACE, "create", "token", "croft-controller", "--duration=2h").stdout
        self.recorder = Recorder(self.cluster.bin, self.cluster.logs, f"kube:{self.cluster.write_kubeconfig('recorder', {'token': token})}")
        self.recorder.begin()
        threading.Thread(target=self.watch_disk, daemon=True).start()

    def pods_come_and_go(self):
        self.since, living = time.time(), []
        pod = deployment("churned", 1, grace_seconds=1)["spec"]["template"]
        for first in range(0, COUNT, WAVE):
            made = [f"web-{number}" for number in range(first, min(first + WAVE, COUNT))]
            self.cluster.kubectl("create", "-f", "-", given="\n".join(json.dumps(
                {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {**pod["metadata"], "name": name}}) for name in made))
            living += made
            self.trouble()
            # Between two questions, which cost the node's processors too.
            wait_for(lambda: time.sleep(1) or len(self.running(*OURS)) == len(living), f"{len(living)} pods run", 150)
            gone = self.dice.sample(living, len(living) - self.dice.randrange(10))
            self.cluster.kubectl("delete", "pod", "--wait=false", *gone)
            living = [name for name in living if name not in gone]
            self.trouble()
        self.cluster.kubectl("delete", "pod", "--wait=false", *OURS)
        wait_for(lambda: time.sleep(1) or not self.held(), "nobody holds an address", 120)
        self.until = time.time()

    def who_held_what(self):
        stays, self.recorder.somewhere = self.stays()
        expect(len(stays) >= COUNT, f"the runtime tells of {len(stays)} sandboxes")
        for sandbox, stay in stays.items():
            expect(sandbox in self.addresses, f"the address of {stay} was seen")
            self.recorder.stays.setdefault(self.addresses[sandbox], []).append(stay)
        say(f"{COUNT} pods in {self.until - self.since:.0f} s: {len(stays)} sandboxes at {len(self.recorder.stays)} addresses, "
            f"{len(self.recorder.somewhere)} failed, {len(self.waited)} DELs waited; killed: {dict(self.kills)}")
        # An API server says once a minute how far a quiet watch is.
        wait_for(lambda: self.recorder.revive() or time.sleep(1) or self.recorder.reaches(self.until), "the history is as far as the last pod", 150)
        tally = asked_back(self.recorder, self.dice, self.since, self.until)
        expect(tally["right"] > INSTANTS // 5, f"{tally}: enough is known")


def chapters_of(cluster):
    story = Recorded(cluster)
    return story.croft_is_installed, story.pods_come_and_go, story.who_held_what


if __name__ == "__main__":
    play(__file__, chapters_of, 1500)
