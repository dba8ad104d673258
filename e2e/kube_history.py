"""The history on a real kube-apiserver: each answer is right, or says that it is not known; also while watches say nothing more."""

import random
import signal
import time
import types

import who_held
from kube_relay import Relay
from kube_store import write_kubeconfig
from lib import expect, run, wait_for

CHURN_SECONDS, SILENT_SECONDS = 25, 12


def begin(recorded, log):
    before = log.read_text().count("are recorded in") if log.exists() else 0
    recorded.start()
    wait_for(lambda: log.read_text().count("are recorded in") > before, "the history is begun", 30)


def is_of_now(recorded, at):
    return recorded.who("10.79.0.1", at)["known"].startswith("as of")


def play(world, kube):
    dice, log = random.Random(7), world.directory / "controller.log"
    kube.make_node("node-a")
    run(world.bin / "croft", "--store", f"kube:{write_kubeconfig(world, kube, 'croft-operator')}", "pool", "create", "pods", "--cidr",
        "10.79.0.0/27", "--block-size", "27", "--cooldown-seconds", "3")
    relay = Relay(world, kube)
    way = types.SimpleNamespace(store=f"kube:{relay.kubeconfig(write_kubeconfig(world, kube, 'croft-controller'))}")
    recorded = who_held.Recorded(world, f"kube:{write_kubeconfig(world, kube, 'croft-node')}", way)
    begin(recorded, log)
    since = time.time()
    who_held.churn(recorded, dice, CHURN_SECONDS, kills=False)
    until = time.time() - 2
    # An API server says once a minute how far a quiet watch is.
    wait_for(lambda: not is_of_now(recorded, until), "the history is as far as the last pod", 150)
    tally = who_held.asked_back(recorded, dice, since, until)
    expect(tally["right"] > 0, f"{tally}: something is known")

    relay.stalled = True
    began = time.time()
    living, _ = who_held.churn(recorded, dice, SILENT_SECONDS, kills=False)
    ended = time.time()
    expect(relay.swallowed, "a watch had to say something")
    expect(is_of_now(recorded, began + 3), "a silent watch proves nothing")
    recorded.stop(signal.SIGTERM)
    relay.stalled = False
    begin(recorded, log)
    wait_for(lambda: not is_of_now(recorded, ended + 2), "the history is as far as that", 150)
    who_held.asked_back(recorded, dice, began, ended)
    recorded.stop(signal.SIGTERM)
    for pod, address in living.items():
        recorded.delete(pod, address)
