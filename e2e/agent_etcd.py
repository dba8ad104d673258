"""The agent of a node on a real etcd: what calls through it cost, and what it does when etcd is compacted. One that is killed or stopped: agent.py."""

import json
import subprocess
import time

from etcd import Node
from etcd_lib import Etcd
from lib import Killable, expect, expect_equal, main, say, wait_for, wait_for_agents_memory


class NodeAgent(Killable):
    def __init__(self, world, etcd, name, *options):
        self.world, self.socket = world, world.directory / f"{name}.sock"
        self.command = [world.bin / "croftd", "agent", "--store", etcd.store, "--socket", self.socket, "--node", name, *options]
        self.log = world.directory / f"{name}.log"
        world.stack.callback(self.kill)
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        wait_for_agents_memory(self.world, self.socket)


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


def test(world):
    etcd = Etcd(world)
    world.pool(etcd.store, "a", "10.81.0.0/20", "--block-size", "26")
    agent = NodeAgent(world, etcd, "oak")
    oak = NodeWithAgent(world, etcd, agent, "oak")
    oak.add("first")
    oak.warm(etcd)
    for what, call in (("ADD", lambda: oak.add("second")), ("DEL", lambda: oak.delete("second"))):
        made = etcd.requests_of(call)
        expect_equal(made, {"Txn": 1}, f"{what} through the agent")
    expect(oak.paths()[0] >= 3, f"served by the agent: {oak.paths()}")
    say("ADD and DEL through the agent: one request to etcd each")

    # What others do meanwhile is seen: an address that is released elsewhere is not given back twice.
    alone = Node(world, etcd.store, "oak")
    alone.ipam["agent"] = "none"
    address = oak.add("third")
    alone.delete("third")
    expect_equal(oak.add("third")[0].split("/")[1], address[0].split("/")[1], "again")
    held = {row["containerId"] for row in world.held(etcd.store).values()}
    expect_equal({name for name in held if not name.startswith("warm")}, {"first", "third"}, "held")

    # etcd is compacted and restarted under the agent: it reads everything anew.
    revision = json.loads(etcd.ctl("endpoint", "status", "-w", "json").stdout)[0]["Status"]["header"]["revision"]
    etcd.ctl("compact", str(revision))
    etcd.kill()
    etcd.start()
    for i in range(5):
        oak.add(f"later{i}")
    oak.warm(etcd)
    say("a compacted and restarted etcd: the agent recovers")
    world.cli(etcd.store, "check")
    agent.process.terminate()
    expect_equal(agent.process.wait(10), 0, "SIGTERM")
    agent.process = None


if __name__ == "__main__":
    main(test)
