"""A register moves from etcd into a Kubernetes API and back, and from SQLite into etcd, while pods come and go: the real
programs on a real etcd and a real kube-apiserver. The migration is killed again and again and goes on. Nodes name the
old store or the new one as they like: no address is told to two, nothing that was told is lost, `croft check` is clean.

usage: migrate.py BIN_DIR VERSION [SEED]
"""

import json
import random
import signal
import subprocess
import sys
import threading
import time

from etcd import Node
from etcd_lib import Etcd
from kube_apiserver_lib import KubeApiserver
from kube_storm import Ledger
from kube_store import apply, is_served, make_accounts, shipped_definitions, write_kubeconfig
from lib import Failure, World, expect, expect_equal, main, own_environment, run, say, wait_for

NODES = ("node-a", "node-b", "node-c")
WORKERS_OF_A_NODE = 2
HELD_OF_A_WORKER = 8
LATER = 11  # CNI's "try again later"


class Churn:
    """Pods of some nodes that come and go. `stores` says which store each node names."""

    def __init__(self, world, stores, seed):
        self.world, self.stores, self.seed = world, dict(stores), seed
        self.ledger = Ledger(10**9)
        self.stop, self.threads, self.faults = threading.Event(), [], []
        self.told = dict.fromkeys(stores, 0)  # how many ADDs of each node succeeded
        self.holding, self.given_up = {}, False

    def __enter__(self):
        for index, name in enumerate(self.stores):
            for worker in range(WORKERS_OF_A_NODE):
                thread = threading.Thread(target=self._guarded, args=(name, f"{name}-{worker}", self.seed + 10 * index + worker))
                thread.start()
                self.threads.append(thread)
        return self

    def __exit__(self, *why):
        self.given_up = why[0] is not None
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _guarded(self, *what):
        try:
            self._work(*what)
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(f"{what[1]}: {error}")

    def _call(self, name, command, container):
        node = Node(self.world, self.stores[name], name)
        return node.finish(node.start(command, container))

    def _delete(self, name, container):
        self.ledger.drop(container)  # from here on somebody else may get it
        until = time.monotonic() + 400
        while True:
            code, answer, _ = self._call(name, "DEL", container)
            if code == 0:
                return
            expect_equal((answer or {}).get("code"), LATER, f"DEL {container}: {answer}")
            expect(time.monotonic() < until, f"DEL {container} is not done after 400 s: {answer}")
            expect(not self.given_up, "the test has failed elsewhere")
            time.sleep(0.3)

    def _work(self, name, prefix, seed):
        chance, mine = random.Random(seed), self.holding.setdefault(prefix, [])
        for number in range(sys.maxsize):
            if self.stop.is_set():
                return
            if mine and (chance.random() < 0.45 or len(mine) >= HELD_OF_A_WORKER):
                self._delete(name, mine.pop(chance.randrange(len(mine))))
                continue
            container = f"{prefix}-{self.seed}-{number}"
            code, answer, _ = self._call(name, "ADD", container)
            if code == 0:
                self.ledger.take(container, answer["ips"][0]["address"].split("/")[0])
                self.told[name] += 1
                mine.append(container)
                continue
            expect_equal((answer or {}).get("code"), LATER, f"ADD {container} on {self.stores[name]}: {answer}")
            self.ledger.refused(answer)
            time.sleep(0.3)
            self._delete(name, container)

    def check(self):
        expect(not self.ledger.broken, f"two holders: {self.ledger.broken}")
        expect(not self.faults, f"{self.faults}")

    def wait_for_told(self, name, count, seconds=60):
        begin = self.told[name]
        wait_for(lambda: self.told[name] >= begin + count or self.faults or self.ledger.broken, f"ADDs on {name}", seconds)
        self.check()


def held_in(world, store):
    """Container -> address, as the register has it."""
    listed = json.loads(run(world.bin / "croft", "--store", store, "-o", "json", "ip", "list").stdout)
    return {one["containerId"]: one["address"] for one in listed if one["state"] == "held"}


def finish(world, store, churn, closed):
    """What was told is what the register says, and nothing contradicts itself."""
    churn.check()
    held, told = held_in(world, store), churn.ledger.told
    expect_equal({c: a for c, a in told.items() if held.get(c) != a}, {}, "told and not held so")
    expect_equal({c: a for c, a in held.items() if c not in told}, {}, "held and not told")
    checked = run(world.bin / "croft", "--store", store, "check", check=False)
    expect_equal(checked.returncode, 0, f"croft check: {checked.stdout}{checked.stderr}")
    say(checked.stdout.strip().splitlines()[-1])
    answer = Node(world, closed, "node-a").refuse("too-late")
    expect_equal(answer["code"], LATER, f"the source is closed for good: {answer}")
    expect("was moved to" in answer["msg"], f"{answer}")


