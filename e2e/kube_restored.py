"""An API server whose etcd was put back to an older state, without a bumped revision: once the agent was started anew, as
docs/runbooks/restore-kubernetes-api.md says, what was written since by a plugin alone is nobody else's, and the register is
whole.

usage: kube_cases.py BIN_DIR VERSION kube_restored
"""

import json
import shutil
import time

from etcd import Node
from kube_store import write_kubeconfig
from lib import expect, expect_equal, own_environment, run, say, start_agent, wait_for


def with_all_stopped(kube, between):
    """As Kubernetes asks for it: the API servers are down while their etcd is put back."""
    kube.kill()
    kube.etcd.kill()
    between()
    kube.etcd.start()
    kube.start()


def address_of(node, container, **ipam):
    return node.add(container, **ipam)[0].split("/")[0]


def asked_again(node, container, **ipam):
    """As a runtime does it, until the store is back."""
    answers = []

    def is_done():
        code, answer, _ = node.finish(node.start("ADD", container, **ipam))
        answers.append(answer)
        return code == 0
    wait_for(is_done, f"ADD {container}: {answers[-1:]}", 60)
    return answers[-1]["ips"][0]["address"].split("/")[0]


def play(world, kube):
    operator = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
    store = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
    run(world.bin / "croft", "--store", operator, "pool", "create", "p", "--cidr", "10.79.0.0/24", "--gateway", "none",
        "--cooldown-seconds", "0")
    socket = world.directory / "agent.sock"
    agent = start_agent(world, store, "oak", socket, env=own_environment(world.directory))
    oak = Node(world, store, "oak")
    through = {"agent": str(socket)}
    kept = {f"a{i}": address_of(oak, f"a{i}", **through) for i in range(3)}

    saved = world.directory / "saved"
    with_all_stopped(kube, lambda: shutil.copytree(kube.etcd.data, saved))
    lost = {f"b{i}": asked_again(oak, f"b{i}", **through) for i in range(6)}
    say(f"before the snapshot {kept}, after it {lost}")

    def put_back():
        shutil.rmtree(kube.etcd.data)
        shutil.copytree(saved, kube.etcd.data)
    with_all_stopped(kube, put_back)
    agent.terminate()
    expect_equal(agent.wait(timeout=10), 0, "the agent's end")
    socket.unlink(missing_ok=True)
    agent = start_agent(world, store, "oak", socket, env=own_environment(world.directory))
    # Written by somebody who remembers nothing, at revisions that come a second time.
    alone = {f"c{i}": asked_again(oak, f"c{i}", agent="none") for i in range(6)}
    begin = time.monotonic()
    later = {f"d{i}": asked_again(oak, f"d{i}", **through) for i in range(6)}
    say(f"alone {alone}; then through the agent, {time.monotonic() - begin:.1f} s: {later}")
    told = list(kept.values()) + list(alone.values()) + list(later.values())
    expect_equal(len(set(told)), len(told), "addresses told since, and before the snapshot")
    held = {address: row["containerId"] for address, row in world.held(operator).items()}
    for names in (kept, alone, later):
        for container, address in names.items():
            expect_equal(held.get(address), container, f"who holds {address}")
    # What was lost with the restore is nobody's: a repeated ADD gets an address that no other has.
    again = address_of(oak, "b0", **through)
    expect(again not in told, f"b0 got {again}, which another has")
    done = run(world.bin / "croft", "--store", operator, "-o", "json", "check", check=False)
    expect_equal(json.loads(done.stdout), [], "croft check")
    agent.terminate()
    expect_equal(agent.wait(timeout=10), 0, "the agent's end")
