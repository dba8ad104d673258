"""The agents of VPC addresses on a real API server: their kinds keep members that they do not know, every object of the manifest is taken,
their account may do what they do and no more, a pod's addresses are written for the pod of that UID only, the cluster is told of troubles,
and a StatefulSet's pod keeps its address over nodes. The manifest on a node: one_node/vpc.py.
"""

import sys
import time

from kube_apiserver_lib import KubeApiserver, if_there, program, refused
from kube_store import write_kubeconfig
from lib import TREE, World, expect, expect_equal, main, run, wait_for
from living_lib import enter_own_namespace
from vpc_lib import SUBNET, Agent, Cloud, add_request, refusal

DEPLOY = TREE / "deploy" / "kubernetes"
GROUP = "/apis/vpc.uk8s.ucloud.cn/v1beta1"
STOCKS = f"{GROUP}/namespaces/kube-system/ipamds"
CLAIMS = f"{GROUP}/namespaces/default/vpcipclaims"
PODS = "/api/v1/namespaces/default/pods"
STRICT = "?fieldValidation=Strict"  # unknown or doubled members are an error, which the server passes over otherwise
# group, resource, namespace, verbs that are allowed, verbs that are not
RIGHTS = [("", "nodes", "", ("get", "list"), ("update", "patch", "delete")),
          ("", "pods", "default", ("get", "list", "watch", "patch"), ("create", "update", "delete")),
          ("vpc.uk8s.ucloud.cn", "ipamds", "kube-system", ("get", "list", "create", "update", "delete"), ("patch",)),
          ("vpc.uk8s.ucloud.cn", "ipamds", "default", (), ("get", "create")),
          ("vpc.uk8s.ucloud.cn", "vpcipclaims", "default", ("get", "list", "watch", "create", "update"), ("delete",)),
          ("", "events", "default", ("create",), ("get", "list", "delete")),
          ("", "secrets", "kube-system", (), ("get", "list"))]
KEEPS = {"network.beta.kubernetes.io/ucloud-statefulset-static-ip": "true"}


def has_its_kinds(kube):
    kube.apply((DEPLOY / "crds-vpc.yaml").read_text(), STRICT)
    stock = {"apiVersion": "vpc.uk8s.ucloud.cn/v1beta1", "kind": "Ipamd",
             "metadata": {"name": "node-a", "namespace": "kube-system"},
             "spec": {"node": "node-a", "addr": "10.0.0.2:7312", "subnet": "subnet-1", "later": {"x": [1]}},
             "status": {"current": 4, "high": 50, "low": 3, "status": "normal"}, "more": 7}
    got = wait_for(lambda: if_there(kube.call, "POST", STOCKS, stock), "the new kind is served", 60)
    expect_equal([got[member] for member in ("spec", "status", "more")], [stock[member] for member in ("spec", "status", "more")], "what is kept")
    old = got["metadata"]["resourceVersion"]
    got["status"]["current"] = 5
    kube.call("PUT", f"{STOCKS}/node-a", got)
    refused(409, kube.call, "PUT", f"{STOCKS}/node-a", {**got, "metadata": {**got["metadata"], "resourceVersion": old}})
    refused(422, kube.call, "POST", STOCKS, {**stock, "metadata": {"name": "b"}, "status": {"current": "many"}})
    wait_for(lambda: if_there(kube.call, "GET", CLAIMS), "the kind of claims is served", 60)


def is_taken(kube):
    kube.apply((DEPLOY / "cni-vpc-ipamd.yml").read_text(), STRICT)
    template = kube.call("GET", "/apis/apps/v1/namespaces/kube-system/daemonsets/cni-vpc-ipamd")["spec"]["template"]
    expect_equal(template["metadata"]["labels"], {"app": "cni-vpc-ipamd"}, "labels")
    expect(template["spec"]["hostNetwork"] and template["spec"]["priorityClassName"] == "system-node-critical", f"{template}")
    for group, resource, namespace, allowed, forbidden in RIGHTS:
        for verb in allowed + forbidden:
            expect_equal(kube.may("cni-vpc-ipamd", verb, resource, group, namespace, "kube-system"), verb in allowed, f"{verb} {resource} in {namespace!r}")


def events_of(kube, kind, reason):
    return [one for one in kube.call("GET", "/api/v1/namespaces/default/events")["items"]
            if one["involvedObject"]["kind"] == kind and one["reason"] == reason]


def tells_of_troubles(world, kube, account):
    """Somebody on the wire has the address that the cloud gives first; and a pod for which there is none."""
    cloud, other = Cloud(world, "troubles", ("node-c",)), world.nameless_netns()
    conflict = f"{cloud.prefix}.2"
    run("ip", "link", "add", "eth0", "address", cloud.nodes["node-c"], "type", "veth", "peer", "name", "eth0", "netns", other.path)
    run("ip", "link", "set", "eth0", "up")
    other.run("ip", "link", "set", "eth0", "up")
    other.run("ip", "address", "add", f"{conflict}/24", "dev", "eth0")
    kube.make_node("node-c")
    agent = Agent(cloud, "node-c", low=1, high=1, flags=[f"--kubernetes={account}", "--interface=eth0", "--probe-unit-milliseconds=50"])
    without_probe = agent.command()
    agent.command = lambda: [word for word in without_probe if word != "--no-probe"]
    agent.start()
    told, = wait_for(lambda: events_of(kube, "Node", "AddressConflict"), "an Event of the conflict", 60)
    expect_equal((told["involvedObject"]["name"], told["type"], told["source"]), ("node-c", "Warning", {"component": "cni-vpc-ipamd", "host": "node-c"}), f"{told}")
    expect(told["message"].startswith(f"{conflict} is given to no pod: {other.mac()} answers for it on the wire"), f"{told}")
    agent.wait_for_free(1)
    cloud.do("exhaust", subnet=SUBNET)
    agent.add("has-one")
    uid = kube.make_pod("crowd")
    _, why = refusal(agent.call, "AddPodNetwork", add_request("crowded", "crowd", uid, old=True), timeout=30)
    told = wait_for(lambda: [one for one in events_of(kube, "Pod", "FailedAddressAssignment") if one["involvedObject"]["uid"] == uid],
                    f"an Event of the refusal: {why}", 30)[0]
    expect_equal(told["type"], "Warning", f"{told}")
    agent.stop()


