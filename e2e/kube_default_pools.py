"""The first pools of a cluster on a real kube-apiserver: as kubeadm has them, made once however many nodes ask at once,
refused where they overlap a range of Services or a node's address.

usage: kube_cases.py BIN_DIR VERSION kube_default_pools
"""

import json
import os
import subprocess
import time

from kube_apiserver_lib import Refused
from kube_store import write_kubeconfig
from lib import expect, expect_equal, run, say, wait_for

AT_ONCE = 40
HAS_SERVICE_CIDRS = ("1.33", "1.34", "1.35", "1.36")
KUBEADM = "/api/v1/namespaces/kube-system/configmaps"


def cluster_configuration(pods, services="10.96.0.0/24"):
    return (f"apiServer: {{}}\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n"
            f"  dnsDomain: cluster.local\n  podSubnet: {pods}\n  serviceSubnet: {services}\n")


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"

    def command(self, *flags):
        return [str(self.world.bin / "croft"), "--store", self.store, "pool", "defaults", *flags]

    def defaults(self, *flags, code=0, **variables):
        done = run(*self.command(*flags), check=False, env={**os.environ, **variables})
        expect_equal(done.returncode, code, f"pool defaults {flags} {variables}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def outcomes(self, *flags, **variables):
        return [(row["name"], row["cidr"], row["outcome"]) for row in
                json.loads(self.defaults(*flags, "-o", "json", **variables))]

    def pools(self):
        listed = run(self.world.bin / "croft", "--store", self.store, "pool", "list", "-o", "json")
        return sorted((pool["name"], pool["cidr"], pool["blockSize"]) for pool in json.loads(listed.stdout))


def services(rig):
    """No pool over a range of Services. An API without ServiceCIDRs tells no range: what Services have counts."""
    create = lambda name, cidr, **how: run(rig.world.bin / "croft", "--store", rig.store, "pool", "create", name, "--cidr", cidr, **how)
    has_ranges = rig.kube.version in HAS_SERVICE_CIDRS
    whose = 'ServiceCIDR "kubernetes" (10.96.0.0/24)' if has_ranges else 'address 10.96.0.1 of Service "default/kubernetes"'
    wait_for(lambda: rig.kube.call("GET", "/api/v1/namespaces/default/services")["items"], "the API server has made its Service", 60)
    said = rig.defaults("--ipv4-cidr", "10.96.0.0/16", code=1)
    expect(f"10.96.0.0/16 of pool default-ipv4-ippool overlaps {whose}" in said, said)
    done = create("over", "10.96.0.0/20", check=False)
    expect(done.returncode == 1 and f"over" in done.stderr and whose in done.stderr, f"{done}")
    say(f"refused: {done.stderr.strip()}")
    # Any Service; and one without an address stands in nobody's way.
    for name, ip in (("web", "10.96.0.77"), ("headless", "None")):
        rig.kube.call("POST", "/api/v1/namespaces/default/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"clusterIP": ip, "ports": [{"port": 80}]}})
    if not has_ranges:
        whose = 'address 10.96.0.77 of Service "default/web"'
    done = create("over", "10.96.0.64/26", check=False)
    expect(done.returncode == 1 and whose in done.stderr, f"{done}")
    # Who may not read Services goes on, and is told what it does not know.
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/croft-operator"
    before = rig.kube.call("GET", role)
    rules = [rule for rule in before["rules"] if "services" not in rule["resources"]]
    expect(len(rules) < len(before["rules"]), "the operator may read Services")
    rig.kube.call("PUT", role, {**before, "rules": rules})
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "system:serviceaccount:croft-system:croft-operator", "resourceAttributes": {"verb": "list", "resource": "services"}}}
    may = lambda: rig.kube.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]
    wait_for(lambda: not may(), "the right is gone", 30)
    done = create("over", "10.96.0.0/20", check=False)
    if has_ranges:
        expect(done.returncode == 1 and "ServiceCIDR" in done.stderr, f"{done}")
    else:
        expect(done.returncode == 0 and "no ServiceCIDR" in done.stderr and 'cannot list resource "services"' in done.stderr, f"{done}")
        say(f"warned: {done.stderr.strip()}")
    now = rig.kube.call("GET", role)
    rig.kube.call("PUT", role, {**now, "rules": before["rules"]})
    wait_for(may, "the right is back", 30)
    if not has_ranges:
        # One that is there is as it is.
        expect("unchanged" in create("over", "10.96.0.0/20").stdout, "a pool of before")
        run(rig.world.bin / "croft", "--store", rig.store, "pool", "delete", "over")


