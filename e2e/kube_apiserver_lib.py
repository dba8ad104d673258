"""A real kube-apiserver on a real etcd. The scripts in e2e/kubernetes build each version once, into the user's cache directory; without Go a test
skips itself. CROFT_KUBE_APISERVER_DIR names a directory that has them already. As a script, BIN_DIR VERSION [kube-node], it builds.
"""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import ssl
import sys
import time
import urllib.error
import urllib.request

from etcd_lib import Authority, Etcd, free_ports
from kube_storage import Range, decode_ip_address, decode_service, decode_service_cidr
from lib import Daemon, Failure, build, expect_equal, main, require_programs, run, wait_for

PROTOBUF, JSON = "application/vnd.kubernetes.protobuf", "application/json"
PREFIX = "/registry/"
TOKEN = "the-only-user"


class Refused(Failure):
    """The apiserver answered with a Status that is no success."""

    def __init__(self, code, status):
        self.code, self.reason, self.message = code, status.get("reason", ""), status.get("message", "")
        super().__init__(f"{code} {self.reason}: {self.message}")


def refused(code, call, *arguments):
    """Why a call was refused, which has to be with this code."""
    try:
        made = call(*arguments)
    except Refused as why:
        expect_equal(why.code, code, f"{arguments}: {why}")
        return why
    raise Failure(f"{arguments}: taken: {made}")


def if_there(call, *arguments):
    try:
        return call(*arguments)
    except Refused as why:
        expect_equal(why.code, 404, f"{arguments}: {why}")
        return None


SOURCES = pathlib.Path(__file__).resolve().parent / "kubernetes"


def cache_root():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "croft"


def cache_of(version, name="kube-apiserver"):
    """Where a program of a version is kept: outside any checkout, under another name when its sources are others."""
    given = os.environ.get("CROFT_KUBE_APISERVER_DIR")
    if given:
        return pathlib.Path(given)
    sources = ("build-other", "versions", "1.36/main.go")
    if (SOURCES / version).is_dir():
        main_file = "main.go" if name == "kube-apiserver" else "node/main.go"
        sources = ("build", *(f"{version}/{source}" for source in ("go.mod", "go.sum", main_file)))
    digest = hashlib.sha256(b"".join((SOURCES / source).read_bytes() for source in sources))
    return cache_root() / "kubernetes" / f"{version}-{digest.hexdigest()[:16]}"


def program(version, name="kube-apiserver"):
    """The kube-apiserver of a version, or its `kube-node` (e2e/kubernetes/build), built if need be by one test."""
    cache = cache_of(version, name)
    path = cache / f"{name}-{version}"
    if path.exists():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            # Compilers that collect no garbage below a gigabyte, which hardly any reaches, take a fifth less of the processor.
            env = {"GOGC": "off", "GOMEMLIMIT": "1GiB", **os.environ}
            script = "build" if (SOURCES / version).is_dir() else "build-other"
            build(SOURCES / script, cache, version if name == "kube-apiserver" else f"{name}-{version}", env=env, timeout=3600)
    return path


