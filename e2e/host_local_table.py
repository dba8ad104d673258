"""What `host-local` must answer, as a table: every row runs with the reference's binary and with Croft's, and both give the same exit
code and bytes and leave the same files. Where Croft is to differ, the row has the reason and what Croft answers.

Row numbers are those of docs/notes/host-local.md#cases and docs/notes/cni.md#cases; other rows are named after their subject.
Rings, cursors, faulty ranges and addresses that are asked for are host_local_differential.py's, and unit tests'.

usage: host_local_table.py BIN_DIR [LABEL...]
"""

import copy
import dataclasses
import json
import os
import re
import shutil
import sys
import time

from host_local_lib import HINTS, NAMES, NETWORK, Answer, Binaries, holder, ranges_of
from lib import expect, main, say

ALL = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
NEWEST = ALL[-1]  # Croft's alone: as in 1.0.0
DIRECTORY = object()  # in a state: a directory of that name
LINK = object()  # in a state: a symbolic link to the file `target` beside the data directory
NOTHING = object()  # as Croft's directory: not even the network's was made
ANY = object()  # as Croft's directory: another row looks at it
ROWS = []


@dataclasses.dataclass
class Step:
    command: str
    container: str = "dummy"
    ifname: str = "eth0"
    config: object = None  # else the row's
    version: str | None = None  # else the row's; "" leaves the member out
    env: dict = dataclasses.field(default_factory=dict)
    stdin_path: str | None = None  # read from there instead
    stderr: str = ""  # what Croft's standard error must be (a pattern)
    begins: str | None = None  # an error of both that begins so, and goes on in each program's own words
    croft: object = None  # what is said against Croft's answer, where it is to differ


@dataclasses.dataclass
class Row:
    label: str
    config: object
    steps: list
    files: object = None  # Croft's after all steps, where they are to differ from the reference's
    state: dict = dataclasses.field(default_factory=dict)
    versions: tuple = ("1.0.0",)
    outside: dict = dataclasses.field(default_factory=dict)  # files beside the data directory
    why: str = ""  # the reason of a difference


def row(label, config, *steps, **more):
    ROWS.append(Row(str(label), config, list(steps), **more))


def add(*words, **more):
    return Step("ADD", *words, **more)


def delete(**more):
    return Step("DEL", **more)


def check(*words, **more):
    return Step("CHECK", *words, **more)


# ---- what Croft answers where it is to differ

def gives(*addresses):
    return lambda answer: answer.code == 0 and [ip["address"] for ip in json.loads(answer.out)["ips"]] == list(addresses)


def nothing(answer):
    return (answer.code, answer.text()) == (0, "")


def error(text="", code=999):
    return lambda answer: answer.code == 1 and json.loads(answer.out)["code"] == code and text in answer.message()


# ---- configurations

def sub(text, place):
    return text.replace("@D@", str(place / "d")).replace("@T@", str(place))


def net(*sets, name=NETWORK, top=None, **ipam):
    """A configuration; each set is a list of ranges or one range."""
    sets = [[s] if isinstance(s, str) else s for s in sets]
    return {"name": name, "type": "bridge", **(top or {}),
            "ipam": {"type": "host-local", **({"ranges": ranges_of(sets)} if sets else {}), **ipam}}


def args_ips(*ips):
    return {"args": {"cni": {"ips": list(ips)}}}


def cursors(*addresses):
    return {f"last_reserved_ip.{i}": a for i, a in enumerate(addresses) if a}


ONE = net("10.1.2.0/24")
DUMMY = holder("dummy")
FIRST = "10.1.2.2/24"
GIVEN = {"10.1.2.2": DUMMY, **cursors("10.1.2.2")}

# ---- 5.1

