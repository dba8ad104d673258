"""`croft check --cni-cache` as after days of a runtime: entries whose network namespace is gone, entries that cannot be
read, a register that was put back, a network that was renamed, Multus; and the log that names pods. Neither root nor network.
"""

import json

from lib import cache_entry, call_ipam, expect, expect_equal, main, run, say

FINDINGS = 3  # exit code


class Rig:
    def __init__(self, world):
        self.world, self.store = world, world.store()
        self.cache = world.directory / "cache"
        (self.cache / "results").mkdir(parents=True)
        self.log = world.directory / "ipam.log"

    def plugin(self, command, container, pod, network="net", address=None):
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME={pod};K8S_POD_UID=uid-{pod}" + (f";IP={address}" if address else "")
        code, answer = call_ipam(self.world, command, container, self.store, args=args, network=network)
        expect_equal(code, 0, f"{command} {container}: {answer}")
        return answer["ips"][0]["address"].split("/")[0] if command == "ADD" else None

    def entry(self, container, netns, network="net", address=None, pod=None, directory=None):
        cache_entry(directory or self.cache / "results", container, network, netns, address, pod and ("ns", pod))

    def check(self, *more):
        done = run(self.world.bin / "croft", "--store", self.store, "-o", "json", "check", "--cni-cache", self.cache,
                   "--grace-seconds", "0", *more, check=False)
        return done, done.stdout and json.loads(done.stdout)

    def found(self, *more):
        """What a look finds that takes what it sees for the machine, as address or subject -> row."""
        done, rows = self.check("--in-container", *more)
        expect_equal(done.returncode, FINDINGS if rows else 0, f"exit code: {done.stderr}")
        return {row["subject"]: row for row in rows}


def namespaces(rig):
    here = "/proc/self/ns/net"
    unmounted = rig.world.directory / "unmounted"
    unmounted.write_text("")
    live = {rig.plugin("ADD", f"live-{i}", f"live-{i}") for i in range(3)}
    for i in range(3):
        rig.entry(f"live-{i}", here)
    dead = {}
    for i in range(5):
        dead[rig.plugin("ADD", f"dead-{i}", f"dead-{i}")] = f"dead-{i}"
        rig.entry(f"dead-{i}", unmounted if i == 0 else f"{rig.world.directory}/netns-{i}")
    cut = rig.plugin("ADD", "cut", "cut")
    (rig.cache / "results" / "net-cut-eth0").write_text("")  # as power loss leaves it
    rows = rig.found()
    expect_equal({a for a, row in rows.items() if row["finding"] == "not_attached"}, set(dead), "leaked")
    for address, container in dead.items():
        row = rows[address]
        expect("is gone" in row["evidence"] and f"pod ns/{container} (UID uid-{container})" in row["evidence"],
               f"evidence: {row}")
        expect_equal((row["namespace"], row["pod"], row["podUID"]), ("ns", container, f"uid-{container}"), "whose it is")
    # Where paths say nothing, absence is no proof.
    done, rows = rig.check()
    if "count as alive" in done.stderr:
        expect_equal([row for row in rows if row["finding"] == "not_attached"], [], "in a container")
    for address in dead:
        run(rig.world.bin / "croft", "--store", rig.store, "ip", "release", address, "--force")
    rows = rig.found()
    expect_equal({name: row["finding"] for name, row in rows.items()}, {"net-cut-eth0": "cache_unreadable"}, "afterwards")
    expect(f"{rig.cache}/results/net-cut-eth0" in rows["net-cut-eth0"]["evidence"], f"its path: {rows}")
    (rig.cache / "results" / "net-cut-eth0").unlink()
    rig.entry("cut", here)
    expect_equal(rig.found(), {}, "with one that can be read")
    expect_equal(set(rig.world.held(rig.store)), live | {cut}, "held")
    say("  entries whose namespace is gone are nobody's; what can't be told or read counts as alive")


def large(rig):
    """A pod may have 256 KiB of annotations, which Go writes six times as long. What is larger is named."""
    path = rig.cache / "results" / "net-large-eth0"
    for size, finding in ((262144, "not_held"), (800000, "cache_unreadable")):
        rig.entry("large", "/proc/self/ns/net", address="10.80.0.77")
        entry = json.loads(path.read_text())
        entry["capabilityArgs"] = {"io.kubernetes.cri.pod-annotations": {"a": "\x01" * size}}
        path.write_text(json.dumps(entry))
        expect_equal([row["finding"] for row in rig.found().values()], [finding], f"annotations of {size} bytes")
    path.unlink()
    say("  a tenant's large annotations hide no pod; what is larger still, or cut off, is a finding")


