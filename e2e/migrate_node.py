"""What moves a node that goes on with `bridge`, by the runbook: `croft host-local import` of the directory that Debian's host-local made, into
a pool of the node's own range. Pods of before and after reach each other and the node. What clashes, what is interrupted, a plan:
host_local_test.cc. From Calico: migrate_calico.py.
"""

import json

from lib import Plugin, expect, expect_equal, main, run


def test(world):
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
    (networks / network / "notes.txt").write_text("mine")
    run(*croft, "pool", "create", "node-3", "--cidr", range_, "--block-size", "24")
    run(*croft, "config", "set", "--strict-affinity", "true")
    run(*croft, "affinity", "claim", range_, "--node", "node-3", "--force")
    done = run(*croft, "host-local", "import", "--dir", networks / network, "--pool", "node-3", "--pod-cidr", range_, "--node", "node-3").stdout
    expect("imported 1 address" in done and "reserved" not in done, f"the pool keeps its own: {done}")
    expect_equal([path.read_text() for path in (networks / network).glob("[!l]*")], ["mine"], "what is somebody else's stays, and no reservation")
    for name in ("new", "newer"):
        given = plugin.add(after, name, spaces[name])["ips"][0]
        expect_equal((given["gateway"], given["address"].split("/")[1]), (old["gateway"], old["address"].split("/")[1]), "gateway and length")
        expect(given["address"].split("/")[0] not in ("10.244.3.0", "10.244.3.1", "10.244.3.255", old["address"].split("/")[0]), f"{given}")
        for other in (old["gateway"], old["address"].split("/")[0]):
            spaces[name].run("ping", "-c", "1", "-W", "5", other)
    plugin.call("DEL", after, "old", spaces["old"])
    held = set(json.loads(run(*croft, "-o", "json", "ip", "list", "--state", "held").stdout)[n]["containerId"] for n in range(2))
    expect_equal(held, {"new", "newer"}, "a pod that was moved is deleted under the network's name")


main(test, 280)
