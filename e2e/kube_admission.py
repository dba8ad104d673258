"""An admission policy that refuses what Croft writes, on a real kube-apiserver: the refusal is told with the policy's own
words, and nothing is left behind it.

usage: kube_admission.py BIN_DIR VERSION
"""

import sys
import time

from etcd import Node
from kube_agent import findings
from kube_apiserver_lib import KubeApiserver
from kube_store import calico_definitions, install_definitions, make_accounts, write_kubeconfig
from lib import World, expect, expect_equal, main, say

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WORDS = "blocks are frozen by the platform team"


class Rig:
    def __init__(self, world, kube):
        self.world, self.kube = world, kube
        self.store = f"kube:{write_kubeconfig(world, kube, 'croft-operator')}"
        self.node = Node(world, f"kube:{write_kubeconfig(world, kube, 'croft-node')}", "oak")
        self.left = []  # whose DEL was refused

    def call(self, command, container):
        code, answer, _ = self.node.finish(self.node.start(command, container))
        return code, answer

    def forbid(self):
        rule = {"apiGroups": ["crd.projectcalico.org"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                "resources": ["ipamblocks"]}
        self.kube.call("POST", f"{ADMISSION}/validatingadmissionpolicies", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "freeze"},
            "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
                     "validations": [{"expression": "false", "message": WORDS}]}})
        self.kube.call("POST", f"{ADMISSION}/validatingadmissionpolicybindings", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "freeze"}, "spec": {"policyName": "freeze", "validationActions": ["Deny"]}})

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
            if is_so(code):
                return f"probe-{number}", answer
            # The policy may come between the two.
            if code == 0 and self.call("DEL", f"probe-{number}")[0] != 0:
                self.left.append(f"probe-{number}")
            expect(time.monotonic() < end, f"{what}: {answer}")
            time.sleep(0.5)


def test():
    calico_definitions()
    with World("kube-admission", sys.argv[1]) as world, KubeApiserver(world, sys.argv[2]) as kube:
        install_definitions(world, kube)
        make_accounts(kube)
        rig = Rig(world, kube)
        world.croft(rig.store, "pool", "create", "a", "--cidr", "10.79.0.0/24", "--block-size", "28", "--gateway", "none")
        rig.node.add("c1")
        rig.forbid()
        refused, answer = rig.until(lambda code: code != 0, "a policy refuses")
        text = answer["msg"] + answer.get("details", "")
        expect(WORDS in text and "freeze" in text, f"the refusal is told: {answer}")
        say(f"refused with code {answer['code']}: {text}")
        code, answer = rig.call("DEL", "c1")
        expect(code != 0 and WORDS in answer["msg"] + answer.get("details", ""), f"a DEL is told too: {answer}")
        expect_equal(sorted(row["containerId"] for row in world.held(rig.store).values()), sorted(["c1", *rig.left]),
                     "who holds: not who was refused")

        rig.allow()
        probe, _ = rig.until(lambda code: code == 0, "the policy is gone")
        for container in ("c1", probe, refused, *rig.left):
            rig.node.delete(container)
        expect_equal(world.held(rig.store), {}, "all is given back")
        expect_equal(findings(world, rig.store), [], "nothing is left behind")


if __name__ == "__main__":
    main(test)
