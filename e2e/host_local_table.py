"""What `host-local` must answer, as a table: every row runs with the reference's binary and with Croft's.

A row gives the state of the directory, the calls, for each call the exit code and the exact bytes, and the directory
afterwards: names, contents, modes. Row numbers are those of docs/notes/host-local.md#cases and
docs/notes/cni.md#cases; other rows are named after their subject. Rings, cursors, faulty ranges and addresses that
are asked for are host_local_differential.py's, and unit tests'.

usage: host_local_table.py BIN_DIR [--row NUMBER]
"""

import argparse
import copy
import dataclasses
import json
import os
import re
import shutil
import time

from host_local_lib import HINTS, NAMES, NETWORK, Answer, Binaries, error_text, go_json, holder, ranges_of
from lib import Failure, World, main, say

ALL = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
OLD = ALL[:2]
LIST = ALL[2:]  # those with a list of addresses
NEW = ALL[5:]
OF = {"reference": ALL[:6], "croft": ALL}

# ---- what is expected ------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Per:
    """What is expected of each program, where they are to differ."""
    reference: object
    croft: object
    because: str


class Want:
    """An expected answer: `exit code, bytes`, or a reason why `matches` says no."""

    def __init__(self, code, text, matches):
        self.code, self.text, self.matches = code, text, matches


def exactly(code, text_of):
    return Want(code, text_of, None)


def sub(text, place):
    return text.replace("@D@", str(place / "d")).replace("@T@", str(place))


def raw(text, code=0):
    return exactly(code, lambda who, version, place: sub(text, place))


nothing = raw("")


def E(msg, code=999, details=None):
    return exactly(1, lambda who, version, place: sub(error_text(code, msg, details), place))


def starts(prefix, code=999):
    """An error whose text goes on in its own words (or in random order) after `prefix`."""
    def matches(out, place):
        answer = json.loads(out)
        return answer["code"] == code and answer["msg"].startswith(sub(prefix, place)) and set(answer) <= {
            "code", "msg", "details"}
    return Want(1, f"code {code}, msg {prefix!r}...", matches)


def crash(text="no JSON"):
    return Want(2, text, lambda out, place: out == "")


def words(text):
    """`dst=... gw=...` as a route."""
    return dict(w.split("=") for w in text.split())


def R(*addresses, routes=(), dns=None, version=None):
    """A result: addresses as `10.1.2.2/24 10.1.2.1` (with the gateway), routes as objects."""
    given = version

    def text(who, version, place):
        version = given or version
        ips = [a.split() for a in addresses]
        if version in OLD:
            result = {"cniVersion": version}
            for key, wanted in (("ip4", False), ("ip6", True)):
                for address, gateway in ips:
                    if (":" in address) == wanted:
                        own = [{k: r[k] for k in ("dst", "gw") if k in r} for r in routes if (":" in r["dst"]) == wanted]
                        result[key] = {"ip": address, "gateway": gateway, **({"routes": own} if own else {})}
            return go_json({**result, "dns": dns_of(dns, False)})
        listed = [{**({"version": "6" if ":" in a else "4"} if version < "1" else {}), "address": a, "gateway": g}
                  for a, g in ips]
        later = version >= "1" and who == "croft"  # alphabetical, without empty dns
        order = (("advmss", "dst", "gw", "mtu", "priority", "scope", "table") if later else
                 ("dst", "gw", "mtu", "advmss", "priority", "table", "scope"))
        if who == "reference":
            order = ("dst", "gw")  # cni 1.1 knows no other
        routed = [{k: r[k] for k in order if k in r} for r in routes]
        parts = {"ips": listed, **({"routes": routed} if routed else {})}
        if later:
            return go_json({"cniVersion": version, **({"dns": dns_of(dns, True)} if dns else {}), **parts})
        return go_json({"cniVersion": version, **parts, "dns": dns_of(dns, False)})
    return exactly(0, text)


def dns_of(dns, alphabetical):
    order = ("domain", "nameservers", "options", "search") if alphabetical else (
        "nameservers", "domain", "search", "options")
    return {k: dns[k] for k in order if k in (dns or {})}


DIRECTORY = object()  # in a state: a directory of that name
LINK = object()  # in a state: a symbolic link to the file `target` beside the data directory
NOTHING = object()  # as the expected directory: not even the network's was made
ANY = object()  # as the expected directory: another row looks at it


@dataclasses.dataclass
class Step:
    command: str
    want: object
    container: str = "dummy"
    ifname: str = "eth0"
    config: object = None  # else the row's
    version: str | None = None  # else the row's; "" leaves the member out
    env: dict = dataclasses.field(default_factory=dict)
    stdin_path: str | None = None  # read from there instead
    stderr: str = ""  # what standard error must be (a pattern)


