#!/usr/bin/env python3
"""Power loss without a disk: the system calls of one host-local call, replayed in a model of a disk that forgets.

The model keeps what only fsync makes true of a file system: the content of a file is on the disk when the file was
synced, a name when its directory was. Behind every system call the power is cut, and of the changes that were not
synced (contents and names, each on its own) every combination is what the disk may hold, from none to all. In each:
what was acknowledged before is whole, nothing under an address is empty, torn or of a stranger; and from the answer on
the ADD has its names and contents, the DEL none. File systems promise more than this model; what passes here needs none
of that.

To show that the model sees faults, Debian's binary must fail it, and Croft's with its syncs left out. A sync that the
model does not need is named: each costs a pod time.

usage: host_local_unsynced.py BIN_DIR
"""

import contextlib
import ipaddress
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from lib import PLUGINS, Failure, World, expect, main, own_environment, require_programs, say, skip

SETS = {1: [[{"subnet": "10.1.0.0/24"}]], 2: [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]]}
NETWORK = "net"
COMBINATIONS_MAX = 1 << 13

# Calls on files that change neither contents nor names.
HARMLESS = set("""access chdir chmod close close_range connect dup dup2 dup3 epoll_create1 epoll_ctl epoll_pwait
    epoll_wait eventfd2 execve faccessat faccessat2 fadvise64 fchdir fchmod fchmodat fchown fchownat fcntl fgetxattr
    flock fstat fstatfs getcwd getdents64 getxattr ioctl lgetxattr lseek lstat newfstatat pipe2 poll ppoll pread64
    pselect6 read readlink readlinkat readv select socket stat statfs statx utimensat""".split())


class Node:
    """A file or directory: what is true now, and what is true after a power cut."""

    def __init__(self, is_directory, label):
        self.is_directory, self.label = is_directory, label
        self.now = {} if is_directory else b""
        self.durable = {} if is_directory else b""

    def sync(self):
        self.durable = dict(self.now) if self.is_directory else self.now


