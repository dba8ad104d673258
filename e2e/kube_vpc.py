"""The kinds and the manifest of the agents of VPC addresses, on a real API server.

usage: kube_vpc.py BIN_DIR VERSION

The CustomResourceDefinitions are taken and serve what the agents write, and keep members that they do not know; every
object of the manifest is taken; its account may do what an agent does and no more; a pod's addresses are written for the
pod of that UID only. The agent runs with the manifest's own arguments, as its account, on a simulated cloud: its probes
answer, and the cluster is told of its stock. In a network namespace where somebody else has its first addresses it tells
the node so by an Event; and a pod that gets none, why. A pod of a StatefulSet keeps its address over nodes.
"""

import concurrent.futures
import json
import ctypes
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from etcd_lib import free_ports
from kube_apiserver_lib import KubeApiserver, Refused
from kube_store import write_kubeconfig
from lib import Failure, World, main, own_environment, require_programs, run, wait_for
from vpc_lib import Certificates

DEPLOY = pathlib.Path(__file__).resolve().parent.parent / "deploy" / "kubernetes"
GROUP = "/apis/vpc.uk8s.ucloud.cn/v1beta1"
STOCKS = f"{GROUP}/namespaces/kube-system/ipamds"
CLAIMS = f"{GROUP}/namespaces/default/vpcipclaims"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHERE = {"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
         "ClusterRole": f"{RBAC}/clusterroles", "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
         "Role": f"{RBAC}/namespaces/kube-system/roles", "RoleBinding": f"{RBAC}/namespaces/kube-system/rolebindings",
         "DaemonSet": "/apis/apps/v1/namespaces/kube-system/daemonsets"}
# group, resource, namespace, verbs that are allowed, verbs that are not
RIGHTS = [("", "nodes", "", ("get", "list"), ("update", "patch", "delete")),
          ("", "pods", "default", ("get", "list", "watch", "patch"), ("create", "update", "delete")),
          ("vpc.uk8s.ucloud.cn", "ipamds", "kube-system", ("get", "list", "create", "update", "delete"), ("patch",)),
          ("vpc.uk8s.ucloud.cn", "ipamds", "default", (), ("get", "create")),
          ("vpc.uk8s.ucloud.cn", "vpcipclaims", "default", ("get", "list", "watch", "create", "update"), ("delete",)),
          ("", "events", "default", ("create",), ("get", "list", "delete")),
          ("", "secrets", "kube-system", (), ("get", "list"))]


def check(is_so, what):
    if not is_so:
        raise Failure(what)


def refused(code, call, *arguments):
    try:
        call(*arguments)
    except Refused as why:
        check(why.code == code, f"{arguments}: {why}")
        return why
    raise Failure(f"{arguments}: taken")


def put_manifest(kube, name):
    for document in re.split(r"^---$", (DEPLOY / name).read_text(), flags=re.MULTILINE):
        kind = re.search(r"^kind: (\w+)$", document, re.MULTILINE)
        if kind:
            # Unknown or doubled members are an error, which the server passes over without the second parameter.
            kube._send("POST", WHERE[kind[1]] + "?fieldValidation=Strict", document.encode(), media="application/yaml")


