"""The operator's commands on one sqlite store, with the plugin's addresses in it: filters, watching, a terminal, completion in a
real bash; node, affinity, split, check with reports and damage, release. Help, manual pages and misspelt words are
command_tree_test.cc's.

usage: operator_commands.py BIN_DIR
"""

import json
import os
import signal
import subprocess
import sys

from lib import World, call_ipam, expect, expect_equal, main, own_environment, run, say, wait_for, write_past_croft

NOT_FOUND, USAGE, FINDINGS, REFUSED = 1, 2, 3, 5  # exit codes
POOLS = 120


class Operator:
    def __init__(self, world, name):
        self.world = world
        self.store = world.store(name)
        self.path = self.store.removeprefix("sqlite:")

    def run(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done

    def text(self, *arguments, code=0):
        done = self.run(*arguments, code=code)
        return done.stdout + done.stderr

    def data(self, *arguments):
        return json.loads(self.run(*arguments, "-o", "json").stdout)

    def add(self, container, node, pod="p", namespace="default"):
        """The plugin's answer."""
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={pod}"
        return call_ipam(self.world, "ADD", container, self.store, node, args)[1]

    def address(self, container, node):
        return self.add(container, node)["ips"][0]["address"].split("/")[0]


# ---------------------------------------------------------------- lists, and release by pod

def unknown_names(croft):
    for command in (["ip", "list"], ["block", "list"]):
        for flag, name, meant in (("--pool", "webb", "web"), ("--node", "node-b", "node-a")):
            done = croft.run(*command, flag, name, code=NOT_FOUND)
            expect(name in done.stderr and f'did you mean "{meant}"' in done.stderr and not done.stdout, done.stderr)
    expect('did you mean "web"' in croft.run("pool", "show", "wbe", code=NOT_FOUND).stderr, "pool show")


def lists(croft):
    rows = croft.run("ip", "list", "--no-headers", "--sort-by", "pod").stdout.splitlines()
    expect_equal([row.split()[5] for row in rows], ["default/a", "default/b", "system/b"], "sorted by pod")
    expect("ADDRESS" in croft.run("ip", "list").stdout, "headings")
    expect("HANDLE" in croft.run("ip", "list", "-o", "wide").stdout, "wide")
    error = croft.run("ip", "list", "--sort-by", "podd", code=USAGE).stderr
    expect("--sort-by" in error and 'did you mean "pod"' in error, error)
    expect_equal(len(croft.data("ip", "list", "--namespace", "system")), 1, "of a namespace")
    expect_equal(len(croft.data("ip", "list", "--pod", "default/b")), 1, "of a pod")
    croft.run("node", "label", "node-a", "zone=x")
    expect_equal(len(croft.data("ip", "list", "-l", "zone=x")), 3, "on labelled nodes")
    expect_equal(len(croft.data("ip", "list", "-l", "zone!=x")), 0, "on other nodes")
    expect_equal(len(croft.data("node", "list", "-l", "zone")), 1, "labelled nodes")
    croft.run("ip", "list", "-l", "a in (b)", code=USAGE)
    states = [{row["state"] for row in croft.data("ip", "list", *more)} for more in ([], ["--all"], ["--state", "reserved"])]
    expect_equal(states, [{"held"}, {"held", "reserved"}, {"reserved"}], "reserved addresses")
    number = croft.data("ip", "list")[0]["sequenceNumber"]
    expect(isinstance(number, str) and int(number) > 2**53, f"a sequence number is text: {number!r}")
    block = croft.data("block", "list")[0]
    expect(isinstance(block["sequenceNumber"], str), f"of a block too: {block}")
    expect(all(isinstance(n, str) for n in block["sequenceNumberForAllocation"].values()), f"{block}")


def terminal(croft):
    """In a terminal of 60 columns no row is longer."""
    done = run("script", "-qec", f"stty cols 60; {croft.world.bin}/croft --store {croft.store} ip list", "/dev/null",
               check=False)
    rows = [row for row in done.stdout.splitlines() if row.startswith("10.")]
    expect(rows and all(len(row) <= 60 for row in rows), f"rows in a terminal: {done.stdout}{done.stderr}")


def release(croft):
    croft.run("ip", "release", "--pod", "b", code=USAGE)
    error = croft.run("ip", "release", "--pod", "default/bb", code=NOT_FOUND).stderr
    expect("holds no address" in error and 'did you mean "default/b"' in error, error)
    croft.run("ip", "release", "--pod", "default/b", "--max-share", "0.1", code=REFUSED)
    expect("would be released" in croft.run("ip", "release", "--pod", "default/b", "--dry-run").stdout, "a dry run")
    expect_equal(croft.data("ip", "list", "--pod", "default/b")[0]["state"], "held", "after it")
    croft.run("ip", "release", "--pod", "default/b", "--sequence", "7", code=USAGE)
    croft.run("ip", "release", "--from-report", "none", "--handle", "net.b", code=USAGE)
    croft.add("left", "node-b", "twice")
    croft.add("runs", "node-c", "twice")
    two = croft.run("ip", "release", "--pod", "default/twice", "--max-share", "1", code=REFUSED).stderr
    expect("2 sandboxes" in two and "net.left" in two and "net.runs" in two, two)
    croft.run("ip", "release", "--pod", "default/twice", "--handle", "net.none", code=NOT_FOUND)
    croft.run("ip", "release", "--pod", "default/twice", "--handle", "net.left", "--max-share", "1", "--force")
    states = {row["handle"]: row["state"] for row in croft.data("ip", "list", "--pod", "default/twice")}
    expect_equal(states, {"net.left": "cooling", "net.runs": "held"}, "of two sandboxes")
    croft.run("ip", "release", "--pod", "default/twice", "--max-share", "1", "--force")
    expect_equal({row["state"] for row in croft.data("ip", "list", "--pod", "default/twice")}, {"cooling"}, "the other")
    croft.run("ip", "release", "--pod", "default/b", "--force")
    expect_equal([row["state"] for row in croft.data("ip", "list", "--pod", "default/b")], ["cooling"], "released")
    expect_equal([row["state"] for row in croft.data("ip", "list", "--pod", "system/b")], ["held"], "another's of that name")


def watching(croft):
    out = croft.world.directory / "watched"
    with open(out, "wb") as file:
        watch = subprocess.Popen([croft.world.bin / "croft", "--store", croft.store, "pool", "list", "--watch"], stdout=file)
    try:
        wait_for(lambda: "NAME" in out.read_text(), "the first look")
        croft.run("pool", "create", "later", "--cidr", "10.99.0.0/24")
        wait_for(lambda: "later" in out.read_text(), "the new row")
        croft.run("pool", "delete", "later")
        wait_for(lambda: "later   gone" in out.read_text(), "the row that went")
        expect_equal(out.read_text().count("\nweb"), 1, "rows that did not change")
    finally:
        watch.send_signal(signal.SIGINT)
        code = watch.wait(10)
    expect_equal(code, 0, "exit code after Ctrl-C")
    croft.run("pool", "list", "--watch", "-o", "json", code=USAGE)


def completion(croft):
    script = croft.run("completion", "bash").stdout

    def complete(*words):
        asked = f"""{script}
COMP_WORDS=({' '.join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}; _croft; printf '%s\\n' "${{COMPREPLY[@]}}\""""
        return run("bash", "--norc", "-c", asked).stdout.split()

    expect_equal(complete("croft", "po"), ["pool"], "nouns")
    expect({"list", "show", "create"} <= set(complete("croft", "pool", "")), "verbs")
    expect_equal(complete("croft", "pools", "create", "a", "--ci"), ["--cidr"], "options")
    expect_equal(complete("croft", "ip", "ls", "--state", "c"), ["cooling"], "choices")
    expect_equal(complete("croft", "ip", "list", "-o", "j"), ["json"], "choices of common options")
    expect_equal(complete("croft", "store", "backup", ""), [], "names of files are the shell's")
    for shell in ("zsh", "fish"):
        script = croft.run("completion", shell).stdout
        expect("pool" in script and "--" in script, f"completion {shell}")
        if subprocess.run(["which", shell], capture_output=True, check=False).returncode == 0:
            run(shell, "-n", stdin=script)
    expect("fish" in croft.run("completion", "tcsh", code=USAGE).stderr, "another shell")


def no_store(croft):
    """Who names no store, and has none on this machine, may mean a cluster's."""
    inside = ["unshare", *(["--map-root-user"] if os.geteuid() else []), "-m", "--propagation", "private", "sh", "-c", 'mount -t tmpfs tmpfs /var/lib && exec "$@"', "sh"]
    env = {name: value for name, value in own_environment(croft.world.directory).items() if name != "CROFT_STORE"}
    said = run(*inside, croft.world.bin / "croft", "check", check=False, env={**env, "PATH": os.environ["PATH"]})
    expect(said.returncode == 4 and "no store at /var/lib/croft/croft.db" in said.stderr, f"{said}")
    for flag in ("--kubeconfig", "--store"):
        expect(flag in said.stderr, said.stderr)
    said = run(croft.world.bin / "croft", "--store", f"sqlite:{croft.world.directory}/none.db", "check", check=False)
    expect(said.returncode == 4 and "no store at" in said.stderr and "--kubeconfig" not in said.stderr, f"who named one: {said}")


def many_pools(croft):
    """The answer first, and no line for each of hundreds of pools that are all the same."""
    for i in range(POOLS):
        croft.run("pool", "create", f"p-{i:03}", "--cidr", f"10.{200 + i // 256}.{i % 256}.0/24", "--disabled")
    text = croft.run("explain", "--node", "node-a", "--pool", "p-000", code=1).stdout
    expect(text.startswith("Answer: refused") and len(text) < 4000, f"explain: {len(text)} bytes: {text[:400]}")
    croft.run("pool", "disable", "web")
    text = croft.run("explain", "--node", "node-a", code=1).stdout
    expect(text.startswith("Answer: refused") and len(text) < 4000, f"explain: {len(text)} bytes: {text[:400]}")
    answer = croft.add("cx", "node-a", "x")
    expect(answer["code"] in (11, 102) and len(answer["details"]) < 2000, f"{answer}")
    expect(f"{POOLS - 2} more: " in answer["details"], answer["details"])


# ---------------------------------------------------------------- nodes, blocks, reports

def node_commands(croft, node):
    croft.text("node", "label", "extra", "zone=a", "rack=7")
    croft.text("node", "label", "extra", "rack-")
    rows = {row["name"]: row for row in croft.data("node", "list")}
    expect_equal(rows["extra"]["labels"], {"zone": "a"}, "labels")
    expect(rows[node]["blocks"] == 1 and rows[node]["held"] == 3, f"node list: {rows}")
    croft.text("affinity", "claim", "10.1.0.64/27", "--node", "extra")
    croft.text("affinity", "claim", "10.1.0.64/28", "--node", node, code=REFUSED)
    expect_equal(len(croft.data("block", "list", "--node", "extra")), 2, "blocks claimed")
    croft.text("affinity", "release", "--node", "extra", "--cidr", "10.1.0.64/28")
    croft.text("affinity", "release", "--node", "extra", "--cidr", "10.1.0.64/28", code=1)
    croft.text("affinity", "release", "--node", node, "--must-be-empty", code=REFUSED)
    croft.text("node", "remove", "extra", "--dry-run")
    expect("extra" in {row["name"] for row in croft.data("node", "list")}, "node remove --dry-run")
    croft.text("node", "remove", "extra")
    expect("extra" not in {row["name"] for row in croft.data("node", "list")}, "node remove")


def hands(croft, held, node):
    """Destructive commands refuse what is held, say what they would do, and know what does not exist."""
    picture = [croft.data("block", "list"), croft.data("ip", "list"), croft.data("node", "list")]
    text = croft.text("node", "remove", node, code=REFUSED)
    expect("holds 3 addresses" in text and "--force" in text, f"node remove: {text}")
    croft.text("affinity", "release", "--node", node, code=REFUSED)
    croft.text("affinity", "release", "--node", node, "--force", "--dry-run")
    text = croft.text("node", "remove", node, "--force", "--dry-run")
    expect("would be given up" in text, f"node remove --dry-run: {text}")
    for absent in (["node", "remove", "nope"], ["node", "remove", "nope", "--force"],
                   ["affinity", "release", "--node", "nope"], ["affinity", "claim", "10.1.0.96/28", "--node", "nope"],
                   ["node", "label", "nope", "zone-"], ["pool", "delete", "nope"], ["pool", "delete", "nope", "--dry-run"],
                   ["ip", "release", "10.1.0.200"], ["check", "--cni-cache", "/", "--node", "nope"]):
        code = 2 if absent[0] == "check" else 1
        expect("nope" in (text := croft.text(*absent, code=code)) or code == 2 or absent[0] == "ip", f"{absent}: {text}")
    for command in (["ip", "list"], ["block", "list"]):
        expect("knows no node" in croft.text(*command, "--node", "nope", code=1), f"{command}: unknown node")
    croft.text("pool", "delete", "a", "--dry-run", code=REFUSED)
    expect_equal([croft.data("block", "list"), croft.data("ip", "list"), croft.data("node", "list")], picture,
                 "refusals change nothing")
    croft.text("node", "remove", node, "--force")
    block = croft.data("ip", "show", held[0])[0]["block"]
    expect_equal(croft.data("block", "list")[0].get("affinity"), None, "nobody's")
    croft.text("affinity", "claim", block, "--node", node)
    expect_equal([row["address"] for row in croft.data("ip", "list", "--node", node) if row["state"] == "held"], held,
                 "held all the while")
    text = croft.text("check")
    expect("nothing found" in text, f"check after taking the block back: {text}")


def split(croft, held):
    croft.text("pool", "split", "2", "--name", "a", code=1)  # the gateway
    croft.text("pool", "split", "3", "--name", "a", "--gateways", "none", code=2)
    croft.text("pool", "split", "2", "--cidr", "10.1.0.0/24", "--gateways", "none", "--dry-run")
    expect_equal([p["name"] for p in croft.data("pool", "list")], ["a"], "dry run")
    croft.text("pool", "split", "2", "--cidr", "10.1.0.0/24", "--gateways", "none")
    expect_equal([(p["name"], p["cidr"]) for p in croft.data("pool", "list")],
                 [("split-a-0", "10.1.0.0/25"), ("split-a-1", "10.1.0.128/25")], "pool split")
    for address in held:
        expect_equal(croft.data("ip", "show", address)[0]["state"], "held", f"{address} after the split")


def reports(croft, held):
    directory = croft.world.directory
    cache = directory / "cache"
    (cache / "results").mkdir(parents=True)
    empty = directory / "empty.json"
    text = croft.text("check", "--cni-cache", str(cache), "--grace-seconds", "0", "--report", str(empty), code=FINDINGS)
    expect("cache_empty" in text and "not_attached" not in text, f"an empty cache: {text}")
    report = json.loads(empty.read_text())
    expect(all(one["inUse"] for list_ in report["allocations"].values() for one in list_), "an empty cache proves nothing")
    croft.text("check", "--cni-cache", str(cache), "--node", "nope", code=1)
    croft.text("check", "--node", "node-a", code=2)
    (cache / "results" / "net-other-eth0").write_text(json.dumps(
        {"kind": "cniCacheV1", "containerId": "other", "ifName": "eth0", "networkName": "net", "netns": "/proc/self/ns/net"}))
    first, second = directory / "first.json", directory / "second.json"
    croft.text("check", "--cni-cache", str(cache), "--grace-seconds", "0", "--report", str(first), code=FINDINGS)
    report = json.loads(first.read_text())
    expect_equal({ip for ip, list_ in report["allocations"].items() if not list_[0]["inUse"]}, set(held), "unused")
    croft.text("ip", "release", held[2], "--force")
    new = croft.address("c4", "node-z")
    croft.text("check", "--cni-cache", str(cache), "--grace-seconds", "0", "--report", str(second),
               "--show-problem-ips", code=FINDINGS)
    both = ["--from-report", str(first), "--from-report", str(second)]
    text = croft.text("ip", "release", *both, "--dry-run")
    expect(f"{held[0]} would be released" in text and new not in text and held[2] not in text, f"dry run: {text}")
    expect_equal(croft.data("ip", "show", held[0])[0]["state"], "held", "after a dry run")
    text = croft.text("ip", "release", *both, code=REFUSED)
    expect("2 of 2 addresses held on node node-a would go" in text and "--max-share 1" in text, f"the brake: {text}")
    expect_equal(croft.data("ip", "show", held[0])[0]["state"], "held", "after a refusal")
    refuse_configured(croft, held[0], both)
    croft.text("ip", "release", *both, "--max-share", "1")
    states = {row["address"]: row["state"] for row in croft.data("ip", "list")}
    expect_equal([states[a] for a in (*held, new)], ["cooling"] * 3 + ["held"], "after the release")
    foreign = directory / "foreign.json"
    report["clusterGUID"] = "croft:sqlite:/elsewhere.db"
    foreign.write_text(json.dumps(report))
    croft.text("ip", "release", "--from-report", str(foreign), "--force", code=REFUSED)
    report["clusterGUID"] = "a-guid"
    foreign.write_text(json.dumps(report))
    croft.text("ip", "release", "--from-report", str(foreign), code=REFUSED)
    croft.text("ip", "release", "--from-report", str(foreign), "--force")
    croft.text("ip", "release", new, "--handle", "net.other", code=REFUSED)
    croft.text("ip", "release", new, held[0], "--force", code=1)  # the second is not held
    expect_equal(croft.data("ip", "show", new)[0]["state"], "cooling", "released by address")


def refuse_configured(croft, address, reports):
    """An address that is on an interface of this machine is in use, whatever the cache that was looked at lacks."""
    if os.geteuid() != 0:
        return say("not root: no network namespace was made")
    command = f"ip address add {address}/32 dev lo && ip link set lo up && echo up && exec sleep 300"
    pod = subprocess.Popen(["unshare", "-n", "sh", "-c", command], stdout=subprocess.PIPE)
    try:
        expect_equal(pod.stdout.readline(), b"up\n", "a namespace with the address")
        text = croft.text("ip", "release", *reports, "--max-share", "1", code=REFUSED)
        expect(f"{address} is configured on lo in" in text, f"a release of what is in use: {text}")
    finally:
        pod.kill()
        pod.wait()


def damage(croft):
    """A record that can't be read is a finding; the rest is checked all the same."""
    changed = write_past_croft(croft.path, ("UPDATE records SET value=x'7b7d' WHERE name='split-a-1'", ()))[0][1]
    expect_equal(changed, 1, "records damaged")
    text = croft.text("check", code=FINDINGS)
    expect("record_unreadable: pool split-a-1" in text and "addresses held" in text, f"check: {text}")


def closed_streams(croft):
    """Words for a standard stream that is closed land nowhere, least of all in the lock file with the commit note."""
    backup = croft.world.directory / "backup.db"
    croft.text("store", "backup", str(backup))
    with open(croft.path + "-lock", "rb") as lock:
        note = lock.read()
    for closed in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
        done = run("sh", "-c", f'"$0" "$@" {closed}', croft.world.bin / "croft", "--store", croft.store, "store", "restore",
                   "--dry-run", "--force", backup, check=False)
        expect_equal(done.returncode, 1, f"exit code with {closed}")
        with open(croft.path + "-lock", "rb") as lock:
            expect_equal(lock.read(), note, f"the lock file, with {closed}")


def test():
    with World("operator", sys.argv[1]) as world:
        croft = Operator(world, "lists")
        croft.run("pool", "create", "web", "--cidr", "10.1.0.0/24")
        for container, pod, namespace in (("c1", "b", "default"), ("c2", "a", "default"), ("c3", "b", "system")):
            croft.add(container, "node-a", pod, namespace)
        for part in (unknown_names, lists, terminal, release, watching, completion, many_pools, no_store):
            part(croft)

        croft, node = Operator(world, "nodes"), "node-a"
        croft.run("pool", "create", "a", "--cidr", "10.1.0.0/24", "--block-size", "28")
        held = [croft.address(f"c{i}", node) for i in (1, 2, 3)]
        node_commands(croft, node)
        hands(croft, held, node)
        split(croft, held)
        reports(croft, held)
        closed_streams(croft)
        damage(croft)


main(test)