@dataclasses.dataclass
class Row:
    rows: str
    config: object
    steps: list
    files: object  # after all steps
    state: dict = dataclasses.field(default_factory=dict)
    versions: tuple = ("1.0.0",)
    outside: dict = dataclasses.field(default_factory=dict)  # files beside the data directory
    only: str | None = None  # this program alone
    young: tuple = ()  # files of the state that are not an hour old


ROWS = []


def row(rows, config, steps, files, **more):
    ROWS.append(Row(str(rows), config, steps if isinstance(steps, list) else [steps], files, **more))


def add(want, container="dummy", ifname="eth0", **more):
    return Step("ADD", want, container, ifname, **more)


def delete(want=nothing, container="dummy", ifname="eth0", **more):
    return Step("DEL", want, container, ifname, **more)


def check(want=nothing, container="dummy", ifname="eth0", **more):
    return Step("CHECK", want, container, ifname, **more)


def net(*sets, name=NETWORK, top=None, **ipam):
    """A configuration; each set is a list of ranges or one range."""
    sets = [[s] if isinstance(s, str) else s for s in sets]
    return {"name": name, "type": "bridge", **(top or {}),
            "ipam": {"type": "host-local", **({"ranges": ranges_of(sets)} if sets else {}), **ipam}}


def legacy(name=NETWORK, **ipam):
    return {"name": name, "ipam": {"type": "host-local", "subnet": "10.1.2.0/24", **ipam}}


def args_ips(*ips):
    return {"args": {"cni": {"ips": list(ips)}}}


def cursors(*addresses):
    return {f"last_reserved_ip.{i}": a for i, a in enumerate(addresses) if a}


FA0, IR0 = "failed to allocate for range 0: ", "invalid range set 0: "
LEFT = "failed to allocate all requested IPs: "
ONE = net("10.1.2.0/24")
FIRST = "10.1.2.2/24 10.1.2.1"
DUMMY = holder("dummy")
LATER = "later behaviour: CNI 1.1.0"

# ---- 5.1 -------------------------------------------------------------------------------------------------------

resolv = {"resolv.conf": "nameserver 192.0.2.3\n"}
routes = [words("dst=0.0.0.0/0"), words("dst=::/0"), words("dst=192.168.0.0/16 gw=1.1.1.1"),
          words("dst=2001:db8:2::0/64 gw=2001:db8:3::1")]
printed = [*routes[:3], words("dst=2001:db8:2::/64 gw=2001:db8:3::1")]
dual = net(["10.1.2.0/24", "10.2.2.0/24"], "2001:db8:1::0/64", routes=routes, resolvConf="@T@/resolv.conf")
both = R(FIRST, "2001:db8:1::2/64 2001:db8:1::1", routes=printed, dns={"nameservers": ["192.0.2.3"]})
row(1, dual, add(both), {"10.1.2.2": DUMMY, "2001:db8:1::2": DUMMY, **cursors("10.1.2.2", "2001:db8:1::2")},
    outside=resolv, versions=ALL)
row(2, dual, [add(both), delete()], cursors("10.1.2.2", "2001:db8:1::2"), outside=resolv, versions=ALL)

twice = E(FA0 + "10.1.2.2 has been allocated to dummy, duplicate allocation is not allowed")
row(5, ONE, [add(R(FIRST)), add(twice), add(R("10.1.2.3/24 10.1.2.1"), "dummy1"), add(twice)],
    {"10.1.2.2": DUMMY, "10.1.2.3": holder("dummy1"), **cursors("10.1.2.3")}, versions=ALL)
two = ("10.1.2.0/24", "10.1.3.0/24")
asks = net(*two, top=args_ips("10.1.2.88", "10.1.3.77"))
row(12, asks, add(R("10.1.2.88/24 10.1.2.1", "10.1.3.77/24 10.1.3.1")),
    {"10.1.2.88": DUMMY, "10.1.3.77": DUMMY, **cursors("10.1.2.88", "10.1.3.77")}, versions=LIST)


def resolv_row(number, text, dns):
    row(number, net("10.1.2.0/24", resolvConf="@T@/resolv.conf"), add(R(FIRST, dns=dns)),
        {"10.1.2.2": DUMMY, **cursors("10.1.2.2")}, outside={"resolv.conf": text}, versions=ALL)


resolv_row(17, "nameserver 192.0.2.0\nnameserver 192.0.2.2\ndomain example.com\n;nameserver comment\n"
               "#nameserver comment\nsearch example.net example.org\nsearch example.gov\noptions one two three\n"
               "options four\n",
           {"nameservers": ["192.0.2.0", "192.0.2.2"], "domain": "example.com",
            "search": ["example.net", "example.org", "example.gov"], "options": ["one", "two", "three", "four"]})