def restored(rig):
    """The register was put back to a time before a container that lives: its address is free there, then another's."""
    address = rig.plugin("ADD", "kept", "kept", address="10.81.0.5")
    rig.entry("kept", "/proc/self/ns/net", address=address, pod="kept")
    expect_equal(rig.found(), {}, "it holds what it has")
    run(rig.world.bin / "croft", "--store", rig.store, "ip", "release", address, "--force")
    rig.entry("elsewhere", "/proc/self/ns/net", address="192.0.2.7", pod="elsewhere")
    rig.entry("over", f"{rig.world.directory}/gone", address=address)
    row = rig.found()[address]
    expect_equal((row["finding"], row["namespace"], row["pod"]), ("not_held", "ns", "kept"), "who lives with it")
    expect("container kept interface eth0" in row["evidence"], f"evidence: {row}")
    (rig.cache / "results" / "net-over-eth0").unlink()
    expect_equal(rig.plugin("ADD", "other", "other", address=address), address, "another gets it")
    row = rig.found()[address]
    expect("two have it" in row["evidence"] and "net.other" in row["evidence"], f"evidence: {row}")
    expect("delete the pod at once" in row["remedy"], f"remedy: {row}")
    rig.plugin("DEL", "other", "other")
    for container in ("kept", "elsewhere"):
        (rig.cache / "results" / f"net-{container}-eth0").unlink()
    say("  who lives with an address that the register has as free, or as another's, is named")


def renamed(rig):
    """The configuration has another network's name by now: the runtime's DEL carries it, and finds nothing; `croft check` does."""
    address = rig.plugin("ADD", "moved", "moved")
    rig.entry("moved", f"{rig.world.directory}/gone")
    rig.plugin("DEL", "moved", "moved", network="renamed")
    line = rig.log.read_text().splitlines()[-1]
    expect("released=none" in line, f"log: {line}")
    expect("pod=ns/moved uid=uid-moved" in line, f"log: {line}")
    expect_equal(rig.found()[address]["finding"], "not_attached", "check finds it")
    rig.plugin("DEL", "moved", "moved")
    shown = rig.world.croft(rig.store, "ip", "show", address)[0]
    expect_equal(shown["state"], "cooling", "released at last")
    say("  a DEL under another network's name releases nothing, and check finds what the container has")


def multus(rig):
    """To the runtime all of a container is Multus' network; the networks that it calls hold the addresses, and are in a cache of its own."""
    here, pods = "/proc/self/ns/net", {"default": "k8s-pod-network", "more": "second"}
    address = {what: rig.plugin("ADD", "shared", "web", network=network) for what, network in pods.items()}
    rig.entry("shared", here, network="multus-cni-network", address=address["default"], pod="web")
    expect_equal(rig.found(), {}, "by the runtime's cache alone")
    below = rig.cache / "multus" / "results"
    below.mkdir(parents=True)
    for what, network in pods.items():
        rig.entry("shared", here, network=network, address=address[what], pod="web", directory=below)
    expect_equal(rig.found(), {}, "with that of Multus below it")
    expect_equal(rig.found("--cni-cache", str(below.parent)), {}, "which may be named")
    done, _ = rig.check("--cni-cache", str(rig.world.directory / "none"))
    expect(done.returncode == 2 and "none/results" in done.stderr, f"one that is not there: {done.returncode} {done.stderr}")
    # Of a third network the register knows nothing, and gives its address to another: Multus' own cache alone knows who lives with it.
    lost = "10.81.0.77"
    rig.entry("shared", here, network="third", address=lost, pod="web", directory=below)
    rig.plugin("ADD", "other", "other", address=lost)
    rig.entry("other", here, address=lost, pod="other")
    row = rig.found()[lost]
    expect("container shared" in row["evidence"] and "two have it" in row["evidence"] and "net.other" in row["evidence"], f"evidence: {row}")
    rig.plugin("DEL", "other", "other")
    (rig.cache / "results" / "net-other-eth0").unlink()
    (below / "third-shared-eth0").unlink()
    # Gone with its namespace.
    gone = f"{rig.world.directory}/gone"
    rig.entry("shared", gone, network="multus-cni-network", address=address["default"], pod="web")
    for what, network in pods.items():
        rig.entry("shared", gone, network=network, address=address[what], pod="web", directory=below)
    expect_equal({a: row["finding"] for a, row in rig.found().items()}, {one: "not_attached" for one in address.values()}, "leaked")
    for network in pods.values():
        rig.plugin("DEL", "shared", "web", network=network)
    say("  under Multus an entry speaks for all of its container")


def test(world):
    rig = Rig(world)
    world.croft(rig.store, "pool", "create", "a", "--cidr", "10.80.0.0/24", "--block-size", "26")
    world.croft(rig.store, "pool", "create", "b", "--cidr", "10.81.0.0/24", "--block-size", "26", "--cooldown-seconds", "0")
    for part in (namespaces, large, restored, renamed, multus):
        part(rig)


main(test)
