#!/usr/bin/env python3
"""What one ADD does, alone and through the agent: system calls (strace -c -f), page faults, and on etcd its requests and
the bytes on the wire, counted at a relay. Rows without a budget.

usage: bench/add_profile.py BUILD_DIR      e.g. build/release
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rows  # noqa: E402
from etcd_lib import Etcd  # noqa: E402
from lib import World, own_environment, run, start_agent, wait_for, wait_for_agents_memory  # noqa: E402

NODE = "bench"
CALLS = 20
SETTLE = 0.2  # seconds; the agent's watch brings its own write back a moment later


class Relay:
    """Passes connections on to a port of this machine and counts the bytes of both ways."""

    def __init__(self, port):
        self.target, self.bytes, self.lock = port, 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            for source, sink in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.pass_on, args=(source, sink), daemon=True).start()

    def pass_on(self, source, sink):
        try:
            while piece := source.recv(65536):
                with self.lock:
                    self.bytes += len(piece)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side has gone


class Adds:
    """Calls of the plugin on one store, each for a new container."""

    def __init__(self, world, build, name, store, agent):
        self.world, self.bench = world, build / "bench"
        self.name, self.store, self.agent, self.count = name, store, agent, 0

    def call(self, *before):
        self.count += 1
        config = {"cniVersion": "1.0.0", "name": "net", "ipam": {
            "type": "croft-ipam", "store": self.store, "nodename": NODE, "agent": str(self.agent or "none"),
            "log_file_path": str(self.world.directory / "ipam.log")}}
        environment = {"PATH": os.environ["PATH"], "CNI_COMMAND": "ADD", "CNI_CONTAINERID": f"{self.name}-{self.count}",
                       "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": str(self.world.bin),
                       **own_environment(self.world.directory)}
        return run(*before, self.world.bin / "croft-ipam", stdin=json.dumps(config), env=environment)

    def record(self, part, what, value, unit, **more):
        how = "through the agent" if self.agent else "alone"
        place = self.store.split(":")[0]
        text = f"{what} of an ADD {how}, {place}"
        print(f"{text:<58}{value:>9,.0f} {unit}", flush=True)
        rows.record(f"profile.{place}.{'agent' if self.agent else 'alone'}.{part}", text, value, unit, **more)

    def faults(self):
        found = [[int(n) for n in self.call(self.bench / "peak_memory").stderr.split()] for _ in range(CALLS)]
        self.record("faults", "page faults", statistics.median(minor + major for _, minor, major in found), "faults")

    def system_calls(self):
        trace = self.world.directory / "trace"
        counts = []
        for _ in range(CALLS):
            self.call("strace", "-c", "-f", "-o", trace)
            counts.append(total_of(trace.read_text()))
        self.record("calls", "system calls", statistics.median(counts), "calls")


def total_of(summary):
    """Calls in a summary of `strace -c`. Added up here: in its own last line columns may be missing."""
    between = summary.split("\n------ ")[1]
    return sum(int(line.split()[3]) for line in between.splitlines()[1:] if line.strip())


def may_trace():
    """Why strace cannot be used; nothing when it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    done = subprocess.run(["strace", "-c", "-f", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else "strace may not trace here"


def alone(adds, why_not):
    adds.call()  # makes the node's first block
    adds.faults()
    if why_not:
        rows.not_measured(f"profile.{adds.store.split(':')[0]}.alone.calls", "system calls of an ADD alone", why_not)
    else:
        adds.system_calls()


def status_of(process, name):
    return int(re.search(rf"^{name}:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M).group(1))


def minor_and_major(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7]) + int(fields[9])


def agents_part(adds, process, why_not):
    before = minor_and_major(process)
    for _ in range(CALLS):
        adds.call()
    adds.record("faults.agent", "page faults in the agent", (minor_and_major(process) - before) / CALLS, "faults")
    if why_not:
        rows.not_measured(f"profile.{adds.store.split(':')[0]}.agent.calls", "system calls of an ADD through the agent", why_not)
        return
    adds.system_calls()
    trace = adds.world.directory / "agent-trace"
    tracer = subprocess.Popen(["strace", "-c", "-f", "-o", trace, "-p", str(process.pid)], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: tracer.poll() is not None or status_of(process, "TracerPid") != 0, "strace has attached")
        for _ in range(CALLS if tracer.poll() is None else 0):
            adds.call()
    finally:
        if tracer.poll() is None:
            tracer.send_signal(signal.SIGINT)
        tracer.wait()
    if not trace.exists() or not trace.read_text().strip():
        rows.not_measured(f"profile.{adds.store.split(':')[0]}.agent.calls.agent", "system calls in the agent",
                          "strace may not attach to a process here")
        return
    adds.record("calls.agent", "system calls in the agent", total_of(trace.read_text()) / CALLS, "calls")


def on_the_wire(adds, etcd, relay):
    sizes, requests = [], []
    for _ in range(CALLS):
        before, asked = relay.bytes, etcd.requests()
        adds.call()
        time.sleep(SETTLE)
        after = etcd.requests()
        sizes.append(relay.bytes - before)
        requests.append(sum(after[m] - asked.get(m, 0) for m in after))
    adds.record("bytes", "bytes on the wire", statistics.median(sizes), "bytes")
    adds.record("requests", "requests of etcd", statistics.median(requests), "requests")


def profile(world, build, store, why_not, wire=None):
    world.croft(store, "pool", "create", "a", "--cidr", "10.81.0.0/16", "--block-size", "26", "--cooldown-seconds", "0")
    lone = Adds(world, build, "lone", store, None)
    alone(lone, why_not)
    if wire:
        on_the_wire(lone, *wire)
    agent_socket = world.directory / f"{store.split(':')[0]}.sock"
    process = start_agent(world, store, NODE, agent_socket)
    wait_for_agents_memory(world, agent_socket)
    served = Adds(world, build, "served", store, agent_socket)
    served.call()
    served.faults()
    agents_part(served, process, why_not)
    if wire:
        on_the_wire(served, *wire)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    build = pathlib.Path(sys.argv[1]).resolve()
    why_not = may_trace()
    with World("profile", build / "bin") as world:
        profile(world, build, world.store(), why_not)
    if not shutil.which("etcd") or not shutil.which("etcdctl"):
        rows.not_measured("profile.etcd", "an ADD on etcd", "etcd is not installed")
        return
    with World("profile", build / "bin") as world:
        etcd = Etcd(world)
        relay = Relay(etcd.port)
        profile(world, build, f"etcd:http://127.0.0.1:{relay.port}", why_not, (etcd, relay))


main()
