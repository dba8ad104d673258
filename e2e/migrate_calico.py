"""A register moves from etcd into a cluster with Calico's own definitions, which keep less than Croft's.

usage: migrate_calico.py BIN_DIR VERSION
"""

import json
import sys

from etcd import Node
from etcd_lib import Etcd
from kube_apiserver_lib import KubeApiserver
from kube_store import CALICO, calico_definitions, install_definitions, write_kubeconfig
from lib import World, expect, expect_equal, main, run, say


def in_older_definitions(world, kube):
    """An API that keeps no affinityClaimTime: the move ends all the same."""
    etcd, target = Etcd(world), f"kube:{write_kubeconfig(world, kube)}"
    world.croft(etcd.store, "pool", "create", "p", "--cidr", "10.60.0.0/24", "--gateway", "none", "--cooldown-seconds", "3600")
    node = Node(world, etcd.store, "oak", lambda c: f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={c};K8S_POD_UID=u{c}")
    told = {c: node.add(c)[0].split("/")[0] for c in ("a", "b", "c")}
    node.delete("b")  # its address rests
    stored = "".join(etcd.get("/calico/ipam/v2/assignment/").values())
    expect("affinity_claim_time" in stored, f"the source has what the target drops: {stored}")
    moved = run(world.bin / "croft", "migrate", "store", "--from", etcd.store, "--to", target, "--apply", check=False, timeout=240)
    expect_equal(moved.returncode, 0, f"the move: {moved.stdout}{moved.stderr}")
    expect("not equal yet" not in moved.stderr, f"one pass was enough: {moved.stderr}")
    blocks = kube.call("GET", f"{CALICO}/ipamblocks")["items"]
    expect("affinityClaimTime" not in json.dumps(blocks), f"the definitions of the target drop it: {blocks}")
    listed = world.croft(target, "ip", "list")
    expect_equal({one["containerId"]: one["address"] for one in listed if one["state"] == "held"},
                 {c: told[c] for c in ("a", "c")}, "held in the target")
    expect_equal([one["address"] for one in listed if one["state"] == "cooling"], [told["b"]], "resting in the target")
    checked = run(world.bin / "croft", "--store", target, "check", check=False)
    expect_equal(checked.returncode, 0, f"croft check: {checked.stdout}{checked.stderr}")
    say("moved into definitions without affinityClaimTime: " + checked.stdout.strip().splitlines()[-1])
    for container in ("a", "c"):
        Node(world, target, "oak").delete(container)


def test():
    calico_definitions()
    with World("migrate-calico", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        install_definitions(world, kube)
        in_older_definitions(world, kube)


if __name__ == "__main__":
    main(test, 400)
