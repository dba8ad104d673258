"""What an ADD that died has on its way to a kube-apiserver: its block's write comes after its DEL, and takes no address."""


from etcd import Node
from kube_agent import findings
from kube_relay import Relay
from kube_store import CALICO, write_kubeconfig
from lib import expect, expect_equal, say, wait_for



def handles(kube):
    return sorted(item["spec"]["handleID"] for item in kube.call("GET", f"{CALICO}/ipamhandles")["items"])


def late(world, kube, store, relay, oak, beyond, container, what, mark, counted=True):
    """The ADD is killed as its block is on the way, the DEL goes past the relay."""
    relay.hold = mark
    adding = beyond.start("ADD", container)
    wait_for(lambda: relay.held, f"{what} is on its way")
    expect_equal(f"net.{container}" in handles(kube), counted, f"{what}: its handle was first: {handles(kube)}")
    adding.kill()
    adding.communicate()
    oak.delete(container)
    relay.release()
    wait_for(lambda: not relay.waiting, f"{what} is answered")
    held = {row["containerId"] for row in world.held(store).values()}
    expect(container not in held, f"{what}: its DEL is done, and it holds an address: {held}, handles {handles(kube)}")
    oak.delete(container)
    expect(f"net.{container}" not in handles(kube), f"{what}: {handles(kube)}")
    say(f"{what} after the DEL of its ADD takes no address, and no handle is left")


def play(world, kube):
    store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    of_nodes = write_kubeconfig(world, kube, "croft-node")
    kube.make_node("oak")
    world.pool(store, "p", "10.80.0.0/16", "--gateway", "none")
    relay = Relay(world, kube)
    oak, beyond = Node(world, f"kube:{of_nodes}", "oak"), Node(world, f"kube:{relay.kubeconfig(of_nodes)}", "oak")
    at_work = world, kube, store, relay, oak, beyond
    late(*at_work, "c1", "a new block", b'"allocations":[null', counted=False)
    late(*at_work, "c2", "its first address", b'"allocations":[0')
    oak.add("lives")
    late(*at_work, "c3", "one address more", b'"allocations":[0')
    expect_equal(sorted(row["containerId"] for row in world.held(store).values()), ["lives"], "who holds")
    # A claim on its way died with its ADD: the node's next claim takes it up.
    expect_equal([one for one in findings(world, store) if one[0] not in ("affinity_unconfirmed", "affinity_stale")], [], "croft check")