class ForgetfulDisk:
    """The tree below one directory of the host, which itself is durable."""

    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.root = self.read(self.top)
        self.open = {}  # (process, descriptor) -> [node, position]
        self.changed = True

    def read(self, path):
        node = Node(path.is_dir(), str(path))
        if node.is_directory:
            node.now = {entry.name: self.read(entry) for entry in path.iterdir()}
        else:
            node.now = path.read_bytes()
        node.sync()
        return node

    def inside(self, path):
        with contextlib.suppress(ValueError):
            return pathlib.Path(os.path.normpath(path)).relative_to(self.top).parts
        return None

    def find(self, parts):
        node = self.root
        for part in parts:
            node = node.now.get(part) if node is not None and node.is_directory else None
        return node

    def place(self, path):
        """The directory and the name of a path, or None when it is elsewhere."""
        parts = self.inside(path)
        return (self.find(parts[:-1]), parts[-1]) if parts else None

    def nodes(self):
        """Everything that is reachable now, was reachable on the disk, or is still open."""
        seen, todo = [], [self.root, *(node for node, _ in self.open.values())]
        while todo:
            node = todo.pop()
            if any(node is other for other in seen):
                continue
            seen.append(node)
            if node.is_directory:
                todo += [*node.now.values(), *node.durable.values()]
        return seen

    def after_power_cuts(self):
        """Every tree that the disk may hold, as {path: content}."""
        choices = []  # (node, name or None)
        for node in self.nodes():
            if node.is_directory:
                choices += [(node, name) for name in {*node.now, *node.durable}
                            if node.now.get(name) is not node.durable.get(name)]
            elif node.now != node.durable:
                choices.append((node, None))
        expect(1 << len(choices) <= COMBINATIONS_MAX, f"{len(choices)} changes not synced at once: too many to try all")
        for kept in itertools.product((False, True), repeat=len(choices)):
            reached = {(id(node), name) for (node, name), keep in zip(choices, kept) if keep}
            tree = {}
            self.walk(self.root, (), reached, tree)
            lost = [f"{'content of ' if name is None else 'name '}{pathlib.Path(node.label, name or '').name}"
                    for (node, name), keep in zip(choices, kept) if not keep]
            yield tree, lost

    def walk(self, node, path, reached, tree):
        if not node.is_directory:
            tree[path] = node.now if (id(node), None) in reached else node.durable
            return
        for name in {*node.now, *node.durable}:
            child = (node.now if (id(node), name) in reached else node.durable).get(name)
            if child is not None:
                self.walk(child, (*path, name), reached, tree)

    # --- the calls ------------------------------------------------------------------------------------------------

    def apply(self, call):
        if call.result is None or call.result < 0:
            return
        handler = getattr(self, f"do_{call.name}", None)
        if handler:
            handler(call)
            self.changed = True
        elif call.name not in HARMLESS:
            touched = [path for path in call.paths() if self.inside(path) is not None]
            touched += [fd for fd in call.words[:1] if fd.isdigit() and (call.process, int(fd)) in self.open]
            expect(not touched, f"the model does not know what {call.text} does")

    def do_openat(self, call):
        path, flags = call.path(0), call.words[2]
        self.open.pop((call.process, call.result), None)
        parts = self.inside(path)
        if parts is None:
            return
        if "O_TMPFILE" in flags:  # a file that no power cut can leave before it is linked
            self.open[call.process, call.result] = [Node(False, path), 0]
            return
        node = self.find(parts)
        if node is None:
            folder, name = self.place(path)
            expect("O_CREAT" in flags and folder is not None, f"{call.text}: not in the model")
            node = folder.now[name] = Node(False, path)
        elif "O_TRUNC" in flags:
            node.now = b""
        self.open[call.process, call.result] = [node, len(node.now) if "O_APPEND" in flags else 0]

    def forget_name(self, path):
        """A name that was removed before, without a sync."""
        folder, name = self.place(path)
        del folder.now[name]

    def do_close(self, call):
        self.open.pop((call.process, int(call.words[0])), None)

    def do_write(self, call):
        opened = self.open.get((call.process, int(call.words[0])))
        if opened:
            self.change(opened[0], opened[1], call.bytes(1)[:call.result])
            opened[1] += call.result

    def do_pwrite64(self, call):
        opened = self.open.get((call.process, int(call.words[0])))
        if opened:
            self.change(opened[0], int(call.words[3]), call.bytes(1)[:call.result])

    @staticmethod
    def change(node, at, data):
        node.now = node.now[:at].ljust(at, b"\0") + data + node.now[at + len(data):]

    def do_ftruncate(self, call):
        opened = self.open.get((call.process, int(call.words[0])))
        if opened:
            length = int(call.words[1])
            opened[0].now = opened[0].now[:length].ljust(length, b"\0")

    def do_fsync(self, call):
        opened = self.open.get((call.process, int(call.words[0])))
        if opened:
            opened[0].sync()

    do_fdatasync = do_fsync

    def do_mmap(self, call):
        shared = "MAP_SHARED" in call.words[3] and "PROT_WRITE" in call.words[2]
        expect(not shared or (call.process, int(call.words[4])) not in self.open, f"{call.text}: not in the model")

    def do_mkdirat(self, call):
        self.mkdir(call.path(0))

    def do_mkdir(self, call):
        self.mkdir(call.path(0))

    def mkdir(self, path):
        place = self.place(path)
        if place:
            place[0].now[place[1]] = Node(True, path)

    def do_unlinkat(self, call):
        self.unlink(call.path(0))

    do_unlink = do_rmdir = do_unlinkat

    def unlink(self, path):
        if self.place(path):
            self.forget_name(path)

    def do_renameat2(self, call):
        source, target = self.place(call.path(0)), self.place(call.path(1))
        if source or target:
            expect(source and target and "EXCHANGE" not in call.text, f"{call.text}: not in the model")
            target[0].now[target[1]] = source[0].now.pop(source[1])

    do_rename = do_renameat = do_renameat2

    def do_linkat(self, call):
        by_descriptor = re.fullmatch(r"/proc/self/fd/(\d+)", call.path(0))
        target = self.place(call.path(1))
        if by_descriptor and target:
            target[0].now[target[1]] = self.open[call.process, int(by_descriptor[1])][0]
            return
        source = self.place(call.path(0))
        if source or target:
            expect(source and target, f"{call.text}: not in the model")
            target[0].now[target[1]] = source[0].now[source[1]]

    do_link = do_linkat


