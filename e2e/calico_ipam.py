"""The personality calico-ipam as a runtime calls it: the real program on a register in a file. Results byte for byte, the
node's name, the lock, and errors in Calico's words. What it decides is calico_ipam_test.cc's.

usage: calico_ipam.py BIN_DIR
"""

import contextlib
import fcntl
import json
import subprocess
import sys
import time

from lib import World, call_environment, expect, expect_equal, main, say

PROCESSES = 32


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

    def add(self, *arguments, **options):
        code, out = self.raw("ADD", *arguments, **options)
        expect_equal(code, 0, f"ADD: {out}")
        return [ip["address"] for ip in json.loads(out)["ips"]]

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


def errors(world):
    rig = Rig(world, "errors")
    rig.refused("no pool", 11, "cannot find a qualified ippool")
    rig.pool("a", "10.1.0.0/29", 29)
    for i in range(5):
        rig.add(f"a{i}")
    rig.refused("full", 100, "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No IPs "
                "available in pools: [10.1.0.0/29] | pool a (10.1.0.0/29): ", "c9")
    rig.refused("taken", 100, "resource already exists: 10.1.0.3 | pool a (10.1.0.0/29): the address is held by net.a",
                "c9", args="IP=10.1.0.3")
    rig.refused("node name", 7, "nodename", "c9", more={"nodename": "a/b"})
    rig.refused("Kubernetes", 7, "kubernetes.kubeconfig: is missing", "c9", ipam={"store": None}, more={"datastore_type": "kubernetes"})
    rig.delete("a0")
    expect_equal(len(rig.add("c8", ipam={"store": None}, CROFT_STORE=rig.store)), 1, "CROFT_STORE names the store")
    rig.delete("c1", ipam={"store": f"sqlite:{world.directory}/nowhere/croft.db"})
    expect(not (world.directory / "nowhere").exists(), "DEL on an absent store makes nothing")
    for option, code in (("-upgrade", 1), ("-v", 0)):
        done = subprocess.run([world.bin / "calico-ipam", option], capture_output=True, text=True, check=False)
        expect_equal(done.returncode, code, f"exit code of {option}: {done.stdout}")
    log = (world.directory / "cni.log").read_text()
    expect("ADD network=net container=c9" in log and "pool a (10.1.0.0/29): " in log, "the log has refusals whole")


def together(world):
    """All at once, with the host's lock; then with the lock held by somebody else for a while."""
    rig = Rig(world, "together")
    rig.pool("four", "10.1.0.0/24", 26)
    processes = [rig.start("ADD", f"c{i}") for i in range(PROCESSES)]
    answers = [(p.communicate(timeout=60), p.returncode) for p in processes]
    expect_equal([a for a in answers if a[1] != 0], [], "failed ADDs")
    expect_equal(len(rig.held()), PROCESSES, "distinct addresses")
    with open(rig.lock, "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = rig.start("ADD", "waits")
        time.sleep(0.3)
        expect(waiting.poll() is None, "an ADD waits for the host's lock")
        fcntl.flock(lock, fcntl.LOCK_UN)
        out, _ = waiting.communicate(timeout=60)
        expect_equal(waiting.returncode, 0, out)
    for i in range(PROCESSES):
        rig.delete(f"c{i}")
    rig.delete("waits")
    expect_equal(rig.held(), [], "held after all DELs")
    world.croft(rig.store, "check")


def test():
    with World("calico", sys.argv[1]) as world:
        for part in (results, errors, together):
            part(world)


main(test)
