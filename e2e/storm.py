"""64 processes add at once on one store, then 64 delete at once: 64 distinct addresses, no error, nothing left.

usage: storm.py BIN_DIR
"""

import json
import sys

from lib import World, begin_ipam, expect_equal, main, say

PROCESSES = 64


def together(world, command, store):
    """All calls at once; their answers in order. Every one must succeed."""
    processes = [begin_ipam(world, command, f"c{i}", store) for i in range(PROCESSES)]
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        expect_equal((process.returncode, err), (0, ""), f"{command}: {out}")
        answers.append(json.loads(out) if out else None)
    return answers


def test():
    with World("storm", sys.argv[1]) as world:
        store = world.store()
        world.croft(store, "pool", "create", "a", "--cidr", "10.78.0.0/24", "--block-size", "28", "--cooldown-seconds", "0")
        for _ in range(3):
            answers = together(world, "ADD", store)
            addresses = {a["ips"][0]["address"] for a in answers}
            expect_equal(len(addresses), PROCESSES, "distinct addresses")
            expect_equal(len(world.held(store)), PROCESSES, "recorded addresses")
            world.croft(store, "check")
            together(world, "DEL", store)
            expect_equal(world.held(store), {}, "held after all DELs")
        say(f"3 times {PROCESSES} at once: distinct addresses, no error, all given back")


main(test)
