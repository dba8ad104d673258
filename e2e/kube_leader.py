"""Two controllers on a real kube-apiserver: who leads after a SIGTERM, a SIGKILL and a SIGSTOP of the leader, which writes nothing more."""

import datetime
import re
import signal
import time

import lib
from kube_store import OWN, write_kubeconfig
from lib import expect, expect_equal, say, wait_for
from metrics import free_port, scrape

LEASE = "/apis/coordination.k8s.io/v1/namespaces/croft-system/leases/croftd-controller"
LEADS = "this controller leads now"
# Lease durations in ms. By the first nobody takes over before the Lease is given back: that takes a few seconds.
LONG, SHORT = 15_000, 2000
STATUS = 'leader_election_master_status{name="croftd-controller"}'


class Controller(lib.Controller):
    """Gives every node a range, a pass every 0.2 s; with its Lease in ms."""

    def __init__(self, world, store, name, duration, *flags, with_metrics=False, allocates=True):
        self.metrics = f"127.0.0.1:{free_port()}"
        super().__init__(world, store, name, "--interval", "200ms",
                         *(["--allocate-node-cidrs", "--cluster-cidr", "10.244.0.0/16"] if allocates else []),
                         *(["--metrics-bind-address", self.metrics] if with_metrics else []),
                         "--leader-elect-lease-duration-ms", str(duration), *flags)

    def times_of(self, text):
        return self.log().count(text)

    def leads(self):
        return LEADS in self.log()

    def gave(self):
        """The nodes that it gave a range."""
        return re.findall(r"controller: node (\S+) got ", self.log())

    def said_at(self, text):
        """When its log had that first."""
        line = next(line for line in self.log().splitlines() if text in line)
        return datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00"))


def has_range(kube, node):
    return any(item["spec"]["node"] == node for item in kube.call("GET", f"{OWN}/croftnoderanges")["items"])


def told_to_end(world, kube, store):
    """The leader gives the Lease back, and the other one finds that with its next try."""
    first = Controller(world, store, "first", LONG)
    wait_for(first.leads, "the first leads")
    lease = kube.call("GET", LEASE)["spec"]
    second = Controller(world, store, "second", LONG, with_metrics=True)
    waits = f"{lease['holderIdentity']} leads by the Lease croft-system/croftd-controller; this controller waits"
    wait_for(lambda: waits in second.log(), "the second says who leads")
    expect_equal(scrape(second.metrics)[STATUS], 0, "the metric of the second")
    begin = datetime.datetime.now(datetime.timezone.utc)
    first.end()
    wait_for(second.leads, "the second leads", 10)
    took = [(who.said_at(text) - begin).total_seconds() for who, text in ((first, "the Lease is given back"), (second, LEADS))]
    say(f"after a SIGTERM: the Lease is given back after {took[0]:.3f} s, another leads after {took[1]:.3f} s")
    expect(took[0] < 1 and took[1] < 4.4 + 1.5, "as if nobody had given it back")
    second.end()
    expect_equal(kube.call("GET", LEASE)["spec"].get("holderIdentity", ""), "", "who holds it at the end")


def killed_and_stopped(world, kube, store):
    one = Controller(world, store, "one", SHORT)
    wait_for(one.leads, "one leads")
    two = Controller(world, store, "two", SHORT, with_metrics=True)
    wait_for(lambda: "this controller waits" in two.log(), "two waits")
    begin = time.monotonic()
    one.kill()
    wait_for(lambda: LEADS in two.log(), "two leads", 20)
    took = time.monotonic() - begin
    say(f"after a SIGKILL: another leads after {took:.2f} s, by a Lease of 2 s")
    expect(took > 2 - 0.3, "the Lease was taken before it was over")
    expect(took < 2 + 0.3 * 2.2 + 3, f"another led only after {took:.2f} s")

    three = Controller(world, store, "three", SHORT)
    wait_for(lambda: "this controller waits" in three.log(), "three waits")
    kube.make_node("n3")
    wait_for(lambda: two.gave() == ["n3"], "two works")
    two.send_signal(signal.SIGSTOP)
    wait_for(lambda: LEADS in three.log(), "three leads", 20)
    # With the new leader stopped too, only the old one could give a range.
    three.send_signal(signal.SIGSTOP)
    kube.make_node("n4")
    two.send_signal(signal.SIGCONT)
    wait_for(lambda: "no longer the leader" in two.log(), "two sees that it leads no more")
    expect_equal((two.gave(), scrape(two.metrics)[STATUS], has_range(kube, "n4")), (["n3"], 0, False), "what two did")
    led = two.times_of(LEADS)
    three.send_signal(signal.SIGCONT)
    wait_for(lambda: has_range(kube, "n4"), "one of them leads again", 20)
    say(f"after a SIGSTOP: two had led {led} times, three gave {three.gave()}, two gave {two.gave()}")
    if "n4" in two.gave():
        expect_equal(two.times_of(LEADS), led + 1, "it gave the range in a term of its own")
    for who in (two, three):
        who.end()
    given = two.gave() + three.gave()
    expect_equal(sorted(given), sorted(set(given)), "each range was given once")


def play(world, kube):
    store = f"kube:{write_kubeconfig(world, kube, 'croft-controller')}"
    begin = time.monotonic()
    told_to_end(world, kube, store)
    killed_and_stopped(world, kube, store)
    say(f"all in {time.monotonic() - begin:.0f} s")
