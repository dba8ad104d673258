"""A register in a real kube-apiserver: the store's own suite, and then Croft's programs on it.

Calico's definitions come from its Go module, as bench/peers pins it; without that a test skips itself.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import time

import lib
from kube_apiserver_lib import TOKEN, Refused
from lib import call_ipam, own_environment, expect, expect_equal, run, say, skip, wait_for

OWN = "/apis/ipam.croft.dev/v1alpha1"
CALICO = "/apis/crd.projectcalico.org/v1"
V1, V3 = "crd.projectcalico.org", "projectcalico.org"
# The same kinds under other names in Calico's newer group.
V3_NAMES = {"ipamconfigs": "ipamconfigurations"}
KINDS = ("ippools", "ipreservations", "ipamconfigs", "ipamblocks", "blockaffinities", "ipamhandles", "clusterinformations")


def calico_definitions():
    """The YAML files of Calico's CustomResourceDefinitions."""
    tree = pathlib.Path(__file__).resolve().parent.parent
    module = tree / "bench" / "peers" / "calico"
    needed = re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)[1]
    found = subprocess.run([tree / "scripts" / "find-go", needed], capture_output=True, text=True, check=False, timeout=600)
    if found.returncode != 0:
        skip("Calico's definitions come with Go: " + found.stderr.strip().splitlines()[-1])
    done = subprocess.run([found.stdout.strip(), "mod", "download", "-json", "github.com/projectcalico/calico"], cwd=module,
                          env={**os.environ, "GOTOOLCHAIN": "local"}, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        skip("Calico's module could not be fetched: " + done.stderr.strip().splitlines()[-1])
    folder = pathlib.Path(json.loads(done.stdout)["Dir"]) / "libcalico-go" / "config" / "crd"
    return [(folder / f"crd.projectcalico.org_{kind}.yaml").read_text() for kind in KINDS]


def shipped_definitions(kind):
    """The CustomResourceDefinitions of a file that the tree ships: "croft" or "calico"."""
    file = pathlib.Path(__file__).resolve().parent.parent / "deploy" / "kubernetes" / f"crds-{kind}.yaml"
    return file.read_text().split("---\n")[1:]


def apply(kube, text, media="application/json"):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    return json.loads(kube._send("POST", path, text.encode(), media=media))["metadata"]["name"]


def is_served(kube, name):
    status = kube.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")["status"]
    conditions = status.get("conditions") or []  # none at first
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def install_definitions(_world, kube, calicos=None, own=True):
    """Calico's CustomResourceDefinitions (its own, or those that are given) and Croft's; waits until they are served."""
    names = [apply(kube, text, "application/yaml") for text in calicos or calico_definitions()]
    names += [apply(kube, text) for text in shipped_definitions("croft") if own]
    for name in names:
        wait_for(lambda name=name: is_served(kube, name), f"{name} is served", 30)


def newer_group(kube):
    """Calico's kinds, which are there in its older group, under the names of the newer; waits until they are served."""
    names = []
    for kind in KINDS:
        body = kube.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind}.{V1}")
        called = body["spec"]["names"]
        if called["plural"] in V3_NAMES:
            called = {"kind": "IPAMConfiguration", "plural": "ipamconfigurations"}
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        names.append(apply(kube, json.dumps({
            "apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {"name": f"{called['plural']}.{V3}"},
            "spec": {"group": V3, "scope": "Cluster", "names": {"kind": called["kind"], "plural": called["plural"]},
                     "versions": [{"name": "v3", "served": True, "storage": True, "schema": schema}]}})))
    for name in names:
        wait_for(lambda name=name: is_served(kube, name), f"{name} is served", 30)


def make_accounts(kube):
    """The service accounts that the tree ships, with their rights."""
    tree = pathlib.Path(__file__).resolve().parent.parent
    kube.apply((tree / "deploy" / "kubernetes" / "access.yaml").read_text())


def write_kubeconfig(world, kube, account=None, namespace="croft-system", **user):
    """Of a service account, as whom a program would work; without one of the only admin. `user`: what it has in a token's place."""
    user = user or {"token": kube.token_of(account, namespace) if account else TOKEN}
    return lib.write_kubeconfig(world.directory / f"kubeconfig-{account or 'admin'}", kube.url, kube.ca.certificate, user)


class Controller:
    """croftd controller, which ends with the world at the latest."""

    def __init__(self, world, store, name, *flags):
        self.log_path = world.directory / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([world.bin / "croftd", "controller", "--store", store, *flags],
                                            env=own_environment(world.directory), stdout=log, stderr=log)
        world.stack.callback(self.process.kill)

    def log(self):
        return self.log_path.read_text()

    def end(self):
        """By SIGTERM; the seconds that it took."""
        begin = time.monotonic()
        self.process.terminate()
        expect_equal(self.process.wait(timeout=20), 0, f"exit code; its log:\n{self.log()}")
        return time.monotonic() - begin


