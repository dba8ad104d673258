#!/usr/bin/env python3
"""Lets pods come and go at a node's agent of VPC addresses, `croftd vpc-agent`, while its cloud throttles, loses replies and
goes away: does anything grow, leak, or get given twice?

usage: bench/vpc_soak.py BUILD_DIR DISK [SECONDS]      e.g. build/release /var/tmp 1200; the stock is recorded below DISK
"""

import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from lib import World, expect  # noqa: E402
from vpc_lib import Agent, Cloud, grpc, settled  # noqa: E402

LOW, HIGH, PODS = 20, 40, 60
FAULTS = (("throttle", lambda cloud: cloud.do("fault", kind="ret_code", action="AllocateBatchSecondaryIp", value=153,
                                              committed="false", count=2)),
          ("lose", lambda cloud: cloud.do("fault", kind="lose", action="*")),
          ("away", lambda cloud: cloud.do("outage", mode="refuse")))
FLAGS = ["--cooldown-seconds", "2", "--reconcile-seconds", "2", "--grace-seconds", "2"]


def sizes(agent):
    """Resident MiB, open descriptors, threads, MiB of its store's files."""
    process = pathlib.Path(f"/proc/{agent.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    files = sum(path.stat().st_size for path in agent.store.parent.glob(agent.store.name + "*"))
    return (int(status["VmRSS"].split()[0]) / 1024, len(list((process / "fd").iterdir())), int(status["Threads"]),
            files / 2**20)


def soak(cloud, agent, seconds, chance):
    held, tally, samples = {}, {"adds": 0, "dels": 0, "failed": 0}, []
    begin = time.monotonic()
    fault_at, heal_at, sample_at, number = begin + 5, None, begin + seconds / 4, 0
    while time.monotonic() < begin + seconds:
        now = time.monotonic()
        if now >= fault_at:
            _, make = chance.choice(FAULTS)
            make(cloud)
            fault_at, heal_at = now + 10, now + 2
        if heal_at is not None and now >= heal_at:
            cloud.do("outage", mode="off")
            heal_at = None
        if now >= sample_at:
            samples.append(sizes(agent))
            sample_at = now + seconds / 24
        if len(held) < chance.randrange(PODS):
            number += 1
            name = f"{number:064x}"
            try:
                ip = agent.add(name, timeout=20)
            except grpc.RpcError:  # the stock was empty for as long as that
                tally["failed"] += 1
                agent.delete(name)
                continue
            expect(ip not in held.values(), f"{ip} is given twice")
            held[name] = ip
            tally["adds"] += 1
        elif held:
            name = chance.choice(list(held))
            agent.delete(name, held.pop(name))
            tally["dels"] += 1
        time.sleep(0.01)
    cloud.do("outage", mode="off")
    return held, tally, samples


def main():
    build, disk = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 1200
    with World("vpc-soak", build / "bin") as world, tempfile.TemporaryDirectory(dir=disk, prefix="croft-vpc-soak-") as made:
        cloud = Cloud(world, "soak")
        agent = Agent(cloud, low=LOW, high=HIGH, flags=FLAGS)
        agent.store = pathlib.Path(made) / "stock.db"
        agent.start()
        agent.wait_for_free(LOW)
        held, tally, samples = soak(cloud, agent, seconds, random.Random(1))
        for name, ip in held.items():
            agent.delete(name, ip)
        settled(cloud, [agent], seconds=60)
        half = len(samples) // 2
        print(f"{seconds} s: {tally['adds']} ADDs, {tally['dels']} DELs, {tally['failed']} ADDs failed", flush=True)
        grown = []
        for i, (name, most) in enumerate((("resident MiB", 1.15), ("descriptors", 1.0), ("threads", 1.0), ("store MiB", 1.5))):
            first, last = max(one[i] for one in samples[:half]), max(one[i] for one in samples[half:])
            print(f"{name:<14} {first:8.1f} in the first half, {last:8.1f} in the second", flush=True)
            if last > first * most + 1:
                grown.append(name)
        memory = max(one[0] for one in samples)
        rows.record("vpc.soak.memory", f"memory of an agent after {seconds} s of pods that come and go", memory, "MiB",
                    budget=rows.budget("value", "at most", 40))
        if grown:
            sys.exit(f"it grows: {', '.join(grown)}")


if __name__ == "__main__":
    main()
