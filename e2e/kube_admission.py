"""Admission on a real kube-apiserver: a policy that refuses what Croft writes is told with its own words, and nothing is
left behind it; a webhook that adds labels hinders nobody; one that takes holders out of blocks is found by the very call
that it would have told an address.

usage: kube_cases.py BIN_DIR VERSION kube_admission
"""

import base64
import http.server
import json
import ssl
import threading
import time

from etcd import Node
from etcd_lib import free_ports
from kube_agent import findings
from kube_store import write_kubeconfig
from lib import expect, expect_equal, say, wait_for

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
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
            self.tried.add(f"probe-{number}")
            if is_so(code):
                return f"probe-{number}", answer
            # The policy may come between the two.
            if code == 0 and self.call("DEL", f"probe-{number}")[0] != 0:
                self.left.append(f"probe-{number}")
            expect(time.monotonic() < end, f"{what}: {answer}")
            time.sleep(0.5)


class Webhook:
    """Of each record of Croft's and Calico's that is written: `change` gets the new object and the old one, and gives
    operations of a JSON patch."""

    def __init__(self, world, kube, change):
        self.kube, self.change = kube, change
        certificate, key = kube.ca.sign("webhook", "IP:127.0.0.1")
        port, = free_ports(1)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
                patch = json.dumps(outer.change(asked["object"], asked.get("oldObject"))).encode()
                body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
                    "uid": asked["uid"], "allowed": True, "patchType": "JSONPatch",
                    "patch": base64.b64encode(patch).decode()}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        world.stack.callback(self.server.shutdown)
        rule = {"apiGroups": ["crd.projectcalico.org"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                "resources": ["ipamblocks", "ipamhandles", "blockaffinities"]}
        kube.call("POST", f"{ADMISSION}/mutatingwebhookconfigurations", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "change"}, "webhooks": [{
                "name": "change.example.org", "rules": [rule], "failurePolicy": "Fail", "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "timeoutSeconds": 5, "clientConfig": {
                    "url": f"https://127.0.0.1:{port}/",
                    "caBundle": base64.b64encode(kube.ca.certificate.read_bytes()).decode()}}]})

    def end(self):
        self.kube.call("DELETE", f"{ADMISSION}/mutatingwebhookconfigurations/change")


def labelled(new, _old):
    labels = {**new["metadata"].get("labels", {}), "team": "blue"}
    return [{"op": "add", "path": "/metadata/labels", "value": labels}]


def forgetting(new, old):
    """Who is new in a block is taken out of it again."""
    is_new_holder = new["kind"] == "IPAMBlock" and old and len(new["spec"]["attributes"]) > len(old["spec"]["attributes"])
    return [{"op": "replace", "path": "/spec", "value": old["spec"]}] if is_new_holder else []


def mutated(world, kube, rig):
    blocks = lambda: kube.call("GET", "/apis/crd.projectcalico.org/v1/ipamblocks")["items"]
    webhook = Webhook(world, kube, labelled)
    end = time.monotonic() + 60
    number = 0
    while not all(block["metadata"].get("labels", {}).get("team") == "blue" for block in blocks()) or number == 0:
        expect(time.monotonic() < end, f"the webhook labels what is written: {blocks()}")
        number += 1
        rig.node.add(f"labelled-{number}")
        time.sleep(0.2)
    webhook.change = forgetting
    held = world.held(rig.store)
    for attempt in range(2):
        code, answer = rig.call("ADD", "lost")
        expect(code != 0, f"an address of which the register knows nothing was told: {answer}")
        expect_equal(answer["code"], 102, f"what is told: {answer}")
        expect("webhook" in answer["msg"] + answer.get("details", ""), f"the remedy is told: {answer}")
        expect_equal(world.held(rig.store), held, f"attempt {attempt}: those before hold what they held")
    say(f"what a webhook takes away: {answer['msg']}")
    webhook.end()
    wait_for(lambda: rig.call("ADD", "lost")[0] == 0, "the webhook is gone", 60)
    expect_equal(len(world.held(rig.store)), len(held) + 1, "one holder more")
    for container in ["lost", *(f"labelled-{i + 1}" for i in range(number))]:
        rig.node.delete(container)


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
        rig.node.delete(container)
    mutated(world, kube, rig)
    expect_equal(world.held(rig.store), {}, "all is given back")
    expect_equal(findings(world, rig.store), [], "nothing is left behind")
