"""Pools of every odd shape on the real programs: what `croft pool create` accepts must serve ADD, STATUS and DEL through the
plugin alone and through an agent, which lives and ends in time; sizes are exact; reservations of any size cost nothing.

usage: pool_shapes.py BIN_DIR
"""

import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, run, say, wait_for

SHAPES = [  # CIDR, block size, addresses
    ("fd00::/8", 122, 2**120), ("fd00::/48", None, 2**80), ("fd00::/56", 122, 2**72), ("fd00::/58", 122, 2**70),
    ("fd00::/64", 128, 2**64), ("fd00::/64", 122, 2**64), ("fd00::/65", 128, 2**63), ("fd00::/116", 116, 2**12),
    ("fd00::/126", 128, 4), ("10.0.0.0/8", 32, 2**24), ("10.0.0.0/20", 20, 2**12), ("10.0.0.0/29", 31, 8)]
NODE = "node-a"
END_LIMIT = 5.0  # seconds from SIGTERM to the end of an agent


class Register:
    def __init__(self, world, name, store=None):
        self.world = world
        self.store = store or world.store(name)
        self.socket = world.directory / f"{name}.sock"
        self.log = world.directory / f"{name}.log"

    def croft(self, *arguments):
        return self.world.croft(self.store, *arguments)

    def call(self, command, container, family, agent=False):
        """The address of an ADD; every call must succeed."""
        ipam = {"type": "croft-ipam", "store": self.store, "nodename": NODE, "log_file_path": str(self.log),
                "assign_ipv4": "true" if family == 4 else "false", "assign_ipv6": "true" if family == 6 else "false",
                "agent": str(self.socket) if agent else "none"}
        config = {"cniVersion": "1.1.0", "name": "net", "type": "bridge", "ipam": ipam}
        env = {**os.environ, "CNI_COMMAND": command, "CNI_PATH": str(self.world.bin)}
        if command != "STATUS":
            env |= {"CNI_CONTAINERID": container, "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0"}
        done = run(self.world.bin / "croft-ipam", stdin=json.dumps(config), env=env, check=False)
        expect_equal(done.returncode, 0, f"{command} {container} on {self.store}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)["ips"][0]["address"].split("/")[0] if command == "ADD" else None

    def start_agent(self):
        errors = open(self.world.directory / "agent.log", "a", encoding="utf-8")
        process = subprocess.Popen([self.world.bin / "croftd", "agent", "--store", self.store, "--socket", self.socket,
                                    "--node", NODE], stderr=errors)
        errors.close()

        def answers():
            with socket.socket(socket.AF_UNIX) as probe:
                return probe.connect_ex(str(self.socket)) == 0
        wait_for(lambda: process.poll() is not None or answers(), "the agent serves")
        expect(process.poll() is None, "the agent ended at once")
        return process

    def end(self, agent):
        expect(agent.poll() is None, "the agent died")
        begin = time.monotonic()
        agent.send_signal(signal.SIGTERM)
        agent.wait(timeout=30)
        expect(time.monotonic() - begin < END_LIMIT, "SIGTERM took too long to end the agent")
        expect_equal(agent.returncode, 0, "exit code of the agent")


def shape(world, number, cidr, block_size, size):
    register = Register(world, f"shape{number}")
    family = 6 if ":" in cidr else 4
    options = [] if block_size is None else ["--block-size", str(block_size)]
    register.croft("pool", "create", "p", "--cidr", cidr, *options, "--cooldown-seconds", "0")
    register.call("STATUS", "", family)
    first = register.call("ADD", "c1", family)
    expect_equal(register.call("ADD", "c1", family), first, "asked again")
    agent = register.start_agent()
    try:
        register.call("STATUS", "", family, agent=True)
        second = register.call("ADD", "c2", family, agent=True)
        expect(second != first, f"two owners of {first}")
        usage = register.croft("pool", "list")[0]["usage"]
        expect_equal(int(usage["size"]), size, f"addresses of {cidr}")
        expect_equal(int(usage["free"]), size - 2 - int(usage["reserved"]), f"free addresses of {cidr}")
        run(world.bin / "croft", "--store", register.store, "pool", "show", "p")
        check(world, register)
        register.call("DEL", "c2", family, agent=True)
    finally:
        if agent.poll() is None:
            register.end(agent)
    register.call("DEL", "c1", family)
    expect_equal(world.held(register.store), {}, "held after all DELs")


def check(world, register):
    """Nothing is found, but that a small pool is full."""
    done = run(world.bin / "croft", "--store", register.store, "check", check=False)
    expect_equal(done.stdout.count("remedy:"), done.stdout.count("pool_full:"), f"croft check: {done.stdout}{done.stderr}")
    expect_equal(done.returncode, 3 if "pool_full:" in done.stdout else 0, f"croft check: {done.stdout}{done.stderr}")
    return done.stdout


def smallest(world, store, number, cidr):
    """A pool of one or two addresses, each of which can be given; or a small one, which then is full."""
    register = Register(world, f"small{number}", store)
    network = ipaddress.ip_network(cidr)
    pair = network.num_addresses <= 2
    register.croft("pool", "create", f"p{number}", "--cidr", cidr, "--cooldown-seconds", "0", *(["--gateway", "none"] if pair else []))
    wanted = set(map(str, network)) if pair else set(map(str, list(network)[2:-1]))
    expect_equal({register.call("ADD", f"s{number}-{i}", network.version) for i in range(len(wanted))}, wanted, f"all of {cidr}")
    text = run(world.bin / "croft", "--store", register.store, "pool", "list").stdout
    expect(f"{len(wanted)} (100%)" in text, f"it is full: {text}")
    text = check(world, register)
    if store is None:
        held = "1 address held" if len(wanted) == 1 else f"{len(wanted)} addresses held"
        expect(f"1 pool, 1 block, {len(wanted)} handle" in text and held in text, text)
    for i in range(len(wanted)):
        register.call("DEL", f"s{number}-{i}", network.version)
    run(world.bin / "croft", "--store", register.store, "pool", "delete", f"p{number}")


def reserved(world, etcd, name, cidr, cidrs, wanted):
    """An IPReservation as Calico keeps it, over much of a pool or with very many parts."""
    register = Register(world, name, etcd.store)
    family = 6 if ":" in cidr else 4
    register.croft("pool", "create", name, "--cidr", cidr, "--cooldown-seconds", "0")
    for number in range(0, len(cidrs), 4096):  # what fits an argument of etcdctl
        etcd.put(f"/calico/resources/v3/projectcalico.org/ipreservations/{name}-{number}", json.dumps({
            "kind": "IPReservation", "apiVersion": "projectcalico.org/v3",
            "metadata": {"name": f"{name}-{number}", "uid": "8a5d2f0c-0000-4000-8000-00000000000a",
                         "creationTimestamp": "2026-01-15T10:00:00Z"},
            "spec": {"reservedCIDRs": cidrs[number:number + 4096]}}))
    agent = register.start_agent()
    try:
        begin = time.monotonic()
        address = register.call("ADD", f"c-{name}", family, agent=True)
        say(f"{len(cidrs)} reservations in {cidr}: ADD took {time.monotonic() - begin:.2f} s")
        expect(wanted(ipaddress.ip_address(address)), f"{address} is reserved")
        expect(time.monotonic() - begin < 10, "an ADD among reservations takes for ever")
        alone = register.call("ADD", f"d-{name}", family)
        expect(wanted(ipaddress.ip_address(alone)) and alone != address, f"{alone} after {address}")
    finally:
        register.end(agent)


def test():
    with World("pool-shapes", sys.argv[1]) as world:
        for number, (cidr, block_size, size) in enumerate(SHAPES):
            shape(world, number, cidr, block_size, size)
            say(f"{cidr} in blocks of /{block_size or 122}: {size} addresses")
        smalls = ("172.16.2.90/32", "172.16.3.90/31", "fd00::5/128", "fd00::4/127", "10.9.0.0/29")
        for number, cidr in enumerate(smalls):
            smallest(world, None, number, cidr)
        if shutil.which("etcd") is None:
            say("without etcd: no reservations")
            return
        etcd = Etcd(world)
        for number, cidr in enumerate(smalls, 10):
            smallest(world, etcd.store, number, cidr)
        say("the smallest pools, each address")
        reserved(world, etcd, "half", "fd00::/64", ["fd00::/65"],
                 lambda a: a in ipaddress.ip_network("fd00::8000:0:0:0/65"))
        reserved(world, etcd, "single", "10.0.0.0/15", [f"10.0.{i >> 8}.{i & 255}/32" for i in range(65536)],
                 lambda a: a in ipaddress.ip_network("10.1.0.0/16"))


if __name__ == "__main__":
    main(test)
