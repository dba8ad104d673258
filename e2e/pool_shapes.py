"""Pools of odd shapes on the real programs: ADD, STATUS and DEL by the plugin alone and through an agent, which ends in
time; sizes are exact. Every pair of lengths is pool_shape_test.cc's.

usage: pool_shapes.py BIN_DIR
"""

import signal
import socket
import subprocess
import sys
import time

from lib import World, call_ipam, expect, expect_equal, main, run, say, wait_for

SHAPES = [  # CIDR, block size, addresses
    ("fd00::/8", 122, 2**120), ("fd00::/64", 128, 2**64), ("fd00::/116", 116, 2**12), ("10.0.0.0/8", 32, 2**24),
    ("10.0.0.0/29", 31, 8)]
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
        code, answer = call_ipam(self.world, command, container, self.store, NODE, version="1.1.0", log_file_path=str(self.log),
                                 assign_ipv4="true" if family == 4 else "false", assign_ipv6="true" if family == 6 else "false",
                                 agent=str(self.socket) if agent else "none")
        expect_equal(code, 0, f"{command} {container} on {self.store}: {answer}")
        return answer["ips"][0]["address"].split("/")[0] if command == "ADD" else None

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
        register.call("DEL", "c2", family, agent=True)
    finally:
        if agent.poll() is None:
            register.end(agent)
    register.call("DEL", "c1", family)
    expect_equal(world.held(register.store), {}, "held after all DELs")


def test():
    with World("pool-shapes", sys.argv[1]) as world:
        for number, (cidr, block_size, size) in enumerate(SHAPES):
            shape(world, number, cidr, block_size, size)
            say(f"{cidr} in blocks of /{block_size or 122}: {size} addresses")


if __name__ == "__main__":
    main(test)