RESOLV = {"resolv.conf": "nameserver 192.0.2.3\n"}
ROUTES = [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "192.168.0.0/16", "gw": "1.1.1.1"}, {"dst": "2001:db8:2::0/64", "gw": "2001:db8:3::1"}]
DUAL = net(["10.1.2.0/24", "10.2.2.0/24"], "2001:db8:1::0/64", routes=ROUTES, resolvConf="@T@/resolv.conf")
row(1, DUAL, add(), outside=RESOLV, versions=ALL)
row(2, DUAL, add(), delete(), outside=RESOLV, versions=ALL)
row(5, ONE, add(), add(), add("dummy1"), add(), versions=ALL)
row(12, net("10.1.2.0/24", "10.1.3.0/24", top=args_ips("10.1.2.88", "10.1.3.77")), add(), versions=ALL[2:])
for label, text in ((17, "nameserver 192.0.2.0\nnameserver 192.0.2.2\ndomain example.com\n;nameserver comment\n#nameserver comment\n"
                         "search example.net example.org\nsearch example.gov\noptions one two three\noptions four\n"),
                    ("results", "search a<b>&c\n")):
    row(label, net("10.1.2.0/24", resolvConf="@T@/resolv.conf"), add(), outside={"resolv.conf": text}, versions=ALL)

# ---- 5.3

LEGACY = {"rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.20", "gateway": "10.1.2.30"}
row(43, {"name": NETWORK, "ipam": {"type": "host-local", "subnet": "10.1.2.0/24", **LEGACY}}, add())
row(45, {"name": NETWORK, "runtimeConfig": {"irrelevant": "a", "ipRanges": ranges_of([["12.1.3.0/24"]])},
         "ipam": {"subnet": "10.1.2.0/24", **LEGACY, "ranges": ranges_of([["11.1.2.0/24"]])}}, add())
for ip in ("10.1.2.10", "10.1.2.11/24"):
    row(46, ONE, add(env={"args": f"IP={ip}"}))
row(48, net("192.168.0.0/24 e=192.168.0.1 g=192.168.0.254", "192.168.0.0/24 s=192.168.0.5", "2001:db8::/64 g=2001:db8::f",
            top={"runtimeConfig": {"ips": ["192.168.0.1", "192.168.0.5/24", "2001:db8::1/64"]}}), add())

# ---- 5.4: the dispatcher

row(72, ONE, add("some-%%container-id"))
for command in ("ADD", "CHECK"):
    row(74, ONE, Step(command, ifname="", env={"netns": "", "CNI_PATH": ""}))
row(77, ONE, add(version=""))
row(78, ONE, check(), versions=("0.3.0",))
row(79, ONE, check(version="9.9.9"))
row(80, ONE, check(version="adsfsadf", begins='failed to convert major version part "adsfsadf": '))
row(81, net("10.1.2.0/24", name="te%%st"), add())
BARE = {"container": "", "ifname": "", "env": {"netns": "", "CNI_PATH": "", "override": False}}
LISTED = "".join(f',"{version}"' for version in ALL)[1:]
row(82, ONE, Step("VERSION", stdin_path="/", **BARE,
                  croft=lambda answer: answer.text() == f'{{"cniVersion":"{NEWEST}","supportedVersions":[{LISTED}]}}\n'), why="CNI 1.1.0")
row(83, ONE, Step("NOPE"))
row(83, net("10.1.2.0/24", name="te%%st"), Step("NOPE"))
row(84, ONE, Step("", stderr=r"CNI host-local plugin .+\nCNI protocol versions supported: 0\.1\.0, 0\.2\.0, 0\.3\.0, 0\.3\.1, 0\.4\.0, 1\.0\.0(, 1\.1\.0)?\n",
                  **BARE))
row(85, ONE, add(stdin_path="/", begins="error reading from stdin: "))
for args in ("IgnoreUnknown=True;Unk=nown", "Unk=nown", "IgnoreUnknown=0, Unk=nown"):
    row(87, ONE, add(env={"args": args}))

# ---- 5.5

row(89, ONE, check(), versions=ALL[4:])
for text in (DUMMY, holder("dummy", "eth1"), "dummy"):
    row(89, ONE, check(), state={"10.1.2.2": text}, versions=ALL[4:])
