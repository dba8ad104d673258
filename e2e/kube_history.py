"""The history on a real kube-apiserver: each answer is right, or says that it is not known; also while watches say nothing more."""

import random
import time
import types

import who_held
from held_lib import asked_back
from kube_relay import Relay
from kube_store import write_kubeconfig
from lib import expect, run, wait_for

CHURN_SECONDS, SILENT_SECONDS = 25, 12


def play(world, kube):
    dice = random.Random(7)
    kube.make_node("node-a")
    run(world.bin / "croft", "--store", f"kube:{write_kubeconfig(world, kube, 'croft-operator')}", "pool", "create", "pods", "--cidr",
        "10.79.0.0/27", "--block-size", "27", "--cooldown-seconds", "3")
    relay = Relay(world, kube)
    way = types.SimpleNamespace(store=f"kube:{relay.kubeconfig(write_kubeconfig(world, kube, 'croft-controller'))}")
    recorded = who_held.Recorded(world, f"kube:{write_kubeconfig(world, kube, 'croft-node')}", way)
    recorded.begin()
    since = time.time()
    who_held.churn(recorded, dice, CHURN_SECONDS, kills=False)
    until = time.time() - 2
    # An API server says once a minute how far a quiet watch is.
    wait_for(lambda: recorded.reaches(until), "the history is as far as the last pod", 150)
    tally = asked_back(recorded, dice, since, until)
    expect(tally["right"] > 0, f"{tally}: something is known")

    relay.stalled = True
    began = time.time()
    living, _ = who_held.churn(recorded, dice, SILENT_SECONDS, kills=False)
    ended = time.time()
    expect(relay.swallowed, "a watch had to say something")
    expect(not recorded.reaches(began + 3), "a silent watch proves nothing")
    recorded.stop()
    relay.stalled = False
    recorded.begin()
    wait_for(lambda: recorded.reaches(ended), "the history is as far as that", 150)
    asked_back(recorded, dice, began, ended)
    for pod, address in living.items():
        recorded.delete(pod, address)
