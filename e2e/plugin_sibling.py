"""croft-ipam and its sibling: where a store of other machines is asked, the call goes on in croft-ipam-cluster, as one call; without
that file it is said, a DEL is a tombstone, and nothing of it concerns sqlite.

usage: plugin_sibling.py BIN_DIR
"""

import json
import os
import shutil
import subprocess
import sys

from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, own_environment, require_programs, run, say

SIBLING = "croft-ipam-cluster"


class Plugin:
    """The plugin in a directory of its own, with or without its sibling."""

    def __init__(self, world, name, with_sibling):
        self.world, self.bin, self.directory, self.env = world, world.directory / name, world.directory / f"{name}-files", {}
        for folder in (self.bin, self.directory):
            folder.mkdir()
        for program in ("croft-ipam", *((SIBLING,) if with_sibling else ())):
            shutil.copy2(world.bin / program, self.bin / program)

    def call(self, command, store, container="c1", trace=None, **more):
        config = {"cniVersion": "1.1.0", "name": "net", "ipam": {"type": "croft-ipam", "store": store, "nodename": "oak", **more}}
        words = [str(self.bin / "croft-ipam")]
        if trace:
            words = ["strace", "-f", "-o", str(trace), "-e", "trace=execve,memfd_create", *words]
        env = {**own_environment(self.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": "/some/where",
               "CNI_IFNAME": "eth0", "CNI_PATH": str(self.bin), "PATH": os.environ["PATH"], "CROFT_TOMBSTONES": str(self.directory / "tombstones"), **self.env}
        done = subprocess.run(words, input=json.dumps(config), env=env, capture_output=True, text=True, timeout=20, check=False)
        expect("CROFT_CALL" not in done.stdout + done.stderr, "nobody sees how it is handed over")
        return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None

    def log(self):
        return (self.directory / "ipam.log").read_text().splitlines()

    def tombstones(self):
        folder = self.directory / "tombstones"
        return [file for file in folder.rglob("*.json")] if folder.exists() else []


def goes_on(world, store):
    plugin = Plugin(world, "both", with_sibling=True)
    trace = world.directory / "trace"
    code, answer = plugin.call("ADD", store, trace=trace)
    expect_equal(code, 0, f"ADD: {answer}")
    started = [line for line in trace.read_text().splitlines() if " execve(" in line and " = 0" in line]
    expect_equal([SIBLING in line for line in started], [False, True], f"what was started: {started}")
    expect_equal(len({line.split()[0] for line in started}), 1, "one process")
    expect_equal(plugin.call("ADD", store), (0, answer), "the same again")
    expect_equal(len(plugin.log()), 2, "one line a call")
    # What the runtime's own environment says of a call is of no call.
    plugin.env = {"CROFT_CALL_SO_FAR": "1 2 3"}
    expect_equal(plugin.call("ADD", store), (0, answer), "with a stray variable")
    plugin.env = {}
    expect_equal(plugin.call("DEL", store), (0, None), "DEL")
    expect_equal(world.held(store), {}, "all is given back")


def without(world, store):
    plugin = Plugin(world, "alone", with_sibling=False)
    code, answer = plugin.call("ADD", store)
    expect_equal((code, answer["code"]), (1, 11), f"ADD: {answer}")
    expect(f"{plugin.bin}/{SIBLING}" in answer["msg"] and "croftd install" in answer["msg"], answer)
    expect_equal(plugin.call("DEL", store, "c7"), (0, None), "a DEL is a success")
    expect_equal(len(plugin.tombstones()), 1, "and a tombstone")
    shutil.copy2(world.bin / SIBLING, plugin.bin / SIBLING)
    expect_equal(plugin.call("ADD", store, "c8")[0], 0, "once it is there")
    expect_equal(plugin.tombstones(), [], "the tombstone is replayed")
    expect_equal(plugin.call("DEL", store, "c8"), (0, None), "DEL")
    (plugin.bin / SIBLING).unlink()
    own = f"sqlite:{plugin.directory}/croft.db"
    run(world.bin / "croft", "--store", own, "pool", "create", "a", "--cidr", "10.2.0.0/24", "--gateway", "none")
    for command in ("ADD", "STATUS", "DEL"):
        expect_equal(plugin.call(command, own)[0], 0, f"{command} on sqlite needs no sibling")


def test():
    require_programs("strace")
    with World("plugin-sibling", sys.argv[1]) as world:
        etcd = Etcd(world)
        world.croft(etcd.store, "pool", "create", "a", "--cidr", "10.1.0.0/24", "--block-size", "28", "--gateway", "none", "--cooldown-seconds", "0")
        goes_on(world, etcd.store)
        without(world, etcd.store)
        say("as one call with the sibling, said without it")


main(test)