class Call:
    """One line of strace -f -y -xx."""

    LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?|0x[0-9a-f]+)", re.DOTALL)
    WORD = re.compile(r'"(?:\\x[0-9a-f]{2})*"(?:\.\.\.)?|<(?:\\x[0-9a-f]{2}|[^<>])*>|[^,"<]+|,')

    def __init__(self, line):
        self.text = line.strip()
        match = self.LINE.match(line)
        self.known = match is not None
        if not match:
            return
        self.process, self.name, arguments = match[1], match[2], match[3]
        self.result = None if match[4] == "?" else int(match[4], 0)
        self.words, self.strings, self.places = [""], [], []
        for piece in self.WORD.findall(arguments):
            if piece == ",":
                self.words.append("")
            elif piece.startswith('"'):
                self.strings.append((len(self.words) - 1, self.decode(piece)))
                self.words[-1] += "*"
            elif piece.startswith("<"):
                self.places.append((len(self.words) - 1, self.decode(piece).decode("utf-8", "replace")))
            else:
                self.words[-1] += piece.replace("(deleted)", "").strip()
        self.text = f"{self.name}({', '.join(self.words)}) of {[s for _, s in self.strings][:2]}"

    @staticmethod
    def decode(piece):
        if piece.endswith("..."):
            raise Failure("strace cut a string")
        body = piece[1:-1]
        return bytes.fromhex(body.replace("\\x", "")) if "\\x" in body else body.encode("utf-8")

    def paths(self):
        """All path arguments, absolute: relative ones with the directory that strace names before them."""
        found = []
        for index, text in self.strings:
            with contextlib.suppress(UnicodeDecodeError):
                base = next((place for i, place in self.places if i == index - 1), os.getcwd())
                found.append(os.path.join(base, text.decode("utf-8")))
        return found

    def path(self, number):
        return self.paths()[number]

    def bytes(self, index):
        return next(data for i, data in self.strings if i == index)


def read_trace(path):
    """The calls in the order in which they ended; a call that another thread interrupted is put together again."""
    begun = {}
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        process = line.split(maxsplit=1)[0]
        if line.endswith("<unfinished ...>"):
            begun[process] = line[:-len("<unfinished ...>")].rstrip()
            continue
        resumed = re.match(r"^\d+ +<\.\.\. \w+ resumed>(.*)", line)
        if resumed:
            line = begun.pop(process, "") + resumed[1].replace(")", ")", 1)
        call = Call(line)
        if call.known:
            # Threads share their descriptors; the plugins make no child processes.
            call.process = "all"
            yield call


class Scenario:
    """A directory, a call of it, and what was acknowledged before."""

    def __init__(self, world, program, sets, left_out=lambda number: False):
        """`left_out`: whether the sync of this number, from 1, does nothing: the planted fault."""
        self.world, self.sets, self.left_out = world, sets, left_out
        self.syncs = 0  # of the traced call
        self.top = world.directory / "disk"
        shutil.rmtree(self.top, ignore_errors=True)
        self.top.mkdir()
        self.data = self.top / "networks"
        folder = world.directory / "cni"
        folder.mkdir(exist_ok=True)
        self.plugin = folder / "host-local"
        self.plugin.unlink(missing_ok=True)
        self.plugin.symlink_to(program)
        self.trace = world.directory / "trace"
        self.held = {}  # (address) -> container, before the traced call

    def call(self, command, container, words=()):
        config = {"cniVersion": "1.0.0", "name": NETWORK,
                  "ipam": {"type": "host-local", "dataDir": str(self.data), "ranges": SETS[self.sets]}}
        env = {**own_environment(),
               "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": "/var/run/netns/none",
               "CNI_IFNAME": "eth0", "CNI_PATH": str(self.plugin.parent)}
        done = subprocess.run([*words, str(self.plugin)], input=json.dumps(config), env=env, capture_output=True,
                              text=True, timeout=60, check=False)
        expect(done.returncode == 0, f"{command} of {container}: exit {done.returncode}: {done.stdout} {done.stderr}")
        return [ip["address"].split("/")[0] for ip in json.loads(done.stdout)["ips"]] if done.stdout.strip() else []

    def add(self, container):
        for address in self.call("ADD", container):
            self.held[address] = container

    def traced(self, command, container, removed_before=False):
        """Replays a call; problems as texts, one for each place where the power was cut. `removed_before`: a DEL that
        was killed has removed the container's files already, and synced nothing."""
        mine = [address for address, holder in self.held.items() if holder == container]
        disk = ForgetfulDisk(self.top)
        for address in mine if removed_before else []:
            path = self.data / NETWORK / address
            path.unlink()
            disk.forget_name(path)
        words = ["strace", "-f", "-y", "-xx", "-s", "65536", "-o", str(self.trace),
                 "-e", "trace=%file,%desc,exit_group"]
        added = self.call(command, container, words)
        problems, problem, answered, calls = [], None, False, 0
        for call in read_trace(self.trace):
            calls += 1
            is_sync = call.name in ("fsync", "fdatasync")
            self.syncs += is_sync
            if not (is_sync and self.left_out(self.syncs)):
                disk.apply(call)
            # An ADD is acknowledged by its answer, a DEL by its exit.
            before, answered = answered, (answered or call.name == "exit_group"
                                          or (call.name == "write" and call.words[0] == "1"))
            if disk.changed or answered != before:
                disk.changed = False
                problem = self.problem(disk, command, container, mine, added, answered)
            if problem:
                problems.append(f"behind {call.text}: {problem}")
        expect(answered, f"no answer among the {calls} calls of {command}")
        return problems

    def problem(self, disk, command, container, mine, added, answered):
        for tree, lost in disk.after_power_cuts():
            found = {path[2]: data for path, data in tree.items()
                     if len(path) == 3 and path[:2] == ("networks", NETWORK) and is_address(path[2])}
            why = self.problem_of(found, command, container, mine, added, answered)
            if why:
                return f"{why}, when these do not reach the disk: {', '.join(lost) or 'none'}"
        return None

    def problem_of(self, found, command, container, mine, added, answered):
        for address, holder in self.held.items():
            if address not in mine and found.get(address) != content(holder):
                return f"{address} of {holder} holds {found.get(address)!r}"
        for address, data in found.items():
            if address not in self.held and data != content(container):
                return f"{address} holds {data!r}"
            if address in mine and data != content(container):
                return f"{address}, which is given back, holds {data!r}"
        if answered and command == "ADD":
            missing = [address for address in added if address not in found]
            if missing:
                return f"acknowledged and not there: {', '.join(missing)}"
        if answered and command == "DEL":
            left = [address for address in mine if address in found]
            if left:
                return f"given back and still there: {', '.join(left)}"
        return None


