#!/usr/bin/env python3
"""Cuts the power of a logged disk at random moments and looks what host-local's directory holds after it.

host_local_check.py DISK_LOG NOTES DISK_BYTES WORK IMAGES SEED PLUGIN CUT_IMAGE [OTHER_PLUGIN]

Each image is mounted under another boot id: every ADD that was acknowledged and not given back has its files, whole; every DEL that
was acknowledged left none; no file is empty, torn or of somebody unknown; both plugins then give addresses that nobody holds, and
take back what was held. Exit code: 0 all well, 1 something acknowledged is lost, 2 the rig itself failed, 3 other faults only.
"""

import contextlib
import ipaddress
import json
import os
import pathlib
import random
import subprocess
import sys
import uuid

sys.dont_write_bytecode = True
from host_local_calls import CROWD, NETWORKS, HostLocal, content

BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Expected:
    """What may and must be on the disk at a cut: `held` and `gone` are promised, `open` calls were under way."""

    def __init__(self, notes, next_event):
        self.held, self.open = {}, {}
        for note in notes:
            if note["log"] >= next_event:
                break
            key = (note.get("network"), note.get("container"))
            if note["what"] == "begin":
                self.open[key] = self.held.pop(key, None)  # None: an ADD, that may take any address
            elif note["what"] == "end":
                self.open.pop(key)
                if note["command"] == "ADD":
                    self.held[key] = note["addresses"]

    def lost(self, found):
        """Whether something is gone, or another's, that was acknowledged."""
        return any(found.get((network, address)) != content(container)
                   for (network, container), addresses in self.held.items() for address in addresses)

    def problems(self, found):
        """`found`: (network, address) -> content."""
        for (network, container), addresses in self.held.items():
            for address in addresses:
                got = found.get((network, address))
                if got is None:
                    yield f"{address} is lost, {container[-4:]} holds it"
                elif got != content(container):
                    yield f"{address} of {container[-4:]} holds {got!r}"
        for (network, address), got in found.items():
            if any(address in addresses for (n, _), addresses in self.held.items() if n == network):
                continue
            owner = next((key for key in self.open if key[0] == network and got == content(key[1])), None)
            if owner is None:
                yield f"{address} holds {got[-10:]!r}, whom nobody knows or who was given back"
            elif self.open[owner] is not None and address not in self.open[owner]:
                yield f"{address} holds {got[-10:]!r}, who never had it"


def reservations(data):
    found = {}
    for network in NETWORKS:
        folder = data / network
        for entry in folder.iterdir() if folder.is_dir() else []:
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(entry.name)
                found[network, entry.name] = entry.read_bytes()
    return found


@contextlib.contextmanager
def mounted(image, point):
    subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(point)], check=True)


class Checker:
    def __init__(self, log, notes, disk_bytes, work, plugin, cut_image, other):
        self.log, self.disk_bytes, self.cut_image = log, disk_bytes, cut_image
        self.work = pathlib.Path(work)
        self.notes = [json.loads(line) for line in pathlib.Path(notes).read_text(encoding="ascii").splitlines()]
        self.plugins = [HostLocal(plugin, self.work / "check")]
        if other:
            self.plugins.append(HostLocal(other, self.work / "check-other"))
        self.lossy = self.with_losses = 0

    def cut(self, seed):
        done = subprocess.run([self.cut_image, self.log, self.disk_bytes, str(self.notes[0]["log"]), str(seed),
                               str(self.work / "image")], check=True, capture_output=True, text=True)
        next_event, event, kept, lost = (int(word) for word in done.stdout.split())
        self.lossy += lost > 0
        return next_event, f"cut behind event {event}, {kept} later sectors on disk and {lost} lost"

    def problems(self, expected, data):
        found = reservations(data)
        self.with_losses += expected.lost(found)
        yield from expected.problems(found)
        held = set(found)
        for plugin in self.plugins:
            for network in NETWORKS:
                container = f"after-{plugin.path.parent.name}"
                try:
                    for address in plugin.call("ADD", data, network, container):
                        if (network, address) in held:
                            yield f"an ADD after the cut gives {address}, which is held"
                        held.add((network, address))
                        if (data / network / address).read_bytes() != content(container):
                            yield f"an ADD after the cut left {address} with another content"
                except (RuntimeError, OSError) as error:
                    yield f"an ADD after the cut: {error}"
        leaving = [key for key in expected.held if key[1] not in CROWD.values()]
        for i, (network, container) in enumerate(leaving):
            self.plugins[i % len(self.plugins)].call("DEL", data, network, container)
        left = set(reservations(data).values()) & {content(container) for _, container in leaving}
        if left:
            yield f"a DEL after the cut left files of {len(left)} containers"

    def run(self, images, seed):
        chance = random.Random(seed)
        failed = 0
        for n in range(images):
            next_event, where = self.cut(chance.getrandbits(63))
            (self.work / "boot_id").write_text(f"{uuid.UUID(int=chance.getrandbits(128), version=4)}\n",
                                               encoding="ascii")
            with mounted(self.work / "image", self.work / "mount"):
                expected = Expected(self.notes, next_event)
                problems = list(self.problems(expected, self.work / "mount" / "store"))
            if problems:
                failed += 1
                print(f"image {n}, {where}, {len(expected.held) - len(CROWD)} containers attached: {len(problems)} faults, the "
                      f"first: {problems[0]}")
        print(f"power cut of {self.plugins[0].program}: seed {seed}, {images} images, {self.lossy} with sectors "
              f"lost; addresses that were acknowledged are lost in {self.with_losses}; {failed} FAILED")
        if self.with_losses:
            return 1
        return 3 if failed else 0


def in_a_machine_started_anew():
    """Runs the rest in a mount namespace in which the kernel's boot id is a file of ours."""
    if os.environ.get("CROFT_POWER_CUT_BOOTED") != "yes":
        os.environ["CROFT_POWER_CUT_BOOTED"] = "yes"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    boot_id = pathlib.Path(sys.argv[4]) / "boot_id"
    boot_id.write_text("none yet\n", encoding="ascii")
    subprocess.run(["mount", "--bind", str(boot_id), BOOT_ID], check=True)


def main():
    in_a_machine_started_anew()
    log, notes, disk_bytes, work, images, seed, plugin, cut_image = sys.argv[1:9]
    other = sys.argv[9] if len(sys.argv) > 9 and pathlib.Path(sys.argv[9]).exists() else None
    try:
        code = Checker(log, notes, disk_bytes, work, plugin, cut_image, other).run(int(images), int(seed))
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the rig failed: {error}")
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
