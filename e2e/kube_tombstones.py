"""DELs while the API server is away: each succeeds, leaves a tombstone on the node, and is made up for when the server
is back, by the next call or by the agent, which the plugins know the store to by another name; never against an ADD
that came later. How many wait, and what `croft check` says of them: tombstones_test.cc, check_remedies.py.
"""

import json
import time

from etcd_lib import Node
from kube_agent import counts, findings, start_agent, together, until_done
from kube_store import write_kubeconfig
from lib import expect, expect_equal, say, wait_for

TRIES = 5  # of each pod while the API server is away


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        self.of_nodes = write_kubeconfig(world, kube, "croft-node")
        self.place = world.directory / "tombstones"
        self.oak = Node(world, f"kube:{self.of_nodes}", "oak")
        self.oak.env = {"CROFT_TOMBSTONES": str(self.place)}

    def left(self):
        """Whose DELs wait; whoever makes up for one may take its file between the listing and the look."""
        found = []
        for path in self.place.glob("*.json"):
            try:
                found.append(json.loads(path.read_text())["containerID"])
            except FileNotFoundError:
                continue
        return sorted(found)

    def holders(self):
        return sorted(row["containerId"] for row in self.world.held(self.store).values())

    def come_back(self):
        self.kube.start()
        self.world.wait_for_store(self.store)


def alone(rig):
    oak = rig.oak
    for container in ("c1", "c2", "c3"):
        oak.add(container)
    expect(not rig.place.exists(), "nothing is made while all is well")
    rig.kube.kill()
    oak.delete("c1")
    oak.delete("c2")
    oak.delete("c2")
    expect_equal(sorted(rig.left()), ["c1", "c2"], "tombstones")
    # c2 begins anew before its DEL was made up for: it keeps what it had.
    expect_equal(oak.refuse("c2")["code"], 11, "an ADD needs the store")
    expect_equal(rig.left(), ["c1"], "tombstones after an ADD")
    oak.delete("c2")
    rig.come_back()
    expect_equal(rig.holders(), ["c1", "c2", "c3"], "who holds before anybody makes up for it")
    oak.add("c2")
    expect_equal(rig.holders(), ["c2", "c3"], "an ADD takes its own tombstone away and makes up for others")
    expect_equal(rig.left(), [], "tombstones")
    log = (rig.world.directory / "ipam.log").read_text()
    expect("deferred=" in log and "TOMBSTONE network=net container=c1" in log, f"the log says so: {log}")
    for container in ("c2", "c3"):
        oak.delete(container)


def without_kubeconfig(rig):
    """The way to the register is lost, not the register: a DEL is made up for, and an ADD is to be tried again."""
    oak, lost = rig.oak, rig.of_nodes.with_suffix(".lost")
    oak.add("k1")
    rig.of_nodes.rename(lost)
    oak.delete("k1")
    expect_equal(rig.left(), ["k1"], "tombstones without a kubeconfig")
    refusal = oak.refuse("k2")
    expect_equal(refusal["code"], 11, f"an ADD without a kubeconfig: {refusal}")
    expect(str(rig.of_nodes) in refusal["msg"], f"it names the file: {refusal}")
    lost.rename(rig.of_nodes)
    oak.add("k3")
    expect_equal((rig.left(), rig.holders()), ([], ["k3"]), "made up for, and who holds")
    oak.delete("k3")


