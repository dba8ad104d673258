"""The agent of a node on a real etcd: what calls through it cost, and what it does when etcd is compacted. One that is stopped or killed: agent.py, burst.py."""

import json
import time

from etcd_lib import Etcd, Node
from lib import expect, expect_equal, main, say, start_agent, wait_for, wait_for_agents_memory


def agent_of(world, store, name, *options):
    """Of a node, once it knows it."""
    agent = start_agent(world, store, name, world.directory / f"{name}.sock", *options)
    wait_for_agents_memory(world, agent.socket)
    return agent


class NodeWithAgent(Node):
    def __init__(self, world, store, agent, name):
        super().__init__(world, store, name)
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
    # docs/promises.md#budget-round-trips; of later ADDs and DELs: costs.txt.
    made = etcd.requests_of(lambda: Node(world, etcd.store, "elm").add("warm-elm"))
    expect(sum(made.values()) <= 5, f"a node's first ADD, by the plugin alone, makes {made}")
    agent = agent_of(world, etcd.store, "oak")
    oak = NodeWithAgent(world, etcd.store, agent, "oak")
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
    agent.end(10)


if __name__ == "__main__":
    main(test)
