"""The collector on a store that plugins use: ADDs killed after their commit, and pods deleted without a DEL, leave
addresses; croftd finds them in two looks, says why, and frees them and nothing else. An empty list of pods frees nothing.
Gone are only nodes that a list had and has no more, and those that an operator removed: pods of nodes that no list ever named
keep their addresses, and the controller says so.
"""

import contextlib
import datetime
import json
import os
import signal
import subprocess
import threading
import time

from lib import begin_ipam, expect, expect_equal, main, run, say, write_past_croft

FINDINGS, REFUSED = 3, 5  # exit codes
GRACE = "1500ms"  # a list may be half as old


class Rig:
    def __init__(self, world, name):
        self.world, self.store = world, world.store(name)
        self.facts_file = world.directory / f"{name}.json"
        self.pods, self.nodes = {}, ["node-a", "node-b"]

    def begin(self, pod, node):
        return begin_ipam(self.world, "ADD", f"c-{pod}", self.store, node, f"IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME={pod}")

    def add(self, pod, node="node-a"):
        return json.loads(self.begin(pod, node).communicate(timeout=60)[0])["ips"][0]["address"].split("/")[0]

    def add_killed(self, pod, node="node-a"):
        """The plugin commits and dies before anybody hears its answer: nobody will ever send a DEL."""
        process = self.begin(pod, node)
        end = time.monotonic() + 15
        while pod not in [row["pod"] for row in self.world.held(self.store).values()]:
            expect(time.monotonic() < end, f"{pod} is not recorded")
        process.kill()
        process.wait()

    def list_nodes(self, *nodes):
        """And says nothing of pods."""
        self.put_facts({"nodes": [{"name": name} for name in nodes], "complete": True})

    def write_facts(self, **more):
        self.put_facts({"nodes": [{"name": n} for n in self.nodes], "complete": True, "pods": [
            {"namespace": "ns", "name": name, "node": "node-a", "phase": "Running", "addresses": [address]}
            for name, address in self.pods.items()], **more})

    def put_facts(self, facts):
        draft = self.facts_file.with_suffix(".draft")
        draft.write_text(json.dumps(facts))
        draft.replace(self.facts_file)

    @contextlib.contextmanager
    def renewed(self):
        """Somebody keeps the file current, as far as its times tell."""
        done = threading.Event()

        def renew():
            while not done.wait(0.05):
                os.utime(self.facts_file)
        writer = threading.Thread(target=renew)
        os.utime(self.facts_file)
        writer.start()
        try:
            yield
        finally:
            done.set()
            writer.join()

    def command(self, *more, listed=True):
        facts = ("--facts", self.facts_file) if listed else ()
        return [self.world.bin / "croftd", "controller", "--store", self.store, *facts, "--grace", GRACE, "--output", "json", *more]

    def once(self, *more, exit_code=0, listed=True):
        """Two looks; what the second one says, and the log. Not `listed`: nobody says which nodes there are."""
        with self.renewed() if listed else contextlib.nullcontext():
            done = run(*self.command("--once", *more, listed=listed), check=False)
        expect_equal(done.returncode, exit_code, f"exit code of croftd: {done.stdout}{done.stderr}")
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        expect_equal((len(looks), looks[0]["released"]), (2, []), "looks, and what the first one released")
        return looks[1], done.stderr


def leaks_with_evidence(rig):
    rig.pods = {name: rig.add(name) for name in [f"alive-{i}" for i in range(20)]}
    for i in range(2):
        rig.add(f"deleted-{i}")
        rig.add_killed(f"killed-{i}")
    held = rig.world.held(rig.store)
    leaked = {address for address, row in held.items() if row["pod"].startswith(("deleted", "killed"))}
    expect_equal(len(leaked), 4, "leaked addresses")
    rig.write_facts()

    planned, _ = rig.once("--dry-run")
    expect_equal(({e["subject"] for e in planned["released"]}, rig.world.held(rig.store)), (leaked, held), "what a dry run would release, and what is held after it")
    done, log = rig.once()
    expect_equal({e["subject"] for e in done["released"]}, leaked, "released")
    for evidence in done["released"]:
        row = held[evidence["subject"]]
        expect_equal((evidence["what"], evidence["reason"], evidence["handle"], evidence["sequenceNumber"]),
                     ("address", "pod_gone", row["handle"], row["sequenceNumber"]), "evidence")
        expect(f"pod ns/{row['pod']} is not among 20 pods" in evidence["facts"], f"facts: {evidence['facts']}")
        expect(f"released address {evidence['subject']}: pod_gone" in log, f"log: {log}")
    expect_equal(set(rig.world.held(rig.store)), set(rig.pods.values()), "held afterwards")
    rig.world.croft(rig.store, "check")
    say("  4 leaks found in two looks, with evidence; a dry run changes nothing; 20 pods keep their addresses")


def lists_that_prove_nothing(rig):
    """Too many at once, files that nobody renews, and lists of other nodes: testdata/collector/brake.txt, static_facts_test.cc, judge_test.cc."""
    held, alive = rig.world.held(rig.store), rig.pods
    old = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
    for what, rig.pods, more in (("an empty list", {}, {}), ("a cut list", alive, {"complete": False}),
                                 ("an old list", alive, {"time": old.strftime("%Y-%m-%dT%H:%M:%SZ")})):
        rig.write_facts(**more)
        looked, _ = rig.once(exit_code=3)
        expect_equal(alarms(looked), ["lists_do_not_fit"], f"alarms with {what}")
        expect_equal(rig.world.held(rig.store), held, f"held after {what}")
    say("  an empty, cut or old list frees nothing")


