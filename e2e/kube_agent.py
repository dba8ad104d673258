"""The agent on a real kube-apiserver: what its calls cost there, and what a server that is killed in the middle of a burst leaves."""

import json
import re
import signal
import threading
import time

import lib
from etcd_lib import Node
from kube_store import write_kubeconfig
from lib import expect, expect_equal, own_environment, say, wait_for

REQUESTS = re.compile(rb"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
GROUPS = ("crd.projectcalico.org", "ipam.croft.dev")


def counts(kube):
    """(verb, resource) -> requests that the server has answered, of Calico's and Croft's kinds and of nodes."""
    found = {}
    for labels, value in REQUESTS.findall(kube._send("GET", "/metrics")):
        of = dict(LABEL.findall(labels.decode()))
        # The agent's look whether the store is there is a list of one object.
        is_probe = (of.get("verb"), of.get("resource")) == ("LIST", "croftpoolsets")
        if of.get("verb") != "WATCH" and not is_probe and (of.get("group") in GROUPS or of.get("resource") == "nodes"):
            key = of["verb"], of["resource"]
            found[key] = found.get(key, 0) + int(float(value))
    return found


def cost(kube, act):
    before = counts(kube)
    act()
    return {key: count - before.get(key, 0) for key, count in counts(kube).items() if count != before.get(key, 0)}


def together(node, command, containers):
    """All at once: container -> (exit code, address or error)."""
    started = {c: node.start(command, c) for c in containers}
    answers = {}
    for container, process in started.items():
        code, answer, _ = node.finish(process)
        answers[container] = code, answer["ips"][0]["address"].split("/")[0] if code == 0 and answer else answer
    return answers


def until_done(node, command, containers):
    """The same as a runtime does it: who is told to come again later (code 11) does."""
    answers, waiting = {}, list(containers)
    end = time.monotonic() + 120
    while waiting:
        for container, (code, answer) in together(node, command, waiting).items():
            expect(code == 0 or answer["code"] == 11, f"{command} {container}: {answer}")
            if code == 0:
                answers[container] = answer
        waiting = [c for c in waiting if c not in answers]
        expect(time.monotonic() < end, f"{command} of {waiting} is not done after two minutes")
    return answers


# What one write after the other may leave when the server dies between two (ipam/use/ordered_commit.cc): nobody is harmed,
# and the next use mends it.
LEFT_BY_A_CRASH = ("handle_miscount", "handle_empty", "affinity_unconfirmed", "affinity_stale")


def findings(world, store):
    done = world.cli(store, "-o", "json", "check", codes=(0, 3))
    return [(finding["finding"], finding["subject"]) for finding in json.loads(done.stdout)]


def start_agent(world, store, *options):
    socket = world.directory / "agent.sock"
    return lib.start_agent(world, store, "oak", socket, *options, env=own_environment(world.directory)), socket


def without_readiness(asked):
    """But for the look at ClusterInformation that the agent takes every five seconds, whatever it is asked."""
    return {what: times for what, times in asked.items() if what != ("GET", "clusterinformations")}


def expect_little_reading(asked):
    """At most the block, when the watch tells of a write before its answer has come."""
    reads = {what: times for what, times in without_readiness(asked).items() if what[0] in ("GET", "LIST")}
    expect(set(reads) <= {("GET", "ipamblocks")} and sum(reads.values()) <= 2, f"what a burst reads: {asked}")


def costs(kube, oak):
    """Of bursts; of single calls, with agent and without: kube_costs_test.cc, costs.txt."""
    oak.add("warm")  # what the agent learns once
    wait_for(lambda: sum(cost(kube, lambda: time.sleep(0.5)).values()) == 0, "nobody asks for anything", 20)
    burst = cost(kube, lambda: [expect_equal(code, 0, str(a)) for code, a in
                                together(oak, "ADD", [f"b{i}" for i in range(40)]).values()])
    say(f"a burst of 40: {burst}")
    expect_equal(burst[("POST", "ipamhandles")], 40, "handles of a burst")
    # One after the other it would be 40. How many gather while a write is under way depends on the machine.
    expect(burst[("PUT", "ipamblocks")] <= 20, f"the block is written for many at once: {burst}")
    expect_little_reading(burst)
    gone = cost(kube, lambda: [expect_equal(code, 0, str(a)) for code, a in
                               together(oak, "DEL", [f"b{i}" for i in range(40)]).values()])
    say(f"their DELs: {gone}")
    expect_equal(gone[("DELETE", "ipamhandles")], 40, "handles of the DELs, each deleted at once")
    expect_little_reading(gone)
    # A kubelet asks for each pod some three times: what finds nothing asks for its handle, and the agent's memory.
    nothing = cost(kube, lambda: [expect_equal(code, 0, str(a)) for _ in range(2) for code, a in
                                  together(oak, "DEL", [f"b{i}" for i in range(40)]).values()])
    say(f"DELs of what is gone: {nothing}")
    expect_equal(without_readiness(nothing), {("GET", "ipamhandles"): 80}, "requests of DELs that find nothing")
    idle = cost(kube, lambda: time.sleep(5))
    expect(sum(idle.values()) <= 2, f"an idle agent asks for nothing, but for the end of what it did: {idle}")


def burst_beside_another_writer(world, kube, oak):
    """DELs of plugins alone write the node's block meanwhile, as when the agent makes up for some: twice what all cost alone (costs.txt)."""
    alone, gone, pods = Node(world, oak.ipam["store"], "oak"), [f"gone{i}" for i in range(40)], [f"beside{i}" for i in range(110)]
    until_done(oak, "ADD", gone)

    def both():
        others = threading.Thread(target=lambda: [alone.delete(container) for container in gone])
        others.start()
        until_done(oak, "ADD", pods)
        others.join()
    asked = cost(kube, both)
    say(f"a burst of {len(pods)} beside {len(gone)} DELs of others: {sum(asked.values())} requests: {asked}")
    expect(sum(asked.values()) <= 2 * (8 * len(pods) + 7 * len(gone)), f"requests beside another writer: {asked}")
    until_done(oak, "DEL", pods)


def killed_server(world, kube, store, oak):
    """Who was told an address has it, nobody has another's, and what was refused may be asked for again."""
    names = [f"k{i}" for i in range(60)]
    started = {c: oak.start("ADD", c) for c in names[:30]}
    kube.kill()
    started.update({c: oak.start("ADD", c) for c in names[30:]})
    told = {}
    for container, process in started.items():
        code, answer, _ = oak.finish(process)
        if code == 0:
            told[container] = answer["ips"][0]["address"].split("/")[0]
        else:
            expect(answer["code"] in (11, 999) or answer["code"] >= 100, f"ADD {container}: {answer}")
    say(f"{len(told)} of {len(names)} ADDs were answered before the server died")
    expect(len(told) <= 30, "nobody was answered by a dead server")
    kube.start()
    world.wait_for_store(store)
    again = until_done(oak, "ADD", names)
    for container, address in again.items():
        expect(told.get(container, address) == address, f"{container} was told {told.get(container)}, then {address}")
    expect_equal(len(set(again.values())), len(names), "addresses of all")
    held = world.held(store)
    for container, address in again.items():
        expect_equal(held[address]["containerId"], container, f"who holds {address}")
    until_done(oak, "DEL", names)
    left = [row for row in world.held(store).values() if row["containerId"].startswith("k")]
    expect_equal(left, [], "left behind")


def play(world, kube):
    store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    of_nodes = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
    kube.make_node("oak")
    world.pool(store, "p", "10.79.0.0/16", "--gateway", "none")
    oak = Node(world, of_nodes, "oak")
    agent, socket = start_agent(world, of_nodes)
    oak.ipam["agent"] = str(socket)
    costs(kube, oak)
    burst_beside_another_writer(world, kube, oak)
    expect_equal(findings(world, store), [], "croft check")
    killed_server(world, kube, store, oak)
    left = findings(world, store)
    expect(all(kind in LEFT_BY_A_CRASH for kind, _ in left), f"croft check after the server was killed: {left}")
    say(f"left by the crash: {left}")
    # Reading in vain, as from a server that does not answer, is nothing that an end has to wait for.
    log, told = world.directory / "agent.log", "the store is away: not serving"
    before = log.read_text().count(told)
    kube.process.send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: log.read_text().count(told) > before, "the agent asks in vain", 60)
        time.sleep(1)
        agent.terminate()
        expect_equal(agent.wait(timeout=10), 0, f"the agent's end: {log.read_text()[-600:]}")
    finally:
        kube.process.send_signal(signal.SIGCONT)
