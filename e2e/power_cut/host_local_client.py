#!/usr/bin/env python3
"""The node whose machine loses power: ADDs and DELs of host-local on a logged disk. Notes, outside of the disk, how
long the disk's log was when each began and when each was acknowledged.

host_local_client.py STORE DISK_LOG NOTES CALLS [skip-one-sync-in N] PLUGIN [REST ...]

The data directory is STORE's folder. Mostly one call after the other; now and then four at a time. With
`skip-one-sync-in` N not every sync of a call is done: the planted fault that the rig must find.
"""

import json
import os
import pathlib
import random
import shutil
import sys

sys.dont_write_bytecode = True
from host_local_calls import CROWD, LIVE_MAX, NETWORKS, HostLocal, content

AT_ONCE = 4


class Client:
    def __init__(self, data, disk_log, notes, plugin):
        self.data, self.disk_log, self.notes, self.plugin = data, disk_log, notes, plugin
        self.random = random.Random(7)
        self.live = {network: {} for network in NETWORKS}
        self.containers = 0

    def note(self, what, **more):
        line = {"log": os.stat(self.disk_log).st_size, "what": what, **more}
        self.notes.write(json.dumps(line) + "\n")

    def make_crowd(self):
        """Reservations that are on the disk before anything is promised."""
        folder = self.data / "crowd"
        folder.mkdir()
        for address, container in CROWD.items():
            (folder / address).write_bytes(content(container))
        os.sync()
        self.note("start")
        for address, container in CROWD.items():
            call = {"command": "ADD", "network": "crowd", "container": container}
            self.note("begin", **call)
            self.note("end", **call, addresses=[address])

    def choose(self, busy):
        network = self.random.choice(sorted(NETWORKS))
        live = self.live[network]
        idle = sorted(set(live) - busy)
        if idle and self.random.random() < len(live) / LIVE_MAX:
            return "DEL", network, self.random.choice(idle)
        self.containers += 1
        return "ADD", network, f"{self.containers:064x}"

    def step(self, number):
        """`number` calls at once, of different containers."""
        busy, running = set(), []
        for _ in range(number):
            command, network, container = self.choose(busy)
            busy.add(container)
            self.note("begin", command=command, network=network, container=container)
            running.append((command, network, container, self.plugin.start(command, self.data, network, container)))
        for command, network, container, process in running:
            addresses = self.plugin.finish(process)
            self.note("end", command=command, network=network, container=container, addresses=addresses)
            live = self.live[network]
            if command == "DEL":
                del live[container]
                continue
            taken = [a for held in live.values() for a in held]
            # A DEL that ran beside this ADD may have given the address; it is noted a moment later.
            ending = [a for other in busy for a in live.get(other, [])]
            for address in addresses:
                if address in taken and address not in ending:
                    raise RuntimeError(f"{address} given twice")
            live[container] = addresses


def main():
    store, disk_log, notes_path, calls, *more = sys.argv[1:]
    skip_one_sync_in = 0
    if more[0] == "skip-one-sync-in":
        skip_one_sync_in, more = int(more[1]), more[2:]
    program = more[0]
    for needed in [program, *(["strace"] if skip_one_sync_in else [])]:
        if not shutil.which(needed):
            print(f"SKIPPED: {needed} is not installed")
            sys.exit(77)
    data = pathlib.Path(store).parent
    data.mkdir(exist_ok=True)
    with open(notes_path, "w", encoding="ascii", buffering=1) as notes:
        plugin = HostLocal(program, pathlib.Path(notes_path).parent / "client", skip_one_sync_in)
        client = Client(data, disk_log, notes, plugin)
        client.make_crowd()
        done = 0
        while done < int(calls):
            number = AT_ONCE if client.random.random() < 0.1 else 1
            client.step(number)
            done += number


if __name__ == "__main__":
    main()