# ---- 5.3 -------------------------------------------------------------------------------------------------------


def got(number, config, *addresses, **more):
    """One ADD; the files are what it answered."""
    plain = [a.split("/")[0] for a in addresses]
    row(number, config, add(R(*addresses), env=more.pop("env", {})),
        {**more.get("state", {}), **{a: DUMMY for a in plain}, **cursors(*plain)}, **more)


def bad(number, config, msg, code=999, details=None, **more):
    """An ADD that is refused before anything is touched."""
    want = msg if isinstance(msg, (Want, Per)) else E(msg, code, details)
    row(number, config, add(want, **more), NOTHING)


LEGACY = {"rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.20", "gateway": "10.1.2.30"}
got(43, legacy(**LEGACY), "10.1.2.9/24 10.1.2.30")
got(45, {"name": NETWORK, "runtimeConfig": {"irrelevant": "a", "ipRanges": ranges_of([["12.1.3.0/24"]])},
         "ipam": {"subnet": "10.1.2.0/24", **LEGACY, "ranges": ranges_of([["11.1.2.0/24"]])}},
    "12.1.3.2/24 12.1.3.1", "10.1.2.9/24 10.1.2.30", "11.1.2.2/24 11.1.2.1")
got(46, ONE, "10.1.2.10/24 10.1.2.1", env={"args": "IP=10.1.2.10"})
got(46, ONE, "10.1.2.11/24 10.1.2.1", env={"args": "IP=10.1.2.11/24"})
got(48, net("192.168.0.0/24 e=192.168.0.1 g=192.168.0.254", "192.168.0.0/24 s=192.168.0.5", "2001:db8::/64 g=2001:db8::f",
            top={"runtimeConfig": {"ips": ["192.168.0.1", "192.168.0.5/24", "2001:db8::1/64"]}}),
    "192.168.0.1/24 192.168.0.254", "192.168.0.5/24 192.168.0.1", "2001:db8::1/64 2001:db8::f")
short_json = starts("json: error calling MarshalJSON for type *types100.IPConfig: ")

# ---- 5.4: the dispatcher ---------------------------------------------------------------------------------------

bad(72, ONE, "invalid characters in containerID", 4, "some-%%container-id", container="some-%%container-id")
for command in ("ADD", "CHECK"):
    row(74, ONE, Step(command, E("required env variables [CNI_NETNS,CNI_IFNAME,CNI_PATH] missing", 4), ifname="",
                      env={"netns": "", "CNI_PATH": ""}), NOTHING)
row(77, ONE, add(R(FIRST, version="0.1.0"), version=""), {"10.1.2.2": DUMMY, **cursors("10.1.2.2")})
row(78, ONE, check(E("config version does not allow CHECK", 1)), NOTHING, versions=("0.3.0",))
row(79, ONE, check(E("plugin version does not allow CHECK", 1), version="9.9.9"), NOTHING)
row(80, ONE, check(starts('failed to convert major version part "adsfsadf": ', 6), version="adsfsadf"), NOTHING)
bad(81, net("10.1.2.0/24", name="te%%st"), "invalid characters found in network name", 7, "te%%st")


def versions_text(*, upto):
    listed = ",".join(f'"{v}"' for v in ALL[:upto])
    return f'{{"cniVersion":"{ALL[upto - 1]}","supportedVersions":[{listed}]}}\n'


bare = {"container": "", "ifname": "", "env": {"netns": "", "CNI_PATH": "", "override": False}}
row(82, ONE, Step("VERSION", Per(raw(versions_text(upto=6)), raw(versions_text(upto=7)), LATER), stdin_path="/", **bare),
    NOTHING)
row(83, ONE, Step("NOPE", E("unknown CNI_COMMAND: NOPE", 4)), NOTHING)
row(83, net("10.1.2.0/24", name="te%%st"), Step("NOPE", E("invalid characters found in network name", 7, "te%%st")), NOTHING)
row(84, ONE, Step("", nothing, stderr=r"CNI host-local plugin .+\nCNI protocol versions supported: "
                  r"0\.1\.0, 0\.2\.0, 0\.3\.0, 0\.3\.1, 0\.4\.0, 1\.0\.0(, 1\.1\.0)?\n", **bare), NOTHING)
row(85, ONE, add(starts("error reading from stdin: ", 5), stdin_path="/"), NOTHING)
got(87, ONE, FIRST, env={"args": "IgnoreUnknown=True;Unk=nown"})
bad(87, ONE, 'ARGS: unknown args ["Unk=nown"]', env={"args": "Unk=nown"})
bad(87, ONE, 'ARGS: invalid pair "IgnoreUnknown=0, Unk=nown"', env={"args": "IgnoreUnknown=0, Unk=nown"})

