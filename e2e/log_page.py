"""docs/log.md shows a line of each kind that plugins and agent write, with the words and fields of real ones.

usage: log_page.py BIN_DIR [--print]     --print: the real lines, to write the page anew
"""

import json
import re
import subprocess
import sys

from lib import TREE, call_environment, expect, expect_equal, main, run, start_agent, wait_for

PAGE = TREE / "docs/log.md"
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=5f0c4d0e-1c52-4b1f-9a57-3f3f6f4a7d10"
CONTAINER = "8c1f6d0b9a7e"


class Rig:
    def __init__(self, world):
        self.world, self.store = world, world.store()
        self.logs = world.directory / "logs"
        self.logs.mkdir()

    def call(self, program, command, ipam, container=CONTAINER, tombstones="none", **more):
        config = {"cniVersion": "1.1.0" if program != "calico-ipam" else "1.0.0", "name": "k8s-pod-network", **more,
                  "ipam": {"type": program, **ipam}}
        env = call_environment(self.world, command, container, POD, CROFT_LOG_DIRECTORY=str(self.logs), CROFT_TOMBSTONES=str(tombstones))
        done = subprocess.run([self.world.bin / program], input=json.dumps(config), env=env, capture_output=True, text=True,
                              timeout=60, check=False)
        return json.loads(done.stdout) if done.stdout else None

    def lines(self):
        return (self.logs / "ipam.log").read_text().splitlines()


def croft_ipam(rig):
    pools = [{"name": "pods", "cidr": "10.64.0.0/29", "blockSize": 29, "gateway": "none"}]
    ipam = {"store": rig.store, "nodename": "node-a", "agent": "none", "pools": pools}
    answer = rig.call("croft-ipam", "ADD", ipam)
    rig.call("croft-ipam", "ADD", ipam)
    rig.call("croft-ipam", "CHECK", ipam, prevResult={**answer, "cniVersion": "1.1.0"})
    for i in range(8):
        rig.call("croft-ipam", "ADD", ipam, container=f"c{i}")
    rig.call("croft-ipam", "DEL", ipam)
    rig.call("croft-ipam", "GC", ipam, **{"cni.dev/valid-attachments": []})
    rig.call("croft-ipam", "STATUS", {**ipam, "store": "sqlite:/proc/none/croft.db"})


def left_for_later(rig):
    """A DEL that finds no store; and what it left, as if it had been of the one that is there."""
    place = rig.world.directory / "tombstones"
    ipam = {"store": "etcd:http://127.0.0.1:1", "nodename": "node-a", "agent": "none"}
    rig.call("croft-ipam", "DEL", ipam, container="c1", tombstones=place)
    left, = place.glob("*.json")
    left.write_text(json.dumps({**json.loads(left.read_text()), "store": rig.store}))
    rig.call("croft-ipam", "DEL", {**ipam, "store": rig.store}, container="c2", tombstones=place)


def host_local(rig):
    ipam = {"dataDir": str(rig.world.directory / "networks"), "ranges": [[{"subnet": "10.65.0.0/30"}]]}
    answer = rig.call("host-local", "ADD", ipam)
    rig.call("host-local", "CHECK", ipam, prevResult={**answer, "cniVersion": "1.1.0"})
    rig.call("host-local", "ADD", ipam, container="c0")
    rig.call("host-local", "DEL", ipam)
    rig.call("host-local", "GC", ipam, **{"cni.dev/valid-attachments": []})


def calico_ipam(rig):
    run(rig.world.bin / "croft", "--store", rig.store, "pool", "create", "more", "--cidr", "10.66.0.0/24")
    top = {"nodename": "node-a", "ipam_lock_file": str(rig.world.directory / "lock/ipam.lock")}
    rig.call("calico-ipam", "ADD", {"store": rig.store, "ipv4_pools": ["more"]}, **top)
    rig.call("calico-ipam", "ADD", {"store": rig.store, "ipv4_pool": ["more"], "ipv4_pools": ["pods"]}, container="c9", **top)
    rig.call("calico-ipam", "DEL", {"store": rig.store}, **top)


def agent(rig):
    socket, errors = rig.world.directory / "agent.sock", rig.world.directory / "agent.log"
    daemon = start_agent(rig.world, rig.store, "node-a", socket, "--log-calls")
    ipam = {"store": rig.store, "nodename": "node-a", "agent": str(socket), "ipv4_pools": ["more"]}
    for command in ("ADD", "DEL"):
        rig.call("croft-ipam", command, ipam, container="by-agent")
    wait_for(lambda: "DEL" in errors.read_text(), "the agent's lines")
    daemon.terminate()
    expect_equal(daemon.wait(20), 0, "exit code of the agent")
    return errors.read_text().splitlines()


def shape(line):
    """The words of a line and the names of its fields, without times and values."""
    line = re.sub(r'"(\\.|[^"\\])*"', "Q", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT\S+Z", "TIME", line)
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC", "TIME", line)
    if re.match(r"TIME \w+ agent: (?!TIME)", line):
        line = re.sub(r"(agent: \w+).*", r"\1", line)  # a sentence
    return " ".join(word.split("=")[0] + "=" if "=" in word else word for word in line.split())


def test(world):
    rig = Rig(world)
    croft_ipam(rig)
    left_for_later(rig)
    host_local(rig)
    calico_ipam(rig)
    daemon = agent(rig)
    real = rig.lines() + daemon
    if "--print" in sys.argv:
        return print("\n".join(real))
    written = {shape(line) for line in real}
    page = [line for line in PAGE.read_text().splitlines() if re.match(r"\d{4}-\d\d-\d\d[ T]", line)]
    shown = {shape(line) for line in page}
    expect(not shown - written, f"on the page, but not written: {sorted(shown - written)}; written: {sorted(written)}")
    kinds = {re.sub(r" (\S+=)", "", one) for one in written if " agent: " not in one or " agent: TIME" in one}
    told = {re.sub(r" (\S+=)", "", one) for one in shown}
    expect(not kinds - told, f"written, but not on the page: {sorted(kinds - told)}")
    for field in ("pod=shop/web-0", "node=node-a", "cni="):
        expect(any(field in line for line in rig.lines()) and any(field in line for line in page), field)


main(test)
