"""Debian's `bridge` and `ptp` take their addresses from croft-ipam, for IPv4, IPv6 and both: more pods than one block has room for
ping each other, and the pod itself answers, by the MAC and by its own stack's count. Then CHECK, a repeated ADD, DEL, and DEL again.

usage: cni_bridge_ptp.py BIN_DIR bridge|ptp 4|6|46
"""

import sys

from lib import CniError, Failure, expect, expect_equal, main, require_network_namespaces, require_programs, run, say

NETWORK = "e2e-net"
PODS = 5
POOLS = {
    # Four addresses a block: five pods need two.
    4: {"name": "four", "cidr": "10.88.0.0/26", "blockSize": 30, "cooldownSeconds": 30},
    6: {"name": "six", "cidr": "fd00:88::/120", "blockSize": 126, "cooldownSeconds": 30},
}
GATEWAYS = {4: "10.88.0.1", 6: "fd00:88::1"}
LENGTHS = {4: 26, 6: 120}


def family_of(address):
    return 6 if ":" in address else 4


class Pod:
    def __init__(self, world, plugin, config, name):
        self.name = name
        self.container = f"container-{name}"
        self.netns = world.netns(name)
        self.result = plugin.add(config, self.container, self.netns,
                                 args=f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=pod-{name}")
        self.addresses = [ip["address"].split("/")[0] for ip in self.result["ips"]]


def configuration(world, store, main_plugin, families):
    return {
        "cniVersion": "1.0.0",
        "name": NETWORK,
        "type": main_plugin,
        "bridge": "croft0",
        "isGateway": True,
        "isDefaultGateway": main_plugin == "bridge",
        "ipam": {
            "type": "croft-ipam",
            "store": store,
            "log_file_path": str(world.directory / "ipam.log"),
            "nodename": "node-e2e",
            "pools": [POOLS[f] for f in families],
            "assign_ipv4": str(4 in families).lower(),
            "assign_ipv6": str(6 in families).lower(),
        },
    }


def check_results(pods, families):
    for pod in pods:
        expect_equal(sorted(family_of(a) for a in pod.addresses), sorted(families), f"families of pod {pod.name}")
        for ip in pod.result["ips"]:
            family = family_of(ip["address"])
            expect_equal(int(ip["address"].split("/")[1]), LENGTHS[family], f"prefix length of {ip['address']}")
            expect_equal(ip["gateway"], GATEWAYS[family], f"gateway of {ip['address']}")
        expect_equal(sorted(a.split("/")[0] for a in pod.netns.addresses()), sorted(pod.addresses),
                     f"addresses inside pod {pod.name}")
    given = [a for pod in pods for a in pod.addresses]
    expect_equal(len(set(given)), len(given), "number of different addresses")
    say(f"  {PODS} pods: " + "  ".join("+".join(pod.addresses) for pod in pods))


def check_register(world, store, pods, families):
    held = world.held(store)
    expect_equal(sorted(held), sorted(a for pod in pods for a in pod.addresses), "addresses held in the register")
    for pod in pods:
        for address in pod.addresses:
            row = held[address]
            wanted = {"containerId": pod.container, "ifname": "eth0", "network": NETWORK, "node": "node-e2e",
                      "pod": f"pod-{pod.name}", "namespace": "default", "pool": POOLS[family_of(address)]["name"]}
            expect_equal({k: row.get(k) for k in wanted}, wanted, f"row of {address}")
    for family in families:
        blocks = {row["block"] for a, row in held.items() if family_of(a) == family}
        expect(len(blocks) >= 2, f"expected pods in at least two blocks of family {family}, got {sorted(blocks)}")
        say(f"  IPv{family} blocks in use: {', '.join(sorted(blocks))}")
    listed = world.croft(store, "block", "list")
    expect(len(listed) >= 2 * len(families), f"croft block list shows {len(listed)} blocks")


def ping_everybody(pods, node, main_plugin):
    """Every pod pings every other; see the top of this file for what counts as an answer."""
    own = {pod.name: pod.netns.mac() for pod in pods}
    expect_equal(len(set(own.values())), len(pods), "number of different MACs")
    pings = 0
    for source in pods:
        for target in pods:
            if source is target:
                continue
            for address in target.addresses:
                # A bridge joins the pods: the neighbour is the pod. With ptp the node routes: the neighbour of the
                # node is the pod.
                asker = source.netns if main_plugin == "bridge" else node
                # The kernel has one table of neighbours for all namespaces, other tests' too, and throws entries out when
                # it is crowded: one that is gone when it is looked at tells nothing.
                for _ in range(5):
                    asker.forget_neighbours()
                    before = target.netns.echo_requests(family_of(address))
                    source.netns.ping(address)
                    answered_by = asker.neighbour(address)
                    if answered_by:
                        break
                expect_equal(answered_by, own[target.name], f"MAC that answered for {address} of pod {target.name}")
                counted = target.netns.echo_requests(family_of(address)) - before
                expect_equal(counted, 1, f"echo requests that reached pod {target.name} at {address}")
                pings += 1
    say(f"  {pings} pings, each answered by the pod's own MAC")


def refused(call, what):
    try:
        call()
    except CniError as error:
        say(f"  {what}: {error}")
        return error
    raise Failure(f"{what}: succeeded and should have failed")


def check_check(world, store, plugin, ipam, config, pod):
    plugin.check(config, pod.result, pod.container, pod.netns)
    # The address is gone from the pod's interface: the main plugin's own half of CHECK.
    with_length = next(a for a in pod.netns.addresses() if a.startswith(pod.addresses[0] + "/"))
    pod.netns.run("ip", "address", "delete", with_length, "dev", "eth0")
    refused(lambda: plugin.check(config, pod.result, pod.container, pod.netns), "CHECK without the address in the pod")
    nodad = ["nodad"] if family_of(with_length) == 6 else []
    pod.netns.run("ip", "address", "add", with_length, "dev", "eth0", *nodad)
    # The address is released behind the runtime's back: croft-ipam's half.
    ipam.check(config, pod.result, pod.container, pod.netns)
    run(world.bin / "croft", "--store", store, "ip", "release", pod.addresses[0], "--force")
    error = refused(lambda: ipam.check(config, pod.result, pod.container, pod.netns), "CHECK of a released address")
    expect(pod.addresses[0] in str(error) or pod.container in str(error),
           f"the refusal names neither {pod.addresses[0]} nor {pod.container}: {error}")


def check_repeated_add(world, store, ipam, config, pod):
    before = world.held(store)
    again = ipam.add(config, pod.container, pod.netns)
    expect_equal([ip["address"] for ip in again["ips"]], [ip["address"] for ip in pod.result["ips"]],
                 "addresses of a repeated ADD")
    expect_equal(sorted(world.held(store)), sorted(before), "addresses held after a repeated ADD")


def check_delete(world, store, plugin, config, pods):
    for pod in pods:
        plugin.delete(config, pod.container, pod.netns)
        expect_equal([a for a in world.held(store) if a in pod.addresses], [], f"addresses of pod {pod.name} after DEL")
        plugin.delete(config, pod.container, pod.netns)  # a runtime repeats what it is not sure of
        plugin.delete(config, pod.container)  # and the namespace may be gone
    states = {row["address"]: row["state"] for row in world.croft(store, "ip", "list")}
    for pod in pods:
        for address in pod.addresses:
            expect_equal(states.get(address), "cooling", f"state of {address} after DEL")
    world.cli(store, "check")


def test(world):
    if len(sys.argv) != 4 or sys.argv[2] not in ("bridge", "ptp") or sys.argv[3] not in ("4", "6", "46"):
        sys.exit(__doc__)
    main_plugin, families = sys.argv[2], [int(f) for f in sys.argv[3]]
    require_programs("ip", "nsenter", "ping", main_plugin)
    require_network_namespaces()
    node = world.netns("node")
    store = world.store()
    config = configuration(world, store, main_plugin, families)
    plugin, ipam = world.plugin(main_plugin, node), world.plugin("croft-ipam", node)
    pods = [Pod(world, plugin, config, name) for name in "abcdefgh"[:PODS]]
    for namespace in [node, *(pod.netns for pod in pods)]:
        namespace.wait_until_addresses_settle()
    check_results(pods, families)
    check_register(world, store, pods, families)
    ping_everybody(pods, node, main_plugin)
    check_repeated_add(world, store, ipam, config, pods[0])
    check_check(world, store, plugin, ipam, config, pods[0])
    check_delete(world, store, plugin, config, pods)


if __name__ == "__main__":
    main(test)