def check_kinds(kube):
    put_manifest(kube, "crds-vpc.yaml")
    stock = {"apiVersion": "vpc.uk8s.ucloud.cn/v1beta1", "kind": "Ipamd",
             "metadata": {"name": "node-a", "namespace": "kube-system"},
             "spec": {"node": "node-a", "addr": "10.0.0.2:7312", "subnet": "subnet-1", "later": {"x": [1]}},
             "status": {"current": 4, "high": 50, "low": 3, "status": "normal"}, "more": 7}

    def made():
        try:
            return kube.call("POST", STOCKS, stock)
        except Refused as why:
            check(why.code == 404, str(why))
            return None
    got = wait_for(made, "the new kind is served", 60)
    for member in ("spec", "status", "more"):
        check(got[member] == stock[member], f"{member}: {got}")
    old = got["metadata"]["resourceVersion"]
    got["status"]["current"] = 5
    kube.call("PUT", f"{STOCKS}/node-a", got)
    refused(409, kube.call, "PUT", f"{STOCKS}/node-a", {**got, "metadata": {**got["metadata"], "resourceVersion": old}})
    refused(422, kube.call, "POST", STOCKS, {**stock, "metadata": {"name": "b"}, "status": {"current": "many"}})
    claim = {"apiVersion": "vpc.uk8s.ucloud.cn/v1beta1", "kind": "VpcIpClaim",
             "metadata": {"name": "web-0", "labels": {"attached": "true", "owner-statefulset": "web"},
                          "finalizers": ["cni-vpc-ipamd"]},
             "spec": {"ip": "10.0.0.9", "mask": "255.255.0.0", "gateway": "10.0.0.1", "subnetId": "s", "vpcId": "v"},
             "status": {"attached": True, "lastDetachtime": "", "releaseTime": "Never", "sandboxId": "x", "mac": "y",
                        "zone": "z"}}

    def claimed():
        try:
            return kube.call("POST", CLAIMS, claim)
        except Refused as why:
            check(why.code == 404, str(why))
            return None
    got = wait_for(claimed, "the kind of claims is served", 60)
    check(got["metadata"]["finalizers"] == ["cni-vpc-ipamd"], f"{got}")
    kube.call("DELETE", f"{CLAIMS}/web-0")
    got = kube.call("GET", f"{CLAIMS}/web-0")
    check("deletionTimestamp" in got["metadata"], "an attached claim is held by its finalizer")
    got["metadata"]["finalizers"] = []
    kube.call("PUT", f"{CLAIMS}/web-0", got)
    refused(404, kube.call, "GET", f"{CLAIMS}/web-0")


def check_manifest(kube):
    put_manifest(kube, "cni-vpc-ipamd.yml")
    made = kube.call("GET", WHERE["DaemonSet"] + "/cni-vpc-ipamd")
    template = made["spec"]["template"]
    check(template["metadata"]["labels"] == {"app": "cni-vpc-ipamd"}, f"{template}")
    check(template["spec"]["hostNetwork"] and template["spec"]["priorityClassName"] == "system-node-critical", "")
    user = "system:serviceaccount:kube-system:cni-vpc-ipamd"
    for group, resource, namespace, allowed, forbidden in RIGHTS:
        for verb in allowed + forbidden:
            answer = kube.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": user, "groups": ["system:serviceaccounts", "system:authenticated"],
                         "resourceAttributes": {"group": group, "resource": resource, "namespace": namespace,
                                                "verb": verb}}})
            check(answer["status"]["allowed"] == (verb in allowed), f"{verb} {resource} in {namespace!r}: {answer}")


def expanded(text, variables):
    """As kubelet replaces $(NAME)."""
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    check("$(" not in text, f"a variable that the manifest does not set: {text}")
    return text