def keeps_fixed_addresses(world, kube, account):
    """A pod of a StatefulSet that keeps its address: two nodes, as the agent's own account."""
    cloud = Cloud(world, "fixed", ("node-f", "node-g"))
    nodes = {}
    for name in cloud.nodes:
        kube.make_node(name)
        agent = nodes[name] = Agent(cloud, name, flags=[f"--kubernetes={account}", "--reconcile-seconds=1"]).start()
        wait_for(lambda: "ready" in agent.process.tail(), f"the agent of {name}", 60)
    words = lambda pod, uid: f"K8S_POD_NAME={pod};K8S_POD_NAMESPACE=default;K8S_POD_UID={uid}"
    add = lambda node, container, pod, uid: nodes[node].plugin_add(container, words(pod, uid))
    delete = lambda node, container, pod, uid: nodes[node].plugin_delete(container, words(pod, uid))

    def fails(node, container, pod, uid, *said):
        code, answer = nodes[node].plugin("ADD", container, words(pod, uid))
        why = answer["msg"] + answer.get("details", "")
        expect(code != 0 and all(word in why for word in said), f"ADD of {pod} on {node}: {why}")

    def owner_of(address):
        return next((node for node, held in cloud.held().items() if address in held), None)
    uid = kube.make_pod("db-0", annotations=KEEPS)
    address = add("node-f", "c1", "db-0", uid)
    claim = kube.call("GET", f"{CLAIMS}/db-0")
    expect_equal((claim["spec"]["ip"], claim["status"]["attached"], claim["status"]["sandboxId"]), (address, True, "c1"), f"{claim}")
    expect_equal(claim["metadata"]["labels"], {"attached": "true", "owner-statefulset": "db"}, f"{claim}")
    kube.call("DELETE", f"{PODS}/db-0?gracePeriodSeconds=0")
    old, uid = uid, kube.make_pod("db-0", annotations=KEEPS)
    expect_equal(add("node-g", "c2", "db-0", uid), address, "on another node it has it again")
    expect_equal((owner_of(address), kube.call("GET", f"{CLAIMS}/db-0")["status"]["mac"].lower()), ("node-g", cloud.nodes["node-g"]),
                 "the cloud delivers it there, and the claim says so")
    delete("node-f", "c1", "db-0", old)
    expect_equal(owner_of(address), "node-g", "after the late DEL of the old one")
    # A late ADD of the pod that is gone, and one of whose claim is wrong. Other wrong claims: vpc_cluster_test.cc, stock_transfers_test.cc.
    fails("node-f", "late", "db-0", old, "another one by now", uid)
    kube.make(CLAIMS, "VpcIpClaim", "db-2", spec={"ip": address}, status={"mac": ""})
    fails("node-f", "db-2", "db-2", kube.make_pod("db-2", annotations=KEEPS), address, "two claims name it")
    expect_equal(owner_of(address), "node-g", "after a second claim of it")
    expect(add("node-g", "c3", "job-1", kube.make_pod("job-1")) != address, "who keeps none gets another")
    refused(404, kube.call, "GET", f"{CLAIMS}/job-1")
    # A claim that is deleted goes when no pod lives with its address any more, and not before.
    kube.call("DELETE", f"{CLAIMS}/db-0")
    time.sleep(3)  # three looks
    expect("deletionTimestamp" in kube.call("GET", f"{CLAIMS}/db-0")["metadata"], "its pod lives")
    kube.call("DELETE", f"{PODS}/db-0?gracePeriodSeconds=0")
    delete("node-g", "c2", "db-0", "")
    wait_for(lambda: if_there(kube.call, "GET", f"{CLAIMS}/db-0") is None, "the claim goes", 30)


def annotates(kube):
    kube.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    own = kube.make_pod("web-0", annotations={"kept": "yes"})

    def patch(uid):
        body = {"metadata": {"uid": uid, "annotations": {"cni.projectcalico.org/podIP": "10.0.0.5",
                                                         "cni.projectcalico.org/podIPs": "10.0.0.5/32"}}}
        # As the agent sends it, byte for byte: store_kube_format_test.
        return kube.patch(f"{PODS}/web-0", body)
    got = patch(own)["metadata"]["annotations"]
    expect_equal((got["cni.projectcalico.org/podIP"], got["kept"]), ("10.0.0.5", "yes"), f"{got}")
    why = refused(422, patch, "00000000-0000-4000-8000-000000000001")
    expect("metadata.uid" in why.message, f"what annotate_pod() goes by: {why}")


def test():
    program(sys.argv[2])
    enter_own_namespace()
    with World("kube-vpc", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        has_its_kinds(kube)
        is_taken(kube)
        annotates(kube)
        account = f"kube:{write_kubeconfig(world, kube, 'cni-vpc-ipamd', 'kube-system')}"  # as the manifest made it
        keeps_fixed_addresses(world, kube, account)
        tells_of_troubles(world, kube, account)


main(test, 300)
