"""Cases that share a real kube-apiserver: each begins with an empty register, no pods and nodes, and the accounts as shipped.

usage: kube_cases.py BIN_DIR VERSION [--calicos-alone] CASE...

A case is a module with play(world, kube); its directory and processes end with it. --calicos-alone: nothing of Croft's is in the cluster.
"""

import contextlib
import importlib
import sys
import time

from kube_apiserver_lib import KubeApiserver, Refused
from kube_store import calico_definitions, install_definitions, make_accounts, with_empty_register
from lib import World, main, say

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
# The certificate is of one address, and kube_install asks at another.
ARGUMENTS = ["--disable-admission-plugins", "ServiceAccount", "--bind-address", "0.0.0.0"]
KEPT = ("kubernetes", "extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking")


def delete(kube, path):
    with contextlib.suppress(Refused):
        kube.call("DELETE", path, {"gracePeriodSeconds": 0})


def begin_anew(kube):
    with_empty_register(kube)

    def clear(folder, goes=lambda name: name not in KEPT):
        for item in kube.call("GET", folder)["items"]:
            name = item["metadata"]["name"]
            if goes(name) and "kubernetes.io/bootstrapping" not in item["metadata"].get("labels", {}):
                delete(kube, f"{folder}/{name}")
    for folder in ("/api/v1/nodes", f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings", f"{ADMISSION}/validatingadmissionpolicies",
                   f"{ADMISSION}/validatingadmissionpolicybindings"):
        clear(folder)
    for namespace in ("default", "croft-system", "kube-system"):
        for kind in ("serviceaccounts", "events", "pods", "configmaps", "services"):
            clear(f"/api/v1/namespaces/{namespace}/{kind}")
    for namespace in ("croft-system", "kube-system"):
        for kind in ("rolebindings", "roles"):
            clear(f"{RBAC}/namespaces/{namespace}/{kind}", lambda name: name.startswith("croft-"))
    delete(kube, "/apis/coordination.k8s.io/v1/namespaces/croft-system/leases/croftd-controller")
    make_accounts(kube)


def test():
    calico_definitions()
    cases = [name for name in sys.argv[3:] if name != "--calicos-alone"]
    with World("kube-cases", sys.argv[1]) as place, KubeApiserver(place, sys.argv[2], arguments=ARGUMENTS) as kube:
        install_definitions(place, kube, own="--calicos-alone" not in sys.argv)
        for name in cases:
            begin = time.monotonic()
            begin_anew(kube)
            with World(name.replace("_", "-"), sys.argv[1]) as world:
                importlib.import_module(name).play(world, kube)
            say(f"== {name}: {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main(test, 3500)
