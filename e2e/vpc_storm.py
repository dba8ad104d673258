"""Pods come and go through three agents of one subnet, while agents are killed, the cloud goes away, is slow, refuses, has no addresses
left, forgets to answer, and has lists that are old. At each ADD's answer no other pod has the address, and it has rested; what a pod
has is its node's in the cloud, and no two agents list it. At the end the cloud has what the agents have records of.

usage: vpc_storm.py BIN_DIR SECONDS SEED
"""

import random
import sys
import threading
import time

from lib import Failure, expect, expect_equal, main, run, say
from store_copy import Ledger
from vpc_lib import Agent, Certificates, Cloud, SUBNET, grpc, make_peers, settled

NODES = ("node-a", "node-b", "node-c")
CHURNERS = 4  # of each node
COOLDOWN = 1
FLAGS = ("--cooldown-seconds", str(COOLDOWN), "--reconcile-seconds", "2", "--grace-seconds", "2", "--doubt-seconds", "2")
ACTIONS = ("AllocateSecondaryIp", "AllocateBatchSecondaryIp", "DeleteSecondaryIp", "MoveSecondaryIPMac",
           "DescribeSecondaryIp", "*")
AWAY = (grpc.RpcError, ValueError)  # ValueError: the channel was closed, as its agent is begun again


