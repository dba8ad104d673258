#!/usr/bin/env python3
"""Measures a node's agent of VPC addresses, `croftd vpc-agent`, on a simulated cloud and a stock that is full, beside an
empty call of it and a bare commit of the same run.

usage: bench/vpc_bench.py BUILD_DIR DISK      e.g. build/release /var/tmp; the stock is recorded below DISK
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from lib import World, wait_for  # noqa: E402
from vpc_lib import Agent, Cloud  # noqa: E402

ROUNDS, CALLERS, TIMES, PROCESSES = 400, 64, 3, 200
STOCK, BURST = 220, 110


def load(build, agent, *arguments):
    done = subprocess.run([build / "bench" / "vpc_load", agent.socket, *map(str, arguments)], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def show(title, figures):
    print(f"{title:<46} " + "  ".join(f"{name} {value:,}" for name, value in figures.items()), flush=True)


def memory_mib(agent):
    status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) / 1024


def alone(build, agent, directory):
    figures = load(build, agent, "lone", ROUNDS, f"sqlite:{directory}/bare.db")
    show("1 caller", figures)
    floor = figures["ping_us"] + figures["commit_us"]
    for name in ("add", "del"):
        more = {"budget": rows.budget("ratio", "at most", 1.5)} if name == "add" else {}
        rows.record(f"vpc.{name}.lone", f"{name.upper()} of one caller, p50", figures[f"{name}_us"], "us",
                    limit=rows.figure("an empty call and a commit", floor, "us"), ratio=figures[f"{name}_us"] / floor,
                    ratio_of="an empty call and a commit", **more)
    return figures["add_us"] / floor


def together(build, agent):
    # In turns, as the machine changes meanwhile.
    pairs = [(load(build, agent, "ping", CALLERS, 100), load(build, agent, "churn", CALLERS, 50)) for _ in range(TIMES)]
    empty = statistics.median(ping["p50_us"] for ping, _ in pairs)
    add = statistics.median(churn["p50_us"] for _, churn in pairs)
    rate = statistics.median(churn["per_second"] for _, churn in pairs)
    show(f"{CALLERS} callers", {"ping_us": empty, "add_us": add, "adds and dels a second": rate})
    rows.record("vpc.add.many", f"ADD, {CALLERS} callers that add and delete, p50", add, "us",
                limit=rows.figure("an empty call", empty, "us"), ratio=add / empty, ratio_of="an empty call",
                budget=rows.budget("ratio", "at most", 4))
    rows.record("vpc.rate", f"ADDs and DELs a second, {CALLERS} callers", rate, "/s",
                budget=rows.budget("value", "at least", 5000))
    return add / empty, rate


def at_once(build, agent):
    commits = agent.commits()
    figures = load(build, agent, "burst", BURST)
    commits = int(agent.commits() - commits)
    show(f"{BURST} pods at once", {**figures, "commits": commits})
    rows.record("vpc.burst", f"{BURST} ADDs at once, to the last answer", figures["seconds"] * 1000, "ms",
                note=f"{commits} commits")
    rows.record("vpc.burst.commits", f"commits of {BURST} ADDs at once", commits, "commits",
                budget=rows.budget("value", "at most", 6))
    return commits


def spawned(program, stdin, env):
    """The seconds that a process takes, from its start to its end."""
    began = time.perf_counter()
    process = os.posix_spawn(program, [str(program)], env, file_actions=[
        (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    if os.waitpid(process, 0)[1] != 0:
        sys.exit(f"{program} failed: {env}")
    return time.perf_counter() - began


def plugin(build, agent, directory):
    config = directory / "config.json"
    config.write_text(json.dumps({"cniVersion": "1.0.0", "name": "demo", "type": "croft-vpc", "ipam": {
        "type": "croft-vpc", "agent": str(agent.socket), "store": f"sqlite:{agent.store}", "probe": False}}))
    empty, add = [], []
    for i in range(PROCESSES):
        env = {"CNI_CONTAINERID": f"{i:064x}", "CNI_NETNS": "/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": "/",
               "CNI_ARGS": f"K8S_POD_NAME=plugin-{i};K8S_POD_NAMESPACE=default",
               "CROFT_LOG_DIRECTORY": str(directory)}
        empty.append(spawned(build / "bench" / "empty_process", config, env))
        add.append(spawned(build / "bin" / "croft-vpc", config, {**env, "CNI_COMMAND": "ADD"}))
        spawned(build / "bin" / "croft-vpc", config, {**env, "CNI_COMMAND": "DEL"})
    floor, took = statistics.median(empty) * 1000, statistics.median(add) * 1000
    show("the plugin's process", {"empty_ms": round(floor, 3), "add_ms": round(took, 3)})
    rows.record("vpc.plugin", "a plugin's ADD by the agent, from its start to its end, p50", took, "ms",
                limit=rows.figure("an empty static process", floor, "ms"), ratio=took / floor,
                ratio_of="an empty static process", budget=rows.budget("ratio", "at most", 3))
    return took / floor


def main():
    build, disk = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with World("vpc-bench", build / "bin") as world, tempfile.TemporaryDirectory(dir=disk, prefix="croft-vpc-bench-") as made:
        cloud = Cloud(world, "bench")
        agent = Agent(cloud, low=STOCK, high=250, flags=["--cooldown-seconds", "0"])
        agent.store = pathlib.Path(made) / "stock.db"
        agent.start()
        agent.wait_for_free(STOCK)
        # The cloud has nothing to do with what follows.
        agent.restart(low=0)
        wait_for(lambda: "interface" in agent.process.tail(), "it has found its interface")
        calls = len(cloud.calls())
        ratio = alone(build, agent, made)
        ratio_many, rate = together(build, agent)
        commits = at_once(build, agent)
        process = plugin(build, agent, pathlib.Path(made))
        memory = memory_mib(agent)
        show("memory", {"MiB": round(memory, 1), "addresses": STOCK})
        rows.record("vpc.memory", f"memory of an agent with {STOCK} addresses after that", memory, "MiB",
                    budget=rows.budget("value", "at most", 40))
        new = [call["action"] for call in cloud.calls()[calls:]]
        if any("Allocate" in action or "Delete" in action for action in new):
            sys.exit(f"the cloud was asked meanwhile: {new}")
        for what, met in ((f"1 caller: {ratio:.2f} x an empty call and a commit, at most 1.5", ratio <= 1.5),
                          (f"{CALLERS} callers: {ratio_many:.2f} x an empty call, at most 4", ratio_many <= 4),
                          (f"{rate:,} ADDs and DELs a second, at least 5,000", rate >= 5000),
                          (f"a plugin's ADD: {process:.2f} x an empty process, at most 3", process <= 3),
                          (f"{commits} commits for {BURST} at once, at most 6", commits <= 6),
                          (f"{memory:.1f} MiB, at most 40", memory <= 40)):
            print(("met     " if met else "MISSED  ") + what, flush=True)


if __name__ == "__main__":
    main()
