"""The operator's commands on one sqlite store, as far as a shell is concerned: completion in a real bash, release by pod and by reports,
and a plan. The rest: command_tree_test.cc, src/cli, src/ipam.
"""

import json
import os
import subprocess

from lib import Commands, cache_entry, call_ipam, expect, expect_equal, main, own_environment, run

NOT_FOUND, USAGE, FINDINGS, REFUSED = 1, 2, 3, 5  # exit codes
SHORT = ("--hours", "0.1", "--no-advice", "-o", "json")
# Flags of a plan, and what is said of them.
REFUSED_PLANS = [
    (("--against", "foo=1"), '"foo" is not a setting of a plan. Use the name of a flag'),
    (("--vary", "way=agents,alone"), "Compare with --against."),
    (("--vary", "nodes"), "Write NAME=VALUE,VALUE."),
    (("--nodes", "1.5"), "not a whole number"),
    (("--pool", "10.0.0.0/28"), "Name another with --block-size."),
    (("--datastore", "consul"), "Say kubernetes, etcd or sqlite."),
    (("--from", "STORE", "--block-size", "28"), "comes from the register of --from. Leave it out."),
]


class Operator(Commands):
    def __init__(self, world, name):
        super().__init__(world, world.store(name))

    def add(self, container, node, pod="p", namespace="default"):
        """The plugin's answer."""
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={pod}"
        return call_ipam(self.world, "ADD", container, self.store, node, args)[1]

    def address(self, container, node):
        return self.add(container, node)["ips"][0]["address"].split("/")[0]


def release(croft):
    """Of a pod with two sandboxes; another namespace's pod of that name keeps its own."""
    error = croft.run("ip", "release", "--pod", "default/bb", code=NOT_FOUND).stderr
    expect("holds no address" in error and 'did you mean "default/b"' in error, error)
    expect("would be released" in croft.run("ip", "release", "--pod", "default/b", "--dry-run").stdout, "a dry run")
    croft.add("left", "node-b", "twice")
    croft.add("runs", "node-c", "twice")
    two = croft.run("ip", "release", "--pod", "default/twice", "--max-share", "1", code=REFUSED).stderr
    expect("2 sandboxes" in two and "net.left" in two and "net.runs" in two, two)
    croft.run("ip", "release", "--pod", "default/twice", "--handle", "net.left", "--max-share", "1", "--force")
    states = {row["handle"]: row["state"] for row in croft.data("ip", "list", "--pod", "default/twice")}
    expect_equal(states, {"net.left": "cooling", "net.runs": "held"}, "of two sandboxes")
    croft.run("ip", "release", "--pod", "default/b", "--force")
    states = {pod: [row["state"] for row in croft.data("ip", "list", "--pod", pod)] for pod in ("default/b", "system/b")}
    expect_equal(states, {"default/b": ["cooling"], "system/b": ["held"]}, "released")


def completion(croft):
    script = croft.run("completion", "bash").stdout

    def complete(*words):
        asked = f"""{script}
COMP_LINE='{' '.join(words)}'; COMP_POINT=${{#COMP_LINE}}; _croft; printf '%s\\n' "${{COMPREPLY[@]}}\""""
        return run("bash", "--norc", "-c", asked, env={**os.environ, "PATH": f"{croft.world.bin}:{os.environ['PATH']}"}).stdout.split()

    expect_equal(complete("croft", "po"), ["pool"], "nouns")
    expect({"list", "show", "create"} <= set(complete("croft", "pool", "")), "verbs")
    expect_equal(complete("croft", "pools", "create", "a", "--ci"), ["--cidr"], "options")
    expect_equal(complete("croft", "ip", "ls", "--state", "c"), ["cooling"], "choices")
    expect_equal(complete("croft", "ip", "list", "-o", "j"), ["json"], "choices of common options")
    expect_equal(complete("croft", "--store", "kube:/x", "ip", "list", "--output=j"), ["json"], "behind : and =, where bash cuts words")
    expect_equal(complete("croft", "store", "backup", ""), [], "names of files are the shell's")
    for shell in ("zsh", "fish"):
        script = croft.run("completion", shell).stdout
        expect("croft __complete" in script, f"completion {shell}")
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
    said = croft.world.cli(f"sqlite:{croft.world.directory}/none.db", "check", codes=(4,))
    expect("no store at" in said.stderr and "--kubeconfig" not in said.stderr, f"who named one: {said}")