for config in ({"name": NETWORK}, {"name": NETWORK, "ipam": None}, {"name": NETWORK, "ipam": {}}, net(ranges=[]), net(ranges=[[]]), net(ranges=[[{}]])):
    row(90, config, add())
for top in (args_ips, lambda ip: {"runtimeConfig": {"ips": [ip]}}):
    for ip in ("foo", "10.1.2.9/40", ""):
        row(102, net("10.1.2.0/24", top=top(ip)), add())
    row(102, net("10.1.2.0/24", top=top(5)), add(begins=""))  # types in JSON: each in its own words
for args in ("FOO=BAR;X=1", "ip=10.1.2.9", "IP", "IP=10.1.2.9;", "IP=1=2", "IgnoreUnknown=yes", "IP=foo", "CommonArgs=x"):
    row(104, ONE, add(env={"args": args}))
    row(104, ONE, check(env={"args": args}))
for args in ("IP=", "IP=10.1.2.8;IP=10.1.2.9"):
    row(104, ONE, add(env={"args": args}))
row(110, ONE, add(), state={"10.1.2.2": DIRECTORY})
row(110, ONE, add(croft=gives(FIRST)), files=GIVEN, state={"10.1.2.2": ""}, why="H1: an empty file is reclaimed")
row(110, net("10.1.2.0/24", top=args_ips("10.1.2.9")), add(croft=gives("10.1.2.9/24")), files={"10.1.2.9": DUMMY, **cursors("10.1.2.9")},
    state={"10.1.2.9": ""}, why="H1")
for text in ("dummy\neth0", " dummy\r\neth0 \n", "dummy\r\n"):
    row(111, ONE, delete(), state={"10.1.2.2": text})
NO_RESOLV = net("10.1.2.0/24", resolvConf="@T@/none")
row(115, NO_RESOLV, add())
row(115, NO_RESOLV, delete(), state={"10.1.2.2": DUMMY})
for text in (b"", b"{", b"[]", b'{"name":"mynet"} x', b'\xef\xbb\xbf{"name":"mynet"}', b'{"name":5}'):
    row(118, text, add(begins="error unmarshall network config: "))
for text in (b"null", b"{}"):
    row(118, text, add())
NO_CHECK = "cni 1.1 does not compare network namespaces; later ones do, after the command (H14: Croft before an ADD)"
SAME = error("plugin's netns and netns from CNI_NETNS should not be the same", 8)
OWN = {"netns": "/proc/self/ns/net", "override": False}
row(119, ONE, add(env=OWN, croft=SAME), files=NOTHING, why=NO_CHECK)
row(119, ONE, delete(env=OWN, croft=SAME), files={}, state={"10.1.2.2": DUMMY}, why=NO_CHECK)
row(119, ONE, check(env=OWN), state={"10.1.2.2": DUMMY})
for env in ({"netns": "/proc/self/ns/net"}, {**OWN, "CNI_NETNS_OVERRIDE": "true"}, {**OWN, "CNI_NETNS_OVERRIDE": "TRUE"},
            {"netns": "/no/such/netns", "override": False}):
    row(119, ONE, add(env=env))
row(119, ONE, add(env={**OWN, "CNI_NETNS_OVERRIDE": "0"}, croft=SAME), files=NOTHING, why=NO_CHECK)

# ---- beside the numbered cases

# docs/notes/cni.md#error-order
row("error-order", ONE, add(ifname=".", env={"netns": ""}, croft=error("interface name is . or ..", 4)), why="values before missing variables")
row("error-order", ONE, add("", env={"CNI_PATH": ""}))
for version in ("0.3.2", "1.0"):
    row("error-order", ONE, add(version=version, begins="incompatible CNI versions"))