def plugin(world, command, container, store):
    """The address of an ADD on node-a."""
    code, answer = call_ipam(world, command, container, store, args=f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={container}")
    expect_equal(code, 0, f"{command} {container}: {answer}")
    return answer["ips"][0]["address"].split("/")[0] if command == "ADD" else None


def as_kubectl_does(world, kube, listed):
    """`--kubeconfig`, KUBECONFIG with `--context`, and `kubectl croft` find the same register."""
    config = write_kubeconfig(world, kube, "croft-operator")
    (world.directory / "kubectl-croft").symlink_to(world.bin / "croft")
    for program, flags, variables in ((world.bin / "croft", ("--kubeconfig", config), {}),
                                      (world.bin / "croft", ("--context", "test"), {"KUBECONFIG": str(config)}),
                                      (world.directory / "kubectl-croft", (), {"KUBECONFIG": str(config)})):
        done = run(program, *flags, "-o", "json", "ip", "list", env=variables)
        expect_equal(json.loads(done.stdout), listed, f"{program.name} {flags} {variables}")


def programs(world, kube):
    """Croft's programs on the register, each with the rights of its account, and what others see of it."""
    store = f"kube:{write_kubeconfig(world, kube, 'croft-node')}"
    croft = [world.bin / "croft", "--store", f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"]
    refused = run(world.bin / "croft", "--store", store, "pool", "create", "default", "--cidr", "10.0.0.0/16", check=False)
    expect(refused.returncode != 0 and "forbidden" in refused.stderr, f"a node makes no pools: {refused}")
    run(*croft, "pool", "create", "default", "--cidr", "10.0.0.0/16")
    addresses = {name: plugin(world, "ADD", name, store) for name in ("one", "two", "three")}
    expect_equal(len(set(addresses.values())), 3, "addresses of three pods")
    expect_equal(plugin(world, "ADD", "one", store), addresses["one"], "the same pod again")
    listed = json.loads(run(*croft, "-o", "json", "ip", "list").stdout)
    say(f"{len(addresses)} addresses: {addresses}")
    as_kubectl_does(world, kube, listed)

    blocks = kube.call("GET", f"{CALICO}/ipamblocks")["items"]
    expect_equal(len(blocks), 1, "blocks")
    block = blocks[0]
    expect_equal(block["spec"]["affinity"], "host:node-a", "whose it is")
    expect_equal(block["spec"]["strictAffinity"], False, "the schema wants it")
    held = sum(a is not None for a in block["spec"]["allocations"])
    expect_equal(held, 3, "addresses held in the block")
    affinity = kube.call("GET", f"{CALICO}/blockaffinities")["items"][0]
    expect_equal(affinity["spec"]["state"], "confirmed", "the claim")
    expect_equal(affinity["spec"]["deleted"], "false", "a text, as v1 has it")
    expect_equal(affinity["metadata"]["labels"]["projectcalico.org/hostname-hash"],
                 "PY3TQE2E3XMTETLM2MJO3UITKPFB27YUJ4T4E5XGPEJON3SM4QAA", "Calico's digest of node-a")
    expect_equal(len(kube.call("GET", f"{CALICO}/ipamhandles")["items"]), 3, "handles")

    # What others put on an object stays.
    block["metadata"].setdefault("labels", {})["team"] = "shop"
    block["metadata"].setdefault("annotations", {})["note"] = "by hand"
    block["metadata"]["finalizers"] = ["example.com/keep"]
    kube.call("PUT", f"{CALICO}/ipamblocks/{block['metadata']['name']}", block)
    plugin(world, "DEL", "two", store)
    after = kube.call("GET", f"{CALICO}/ipamblocks/{block['metadata']['name']}")
    expect_equal(sum(a is not None for a in after["spec"]["allocations"]), 2, "addresses after a DEL")
    expect_equal(after["metadata"]["labels"]["team"], "shop", "somebody's label")
    expect_equal(after["metadata"]["annotations"]["note"], "by hand", "somebody's annotation")
    expect_equal(after["metadata"]["finalizers"], ["example.com/keep"], "somebody's finalizer")
    expect_equal(len(kube.call("GET", f"{CALICO}/ipamhandles")["items"]), 2, "handles after a DEL")
    after["metadata"]["finalizers"] = []
    kube.call("PUT", f"{CALICO}/ipamblocks/{block['metadata']['name']}", after)
    findings = run(*croft, "check").stdout
    say(findings.strip().splitlines()[-1])
    expect(len(json.dumps(listed)) > 10, "the list is not empty")

    # Calico says that its data must not be written.
    info = {"apiVersion": "crd.projectcalico.org/v1", "kind": "ClusterInformation", "metadata": {"name": "default"},
            "spec": {"datastoreReady": False}}
    kube.call("POST", f"{CALICO}/clusterinformations", info)
    refused = subprocess.run([*map(str, croft), "pool", "create", "second", "--cidr", "10.1.0.0/16"], capture_output=True, text=True,
                             check=False, timeout=60)
    expect(refused.returncode != 0 and "datastoreReady" in refused.stderr, f"a write to what is not ready: {refused}")


def with_empty_register(kube):
    for path in [f"{CALICO}/{kind}" for kind in KINDS]:
        for item in kube.call("GET", path)["items"]:
            try:
                kube.call("DELETE", f"{path}/{item['metadata']['name']}")
            except Refused as refused:
                expect_equal(refused.code, 404, "deleting what is there")
    for kind in ("crofthighwatermarks", "croftpoolsets", "croftnoderanges", "croftnoderangesets", "croftremovednodes", "croftpools"):
        with contextlib.suppress(Refused):  # where Croft's kinds are not
            kube.call("DELETE", f"{OWN}/{kind}")


def play(world, kube):
    suite = world.bin.parent / "tests" / "store_kube_real_test"
    if suite.exists() and not os.environ.get("CROFT_SKIP_SUITE"):
        done = subprocess.run([suite], env={**os.environ, "CROFT_TEST_KUBECONFIG": str(write_kubeconfig(world, kube))}, capture_output=True,
                              text=True, timeout=250, check=False)
        failed = [part for part in done.stdout.split("[ RUN ") if "[  FAILED  ]" in part]
        expect(done.returncode == 0, "".join(failed) + done.stderr[-2000:])
        say(done.stdout.strip().splitlines()[-1])
    else:
        say("the store's suite is not built here")
    with_empty_register(kube)
    programs(world, kube)
