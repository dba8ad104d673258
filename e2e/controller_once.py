"""`croftd controller --once` ends with the code of the first pass that failed, though the passes after it went well. The
records of a sqlite store are damaged for that. Neither root nor network.

usage: controller_once.py BIN_DIR
"""

import sys

from lib import World, expect, expect_equal, main, run, write_past_croft

ERROR, USAGE, UNREACHABLE = 1, 2, 4
RANGES = ("--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/22")


class Rig:
    def __init__(self, world, name):
        self.world, self.store = world, world.store(name)

    def croft(self, *arguments):
        run(self.world.bin / "croft", "--store", self.store, *arguments)

    def change(self, name, statement, *arguments):
        changed = write_past_croft(self.store, (statement + " WHERE name=?", (*arguments, name)))[0][1]
        expect_equal(changed, 1, f"records named {name}")

    def once(self, *arguments, code=0):
        """The log of two looks."""
        done = run(self.world.bin / "croftd", "controller", "--store", self.store, "--once", "--grace", "1ms",
                   *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stderr


def in_order(log, *parts):
    at = 0
    for part in parts:
        found = log.find(part, at)
        expect(found >= 0, f"no `{part}` behind the part before it: {log}")
        at = found + len(part)


def node_ranges(world):
    rig = Rig(world, "nodes")
    rig.croft("pool", "create", "web", "--cidr", "10.1.0.0/24")
    rig.croft("node", "label", "node-a", "zone=a")
    log = rig.once(*RANGES)
    in_order(log, "node node-a got 10.244.0.0/24")
    rig.change("ipv4/10.244.0.0/24", "UPDATE records SET value=?", b"nonsense")
    # A dry run does not store what ranges are cut from: the pass is the first to read them.
    log = rig.once("--dry-run", *RANGES, code=ERROR)
    look = ("error controller: node ranges: ", " addresses in ")
    in_order(log, *look, *look, "croftd: node ranges: ")
    rig.once()  # who does not ask for them has no failure


def service_ranges(world):
    rig = Rig(world, "services")
    rig.croft("service", "create", "web", "--tcp", "80", "--type", "NodePort",
              "--service-cluster-ip-range", "10.96.0.0/24")
    rig.once("--repair-service-ranges")
    rig.croft("node", "label", "node-a", "zone=a")
    rig.once(*RANGES)
    rig.change("serviceips", "DELETE FROM records")
    missing = "service ranges: serviceips: there is no record serviceips, and Services hold values of it"
    log = rig.once("--repair-service-ranges", code=USAGE)
    in_order(log, f"error controller: {missing}", " addresses in ", " addresses in ", f"croftd: {missing}")
    # The first to fail counts.
    rig.change("ipv4/10.244.0.0/24", "UPDATE records SET value=?", b"nonsense")
    log = rig.once("--repair-service-ranges", "--dry-run", *RANGES, code=USAGE)
    in_order(log, f"error controller: {missing}", "error controller: node ranges: ", f"croftd: {missing}")


def unreachable(world):
    done = run(world.bin / "croftd", "controller", "--store", f"sqlite:{world.directory}/absent/croft.db", "--once",
               check=False)
    expect_equal(done.returncode, UNREACHABLE, f"exit code without a store: {done.stderr}")


def test():
    with World("controller-once", sys.argv[1]) as world:
        node_ranges(world)
        service_ranges(world)
        unreachable(world)


if __name__ == "__main__":
    main(test)
