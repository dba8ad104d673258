"""The manners of the command line: what is misspelt is named, lists that are empty say so, filters, watching, release by
pod, completion in a real bash, manual pages. On one sqlite store; neither root nor network.

usage: command_manners.py BIN_DIR
"""

import json
import os
import re
import signal
import subprocess
import sys

from lib import World, expect, expect_equal, main, own_environment, run, wait_for

NOT_FOUND, USAGE, REFUSED = 1, 2, 5  # exit codes
POOLS = 500


class Operator:
    def __init__(self, world):
        self.world = world
        self.store = world.store()

    def run(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done

    def data(self, *arguments):
        return json.loads(self.run(*arguments, "-o", "json").stdout)

    def add(self, container, pod, node, namespace="default", pool=None):
        """Who holds is made by the plugin."""
        ipam = {"type": "croft-ipam", "store": self.store, "nodename": node}
        if pool:
            ipam["ipv4_pools"] = [pool]
        done = run(self.world.bin / "croft-ipam", check=False, env={
            **os.environ, "CNI_COMMAND": "ADD", "CNI_CONTAINERID": container, "CNI_NETNS": "/var/run/netns/none",
            "CNI_IFNAME": "eth0", "CNI_PATH": str(self.world.bin),
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={pod}"},
            stdin=json.dumps({"cniVersion": "1.0.0", "name": "net", "type": "bridge", "ipam": ipam}))
        return json.loads(done.stdout)


def misspelt(croft):
    for arguments, meant in ((["pol", "list"], "pool"), (["pool", "lst"], "list"), (["chekc"], "check"),
                             (["pool", "create", "a", "--cdir", "10.0.0.0/8"], "--cidr")):
        done = croft.run(*arguments, code=USAGE)
        expect(f'did you mean "{meant}"' in done.stderr and "--help" in done.stderr, f"{arguments}: {done.stderr}")
        expect("subcommand is required" not in done.stderr, done.stderr)
        expect_equal(done.stdout, "", "standard output")
    expect("needs a command" in croft.run(code=USAGE).stderr, "croft alone")
    expect("needs a command: create, list" in croft.run("pool", code=USAGE).stderr, "croft pool")
    croft.run("pools", "ls")
    version = croft.run("version").stdout
    expect_equal(croft.run("--version").stdout, version, "croft --version")
    expect(re.match(r"croft [0-9.]+( \(commit [0-9a-f]{7,}(\+changes)?\))?\nbuilt with ", version), version)


def helps(croft):
    for path in ([], ["pool"], ["pool", "list"], ["host-local", "repair"], ["service", "repair"], ["store", "restore"]):
        text = croft.run(*path, "--help").stdout
        expect("--store STORE" in text and "json|table|wide|yaml" in text, f"{path}: {text}")
        expect("->" not in text and "INT" not in text, f"{path}: {text}")
        examples = text[text.index("Examples:"):].splitlines()[1:]
        expect(all(line.startswith("  croft " + " ".join(path)) for line in examples), f"{path}: {examples}")


def daemon(croft):
    """croftd has the same manners."""
    def croftd(*arguments, code=0):
        done = run(croft.world.bin / "croftd", *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croftd {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done

    for path in ([], ["agent"], ["controller"], ["man"]):
        text = croftd(*path, "--help").stdout
        expect("Usage: croftd" in text and "Examples:" in text, f"{path}: {text}")
        expect(not re.search(r"->| INT|INT:| in \[|TEXT|\{", text), f"{path}: {text}")
    text = " ".join(croftd("controller", "--help").stdout.split())
    expect("--grace DURATION" in text and "default: 15m" in text and "--output json|none" in text, text)
    for arguments, words in ((["agnet"], 'did you mean "agent"'), (["agent", "--sokcet", "x"], 'did you mean "--socket"'),
                             ([], "needs a command"), (["controller", "--grace", "soon"], "croftd controller --help")):
        done = croftd(*arguments, code=USAGE)
        expect(words in done.stderr and not done.stdout, f"{arguments}: {done.stderr}")
    expect("complete -o default -F _croftd croftd" in croftd("completion", "bash").stdout, "completion of croftd")
    directory = croft.world.directory / "man8"
    croftd("man", str(directory))
    expect((directory / "croftd-agent.8").read_text().startswith(".TH CROFTD\\-AGENT 8 "), "croftd-agent.8")


def host_local(croft):
    """`croft host-local list` has the options of the other lists."""
    networks, cache = croft.world.directory / "networks/net", croft.world.directory / "cache"
    networks.mkdir(parents=True)
    (cache / "results").mkdir(parents=True)
    for address, container in (("10.5.0.10", "h1"), ("10.5.0.9", "h2")):
        (networks / address).write_text(f"{container}\r\neth0")
    (cache / "results/net-h1-eth0").write_text(json.dumps({
        "kind": "cniCacheV1", "containerId": "h1", "ifName": "eth0", "networkName": "net", "netns": "/run/netns/none",
        "cniArgs": [["K8S_POD_NAMESPACE", "system"], ["K8S_POD_NAME", "web"]], "result": {}}))
    base = ["host-local", "list", "--dir", str(networks), "--cni-cache", str(cache)]
    text = croft.run(*base).stdout
    expect("ADDRESS" in text and "SET" in text and "system/web" in text, text)
    rows = croft.run(*base, "--no-headers", "--sort-by", "address").stdout.splitlines()
    expect_equal([row.split()[0] for row in rows], ["10.5.0.9", "10.5.0.10"], "sorted rows and nothing else")
    for filters, found in (([], 2), (["--pod", "web"], 1), (["--pod", "system/web"], 1), (["-n", "system"], 1), (["--pod", "x"], 0)):
        there = [row for row in croft.data(*base, *filters) if row["kind"] == "reservation"]
        expect_equal(len(there), found, f"reservations of {filters}")
    expect("WRITTEN" in croft.run(*base, "-o", "wide").stdout, "wide")
    expect("No reservations." in croft.run(*base, "--pod", "x").stderr, "an empty list")
    expect('did you mean "pod"' in croft.run(*base, "--sort-by", "podd", code=USAGE).stderr, "an unknown column")
    out = croft.world.directory / "watched-reservations"
    with open(out, "wb") as file:
        watch = subprocess.Popen([croft.world.bin / "croft", *base, "--watch"], stdout=file)
    try:
        wait_for(lambda: "10.5.0.9" in out.read_text(), "the first look")
        (networks / "10.5.0.11").write_text("h3\r\neth0")
        wait_for(lambda: "10.5.0.11" in out.read_text(), "the new row")
        expect_equal(out.read_text().count("10.5.0.9 "), 1, "rows that did not change")
    finally:
        watch.send_signal(signal.SIGINT)
        expect_equal(watch.wait(10), 0, "exit code after Ctrl-C")


def empty_lists(croft):
    for noun, words in (("pool", "No pools."), ("block", "No blocks."), ("ip", "No addresses."), ("node", "No nodes.")):
        done = croft.run(noun, "list")
        if noun != "pool":
            expect_equal((done.stdout, done.stderr), ("", words + "\n"), f"{noun} list")
        expect(isinstance(croft.data(noun, "list"), list), f"{noun} list -o json")


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


def release(croft):
    croft.run("ip", "release", "--pod", "b", code=USAGE)
    error = croft.run("ip", "release", "--pod", "default/bb", code=NOT_FOUND).stderr
    expect("holds no address" in error and 'did you mean "default/b"' in error, error)
    croft.run("ip", "release", "--pod", "default/b", "--max-share", "0.1", code=REFUSED)
    expect("would be released" in croft.run("ip", "release", "--pod", "default/b", "--dry-run").stdout, "a dry run")
    expect_equal(croft.data("ip", "list", "--pod", "default/b")[0]["state"], "held", "after it")
    croft.run("ip", "release", "--pod", "default/b", "--sequence", "7", code=USAGE)
    croft.run("ip", "release", "--from-report", "none", "--handle", "net.b", code=USAGE)
    croft.add("left", "twice", "node-b")
    croft.add("runs", "twice", "node-c")
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


def terminal(croft):
    """In a terminal of 60 columns no row is longer."""
    done = run("script", "-qec", f"stty cols 60; {croft.world.bin}/croft --store {croft.store} ip list", "/dev/null",
               check=False)
    rows = [row for row in done.stdout.splitlines() if row.startswith("10.")]
    expect(rows and all(len(row) <= 60 for row in rows), f"rows in a terminal: {done.stdout}{done.stderr}")


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


def manual(croft):
    directory = croft.world.directory / "man1"
    croft.run("man", str(directory))
    pages = {page.name: page.read_text() for page in directory.iterdir()}
    expect({"croft.1", "croft-pool.1", "croft-pool-list.1", "croft-node-range-assign.1"} <= set(pages), f"{sorted(pages)}")
    expect("\\-\\-sort\\-by COLUMN" in pages["croft-pool-list.1"], pages["croft-pool-list.1"])
    if subprocess.run(["which", "man"], capture_output=True, check=False).returncode == 0:
        done = run("man", "--warnings", "-l", directory / "croft-pool-list.1", check=False)
        expect(not done.stderr.strip(), f"man complains: {done.stderr}")


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
    answer = croft.add("cx", "x", "node-a")
    expect(answer["code"] in (11, 102) and len(answer["details"]) < 2000, f"{answer}")
    expect(f"{POOLS - 2} more: " in answer["details"], answer["details"])


def test():
    with World("manners", sys.argv[1]) as world:
        croft = Operator(world)
        croft.run("pool", "create", "web", "--cidr", "10.1.0.0/24")
        misspelt(croft)
        helps(croft)
        daemon(croft)
        host_local(croft)
        empty_lists(croft)
        for container, pod, namespace in (("c1", "b", "default"), ("c2", "a", "default"), ("c3", "b", "system")):
            croft.add(container, pod, "node-a", namespace)
        unknown_names(croft)
        lists(croft)
        terminal(croft)
        release(croft)
        watching(croft)
        completion(croft)
        manual(croft)
        many_pools(croft)
        no_store(croft)


main(test)
