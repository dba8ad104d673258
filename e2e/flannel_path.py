#!/usr/bin/env python3
"""The way of a pod on a flannel node, with Croft in place of host-local: subnet.env as flanneld writes it, the delegate
configuration as flannel's CNI plugin makes it of that, Debian's `bridge`, and Croft's `host-local`.

For IPv4 and dual stack, whose subnet.env `croft node range` writes: addresses, files, pings
between pods and to the gateway, DEL by the binary that added and by the other one. The real flannel plugin is e2e_one_node_flannel's,
on a cluster whose nodes have Croft's ranges.

usage: flannel_path.py BIN_DIR
"""

import ipaddress
import stat
import sys

sys.dont_write_bytecode = True
from cni_bridge_ptp import ping_everybody
from lib import PLUGINS, Plugin, World, expect_equal, main, require_network_namespaces, require_programs, run, say

SUBNET_ENV = {
    "4": {"FLANNEL_NETWORK": "10.244.0.0/16", "FLANNEL_SUBNET": "10.244.0.1/24", "FLANNEL_MTU": "1450",
          "FLANNEL_IPMASQ": "true"},
    "46": {"FLANNEL_NETWORK": "10.244.0.0/16", "FLANNEL_SUBNET": "10.244.0.1/24",
           "FLANNEL_IPV6_NETWORK": "fd00:244::/48", "FLANNEL_IPV6_SUBNET": "fd00:244::1/64", "FLANNEL_MTU": "1450",
           "FLANNEL_IPMASQ": "true"},
}
GATEWAYS = {"4": ["10.244.0.1"], "46": ["10.244.0.1", "fd00:244::1"]}
FIRST = {"4": ["10.244.0.2/24"], "46": ["10.244.0.2/24", "fd00:244::2/64"]}


def write_subnet_env(path, values):
    """As flanneld does: a directory of 0755, the file by an atomic rename."""
    path.parent.mkdir(mode=0o755, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="ascii")
    new.rename(path)


def write_by_croft(world, path):
    """What the dual-stack node's agent does: its range, and the file."""
    croft = (world.bin / "croft", "--store", world.store("ranges"), "node", "range")
    run(*croft, "config", "--cluster-cidr", "10.244.0.0/16,fd00:244::/48")
    run(*croft, "assign", "node-a")
    run(*croft, "subnet-env", "node-a", "--mtu", "1450", "--out", path)
    expect_equal((stat.S_IMODE(path.stat().st_mode), [entry.name for entry in path.parent.iterdir()]), (0o644, [path.name]), "the file alone")
    expect_equal(read_subnet_env(path), SUBNET_ENV["46"], "subnet.env")


def read_subnet_env(path):
    return dict(line.split("=", 1) for line in path.read_text(encoding="ascii").splitlines())


def network_of(address):
    """The prefix of `10.244.0.1/24`."""
    return str(ipaddress.ip_interface(address).network)


def delegate_configuration(env, data):
    """What flannel's CNI plugin makes of kube-flannel's configuration and subnet.env (docs/notes/node-ranges.md#delegate)."""
    of = lambda what: [network_of(env[key]) for key in (f"FLANNEL_{what}", f"FLANNEL_IPV6_{what}") if key in env]
    return {"cniVersion": "0.3.1", "name": "cbr0", "type": "bridge", "hairpinMode": True, "isDefaultGateway": True, "isGateway": True,
            "ipMasq": env["FLANNEL_IPMASQ"] != "true", "mtu": int(env["FLANNEL_MTU"]),
            "ipam": {"type": "host-local", "dataDir": str(data), "ranges": [[{"subnet": subnet}] for subnet in of("SUBNET")],
                     "routes": [{"dst": network} for network in of("NETWORK")]}}


class Installation:
    """A directory of plugins, as /opt/cni/bin: Debian's bridge, and a program under the name `host-local`."""

    def __init__(self, world, name, programs):
        self.folder = world.directory / f"cni-{name}"
        self.folder.mkdir()
        for plugin, program in {"bridge": PLUGINS / "bridge", **programs}.items():
            (self.folder / plugin).symlink_to(program)
        self.cni_path = str(self.folder)

    def find_plugin(self, name):
        return self.folder / name


