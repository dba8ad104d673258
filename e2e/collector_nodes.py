"""Which nodes are gone: only those that a list had and has no more, and those that an operator removed. Pods of nodes that
no list ever named keep their addresses, whatever the list says, and the controller says so.

usage: collector_nodes.py BIN_DIR
"""

import json
import os
import subprocess
import sys
import threading

from lib import World, call_ipam, expect, expect_equal, main, run, say

GRACE = "1500ms"  # a list may be half as old
FINDINGS, REFUSED = 3, 5  # exit codes


class Rig:
    def __init__(self, world):
        self.world, self.store = world, world.store()
        self.file = world.directory / "facts.json"

    def croft(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def add(self, pod, node):
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME={pod};K8S_POD_UID=uid-{pod}"
        return call_ipam(self.world, "ADD", f"c-{pod}", self.store, node, args)[1]["ips"][0]["address"].split("/")[0]

    def write(self, nodes, pods=None):
        facts = {"nodes": [{"name": name} for name in nodes], "complete": True}
        if pods is not None:
            facts["pods"] = [{"namespace": "ns", "name": name, "node": node, "phase": "Running", "addresses": [address]}
                             for name, (node, address) in pods.items()]
        draft = self.file.with_suffix(".draft")
        draft.write_text(json.dumps(facts))
        draft.replace(self.file)

    def command(self, *more):
        return [str(self.world.bin / "croftd"), "controller", "--store", self.store, "--grace", GRACE, "--output", "json",
                *more]

    def once(self, *more, code):
        """The second of two looks."""
        done = threading.Event()

        def renew():
            while not done.wait(0.05):
                if self.file.exists():
                    os.utime(self.file)
        writer = threading.Thread(target=renew)
        writer.start()
        try:
            ended = run(*self.command("--once", *more), check=False)
        finally:
            done.set()
            writer.join()
        expect_equal(ended.returncode, code, f"exit code of croftd {more}: {ended.stdout}{ended.stderr}")
        return json.loads(ended.stdout.splitlines()[-1])

    def held(self):
        return set(self.world.held(self.store))


def alarms(look):
    return [alarm["alarm"] for alarm in look["alarms"]]


def records_of_some(rig, live):
    rig.croft("node", "label", "gpu-1", "zone=a")
    look = rig.once(code=FINDINGS)
    expect_equal((alarms(look), look["released"]), (["nodes_differ"], []), "a record of a node that holds nothing")
    rig.croft("node", "label", "node-a", "zone=a")
    look = rig.once(code=FINDINGS)
    expect_equal((alarms(look), look["released"]), (["nodes_unknown"], []), "records of some nodes")
    expect("node-b" in look["alarms"][0]["text"] and "node-a" not in look["alarms"][0]["text"], f"text: {look['alarms']}")
    expect_equal(rig.held(), live, "held")
    say("  a label on one node makes no other node gone")


def other_names(rig, live):
    for pods in (None, {"else": ("host-1", "192.0.2.1")}):
        rig.write(["host-1", "host-2"], pods)
        look = rig.once("--facts", str(rig.file), code=FINDINGS)
        expect_equal((alarms(look), look["released"]), (["nodes_differ"], []), "a list of host names")
        expect("host-1, host-2" in look["alarms"][0]["text"] and "node-a" in look["alarms"][0]["text"], "it names both")
    expect_equal(rig.held(), live, "held")
    say("  a list whose names are none of the register's is refused, and both are named")


def seen_and_gone(rig, live):
    """A controller that runs: a node that was listed disappears."""
    lost = rig.add("lost", "node-c")
    rig.write(["node-a", "node-b", "node-c"])
    with subprocess.Popen(rig.command("--interval", "100ms", "--facts", str(rig.file)), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        try:
            stopped = threading.Event()

            def renew():
                while not stopped.wait(0.05):
                    os.utime(rig.file)
            writer = threading.Thread(target=renew)
            writer.start()
            for line in process.stdout:
                if json.loads(line)["nodes"] == 3:
                    rig.write(["node-a", "node-b"])
                released = json.loads(line)["released"]
                if lost in [evidence["subject"] for evidence in released]:
                    break
            stopped.set()
            writer.join()
        finally:
            process.kill()
    expect_equal(released[0]["reason"], "node_gone", "reason")
    expect(any("in an earlier list" in fact for fact in released[0]["facts"]), f"evidence: {released[0]}")
    expect_equal(rig.held(), live, "held")
    say("  a node that was listed and is not any more is gone")


def removed(rig, live):
    """A controller that starts anew has seen nothing, but knows what an operator said; not what came after."""
    gone = rig.add("gone", "node-d")
    rig.write(["node-a", "node-b"])
    look = rig.once("--facts", str(rig.file), code=FINDINGS)
    expect_equal((alarms(look), look["released"]), (["nodes_unknown"], []), "never listed")
    rig.croft("node", "remove", "node-d", code=REFUSED)
    rig.croft("node", "remove", "node-d", "--force")
    back = rig.add("back", "node-d")
    look = rig.once("--facts", str(rig.file), code=FINDINGS)
    expect_equal([e["subject"] for e in look["released"] if e["what"] == "address"], [gone], "released")
    expect("and was removed by hand" in " ".join(look["released"][0]["facts"]), f"evidence: {look['released']}")
    expect_equal(rig.held(), live | {back}, "held")
    say("  what a node held that was removed goes; what it got since stays")


def test():
    with World("collector-nodes", sys.argv[1]) as world:
        rig = Rig(world)
        rig.croft("pool", "create", "a", "--cidr", "10.80.0.0/24", "--block-size", "28", "--cooldown-seconds", "0")
        live = {rig.add("a", "node-a"), rig.add("b", "node-b")}
        for part in (records_of_some, other_names, seen_and_gone, removed):
            part(rig, live)


main(test)
