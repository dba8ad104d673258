"""Kills croftd install at every system call that changes something: the first installation, an upgrade and --uninstall. After each
what the network configuration names is there and whole; the next installation makes of it what one that nobody killed makes, and
--uninstall what was there before Croft: content, mode and owner.
"""

import hashlib
import json
import os
import shutil
import subprocess

from lib import PLUGINS, expect, expect_equal, main, own_environment, require_strace, run, say, system_calls

CHANGES = "openat,write,fsync,fchmod,fchown,rename,renameat,renameat2,link,linkat,unlink,unlinkat,flock"
THEIRS = {"host-local": b"#!/bin/sh\ntheirs\n"}
OLD_NETWORK = b'{"name": "theirs", "plugins": []}'


class Host:
    def __init__(self, world):
        self.world, self.root = world, world.directory / "host"
        self.bin, self.conf, self.trace = self.root / "bin", self.root / "net.d", world.directory / "trace"
        self.sources = {}
        for name in ("v1", "v2"):
            self.sources[name] = world.directory / name
            self.sources[name].mkdir()
            # Small, and an ELF file for all that: an installation writes it whole.
            for plugin in ("croft-ipam", "croft-ipam-cluster", "host-local"):
                (self.sources[name] / plugin).write_bytes(b"\x7fELF CROFT_LOG_DIRECTORY " + f"{plugin} {name}".encode())

    def begin(self):
        shutil.rmtree(self.root, ignore_errors=True)
        self.bin.mkdir(parents=True)
        self.conf.mkdir()
        for plugin in ("ptp", "portmap"):
            shutil.copy(PLUGINS / plugin, self.bin / plugin)
        for name, content in THEIRS.items():
            (self.bin / name).write_bytes(content)
            (self.bin / name).chmod(0o750)
            os.chown(self.bin / name, 1234, 2345)
        (self.conf / "10-croft.conflist").write_bytes(OLD_NETWORK)
        (self.conf / "10-croft.conflist").chmod(0o640)

    def files(self):
        all_files = {}
        for directory in (self.bin, self.conf):
            for path in directory.iterdir():
                status = path.lstat()
                content = path.read_bytes()
                shown = content if len(content) < 100 else hashlib.sha256(content).hexdigest()
                all_files[f"{directory.name}/{path.name}"] = (shown, oct(status.st_mode), status.st_uid, status.st_gid)
        return all_files

    def call(self, *options, prefix=()):
        return subprocess.run([*prefix, self.world.bin / "croftd", "install", "--cni-bin-dir", self.bin, "--cni-conf-dir", self.conf,
                               "--node", "oak", "--store", f"sqlite:{self.world.directory}/croft.db", *options],
                              env=own_environment(self.world.directory), capture_output=True, text=True, timeout=60, check=False)

    def install(self, version, prefix=()):
        return self.call("--main-plugin", "ptp", "--also-as", "host-local", "--source", str(self.sources[version]), prefix=prefix)

    def uninstall(self, prefix=()):
        return self.call("--uninstall", prefix=prefix)

    def changes(self, do):
        """Which system calls of each name change something in a run of it."""
        answer = do(["strace", "-f", "-y", "-o", str(self.trace), "-e", f"trace={CHANGES}"])
        expect_equal(answer.returncode, 0, answer.stderr)
        return [(name, nth) for name, nth, line in system_calls(self.trace)
                if str(self.root) in line and (name != "openat" or "O_CREAT" in line)]


def done(answer, what):
    expect_equal((answer.returncode, answer.stderr), (0, ""), f"{what}: {answer.stdout}")


def works(host, before, what):
    """What the configuration names is there, one version or the other; what is another's is whole."""
    files = host.files()
    network = files.get("net.d/10-croft.conflist")
    expect(network is not None or not before, f"{what}: the node lost its network")
    if network and network[0] != OLD_NETWORK:
        kind = json.loads((host.conf / "10-croft.conflist").read_bytes())["plugins"][0]["ipam"]["type"]
        expect(files[f"bin/{kind}"][0] in [(source / "croft-ipam").read_bytes() for source in host.sources.values()], f"{what}: {kind}")
    expect("bin/croft-ipam" not in files or "bin/croft-ipam-cluster" in files, f"{what}: croft-ipam is there without what it becomes")
    wholes = [*THEIRS.values(), *[(source / "host-local").read_bytes() for source in host.sources.values()]]
    expect(files["bin/host-local"][0] in wholes, f"{what}: host-local is {files['bin/host-local'][0][:40]}")


def at_every_call(host, name, begin, do, keeps_network):
    begin()
    calls = host.changes(do)
    expect(len(calls) > 8, f"{name}: {calls}")
    for call, number in calls:
        for then in ("install", "uninstall"):
            begin()
            what = f"{name} killed at {call} {number}, then {then}"
            answer = do(["strace", "-f", "-o", str(host.trace), "-e", f"inject={call}:signal=SIGKILL:when={number}"])
            expect(answer.returncode in (-9, 137), f"{what}: {answer.returncode} {answer.stdout} {answer.stderr}")
            works(host, keeps_network, what)
            if then == "install":
                done(host.install("v2"), what)
                files = host.files()
                for plugin in ("croft-ipam", "croft-ipam-cluster", "host-local"):
                    expect_equal(files[f"bin/{plugin}"][0], (host.sources["v2"] / plugin).read_bytes(), what)
                expect_equal(files["bin/host-local.before-croft"], host.before["bin/host-local"], what)
                expect(not [path for path in files if path.endswith((".tmp", ".lock"))], f"{what}: {sorted(files)}")
            done(host.uninstall(), what)
            files = host.files()
            expect_equal(files, host.before, what)
    say(f"{name}: killed at {len(calls)} calls")


def test(world):
    require_strace()
    host = Host(world)
    run(world.bin / "croft", "--store", f"sqlite:{world.directory}/croft.db", "pool", "create", "a", "--cidr", "10.9.0.0/24")
    host.begin()
    host.before = host.files()

    def with_first():
        host.begin()
        done(host.install("v1"), "before")

    at_every_call(host, "the first installation", host.begin, lambda prefix: host.install("v1", prefix), True)
    at_every_call(host, "an upgrade", with_first, lambda prefix: host.install("v2", prefix), True)
    at_every_call(host, "uninstalling", with_first, host.uninstall, False)


main(test)
