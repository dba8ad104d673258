"""ADDs and DELs of many nodes at once on a real kube-apiserver, while agents, plugins and the API server are killed and stopped: nobody
is told an address that another has, and nothing that was told is lost.

usage: kube_storm.py BIN_DIR VERSION [OPERATIONS] [SEED]
"""

import random
import signal
import sys
import time

from etcd_lib import Node
from kube_agent import LEFT_BY_A_CRASH, findings
from kube_apiserver_lib import KubeApiserver
from kube_store import calico_definitions, install_definitions, make_accounts, write_kubeconfig
from lib import Daemon, World, expect, expect_equal, main, own_environment, say
from store_copy import Churn

NODES = 8


class Storm(Churn):
    """Plugins that go by agents mostly, and are killed now and then, until so many calls were made."""

    workers, held_of_a_worker, patience = 3, 12, 120

    def __init__(self, world, store, seed, operations):
        super().__init__(world, dict.fromkeys((f"n{i}" for i in range(NODES)), store), seed)
        self.agents, self.left = {}, operations
        for name in self.stores:
            self.start_agent(name)

    def socket(self, name):
        return self.world.directory / f"{name}.sock"

    def start_agent(self, name):
        self.agents[name] = Daemon(self.world, f"agent-{name}", self.world.bin / "croftd", "agent", "--store", self.stores[name], "--node", name,
                                   "--socket", self.socket(name), env=own_environment(self.world.directory))

    def disturb_agent(self, name, chance):
        agent, what = self.agents[name], chance.choice(("kill", "end", "stop"))
        if what == "stop":
            agent.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0.05, 1.5))
            agent.send_signal(signal.SIGCONT)
            return
        agent.send_signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)
        agent.wait(10)
        time.sleep(chance.uniform(0, 0.5))
        self.start_agent(name)

    def ends(self):
        with self.ledger.lock:
            self.left -= 1
            return self.left < 0 or bool(self.ledger.broken)

    def call(self, name, command, container, chance):
        node = Node(self.world, self.stores[name], name)
        options = {"agent": str(self.socket(name))} if chance.random() < 0.9 else {}
        process = node.start(command, container, **options)
        if chance.random() < 0.03:
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.communicate()
            return None
        return node.finish(process)[:2]

    def disturb(self, kube):
        chance, kills = random.Random(self.seed), 0
        while self.left > 0 and not self.ledger.broken:
            time.sleep(chance.uniform(0.3, 1.2))
            if chance.random() < 0.04:
                kube.kill()
                time.sleep(chance.uniform(0, 1))
                kube.start()
                kills += 1
            else:
                self.disturb_agent(chance.choice(list(self.agents)), chance)
        say(f"the API server was killed {kills} times")


def test():
    operations = int(sys.argv[3]) if len(sys.argv) > 3 else 6000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    calico_definitions()
    with World("kube-storm", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        operator = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        store = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
        world.pool(operator, "p", "10.79.0.0/22", "--block-size", "28", "--gateway", "none")
        storm, begin = Storm(world, store, seed, operations), time.monotonic()
        with storm:
            storm.guarded(storm.disturb, kube)
            for thread in storm.threads:
                thread.join()
        say(f"{operations} calls in {time.monotonic() - begin:.0f} s; refused on the way: {storm.ledger.refusals}")
        storm.check()
        world.wait_for_store(operator, 60)
        held = {address: row["containerId"] for address, row in world.held(operator).items()}
        lost = {c: a for c, a in storm.ledger.told.items() if held.get(a) != c}
        expect_equal(lost, {}, "told, and not held")
        left = {a: c for a, c in held.items() if c not in storm.ledger.told}
        say(f"{len(storm.ledger.told)} addresses are held as told; left behind their DELs: {left}")
        expect(len(left) <= operations // 10000 + 1, f"left behind: {left}")
        found = findings(world, operator)
        say(f"croft check finds: {found}")
        expect({kind for kind, _ in found} <= set(LEFT_BY_A_CRASH), f"croft check: {found}")


main(test, 3500)
