"""The agent of a node on a real etcd: what calls through it cost, and what happens when it is killed or stopped.

usage: agent_etcd.py BIN_DIR
"""

import json
import signal
import subprocess
import sys
import time

from etcd import Node
from etcd_lib import Etcd
from lib import World, call_environment, expect, expect_equal, main, run, say, wait_for, wait_for_agents_memory


class NodeAgent:
    def __init__(self, world, etcd, name, *options):
        self.world, self.socket = world, world.directory / f"{name}.sock"
        self.command = [world.bin / "croftd", "agent", "--store", etcd.store, "--socket", self.socket, "--node", name, *options]
        self.log = world.directory / f"{name}.log"
        self.process = None
        world.stack.callback(self.kill)
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        wait_for_agents_memory(self.world, self.socket)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None


class NodeWithAgent(Node):
    def __init__(self, world, etcd, agent, name):
        super().__init__(world, etcd.store, name)
        self.ipam["agent"] = str(agent.socket)

    def warm(self, etcd):
        """Adds until the agent knows all that an ADD needs."""
        wait_for(lambda: etcd.requests_of(lambda: self.add(f"warm{time.monotonic_ns()}")) == {"Txn": 1}, "one request an ADD", 20)

    def paths(self):
        """How the calls so far were served."""
        text = (self.world.directory / "ipam.log").read_text()
        return text.count("via=agent"), text.count("via=store")


def calico_call(world, etcd, agent, command, container, node):
    config = {"cniVersion": "0.3.1", "name": "k8s-pod-network", "type": "calico", "nodename": node,
              "datastore_type": "etcdv3", "etcd_endpoints": etcd.url, "log_file_path": str(world.directory / "c.log"),
              "ipam": {"type": "calico-ipam"}, "ipam_lock_file": str(world.directory / "ipam.lock")}
    done = run(world.bin / "calico-ipam", check=False, stdin=json.dumps(config),
               env=call_environment(world, command, container, CROFT_AGENT=str(agent.socket)))
    expect_equal(done.returncode, 0, f"calico-ipam {command}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout) if done.stdout.strip() else None


def test():
    with World("agent-etcd", sys.argv[1]) as world:
        etcd = Etcd(world)
        world.croft(etcd.store, "pool", "create", "a", "--cidr", "10.81.0.0/20", "--block-size", "26",
                    "--cooldown-seconds", "0")
        agent = NodeAgent(world, etcd, "oak")
        oak = NodeWithAgent(world, etcd, agent, "oak")
        oak.add("first")
        oak.warm(etcd)
        for what, call in (("ADD", lambda: oak.add("second")), ("DEL", lambda: oak.delete("second"))):
            made = etcd.requests_of(call)
            expect_equal(made, {"Txn": 1}, f"{what} through the agent")
        expect(oak.paths()[0] >= 3, f"served by the agent: {oak.paths()}")
        say("ADD and DEL through the agent: one request to etcd each")

        made = etcd.requests_of(lambda: calico_call(world, etcd, agent, "ADD", "c1", "oak"))
        expect_equal(made, {"Txn": 1}, "calico-ipam ADD through the agent")
        calico_call(world, etcd, agent, "DEL", "c1", "oak")

        # What others do meanwhile is seen: an address that is released elsewhere is not given back twice.
        alone = Node(world, etcd.store, "oak")
        alone.ipam["agent"] = "none"
        address = oak.add("third")
        alone.delete("third")
        expect_equal(oak.add("third")[0].split("/")[1], address[0].split("/")[1], "again")
        held = {row["containerId"] for row in world.held(etcd.store).values()}
        expect_equal({name for name in held if not name.startswith("warm")}, {"first", "third"}, "held")

        for how in (signal.SIGSTOP, signal.SIGKILL):
            agent.process.send_signal(how)
            start = time.monotonic()
            oak.add(f"without-{how}")
            took = time.monotonic() - start
            expect(took < 4, f"the plugin waited {took:.1f} s for an agent that does not answer")
            oak.delete(f"without-{how}")
            if how == signal.SIGSTOP:
                agent.process.send_signal(signal.SIGCONT)
                wait_for_agents_memory(world, agent.socket)
        agent.kill()
        agent.start()
        before = oak.paths()[0]
        oak.add("after")
        expect(oak.paths()[0] > before, "the new agent serves")
        say("stopped, killed and started again: the plugin always answers")

        # etcd is compacted and restarted under the agent: it reads everything anew.
        revision = json.loads(etcd.ctl("endpoint", "status", "-w", "json").stdout)[0]["Status"]["header"]["revision"]
        etcd.ctl("compact", str(revision))
        etcd.kill()
        etcd.start()
        for i in range(5):
            oak.add(f"later{i}")
        oak.warm(etcd)
        say("a compacted and restarted etcd: the agent recovers")
        findings = run(world.bin / "croft", "--store", etcd.store, "check", check=False)
        expect_equal(findings.returncode, 0, f"croft check: {findings.stdout}")
        memory = int(next(line.split()[1] for line in open(f"/proc/{agent.process.pid}/status") if "VmHWM" in line))
        say(f"the agent's memory: {memory / 1024:.1f} MiB")
        agent.process.terminate()
        expect_equal(agent.process.wait(10), 0, "SIGTERM")
        agent.process = None


if __name__ == "__main__":
    main(test)
