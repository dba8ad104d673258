"""Ranges of nodes on a real kube-apiserver: spec.podCIDRs as Kubernetes' own controller gives them, both families; what is
there already, and a pool in the way. Ranges that are used up and come back: kube_rights.py. Another program that gives ranges too, and
what was interrupted: node_range_test.cc; what nodes say that cannot be taken down, or says another too: check_remedies_kube.py.
"""

from kube_collect import Controller
from kube_store import write_kubeconfig
from lib import expect_equal, run, say, wait_for


def said(kube, name):
    spec = kube.call("GET", f"/api/v1/nodes/{name}")["spec"]
    expect_equal(spec.get("podCIDR"), spec.get("podCIDRs", [None])[0], "podCIDR is the first")
    return spec.get("podCIDRs")


def play(world, kube):
    croft = [world.bin / "croft", "--store", f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"]
    kube.make_node("there", spec={"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]})
    kube.make_node("oak")
    run(*croft, "pool", "create", "in-the-way", "--cidr", "10.244.0.0/16")
    controller = Controller(world, f"kube:{write_kubeconfig(world, kube, 'croft-controller')}", "controller", "--allocate-node-cidrs",
                            "--cluster-cidr", "10.244.0.0/21,fd00:244::/48", "--leader-elect=false")
    trouble = "cluster CIDR 10.244.0.0/21 overlaps pool in-the-way (10.244.0.0/16)"
    # Each pass has both lines.
    wait_for(lambda: controller.log().count(trouble) > 2 and controller.log().count(" addresses") > 2, "it says it and collects", 20)
    expect_equal(said(kube, "oak"), None, "no range meanwhile")
    run(*croft, "pool", "delete", "in-the-way")
    wait_for(lambda: said(kube, "oak"), "oak says its ranges", 20)
    expect_equal(said(kube, "oak"), ["10.244.1.0/24", "fd00:244::/64"], "oak, beside what is there")
    expect_equal(said(kube, "there"), ["10.244.0.0/24"], "what was there")
    say(f"oak {said(kube, 'oak')}, there {said(kube, 'there')}")
    controller.end()