def mistakes(croft):
    """What a misused command says, and what with."""
    networks = croft.world.directory / "networks"
    for name in ("a", "b"):
        (networks / name).mkdir(parents=True)
    for arguments, code, text in (
            (("pool", "split", "a"), USAGE, '"a" is no value for N'),
            (("pool", "split", "a", "--help"), 0, "Usage: croft pool split N"),
            (("--help",), 0, "refused for safety"),
            (("service", "create", "b", "--tcp", "80:99999"), USAGE, '"80:99999" is not PORT'),
            (("record", "remove", "pool", "nosuch"), NOT_FOUND, "`croft check` names damaged ones"),
            (("host-local", "list", "--dir", str(networks)), USAGE, f"{networks}/a, {networks}/b")):
        told = croft.text(*arguments, code=code)
        expect(text in told, f"croft {' '.join(arguments)}: {told}")


def plan(croft):
    """What is told is taken, a register is begun with, and the rest is refused before anything runs."""
    for arguments, text in REFUSED_PLANS:
        words = [croft.store if word == "STORE" else word for word in arguments]
        done = run(croft.world.bin / "croft", "plan-capacity", *words, *SHORT, check=False)
        expect(done.returncode != 0 and text in done.stderr, f"{arguments}: {done.stdout}{done.stderr}")
    done = run(croft.world.bin / "croft", "plan-capacity", "--from", croft.store, "--pods", "20", "--churn", "60", *SHORT, timeout=120)
    (today,) = json.loads(done.stdout)
    expect_equal((today["pool"], today["blockSize"], today["nodes"]), ("10.1.0.0/24", 28, 1), "the register's pool")


def reports(croft, held):
    directory = croft.world.directory
    cache = directory / "cache"
    (cache / "results").mkdir(parents=True)
    empty = directory / "empty.json"
    text = croft.text("check", "--cni-cache", str(cache), "--grace-seconds", "0", "--report", str(empty), code=FINDINGS)
    expect("cache_empty" in text and "not_attached" not in text, f"an empty cache: {text}")
    report = json.loads(empty.read_text())
    expect(all(one["inUse"] for list_ in report["allocations"].values() for one in list_), "an empty cache proves nothing")
    cache_entry(cache / "results", "other", netns="/proc/self/ns/net")
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
    croft.text("ip", "release", *both, "--max-share", "1")
    states = {row["address"]: row["state"] for row in croft.data("ip", "list")}
    expect_equal([states[a] for a in (*held, new)], ["cooling"] * 3 + ["held"], "after the release")
    foreign = directory / "foreign.json"
    foreign.write_text(json.dumps({**report, "clusterGUID": "croft:sqlite:/elsewhere.db"}))
    croft.text("ip", "release", "--from-report", str(foreign), "--force", code=REFUSED)


def test(world):
    croft = Operator(world, "lists")
    croft.run("pool", "create", "web", "--cidr", "10.1.0.0/24")
    for container, pod, namespace in (("c1", "b", "default"), ("c2", "a", "default"), ("c3", "b", "system")):
        croft.add(container, "node-a", pod, namespace)
    for part in (release, completion, no_store, mistakes):
        part(croft)

    croft, node = Operator(world, "nodes"), "node-a"
    croft.run("pool", "create", "a", "--cidr", "10.1.0.0/24", "--block-size", "28")
    held = [croft.address(f"c{i}", node) for i in (1, 2, 3)]
    plan(croft)
    reports(croft, held)


main(test)
