"""Cluster CIDRs in two forms are refused; files that `--out` and `--report` may replace. Neither root nor network.

usage: node_range_guard.py BIN_DIR
"""

import os
import stat
import sys

from lib import World, expect, expect_equal, main, run


class Croft:
    def __init__(self, world):
        self.world, self.store = world, world.store()

    def text(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of croft {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def two_forms(croft):
    text = croft.text("node", "range", "config", "--cluster-cidr=10.30.0.0/16,::ffff:10.30.0.0/112",
                      "--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=120", code=2)
    expect("IPv4-mapped" in text, text)
    text = croft.text("pool", "create", "mapped", "--cidr", "::ffff:10.40.0.0/112", "--block-size", "122", code=2)
    expect("IPv4-mapped" in text, text)


def files_written(croft):
    directory = croft.world.directory
    fifo, device, link, target = (directory / name for name in ("fifo", "device", "link", "target"))
    os.mkfifo(fifo)
    target.write_text("kept")
    link.symlink_to(target)
    places = [fifo, link, directory]
    if os.geteuid() == 0:
        try:
            os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 7))  # /dev/full
            places.append(device)
        except PermissionError:
            pass
    before = {place: (place.lstat().st_mode, place.lstat().st_ino) for place in places}
    for command in (("node", "range", "subnet-env", "node-0", "--out"), ("check", "--report")):
        for place in places:
            done = run(croft.world.bin / "croft", "--store", croft.store, *command, place, check=False, timeout=20)
            expect_equal(done.returncode, 2, f"exit code of {command} {place}: {done.stdout}{done.stderr}")
            expect(str(place) in done.stderr and "regular file" in done.stderr, done.stderr)
        new = directory / f"new-{command[0]}"
        for content in (None, "older"):
            if content:
                new.write_text(content)
            run(croft.world.bin / "croft", "--store", croft.store, *command, new, check=False)
            expect(new.is_file() and new.read_text() not in ("", "older"), f"{command}: a regular file, or a new name")
    expect_equal({place: (place.lstat().st_mode, place.lstat().st_ino) for place in places}, before, "what was there")
    expect_equal(target.read_text(), "kept", "where a link led")


def test():
    with World("rangeguard", sys.argv[1]) as world:
        croft = Croft(world)
        croft.text("node", "range", "config", "--cluster-cidr=10.244.0.0/21")
        croft.text("node", "range", "assign", "node-0")
        two_forms(croft)
        files_written(croft)


if __name__ == "__main__":
    main(test)
