"""What the pages for users show is true: each network configuration in docs/configuration.md works, and the terminal of README.md shows
what it would show. Only the places of register and log are replaced.

usage: readme_examples.py BIN_DIR [--terminal]     --terminal: prints README.md's block anew
"""

import ipaddress
import json
import os
import re
import sys

from lib import TREE, expect, expect_equal, main, require_network_namespaces, require_programs, run, say

README, CONFIGURATION = TREE / "README.md", TREE / "docs" / "configuration.md"
PLACE = "/tmp/croft"  # where the terminal of README.md keeps its register


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def examples():
    found = [json.loads(block) for block in blocks(CONFIGURATION, "json")]
    expect(len(found) >= 4, f"{CONFIGURATION} has {len(found)} configurations, it should show at least four")
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


def commands():
    """The terminal of README.md as (command, what it shows)."""
    found = blocks(README, "console")
    expect_equal(len(found), 1, "terminals in README.md")
    parts = re.split(r"^\$ ", found[0], flags=re.MULTILINE)[1:]
    return [re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups() for part in parts]


def type_all(world):
    """Types each command of the terminal; yields (command, shown, printed). `cat FILE` makes the file first."""
    here = world.directory / "terminal"
    here.mkdir()
    environment = {"PATH": f"{world.bin}:{os.environ['PATH']}"}

    def placed(text):
        return text.replace(PLACE, str(here / "croft"))

    for command, shown in commands():
        if made := re.fullmatch(r"cat (\S+)\n", command):
            (here / made.group(1)).write_text(placed(shown), encoding="utf-8")
        elif made := re.fullmatch(r"export (\w+)=(\S+)\n", command):
            environment[made.group(1)] = placed(made.group(2))
        printed = run("bash", "-ec", f"cd '{here}'; {placed(command)}", env=environment).stdout
        yield command, shown, printed.replace(str(here / "croft"), PLACE)


def addresses(text):
    found = []
    for word in re.findall(r"[0-9a-f.:]+(?:/\d+)?", text):
        try:
            found.append(str(ipaddress.ip_interface(word)) if "." in word or "::" in word else None)
        except ValueError:
            pass
    return sorted({a for a in found if a})


def print_terminal(world):
    for command, _, printed in type_all(world):
        say(f"$ {command}{printed}".rstrip("\n"))


def try_terminal(world):
    for command, shown, printed in type_all(world):
        say(f"  {command.split()[0]}: {' '.join(addresses(printed))}")
        expect_equal(addresses(printed), addresses(shown), f"README.md: addresses that `{command.strip()}` shows")
        expect_equal(bool(printed), bool(shown), f"README.md: `{command.strip()}` prints anything")


def test(world):
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--terminal"]):
        sys.exit(__doc__)
    if sys.argv[2:]:
        print_terminal(world)
        return
    try_terminal(world)
    found = examples()
    require_programs("ip", "nsenter", *{config["type"] for config in found})
    require_network_namespaces()
    for number, config in enumerate(found):
        try_example(world, number, config)


main(test)