# ---- 5.5 -------------------------------------------------------------------------------------------------------

missing = E("host-local: Failed to find address added by container dummy")
row(89, ONE, check(missing), {}, versions=ALL[4:])
for state, want in ((DUMMY, nothing), (holder("dummy", "eth1"), missing), ("dummy", nothing)):
    row(89, ONE, check(want), {"10.1.2.2": state}, state={"10.1.2.2": state}, versions=ALL[4:])
bad(90, {"name": NETWORK}, "IPAM config missing 'ipam' key")
bad(90, {"name": NETWORK, "ipam": None}, "IPAM config missing 'ipam' key")
bad(90, {"name": NETWORK, "ipam": {}}, "no IP ranges specified")
bad(90, net(ranges=[]), "no IP ranges specified")
bad(90, net(ranges=[[]]), IR0 + "empty range set")
bad(90, net(ranges=[[{}]]), IR0 + "IP <nil> not v4 nor v6")
OWN_TEXT = "types in JSON: Croft words it itself, the code is the same"
for top in (args_ips, lambda ip: {"runtimeConfig": {"ips": [ip]}}):
    bad(102, net("10.1.2.0/24", top=top("foo")), "invalid IP address foo")
    bad(102, net("10.1.2.0/24", top=top("10.1.2.9/40")), "invalid IP address 10.1.2.9/40")
    bad(102, net("10.1.2.0/24", top=top("")), "cannot understand ip: IP <nil> not v4 nor v6")
    bad(102, net("10.1.2.0/24", top=top(5)), Per(starts("json: cannot unmarshal"), starts(""), OWN_TEXT))
for args, text in (("FOO=BAR;X=1", 'unknown args ["FOO=BAR" "X=1"]'), ("ip=10.1.2.9", 'unknown args ["ip=10.1.2.9"]'),
                   ("IP", 'invalid pair "IP"'), ("IP=10.1.2.9;", 'invalid pair ""'), ("IP=1=2", 'invalid pair "IP=1=2"'),
                   ("IgnoreUnknown=yes", 'error parsing value of pair "IgnoreUnknown=yes": boolean unmarshal error: '
                    "invalid input yes"), ("IP=foo", 'error parsing value of pair "IP=foo": invalid IP address foo'),
                   ("CommonArgs=x", "cannot unmarshal into field 'CommonArgs' - type '*types.CommonArgs' does not "
                    "implement encoding.TextUnmarshaler")):
    bad(104, ONE, "ARGS: " + text, env={"args": args})
    row(104, ONE, check(E("ARGS: " + text), env={"args": args}), NOTHING)
got(104, ONE, FIRST, env={"args": "IP="})
got(104, ONE, "10.1.2.9/24 10.1.2.1", env={"args": "IP=10.1.2.8;IP=10.1.2.9"})
got(110, ONE, "10.1.2.3/24 10.1.2.1", state={"10.1.2.2": DIRECTORY})
H1 = "H1: an empty file is reclaimed"
row(110, ONE, add(Per(R("10.1.2.3/24 10.1.2.1"), R(FIRST), H1)),
    Per({"10.1.2.2": "", "10.1.2.3": DUMMY, **cursors("10.1.2.3")}, {"10.1.2.2": DUMMY, **cursors("10.1.2.2")}, H1),
    state={"10.1.2.2": ""})
row(110, net("10.1.2.0/24", top=args_ips("10.1.2.9")),
    add(Per(E(FA0 + "requested IP address 10.1.2.9 is not available in range set 10.1.2.1-10.1.2.254"),
            R("10.1.2.9/24 10.1.2.1"), H1)),
    Per({"10.1.2.9": ""}, {"10.1.2.9": DUMMY, **cursors("10.1.2.9")}, H1), state={"10.1.2.9": ""})
row(111, ONE, delete(), {"10.1.2.2": "dummy\neth0"}, state={"10.1.2.2": "dummy\neth0"})
for text in (" dummy\r\neth0 \n", "dummy\r\n"):
    row(111, ONE, delete(), {}, state={"10.1.2.2": text})
no_resolv = net("10.1.2.0/24", resolvConf="@T@/none")
bad(115, no_resolv, "open @T@/none: no such file or directory")
row(115, no_resolv, delete(), {}, state={"10.1.2.2": DUMMY})
for text in (b"", b"{", b"[]", b'{"name":"mynet"} x', b'\xef\xbb\xbf{"name":"mynet"}', b'{"name":5}'):
    bad(118, text, starts("error unmarshall network config: ", 6))
bad(118, b"null", "missing network name", 7)
bad(118, b"{}", "missing network name", 7)