def refusals(rig):
    """Each with both names; nothing is made."""
    services(rig)
    rig.kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "oak"}})
    node = rig.kube.call("GET", "/api/v1/nodes/oak")
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "10.64.3.4"}]
    rig.kube.call("PUT", "/api/v1/nodes/oak/status", node)
    said = rig.defaults("--ipv4-cidr", "10.64.0.0/16", code=1)
    expect("overlaps address 10.64.3.4 of node oak" in said, said)
    for cidr, what in (("127.0.0.0/8", "loopback"), ("224.0.0.0/4", "multicast"), ("0.0.0.0/8", "unspecified")):
        said = rig.defaults(CALICO_IPV4POOL_CIDR=cidr, code=2)
        expect(f"{cidr} of pool default-ipv4-ippool overlaps the {what}" in said, said)
    expect_equal(rig.pools(), [], "what was refused")
    say(f"refused: {said.strip()}")

    for flags, variables, part in (
            (["--ipv4-cidr", "fd00::/48"], {}, "--ipv4-cidr"), (["--ipv4-cidr", "10.1.0.1/16"], {}, "--ipv4-cidr"),
            ([], {"CALICO_IPV4POOL_CIDR": "ten"}, "CALICO_IPV4POOL_CIDR"),
            ([], {"CALICO_IPV4POOL_CIDR": "10.1.0.0/16", "CALICO_IPV4POOL_BLOCK_SIZE": "x"}, "CALICO_IPV4POOL_BLOCK_SIZE"),
            ([], {"CALICO_IPV4POOL_CIDR": "10.1.0.0/16", "NO_DEFAULT_POOLS": "True"}, "NO_DEFAULT_POOLS")):
        done = run(*rig.command(*flags), check=False, env={**os.environ, **variables})
        expect(done.returncode != 0 and part in done.stderr, f"{flags} {variables}: {done.returncode} {done.stderr}")


def as_kubeadm_has_them(rig):
    said = rig.defaults()
    expect("No pool is asked for" in said and 'configmaps "kubeadm-config" not found' in said, f"there is no kubeadm yet: {said}")
    # A Job that ended so would be a success, and no pod would ever start.
    said = rig.defaults("--required", code=1)
    for word in ('configmaps "kubeadm-config" not found', "--ipv4-cidr", "croft pool create"):
        expect(word in said, f"{word}: {said}")
    for asked in (["--ipv4-cidr", "none"], ["--ipv6-cidr", "none"]):
        rig.defaults("--required", *asked)
    rig.defaults("--required", NO_DEFAULT_POOLS="true")
    croft = lambda *words: run(rig.world.bin / "croft", "--store", rig.store, *words)
    croft("pool", "create", "of-somebody", "--cidr", "10.69.0.0/16")
    rig.defaults("--required")
    croft("pool", "delete", "of-somebody")
    rig.kube.call("POST", KUBEADM, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeadm-config"},
                                    "data": {"ClusterConfiguration": cluster_configuration("10.244.0.0/16,fd00:10::/48")}})
    expect("No pool is asked for" in rig.defaults("--no-kubeadm"), "kubeadm is not asked")
    said = rig.defaults("--ipv4-cidr", "10.96.0.0/22", code=1)
    expect("overlaps kubeadm's serviceSubnet 10.96.0.0/24" in said, said)
    wanted = [("default-ipv4-ippool", "10.244.0.0/16", "would be created"),
              ("default-ipv6-ippool", "fd00:10::/48", "would be created")]
    expect_equal(rig.outcomes("--dry-run"), wanted, "a dry run")
    expect_equal(rig.outcomes("--dry-run", CALICO_IPV4POOL_CIDR="10.70.0.0/16", CALICO_IPV6POOL_CIDR="none"),
                 [("default-ipv4-ippool", "10.70.0.0/16", "would be created")], "a variable goes before kubeadm")
    expect_equal(rig.outcomes("--dry-run", "--ipv4-cidr", "10.71.0.0/16", "--ipv6-cidr", "none",
                              CALICO_IPV4POOL_CIDR="10.70.0.0/16"),
                 [("default-ipv4-ippool", "10.71.0.0/16", "would be created")], "a flag goes before a variable")
    expect_equal(rig.pools(), [], "after dry runs")


