#!/usr/bin/env python3
"""`croft plan-capacity` takes what it is told, begins with a register, and refuses the rest before it runs.

usage: plan_capacity.py BIN_DIR
"""

import json
import sys

sys.dont_write_bytecode = True
from lib import World, expect, expect_equal, main, run

SHORT = ("--hours", "0.1", "--no-advice", "-o", "json")
REFUSED = [
    (("--against", "foo=1"), '"foo" is not a setting of a plan. Use the name of a flag'),
    (("--against", "foo"), "Write NAME=VALUE"),
    (("--vary", "way=agents,calico"), "Compare with --against."),
    (("--vary", "nodes"), "Write NAME=VALUE,VALUE."),
    (("--vary", "nodes=1,2", "--chart", "rate"), "Take one that -o json names."),
    (("--nodes", "1.5"), "not a whole number"),
    (("--nodes", "0"), "not a number from 1 to 60,000"),
    (("--pool", "10.0.0.0/28"), "Name another with --block-size."),
    (("--datastore", "consul"), "Say kubernetes, etcd or sqlite."),
    (("--datastore", "sqlite"), "a SQLite file serves one node"),
]
OF_THE_REGISTER = [("--pool", "10.0.0.0/8"), ("--block-size", "28"), ("--against", "cooldown-seconds=3"), ("--vary", "block-size=26,27")]


def test():
    with World("plan", sys.argv[1]) as world:
        croft, store = world.bin / "croft", world.store()

        def plan(*arguments):
            return json.loads(run(croft, "plan-capacity", *arguments, *SHORT, timeout=120).stdout)

        def refuse(arguments, text):
            done = run(croft, "plan-capacity", *arguments, check=False)
            expect(done.returncode != 0 and text in done.stderr, f"{arguments}: {done.stdout}{done.stderr}")

        for arguments, text in REFUSED:
            refuse(arguments, text)

        world.croft(store, "pool", "create", "p", "--cidr", "10.9.0.0/24", "--block-size", "27", "--gateway", "none",
                    "--cooldown-seconds", "600")
        for arguments in OF_THE_REGISTER:
            refuse(("--from", store, *arguments), "comes from the register of --from. Leave it out.")
        [today] = plan("--from", store, "--pods", "20", "--churn", "60")
        expect_equal((today["pool"], today["blockSize"], today["nodes"]), ("10.9.0.0/24", 27, 1), "the register's pool")
        expect(today["cooling"] > 0, f"a cooldown of ten minutes is the pool's: {today}")

        # Of IPv6 pool and blocks have their own sizes; what is varied stands by itself, and counts are whole.
        varied = plan("--nodes", "4", "--pool", "fd00:1::/112", "--vary", "pods=4,6")
        expect_equal([run["varied"] for run in varied], [{"name": "pods", "value": 4}, {"name": "pods", "value": 6}], "what is varied")
        expect_equal([run["blockSize"] for run in varied], [122, 122], "blocks of IPv6")
        expect(all(isinstance(run["held"], int) for run in varied), f"counts are whole: {varied}")
        advised = run(croft, "plan-capacity", "--nodes", "4", "--pool", "fd00:1::/112", "--hours", "0.1", timeout=120).stdout
        expect("Advice: a pool /1" in advised, f"advice for IPv6:\n{advised}")


main(test)