row("error-order", ONE, Step("add"))
row("error-order", ONE, add(env={"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}))
row("process", {**ONE, "padding": "x" * (2 << 20)}, add(croft=error(code=6)), files=NOTHING, why="standard input is capped at 1 MiB")
row("process", {**ONE, "padding": "x" * 1000000}, add())

# docs/notes/cni.md#json-rules
D = '"dataDir":"@D@"'
for text in (f'{{"CNIVERSION":"1.0.0","NAME":"mynet","IPAM":{{{D},"RANGES":[[{{"SUBNET":"10.1.2.0/24"}}]]}}}}',
             f'{{"cniVersion":"1.0.0","name":"a","name":"mynet","ipam":{{{D}}},"ipam":{{"ranges":[[{{"subnet":"10.1.2.0/24"}}]]}}}}\n ',
             f'{{"cniVersion":"1.0.0","name":"mynet","ipam":{{{D},"type":null,"resolvConf":null,"routes":null,'
             '"ranges":[[{"subnet":"10.1.2.0/24","rangeStart":null,"rangeEnd":"","gateway":null}]]},"args":null,'
             '"runtimeConfig":null,"unknown":{"a":[1,2.5e3,true]}}'):
    row("json-rules", text.encode(), add())
for change in ({"ranges": 5}, {"ranges": [[{"subnet": 5}]]}, {"dataDir": 5}, {"routes": "x"}):
    row("json-rules", net(**change), add(begins=""))

# docs/notes/cni.md#results
row("results", net("10.1.2.0/24", routes=[{"dst": "10.9.0.7/8", "gw": "10.1.2.9"}, {"dst": "10.8.0.0/16"}]), add(), versions=ALL)

# A symbolic link counts as its target (docs/notes/host-local.md#matching).
for steps in ((add(),), (check(), delete())):
    row("matching", ONE, *steps, state={"10.1.2.3": LINK}, outside={"target": DUMMY})

# Errors of the system, in Go's words.
for step in (add, delete, check):
    row("OS", net("10.1.2.0/24", dataDir="@T@/file/d"), step(), outside={"file": ""})
    row("OS", net("10.1.2.0/24", dataDir="@T@", name="file"), step(), outside={"file": ""})
    row("OS", net("10.1.2.0/24", dataDir="@T@", name="n" * 300), step())
    row("OS", ONE, step(begins=""), files=ANY, state={"lock": DIRECTORY})
row("OS", net("10.1.2.0/24", resolvConf="@T@"), add())

# ---- holes of the reference (docs/notes/host-local.md#faults)

row("H1", ONE, delete(), files=ANY, state={"10.1.2.2": ""})
row("H4", ONE, add(), files={"last_reserved_ip.0": DIRECTORY}, state={"last_reserved_ip.0": DIRECTORY},
    why="H4: an error at the cursor leaves no reservation")
row("H6", net("10.1.2.0/24", "10.1.3.0/24"), add(), add(env={"args": "IP=10.1.2.9"}),
    files={"10.1.2.2": DUMMY, "10.1.3.2": DUMMY, **cursors("10.1.2.9", "10.1.3.2")}, why="H6: a failed ADD releases its own addresses only")
row("H6", ONE, add(), add(env={"args": "IP=10.1.2.9"}, config=net("10.1.2.0/24", top=args_ips("10.9.9.9"))),
    files={"10.1.2.2": DUMMY, **cursors("10.1.2.9")}, why="H6")
for steps in ((), (delete(),)):
    row("H7", ONE, add(), add(env={"args": "IP=10.1.2.9"}), *steps)
H9 = "H9: only names that are addresses count, in the directory itself"
row("H9", ONE, check("10.1.2.2", croft=error("Failed to find address added by container 10.1.2.2")), state=cursors("10.1.2.2"), why=H9)
row("H9", ONE, delete(container="10.1.2.2"), files=cursors("10.1.2.2"), state=cursors("10.1.2.2"), why=H9)
BESIDE = {"sub": DIRECTORY, "sub/10.1.2.9": DUMMY, "note": DUMMY}
row("H9", ONE, delete(), files=BESIDE, state=BESIDE, why=H9)
for config, args in ((net("10.1.2.7/24"), ""), (net(), ""), (ONE, "FOO=BAR"), (net(ranges=[[{"subnet": "x"}]]), "")):
    row("H10", config, delete(env={"args": args}, croft=nothing), files={}, state={"10.1.2.2": DUMMY, "lock": ""},
        why="H10: DEL needs only name and dataDir")
row("H15", net("10.1.2.0/24", top=args_ips(None)), add(croft=error()), files=NOTHING, why="H15: null in ips is an error, not a crash")
H16 = "H16: 128-bit arithmetic"
row("H16", net("::100:0/120"), add(croft=gives("::100:2/120")), files={"::100:2": DUMMY, **cursors("::100:2")}, why=H16)
row("H16", net("::/64"), add(croft=gives("::100:0/64")), files={"::100:0": DUMMY, **cursors("::100:0")}, state=cursors("::ff:ffff"), why=H16)

# ---- what is Croft's alone: CHECK with a result, STATUS, GC

HELD = {"10.1.2.2": DUMMY, "10.1.3.2": holder("other")}
for addresses, want in ((("10.1.2.2/24",), nothing), (("10.1.2.3/24",), error()), (("10.1.2.2/24", "10.1.3.2/24"), error())):
    given = {"prevResult": {"cniVersion": "1.0.0", "ips": [{"address": a} for a in addresses]}}
    row("CHECK", net("10.1.2.0/24", "10.1.3.0/24", top=given), check(croft=want), state=HELD, versions=ALL[5:], why="CHECK looks at prevResult too")


def late(config, command, want, files, **more):
    row(command, config, Step(command, croft=want), files=files, versions=(NEWEST,), **more)


FULL = {"10.0.0.2": "id", "lock": ""}
late(net("10.0.0.0/30"), "STATUS", nothing, FULL, state=FULL)
late(net("10.0.0.0/30", statusWhenFull=True), "STATUS", error(code=50), FULL, state=FULL)
late(net(), "STATUS", error(code=50), ANY)
late(net("10.0.0.0/30", dataDir="@T@/file/d"), "STATUS", error(code=50), NOTHING, outside={"file": ""})
SOME = {"10.1.2.2": DUMMY, "10.1.2.3": holder("dummy", "eth1"), "10.1.2.4": holder("b"), "10.1.2.5": "legacy"}
OTHER = {"lock": "", **cursors("10.1.2.4"), **BESIDE}
for valid, gone in ((None, ()), ([], SOME), (["dummy eth0", "legacy eth7"], ("10.1.2.3", "10.1.2.4"))):
    listed = [dict(zip(("containerID", "ifname"), text.split())) for text in valid or ()]
    late(net("10.1.2.0/24", top={} if valid is None else {"cni.dev/valid-attachments": listed}), "GC", nothing,
         {**{name: text for name, text in SOME.items() if name not in gone}, **OTHER}, state={**SOME, **OTHER})

# ---- running them


def config_bytes(row_, step, version, place):
    config = row_.config if step.config is None else step.config
    if isinstance(config, bytes):
        return sub(config.decode("latin-1"), place).encode("latin-1")
    config = copy.deepcopy(config)
    if step.version != "":
        config = {"cniVersion": step.version or version, **config}
    if isinstance(config.get("ipam"), dict):
        config["ipam"].setdefault("dataDir", "@D@")
    return sub(json.dumps(config), place).encode()


def put(place, name, content):
    """A file of a state, an hour old."""
    path = place / "d" / NETWORK / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is DIRECTORY:
        path.mkdir(exist_ok=True)
    elif content is LINK:
        path.symlink_to(place / "target")
    else:
        path.write_bytes(content.encode())
        path.chmod(0o750 if name == "lock" else 0o600)
    os.utime(path, (time.time() - 3600,) * 2)


def directory(place):
    """Everything below the data directory: name -> content, DIRECTORY for one; and what has another mode than Croft's."""
    found, odd, top = {}, [], place / "d"
    for path in sorted(top.rglob("*")) if top.exists() else ():
        name = str(path.relative_to(top))
        if name.split("/")[0] != HINTS:
            found[name] = DIRECTORY if path.is_dir() else path.read_bytes().decode()
            if not path.is_symlink() and path.stat().st_mode & 0o7777 != (0o755 if path.is_dir() else 0o750 if name.endswith("/lock") else 0o600):
                odd.append(f"{name} has mode {path.stat().st_mode & 0o7777:o}")
    return found, odd


def expected_files(row_):
    if row_.files is NOTHING:
        return {}
    return {NETWORK: DIRECTORY, f"{NETWORK}/lock": "", **{f"{NETWORK}/{name}": content for name, content in row_.files.items()}}


class Table:
    def __init__(self, world, binaries):
        self.world, self.binaries = world, binaries
        self.calls, self.failed = 0, []

    def run(self, row_):
        before = None  # Croft's answers of the version before
        for version in row_.versions:
            told, files = {}, {}
            for who in NAMES[version == NEWEST:]:
                place = self.world.directory / "row"
                place.mkdir()
                told[who], files[who], odd = self.once(row_, version, place, who)
                shutil.rmtree(place)
            croft = told["croft"]
            wrong = odd + [text for i, step in enumerate(row_.steps) for text in
                           judge(step, croft[i], told["reference"][i] if "reference" in told else before and before[i], version, place)]
            wanted = files.get("reference", files["croft"]) if row_.files in (None, ANY) else expected_files(row_)
            if row_.files is not ANY and files["croft"] != wanted:
                wrong.append(f"files: {files['croft']}, wanted {wanted}")
            if wrong:
                self.failed.append(f"row {row_.label} {version} {row_.why}: {'; '.join(wrong)} [{str(row_.config)[:1000]}]")
            before = croft

    def once(self, row_, version, place, who):
        """The answers, and the files afterwards."""
        for name, content in row_.outside.items():
            (place / name).write_text(content, encoding="utf-8")
        for name, content in row_.state.items():
            put(place, name, content)
        answers = [self.call(step, config_bytes(row_, step, version, place), who) for step in row_.steps]
        found, odd = directory(place)
        return answers, found, odd if who == "croft" else []

    def call(self, step, config, who):
        self.calls += 1
        environment = {"container": step.container, "ifname": step.ifname, **step.env}
        if step.stdin_path is None:
            return self.binaries.call(who, step.command, config, **environment)
        # A directory as standard input: it cannot be read.
        with self.binaries.start(who, step.command, stdin=os.open(step.stdin_path, os.O_RDONLY), **environment) as process:
            out, err = process.communicate(timeout=30)
        return Answer(process.returncode, out, err.decode())


def judge(step, croft, reference, version, place):
    """What is wrong with Croft's answer, as texts. From 1.0.0 on later libraries print another order, and no empty dns."""
    try:
        if step.croft:
            right = step.croft(croft)
        elif step.begins is not None:
            right = all(one.code == 1 and one.message().startswith(sub(step.begins, place)) for one in (croft, reference)) and \
                json.loads(croft.out)["code"] == json.loads(reference.out)["code"]
        else:
            right = croft.code == reference.code and (croft.text() in (reference.text(), reference.text().replace("1.0.0", version)) or (
                version >= "1" and json.loads(reference.text().replace("1.0.0", version)) == {"dns": {}, **json.loads(croft.out)}))
    except (ValueError, KeyError, TypeError, AttributeError):
        right = False
    wrong = [] if right else [f"{step.command} {step.container}: Croft {croft.code} {croft.text()!r}, the reference "
                              f"{reference and (reference.code, reference.text())}"]
    if step.stderr and not re.fullmatch(step.stderr, croft.err):
        wrong.append(f"standard error {croft.err!r}, wanted {step.stderr!r}")
    return wrong


def test(world):
    os.umask(0o022)
    table = Table(world, Binaries(world))
    for row_ in ROWS:
        if not sys.argv[2:] or row_.label in sys.argv[2:]:
            table.run(row_)
    for line in table.failed:
        say(line)
    say(f"{len(ROWS)} rows, {table.calls} calls, {len(table.failed)} failures")
    expect(not table.failed, f"{len(table.failed)} expectations are not met")


main(test)
