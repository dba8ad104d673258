"""The way of a pod on a flannel node, with Croft in place of host-local: subnet.env as `croft node range` writes it, the delegate
configuration as flannel's CNI plugin makes it of that, Debian's `bridge`, and Croft's `host-local` beside Debian's. The real
flannel plugin: e2e_one_node_flannel.
"""

import ipaddress
import stat

from cni_bridge_ptp import ping_everybody
from host_local_lib import contents, holder, reservations
from lib import PLUGINS, Plugin, expect_equal, main, require_network_namespaces, require_programs, run, say

SUBNET_ENV = {"FLANNEL_NETWORK": "10.244.0.0/16", "FLANNEL_SUBNET": "10.244.0.1/24", "FLANNEL_IPV6_NETWORK": "fd00:244::/48",
              "FLANNEL_IPV6_SUBNET": "fd00:244::1/64", "FLANNEL_MTU": "1450", "FLANNEL_IPMASQ": "true"}
GATEWAYS = ["10.244.0.1", "fd00:244::1"]


def subnet_env(world):
    """What the node's agent does: its range, and the file, which is read as flannel's plugin reads it."""
    path = world.directory / "flannel" / "subnet.env"
    croft = (world.bin / "croft", "--store", world.store("ranges"), "node", "range")
    run(*croft, "config", "--cluster-cidr", "10.244.0.0/16,fd00:244::/48")
    run(*croft, "assign", "node-a")
    run(*croft, "subnet-env", "node-a", "--mtu", "1450", "--out", path)
    expect_equal((stat.S_IMODE(path.stat().st_mode), [entry.name for entry in path.parent.iterdir()]), (0o644, [path.name]), "the file alone")
    found = dict(line.split("=", 1) for line in path.read_text(encoding="ascii").splitlines())
    expect_equal(found, SUBNET_ENV, "subnet.env")
    return found


def delegate_configuration(env, data):
    """What flannel's CNI plugin makes of kube-flannel's configuration and subnet.env (docs/notes/node-ranges.md#delegate)."""
    of = lambda what: [str(ipaddress.ip_interface(env[key]).network) for key in (f"FLANNEL_{what}", f"FLANNEL_IPV6_{what}")]
    return {"cniVersion": "0.3.1", "name": "cbr0", "type": "bridge", "hairpinMode": True, "isDefaultGateway": True, "isGateway": True,
            "ipMasq": env["FLANNEL_IPMASQ"] != "true", "mtu": int(env["FLANNEL_MTU"]),
            "ipam": {"type": "host-local", "dataDir": str(data), "ranges": [[{"subnet": subnet}] for subnet in of("SUBNET")],
                     "routes": [{"dst": network} for network in of("NETWORK")]}}


class Installation:
    """A directory of plugins, as /opt/cni/bin: Debian's bridge, and a program under the name `host-local`."""

    def __init__(self, world, name, host_local):
        self.folder = world.directory / f"cni-{name}"
        self.folder.mkdir()
        (self.folder / "bridge").symlink_to(PLUGINS / "bridge")
        (self.folder / "host-local").symlink_to(host_local)
        self.cni_path = str(self.folder)

    def find_plugin(self, name):
        return self.folder / name


class Pod:
    def __init__(self, world, plugin, config, name, first):
        self.name, self.container = name, name.encode("ascii").hex().ljust(64, "0")
        self.netns = world.netns(name)
        ips = plugin.add(config, self.container, self.netns)["ips"]
        self.addresses = [ip["address"].split("/")[0] for ip in ips]
        expect_equal((self.addresses[0], [ip["gateway"] for ip in ips]), (first, GATEWAYS), f"address and gateways of pod {name}")
        expect_equal(sorted(self.netns.addresses()), sorted(ip["address"] for ip in ips), f"addresses inside pod {name}")


def ping_gateways(pods, node):
    for namespace in [node, *(pod.netns for pod in pods)]:
        namespace.wait_until_addresses_settle()
    for pod in pods:
        for gateway in GATEWAYS:
            pod.netns.forget_neighbours()
            pod.netns.ping(gateway)
            expect_equal(pod.netns.neighbour(gateway), node.mac("cni0"), f"MAC that answered for the gateway {gateway}")


def test(world):
    require_programs("ip", "nsenter", "ping", "bridge", "host-local")
    require_network_namespaces()
    node, data = world.netns("node"), world.directory / "networks"
    config, folder = delegate_configuration(subnet_env(world), data), data / "cbr0"
    ours = Plugin(Installation(world, "croft", world.bin / "host-local"), "bridge", node)
    theirs = Plugin(Installation(world, "debian", PLUGINS / "host-local"), "bridge", node)
    pods = [Pod(world, plugin, config, name, f"10.244.0.{number}")
            for number, (plugin, name) in enumerate(((ours, "a"), (theirs, "b"), (ours, "c"), (theirs, "d")), 2)]
    expect_equal(set(contents(folder)) - set(reservations(folder)), {"last_reserved_ip.0", "last_reserved_ip.1"}, "files beside reservations")
    say("  " + "  ".join("+".join(pod.addresses) for pod in pods))
    ping_gateways(pods, node)
    ping_everybody(pods, node, "bridge")
    # Each gives back what it added, and what the other one did.
    for plugin, pod in [(ours, pods[0]), (theirs, pods[2]), (theirs, pods[1]), (ours, pods[3])]:
        for netns in (pod.netns, None):
            plugin.delete(config, pod.container, netns)
        pods.remove(pod)
        expect_equal(reservations(folder), {a: holder(one.container) for one in pods for a in one.addresses}, f"after DEL of pod {pod.name}")


main(test)
