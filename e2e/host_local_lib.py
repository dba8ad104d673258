"""What the tests of the personality `host-local` share: calls of Croft's and of the reference's binary on one directory,
the bytes they must answer, and what a directory holds."""

import dataclasses
import fcntl
import json
import os
import pathlib
import subprocess

from lib import PLUGINS, Failure, skip

NAMES = ("reference", "croft")
REFERENCE = PLUGINS / "host-local"  # Debian's, of containernetworking-plugins 1.1.1
NETWORK = "mynet"
HINTS = ".croft"  # Croft's index lies there, beside the networks; it is only a hint


def go_json(value):
    """The text Go's encoder gives for `value` with an indentation of four."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def error_text(code, msg, details=None):
    return go_json({"code": code, "msg": msg, **({"details": details} if details else {})})


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

    def __init__(self, world, need_croft=True, need_reference=True):
        if need_reference and not REFERENCE.exists():
            skip(f"{REFERENCE} is not installed (scripts/setup installs it)")
        folder = world.directory / "as-host-local"
        folder.mkdir()
        (folder / "host-local").symlink_to(world.bin / "croft-ipam")
        self.path = {"reference": REFERENCE, "croft": folder / "host-local"}
        if need_croft:
            answer = self.call("croft", "VERSION", "")
            if answer.code != 0 or b"supportedVersions" not in answer.out:
                raise Failure(f"croft-ipam does not answer as host-local: {answer}")

    @staticmethod
    def environment(command, container="dummy", ifname="eth0", netns="/some/where", args="", override=True, **more):
        """The environment of a call; an empty value leaves the variable out, `more` is added as it is."""
        given = {"CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_IFNAME": ifname, "CNI_NETNS": netns,
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
