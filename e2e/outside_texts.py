"""What comes from outside. Who writes a network configuration cannot make the plugins write a file outside the directory that the
machine's owner named for logs. Places in the environment that are no absolute paths, for which each directory that somebody calls
from would be another, are refused. Texts of pods, tenants, damaged records and foreign files reach no terminal as more than text.
"""

import json
import os
import re
import subprocess

from lib import begin, call_environment, expect, expect_equal, finish, ipam_config, main, run, say, write_past_croft


def call(world, store, program, command, log_file="", **env):
    config = {"cniVersion": "1.0.0", "name": "net", "nodename": "oak", "ipam_lock_file": str(world.directory / "lock" / "ipam.lock"),
              "ipam": {"type": program, "store": store}}
    (config if program == "calico-ipam" else config["ipam"])["log_file_path"] = str(log_file)
    return finish(begin(world.bin / program, json.dumps(config), call_environment(world, command, "c1", **env)))


def relative_places(world, store):
    elsewhere = world.directory / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    for program in ("croft-ipam", "calico-ipam"):
        for variable in ("CROFT_TOMBSTONES", "CROFT_AGENT"):
            for command in ("ADD", "DEL"):
                code, answer, _ = call(world, store, program, command, **{variable: "var/place"})
                expect_equal((code, answer["code"]), (1, 102), f"{program} {command} with a relative {variable}")
                expect(all(word in answer["msg"] for word in (variable, '"var/place"', "begins with /", '"none"')), f"it says why: {answer}")
    for flag in ("--tombstones", "--socket"):
        done = run(world.bin / "croftd", "agent", "--store", store, flag, "var/place", check=False)
        expect(done.returncode != 0 and flag in done.stderr and "begins with /" in done.stderr, f"the agent's {flag}: {done}")
    expect_equal(os.listdir(elsewhere), [], "what relative places left")
    say("a relative place in the environment is refused")


# What no output may hold: C0 but newline and tab, DEL, C1, marks of direction.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def expect_plain(what, data):
    text = data.decode("utf-8", errors="strict")
    found = HARMFUL.search(text)
    expect(not found, f"{what}: {found and found.group()!r} in {text!r}")


def by_every_channel(world):
    """Escape sequences in whatever comes from outside reach no terminal as more than text."""
    evil, store = "\x1b[2J\x07\u202e\u009b31m\x7f", world.store("texts")
    world.croft(store, "pool", "create", "a", "--cidr", "10.79.0.0/24")

    def call(command, container, node="node-a", **env):
        done = subprocess.run([world.bin / "croft-ipam"], input=ipam_config(store, node).encode(), capture_output=True, timeout=60, check=False,
                              env=call_environment(world, command, container, **env))
        expect_plain(f"{command} {container!r}", done.stdout + done.stderr)

    # Variables, configuration, arguments.
    call("ADD", "c3", CNI_IFNAME="eth\x1b[2J")
    call("ADD", "c\x1b]0;x")
    call("ADD", "c4", CNI_ARGS="K8S_POD_NAME=\x1b[31m;K8S_POD_NAMESPACE=\u202eabc")
    call("ADD", "c5", node="node\x1b[1m")
    call("DEL", "c5", node=evil)
    # The command line's own arguments, and what a damaged record says.
    write_past_croft(store, ("INSERT INTO records(kind,name,revision,token,checksum,value) VALUES(?,?,1,?,0,?)",
                                 (0, "p" + evil, bytes(16), evil.encode())))
    reports = world.directory / "report.json"
    reports.write_text(json.dumps({"findings": [{"subject": evil, "remedy": evil}]}))
    facts = world.directory / "facts.json"
    facts.write_text(json.dumps({"nodes": [evil]}))
    directory = world.directory / "cbr0"
    directory.mkdir()
    (directory / "10.0.0.5").write_bytes(b"c1\x1b[2J\r\neth0\xc2\x9b31m")
    (directory / f"10.0.0.6{evil}".replace("/", "")).write_bytes(b"x")
    for arguments in (("pool", "list"), ("pool", "list", "-o", "json"), ("pool", "list", "-o", "yaml"), ("ip", "list"),
                      ("ip", "list", "-o", "wide"), ("check",), ("pool", "show", evil), ("ip", "show", evil),
                      (evil,), ("ip", "release", "--from-report", str(reports)), ("block", "show", evil),
                      ("node", "label", "n" + evil, "a=b"), ("node", "label", "node-a", "a" + evil + "=b" + evil),
                      ("host-local", "check", "--dir", str(directory)), ("host-local", "list", "--dir", str(directory)),
                      ("host-local", "list", "--dir", str(directory), "-o", "json"),
                      ("host-local", "check", "--dir", str(directory), "-o", "yaml"), ("service", "list"), ("service", "create", evil), ("explain", "--node", evil)):
        done = subprocess.run([world.bin / "croft", "--store", store, *arguments], capture_output=True, check=False)
        expect_plain(f"croft {arguments!r} stdout", done.stdout)
        expect_plain(f"croft {arguments!r} stderr", done.stderr)
        expect(b"taken for a new one" not in done.stderr, "a name that no node may have is refused, and is no new node's")
        if "json" in arguments and done.stdout:
            json.loads(done.stdout)
    for arguments in (("controller", "--once", "--grace", "1ms"),
                      ("controller", "--once", "--grace", "1ms", "--facts", str(facts)), (evil,)):
        done = subprocess.run([world.bin / "croftd", *arguments], capture_output=True, check=False,
                              env={**os.environ, "CROFT_STORE": store})
        expect_plain(f"croftd {arguments!r}", done.stdout + done.stderr)
    expect_plain("the plugin's log", (world.directory / "ipam.log").read_bytes())


def log_places(world, store):
    """Of each plugin; what other places are: files_test.cc."""
    passwd, logs = world.directory / "passwd", world.directory / "logs"
    passwd.write_text("root:x:0:0\n")
    logs.mkdir()
    for program in ("croft-ipam", "calico-ipam"):
        for command in ("ADD", "DEL"):
            code, answer, err = call(world, store, program, command, passwd, CROFT_LOG_DIRECTORY=str(logs))
            expect_equal((code, err), (0, ""), f"{program} {command}: {answer}")
        last = (logs / "ipam.log").read_text().splitlines()[-1]
        expect(f'log_file_path="{passwd}"' in last and "released=" in last, f"the line of {passwd}: {last}")
    expect_equal(passwd.read_text(), "root:x:0:0\n", "somebody else's file")


def test(world):
    store = world.store()
    world.croft(store, "pool", "create", "a", "--cidr", "10.81.0.0/24", "--cooldown-seconds", "0")
    log_places(world, store)
    relative_places(world, store)
    by_every_channel(world)


main(test)
