"""The units of deploy/systemd: systemd reads them without a complaint, rates their hardening, and the daemons work under the restrictions
that can be had without systemd as init: a read-only file system, no new privileges, the unit's capabilities, umask and limits.
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess

from lib import TREE, call_ipam, expect, expect_equal, main, require_programs, run, say, skip, wait_for

UNITS = TREE / "deploy" / "systemd"
EXPOSURE_MAX = 3.5  # of systemd-analyze security: 10 is a service without any hardening
LIMITS = {"LimitCORE": "core", "LimitNOFILE": "nofile"}


def value_of(unit, name):
    found = re.findall(rf"^{name}=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    expect(found, f"{unit.name} has no {name}")
    return found[-1]


def read_by_systemd(world, unit):
    if not shutil.which("systemd-analyze"):
        say(f"{unit.name}: not verified, there is no systemd-analyze")
        return
    copy = world.directory / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace("/usr/bin/croftd", str(world.bin / "croftd")), encoding="utf-8")
    done = run("systemd-analyze", "--man=no", "verify", copy, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    expect_equal((done.returncode, ours), (0, []), f"systemd-analyze verify {unit.name}")
    done = run("systemd-analyze", "security", "--offline=yes", "--no-pager", copy, check=False)
    rated = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    expect(rated, f"systemd-analyze security: {done.stdout}{done.stderr}")
    expect(float(rated.group(1)) <= EXPOSURE_MAX, f"{unit.name} is rated {rated.group(1)}")
    say(f"{unit.name}: no complaint, exposure {rated.group(1)}")


def restricted(unit, writable, command):
    """The command under what a unit says, as far as it goes without systemd."""
    capabilities = ",".join("+" + c.removeprefix("CAP_").lower() for c in value_of(unit, "CapabilityBoundingSet").split())
    limits = [f"--{LIMITS[name]}={value_of(unit, name)}" for name in LIMITS]
    binds = "".join(f"mount --bind {shlex.quote(str(p))} {shlex.quote(str(p))}; " for p in writable)
    script = (f"set -e; {binds}mount -o remount,bind,ro /; umask {value_of(unit, 'UMask')}; "
              f"! touch /croft-must-not-write 2>/dev/null; exec \"$@\"")
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", "prlimit", *limits, "--", "setpriv",
            "--no-new-privs", "--bounding-set", f"-all,{capabilities}", "--inh-caps", "-all", *map(str, command)]


class Manager:
    """systemd's end of NOTIFY_SOCKET."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(20)

    def hear(self, wanted):
        heard = self.socket.recv(100).decode()
        expect_equal(heard, wanted, "what systemd is told")


def runs(world, unit, command, writable, ready):
    expect_equal(value_of(unit, "Type"), "notify", f"type of {unit.name}")
    expect(re.fullmatch(r"\d+min", value_of(unit, "WatchdogSec")), f"watchdog of {unit.name}")
    log, told = world.directory / f"{unit.stem}.log", world.directory / f"{unit.stem}.notify"
    manager = Manager(told)
    with open(log, "w", encoding="utf-8") as errors:
        process = subprocess.Popen(restricted(unit, writable, command), stdin=subprocess.DEVNULL, stderr=errors,
                                   env={**os.environ, "NOTIFY_SOCKET": str(told)})
    world.stack.callback(process.kill)
    try:
        wait_for(lambda: process.poll() is not None or ready(log.read_text(encoding="utf-8")), f"{unit.name} works")
        expect_equal(process.poll(), None, f"{unit.name} ended: {log.read_text(encoding='utf-8')}")
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        expect("NoNewPrivs:\t1" in status, "no-new-privs")
        for text in ("READY=1", "WATCHDOG=1"):
            manager.hear(text)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        expect_equal(process.wait(timeout=10), 0, f"exit code of {unit.name}")
        heard = "WATCHDOG=1"
        while heard == "WATCHDOG=1":
            heard = manager.socket.recv(100).decode()
        expect_equal(heard, "STOPPING=1", f"what {unit.name} says at its end")
    say(f"{unit.name}: works under its restrictions")


def test(world):
    require_programs("unshare", "setpriv", "prlimit")
    agent, controller = UNITS / "croftd-agent.service", UNITS / "croftd-controller.service"
    for unit in (agent, controller):
        read_by_systemd(world, unit)
    # Where there is one: the agent writes the plugin's kubeconfig anew there.
    expect_equal(value_of(agent, "ReadWritePaths"), "-/etc/cni/net.d", "directory of the plugin's kubeconfig")
    if os.geteuid() != 0 or run("unshare", "--mount", "true", check=False).returncode != 0:
        skip("mount namespaces need root")
    state, runtime = world.directory / "lib", world.directory / "run"
    state.mkdir(mode=0o700)
    runtime.mkdir(mode=0o755)
    store, socket = f"sqlite:{state}/croft.db", runtime / "agent.sock"
    world.croft(store, "pool", "create", "a", "--cidr", "10.84.0.0/24", "--cooldown-seconds", "0")
    words = [world.bin / "croftd", *value_of(agent, "ExecStart").split()[1:], "--store", store, "--socket", socket,
             "--node", "oak"]
    for _ in runs(world, agent, words, (state, runtime), lambda log: "serving node" in log):
        for command in ("ADD", "DEL"):
            code, answer = call_ipam(world, command, "c1", store, "oak", agent=str(socket))
            expect_equal(code, 0, f"{command}: {answer}")
        lines = (world.directory / "ipam.log").read_text(encoding="utf-8").splitlines()
        expect(all("via=agent" in line for line in lines), f"not served by the agent: {lines}")
    expect(not socket.exists(), "the socket is left")
    started = value_of(controller, "ExecStart").replace("$CROFT_CONTROLLER_FLAGS", f"--history {state}/history.db --store {store}")
    for _ in runs(world, controller, [world.bin / "croftd", *started.split()[1:]], (state,), lambda log: "are recorded in" in log):
        pass


main(test)