def of_many_one_makes_them(rig):
    asking = [subprocess.Popen(rig.command("-o", "json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "CALICO_IPV4POOL_BLOCK_SIZE": "27"}) for _ in range(AT_ONCE)]
    made = []
    for one in asking:
        out, err = one.communicate(timeout=120)
        expect_equal(one.returncode, 0, f"one of {AT_ONCE}: {out}{err}")
        made += [row["name"] for row in json.loads(out) if row["outcome"] == "created"]
    expect_equal(sorted(made), ["default-ipv4-ippool", "default-ipv6-ippool"], "each is made by one")
    expect_equal(rig.pools(), [("default-ipv4-ippool", "10.244.0.0/16", 27), ("default-ipv6-ippool", "fd00:10::/48", 122)],
                 "the pools")
    say(f"{AT_ONCE} at once made each pool once")
    expect_equal(rig.outcomes("--ipv4-cidr", "10.72.0.0/16", "--ipv6-cidr", "none"),
                 [("default-ipv4-ippool", "10.244.0.0/16", "unchanged")], "afterwards nothing is made")


def being_deleted(rig):
    """A pool whose object waits for a finalizer gives nothing, and says so wherever it is shown."""
    pools = "/apis/crd.projectcalico.org/v1/ippools"
    name = "default-ipv4-ippool"
    croft = lambda *words: run(rig.world.bin / "croft", "--store", rig.store, *words, check=False)
    row = lambda: next(line for line in croft("pool", "list").stdout.splitlines() if line.startswith(name))
    expect("unallocatable" not in row() and "being deleted" not in rig.defaults(), "before")
    pool = rig.kube.call("GET", f"{pools}/{name}")
    pool["metadata"]["finalizers"] = ["croft.test/keep"]
    rig.kube.call("PUT", f"{pools}/{name}", pool)
    rig.kube.call("DELETE", f"{pools}/{name}")
    said = rig.defaults()
    for word in (name, "unchanged", "being deleted", "finalizer"):
        expect(word in said, f"{word}: {said}")
    expect("unallocatable" in row(), row())
    expect_equal([one["allocatable"] for one in json.loads(croft("pool", "list", "-o", "json").stdout) if one["name"] == name], [False], "as JSON")
    done = croft("check", "-o", "json")
    found = [one for one in json.loads(done.stdout) if one["finding"] == "pool_not_allocatable"]
    expect(done.returncode == 3 and [one["subject"] for one in found] == [f"pool {name}"], f"{done}")
    expect("finalizer" in found[0]["remedy"] and name in found[0]["remedy"], f"{found}")
    pool = rig.kube.call("GET", f"{pools}/{name}")
    pool["metadata"]["finalizers"] = []
    rig.kube.call("PUT", f"{pools}/{name}", pool)
    wait_for(lambda: name not in [one["metadata"]["name"] for one in rig.kube.call("GET", pools)["items"]], "it is gone", 30)
    expect("default-ipv4-ippool created" in rig.defaults(), "it is made anew")
    say(f"a pool that is being deleted: {said.strip()}")


def half_made(rig):
    """A pool is announced, disabled, and then enabled: whoever is killed in between, or may not go on, leaves half of one."""
    pools = "/apis/crd.projectcalico.org/v1/ippools"
    command = lambda *words: [str(rig.world.bin / "croft"), "--store", rig.store, "pool", *words]
    is_disabled = lambda name: rig.kube.call("GET", f"{pools}/{name}")["spec"].get("disabled", False)
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1"}
    rig.kube.call("POST", policies, {**kind, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-enabling"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": ["crd.projectcalico.org"], "apiVersions": ["v1"], "operations": ["UPDATE"],
                                                "resources": ["ippools"]}]},
        "validations": [{"expression": "false", "message": "not now"}]}})
    rig.kube.call("POST", policies.replace("policies", "policybindings"),
                  {**kind, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-enabling"},
                   "spec": {"policyName": "no-enabling", "validationActions": ["Deny"]}})

    def is_denied():
        try:
            rig.kube.call("PUT", f"{pools}/default-ipv4-ippool", rig.kube.call("GET", f"{pools}/default-ipv4-ippool"))
        except Refused as refused:
            return "not now" in refused.message
        return False

    wait_for(is_denied, "the policy is heard of", 60)
    done = run(*command("create", "half", "--cidr", "10.81.0.0/16"), check=False)
    expect(done.returncode != 0, f"a pool that can't be enabled: {done}")
    expect("croft pool enable half" in done.stderr and "not now" in done.stderr, done.stderr)
    expect(is_disabled("half"), "it is disabled")
    say(f"cut short: {done.stderr.strip()}")
    rig.kube.call("DELETE", f"{policies}/no-enabling")

    def completed():
        done = run(*command("create", "half", "--cidr", "10.81.0.0/16"), check=False)
        return done if done.returncode == 0 else None

    done = wait_for(completed, "the same maker again", 60)
    expect("completed" in done.stdout, done.stdout)
    expect(not is_disabled("half"), "it is enabled")
    expect("unchanged" in run(*command("create", "half", "--cidr", "10.81.0.0/16")).stdout, "a third time")
    run(*command("disable", "half"))
    done = run(*command("create", "half", "--cidr", "10.81.0.0/16"))
    expect("unchanged" in done.stdout and "croft pool enable half" in done.stderr, f"what somebody disabled: {done}")
    expect(is_disabled("half"), "and stays so")

    # Killed wherever it may be.
    left_half = 0
    for turn in range(24):
        name, cidr = f"cut-{turn}", f"10.{100 + turn}.0.0/16"
        making = subprocess.Popen(command("create", name, "--cidr", cidr), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.02 + 0.01 * turn)
        making.kill()
        making.wait()
        there = [pool for pool in rig.kube.call("GET", pools)["items"] if pool["metadata"]["name"] == name]
        left_half += any(pool["spec"].get("disabled", False) for pool in there)
        run(*command("create", name, "--cidr", cidr))
        expect(not is_disabled(name), f"{name} is enabled")
    say(f"24 makers killed, {left_half} left half a pool; all were completed")
    check = run(rig.world.bin / "croft", "--store", rig.store, "check", check=False)
    expect_equal(check.returncode, 0, f"croft check: {check.stdout}{check.stderr}")


def play(world, kube):
    rig = Rig(world, kube)
    refusals(rig)
    as_kubeadm_has_them(rig)
    of_many_one_makes_them(rig)
    being_deleted(rig)
    half_made(rig)