class KubeApiserver:
    """One, and the etcd that it has to itself unless it is given one. It goes with its `with`, or else with the World."""

    def __init__(self, world, version, addresses="10.96.0.0/24", ports="30000-32767", media=PROTOBUF, etcd=None,
                 arguments=()):
        require_programs("openssl")
        self.world, self.version, self.program = world, version, program(version)
        self.minor = minor = int(version.split(".")[1])
        self.has_bitmaps, self.has_objects = minor < 34, minor >= 33  # of Service addresses; 1.33 has both
        self.addresses, self.ports, self.media, self.arguments = addresses, ports, media, arguments
        self.etcd = etcd or Etcd(world)
        self.port, = free_ports(1)
        self.url = f"https://127.0.0.1:{self.port}"
        self.folder = world.directory / f"kube-{self.port}"
        self.folder.mkdir()
        self._make_files()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_why):
        self.kill()

    def _make_files(self):
        self.ca = Authority(self.folder, "kube")
        self.certificate, self.key = self.ca.sign("kube-apiserver", "IP:127.0.0.1,DNS:localhost")
        self.account_key = self.folder / "accounts.key"
        run("openssl", "genrsa", "-out", self.account_key, "2048")
        self.tokens = self.folder / "tokens.csv"
        self.tokens.write_text(f'{TOKEN},admin,1,"system:masters"\n')
        self.tls = ssl.create_default_context(cafile=str(self.ca.certificate))

    def start(self, patience=120):
        """Until its first repair of the ranges is written, and its own Service exists: some time after it is ready."""
        begin = time.monotonic()
        self.process = Daemon(
            self.world, f"kube-{self.port}", self.program, "--etcd-servers", self.etcd.url, "--bind-address", "127.0.0.1",
            "--secure-port", self.port, "--cert-dir", self.folder,
            "--tls-cert-file", self.certificate, "--tls-private-key-file", self.key,
            "--service-account-issuer", "https://kube.invalid", "--service-account-key-file", self.account_key,
            "--service-account-signing-key-file", self.account_key,
            "--authorization-mode", "Node,RBAC", "--anonymous-auth=false", "--token-auth-file", self.tokens,
            "--service-cluster-ip-range", self.addresses, "--service-node-port-range", self.ports,
            "--storage-media-type", self.media,
            # Loopback can't be the address of the Service `kubernetes`, and nobody looks for its endpoints.
            "--advertise-address", "192.0.2.1", "--endpoint-reconciler-type", "none", *self.arguments)
        wait_for(self._is_ready, f"kube-apiserver {self.version} is ready", patience)
        self.started_in = time.monotonic() - begin
        wait_for(self._has_own_service, f"kube-apiserver {self.version} has made its own Service", patience)

    def restart(self, **changes):
        """Stops it and starts it again, with other `addresses`, `ports`, `media` or `arguments`; the etcd stays."""
        self.kill()
        for name in changes:
            if name not in ("addresses", "ports", "media", "arguments"):
                raise TypeError(name)
        vars(self).update(changes)
        self.start()

    def kill(self):
        self.process.kill()

    def _is_ready(self):
        if self.process.poll() is not None:
            raise Failure(f"kube-apiserver {self.version} ended with {self.process.returncode}: {self.process.tail(15)}")
        with contextlib.suppress(OSError, Refused):
            # It listens long before it serves; a connection of that time is better given up.
            return self._send("GET", "/readyz", timeout=2) == b"ok"
        return False

    def _has_own_service(self):
        with contextlib.suppress(Refused):
            return self.get_service("kubernetes")
        return None

    # ------------------------------------------------------------ its REST API

    def apply(self, text, query=""):
        """Makes the objects of a manifest (YAML), each where its kind belongs; a namespace may be there."""
        for document in re.split(r"^---$", text, flags=re.MULTILINE):
            kind = re.search(r"^kind: (\w+)$", document, re.MULTILINE)
            if not kind:
                continue
            where = {"Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
                     "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
                     "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
                     "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                     "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                     "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                     "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets"}[kind[1]]
            namespace = re.search(r'^  namespace: "?([^"\s]+)"?$', document, re.MULTILINE)
            path = where.format(namespace[1]) if namespace else where
            with contextlib.suppress(Refused) if kind[1] == "Namespace" else contextlib.nullcontext():
                self._send("POST", path + query, document.encode(), media="application/yaml")

    def token_of(self, account, namespace="croft-system", seconds=3600):
        """A token of a service account, as `kubectl create token` gets it."""
        answer = self.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                           {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                            "spec": {"expirationSeconds": seconds}})
        return answer["status"]["token"]

    def _send(self, method, path, body=None, timeout=30, media="application/json"):
        request = urllib.request.Request(self.url + path, method=method, headers={
            "Authorization": f"Bearer {TOKEN}", "Content-Type": media, "Accept": "application/json"})
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=timeout, context=self.tls) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                status = json.loads(text)
            except ValueError:
                status = {"message": text.decode(errors="replace")}
            raise Refused(error.code, status) from error

    def call(self, method, path, body=None):
        """One request; the decoded answer. Raises Refused for any status that is no success."""
        return json.loads(self._send(method, path, body))

    def patch(self, path, body):
        return json.loads(self._send("PATCH", path, json.dumps(body).encode(), media="application/merge-patch+json"))

    def make(self, path, kind, name, annotations=None, **more):
        """An object of a kind, where these are: as it was made."""
        first, *where = path.removeprefix("/").split("/")
        version = where[0] if first == "api" else "/".join(where[:2])
        return self.call("POST", path, {"apiVersion": version, "kind": kind, "metadata": {"name": name, "annotations": annotations or {}}, **more})

    def make_node(self, name, **more):
        return self.make("/api/v1/nodes", "Node", name, **more)

    def make_pod(self, name, node="", namespace="default", annotations=None, **spec):
        """Its UID."""
        spec = {"nodeName": node, "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "registry.invalid/c"}], **spec}
        return self.make(f"/api/v1/namespaces/{namespace}/pods", "Pod", name, annotations, spec=spec)["metadata"]["uid"]

    def may(self, account, verb, resource, group="", where="", namespace="default"):
        """Whether a service account of a namespace may do that with a resource somewhere."""
        return self.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
                "user": f"system:serviceaccount:{namespace}:{account}", "groups": ["system:serviceaccounts", "system:authenticated"],
                "resourceAttributes": {"group": group, "resource": resource, "namespace": where, "verb": verb}}})["status"]["allowed"]

    @staticmethod
    def _services(namespace, name=""):
        return f"/api/v1/namespaces/{namespace}/services" + (f"/{name}" if name else "")

    def create_service(self, name, spec, namespace="default"):
        """The Service as it was made, with what was allocated to it."""
        return self.make(self._services(namespace), "Service", name, spec=spec)

    def get_service(self, name, namespace="default"):
        return self.call("GET", self._services(namespace, name))

    def update_service(self, service):
        meta = service["metadata"]
        return self.call("PUT", self._services(meta["namespace"], meta["name"]), service)

    def delete_service(self, name, namespace="default"):
        return self.call("DELETE", self._services(namespace, name))

    def services(self):
        """All Services of all namespaces."""
        return self.call("GET", "/api/v1/services")["items"]

    def repaired(self):
        """What its repairs have found since it was started: (range's metric, type) -> how often."""
        pattern = re.compile(rb'^apiserver_(clusterip|nodeport)_repair_(?:ip|port)_errors_total{type="(\w+)"} (\S+)$',
                             re.MULTILINE)
        return {(kind.decode(), what.decode()): float(count)
                for kind, what, count in pattern.findall(self._send("GET", "/metrics")) if float(count)}

    # ------------------------------------------------------------ its keys in etcd

    def _etcd(self, call, **body):
        encoded = {key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
                   for key, value in body.items()}
        request = urllib.request.Request(f"{self.etcd.url}/v3/kv/{call}", json.dumps(encoded).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def raw(self, prefix):
        """Key (without PREFIX) -> its bytes, of all keys below a prefix such as `ranges/`."""
        begin = (PREFIX + prefix).encode()
        kvs = self._etcd("range", key=begin, range_end=begin[:-1] + bytes([begin[-1] + 1])).get("kvs", [])
        return {base64.b64decode(kv["key"]).decode()[len(PREFIX):]: base64.b64decode(kv.get("value", "")) for kv in kvs}

    def revisions(self, *prefixes):
        """Key -> the revision of its last change, of all keys below some prefixes."""
        found = {}
        for prefix in prefixes:
            begin = (PREFIX + prefix).encode()
            kvs = self._etcd("range", key=begin, range_end=begin[:-1] + bytes([begin[-1] + 1]), keys_only=True)
            found.update({base64.b64decode(kv["key"]).decode()[len(PREFIX):]: int(kv["mod_revision"])
                          for kv in kvs.get("kvs", [])})
        return found

    def put_raw(self, key, value):
        self._etcd("put", key=(PREFIX + key).encode(), value=value)

    def ranges(self):
        """`serviceips`, `secondaryserviceips`, `servicenodeports` -> Range, of those that exist."""
        return {key.split("/")[1]: Range.decode(value) for key, value in self.raw("ranges/").items()}

    def stored_services(self):
        return [decode_service(value) for value in self.raw("services/specs/").values()]

    def ip_addresses(self):
        """Address -> (resource, namespace, name) of what holds it."""
        return {address: holder for _, address, holder in map(decode_ip_address, self.raw("ipaddresses/").values())}

    def service_cidrs(self):
        """Name -> CIDRs."""
        return {name: cidrs for _, name, cidrs in map(decode_service_cidr, self.raw("servicecidrs/").values())}


if __name__ == "__main__":
    main(lambda: print(program(*sys.argv[2:])), 3500)
