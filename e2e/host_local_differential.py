"""Random configurations, directories and calls for the reference's and Croft's `host-local`, each on a directory of its own: after each
call exit codes, standard output and all files are the same. A sequence ends at a known difference: where an ADD fails of an
attachment that holds something (H6), and where a DEL has a broken configuration (H10). H1 and H16 do not occur.

usage: host_local_differential.py BIN_DIR [SECONDS [SEED]]
"""

import ipaddress
import json
import random
import shutil
import time

from host_local_lib import NAMES, NETWORK, Binaries, contents, holder, leftovers, simple_config
from lib import Failure, expect_equal, main, numbers_given, say

CALLS = 8  # of a sequence
CONTAINERS = [f"c{i}" for i in range(6)]
INTERFACES = ["eth0", "eth1"]
VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1"] + ["0.4.0"] * 8  # from 1.0.0 on the bytes are others


class Case:
    """One configuration and the directory it begins with."""

    def __init__(self, chance):
        self.chance = chance
        self.bases = list(range(1, 200))
        chance.shuffle(self.bases)
        families = chance.choice([[4], [4], [6], [4, 6], [6, 4], [4, 4], [4, 6, 4]])
        self.nets = []
        self.sets = [[self.range(family) for _ in range(chance.choice([1, 1, 1, 2, 3]))] for family in families]
        if chance.random() < 0.08:
            self.spoil()
        self.version = chance.choice(VERSIONS)
        self.files = self.state()

    def range(self, family):
        number = self.bases.pop()
        text = f"10.{number}.0.0/{self.chance.randint(24, 30)}" if family == 4 else (
            f"fd00:{number:x}::/{self.chance.randint(120, 126)}")
        net = ipaddress.ip_network(text)
        self.nets.append(net)
        low, high = sorted(self.chance.randrange(net.num_addresses) for _ in range(2))
        what = self.chance.random()
        starts_outside = family == 4 and low == net.num_addresses - 1  # refused by Croft, docs/formats/host-local.md
        if what < 0.15 and not starts_outside:
            text += f" s={net[low]}"
        elif what < 0.3:
            text += f" e={net[high]}"
        elif what < 0.5:
            text += f" s={net[low]} e={net[high]}"
        if self.chance.random() < 0.3:
            text += f" g={self.address()}"
        return text

    def spoil(self):
        """One fault in the configuration."""
        ranges = self.chance.choice(self.sets)
        subnet = ranges[0].split()[0]
        net = ipaddress.ip_network(subnet)
        what = self.chance.randrange(6)
        if what == 0:
            self.chance.choice(self.sets).append(subnet)
        elif what == 1:
            self.sets.append([subnet])
        elif what == 2:
            ranges[0] = f"{net[3]}/{net.prefixlen}"
        elif what == 3:
            ranges[0] = f"{subnet} s={net[-1] + 1}"
        elif what == 4:
            ranges[0] = f"{subnet} s={net[3]} e={net[2]}"
        else:
            ranges[0] = f"{net[0]}/{net.max_prefixlen - self.chance.randrange(2)}"

    def address(self):
        """Mostly of a range."""
        if self.chance.random() < 0.1:
            return self.chance.choice(["10.250.0.7", "fd00:ffff::7"])
        net = self.chance.choice(self.nets)
        return str(net[self.chance.randrange(net.num_addresses)])

    def content(self):
        container, ifname = self.chance.choice(CONTAINERS + ["x"] * 30), self.chance.choice(INTERFACES)
        whole = holder(container, ifname)
        return self.chance.choice([whole] * 12 + [container, container, f"{container}\n{ifname}", whole + "\n",
                                                  f" {whole}\t", container + "\r\n", whole + "\r\nmore", "?"])

    def state(self):
        files = {}
        if self.chance.random() < 0.2:
            return None  # not even a directory
        share = self.chance.choice([0, 0.1, 0.5, 0.9, 0.98])
        for net in self.nets:
            for address in net:
                if self.chance.random() < share:
                    files[str(address)] = self.content()
        for i in range(len(self.sets)):
            if self.chance.random() < 0.6:
                files[f"last_reserved_ip.{i}"] = self.chance.choice([self.address()] * 8 + ["", "?", self.address() + "\n"])
        return files

    def config(self, top, asked):
        more = {"args": {"cni": {"ips": asked}}} if asked else {}
        return json.dumps(simple_config(top, self.sets, self.version, **more))

    def step(self):
        command = self.chance.choice(["ADD"] * 5 + ["DEL"] * 3 + ["CHECK"] * 2)
        asked = []
        if command == "ADD" and self.chance.random() < 0.3:
            asked = [self.address() for _ in range(self.chance.choice([1, 1, 2]))]
        return command, self.chance.choice(CONTAINERS), self.chance.choice(INTERFACES), asked


