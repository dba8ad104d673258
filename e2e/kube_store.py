"""A register in a real kube-apiserver: the store's own suite. Croft's programs on it are the other cases'.

Calico's definitions come from its Go module, as bench/peers pins it; without that a test skips itself.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess

import lib
from kube_apiserver_lib import TOKEN, Refused
from lib import call_ipam, expect, expect_equal, say, skip, wait_for

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


def plugin(world, command, container, store):
    """The address of an ADD on node-a."""
    code, answer = call_ipam(world, command, container, store, args=f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={container}")
    expect_equal(code, 0, f"{command} {container}: {answer}")
    return answer["ips"][0]["address"].split("/")[0] if command == "ADD" else None


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
