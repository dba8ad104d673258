"""Which nodes are gone: only those that a list had and has no more, and those that an operator removed. Pods of nodes that
no list ever named keep their addresses, whatever the list says, and the controller says so.

usage: collector_nodes.py BIN_DIR
"""

import contextlib
import json
import subprocess
import sys

import collector
from lib import World, expect, expect_equal, main, run, say

FINDINGS, REFUSED = 3, 5  # exit codes


class Rig(collector.Rig):
    def croft(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def write(self, nodes, pods=None):
        facts = {"nodes": [{"name": name} for name in nodes], "complete": True}
        if pods is not None:
            facts["pods"] = [{"namespace": "ns", "name": name, "node": node, "phase": "Running", "addresses": [address]}
                             for name, (node, address) in pods.items()]
        draft = self.facts_file.with_suffix(".draft")
        draft.write_text(json.dumps(facts))
        draft.replace(self.facts_file)

    def last(self, *more, code, listed=True):
        """The second of two looks; not `listed`: nobody says which nodes there are."""
        words = self.command("--once", *more)
        if not listed:
            at = words.index("--facts")
            del words[at:at + 2]
        with self.renewed() if listed else contextlib.nullcontext():
            ended = run(*words, check=False)
        expect_equal(ended.returncode, code, f"exit code of croftd {more}: {ended.stdout}{ended.stderr}")
        return json.loads(ended.stdout.splitlines()[-1])

    def holders(self):
        return set(self.world.held(self.store))


def alarms(look):
    return [alarm["alarm"] for alarm in look["alarms"]]


def records_of_some(rig, live):
    rig.croft("node", "label", "gpu-1", "zone=a")
    look = rig.last(code=FINDINGS, listed=False)
    expect_equal((alarms(look), look["released"]), (["nodes_differ"], []), "a record of a node that holds nothing")
    rig.croft("node", "label", "node-a", "zone=a")
    look = rig.last(code=FINDINGS, listed=False)
    expect_equal((alarms(look), look["released"]), (["nodes_unknown"], []), "records of some nodes")
    expect("node-b" in look["alarms"][0]["text"] and "node-a" not in look["alarms"][0]["text"], f"text: {look['alarms']}")
    expect_equal(rig.holders(), live, "held")
    say("  a label on one node makes no other node gone")


def other_names(rig, live):
    for pods in (None, {"else": ("host-1", "192.0.2.1")}):
        rig.write(["host-1", "host-2"], pods)
        look = rig.last(code=FINDINGS)
        expect_equal((alarms(look), look["released"]), (["nodes_differ"], []), "a list of host names")
        expect("host-1, host-2" in look["alarms"][0]["text"] and "node-a" in look["alarms"][0]["text"], "it names both")
    expect_equal(rig.holders(), live, "held")
    say("  a list whose names are none of the register's is refused, and both are named")


def seen_and_gone(rig, live):
    """A controller that runs: a node that was listed disappears."""
    lost = rig.add("lost", "node-c")
    rig.write(["node-a", "node-b", "node-c"])
    with subprocess.Popen(rig.command("--interval", "100ms"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            with rig.renewed():
                for line in process.stdout:
                    if json.loads(line)["nodes"] == 3:
                        rig.write(["node-a", "node-b"])
                    released = json.loads(line)["released"]
                    if lost in [evidence["subject"] for evidence in released]:
                        break
        finally:
            process.kill()
    expect_equal(released[0]["reason"], "node_gone", "reason")
    expect(any("in an earlier list" in fact for fact in released[0]["facts"]), f"evidence: {released[0]}")
    expect_equal(rig.holders(), live, "held")
    say("  a node that was listed and is not any more is gone")


def removed(rig, live):
    """A controller that starts anew has seen nothing, but knows what an operator said; not what came after."""
    gone = rig.add("gone", "node-d")
    rig.write(["node-a", "node-b"])
    look = rig.last(code=FINDINGS)
    expect_equal((alarms(look), look["released"]), (["nodes_unknown"], []), "never listed")
    rig.croft("node", "remove", "node-d", code=REFUSED)
    rig.croft("node", "remove", "node-d", "--force")
    back = rig.add("back", "node-d")
    look = rig.last(code=FINDINGS)
    expect_equal([e["subject"] for e in look["released"] if e["what"] == "address"], [gone], "released")
    expect("and was removed by hand" in " ".join(look["released"][0]["facts"]), f"evidence: {look['released']}")
    expect_equal(rig.holders(), live | {back}, "held")
    say("  what a node held that was removed goes; what it got since stays")


def test():
    with World("collector-nodes", sys.argv[1]) as world:
        rig = Rig(world)
        rig.croft("pool", "create", "a", "--cidr", "10.80.0.0/24", "--block-size", "28", "--cooldown-seconds", "0")
        live = {rig.add("a", "node-a"), rig.add("b", "node-b")}
        for part in (records_of_some, other_names, seen_and_gone, removed):
            part(rig, live)


main(test)