def answer(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as got:
            return got.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def check_agent(world, kube):
    """With the container's arguments: what names a place of the node is put into the test's directory, and no more."""
    container = kube.call("GET", WHERE["DaemonSet"] + "/cni-vpc-ipamd")["spec"]["template"]["spec"]["containers"][0]
    set_variables = {one["name"] for one in container["env"]}
    check(set_variables == {"KUBE_NODE_NAME", "POD_IP"}, f"{set_variables}")
    mounted = [one["mountPath"] for one in container["volumeMounts"]]
    folder = world.directory / "node"
    for path in ("var/log/ucloud", "run"):
        (folder / path).mkdir(parents=True)
    kube.call("POST", "/api/v1/nodes", {"metadata": {"name": "node-v"}})
    Certificates(world, folder / "etc/cni-vpc-ipamd/tls", ("node-v",))
    listen, metrics = free_ports(2)
    arguments = []
    for one in container["args"]:
        flag, value = expanded(one, {"KUBE_NODE_NAME": "node-v", "POD_IP": "127.0.0.1"}).split("=", 1)
        if flag == "--metrics":
            for probe in ("readinessProbe", "livenessProbe"):
                asked = container[probe]["httpGet"]
                check(f"{asked['host']}:{asked['port']}" == value, f"{probe}: {asked}, and the agent listens on {value}")
            value = f"127.0.0.1:{metrics}"
        elif flag == "--listen":
            value = value.replace(":7312", f":{listen}")
        elif flag == "--kubernetes":
            check(value == "kube:", value)
            value = f"kube:{write_account(world, kube)}"
        elif "/" in value:
            path = value[value.index("/"):]
            check(any(path.startswith(mount) for mount in mounted), f"{one}: nothing is mounted there")
            value = value.replace(path, f"{folder}{path}")
        arguments.append(f"{flag}={value}")
    (folder / "sim.json").write_text(json.dumps({
        "region": "r", "zone": "r-01", "project": "p", "vpc": "uvnet-1", "publicKey": "public", "privateKey": "private",
        "flowMaxMs": 0, "subnets": [{"id": "subnet-1", "range": "10.9.0.0/24", "gateway": "10.9.0.1"}],
        "nodes": [{"name": "node-v", "mac": "52:54:00:00:00:0a", "subnet": "subnet-1"}]}))
    sim = subprocess.Popen([world.bin / "croft-vpc-sim", "--config", folder / "sim.json"], stdout=subprocess.PIPE, text=True)
    world.stack.callback(lambda: (sim.kill(), sim.wait()))
    cloud = "http://" + sim.stdout.readline().split()[-1]
    socket = folder / "run/cni-vpc-ipamd.sock"
    log = open(folder / "agent.log", "w+")  # pylint: disable=consider-using-with
    agent = subprocess.Popen(
        [world.bin / "croftd", *container["command"][1:], *arguments, f"--socket={socket}", f"--api={cloud}",
         f"--metadata={cloud}/node-v", "--no-probe"],
        env={**own_environment(world.directory), "KUBE_NODE_NAME": "node-v"}, stdout=log, stderr=log)
    world.stack.callback(lambda: (agent.kill(), agent.wait(), log.close()))

    def told():
        check(agent.poll() is None, f"the agent has ended: {(folder / 'agent.log').read_text()}")
        try:
            return kube.call("GET", f"{STOCKS}/node-v")
        except Refused as why:
            check(why.code == 404, str(why))
            return None
    wait_for(lambda: told() and told()["status"]["current"] >= 3, "the cluster is told of a stock", 60)
    got = kube.call("GET", f"{STOCKS}/node-v")
    check(got["spec"] == {"node": "node-v", "addr": f"127.0.0.1:{listen}", "subnet": "subnet-1"}, f"{got}")
    check((got["status"]["low"], got["status"]["high"]) == (3, 50), f"{got}")
    for probe in ("readinessProbe", "livenessProbe"):
        wait_for(lambda path=container[probe]["httpGet"]["path"]: answer(metrics, path) == 200, probe, 30)
    check((folder / "var/log/ucloud/cni-vpc-ipamd.log").stat().st_size > 0, "the log file")
    check((folder / "var/lib/croft/vpc.db").exists(), "the store")
    agent.terminate()
    check(agent.wait(timeout=container_grace(kube)) == 0, f"{(folder / 'agent.log').read_text()}")
    check(not os.path.exists(socket), "the socket goes with the agent")


def carry(source, sink):
    """Bytes, until one of them ends."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for one in (source, sink):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def open_inside(world, namespace, port):
    """Who asks 127.0.0.1:port inside the namespace is served by 127.0.0.1:port of outside."""
    made = []

    def listen():  # a namespace is a thread's; a socket stays in the one it was made in
        with open(namespace.path, "rb") as inside:
            if ctypes.CDLL(None, use_errno=True).setns(inside.fileno(), 0x40000000) == 0:
                made.append(socket.create_server(("127.0.0.1", port)))
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    check(made, f"no listener in {namespace.name}")
    listener = made[0]

    def serve():
        while True:
            try:
                asking, _ = listener.accept()
            except OSError:
                return
            answering = socket.create_connection(("127.0.0.1", port))
            for pair in ((asking, answering), (answering, asking)):
                threading.Thread(target=carry, args=pair, daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    world.stack.callback(lambda: (listener.shutdown(socket.SHUT_RDWR), listener.close()))


def events_of(kube, namespace, kind):
    found = kube.call("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return [one for one in found if one["involvedObject"]["kind"] == kind]


def check_conflict(world, kube, beside):
    """Somebody on the wire has the addresses that the cloud gives first. What check_refusal() looks at goes on beside the rest."""
    if os.geteuid() != 0:
        print("  SKIPPED: Events of a conflict: needs root for network namespaces")
        return None
    folder = world.directory / "conflict"
    folder.mkdir()
    node, other = world.netns("kv-node"), world.nameless_netns()
    node.run("ip", "link", "add", "eth0", "address", "52:54:00:00:00:0b", "type", "veth", "peer", "name", "eth0", "netns",
             other.path)
    for one in (node, other):
        one.run("ip", "link", "set", "eth0", "up")
    for last in range(2, 8):
        other.run("ip", "address", "add", f"10.8.0.{last}/24", "dev", "eth0")
    mac = other.mac()
    # Thirteen addresses, of which the other has six.
    (folder / "sim.json").write_text(json.dumps({
        "region": "r", "zone": "r-01", "project": "p", "vpc": "uvnet-1", "publicKey": "public", "privateKey": "private",
        "flowMaxMs": 0, "subnets": [{"id": "subnet-1", "range": "10.8.0.0/28", "gateway": "10.8.0.1"}],
        "nodes": [{"name": "node-c", "mac": "52:54:00:00:00:0b", "subnet": "subnet-1"}]}))
    port, = free_ports(1)
    sim = subprocess.Popen([world.bin / "croft-vpc-sim", "--config", folder / "sim.json", "--listen", f"127.0.0.1:{port}"],
                           stdout=subprocess.PIPE, text=True)
    world.stack.callback(lambda: (sim.kill(), sim.wait()))
    sim.stdout.readline()
    for inside in (port, kube.port):
        open_inside(world, node, inside)
    kube.call("POST", "/api/v1/nodes", {"metadata": {"name": "node-c"}})
    (folder / "account").mkdir()
    log = open(folder / "agent.log", "w+")  # pylint: disable=consider-using-with
    agent = subprocess.Popen(
        ["nsenter", f"--net={node.path}", world.bin / "croftd", "vpc-agent", "--node=node-c", f"--store=sqlite:{folder}/vpc.db",
         f"--socket={folder}/agent.sock", f"--kubernetes=kube:{write_account(world, kube)}", f"--api=http://127.0.0.1:{port}",
         f"--metadata=http://127.0.0.1:{port}/node-c", "--interface=eth0", "--probe-unit-milliseconds=50", "--log-directory=none"],
        env=own_environment(world.directory), stdout=log, stderr=log)
    world.stack.callback(lambda: (agent.kill(), agent.wait(), log.close()))

    def told():
        check(agent.poll() is None, f"the agent has ended: {(folder / 'agent.log').read_text()}")
        return [one for one in events_of(kube, "default", "Node") if one["reason"] == "AddressConflict"]
    one = wait_for(told, "an Event of the conflict", 60)[0]
    check(one["involvedObject"]["name"] == "node-c" and one["type"] == "Warning", f"{one}")
    check(re.match(rf"10\.8\.0\.[2-7] is given to no pod: {mac} answers for it on the wire", one["message"]), f"{one}")
    check(one["source"] == {"component": "cni-vpc-ipamd", "host": "node-c"}, f"{one}")

    def crowds():
        """The pod that is refused, and why: it waits for a minute."""
        for number in range(20):
            pod = kube.call("POST", "/api/v1/namespaces/default/pods", {
                "metadata": {"name": f"crowd-{number}"},
                "spec": {"automountServiceAccountToken": False, "containers": [{"name": "a", "image": "a"}]}})
            config = json.dumps({"cniVersion": "1.0.0", "name": "vpc", "type": "croft-vpc", "ipam": {
                "type": "croft-vpc", "agent": f"{folder}/agent.sock", "store": f"sqlite:{folder}/vpc.db"}})
            done = subprocess.run(
                ["nsenter", f"--net={node.path}", world.bin / "croft-vpc"], input=config, capture_output=True, text=True, timeout=120, check=False,
                env={**own_environment(world.directory), "CNI_COMMAND": "ADD", "CNI_CONTAINERID": f"c-{number}",
                     "CNI_NETNS": "/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": str(world.bin),
                     "CNI_ARGS": f"K8S_POD_NAME=crowd-{number};K8S_POD_NAMESPACE=default;K8S_POD_UID={pod['metadata']['uid']}"})
            if done.returncode != 0:
                return pod, json.loads(done.stdout)["msg"]
        return None
    return beside.submit(crowds)


def check_refusal(kube, crowd):
    """With the good ones gone the next pod is told why it waits in vain."""
    refusal = crowd.result()
    check(refusal, "an exhausted subnet refuses somebody")
    pod, why = refusal
    refused_pod = wait_for(lambda: [one for one in events_of(kube, "default", "Pod")
                                    if one["involvedObject"]["uid"] == pod["metadata"]["uid"]], "an Event of the refusal", 30)[0]
    check(refused_pod["reason"] == "FailedAddressAssignment" and refused_pod["type"] == "Warning", f"{refused_pod}: {why}")


def check_fixed(world, kube):
    """A pod of a StatefulSet that keeps its address: two nodes, as the agent's own account."""
    folder = world.directory / "fixed"
    folder.mkdir()
    macs = {"node-f": "52:54:00:00:00:0f", "node-g": "52:54:00:00:00:10"}
    (folder / "sim.json").write_text(json.dumps({
        "region": "r", "zone": "r-01", "project": "p", "vpc": "uvnet-1", "publicKey": "public", "privateKey": "private",
        "flowMaxMs": 0, "subnets": [{"id": "subnet-1", "range": "10.7.0.0/24", "gateway": "10.7.0.1"}],
        "nodes": [{"name": name, "mac": mac, "subnet": "subnet-1"} for name, mac in macs.items()]}))
    sim = subprocess.Popen([world.bin / "croft-vpc-sim", "--config", folder / "sim.json"], stdout=subprocess.PIPE, text=True)
    world.stack.callback(lambda: (sim.kill(), sim.wait()))
    cloud = "http://" + sim.stdout.readline().split()[-1]
    account = write_account(world, kube)
    certificates = Certificates(world, "fixed-certificates", tuple(macs))
    for node, port in zip(macs, free_ports(len(macs))):
        kube.call("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        log = open(folder / f"{node}.log", "w+")  # pylint: disable=consider-using-with
        agent = subprocess.Popen(
            [world.bin / "croftd", "vpc-agent", f"--node={node}", f"--store=sqlite:{folder}/{node}.db", f"--socket={folder}/{node}.sock",
             f"--kubernetes=kube:{account}", f"--api={cloud}", f"--metadata={cloud}/{node}", "--no-probe", "--log-directory=none",
             f"--listen=127.0.0.1:{port}", "--reconcile-seconds=1", *certificates.flags(node)],
            env=own_environment(world.directory), stdout=log, stderr=log)
        world.stack.callback(lambda agent=agent, log=log: (agent.kill(), agent.wait(), log.close()))
        wait_for(lambda node=node: "ready" in (folder / f"{node}.log").read_text(), f"the agent of {node}", 60)

    def make(name, **annotations):
        return kube.call("POST", "/api/v1/namespaces/default/pods", {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"automountServiceAccountToken": False, "containers": [{"name": "a", "image": "a"}]}})["metadata"]["uid"]

    def cni(node, command, container, pod, uid, fine=True):
        config = json.dumps({"cniVersion": "1.0.0", "name": "vpc", "type": "croft-vpc", "ipam": {
            "type": "croft-vpc", "agent": f"{folder}/{node}.sock", "store": f"sqlite:{folder}/{node}.db"}})
        done = subprocess.run(
            [world.bin / "croft-vpc"], input=config, capture_output=True, text=True, timeout=120, check=False,
            env={**own_environment(world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": "/run/netns/none",
                 "CNI_IFNAME": "eth0", "CNI_PATH": str(world.bin),
                 "CNI_ARGS": f"K8S_POD_NAME={pod};K8S_POD_NAMESPACE=default;K8S_POD_UID={uid}"})
        if not fine:
            check(done.returncode != 0, f"{command} {pod} on {node}: {done.stdout}")
            return json.loads(done.stdout)["msg"] + json.loads(done.stdout).get("details", "")
        check(done.returncode == 0, f"{command} {pod} on {node}: {done.stdout} {(folder / f'{node}.log').read_text()}")
        return json.loads(done.stdout)["ips"][0]["address"].split("/")[0] if command == "ADD" else None

    def owner_of(address):
        with urllib.request.urlopen(f"{cloud}/sim/truth", timeout=10) as answer:
            return {one["ip"]: one["node"] for one in json.load(answer)["addresses"]}.get(address)
    keeps = {"network.beta.kubernetes.io/ucloud-statefulset-static-ip": "true"}
    uid = make("db-0", **keeps)
    address = cni("node-f", "ADD", "c1", "db-0", uid)
    claim = kube.call("GET", f"{CLAIMS}/db-0")
    check((claim["spec"]["ip"], claim["status"]["attached"], claim["status"]["sandboxId"]) == (address, True, "c1"), f"{claim}")
    check(claim["metadata"]["labels"] == {"attached": "true", "owner-statefulset": "db"}, f"{claim}")
    kube.call("DELETE", "/api/v1/namespaces/default/pods/db-0?gracePeriodSeconds=0")
    old, uid = uid, make("db-0", **keeps)
    why = cni("node-g", "ADD", "c2", "db-0", uid, fine=False)
    check(address in why and "node-f" in why and "held by default/db-0, container c1" in why, why)
    check(owner_of(address) == "node-f", f"{owner_of(address)}")
    cni("node-f", "DEL", "c1", "db-0", old)
    check(cni("node-g", "ADD", "c2", "db-0", uid) == address, "on another node it has it again")
    check(owner_of(address) == "node-g", f"the cloud delivers it there: {owner_of(address)}")
    check(kube.call("GET", f"{CLAIMS}/db-0")["status"]["mac"].lower() == macs["node-g"], "and the claim says so")
    # A late ADD of the pod that is gone, and claims that are wrong.
    why = cni("node-f", "ADD", "late", "db-0", old, fine=False)
    check("another one by now" in why and uid in why, why)
    lives = cni("node-f", "ADD", "c4", "plain", make("plain"))
    for name, what, said in (("db-1", lives, "held by default/plain"), ("db-2", address, "held by default/db-0")):
        other = "node-f" if what == address else "node-g"
        kube.call("POST", CLAIMS, {"apiVersion": "vpc.uk8s.ucloud.cn/v1beta1", "kind": "VpcIpClaim", "metadata": {"name": name},
                                   "spec": {"ip": what}})
        before = owner_of(what)
        why = cni(other, "ADD", name, name, make(name, **keeps), fine=False)
        check(what in why and said in why and before in why, why)
        check(owner_of(what) == before, f"{what} went to {owner_of(what)}")
    uid = make("job-1")
    other = cni("node-g", "ADD", "c3", "job-1", uid)
    check(other != address, f"{other}")
    refused(404, kube.call, "GET", f"{CLAIMS}/job-1")
    # A claim that is deleted goes when no pod lives with its address any more, and not before.
    kube.call("DELETE", f"{CLAIMS}/db-0")
    time.sleep(3)  # three looks
    check("deletionTimestamp" in kube.call("GET", f"{CLAIMS}/db-0")["metadata"], "its pod lives")
    kube.call("DELETE", "/api/v1/namespaces/default/pods/db-0?gracePeriodSeconds=0")
    cni("node-g", "DEL", "c2", "db-0", "")

    def is_gone():
        try:
            return kube.call("GET", f"{CLAIMS}/db-0") is None
        except Refused as why:
            return why.code == 404
    wait_for(is_gone, "the claim goes", 30)


def container_grace(kube):
    return kube.call("GET", WHERE["DaemonSet"] + "/cni-vpc-ipamd")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]


def write_account(world, kube):
    """The agent's own account, as the manifest made it."""
    path = write_kubeconfig(world, kube)
    config = json.loads(path.read_text())
    config["users"][0]["user"]["token"] = kube.token_of("cni-vpc-ipamd", "kube-system")
    path.write_text(json.dumps(config))
    return path


def check_annotation(kube):
    kube.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    pod = kube.call("POST", "/api/v1/namespaces/default/pods", {
        "metadata": {"name": "web-0", "annotations": {"kept": "yes"}},
        "spec": {"automountServiceAccountToken": False, "containers": [{"name": "a", "image": "a"}]}})

    def patch(uid):
        body = {"metadata": {"uid": uid, "annotations": {"cni.projectcalico.org/podIP": "10.0.0.5",
                                                         "cni.projectcalico.org/podIPs": "10.0.0.5/32"}}}
        # As the agent sends it, byte for byte: store_kube_vpc_test.
        return json.loads(kube._send("PATCH", "/api/v1/namespaces/default/pods/web-0", json.dumps(body).encode(),
                                     media="application/merge-patch+json"))
    got = patch(pod["metadata"]["uid"])["metadata"]["annotations"]
    check(got["cni.projectcalico.org/podIP"] == "10.0.0.5" and got["kept"] == "yes", f"{got}")
    why = refused(422, patch, "00000000-0000-4000-8000-000000000001")
    check("metadata.uid" in why.message, f"what annotate_pod() goes by: {why}")


def test():
    require_programs("etcd", "openssl")
    with World("kube-vpc", sys.argv[1]) as world:
        with KubeApiserver(world, sys.argv[2]) as kube, concurrent.futures.ThreadPoolExecutor(1) as beside:
            check_kinds(kube)
            check_manifest(kube)
            check_annotation(kube)
            crowd = check_conflict(world, kube, beside)
            check_agent(world, kube)
            check_fixed(world, kube)
            if crowd:
                check_refusal(kube, crowd)


if __name__ == "__main__":
    main(test, 300)