def holds(files, container, ifname):
    return any(text.strip() in (holder(container, ifname), container) for text in files.values())


class Pair:
    """The two programs, each with its directory; both have the same path in their configuration by a symbolic link."""

    def __init__(self, world, binaries):
        self.binaries = binaries
        self.top = {who: world.directory / who for who in NAMES}
        self.link = world.directory / "d"
        self.kinds = {}

    def prepare(self, files):
        for top in self.top.values():
            shutil.rmtree(top, ignore_errors=True)
            top.mkdir()
            if files is not None:
                (top / NETWORK).mkdir()
                for name, text in files.items():
                    (top / NETWORK / name).write_bytes(text.encode())

    def call(self, who, command, config, container, ifname):
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(self.top[who])
        return self.binaries.call(who, command, config, container=container, ifname=ifname)

    def run(self, case):
        """One sequence; how many calls."""
        self.prepare(case.files)
        for number in range(CALLS):
            command, container, ifname, asked = case.step()
            before = contents(self.top["croft"] / NETWORK)
            config = case.config(self.link, asked)
            answers = {who: self.call(who, command, config, container, ifname) for who in NAMES}
            where = f"call {number + 1}: {command} {container} {ifname} {config}"
            self.count(command, answers)
            one, other = answers["reference"], answers["croft"]
            if command == "DEL" and one.code != 0:
                return number + 1  # H10
            same = (one.code, one.out) == (other.code, other.out)
            if len(asked) > 1 and one.code == other.code == 1:
                return number + 1  # the reference takes several addresses in a random order
            if not same:
                own = {name: text for name, text in before.items() if container in text or name.startswith("last")}
                raise Failure(f"{where}: the reference answers {one.code} {one.text()!r}, Croft {other.code} "
                              f"{other.text()!r}; {len(before)} files, of them {own}")
            if command == "ADD" and one.code != 0 and holds(before, container, ifname):
                return number + 1  # H6
            after = {who: set(contents(self.top[who] / NETWORK).items()) for who in NAMES}
            expect_equal(sorted(after["croft"] - after["reference"]), sorted(after["reference"] - after["croft"]),
                         f"files that only one has after {where}")
            expect_equal(leftovers(self.top["croft"] / NETWORK), [], f"temporary files after {where}")
        return CALLS

    def count(self, command, answers):
        answer = answers["reference"]
        kind = "done" if answer.code == 0 else answer.message().split(":")[0]
        kind = " ".join(word for word in kind.split() if not any(c.isdigit() for c in word))
        self.kinds[command, kind] = self.kinds.get((command, kind), 0) + 1


def test(world):
    seconds, seed = numbers_given(20, random.randrange(1 << 24))
    say(f"seed {seed}")
    chance, pair = random.Random(seed), Pair(world, Binaries(world))
    sequences = calls = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        calls += pair.run(Case(random.Random(chance.random())))
        sequences += 1
    for (command, kind), n in sorted(pair.kinds.items()):
        say(f"  {command}: {kind}: {n}")
    say(f"{sequences} sequences, {calls} calls of each program: same answers, same files")


main(test, seconds=3600)
