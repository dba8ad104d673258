"""A register that was put back to an older state has as free what living pods have, by Debian's `ptp`: an ADD on their node passes them
over. On etcd half of the pods are made through the node's agent.

usage: living_addresses.py BIN_DIR sqlite|etcd
"""

import shutil
import sys

from agent_etcd import agent_of
from etcd_lib import Etcd
from lib import CniError, World, expect, expect_equal, main, say
from living_lib import Pods, enter_own_namespace

# Of each register its own, and of no other test: in the namespaces of this machine an address is looked for that nobody must have.
NET = {"sqlite": 150, "etcd": 151}[sys.argv[2]]
POOLS = (("four", f"10.{NET}.0.0/26", "28"), ("six", f"fd00:{NET}::/122", "124"))


class Sqlite:
    """A register in one file, whose directory is put back."""

    def __init__(self, world):
        self.store = world.store()
        self.folder = world.directory / "store-croft"
        self.copy = world.directory / "copy"

    def save(self):
        shutil.copytree(self.folder, self.copy)

    def put_back(self):
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)

    @staticmethod
    def agent_of(_number):
        return {}

    def check_log(self):
        """The plugin's own is all there is."""


class ThroughEtcd:
    """One in etcd, restored from a snapshot, with an agent on the node."""

    def __init__(self, world):
        self.world = world
        self.etcd = Etcd(world)
        self.store = self.etcd.store
        self.agent = agent_of(world, self.store, "oak")

    def save(self):
        self.snapshot = self.etcd.save("before")

    def put_back(self):
        self.etcd.restore(self.snapshot)
        self.world.croft(self.store, "store", "new-epoch")

    def check_log(self):
        expect("passed over" in self.agent.log(), f"the agent's log says so: {self.agent.log()}")

    def agent_of(self, number):
        return {"agent": str(self.agent.socket)} if number % 2 == 0 else {}


def refused(pods, name, **more):
    try:
        pods.add(name, **more)
    except CniError as error:
        return error
    raise AssertionError(f"{name} was to be refused")


def test():
    enter_own_namespace()
    with World(f"living-{sys.argv[2]}", sys.argv[1]) as world:
        register = {"sqlite": Sqlite, "etcd": ThroughEtcd}[sys.argv[2]](world)
        for name, cidr, length in POOLS:
            world.pool(register.store, name, cidr, "--block-size", length)
        pods = Pods(world, register.store, "oak", assign_ipv6="true")
        add = lambda name, number, **more: pods.add(name, **{**register.agent_of(number), **more})
        for number in range(2):
            add(f"a{number}", number)
        register.save()
        lost = [address for number in range(5) for address in add(f"b{number}", number)]
        expect_equal(len(set(lost)), 10, "addresses of pods made after the copy")
        register.put_back()
        # An address that one of them has, by name.
        for number, wanted in enumerate((lost[2], lost[3])):
            error = refused(pods, f"fixed{number}", args=f";IP={wanted}", **register.agent_of(number))
            expect(error.code == 11 and wanted in str(error) and "veth" in str(error) and "restore-kubernetes-api.md" in str(error),
                   f"ADD of {wanted}: {error}")
        for number in range(8):
            add(f"c{number}", number)
        owners = pods.check_no_address_twice()
        say(f"  {len(pods.living)} pods with {len(owners)} addresses, each reached by its own")
        held = world.held(register.store)
        for address, name in owners.items():
            expect_equal(held.get(address, {}).get("containerId"), None if name[0] == "b" else name, f"who holds {address}")
        found = pods.check()
        expect_equal({subject for kind, subject in found if kind == "not_held"}, set(lost), "addresses that live and nobody holds")
        expect_equal({kind for kind, _ in found}, {"not_held"}, "kinds of findings")
        for number in range(5):
            pods.stop(f"b{number}")
        expect_equal(pods.check(), {}, "croft check once they are gone")
        # An address that lived is given as soon as nobody lives with it.
        for number in range(5):
            add(f"d{number}", number)
        for number, wanted in enumerate((lost[2], lost[3])):
            if wanted not in world.held(register.store):
                expect(wanted in add(f"fixed{number}", number, args=f";IP={wanted}"), f"{wanted} is given")
        pods.check_no_address_twice()
        expect_equal(pods.check(), {}, "croft check of new pods")
        log = (world.directory / "ipam.log").read_text()
        expect("passed over" in log, "the plugin's log says so")
        register.check_log()


main(test, 300)