class Migration:
    """`croft migrate store --apply`, killed now and then."""

    def __init__(self, world, source, target):
        self.command = [world.bin / "croft", "migrate", "store", "--from", source, "--to", target]
        self.env, self.lines = own_environment(world.directory), []

    def plan(self):
        done = subprocess.run([*map(str, self.command), "-o", "json"], capture_output=True, text=True, env=self.env,
                              timeout=120, check=False)
        expect(done.returncode == 0, f"the plan: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def run(self, until=None, delay=0.0, timeout=400):
        """Until it ends, or a line says `until`; then it is killed `delay` later. Whether it ended by itself."""
        process = subprocess.Popen([*map(str, self.command), "--apply"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.env)
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        killed = False
        for line in process.stderr:
            self.lines.append(line.strip())
            if until and until in line and not killed:
                killed = True
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
        out = process.stdout.read()
        code = process.wait()
        timer.cancel()
        if killed:
            return False
        expect(code == 0, f"croft migrate store ended with {code}: {out}\n" + "\n".join(self.lines[-15:]))
        say(out.strip().splitlines()[0])
        return True


def move(world, source, target, seed):
    """A node that names the new store too early is refused; the others follow one by one when that is whole."""
    chance = random.Random(seed)
    migration = Migration(world, source, target)
    with Churn(world, {**dict.fromkeys(NODES, source)}, seed) as churn:
        churn.wait_for_told("node-a", 10)
        plan = migration.plan()
        expect_equal((plan["step"], plan["obstacles"]), (("take-over" if plan["targetSeal"] else "begin"), []), "the plan")
        begin = time.monotonic()
        for until in ("the target", "copied", "the source is closed"):
            if migration.run(until, delay=chance.uniform(0, 0.03)):
                break
            step = migration.plan()["step"]
            say(f"killed after {until!r}: {step}")
            if step == "done":
                break  # it was quicker
            early = Node(world, target, "node-d").refuse("early")
            expect_equal(early["code"], LATER, f"the target is closed: {early}")
        migration.run()
        say(f"moved in {time.monotonic() - begin:.1f} s with kills")
        again = migration.plan()
        expect_equal(again["step"], "done", "what is left to do")
        # The nodes follow one after the other, while the first already gets addresses from the new store.
        churn.stores["node-c"] = target
        churn.wait_for_told("node-c", 5)
        expect_equal(churn.stores["node-a"], source, "node-a is still on the old store")
        for name in ("node-a", "node-b"):
            churn.stores[name] = target
            churn.wait_for_told(name, 5)
    finish(world, target, churn, source)
    # For what comes next.
    for name, held in churn.holding.items():
        for container in held:
            churn._delete(name.rsplit("-", 1)[0], container)  # pylint: disable=protected-access
    return churn


def give_up(world, source, target):
    """A migration that was begun and is not wanted: the source serves again."""
    migration = Migration(world, source, target)
    expect(not migration.run("the source is closed"), "it was to be killed")
    answer = Node(world, source, "node-a").refuse("closed")
    expect_equal(answer["code"], LATER, f"{answer}")
    status = run(world.bin / "croft", "migrate", "status", "--store", source)
    expect("is being moved to" in status.stdout, f"{status.stdout}")
    run(world.bin / "croft", "migrate", "give-up", "--from", source, "--to", target, "--apply")
    address = Node(world, source, "node-a").add("open-again")
    Node(world, source, "node-a").delete("open-again")
    say(f"given up, and the source serves again: {address}")


def install(world, kube):
    names = []
    for kind in ("croft", "calico"):
        names += [apply(kube, part, "application/yaml") for part in shipped_definitions(kind)]
    for name in names:
        wait_for(lambda name=name: is_served(kube, name), f"{name} is served", 30)


def test():
    version = sys.argv[2]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    say(f"seed {seed}")
    with World("migrate", sys.argv[1]) as world, KubeApiserver(world, version) as kube:
        install(world, kube)
        make_accounts(kube)
        api = f"kube:{write_kubeconfig(world, kube)}"
        etcd = Etcd(world)
        file = f"sqlite:{world.directory}/register.db"
        run(world.bin / "croft", "--store", file, "pool", "create", "four", "--cidr", "10.7.0.0/22", "--cooldown-seconds", "2")
        run(world.bin / "croft", "--store", file, "pool", "create", "six", "--cidr", "fd00:7::/116", "--cooldown-seconds", "2",
            "--disabled")
        give_up(world, file, etcd.store)
        for number, (source, target) in enumerate(((file, etcd.store), (etcd.store, api), (api, etcd.store))):
            say(f"--- {source.split(':')[0]} to {target.split(':')[0]}")
            move(world, source, target, seed + number)


if __name__ == "__main__":
    main(test, 3500)
