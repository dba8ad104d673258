"""The operator's commands on one sqlite store: config, node, affinity, block, pool split, explain, check with a damaged
record, reports and release from them. Neither root nor network.

usage: operator_commands.py BIN_DIR
"""

import json
import os
import subprocess
import sys

from lib import World, expect, expect_equal, main, own_environment, run, say, write_past_croft

FINDINGS, REFUSED = 3, 5  # exit codes


class Operator:
    def __init__(self, world):
        self.world = world
        self.store = world.store()
        self.path = self.store.removeprefix("sqlite:")

    def text(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def data(self, *arguments):
        return self.world.croft(self.store, *arguments)

    def plugin(self, command, container, node):
        config = {"cniVersion": "1.0.0", "name": "net", "type": "bridge",
                  "ipam": {"type": "croft-ipam", "store": self.store, "nodename": node,
                           "log_file_path": str(self.world.directory / "log")}}
        env = {**os.environ, **own_environment(self.world.directory),
               "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": "/var/run/netns/none",
               "CNI_IFNAME": "eth0", "CNI_PATH": str(self.world.bin)}
        done = run(self.world.bin / "croft-ipam", stdin=json.dumps(config), env=env)
        return json.loads(done.stdout)["ips"][0]["address"].split("/")[0] if command == "ADD" else None


def config_commands(croft):
    croft.text("config", "set", "--auto-allocate-blocks", "false", code=1)
    expect("nothing to set" in croft.text("config", "set", code=2), "config set without an option")
    croft.text("config", "set", "--strict-affinity", "true", "--max-blocks-per-host", "4")
    shown = croft.data("config", "show")[0]
    expect_equal((shown["strictAffinity"], shown["maxBlocksPerHost"], shown["autoAllocateBlocks"]), (True, 4, True),
                 "config show")
    expect("strictAffinity" in croft.text("config", "show"), "config show as a table")
    croft.text("config", "set", "--max-blocks-per-host", "0", "--strict-affinity", "false")


def pool_settings(croft):
    """What a person changes of a pool, and addresses that he keeps from pods."""
    croft.text("pool", "create", "late", "--cidr", "10.7.0.0/28", "--block-size", "29", "--node-selector", 'rack == "a"')
    expect("nothing to set" in croft.text("pool", "set", "late", code=2), "pool set without an option")
    expect("late" in croft.text("pool", "set", "lste", "--priority", "1", code=1), "a name that is nearly one")
    croft.text("pool", "set", "late", "--node-selector", "rack ==", code=2)
    shown = croft.data("pool", "set", "late", "--cooldown-seconds", "0", "--gateway", "10.7.0.9", "--priority", "9",
                       "--node-selector", "")[0]
    expect_equal((shown["cooldownSeconds"], shown["gateway"], shown["priority"], shown["nodeSelector"], shown["blockSize"]),
                 (0, "10.7.0.9", 9, "all()", 29), "pool set")
    croft.text("reservation", "create", "printers", "--cidr", "10.7.0.2,10.7.0.3", "--cidr", "10.7.0.8/29")
    expect("unchanged" in croft.text("reservation", "create", "printers", "--cidr", "10.7.0.2,10.7.0.3,10.7.0.8/29"), "once more")
    rows = {row["name"]: row["reservedCIDRs"] for row in croft.data("reservations", "list")}
    expect_equal(rows["printers"], ["10.7.0.2/32", "10.7.0.3/32", "10.7.0.8/29"], "reservation list")
    expect("10.7.0.1/32" in rows["pool-late"] and "10.7.0.9/32" in rows["pool-late"], f"both gateways: {rows}")
    expect_equal(croft.plugin("ADD", "first", "new-node"), "10.7.0.4", "the pool of the highest priority, past what is kept")
    told = croft.text("reservation", "create", "more", "--cidr", "10.7.0.4")
    expect("1 address of reservation more is held" in told, told)
    croft.text("reservation", "delete", "pool-late", code=REFUSED)
    for name in ("printers", "more"):
        croft.text("reservation", "delete", name)
    croft.text("reservation", "delete", "more", code=1)
    croft.plugin("DEL", "first", "new-node")
    croft.text("pool", "set", "late", "--disabled", "true")
    croft.text("pool", "delete", "late")


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


def views(croft, held, node):
    block = croft.data("ip", "show", held[0])[0]["block"]
    text = croft.text("block", "show", block)
    expect("confirmed" in text and node in text and "█" in text, f"block show: {text}")
    croft.text("block", "show", "10.1.0.0/29", code=1)
    text = croft.text("pool", "show", "--show-blocks")
    expect("GROUPING" in text and block in text and "%" in text, f"pool show: {text}")
    expect_equal(croft.data("pool", "show", "a", "--show-blocks")[0]["blockUsage"][0]["cidr"], block, "blockUsage")
    expect_equal([row["address"] for row in croft.data("ip", "list", "--handle", "net.c1")], [held[0]], "by handle")
    expect_equal(croft.data("ip", "list", "--borrowed"), [], "nothing is borrowed")
    expect("No borrowed addresses." in croft.text("ip", "list", "--borrowed"), "ip list --borrowed")
    text = croft.text("ip", "show", held[0])
    expect("Handle:    net.c1" in text and "Sequence:" in text and "ifname: eth0" in text, f"ip show: {text}")


def explain(croft, node):
    told = croft.data("explain", "--node", node)[0]
    expect_equal((told["addresses"][0]["origin"], told["families"][0]["pools"][0]["pool"]), ("own block", "a"), "explain")
    before = {row["address"] for row in croft.data("ip", "list")}
    text = croft.text("explain", "--node", "elsewhere", "--pool", "nowhere", code=1)
    expect("refused (refused_by_configuration): the given pool (nowhere)" in text, f"explain: {text}")
    expect_equal({row["address"] for row in croft.data("ip", "list")}, before, "explain changes nothing")


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
    new = croft.plugin("ADD", "c4", "node-z")
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
        croft = Operator(world)
        node = "node-a"
        croft.text("pool", "create", "a", "--cidr", "10.1.0.0/24", "--block-size", "28")
        held = [croft.plugin("ADD", f"c{i}", node) for i in (1, 2, 3)]
        node = croft.data("ip", "show", held[0])[0]["node"]
        config_commands(croft)
        pool_settings(croft)
        node_commands(croft, node)
        hands(croft, held, node)
        views(croft, held, node)
        explain(croft, node)
        split(croft, held)
        reports(croft, held)
        closed_streams(croft)
        damage(croft)


main(test)
