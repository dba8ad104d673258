"""64 processes add at once on one store, then 64 delete at once: 64 distinct addresses, no error, nothing left.

usage: storm.py BIN_DIR
"""

import json
import subprocess
import sys

from lib import World, expect_equal, main, own_environment, say

PROCESSES = 64


def together(world, command, store):
    """All calls at once; their answers in order. Every one must succeed."""
    config = json.dumps({"cniVersion": "1.0.0", "name": "net", "ipam": {
        "type": "croft-ipam", "store": store, "log_file_path": str(world.directory / "ipam.log")}})
    processes = []
    for i in range(PROCESSES):
        env = {**own_environment(world.directory),
               "CNI_COMMAND": command, "CNI_CONTAINERID": f"c{i}", "CNI_NETNS": "/var/run/netns/none",
               "CNI_IFNAME": "eth0", "CNI_PATH": str(world.bin)}
        processes.append(subprocess.Popen([world.bin / "croft-ipam"], env=env, text=True, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    for process in processes:
        process.stdin.write(config)
        process.stdin.close()
        process.stdin = None
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