def with_agent(rig):
    # The agent has its own kubeconfig, as a pod of a DaemonSet has its own account.
    own = rig.world.directory / "agents.kubeconfig"
    own.write_bytes(rig.of_nodes.read_bytes())
    own.chmod(0o600)
    agent, socket = start_agent(rig.world, f"kube:{own}", "--plugin-store", f"kube:{rig.of_nodes}",
                                "--tombstones", str(rig.place))
    rig.oak.ipam["agent"] = str(socket)
    names = [f"a{i}" for i in range(24)]
    until_done(rig.oak, "ADD", names)
    last = (rig.world.directory / "ipam.log").read_text().splitlines()[-1]
    expect("via=agent" in last, f"an agent that names the store otherwise serves: {last}")
    rig.kube.kill()
    begin = time.monotonic()
    for container, (code, answer) in together(rig.oak, "DEL", names[:20]).items():
        expect_equal(code, 0, f"DEL {container}: {answer}")
    say(f"20 DELs without an API server took {time.monotonic() - begin:.1f} s")
    expect_equal(sorted(rig.left()), sorted(names[:20]), "tombstones")
    expect_equal(rig.oak.refuse("vain")["code"], 11, "an ADD needs the store")
    rig.oak.delete("vain")
    rig.come_back()
    wait_for(lambda: rig.left() == [], "the agent has made up for them", 60)
    expect_equal(rig.holders(), sorted(names[20:]), "who holds")
    log = (rig.world.directory / "agent.log").read_text()
    expect(log.count("TOMBSTONE network=net container=a") == 20 and log.count("TOMBSTONE network=net container=vain") == 1, f"the agent says so: {log}")
    until_done(rig.oak, "DEL", names[20:])
    long_away(rig)
    agent.terminate()
    expect_equal(agent.wait(timeout=10), 0, "the agent's end")


def long_away(rig):
    """Half an hour, compressed: pods that can't start are tried again without a kubelet's pauses, while others end or begin anew."""
    oak, pods, away = rig.oak, [f"pod{i}" for i in range(110)], []
    ended, again, both, runs = ([f"{name}{i}" for i in range(count)] for name, count in (("ended", 50), ("again", 5), ("both", 5), ("runs", 10)))
    told = until_done(oak, "ADD", ended + again + both + runs)

    def all_of(command, names, code):
        for container, (status, answer) in together(oak, command, names).items():
            expect_equal(answer["code"] if status else 0, code, f"{command} {container}: {answer}")

    rig.kube.kill()
    begin = time.monotonic()
    for turn in range(TRIES):
        away += [f"{pod}-{turn}" for pod in pods]
        for command, code in (("ADD", 11), ("DEL", 0)):
            all_of(command, away[-len(pods):], code)
        if turn == 1:
            oak.more = {"prevResult": {"cniVersion": "1.0.0", "ips": []}}
            all_of("DEL", ended + again + both, 0)
            oak.more = {}
            all_of("ADD", again, 11)
    say(f"{TRIES} tries of {len(pods)} pods, and {len(ended)} DELs, took {time.monotonic() - begin:.1f} s")
    expect_equal(sorted(set(rig.left()) - set(away)), sorted(ended + both), "DELs that wait, and were for nothing new")
    rig.kube.start()
    begin = time.monotonic()
    done = until_done(oak, "ADD", pods + again + both)
    asked = [sum(counts(rig.kube).values())]
    say(f"all run after {time.monotonic() - begin:.1f} s and {asked[0]} requests")
    # A turn of the agent's has 100 DELs, a second apart: eight requests each, and one that was for nothing one. An ADD by itself
    # has nine, and may lose its block to another a few times.
    turn = 8 * len(ended + both) + 100
    expect(asked[0] <= 2 * turn + 40 * len(done), f"requests as the API server is back: {counts(rig.kube)}")
    while rig.left():
        expect(time.monotonic() < begin + 150, f"{len(rig.left())} DELs wait still")
        time.sleep(1)
        asked.append(sum(counts(rig.kube).values()))
        expect(asked[-1] - asked[-2] <= turn + 200, f"requests in a second: {asked}")
    say(f"all is made up for after {time.monotonic() - begin:.1f} s; requests by then, each second: {asked}")
    held = {row["containerId"]: address for address, row in rig.world.held(rig.store).items()}
    expect_equal(held, {**{name: told[name] for name in runs}, **done}, "who holds what")
    expect_equal([done[name] for name in again], [told[name] for name in again], "who began anew has what it had")
    until_done(oak, "DEL", [*held])


def play(world, kube):
    rig = Rig(world, kube)
    kube.make_node("oak")
    world.pool(rig.store, "p", "10.80.0.0/16", "--gateway", "none")
    alone(rig)
    without_kubeconfig(rig)
    say("a plugin alone leaves tombstones and makes up for them, without its kubeconfig too")
    with_agent(rig)
    expect(all(kind.startswith("handle_") or kind == "affinity_stale" for kind, _ in findings(world, rig.store)),
           f"croft check: {findings(world, rig.store)}")
