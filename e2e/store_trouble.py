"""Stores that cannot serve: each gives one clear CNI error and exit code 1 within two seconds, and loses nothing."""

import json
import os
import subprocess
import time

from lib import call_environment, expect, expect_equal, fill_disk, main, run, say

SECONDS = 2  # in which a refusal comes
POOLS = [{"name": "a", "cidr": "10.79.0.0/16", "blockSize": 26, "cooldownSeconds": 0}]


class Rig:
    def __init__(self, world):
        self.world = world

    def call(self, command, store, container="c1", more=None, stdin=None, pools=True, **env):
        ipam = {"type": "croft-ipam", "store": store, "log_file_path": str(self.world.directory / "ipam.log")}
        if pools:
            ipam["pools"] = POOLS
        config = {"cniVersion": "1.1.0", "name": "net", "ipam": ipam, **(more or {})}
        done = subprocess.run([self.world.bin / "croft-ipam"], input=stdin if stdin is not None else json.dumps(config),
                              env=call_environment(self.world, command, container, **env), capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    def refused(self, what, codes, text, *arguments, **options):
        took = []
        while not took or took[-1] > SECONDS and len(took) < 4:  # on a busy machine again
            began = time.monotonic()
            code, answer = self.call(*arguments, **options)
            took.append(time.monotonic() - began)
        expect(took[-1] <= SECONDS, f"{what} took {took} s")
        expect_equal(code, 1, f"{what}: exit code ({answer})")
        expect(answer["code"] in codes, f"{what}: CNI code {answer['code']} of {answer}")
        shown = answer["msg"] + answer.get("details", "")
        expect(text in shown, f"{what}: expected {text!r} in {shown!r}")
        say(f"{what}: {answer['code']} {answer['msg']}")


def odd_files(rig):
    d = rig.world.directory
    os.mkfifo(d / "fifo")
    (d / "folder").mkdir()
    (d / "garbage").write_bytes(b"this is not a database, it is a sentence" * 200)
    (d / "zero").write_bytes(b"")
    (d / "loop").symlink_to(d / "loop")
    for name in ("fifo", "folder", "garbage", "zero", "loop"):
        for command in ("ADD", "DEL", "CHECK"):
            rig.refused(f"{command} on {name}", (7, 11, 101), name, command, f"sqlite:{d}/{name}")
        rig.refused(f"STATUS on {name}", (50,), name, "STATUS", f"sqlite:{d}/{name}")
    for url in ("nonsense", "sqlite:", "sqlite:relative.db", "memory:", "redis:http://127.0.0.1:6379"):
        rig.refused(f"ADD on {url}", (7,), "sqlite:/absolute/path.db", "ADD", url)


def absent(rig):
    store = f"sqlite:{rig.world.directory}/nowhere/croft.db"
    expect_equal(rig.call("DEL", store), (0, None), "DEL on an absent store")
    expect_equal(rig.call("GC", store, more={"cni.dev/valid-attachments": []}), (0, None), "GC on an absent store")
    rig.refused("CHECK on an absent store", (999,), "nowhere", "CHECK", store)
    expect(not (rig.world.directory / "nowhere").exists(), "DEL, GC and CHECK make nothing")
    rig.world.cli(store, "ip", "list", codes=(4,))


def full_and_read_only(rig):
    if os.geteuid() != 0:
        say("SKIPPED part: full and read-only file systems need root to mount")
        return
    mount = rig.world.directory / "small"
    mount.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", mount)
    rig.world.stack.callback(run, "umount", "-l", mount, check=False)
    store = f"sqlite:{mount}/store/croft.db"
    expect_equal(rig.call("ADD", store, "before")[0], 0, "set-up")
    fill_disk(mount)
    # What was reserved may serve some ADDs; then the refusal is clear and retryable.
    held = 1
    for i in range(5000):
        code, answer = rig.call("ADD", store, f"{i:x<200}")  # long names fill the room sooner
        if code != 0:
            break
        held += 1
    rig.refused(f"full disk, after {held} ADDs", (11,), "", "ADD", store, f"{i:x<200}")
    expect_equal(len(rig.world.held(store)), held, "nothing half-written on a full disk")
    expect_equal(rig.call("DEL", store, "before"), (0, None), "DEL on a full disk")
    expect_equal(len(rig.world.held(store)), held - 1, "held on a full disk")
    (mount / "filler").unlink()
    expect_equal(rig.call("ADD", store, "after")[0], 0, "ADD when there is space again")
    run("mount", "-o", "remount,ro", mount)
    rig.refused("ADD read-only", (11,), "Read-only file system", "ADD", store, "readonly")
    rig.refused("STATUS read-only", (50,), "Read-only file system", "STATUS", store)
    expect_equal(rig.call("DEL", store, "nobody"), (0, None), "DEL of the unknown, read-only")
    rig.refused("DEL read-only", (11,), "Read-only file system", "DEL", store, "after")
    expect(len(rig.world.held(store)) == held, "reading works read-only")
    run("mount", "-o", "remount,rw", mount)
    expect_equal(rig.call("DEL", store, "after"), (0, None), "DEL when it is writable again")


def test(world):
    rig = Rig(world)
    for part in (odd_files, absent, full_and_read_only):
        part(rig)


main(test, 280)