NO_CHECK = "cni 1.1 does not compare network namespaces; later ones do, after the command (H14: Croft before an ADD)"
own = {"netns": "/proc/self/ns/net", "override": False}
same = E("plugin's netns and netns from CNI_NETNS should not be the same", 8)
row(119, ONE, add(Per(R(FIRST), same, NO_CHECK), env=own),
    Per({"10.1.2.2": DUMMY, **cursors("10.1.2.2")}, NOTHING, NO_CHECK))
row(119, ONE, delete(Per(nothing, same, NO_CHECK), env=own), {}, state={"10.1.2.2": DUMMY})
row(119, ONE, check(nothing, env=own), {"10.1.2.2": DUMMY}, state={"10.1.2.2": DUMMY})
got(119, ONE, FIRST, env={"netns": "/proc/self/ns/net"})
for override, works in (("true", True), ("TRUE", True), ("0", False)):
    env = {**own, "CNI_NETNS_OVERRIDE": override}
    row(119, ONE, add(R(FIRST) if works else Per(R(FIRST), same, NO_CHECK), env=env), ANY)
got(119, ONE, FIRST, env={"netns": "/no/such/netns", "override": False})

# ---- beside the numbered cases ----------------------------------------------------------------------------------

# docs/notes/cni.md#error-order
ORDER = "cni 1.1 looks for missing variables before it looks at the values"
bad("error-order", ONE, Per(E("required env variables [CNI_NETNS] missing", 4), E("interface name is . or ..", 4), ORDER), ifname=".",
    env={"netns": ""})
bad("error-order", ONE, "required env variables [CNI_CONTAINERID,CNI_PATH] missing", 4, container="", env={"CNI_PATH": ""})
row("error-order", ONE, add(E("incompatible CNI versions", 1, 'config is "0.3.2", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" '
                      '"0.4.0" "1.0.0" "1.1.0"]'), version="0.3.2"), NOTHING, only="croft")
