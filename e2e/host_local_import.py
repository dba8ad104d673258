#!/usr/bin/env python3
"""From node-local ranges to pools: reservations that Debian's host-local made are imported, croft-ipam finds them, gives none
of them away and releases one.

usage: host_local_import.py BIN_DIR
"""

import json
import sys

sys.dont_write_bytecode = True
from host_local_lib import Binaries, contents, holder
from lib import CniError, World, expect, expect_equal, main, own_environment, run, say

NETWORK = "mynet"
ENV = {**own_environment(),
       "CNI_NETNS": "/some/where", "CNI_NETNS_OVERRIDE": "1", "CNI_PATH": "/opt/cni/bin", "CNI_IFNAME": "eth0"}


def call(program, command, config, container):
    env = {**ENV, "CNI_COMMAND": command, "CNI_CONTAINERID": container}
    done = run(program, check=False, stdin=json.dumps(config), env=env)
    answer = json.loads(done.stdout) if done.stdout.strip() else None
    if done.returncode != 0:
        raise CniError(f"{program.name} {command}", answer, done.stderr)
    return answer


def addresses(result):
    return sorted(ip["address"].split("/")[0] for ip in result["ips"])


def reservations(directory):
    return {name: text for name, text in contents(directory).items() if name[0] in "0123456789abcdef"}


def test():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with World("import", sys.argv[1]) as world:
        networks = world.directory / "networks"
        directory = networks / NETWORK
        store = world.store()
        reference = Binaries(world).path["reference"]
        range_config = {"cniVersion": "1.0.0", "name": NETWORK, "type": "bridge",
                        "ipam": {"type": "host-local", "dataDir": str(networks),
                                 "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd00:77::/112"}]]}}
        pools = [{"name": "four", "cidr": "10.77.0.0/24", "blockSize": 26, "cooldownSeconds": 0},
                 {"name": "six", "cidr": "fd00:77::/112", "blockSize": 122, "cooldownSeconds": 0}]
        pool_config = {"cniVersion": "1.0.0", "name": NETWORK, "type": "bridge", "nodename": "node-a",
                       "ipam": {"type": "croft-ipam", "store": store, "pools": pools, "assign_ipv6": "true",
                                "log_file_path": str(world.directory / "log")}}

        given = {f"pod{i}": addresses(call(reference, "ADD", range_config, f"pod{i}")) for i in range(20)}
        (directory / "10.77.0.200").write_bytes(b"oldpod")  # a plugin before v0.8.0
        (directory / "10.77.0.201").write_bytes(b"")
        before = reservations(directory)
        for pool in pools:
            world.croft(store, "pool", "create", pool["name"], "--cidr", pool["cidr"], "--block-size",
                        str(pool["blockSize"]), "--cooldown-seconds", "0")

        def move(*more, code=0, parse=True):
            done = run(world.bin / "croft", "--store", store, "-o", "json", "host-local", "import", "--dir",
                       str(directory), "--pool", "four", "--pool", "six", "--node", "node-a", *more, check=False)
            expect_equal(done.returncode, code, f"import {more}: {done.stdout}{done.stderr}")
            return json.loads(done.stdout) if parse else None

        croft_ipam = world.find_plugin("croft-ipam")

        def outcomes(rows):
            return {row["containerId"]: row["outcome"] for row in rows if row["outcome"] != "reserved"}

        ranges = ("--pod-cidr", "10.77.0.0/24", "--pod-cidr", "fd00:77::/112")
        planned = move(*ranges, "--dry-run", code=3)
        expect_equal(reservations(directory), before, "files after a dry run")
        expect_equal(world.held(store), {}, "addresses held after a dry run")
        # oldpod lives: the pool would give its address to another.
        expect_equal(move(*ranges, code=5), planned, "what is refused")
        expect_equal(reservations(directory), before, "files after a refusal")
        expect_equal([row["containerId"] for row in planned if row["atRisk"]], ["oldpod"], "at risk")
        moved = move(*ranges, "--force", code=3)
        expect_equal(moved, planned, "what a dry run said")
        expect_equal(outcomes(moved), {**{pod: "imported" for pod in given}, "oldpod": "left", "": "left"}, "outcomes")
        expect_equal(sorted(reservations(directory)), ["10.77.0.200", "10.77.0.201"], "files left")
        shown = json.loads(run(world.bin / "croft", "--store", store, "-o", "json", "ip", "show", "10.77.0.1").stdout)[0]["state"]
        expect_equal(shown, "reserved", "the gateway")
        expect_equal(sorted(world.held(store)), sorted(a for two in given.values() for a in two), "held in the pools")
        say(f"  {len(given)} pods of Debian's host-local imported into two pools")

        expect_equal(addresses(call(croft_ipam, "ADD", pool_config, "pod7")), given["pod7"],
                     "croft-ipam asked again for a moved pod")
        fresh = addresses(call(croft_ipam, "ADD", pool_config, "new"))
        expect(not set(fresh) & {a for two in given.values() for a in two}, f"{fresh} is held by a moved pod")
        for pod in ("pod7", "new"):
            call(croft_ipam, "DEL", pool_config, pod)
        findings = run(world.bin / "croft", "--store", store, "check", check=False)
        expect_equal(findings.returncode, 0, f"croft check: {findings.stdout}")


main(test)
