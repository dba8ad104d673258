"""Admission on a real kube-apiserver: a policy that refuses what Croft writes is told with its own words, and nothing is
left behind it; one that takes holders out of blocks is found by the very call that it would have told an address.
"""

import time

from etcd_lib import Node
from kube_agent import findings
from kube_store import write_kubeconfig
from lib import expect, expect_equal, say, wait_for

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
BLOCKS = {"apiGroups": ["crd.projectcalico.org"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["ipamblocks"]}
WORDS = "blocks are frozen by the platform team"


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        self.node = Node(world, f"kube:{write_kubeconfig(world, kube, 'croft-node')}", "oak")
        self.left = []  # whose DEL was refused
        self.tried = set()  # containers of refused ADDs, whose DELs a runtime asks for

    def call(self, command, container):
        code, answer, _ = self.node.finish(self.node.start(command, container))
        return code, answer

    def forbid(self):
        self.kube.make(f"{ADMISSION}/validatingadmissionpolicies", "ValidatingAdmissionPolicy", "freeze",
            spec={"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [BLOCKS]}, "validations": [{"expression": "false",
                  "message": WORDS}]})
        self.kube.make(f"{ADMISSION}/validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "freeze",
            spec={"policyName": "freeze", "validationActions": ["Deny"]})

    def allow(self):
        self.kube.call("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/freeze")
        self.kube.call("DELETE", f"{ADMISSION}/validatingadmissionpolicies/freeze")

    def until(self, is_so, what):
        """A policy takes effect some time after it was made."""
        end = time.monotonic() + 60
        number = 0
        while True:
            number += 1
            code, answer = self.call("ADD", f"probe-{number}")
            self.tried.add(f"probe-{number}")
            if is_so(code):
                return f"probe-{number}", answer
            # The policy may come between the two.
            if code == 0 and self.call("DEL", f"probe-{number}")[0] != 0:
                self.left.append(f"probe-{number}")
            expect(time.monotonic() < end, f"{what}: {answer}")
            time.sleep(0.5)


# Whoever is new in a block is taken out of it again.
FORGETS = ("object.kind == 'IPAMBlock' && oldObject != null && size(object.spec.attributes) > size(oldObject.spec.attributes) ? "
           "[JSONPatch{op: 'replace', path: '/spec/allocations', value: oldObject.spec.allocations}, "
           "JSONPatch{op: 'replace', path: '/spec/unallocated', value: oldObject.spec.unallocated}, "
           "JSONPatch{op: 'replace', path: '/spec/attributes', value: oldObject.spec.attributes}] : []")


def mutated(world, kube, rig):
    """What a policy changes on its way is found by the very call that it would have told an address."""
    kind = {"apiVersion": "admissionregistration.k8s.io/v1"}
    kube.call("POST", f"{ADMISSION}/mutatingadmissionpolicies", {**kind, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "change"}, "spec": {
        "matchConstraints": {"resourceRules": [BLOCKS]}, "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": FORGETS}}]}})
    kube.call("POST", f"{ADMISSION}/mutatingadmissionpolicybindings", {
        **kind, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "change"}, "spec": {"policyName": "change"}})
    container, answer = rig.until(lambda code: code != 0, "a policy changes what is written")
    held = world.held(rig.store)
    expect(answer["code"] == 102 and "webhook or policy" in answer["msg"] + answer.get("details", ""), f"the remedy is told: {answer}")
    expect(container not in [row["containerId"] for row in held.values()], f"who was refused holds nothing: {held}")
    say(f"what a policy takes away: {answer['msg']}")
    kube.call("DELETE", f"{ADMISSION}/mutatingadmissionpolicybindings/change")
    kube.call("DELETE", f"{ADMISSION}/mutatingadmissionpolicies/change")
    again, _ = rig.until(lambda code: code == 0, "the policy is gone")
    for one in {again, container, *rig.left, *rig.tried}:
        rig.node.delete(one)


def play(world, kube):
    rig = Rig(world, kube)
    world.croft(rig.store, "pool", "create", "a", "--cidr", "10.79.0.0/24", "--block-size", "28", "--gateway", "none")
    rig.node.add("c1")
    rig.forbid()
    refused, answer = rig.until(lambda code: code != 0, "a policy refuses")
    text = answer["msg"] + answer.get("details", "")
    expect(WORDS in text and "freeze" in text, f"the refusal is told: {answer}")
    expect_equal(answer["code"], 102, f"a refusal by policy: {text}")
    say(f"refused with code {answer['code']}: {text}")
    code, answer = rig.call("DEL", "c1")
    expect(code != 0 and WORDS in answer["msg"] + answer.get("details", ""), f"a DEL is told too: {answer}")
    expect_equal(sorted(row["containerId"] for row in world.held(rig.store).values()), sorted(["c1", *rig.left]),
                 "who holds: not who was refused")

    rig.allow()
    probe, _ = rig.until(lambda code: code == 0, "the policy is gone")
    for container in sorted({"c1", probe, refused, *rig.left, *rig.tried}):
        wait_for(lambda one=container: rig.call("DEL", one)[0] == 0, f"a DEL of {container}, once the API server knows it too", 30)
    if kube.minor >= 36:  # older ones have no such policies
        mutated(world, kube, rig)
    expect_equal(world.held(rig.store), {}, "all is given back")
    expect_equal(findings(world, rig.store), [], "nothing is left behind")