def content(container):
    return f"{container}\r\neth0".encode("ascii")


def is_address(name):
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return False


CALLS = ["the first ADD of a node", "ADD", "DEL", "DEL repeated after a kill"]


def tried(world, program, what, sets, **options):
    """The scenario of one call, replayed, and its faults."""
    scenario = Scenario(world, program, sets, **options)
    if what == "the first ADD of a node":
        return scenario, scenario.traced("ADD", "first")
    for name in ("a", "b", "c"):
        scenario.add(name)
    if what == "ADD":
        return scenario, scenario.traced("ADD", "new")
    return scenario, scenario.traced("DEL", "b", removed_before=what != "DEL")


def must_be_found(who, world, program, **options):
    """A program with faults: that the model finds them shows that it sees."""
    counts = []
    for sets, what in itertools.product((1, 2), CALLS):
        _, problems = tried(world, program, what, sets, **options)
        expect(problems, f"the model finds no fault in {who}: {what}, {sets} range sets")
        counts.append(len(problems))
    say(f"{who}: faults at {counts} places, as it must; the last: {problems[-1]}")


def test():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    require_programs("strace")
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        skip(f"strace may not trace here: {probe.stderr.strip()}")
    with World("unsynced", sys.argv[1]) as world:
        croft, debian = world.bin / "host-local", PLUGINS / "host-local"
        failed = []
        for sets, what in itertools.product((1, 2), CALLS):
            scenario, problems = tried(world, croft, what, sets)
            say(f"{what}, {sets} range set{'s' if sets > 1 else ''}, {scenario.syncs} syncs: "
                + (f"{len(problems)} faults, the first: {problems[0]}" if problems else "whole, wherever it is cut"))
            failed += problems
            for number in range(1, scenario.syncs + 1):
                _, problems = tried(world, croft, what, sets, left_out=lambda n, number=number: n == number)
                if not problems:
                    say(f"  without sync {number} it is whole too: this sync is more than the model asks for")
        must_be_found("Croft's without its syncs", world, croft, left_out=lambda number: True)
        if debian.exists():
            must_be_found("Debian's binary", world, debian)
        else:
            say(f"Debian's binary: SKIPPED: {debian} is not installed")
        expect(not failed, f"{len(failed)} places where a power cut breaks a promise; the first: {failed[:1]}")


if __name__ == "__main__":
    main(test)