class Storm:
    def __init__(self, world, seconds, seed):
        self.world, self.random = world, random.Random(seed)
        self.cloud = Cloud(world, "storm", NODES, 27)  # 29 addresses: too few at times
        certificates = Certificates(world, "tls", NODES)
        self.agents = [Agent(self.cloud, node, low=6, high=12, flags=FLAGS) for node in NODES]
        make_peers(self.agents, certificates)
        self.ledger, self.failed = Ledger(COOLDOWN), 0
        self.end = None
        self.seconds = seconds
        self.counts = {}
        self.looks = 0

    def guarded(self, work, *arguments):
        def run_it():
            try:
                work(*arguments)
            except Exception as error:  # pylint: disable=broad-except
                self.ledger.broken.append(f"{work.__name__}: {error!r}")
        thread = threading.Thread(target=run_it, daemon=True)
        thread.start()
        return thread

    def is_over(self):
        return time.monotonic() >= self.end or self.ledger.broken

    def churn(self, agent, number, seed):
        own = random.Random(seed)
        pod = 0
        while not self.is_over():
            sandbox = f"{agent.node}-{number}-{pod}"
            pod += 1
            ip = ""
            try:
                ip = agent.add(sandbox, timeout=own.choice((0.05, 1, 5, 8)))
                self.ledger.take((agent.node, sandbox), ip)
                time.sleep(own.random() * 0.4)
            except AWAY:
                self.failed += 1
                time.sleep(0.02)
            self.ledger.drop((agent.node, sandbox))
            # As kubelet does: until it is done, and also when the ADD brought nothing.
            late = time.monotonic() + 60
            while True:
                try:
                    agent.delete(sandbox, ip if own.random() < 0.5 else "", timeout=5)
                    break
                except AWAY as error:
                    if time.monotonic() > late:
                        raise Failure(f"DEL {sandbox} is not served for 60 s: {error!r}") from None
                    time.sleep(0.05)

    def harm(self):
        """One thing after the other goes wrong, and is made good again."""
        while not self.is_over():
            time.sleep(self.random.random() * 0.6)
            what = self.random.choice(("kill", "kill", "kill two", "outage", "lose", "lose", "lose", "throttle", "slow",
                                       "exhaust", "delete", "lag"))
            self.counts[what] = self.counts.get(what, 0) + 1
            if what.startswith("kill"):
                chosen = self.random.sample(self.agents, 2 if what == "kill two" else 1)
                for agent in chosen:
                    agent.kill()
                time.sleep(self.random.random() * 0.5)
                for agent in chosen:
                    agent.start()
            elif what == "outage":
                self.cloud.do("outage", mode=self.random.choice(("refuse", "hang")))
                time.sleep(self.random.random() * 2)
                self.cloud.do("outage", mode="off")
            elif what == "lose":
                self.cloud.do("fault", kind="lose", action=self.random.choice(ACTIONS), count=self.random.randint(1, 2),
                              committed=self.random.choice(("true", "true", "false")))
            elif what == "throttle":
                self.cloud.do("fault", kind="ret_code", action=self.random.choice(ACTIONS), value=153, committed="false")
            elif what == "slow":
                most = self.random.choice((0, 100, 600))
                self.cloud.do("latency", min_ms=0, max_ms=most)
            elif what == "exhaust":
                self.cloud.do("exhaust", subnet=SUBNET)
                time.sleep(self.random.random() * 2)
                self.cloud.do("exhaust", subnet=SUBNET, on="false")
            elif what == "lag":
                self.cloud.do("list-lag", ms=self.random.choice((0, 1000, 10_000, 120_000)))
            elif what == "delete":
                # Somebody presses a button: one that waits in a stock goes.
                agent = self.random.choice(self.agents)
                try:
                    agent.call("PopPool", timeout=5)
                except AWAY:
                    pass

    def look(self):
        """What two looks and all in between agree on."""
        while not self.is_over():
            before = self.ledger.holders()
            try:
                lists = {agent.node: agent.records(timeout=5) for agent in self.agents}
                truth = {one["ip"]: one["node"] for one in self.cloud.truth()["addresses"]}
            except AWAY + (OSError,):
                time.sleep(0.1)
                continue
            after = self.ledger.holders()
            self.looks += 1
            for ip, holder in before.items():
                if after.get(ip) != holder:
                    continue
                node, sandbox = holder
                if truth.get(ip) != node:
                    self.ledger.broken.append(f"{holder} has {ip}, which the cloud gave to {truth.get(ip)}")
                if lists[node].get(ip) != sandbox:
                    self.ledger.broken.append(f"{holder} has {ip}, and its agent says {lists[node].get(ip)}")
                others = [other for other in NODES if other != node and ip in lists[other]]
                if others:
                    self.ledger.broken.append(f"{holder} has {ip}, and so say the agents of {others}")
            time.sleep(0.1)

    def run(self):
        for agent in self.agents:
            agent.start()
        self.end = time.monotonic() + self.seconds
        threads = [self.guarded(self.harm), self.guarded(self.look)]
        churners = [self.guarded(self.churn, agent, number, self.random.random())
                    for agent in self.agents for number in range(CHURNERS)]
        threads[0].join()  # agents and cloud are there again
        self.cloud.do("heal")
        self.cloud.do("latency", min_ms=0, max_ms=0)
        self.cloud.do("list-lag", ms=0)
        for thread in threads + churners:
            thread.join()
        ledger = self.ledger
        events = self.cloud.truth()["events"]
        moved = sum(1 for event in events if event["from"] and event["to"])
        adds = len(ledger.gone) - self.failed
        say(f"{adds} ADDs that got an address, {self.failed} that did not, {self.looks} looks; {self.counts}; "
            f"in the cloud {len(events)} changes, {moved} from node to node")
        expect_equal(ledger.broken, [], "what went wrong")
        expect(adds > self.seconds, "pods got addresses")
        # A call that hangs is given 30 s.
        settled(self.cloud, self.agents, unused=None, seconds=75)
        for agent in self.agents:
            expect_equal(agent.records(), {}, f"{agent.name}: all pods are gone")
        over = {agent.node: agent.unused() for agent in self.agents}
        say(f"left for the operator: { {node: len(ips) for node, ips in over.items()} }")
        for agent in self.agents:
            done = run(self.world.bin / "croft", "vpc", "release", agent.node, "-y", "--agent",
                       f"{agent.node}=unix:{agent.socket}", check=False)
            expect_equal(done.returncode, 0, f"release: {done.stdout}{done.stderr}")
        settled(self.cloud, self.agents)


def test(world):
    storm = Storm(world, int(sys.argv[2]), sys.argv[3])
    try:
        storm.run()
    except BaseException:
        for agent in storm.agents:
            if agent.process is not None:
                say(f"--- {agent.name}\n{agent.process.tail(60)}")
        raise


main(test, int(sys.argv[2]) + 230)
