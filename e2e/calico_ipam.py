"""The personality calico-ipam as a runtime calls it: the real program on a register in a file. Results byte for byte,
and what it takes from elsewhere. What it decides, the lock and errors in Calico's words are calico_ipam_test.cc's.

usage: calico_ipam.py BIN_DIR
"""

import contextlib
import json
import subprocess
import sys

from lib import World, call_environment, expect, expect_equal, main, say


class Rig:
    def __init__(self, world, name="croft"):
        self.world = world
        self.store = world.store(name)
        self.lock = world.directory / name / "run" / "ipam.lock"
        self.nodename = world.directory / f"{name}-nodename"
        self.nodename.write_text("node-a")

    def pool(self, name, cidr, block_size, *more):
        self.world.croft(self.store, "pool", "create", name, "--cidr", cidr, "--block-size", str(block_size),
                         "--cooldown-seconds", "0", *more)

    def config(self, ipam, more):
        config = {"cniVersion": "1.0.0", "name": "net", "type": "calico", "nodename_file": str(self.nodename),
                  "ipam_lock_file": str(self.lock), "log_file_path": str(self.world.directory / "cni.log"),
                  "ipam": {"type": "calico-ipam", "store": self.store, **(ipam or {})}, **(more or {})}
        if config["ipam"]["store"] is None:
            del config["ipam"]["store"]
        return json.dumps(config)

    def start(self, command, container="c1", ipam=None, more=None, args="", **env):
        process = subprocess.Popen([self.world.bin / "calico-ipam"], env=call_environment(self.world, command, container, args, **env),
                                   text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with contextlib.suppress(BrokenPipeError):  # VERSION reads nothing
            process.stdin.write(self.config(ipam, more))
            process.stdin.close()
        process.stdin = None
        return process

    def raw(self, command, *arguments, **options):
        """Exit code and standard output of one call, which must say nothing on standard error."""
        process = self.start(command, *arguments, **options)
        out, err = process.communicate(timeout=60)
        expect_equal(err, "", f"{command}: standard error")
        return process.returncode, out

    def delete(self, *arguments, **options):
        expect_equal(self.raw("DEL", *arguments, **options), (0, ""), "DEL")

    def refused(self, what, code, text, *arguments, command="ADD", **options):
        exit_code, out = self.raw(command, *arguments, **options)
        expect_equal(exit_code, 1, f"{what}: exit code ({out})")
        answer = json.loads(out)
        expect_equal(answer["code"], code, f"{what}: code of {answer}")
        shown = answer["msg"] + " | " + answer.get("details", "")
        expect(text in shown, f"{what}: expected {text!r} in {shown!r}")
        say(f"{what}: {code} {answer['msg'].strip()}")

    def held(self):
        return sorted(self.world.held(self.store))


def printed(version, address, form):
    """What the plugin prints for one IPv4 address, byte for byte (docs/notes/calico-ipam.md#plugin-result)."""
    if form == "by family":
        return (f'{{\n    "cniVersion": "{version}",\n    "ip4": {{\n        "ip": "{address}",\n        "routes": [\n'
                f'            {{\n                "dst": "{address}"\n            }}\n        ]\n    }},\n'
                '    "dns": {}\n}')
    before = '            "version": "4",\n' if form == "list" else ""
    after = ',\n    "dns": {}' if form == "list" else ""
    return (f'{{\n    "cniVersion": "{version}",\n    "ips": [\n        {{\n{before}            "address": "{address}"\n'
            f'        }}\n    ],\n    "routes": [\n        {{\n            "dst": "{address}"\n        }}\n    ]{after}\n}}')


FORMS = {"0.1.0": "by family", "0.2.0": "by family", "0.3.0": "list", "0.3.1": "list", "0.4.0": "list", "1.0.0": "newest"}


def results(world):
    rig = Rig(world, "results")
    rig.pool("default-ipv4-ippool", "10.0.0.64/26", 26)  # .64 and .65, network and gateway, are kept out of use
    for version, form in FORMS.items():
        wanted = (0, printed(version, "10.0.0.66/26", form))
        expect_equal(rig.raw("ADD", more={"cniVersion": version}), wanted, f"ADD in {version}")
    expect_equal(rig.held(), ["10.0.0.66"], "asked six times, assigned once")
    expect_equal(rig.raw("ADD", "c2", args="IP=10.0.0.70"), (0, printed("1.0.0", "10.0.0.70/32", "newest")), "ADD with IP")
    rig.delete("c1")
    rig.delete("c1")
    rig.delete("c2")
    expect_equal(rig.held(), [], "held after DEL")
    expect_equal(rig.raw("VERSION"), (0, '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1",'
                                         '"0.4.0","1.0.0"]}\n'), "VERSION")
    expect_equal(rig.raw("CHECK", "nobody"), (0, ""), "CHECK works on nothing")
    for command in ("STATUS", "GC"):
        rig.refused(command, 1, f"plugin version does not allow {command}", command=command, more={"cniVersion": "1.1.0"})


def options(world):
    """What the program takes from elsewhere; and its log has a refusal whole."""
    rig = Rig(world, "options")
    rig.pool("a", "10.1.0.0/29", 29)
    code, out = rig.raw("ADD", ipam={"store": None}, CROFT_STORE=rig.store)
    expect_equal((code, len(json.loads(out)["ips"])), (0, 1), "CROFT_STORE names the store")
    rig.refused("taken", 100, "resource already exists: 10.1.0.2 | pool a (10.1.0.0/29): the address is held by net.c1", "c9", args="IP=10.1.0.2")
    rig.delete("c1", ipam={"store": f"sqlite:{world.directory}/nowhere/croft.db"})
    expect(not (world.directory / "nowhere").exists(), "DEL on an absent store makes nothing")
    for option, code in (("-upgrade", 1), ("-v", 0)):
        done = subprocess.run([world.bin / "calico-ipam", option], capture_output=True, text=True, check=False)
        expect_equal(done.returncode, code, f"exit code of {option}: {done.stdout}")
    log = (world.directory / "cni.log").read_text()
    expect("ADD network=net container=c9" in log and "pool a (10.1.0.0/29): " in log, "the log has refusals whole")


def test():
    with World("calico", sys.argv[1]) as world:
        for part in (results, options):
            part(world)


main(test)