class Pod:
    def __init__(self, world, plugin, config, name):
        self.name = name
        self.container = name.encode("ascii").hex().ljust(64, "0")
        self.netns = world.netns(name)
        self.result = plugin.add(config, self.container, self.netns)
        self.with_length = [ip["address"] for ip in self.result["ips"]]
        self.gateways = [ip["gateway"] for ip in self.result["ips"]]
        self.addresses = [a.split("/")[0] for a in self.with_length]
        expect_equal(sorted(self.netns.addresses()), sorted(self.with_length), f"addresses inside pod {name}")


def files(folder):
    """Name and content of every reservation."""
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()
            if entry.name != "lock" and not entry.name.startswith("last_reserved_ip.")}


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def reservations_of(*pods):
    return {address: f"{pod.container}\r\neth0".encode("ascii") for pod in pods for address in pod.addresses}


def ping_gateways(pods, node):
    for namespace in [node, *(pod.netns for pod in pods)]:
        namespace.wait_until_addresses_settle()
    bridge_mac = node.mac("cni0")
    for pod in pods:
        for gateway in pod.gateways:
            pod.netns.forget_neighbours()
            pod.netns.ping(gateway)
            expect_equal(pod.netns.neighbour(gateway), bridge_mac, f"MAC that answered for the gateway {gateway}")


def flannel_node(world, croft, debian, families):
    """One node's life, all of it with a fresh node, dataDir and bridge."""
    say("IPv4" if families == "4" else "dual stack")
    label = families
    node = world.netns("node" + label)
    env_path = world.directory / f"flannel-{label}" / "subnet.env"
    if families == "46":
        write_by_croft(world, env_path)
    else:
        write_subnet_env(env_path, SUBNET_ENV[families])
    data = world.directory / f"networks-{label}"
    config = delegate_configuration(read_subnet_env(env_path), data)
    folder = data / "cbr0"
    sets = len(FIRST[families])
    ours, theirs = Plugin(croft, "bridge", node), Plugin(debian, "bridge", node)

    first = Pod(world, ours, config, "a" + label)
    expect_equal(first.with_length, FIRST[families], "addresses of the first pod")
    expect_equal(first.gateways, GATEWAYS[families], "gateways of the first pod")
    expect_equal(names(folder), sorted([*first.addresses, "lock", *(f"last_reserved_ip.{i}" for i in range(sets))]),
                 "files after the first pod")
    expect_equal(files(folder), reservations_of(first), "reservations of the first pod")
    for i, address in enumerate(first.addresses):
        expect_equal((folder / f"last_reserved_ip.{i}").read_text(encoding="ascii"), address, f"cursor {i}")
    second = Pod(world, ours, config, "b" + label)
    expect_equal(second.addresses[0], "10.244.0.3", "address of the second pod")

    # Files .2, .3 and .8, cursor at .8: .9 is next.
    foreign = {"10.244.0.8": b"f" * 64 + b"\r\neth0"}
    (folder / "10.244.0.8").write_bytes(foreign["10.244.0.8"])
    (folder / "last_reserved_ip.0").write_text("10.244.0.8", encoding="ascii")
    third = Pod(world, ours, config, "c" + label)
    expect_equal(third.addresses[0], "10.244.0.9", "the address behind the cursor")
    fourth = Pod(world, theirs, config, "d" + label)
    expect_equal(fourth.addresses[0], "10.244.0.10", "the address of a pod that Debian's binary added")
    pods = [first, second, third, fourth]
    expect_equal(files(folder), {**reservations_of(*pods), **foreign}, "reservations")
    say("  " + "  ".join("+".join(pod.addresses) for pod in pods))

    ping_gateways(pods, node)
    ping_everybody(pods, node, "bridge")

    # Each binary gives back what it added, and what the other one did.
    fifth = Pod(world, theirs, config, "e" + label)
    left = [*pods, fifth]
    for plugin, pod in [(ours, first), (theirs, second), (theirs, fourth), (ours, fifth), (ours, third)]:
        for again in (False, True):
            plugin.delete(config, pod.container, None if again else pod.netns)
        left.remove(pod)
        expect_equal(files(folder), {**reservations_of(*left), **foreign}, f"reservations after DEL of pod {pod.name}")
    say("  DEL by both, each also of what the other added")


def test():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    require_programs("ip", "nsenter", "ping", "bridge", "host-local")
    require_network_namespaces()
    with World("flannel", sys.argv[1]) as world:
        croft = Installation(world, "croft", {"host-local": world.bin / "host-local"})
        debian = Installation(world, "debian", {"host-local": PLUGINS / "host-local"})
        for families in SUBNET_ENV:
            flannel_node(world, croft, debian, families)


if __name__ == "__main__":
    main(test)