row("error-order", ONE, add(starts("incompatible CNI versions", 1), version="1.0"), NOTHING)
row("error-order", ONE, Step("add", E("unknown CNI_COMMAND: add", 4)), NOTHING)
got("error-order", ONE, FIRST, env={"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
row("process", {**ONE, "padding": "x" * (2 << 20)}, add(Per(R(FIRST), starts("", 6), "standard input is capped at 1 MiB")),
    Per({"10.1.2.2": DUMMY, **cursors("10.1.2.2")}, NOTHING, "standard input is capped at 1 MiB"))
got("process", {**ONE, "padding": "x" * 1000000}, FIRST)

# docs/notes/cni.md#json-rules
D = '"dataDir":"@D@"'
for text in (f'{{"CNIVERSION":"1.0.0","NAME":"mynet","IPAM":{{{D},"RANGES":[[{{"SUBNET":"10.1.2.0/24"}}]]}}}}',
             f'{{"cniVersion":"1.0.0","name":"a","name":"mynet","ipam":{{{D}}},"ipam":{{"ranges":[[{{"subnet":"10.1.2.0/24"}}]]}}}}'
             "\n ",
             f'{{"cniVersion":"1.0.0","name":"mynet","ipam":{{{D},"type":null,"resolvConf":null,"routes":null,'
             '"ranges":[[{"subnet":"10.1.2.0/24","rangeStart":null,"rangeEnd":"","gateway":null}]]},"args":null,'
             '"runtimeConfig":null,"unknown":{"a":[1,2.5e3,true]}}'):
    got("json-rules", text.encode(), FIRST)
for change in ({"ranges": 5}, {"ranges": [[{"subnet": 5}]]}, {"dataDir": 5}, {"routes": "x"}):
    bad("json-rules", net(**change), Per(Want(1, "code 999", lambda out, place: json.loads(out)["code"] == 999), starts(""),
                                  OWN_TEXT))

# docs/notes/cni.md#results
row("results", net("10.1.2.0/24", routes=[{"dst": "10.9.0.7/8", "gw": "10.1.2.9"}, {"dst": "10.8.0.0/16"}]),
    add(R(FIRST, routes=[{"dst": "10.9.0.7/8", "gw": "10.1.2.9"}, {"dst": "10.8.0.0/16"}])), ANY, versions=ALL)
many = {"dst": "10.8.0.0/16", "gw": "10.1.2.9", "mtu": 1400, "advmss": 1360, "priority": 7, "table": 0, "scope": 0}
row("results", net("10.1.2.0/24", routes=[many]), add(R(FIRST, routes=[many])), ANY, versions=ALL)
row("results", net("10.1.2.0/24", routes=[{**many, "mtu": 0, "priority": 0}]),
    add(R(FIRST, routes=[{k: many[k] for k in ("dst", "gw", "advmss", "table", "scope")}])), ANY, versions=LIST)
resolv_row("results", "search a<b>&c\n", {"search": ["a<b>&c"]})

# A symbolic link counts as its target (docs/notes/host-local.md#matching).
row("matching", ONE, add(E(FA0 + "10.1.2.3 has been allocated to dummy, duplicate allocation is not allowed")), ANY,
    state={"10.1.2.3": LINK}, outside={"target": DUMMY})
row("matching", ONE, [check(), delete()], {}, state={"10.1.2.3": LINK}, outside={"target": DUMMY})

# Errors of the system, in Go's words.


def system(operation, path, reason, prefix=""):
    return E(f"{prefix}{operation} {path}: {reason}")


for step in (add, delete, check):
    row("OS", net("10.1.2.0/24", dataDir="@T@/file/d"), step(system("mkdir", "@T@/file", "not a directory")), NOTHING,
        outside={"file": ""})
    row("OS", net("10.1.2.0/24", dataDir="@T@", name="file"), step(system("mkdir", "@T@/file", "not a directory")), NOTHING,
        outside={"file": ""})
    row("OS", net("10.1.2.0/24", dataDir="@T@", name="n" * 300),
        step(system("mkdir", f"@T@/{'n' * 300}", "file name too long")), NOTHING)
    row("OS", ONE, step(starts("")), ANY, state={"lock": DIRECTORY})
row("OS", net("10.1.2.0/24", resolvConf="@T@"), add(E("read @T@: is a directory")), NOTHING)

# ---- holes of the reference (docs/notes/host-local.md#faults) -----------------------------------------------

row("H1", ONE, delete(), Per({"10.1.2.2": ""}, ANY, H1), state={"10.1.2.2": ""})
H4 = "H4: an error at the cursor leaves no reservation"
row("H4", ONE, add(system("open", "@D@/mynet/last_reserved_ip.0", "is a directory", FA0)),
    Per({"10.1.2.2": DUMMY, "last_reserved_ip.0": DIRECTORY}, {"last_reserved_ip.0": DIRECTORY}, H4),
    state={"last_reserved_ip.0": DIRECTORY})
H6 = "H6: a failed ADD releases its own addresses only"
sets = net("10.1.2.0/24", "10.1.3.0/24")
row("H6", sets, [add(R(FIRST, "10.1.3.2/24 10.1.3.1")),
                 add(E("failed to allocate for range 1: 10.1.3.2 has been allocated to dummy, duplicate allocation is not "
                       "allowed"), env={"args": "IP=10.1.2.9"})],
    Per(cursors("10.1.2.9", "10.1.3.2"), {"10.1.2.2": DUMMY, "10.1.3.2": DUMMY, **cursors("10.1.2.9", "10.1.3.2")}, H6))
row("H6", ONE, [add(R(FIRST)), add(E(LEFT + "10.9.9.9"), env={"args": "IP=10.1.2.9"},
                                   config=net("10.1.2.0/24", top=args_ips("10.9.9.9")))],
    Per(cursors("10.1.2.9"), {"10.1.2.2": DUMMY, **cursors("10.1.2.9")}, H6))
row("H7", ONE, [add(R(FIRST)), add(R("10.1.2.9/24 10.1.2.1"), env={"args": "IP=10.1.2.9"}), delete()],
    cursors("10.1.2.9"))
row("H7", ONE, [add(R(FIRST)), add(R("10.1.2.9/24 10.1.2.1"), env={"args": "IP=10.1.2.9"})],
    {"10.1.2.2": DUMMY, "10.1.2.9": DUMMY, **cursors("10.1.2.9")})
H9 = "H9: only names that are addresses count, in the directory itself"
row("H9", ONE, check(Per(nothing, E("host-local: Failed to find address added by container 10.1.2.2"), H9), "10.1.2.2"),
    cursors("10.1.2.2"), state=cursors("10.1.2.2"))
row("H9", ONE, delete(container="10.1.2.2"), Per({}, cursors("10.1.2.2"), H9), state=cursors("10.1.2.2"))
row("H9", ONE, delete(), Per({"sub": DIRECTORY}, {"sub": DIRECTORY, "sub/10.1.2.9": DUMMY, "note": DUMMY}, H9),
    state={"sub": DIRECTORY, "sub/10.1.2.9": DUMMY, "note": DUMMY})
H10 = "H10: DEL needs only name and dataDir"
for config, args, msg in ((net("10.1.2.7/24"), "", IR0 + "Network has host bits set. For a subnet mask of length 24 the "
                           "network address is 10.1.2.0"), (net(), "", "no IP ranges specified"),
                          (ONE, "FOO=BAR", 'ARGS: unknown args ["FOO=BAR"]'),
                          (net(ranges=[[{"subnet": "x"}]]), "", "invalid CIDR address: x")):
    row("H10", config, delete(Per(E(msg), nothing, H10), env={"args": args}), Per({"10.1.2.2": DUMMY}, {}, H10),
        state={"10.1.2.2": DUMMY, "lock": ""})
bad("H15", net("10.1.2.0/24", top=args_ips(None)), Per(crash(), starts(""), "H15: null in ips is an error, not a crash"))
H16 = "H16: 128-bit arithmetic"
row("H16", net("::100:0/120"), add(Per(R("1.0.0.2/24 1.0.0.1"), R("::100:2/120 ::100:1"), H16)),
    Per({"1.0.0.2": DUMMY, **cursors("1.0.0.2")}, {"::100:2": DUMMY, **cursors("::100:2")}, H16))
row("H16", net("::/64"), add(Per(short_json, R("::100:0/64 ::1"), H16)),
    Per({"1.0.0.0": DUMMY, **cursors("1.0.0.0")}, {"::100:0": DUMMY, **cursors("::100:0")}, H16),
    state=cursors("::ff:ffff"))

# ---- what is Croft's alone: CHECK with a result, STATUS, GC -------------------------------------------------------

COMPARES = "CHECK looks at prevResult too"


def previous(*addresses):
    return net("10.1.2.0/24", "10.1.3.0/24",
               top={"prevResult": {"cniVersion": "1.0.0", "ips": [{"address": a} for a in addresses]}})


held2 = {"10.1.2.2": DUMMY, "10.1.3.2": holder("other")}
for v in NEW:
    for addresses, want in ((("10.1.2.2/24",), nothing), (("10.1.2.3/24",), starts("")),
                            (("10.1.2.2/24", "10.1.3.2/24"), starts(""))):
        row("CHECK", previous(*addresses), check(want if want is nothing else Per(nothing, want, COMPARES)), held2, state=held2,
            versions=(v,))


def late_row(config, command, want, files, **more):
    row(command, config, Step(command, want), files, versions=("1.1.0",), only="croft", **more)


full = {"10.0.0.2": "id", "lock": ""}
late_row(net("10.0.0.0/30"), "STATUS", nothing, full, state=full)
late_row(net("10.0.0.0/30", statusWhenFull=True), "STATUS", starts("", 50), full, state=full)
late_row(net(), "STATUS", starts("", 50), ANY)
late_row(net("10.0.0.0/30", dataDir="@T@/file/d"), "STATUS", starts("", 50), NOTHING, outside={"file": ""})

some = {"10.1.2.2": DUMMY, "10.1.2.3": holder("dummy", "eth1"), "10.1.2.4": holder("b"), "10.1.2.5": "legacy"}
beside = {"lock": "", **cursors("10.1.2.4"), "note": DUMMY, "sub": DIRECTORY, "sub/10.1.2.9": DUMMY}
for valid, gone in ((None, ()), ([], some), (["dummy eth0", "legacy eth7"], ("10.1.2.3", "10.1.2.4"))):
    listed = [dict(zip(("containerID", "ifname"), text.split())) for text in valid or ()]
    late_row(net("10.1.2.0/24", top={} if valid is None else {"cni.dev/valid-attachments": listed}), "GC", nothing,
             {**{name: text for name, text in some.items() if name not in gone}, **beside}, state={**some, **beside})

# ---- running them ------------------------------------------------------------------------------------------------


def pick(value, who):
    return getattr(value, who) if isinstance(value, Per) else value


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
    path = place / "d" / NETWORK / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is DIRECTORY:
        path.mkdir(exist_ok=True)
    elif content is LINK:
        path.symlink_to(place / "target")
    else:
        path.write_bytes(content.encode())
        path.chmod(0o750 if name == "lock" else 0o600)
    return path


def directory(place):
    """Everything below the data directory: name -> (mode, content); directories with content None."""
    found, top = {}, place / "d"
    for path in sorted(top.rglob("*")) if top.exists() else ():
        name = str(path.relative_to(top))
        if name.split("/")[0] != HINTS:
            found[name] = (path.stat().st_mode & 0o7777, None if path.is_dir() else path.read_bytes().decode())
    return found


def compare_directory(row_, files, place, who):
    """What is not as expected, as texts."""
    found, wanted = directory(place), {}
    if files is not NOTHING:
        wanted = {NETWORK: DIRECTORY, f"{NETWORK}/lock": "", **{f"{NETWORK}/{name}": content for name, content in files.items()}}
    wrong = []
    for name in sorted(set(found) | set(wanted)):
        if name not in found:
            wrong.append(f"{name} is missing, expected {wanted[name]!r}")
        elif name not in wanted:
            wrong.append(f"{name} is there: {found[name][1]!r}")
        else:
            mode, content = found[name]
            expected = wanted[name]
            alternatives = expected if isinstance(expected, tuple) else (expected,)
            if content not in [None if a is DIRECTORY else a for a in alternatives]:
                wrong.append(f"{name} holds {content!r}, expected {expected!r}")
            state = name.split("/", 1)[-1] in row_.state
            if content is None:
                modes = {0o755}
            elif name.endswith("/lock"):
                modes = {0o750}
            elif who == "croft":
                modes = {0o600}
            else:
                modes = {0o600, 0o644} if state else {0o644}
            if mode not in modes:
                wrong.append(f"{name} has mode {mode:o}, expected {' or '.join(f'{m:o}' for m in modes)}")
    return wrong


class Table:
    def __init__(self, world, binaries):
        self.world, self.binaries = world, binaries
        self.calls, self.failed = 0, []

    def run(self, row_):
        for version in row_.versions:
            outputs = {}
            for who in NAMES:
                if row_.only not in (None, who) or version not in OF[who]:
                    continue
                place = self.world.directory / "row"
                place.mkdir()
                wrong, outputs[who] = self.once(row_, version, who, place)
                if wrong:
                    given = config_bytes(row_, row_.steps[-1], version, place).decode("utf-8", "replace")[:1000]
                    self.failed.append(f"row {row_.rows} {who} {version}: {'; '.join(wrong)} [{given}]")
                shutil.rmtree(place)
            if len(outputs) == 2:
                self.compare(row_, version, outputs)

    def compare(self, row_, version, outputs):
        """Both succeeded: the same bytes. From 1.0.0 on later libraries print another order (section 1.9)."""
        for step, one, other in zip(row_.steps, outputs["reference"], outputs["croft"]):
            if one.code == other.code == 0 and not isinstance(step.want, Per) and one.out != other.out:
                if version >= "1" and one.out and json.loads(one.out) == {"dns": {}, **json.loads(other.out)}:
                    continue
                if version in LIST and row_.rows == "results":
                    continue  # members of routes that cni 1.1 does not know
                self.failed.append(f"row {row_.rows} {version} {step.command}: the programs differ: {one.out!r} and "
                                   f"{other.out!r}")

    def once(self, row_, version, who, place):
        for name, content in row_.outside.items():
            (place / name).write_text(content, encoding="utf-8")
        hour_ago = time.time() - 3600
        for name, content in row_.state.items():
            path = put(place, name, content)
            if name not in row_.young:
                os.utime(path, (hour_ago, hour_ago))
        wrong, answers = [], []
        for i, step in enumerate(row_.steps, 1):
            answers.append(self.call(step, config_bytes(row_, step, version, place), who))
            wrong += [f"step {i} {step.command} {step.container}: {text}" for text in judge(
                answers[-1], step, pick(step.want, who), who, version, place)]
        files = pick(row_.files, who)
        if files is not ANY:
            wrong += [f"afterwards: {text}" for text in compare_directory(row_, files, place, who)]
        elif any(n.split("/")[-1].startswith(".croft") for n in directory(place)):
            wrong.append(f"afterwards: a temporary file is left: {sorted(directory(place))}")
        return wrong, answers

    def call(self, step, config, who):
        self.calls += 1
        environment = {"container": step.container, "ifname": step.ifname, **step.env}
        if step.stdin_path is None:
            return self.binaries.call(who, step.command, config, **environment)
        # A directory as standard input: it cannot be read.
        with self.binaries.start(who, step.command, stdin=os.open(step.stdin_path, os.O_RDONLY), **environment) as process:
            out, err = process.communicate(timeout=30)
        return Answer(process.returncode, out, err.decode())


def judge(answer, step, want, who, version, place):
    """What is wrong with an answer, as texts."""
    out, wrong = answer.text(), []
    if want.matches:
        try:
            right = want.matches(out, place)
        except (ValueError, KeyError, TypeError, AttributeError):
            right = False
        expected = want.text
    else:
        expected = want.text(who, version, place)
        right = out == expected
    if answer.code != want.code or not right:
        wrong.append(f"expected exit {want.code} {expected!r}, got exit {answer.code} {out!r}")
    if step.stderr and not re.fullmatch(step.stderr, answer.err):
        wrong.append(f"expected standard error {step.stderr!r}, got {answer.err!r}")
    return wrong


def test():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--row")
    options = parser.parse_args()
    os.umask(0o022)
    with World("host-local-table", options.bin_dir) as world:
        table = Table(world, Binaries(world))
        for row_ in ROWS:
            if options.row in (None, row_.rows):
                table.run(row_)
        for line in table.failed:
            say(line)
        say(f"{len(ROWS)} rows, {table.calls} calls, {len(table.failed)} failures")
        if table.failed:
            raise Failure(f"{len(table.failed)} expectations are not met")


main(test)
