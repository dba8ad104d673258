"""What comes from outside (pods, tenants, damaged records, foreign files) reaches no terminal as more than text: escape
sequences by every channel there is. Neither root nor network.

usage: terminal_text.py BIN_DIR
"""

import json
import os
import re
import subprocess
import sys

from lib import World, expect, main, own_environment, write_past_croft

# What no output may hold: C0 but newline and tab, DEL, C1, marks of direction.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def expect_plain(what, data):
    text = data.decode("utf-8", errors="strict")
    found = HARMFUL.search(text)
    expect(not found, f"{what}: {found and found.group()!r} in {text!r}")


class Rig:
    """A store with a pool."""

    def __init__(self, world):
        self.world, self.store = world, world.store()
        self.log = world.directory / "ipam.log"
        world.croft(self.store, "pool", "create", "a", "--cidr", "10.79.0.0/24")

    def call(self, command, container, node="node-a", ifname="eth0", **env):
        config = {"cniVersion": "1.1.0", "name": "net", "ipam": {
            "type": "croft-ipam", "store": self.store, "nodename": node, "agent": "none", "log_file_path": str(self.log)}}
        variables = {**own_environment(self.world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container,
                     "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": ifname, "CNI_PATH": str(self.world.bin), **env}
        done = subprocess.run([self.world.bin / "croft-ipam"], input=json.dumps(config).encode(), env=variables,
                              capture_output=True, timeout=60, check=False)
        expect_plain(f"{command} stdout", done.stdout)
        expect_plain(f"{command} stderr", done.stderr)


def test():
    with World("terminal-text", sys.argv[1]) as world:
        by_every_channel(world)


def by_every_channel(world):
    evil = "\x1b[2J\x07\u202e\u009b31m\x7f"
    rig = Rig(world)
    # Variables, configuration, arguments.
    rig.call("ADD", "c3", ifname="eth\x1b[2J")
    rig.call("ADD", "c\x1b]0;x")
    rig.call("ADD", "c4", CNI_ARGS="K8S_POD_NAME=\x1b[31m;K8S_POD_NAMESPACE=\u202eabc")
    rig.call("ADD", "c5", node="node\x1b[1m")
    rig.call("DEL", "c5", node=evil)
    host_local = subprocess.run(
        [world.bin / "host-local"], capture_output=True, check=False, env={
            "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c1", "CNI_NETNS": "/x", "CNI_IFNAME": evil, "CNI_PATH": "/x"},
        input=json.dumps({"cniVersion": "1.0.0", "name": "n", "ipam": {"type": "host-local", "dataDir": str(
            world.directory / "hl"), "subnet": evil}}).encode()) if (world.bin / "host-local").exists() else None
    if host_local:
        expect_plain("host-local", host_local.stdout + host_local.stderr)
    # The command line's own arguments, and what a damaged record says.
    write_past_croft(rig.store, ("INSERT INTO records(kind,name,revision,token,checksum,value) VALUES(?,?,1,?,0,?)",
                                 (0, "p" + evil, bytes(16), evil.encode())))
    reports = world.directory / "report.json"
    reports.write_text(json.dumps({"findings": [{"subject": evil, "remedy": evil}]}))
    facts = world.directory / "facts.json"
    facts.write_text(json.dumps({"nodes": [evil]}))
    directory = world.directory / "cbr0"
    directory.mkdir()
    (directory / "10.0.0.5").write_bytes(b"c1\x1b[2J\r\neth0\xc2\x9b31m")
    (directory / f"10.0.0.6{evil}".replace("/", "")).write_bytes(b"x")
    for arguments in (("pool", "list"), ("pool", "list", "-o", "json"), ("pool", "list", "-o", "yaml"), ("ip", "list"),
                      ("ip", "list", "-o", "wide"), ("check",), ("pool", "show", evil), ("ip", "show", evil),
                      (evil,), ("ip", "release", "--from-report", str(reports)), ("block", "show", evil),
                      ("node", "label", "n" + evil, "a=b"), ("node", "label", "node-a", "a" + evil + "=b" + evil),
                      ("host-local", "check", "--dir", str(directory)), ("host-local", "list", "--dir", str(directory)),
                      ("host-local", "list", "--dir", str(directory), "-o", "json"),
                      ("host-local", "check", "--dir", str(directory), "-o", "yaml"), ("service", "list"),
                      ("service", "create", evil), ("explain", "--node", evil)):
        done = subprocess.run([world.bin / "croft", "--store", rig.store, *arguments], capture_output=True, check=False)
        expect_plain(f"croft {arguments!r} stdout", done.stdout)
        expect_plain(f"croft {arguments!r} stderr", done.stderr)
        if "json" in arguments and done.stdout:
            json.loads(done.stdout)
    for arguments in (("controller", "--once", "--grace", "1ms"),
                      ("controller", "--once", "--grace", "1ms", "--facts", str(facts)), (evil,)):
        done = subprocess.run([world.bin / "croftd", *arguments], capture_output=True, check=False,
                              env={**os.environ, "CROFT_STORE": rig.store})
        expect_plain(f"croftd {arguments!r}", done.stdout + done.stderr)
    expect_plain("the plugin's log", rig.log.read_bytes())


main(test)
