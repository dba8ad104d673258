"""What moves a node: `croft host-local import` on a real directory and a real store; what is somebody else's stays. One that is interrupted:
host_local_test.cc. From Calico: migrate_calico.py.

usage: migrate_node.py BIN_DIR [host-local] [bridge]
"""

import json
import os
import sys

from etcd import Node
from host_local_lib import holder
from lib import PLUGINS, Plugin, expect, expect_equal, main, own_environment, run, say


class Directory:
    """A network's directory as Debian's host-local made it, with pods, and the pool into which it moves."""

    NETWORK, NODE, RANGE = "cbr0", "node-3", "10.244.3.0/24"

    def __init__(self, world):
        self.world, self.store = world, world.store()
        self.networks = world.directory / "networks"
        self.path = self.networks / self.NETWORK
        croft = [world.bin / "croft", "--store", self.store]
        run(*croft, "pool", "create", "a", "--cidr", "10.244.0.0/16", "--block-size", "24", "--cooldown-seconds", "0", "--gateway", "none")
        run(*croft, "config", "set", "--strict-affinity", "true")
        run(*croft, "affinity", "claim", self.RANGE, "--node", self.NODE, "--force")
        run(*croft, "affinity", "claim", "10.244.1.0/24", "--node", "node-1", "--force")
        config = {"cniVersion": "1.0.0", "name": self.NETWORK, "type": "bridge",
                  "ipam": {"type": "host-local", "dataDir": str(self.networks), "ranges": [[{"subnet": self.RANGE}]]}}
        self.pods = {}
        for number in range(30):
            env = {**own_environment(world.directory), "CNI_COMMAND": "ADD", "CNI_CONTAINERID": f"pod{number}", "CNI_NETNS": "/none",
                   "CNI_IFNAME": "eth0", "CNI_PATH": str(world.bin)}
            answer = json.loads(run(PLUGINS / "host-local", stdin=json.dumps(config), env=env).stdout)
            self.pods[f"pod{number}"] = {answer["ips"][0]["address"].split("/")[0]}
        # A container with a second address, by a file that somebody made.
        (self.path / "10.244.3.210").write_text(holder("pod0"))
        self.pods["pod0"].add("10.244.3.210")

    def do_import(self, *more):
        return self.world.croft(self.store, "host-local", "import", "--dir", str(self.path), "--pool", "a", "--pod-cidr", self.RANGE,
                                "--node", self.NODE, *more)

    def all(self):
        """Everything in the directory, whatever it is."""
        return {entry.name: (os.readlink(entry.path) if entry.is_symlink() else open(entry.path, "rb").read() if entry.is_file() else "dir")
                for entry in os.scandir(self.path) if entry.name not in ("lock",)}

    def held(self):
        return {address: row["containerId"] for address, row in self.world.held(self.store).items() if row["node"] == self.NODE}


def host_local(world):
    one = Directory(world)
    (one.path / "notes.txt").write_bytes(b"mine")  # what is no reservation stays
    before = one.all()
    planned = {row["containerId"]: row for row in one.do_import("--dry-run")}
    expect_equal((one.all(), one.held()), (before, {}), "a plan changes nothing")
    both = planned["pod0"]
    expect_equal((set(both["addresses"]), both["outcome"]), (one.pods["pod0"], "imported"), "a container with two addresses")
    node = Node(world, one.store, one.NODE)
    node.network = one.NETWORK
    one.do_import()
    expect_equal(one.held(), {a: pod for pod, addresses in one.pods.items() for a in addresses}, "all is in the register")
    left = one.all()
    expect_equal(left.get("notes.txt"), b"mine", "what is somebody else's stays")
    say(f"{len(one.pods)} pods imported")
    rows = one.do_import()
    expect_equal([row for row in rows if row["containerId"].startswith("pod")], [], "once more: nothing to move")
    expect_equal((one.all(), len(one.held())), (left, 31), "once more: nothing changed")
    world.cli(one.store, "check")
    # Croft's plugin finds them, and gives none of them away.
    expect_equal({address.split("/")[0] for address in node.add("pod3")}, one.pods["pod3"], "the pod asks again")
    (fresh,) = node.add("fresh")
    expect(fresh.split("/")[0] not in {a for addresses in one.pods.values() for a in addresses}, f"{fresh} is somebody's")
    node.delete("fresh")


def bridge(world):
    """A node that goes on with `bridge`, by the runbook: a pool of its own range. Pods of before and after reach each other and the node."""
    range_, network = "10.244.3.0/24", "cbr0"
    store = f"sqlite:{world.directory}/bridge.db"
    croft = [world.bin / "croft", "--store", store]
    node, networks = world.netns("bridgenode"), world.directory / "bridgenets"
    plugin = Plugin(world, "bridge", node)
    common = {"cniVersion": "0.4.0", "name": network, "type": "bridge", "bridge": "cni0", "isGateway": True, "isDefaultGateway": True}
    before = {**common, "ipam": {"type": "host-local", "dataDir": str(networks), "ranges": [[{"subnet": range_}]]}}
    after = {**common, "ipam": {"type": "croft-ipam", "store": store, "nodename": "node-3", "ipv4_pools": ["node-3"]}}
    spaces = {name: world.netns(f"bridge{name}") for name in ("old", "new", "newer")}
    old = plugin.add(before, "old", spaces["old"])["ips"][0]
    run(*croft, "pool", "create", "node-3", "--cidr", range_, "--block-size", "24")
    run(*croft, "config", "set", "--strict-affinity", "true")
    run(*croft, "affinity", "claim", range_, "--node", "node-3", "--force")
    done = run(*croft, "host-local", "import", "--dir", networks / network, "--pool", "node-3", "--pod-cidr", range_, "--node", "node-3").stdout
    expect("imported 1 address" in done and "reserved" not in done, f"the pool keeps its own: {done}")
    for name in ("new", "newer"):
        given = plugin.add(after, name, spaces[name])["ips"][0]
        expect_equal((given["gateway"], given["address"].split("/")[1]), (old["gateway"], old["address"].split("/")[1]), "gateway and length")
        expect(given["address"].split("/")[0] not in ("10.244.3.0", "10.244.3.1", "10.244.3.255", old["address"].split("/")[0]), f"{given}")
        for other in (old["gateway"], old["address"].split("/")[0]):
            spaces[name].run("ping", "-c", "1", "-W", "5", other)
    plugin.call("DEL", after, "old", spaces["old"])
    held = set(json.loads(run(*croft, "-o", "json", "ip", "list", "--state", "held").stdout)[n]["containerId"] for n in range(2))
    expect_equal(held, {"new", "newer"}, "a pod that was moved is deleted under the network's name")


def test(world):
    parts = sys.argv[2:] or ["host-local", "bridge"]
    if "host-local" in parts:
        host_local(world)
    if "bridge" in parts:
        bridge(world)


if __name__ == "__main__":
    main(test, 280)
