#!/usr/bin/env python3
"""Every network configuration in README.md works as it stands there: VERSION, ADD through its main plugin, CHECK, DEL.
Only the places where the register and the log are kept are replaced.

usage: readme_examples.py BIN_DIR
"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from lib import World, expect, expect_equal, main, require_network_namespaces, require_programs, say

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


def examples():
    blocks = re.findall(r"^```json\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    found = [json.loads(block) for block in blocks]
    expect(len(found) >= 4, f"README.md has {len(found)} configurations, it should show at least four")
    return found


def place_register(world, config):
    """Puts the register below the test's directory; returns what asks it who holds what."""
    if config["ipam"]["type"] == "host-local":
        config["ipam"]["dataDir"] = str(world.directory / "networks")
        directory = world.directory / "networks" / config["name"]
        return lambda: {f.name: f.read_text() for f in directory.iterdir() if f.name[0] in "0123456789abcdef"}
    store = world.store(config["name"])
    config["ipam"].update(store=store, log_file_path=str(world.directory / f"{config['name']}.log"))
    return lambda: world.held(store)


def try_example(world, number, config):
    name = config["name"]
    node, pod = world.netns(f"node{number}"), world.netns(f"pod{number}")
    held = place_register(world, config)
    plugin = world.plugin(config["type"], node)

    ipam = world.plugin(config["ipam"]["type"], node)
    versions = ipam.call("VERSION", config)
    expect(config["cniVersion"] in versions["supportedVersions"], f"{name}: version {config['cniVersion']}")

    result = plugin.add(config, "container", pod)
    given = sorted(ip["address"] for ip in result["ips"])
    say(f"  {name}: {' '.join(given)}")
    expect_equal(sorted(pod.addresses()), given, f"{name}: addresses in the pod")
    expect_equal(sorted(held()), sorted(a.split("/")[0] for a in given), f"{name}: addresses in the register")
    wanted = config["ipam"].get("ips")
    if wanted:
        expect_equal(sorted(held()), sorted(wanted), f"{name}: the addresses asked for")
    # Not through the main plugin: CHECK of Debian's bridge 1.1.1 fails whenever a pod has no gateway.
    ipam.check(config, result, "container", pod)
    plugin.delete(config, "container", pod)
    expect_equal(held(), {}, f"{name}: addresses held after DEL")


def test():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = examples()
    require_programs("ip", "nsenter", *{config["type"] for config in found})
    require_network_namespaces()
    with World("readme", sys.argv[1]) as world:
        for number, config in enumerate(found):
            try_example(world, number, config)


if __name__ == "__main__":
    main(test)
