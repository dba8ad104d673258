"""What the tests of the personality `host-local` share: calls of Croft's and of the reference's binary on one directory,
the bytes they must answer, and what a directory holds."""

import dataclasses
import fcntl
import ipaddress
import json
import os
import pathlib
import shutil
import subprocess

from lib import PLUGINS, own_environment, skip

NAMES = ("reference", "croft")
REFERENCE = PLUGINS / "host-local"  # Debian's, of containernetworking-plugins 1.1.1
NETWORK = "mynet"
HINTS = ".croft"  # Croft's index lies there, beside the networks; it is only a hint


def holder(container, ifname="eth0"):
    """The content of a reservation."""
    return f"{container}\r\n{ifname}"


def range_of(text):
    """`10.1.2.0/24 s=10.1.2.9 e=10.1.2.20 g=10.1.2.30` as a range object."""
    names = {"s": "rangeStart", "e": "rangeEnd", "g": "gateway"}
    subnet, *more = text.split()
    return {"subnet": subnet, **{names[m[0]]: m[2:] for m in more}}


def ranges_of(sets):
    return [[range_of(r) for r in one] for one in sets]


@dataclasses.dataclass
class Answer:
    code: int
    out: bytes
    err: str

    def text(self):
        return self.out.decode("utf-8", "replace")

    def addresses(self):
        """The addresses of a result of version 0.3.0 and later, in order."""
        return [ip["address"].split("/")[0] for ip in json.loads(self.out)["ips"]]

    def message(self):
        return json.loads(self.out)["msg"]


class Binaries:
    """Both programs, each by a file called host-local."""

    def __init__(self, world):
        if not REFERENCE.exists():
            skip(f"{REFERENCE} is not installed (scripts/setup installs it)")
        folder = world.directory / "as-host-local"
        folder.mkdir()
        shutil.copy2(world.bin / "host-local", folder / "host-local")  # a build meanwhile does not disturb
        self.path = {"reference": REFERENCE, "croft": folder / "host-local"}

    @staticmethod
    def environment(command, container="dummy", ifname="eth0", netns="/some/where", args="", override=True, **more):
        """The environment of a call; an empty value leaves the variable out, `more` is added as it is."""
        given = {**own_environment(),
                 "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_IFNAME": ifname, "CNI_NETNS": netns,
                 "CNI_ARGS": args, "CNI_PATH": "/some/path", "CNI_NETNS_OVERRIDE": "1" if override else "", **more}
        return {name: value for name, value in given.items() if value}

    def start(self, who, command, *, before=(), stdin=subprocess.PIPE, **environment):
        return subprocess.Popen([*before, str(self.path[who])], env=self.environment(command, **environment),
                                stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def call(self, who, command, config, *, before=(), timeout=30, **environment):
        """One call; `config` is an object or the bytes of standard input, `before` words in front (strace)."""
        done = subprocess.run([*before, str(self.path[who])], env=self.environment(command, **environment),
                              input=as_bytes(config), capture_output=True, timeout=timeout, check=False)
        return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def as_bytes(config):
    if isinstance(config, bytes):
        return config
    return (config if isinstance(config, str) else json.dumps(config)).encode()


def simple_config(data_dir, sets, version="1.0.0", **more):
    return {"cniVersion": version, "name": NETWORK, **more,
            "ipam": {"type": "host-local", "dataDir": str(data_dir), "ranges": ranges_of(sets)}}


def contents(folder):
    """Every file directly in a network's directory with its content; the lock is left out."""
    found = {}
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return found
    for entry in entries:
        if entry.name != "lock" and entry.is_file():
            try:
                found[entry.name] = pathlib.Path(entry.path).read_bytes().decode()
            except FileNotFoundError:
                pass  # released meanwhile
    return found


def reservations(folder):
    """The reservations of a directory by address."""
    return {name: text for name, text in contents(folder).items() if name[0].isdigit() or ":" in name}


def leftovers(folder):
    """Temporary files of Croft."""
    return sorted(p.name for p in pathlib.Path(folder).glob(".croft*"))


class Locked:
    """Holds the lock that every call takes."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "lock"

    def __enter__(self):
        self.file = os.open(self.path, os.O_RDONLY | os.O_CREAT, 0o750)
        fcntl.flock(self.file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *why):
        os.close(self.file)


# ---- the reference's algorithm, as a model -------------------------------------------------------------------------


class Range:
    """A range of a set as the reference completes it."""

    def __init__(self, text):
        given = range_of(text)
        self.net = ipaddress.ip_network(given["subnet"])
        broadcast = 1 if self.net.version == 4 else 0
        self.first = self.address(given, "rangeStart", self.net[1])
        self.last = self.address(given, "rangeEnd", self.net[-1 - broadcast])
        self.gateway = self.address(given, "gateway", self.net[1])

    @staticmethod
    def address(given, member, default):
        return ipaddress.ip_address(given[member]) if member in given else default

    def __contains__(self, address):
        return address.version == self.net.version and self.first <= address <= self.last


def next_address(ranges, taken, cursor):
    """What a dynamic ADD gets: the first address of the ring behind the cursor that is not `taken`; None when all are.

    ranges: texts for range_of; taken: names of files; cursor: the text of the cursor's file or None."""
    ranges = [Range(r) for r in ranges]
    try:
        last = ipaddress.ip_address(cursor or "")
    except ValueError:
        last = None
    at = next((i for i, r in enumerate(ranges) if last is not None and last in r), None)
    if at is None:
        at, now, start = 0, ranges[0].first, ranges[0].first
        if now != ranges[0].gateway and str(now) not in taken:
            return str(now)
    else:
        now, start = last, None
    while True:
        if now == ranges[at].last:
            at = (at + 1) % len(ranges)
            now = ranges[at].first
        else:
            now += 1
        if start is None:
            start = now
        elif now == start:
            return None
        if now != ranges[at].gateway and str(now) not in taken:
            return str(now)