def first_failure(world):
    """`--once` ends with the code of the first pass that failed, though the passes after it went well."""
    store = world.store("failing")
    for words in (("service", "create", "web", "--tcp", "80", "--service-cluster-ip-range", "10.96.0.0/24"), ("node", "label", "node-a", "zone=a")):
        run(world.bin / "croft", "--store", store, *words)
    write_past_croft(store, ("DELETE FROM records WHERE name=?", ("serviceips",)))
    done = run(world.bin / "croftd", "controller", "--store", store, "--once", "--grace", "1ms", "--repair-service-ranges", check=False)
    missing = "service ranges: serviceips: there is no record serviceips, and Services hold values of it"
    expect_equal((done.returncode, done.stderr.count(" addresses in ")), (2, 2), f"it went on: {done.stderr}")
    expect(f"error controller: {missing}" in done.stderr and f"croftd: {missing}" in done.stderr, done.stderr)
    before = write_past_croft(store, ("SELECT * FROM records", ()))
    for wrong, why in (("--once --repair-service-ranges --service-cluster-ip-range 10.96.0.0/12,bogus", "not an ip net"), ("--desk :9680", "--desk-token-file"),
                       ("--once --repair-service-ranges --service-node-port-range x", "unable to parse port range"), ("--desk :9680 --desk-token-file /none", "cannot open")):
        done = run(world.bin / "croftd", "controller", "--store", store, *"--grace 0s --allocate-node-cidrs --cluster-cidr 10.244.0.0/16".split(), *wrong.split(), check=False)
        expect(why in done.stderr and write_past_croft(store, ("SELECT * FROM records", ())) == before, f"written, though {wrong} is wrong: {done.stderr}")


# ---------------------------------------------------------------- which nodes are gone

def alarms(look):
    return [alarm["alarm"] for alarm in look["alarms"]]


def records_of_some(rig, live):
    rig.world.cli(rig.store, "node", "label", "gpu-1", "zone=a")
    look, _ = rig.once(exit_code=FINDINGS, listed=False)
    expect_equal((alarms(look), look["released"]), (["lists_do_not_fit"], []), "a record of a node that holds nothing")
    rig.world.cli(rig.store, "node", "label", "node-a", "zone=a")
    look, _ = rig.once(exit_code=FINDINGS, listed=False)
    expect_equal((alarms(look), look["released"]), (["nodes_unknown"], []), "records of some nodes")
    expect("node-b" in look["alarms"][0]["text"] and "node-a" not in look["alarms"][0]["text"], f"text: {look['alarms']}")
    expect_equal(set(rig.world.held(rig.store)), live, "held")
    say("  a label on one node makes no other node gone")


def seen_and_gone(rig, live):
    """A controller that runs, and ends when told: a node that was listed disappears."""
    lost = rig.add("lost", "node-c")
    rig.list_nodes("node-a", "node-b", "node-c")
    process = subprocess.Popen(rig.command("--interval", "100ms"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    rig.world.stack.callback(process.kill)
    with rig.renewed():
        for line in process.stdout:
            if json.loads(line)["nodes"] == 3:
                rig.list_nodes("node-a", "node-b")
            released = json.loads(line)["released"]
            if lost in [evidence["subject"] for evidence in released]:
                break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=15)
    expect_equal((process.returncode, released[0]["reason"]), (0, "node_gone"), "exit code after SIGTERM, reason")
    expect(any("in an earlier list" in fact for fact in released[0]["facts"]), f"evidence: {released[0]}")
    expect_equal(set(rig.world.held(rig.store)), live, "held")
    say("  a node that was listed and is not any more is gone")


def removed(rig, live):
    """A controller that starts anew has seen nothing, but knows what an operator said; not what came after."""
    gone = rig.add("gone", "node-d")
    rig.list_nodes("node-a", "node-b")
    look, _ = rig.once(exit_code=FINDINGS)
    expect_equal((alarms(look), look["released"]), (["nodes_unknown"], []), "never listed")
    rig.world.cli(rig.store, "node", "remove", "node-d", codes=(REFUSED,))
    rig.world.cli(rig.store, "node", "remove", "node-d", "--force")
    back = rig.add("back", "node-d")
    look, _ = rig.once(exit_code=FINDINGS)
    expect_equal([e["subject"] for e in look["released"] if e["what"] == "address"], [gone], "released")
    expect("and was removed by hand" in " ".join(look["released"][0]["facts"]), f"evidence: {look['released']}")
    expect_equal(set(rig.world.held(rig.store)), live | {back}, "held")
    say("  what a node held that was removed goes; what it got since stays")


def test(world):
    rig = Rig(world, "pods")
    world.pool(rig.store, "a", "10.80.0.0/24", "--block-size", "26")
    for part in (leaks_with_evidence, lists_that_prove_nothing):
        part(rig)
    first_failure(world)
    rig = Rig(world, "nodes")
    world.pool(rig.store, "a", "10.80.0.0/24", "--block-size", "28")
    live = {rig.add("a", "node-a"), rig.add("b", "node-b")}
    for part in (records_of_some, seen_and_gone, removed):
        part(rig, live)


main(test)
