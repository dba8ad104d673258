"""The least rights: what each verb of the chart's roles is for, shown by what breaks without it.

usage: kube_rights.py BIN_DIR VERSION [full [ACCOUNT...]] [--show]

The roles are those that a real helm renders. Each account's programs do their work on a real kube-apiserver that writes down
what it was asked for. A right that nobody uses fails the test, and so does a request that the rights do not allow. With `full` each
right is then taken away by itself, and some work that used it must fail and say which one is missing, or as QUIET tells; --show
prints which. Rights in Calico's newer group, projectcalico.org/v3, must be those in its older one, which are tried.
"""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import json
import re
import subprocess
import sys
import time

from etcd import Node
from kube_apiserver_lib import KubeApiserver, Refused
from kube_chart import Tools
from kube_store import CALICO, apply, calico_definitions, install_definitions, is_served, shipped_definitions
from lib import Failure, World, expect, expect_equal, main, own_environment, run, say, wait_for

ACCOUNTS = ("croft-plugin", "croft-node", "croft-controller", "croft-bootstrap", "croft-operator")
NAMESPACE = "croft-system"
USERS = 600
RBAC = "/apis/rbac.authorization.k8s.io/v1"
V1, V3 = "crd.projectcalico.org", "projectcalico.org"
# The same kinds under other names in Calico's newer group.
V3_NAMES = {"ipamconfigs": "ipamconfigurations"}
POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: None, userGroups: ["system:masters", "system:nodes"]}
  - {level: None, users: ["system:apiserver"]}
  - {level: Metadata}
"""


class Broken(Exception):
    """What a program could not do, in its own words."""


class Silent(Failure):
    """Something breaks, and which right is missing is not said."""


@dataclasses.dataclass(frozen=True, order=True)
class Right:
    namespace: str  # "": of the whole cluster
    group: str
    resource: str
    names: tuple
    verb: str

    def __str__(self):
        where = f" in {self.namespace}" if self.namespace else ""
        named = f" {', '.join(self.names)}" if self.names else ""
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}{named}{where}"

    def allows(self, asked):
        if (self.verb, self.group, self.resource) != (asked.verb, asked.group, asked.resource):
            return False
        if self.namespace and self.namespace != asked.namespace:
            return False
        return not self.names or asked.names[0] in self.names

    def is_missing_in(self, text):
        return f'cannot {self.verb} resource "{self.resource}" in API group "{self.group}"' in text


def rights_of(kube, account):
    """What the chart's bindings give to an account."""
    found = set()
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in kube.call("GET", f"{RBAC}/{kind}")["items"]:
            subjects = [(s["kind"], s.get("namespace"), s["name"]) for s in binding.get("subjects", [])]
            if ("ServiceAccount", NAMESPACE, account) not in subjects:
                continue
            namespace = binding["metadata"].get("namespace", "")
            role = binding["roleRef"]
            folder = f"/namespaces/{namespace}/roles" if role["kind"] == "Role" else "/clusterroles"
            for rule in kube.call("GET", f"{RBAC}{folder}/{role['name']}").get("rules") or []:
                expect("nonResourceURLs" not in rule, f"{role['name']}: {rule}")
                for group, resource, verb in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                    expect("*" not in (group, resource, verb), f"{role['name']} says * where it could say what it means: {rule}")
                    found.add(Right(namespace, group, resource, tuple(rule.get("resourceNames", ())), verb))
    return found


class OwnNode(Node):
    """A node whose containers are nobody else's."""

    def start(self, command, container, **ipam):
        return super().start(command, f"{container}-{self.name}", **ipam)


class User:
    """Somebody with some rights, and what they ask for."""

    def __init__(self, rig, rights):
        self.rig, self.rights = rig, rights
        self.number = next(rig.numbers)
        expect(self.number < USERS, "more users than there are tokens")
        self.name, self.tag = f"user-{self.number}", f"u{self.number}"
        self._bind()
        self.path = rig.kubeconfig(self.tag, f"token-{self.number}")
        self.store = f"kube:{self.path}{rig.group}"

    def _bind(self):
        kube, subject = self.rig.kube, {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.name}
        for namespace, rights in itertools.groupby(sorted(self.rights), lambda right: right.namespace):
            rules = []
            for (group, resource, names), some in itertools.groupby(rights, lambda r: (r.group, r.resource, r.names)):
                rules.append({"apiGroups": [group], "resources": [resource], "verbs": [r.verb for r in some],
                              **({"resourceNames": list(names)} if names else {})})
            kind, folder = ("Role", f"{RBAC}/namespaces/{namespace}/") if namespace else ("ClusterRole", f"{RBAC}/")
            body = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": self.name}}
            kube.call("POST", folder + kind.lower() + "s", {**body, "kind": kind, "rules": rules})
            kube.call("POST", folder + kind.lower() + "bindings",
                      {**body, "kind": kind + "Binding", "subjects": [subject],
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.name}})

    def wait(self):
        """An API server learns of bindings a little later."""
        if not self.rights:
            return
        right = max(self.rights)
        asked = {"user": self.name, "resourceAttributes": {
            "namespace": right.namespace, "verb": right.verb, "group": right.group, "resource": right.resource.split("/")[0],
            "subresource": (right.resource.split("/") + [""])[1], "name": right.names[0] if right.names else ""}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        wait_for(lambda: self.rig.kube.call("POST", path, review)["status"]["allowed"], f"{self.name} may {right}", 30)

    # ------------------------------------------------------------ what they run

    def croft(self, *arguments, code=0):
        done = run(self.rig.world.bin / "croft", "--store", self.store, *arguments, check=False,
                   env={**own_environment(self.rig.world.directory), "HOME": str(self.rig.world.directory)})
        if done.returncode not in (code if isinstance(code, tuple) else (code,)):
            raise Broken(f"croft {' '.join(map(str, arguments))}: exit code {done.returncode}: {done.stdout}{done.stderr}")
        if "cannot " in done.stderr and ("forbidden" in done.stderr or "this account may not read" in done.stderr):
            raise Broken(done.stderr)
        return done.stdout + done.stderr

    def anew(self):
        """Nodes, pods and pools of other names from here on."""
        self.tag = f"u{self.number}-{next(self.rig.numbers_of_logs)}"
        return self

    def node(self, name=None):
        node = OwnNode(self.rig.world, self.store, name or f"n-{self.tag}")
        node.ipam["ipv4_pools"] = ["p"]
        return node

    def call(self, node, command, container, **ipam):
        code, answer, err = node.finish(node.start(command, container, **ipam))
        if code != 0 or "forbidden" in err:
            raise Broken(f"{command}: {answer} {err}")
        return answer

    def daemon(self, command, *flags):
        """(process, what it says so far)."""
        log = self.rig.world.directory / f"{self.tag}-{command}-{next(self.rig.numbers_of_logs)}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen([self.rig.world.bin / "croftd", command, "--store", self.store, *flags],
                                       env=own_environment(self.rig.world.directory), stdout=out, stderr=out)
        self.rig.world.stack.callback(process.kill)
        return process, lambda: log.read_text(errors="replace")

    def until(self, condition, text, what, seconds=60):
        """`condition`, or Broken with what the program said: at once when it was refused something. The limit is of a busy machine."""
        end = time.monotonic() + seconds
        while not condition():
            if "cannot " in text() and "forbidden" in text():
                raise Broken(text())
            if time.monotonic() > end:
                raise Broken(f"not within {seconds} s: {what}; {text()}")
            time.sleep(0.05)


class Rig:
    def __init__(self, world, kube, group=""):
        self.world, self.kube, self.group = world, kube, group
        self.numbers, self.numbers_of_logs, self.pools = itertools.count(), itertools.count(), itertools.count()
        self.admin_path = self.kubeconfig("admin", "the-only-user")
        self.admin_store = f"kube:{self.admin_path}{group}"

    def kubeconfig(self, name, token):
        path = self.world.directory / f"kubeconfig-{name}"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "c", "cluster": {"server": self.kube.url, "certificate-authority": str(self.kube.ca.certificate)}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}]}))
        path.chmod(0o600)
        return path

    def admin(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.admin_store, *arguments, check=False)
        expect(done.returncode in (code if isinstance(code, tuple) else (code,)), f"croft {arguments}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def as_admin(self, node):
        """The same node's calls by who may do everything."""
        other = OwnNode(self.world, self.admin_store, node.name, node.args)
        other.ipam = {**node.ipam, "store": self.admin_store}
        other.ipam.pop("agent", None)
        return other

    def calico(self, resource):
        """Where Calico's objects of a kind are."""
        return f"/apis/{V3}/v3/{V3_NAMES.get(resource, resource)}" if self.group else f"{CALICO}/{resource}"

    @property
    def audit_log(self):
        return self.kube.folder / "audit.log"

    def asked(self):
        """User -> what they asked for, and whether it was allowed."""
        found = {}
        for line in self.audit_log.read_text().splitlines():
            event = json.loads(line)
            of = event.get("objectRef")
            if not of or event.get("stage") not in ("ResponseComplete", "ResponseStarted"):
                continue
            resource = of["resource"] + (f"/{of['subresource']}" if of.get("subresource") else "")
            right = Right(of.get("namespace", ""), of.get("apiGroup", ""), resource, (of.get("name", ""),), event["verb"])
            allowed = event.get("responseStatus", {}).get("code") != 403
            name = event["user"]["username"]
            # A service account that works with a user's rights.
            if of_user := re.match(r"system:serviceaccount:croft-system:sa-u(\d+)", name):
                name = f"user-{of_user[1]}"
            found.setdefault(name, set()).add((right, allowed))
        return found


# ---------------------------------------------------------------- what each account is for

class Action:
    """Some work of an account's programs. `alone`: no other goes on meanwhile, since it changes what all share."""

    all = []

    def __init__(self, account, name, act, alone):
        self.account, self.name, self.act, self.alone = account, name, act, alone


def work(account, name, alone=False, slow=False):
    """`slow`: only with `full`."""
    def take(act):
        if not slow or "full" in sys.argv:
            Action.all.append(Action(account, name, act, alone))
        return act
    return take


def with_dead_block(rig, node, **ipam):
    """An address of a node in a block that is the node's no longer: with it the block goes."""
    admin = rig.as_admin(node)
    admin.add("last", **ipam)
    # An API server's memory, of which lists of claims may be, is a little behind.
    wait_for(lambda: "no node" not in rig.admin("affinity", "release", "--node", node.name, "--force", code=(0, 1)),
             f"the claim of {node.name} is seen", 10)


def claims_of(rig, node):
    """CIDR -> state."""
    return {item["spec"]["cidr"]: item["spec"]["state"] for item in rig.kube.call("GET", rig.calico("blockaffinities"))["items"]
            if item["spec"]["node"] == node}


def crowded(rig, tag):
    """A pool of a single block."""
    number = next(rig.pools)
    rig.admin("pool", "create", f"one-{tag}-{number}", "--cidr", f"10.120.{number // 16}.{number % 16 * 16}/28", "--block-size", "28",
              "--gateway", "none", "--cooldown-seconds", "0")
    return f"one-{tag}-{number}"


def counted(rig, handle, wanted):
    """Whether a handle has as many blocks as its holder has addresses in."""
    blocks = rig.kube.call("GET", f"{rig.calico('ipamhandles')}/{handle}")["spec"]["block"]
    if len(blocks) != wanted:
        raise Broken(f"the handle counts what was released: {blocks}")


def as_pod(name, namespace="default", uid="5f0c"):
    return lambda container: f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name};K8S_POD_UID={uid}"


# The plugin and the agent do the same work; the agent by its socket.

def plays_plugin(account, prefix, reach):
    @work(account, f"{prefix} a node's first ADD, which claims a block")
    def first_add(user):
        with reach(user) as node:
            user.call(node, "ADD", "c1")
            states = claims_of(user.rig, node.name).values()
            if "confirmed" not in states:
                raise Broken(f"the claim is not confirmed: {states}")

    @work(account, f"{prefix} a DEL")
    def delete(user):
        with reach(user) as node:
            user.rig.as_admin(node).add("c1")
            user.call(node, "DEL", "c1")
            left = [row for row in user.rig.world.held(user.rig.admin_store).values() if row.get("node") == node.name]
            if left:
                raise Broken(f"the address is still held: {left}")
            handles = [item["metadata"]["name"] for item in user.rig.kube.call("GET", user.rig.calico("ipamhandles"))["items"]]
            if any(name.endswith(node.name) for name in handles):
                raise Broken("the handle is left")

    @work(account, f"{prefix} a DEL of the last address of a block that is nobody's")
    def delete_block(user):
        with reach(user) as node:
            with_dead_block(user.rig, node)
            user.call(node, "DEL", "last")

    @work(account, f"{prefix} an ADD that claims a block which was there before")
    def block_again(user):
        pool = crowded(user.rig, user.tag)
        with reach(user) as node:
            other = user.node(f"other-{user.tag}")
            with_dead_block(user.rig, other, ipv4_pools=[pool])
            user.rig.as_admin(other).delete("last")
            # It leaves a mark, which is read now and written again when the block goes once more.
            user.call(node, "ADD", "c1", ipv4_pools=[pool])
            wait_for(lambda: "no node" not in user.rig.admin("affinity", "release", "--node", node.name, "--force", code=(0, 1)),
                     f"the claim of {node.name} is seen", 10)
            user.call(node, "DEL", "c1")

    @contextlib.contextmanager
    def beside_another(user):
        """The node, and a pool of a single block, which another node has."""
        pool = crowded(user.rig, user.tag)
        with reach(user) as node:
            user.rig.as_admin(user.node(f"other-{user.tag}")).add("c1", ipv4_pools=[pool])
            yield node, pool

    @work(account, f"{prefix} an ADD that borrows from another node's block")
    def borrows(user):
        with beside_another(user) as (node, pool):
            user.call(node, "ADD", "c2", ipv4_pools=[pool])

    @work(account, f"{prefix} an ADD beside a pool with blocks of another size")
    def beside(user):
        with reach(user) as node:
            user.call(node, "ADD", "c1", ipv4_pools=["big"])

    @work(account, f"{prefix} an ADD whose pool has a nodeSelector")
    def selects_nodes(user):
        make_node(user.rig, f"n-{user.tag}")
        try:
            with reach(user) as node:
                user.call(node, "ADD", "c1", ipv4_pools=["of-nodes"])
        finally:
            user.rig.kube.call("DELETE", f"/api/v1/nodes/n-{user.tag}")

    @work(account, f"{prefix} an ADD and a DEL of a pod's second interface")
    def second_interface(user):
        with reach(user) as node:
            user.rig.as_admin(node).add("c1")
            node.env = {"CNI_IFNAME": "eth1"}
            user.call(node, "ADD", "c1", ipv4_pools=["second"])
            user.call(node, "DEL", "c1")

    @work(account, f"{prefix} an ADD beside a claim that another node has overtaken")
    def stale_claim(user):
        with beside_another(user) as (node, pool):
            path = user.rig.calico("blockaffinities")
            claim = next(item for item in user.rig.kube.call("GET", path)["items"] if item["spec"]["node"] == f"other-{user.tag}")
            for member in ("resourceVersion", "uid", "managedFields", "creationTimestamp", "generation", "annotations", "labels"):
                claim["metadata"].pop(member, None)
            cidr = claim["spec"]["cidr"].replace(".", "-").replace("/", "-")
            claim["metadata"]["name"] = f"{node.name}-{cidr}"
            claim["spec"].update(node=node.name, state="pending")
            user.rig.kube.call("POST", path, claim)
            time.sleep(0.2)
            user.call(node, "ADD", "c2", ipv4_pools=[pool])
            if claim["spec"]["cidr"] in claims_of(user.rig, node.name):
                raise Broken("the overtaken claim is left")

    @work(account, f"{prefix} an ADD whose pool has a namespaceSelector")
    def selects(user):
        with reach(user) as node:
            node.args = as_pod(f"pod-{user.tag}")
            user.call(node, "ADD", "c1", ipv4_pools=["selects"])

    @work(account, f"{prefix} an ADD of a pod with annotations")
    def annotated(user):
        name = f"pod-{user.tag}-{next(user.rig.numbers_of_logs)}"
        pod = user.rig.kube.call("POST", "/api/v1/namespaces/default/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": {"ipam.croft.dev/ipv4pools": '["big"]'}},
            "spec": {"nodeName": f"n-{user.tag}", "automountServiceAccountToken": False,
                     "containers": [{"name": "a", "image": "registry.invalid/a"}]}})
        with reach(user) as node:
            node.args = as_pod(name, uid=pod["metadata"]["uid"])
            answer = user.call(node, "ADD", "c1", annotations="api")
            expect(answer["ips"][0]["address"].startswith("10.77."), f"as annotated: {answer}")
            if reach is ByAgent:
                time.sleep(1.5)  # it begins to follow annotations with the first call, and says what keeps it from that

    @work(account, f"{prefix} CHECK")
    def check(user):
        with reach(user) as node:
            answer = {**user.rig.as_admin(node).finish(user.rig.as_admin(node).start("ADD", "c1"))[1], "interfaces": []}
            code, said, err = finish_with(node, "CHECK", "c1", prevResult=answer)
            if code != 0:
                raise Broken(f"CHECK: {said} {err}")

    @work(account, f"{prefix} GC")
    def collects(user):
        with reach(user) as node:
            user.rig.as_admin(node).add("c1")
            code, said, err = finish_with(node, "GC", "", **{"cniVersion": "1.1.0", "cni.dev/valid-attachments": []})
            if code != 0:
                raise Broken(f"GC: {said} {err}")

    @work(account, f"{prefix} STATUS")
    def status(user):
        with reach(user) as node:
            code, said, err = finish_with(node, "STATUS", "", cniVersion="1.1.0")
            if code != 0:
                raise Broken(f"STATUS: {said} {err}")


def finish_with(node, command, container, **members):
    """A call whose configuration has more members."""
    config = {"cniVersion": "1.0.0", "name": "net", "ipam": node.ipam, **members}
    env = {**own_environment(node.world.directory), "CNI_COMMAND": command, "CNI_PATH": str(node.world.bin)}
    if container:
        env.update(CNI_CONTAINERID=f"{container}-{node.name}", CNI_NETNS="/var/run/netns/none", CNI_IFNAME="eth0")
    done = subprocess.run([node.world.bin / "croft-ipam"], env=env, input=json.dumps(config), text=True, capture_output=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def status_of_a_reader(rig, rights):
    """An account that may read and not write: STATUS says so, with the right that is missing."""
    reader = User(rig, {right for right in rights if right.verb in ("get", "list")})
    reader.wait()
    code, said, err = finish_with(reader.node(), "STATUS", "", cniVersion="1.1.0")
    expect(code == 1 and json.loads(said)["code"] == 50, f"STATUS of a reader: {code} {said} {err}")
    for word in (f"may not update of ipamblocks.{V1}", "access.yaml"):
        expect(word in said, f"STATUS of a reader: {said}")
    say(f"STATUS of a reader: {json.loads(said)['msg']}")


class Alone:
    """The plugin goes to the API itself."""

    def __init__(self, user):
        self.user = user

    def __enter__(self):
        return self.user.node()

    def __exit__(self, *_why):
        return False


class ByAgent:
    """The plugin asks an agent, which has the rights. The node's name is of this action alone."""

    def __init__(self, user, *flags):
        self.user, self.flags = user, flags

    def __enter__(self):
        user = self.user
        number = next(user.rig.numbers_of_logs)
        node = user.node(f"n-{user.tag}")
        socket = user.rig.world.directory / f"{user.tag}-{number}.sock"
        self.process, self.text = user.daemon("agent", "--node", node.name, "--socket", str(socket), "--tombstones", "none", *self.flags)
        wait_for(socket.exists, "the agent listens", 20)
        node.ipam["agent"] = str(socket)
        user.until(lambda: self.is_following(socket), self.text, "it follows the register")
        return node

    def is_following(self, socket):
        done = run(self.user.rig.world.bin / "croft", "agent", "status", "--socket", socket, "-o", "json", check=False)
        rows = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None
        row = rows[0] if isinstance(rows, list) and rows else rows
        return bool(row) and str(row.get("cacheInUse", row)).lower() == "true"

    def __exit__(self, kind, _what, _where):
        said = self.text()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if kind is None and "forbidden" in said:
            raise Broken(said)
        return False


plays_plugin("croft-plugin", "the plugin:", Alone)
plays_plugin("croft-node", "the agent:", ByAgent)


@work("croft-plugin", "croftd install: the plugin reaches the register")
def install_probe(user):
    kube, name = user.rig.kube, f"sa-{user.tag}"
    kube.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
              {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}})
    kube.call("POST", f"{RBAC}/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user.name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]})
    time.sleep(0.5)
    install(user, user.rig.admin_store, "--plugin-service-account", name)


@work("croft-node", "the agent: it hears that a pool is disabled")
def hears_of_pools(user):
    pool = crowded(user.rig, user.tag)
    with ByAgent(user) as node:
        user.call(node, "ADD", "c1", ipv4_pools=[pool])
        user.rig.admin("pool", "disable", pool)
        time.sleep(0.5)
        code, answer, _ = node.finish(node.start("ADD", "c2", ipv4_pools=[pool]))
        if code == 0:
            raise Broken(f"an address of a disabled pool: {answer}")


@work("croft-node", "the agent: it follows the register, and says what keeps it from that")
def follows(user):
    with ByAgent(user) as node:
        user.call(node, "ADD", "c1")
        end = time.monotonic() + 5  # a stream that is refused is tried again; the log has a look each second
        while "forbidden" not in by_log(user) and time.monotonic() < end:
            time.sleep(0.1)


@work("croft-node", "the agent: a pod is told why it has no address")
def tells_pods(user):
    with ByAgent(user) as node:
        node.args = as_pod(f"told-{user.tag}")
        node.refuse("c1", ipv4_pools=["nowhere"])
        events = lambda: [e for e in user.rig.kube.call("GET", "/api/v1/namespaces/default/events")["items"]
                          if e["involvedObject"].get("name") == f"told-{user.tag}"]
        process, text = None, lambda: ""
        del process
        user.until(lambda: events() or "pods are not told" in by_log(user), text, "an Event")
        if not events():
            raise Broken(by_log(user))


def by_log(user):
    return "".join(path.read_text(errors="replace") for path in user.rig.world.directory.glob(f"{user.tag}-*.log"))


@work("croft-node", "the agent: NetworkUnavailable is taken back")
def clears_condition(user):
    name = f"n-{user.tag}"
    make_node(user.rig, name)
    body = {"status": {"conditions": [{"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated", "message": ""}]}}
    user.rig.kube._send("PATCH", f"/api/v1/nodes/{name}/status", json.dumps(body).encode(),
                        media="application/strategic-merge-patch+json")
    process, text = user.daemon("agent", "--node", name, "--socket", str(user.rig.world.directory / f"{user.tag}-c.sock"),
                                "--tombstones", "none", "--clear-network-unavailable")
    condition = lambda: user.rig.kube.call("GET", f"/api/v1/nodes/{name}")["status"]["conditions"][0]["status"]
    try:
        user.until(lambda: condition() == "False", text, "the condition is taken back")
    finally:
        process.kill()
        process.wait()
        user.rig.kube.call("DELETE", f"/api/v1/nodes/{name}")


@work("croft-node", "croftd install: the plugin's token")
def installs(user):
    install(user, user.store)


def install(user, store, *flags):
    folder = user.rig.world.directory / f"host-{user.tag}-{next(user.rig.numbers_of_logs)}"
    for part in ("bin", "net.d"):
        (folder / part).mkdir(parents=True)
    # Pools here have no gateway, as Calico's.
    for other in ("calico", "portmap"):
        (folder / "bin" / other).write_bytes(b"\x7fELF")
        (folder / "bin" / other).chmod(0o755)
    (folder / "net.d" / "calico-kubeconfig").write_text("apiVersion: v1\n")
    done = run(user.rig.world.bin / "croftd", "install", "--store", store, "--node", "oak", "--main-plugin", "calico",
               "--cni-bin-dir", folder / "bin", "--cni-conf-dir", folder / "net.d", "--api-server", user.rig.kube.url, *flags, check=False)
    if done.returncode != 0:
        raise Broken(done.stdout + done.stderr)


# ---------------------------------------------------------------- the controller

def make_node(rig, name, **spec):
    rig.kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec})


def once(user, *flags):
    done = run(user.rig.world.bin / "croftd", "controller", "--store", user.store, "--once", *flags, check=False)
    text = done.stdout + done.stderr
    if "forbidden" in text or done.returncode not in (0, 3):
        raise Broken(text)
    return text


@work("croft-controller", "the collector: an address of a pod that is gone", alone=True)
def collects_pod(user):
    rig, name = user.rig, f"n-{user.tag}"
    make_node(rig, name)
    node = rig.as_admin(user.node())
    node.args = as_pod(f"gone-{user.tag}")
    node.add("gone")
    node.env = {"CNI_IFNAME": "eth1"}  # in another block: its handle is written before it is deleted
    node.add("gone", ipv4_pools=["second"])
    try:
        text = once(user, "--grace", "150ms")
        if any(row.get("node") == name for row in rig.world.held(rig.admin_store).values()):
            raise Broken(f"still held: {text}")
    finally:
        node.delete("gone")
        rig.kube.call("DELETE", f"/api/v1/nodes/{name}")


@work("croft-controller", "the collector: blocks, claims and handles of a node that is gone", alone=True)
def collects_node(user):
    rig, name = user.rig, f"n-{user.tag}"
    make_node(rig, name)
    node = rig.as_admin(user.node())
    node.args = as_pod(f"gone-{user.tag}")
    node.add("gone")
    process, text = user.daemon("controller", "--grace", "200ms", "--interval", "100ms", "--leader-elect=false")
    claims = lambda: [item for item in rig.kube.call("GET", rig.calico("blockaffinities"))["items"] if item["spec"]["node"] == name]
    try:
        user.until(lambda: "addresses" in text() or text().count("\n") > 2, text, "a look")
        rig.kube.call("DELETE", f"/api/v1/nodes/{name}")
        user.until(lambda: not claims(), text, "its blocks are free")
    finally:
        process.kill()
        process.wait()
        node.delete("gone")


@work("croft-controller", "the collector: what an operator says is gone", alone=True)
def collects_removed(user):
    rig, name = user.rig, f"n-{user.tag}"
    node = rig.as_admin(user.node())
    node.args = as_pod(f"gone-{user.tag}")
    node.add("gone")
    rig.admin("node", "remove", name, "--force")
    try:
        text = once(user, "--grace", "150ms") + once(user, "--grace", "150ms")
        left = rig.kube.call("GET", "/apis/ipam.croft.dev/v1alpha1/croftremovednodes")["items"]
        if any(item["spec"]["node"] == name for item in left):
            raise Broken(f"the record is left: {text}")
    finally:
        node.delete("gone")


@work("croft-controller", "the collector: the last address of a block that is nobody's", alone=True)
def collects_block(user):
    rig, name = user.rig, f"n-{user.tag}"
    make_node(rig, name)
    pool = crowded(rig, user.tag)
    node = rig.as_admin(user.node())
    node.args = as_pod(f"gone-{user.tag}")
    try:
        for _ in range(2):  # the second time its mark is there
            with_dead_block(rig, node, ipv4_pools=[pool])
            text = once(user, "--grace", "150ms")
            if any(row.get("node") == name for row in rig.world.held(rig.admin_store).values()):
                raise Broken(f"still held: {text}")
    finally:
        node.delete("last")
        rig.kube.call("DELETE", f"/api/v1/nodes/{name}")


def range_flags():
    return ("--allocate-node-cidrs", "--cluster-cidr", "10.200.0.0/20", "--grace", "100ms")


def without_ranges(rig):
    for kind in ("croftnoderanges", "croftnoderangesets"):
        rig.kube.call("DELETE", f"/apis/ipam.croft.dev/v1alpha1/{kind}")


@work("croft-controller", "--allocate-node-cidrs: a node gets its range, and says it", alone=True)
def gives_ranges(user):
    rig, name = user.rig, f"n-{user.tag}"
    without_ranges(rig)
    rig.kube.call("DELETE", "/apis/ipam.croft.dev/v1alpha1/croftpoolsets")
    make_node(rig, name)
    try:
        text = once(user, *range_flags())
        if not rig.kube.call("GET", f"/api/v1/nodes/{name}")["spec"].get("podCIDRs"):
            raise Broken(f"it says no range: {text}")
    finally:
        rig.kube.call("DELETE", f"/api/v1/nodes/{name}")
        without_ranges(rig)


@work("croft-controller", "--allocate-node-cidrs: the range of a node that is gone is free, and who waits is told", alone=True)
def takes_ranges_back(user):
    rig, name = user.rig, f"n-{user.tag}"
    without_ranges(rig)
    make_node(rig, f"{name}-a")
    make_node(rig, f"{name}-b")
    process, text = user.daemon("controller", "--allocate-node-cidrs", "--cluster-cidr", "10.200.0.0/24", "--grace", "200ms",
                                "--interval", "100ms", "--leader-elect=false")
    ranges = lambda: {item["spec"]["node"] for item in rig.kube.call("GET", "/apis/ipam.croft.dev/v1alpha1/croftnoderanges")["items"]}
    told = lambda: [e for e in rig.kube.call("GET", "/api/v1/namespaces/default/events")["items"]
                    if e["involvedObject"].get("name", "").startswith(name) and e["reason"] == "CIDRNotAvailable"]
    alive = {f"{name}-a", f"{name}-b"}
    try:
        user.until(ranges, text, "one has a range")
        user.until(told, text, "the other is told")
        first, = ranges()
        rig.kube.call("DELETE", f"/api/v1/nodes/{first}")
        alive.discard(first)
        user.until(lambda: ranges() == alive, text, "the other has it")
    finally:
        process.kill()
        process.wait()
        for one in alive:
            rig.kube.call("DELETE", f"/api/v1/nodes/{one}")
        without_ranges(rig)


@work("croft-controller", "the status of pools", alone=True)
def tells_of_pools(user):
    shows_status(user, False)


@work("croft-controller", "--allocate-node-cidrs: the status of pools and node ranges", alone=True)
def tells_of_ranges(user):
    shows_status(user, True)


def shows_status(user, with_ranges):
    rig, name = user.rig, f"n-{user.tag}"
    own = "/apis/ipam.croft.dev/v1alpha1"
    pool = crowded(rig, user.tag)
    without_ranges(rig)
    make_node(rig, name)
    rig.kube.call("POST", f"{own}/croftpools", {"apiVersion": "ipam.croft.dev/v1alpha1", "kind": "CroftPool",
                                                "metadata": {"name": f"none-{user.tag}"}, "spec": {"pool": f"none-{user.tag}"}})
    flags = range_flags() if with_ranges else ()
    process, text = user.daemon("controller", *flags, "--interval", "1s", "--status-interval", "100ms", "--leader-elect=false")
    status = lambda kind, name: next((item.get("status") for item in rig.kube.call("GET", f"{own}/{kind}")["items"]
                                      if item["metadata"]["name"] == name), None)
    there = lambda: {item["metadata"]["name"] for item in rig.kube.call("GET", f"{own}/croftpools")["items"]}
    try:
        user.until(lambda: f"none-{user.tag}" not in there(), text, "what shows no pool goes")
        user.until(lambda: status("croftpools", pool), text, "the pool is shown")
        user.until(lambda: not with_ranges or status("croftnoderangesets", "default"), text, "node ranges are shown")
    finally:
        process.kill()
        process.wait()
        for one in there() & {f"none-{user.tag}", pool}:
            rig.kube.call("DELETE", f"{own}/croftpools/{one}")
        rig.kube.call("DELETE", f"/api/v1/nodes/{name}")
        without_ranges(rig)


def mending(user, act):
    """A Service without its IPAddress: of several, as the API server's own repair is sometimes there first."""
    made = lambda: any((right.verb, right.resource) == ("create", "ipaddresses") for right, _ in user.rig.asked().get(user.name, ()))
    for _ in range(5):
        mending_one(user, act)
        if made():
            return
    raise Broken("five times somebody else made the IPAddress")


def mending_one(user, act):
    kube, name = user.rig.kube, f"svc-{user.tag}-{next(user.rig.numbers_of_logs)}"
    addresses = "/apis/networking.k8s.io/v1/ipaddresses"
    address = kube.create_service(name, {"ports": [{"port": 80}]})["spec"]["clusterIP"]
    kube.call("DELETE", f"{addresses}/{address}")
    try:
        text = act()
        if address not in {item["metadata"]["name"] for item in kube.call("GET", addresses)["items"]}:
            raise Broken(f"no IPAddress was made: {text}")
    finally:
        kube.delete_service(name)


@work("croft-controller", "--repair-service-ranges: the IPAddress of nobody, after two passes", alone=True, slow=True)
def repairs_leaks(user):
    addresses, orphan = "/apis/networking.k8s.io/v1/ipaddresses", "10.96.0.251"
    user.rig.kube.call("POST", addresses, {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {
        "name": orphan, "labels": {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": "IPv4"}},
        "spec": {"parentRef": {"group": "", "resource": "pods", "namespace": "default", "name": "gone"}}})
    process, text = user.daemon("controller", "--repair-service-ranges", "--grace", "0s", "--leader-elect=false")
    there = lambda: orphan in {item["metadata"]["name"] for item in user.rig.kube.call("GET", addresses)["items"]}
    try:
        user.until(lambda: not there(), text, "the IPAddress of nobody is deleted", 240)
    finally:
        process.kill()
        process.wait()
        if there():
            user.rig.kube.call("DELETE", f"{addresses}/{orphan}")


@work("croft-controller", "--repair-service-ranges: IPAddresses, and who looks at a Service is told", alone=True)
def repairs_services(user):
    kube = user.rig.kube

    def act():
        process, text = user.daemon("controller", "--repair-service-ranges", "--grace", "0s", "--leader-elect=false")
        told = lambda: [e for e in kube.call("GET", "/api/v1/namespaces/default/events")["items"]
                        if e["involvedObject"].get("name", "").startswith(f"svc-{user.tag}-")]
        try:
            user.until(told, text, "an Event")
        finally:
            process.kill()
            process.wait()
        return text()
    mending(user, act)


@work("croft-controller", "of two controllers one leads, and the other soon after it ends", alone=True)
def leads(user):
    flags = ("--leader-elect-resource-namespace", NAMESPACE, "--grace", "0s")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/croftd-controller"
    try:
        user.rig.kube.call("DELETE", lease)
    except Refused:
        pass
    first, said_first = user.daemon("controller", *flags)
    user.until(lambda: "leads" in said_first(), said_first, "the first leads")
    second, said_second = user.daemon("controller", *flags)
    try:
        user.until(lambda: "this controller waits" in said_second(), said_second, "the second waits")
        first.terminate()
        # The second looks again after 4.4 seconds at the latest; a Lease that was not given back is free after 15.
        user.until(lambda: LEADS in said_second(), lambda: said_second() + said_first(), "the second leads within 6 s", 6)
    finally:
        for one in (first, second):
            one.kill()
            one.wait()


@work("croft-controller", "it waits while Calico's data must not be written", alone=True)
def controller_waits(user):
    waits_for_calico(user, lambda: collects_pod_refused(user))


def collects_pod_refused(user):
    rig, name = user.rig, f"n-{user.tag}"
    try:
        once(user, "--grace", "100ms")
    except Broken as broken:
        if "datastoreReady" not in str(broken):
            raise
    if any(row.get("node") == name for row in rig.world.held(rig.admin_store).values()):
        return
    raise Broken("it wrote while datastoreReady was false")


def waits_for_calico(user, act):
    """Whether work is held back while Calico says datastoreReady: false."""
    kube, rig, name = user.rig.kube, user.rig, f"n-{user.tag}"
    path = rig.calico("clusterinformations")
    make_node(rig, name)
    node = rig.as_admin(user.node())
    node.args = as_pod(f"gone-{user.tag}")
    node.add("gone")
    group = path.split("/")[2] + "/" + path.split("/")[3]
    kube.call("POST", path, {"apiVersion": group, "kind": "ClusterInformation", "metadata": {"name": "default"},
                             "spec": {"datastoreReady": False}})
    try:
        act()
    finally:
        kube.call("DELETE", f"{path}/default")
        node.delete("gone")
        kube.call("DELETE", f"/api/v1/nodes/{name}")


@work("croft-plugin", "the plugin: it waits while Calico's data must not be written", alone=True)
def plugin_waits(user):
    refused_by_calico(user, lambda: user.call(user.node(f"w-{user.tag}"), "ADD", "c1"))


@work("croft-node", "the agent: it waits while Calico's data must not be written", alone=True)
def agent_waits(user):
    with ByAgent(user) as node:
        time.sleep(0.1)
        containers = itertools.count()  # one that has its address is answered without a write
        refused_by_calico(user, lambda: user.call(node, "ADD", f"c{next(containers)}"), seconds=12)


@work("croft-bootstrap", "croft pool defaults: it waits while Calico's data must not be written", alone=True)
def bootstrap_waits(user):
    items = pools_set_aside(user.rig)
    try:
        refused_by_calico(user, lambda: user.croft("pool", "defaults", "--no-kubeadm", "--ipv4-cidr", "10.243.0.0/16"))
    finally:
        pools_put_back(user.rig, items)


@work("croft-operator", "croft: it waits while Calico's data must not be written", alone=True)
def operator_waits(user):
    refused_by_calico(user, lambda: user.croft("pool", "disable", "p"))


def refused_by_calico(user, act, seconds=0):
    """A write is refused while Calico says datastoreReady: false; a daemon looks every `seconds`."""
    kube = user.rig.kube
    path = user.rig.calico("clusterinformations")
    kube.call("POST", path, {"apiVersion": "/".join(path.split("/")[2:4]), "kind": "ClusterInformation",
                             "metadata": {"name": "default"}, "spec": {"datastoreReady": False}})
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                said = act()
            except Broken as broken:
                if "datastoreReady" in str(broken):
                    return
                raise
            if time.monotonic() >= end:
                raise Broken(f"it wrote while datastoreReady was false: {said}")
            time.sleep(0.5)
    finally:
        kube.call("DELETE", f"{path}/default")
        user.rig.admin("pool", "enable", "p", code=(0, 1))


# ---------------------------------------------------------------- people

@work("croft-operator", "croft pool create, disable, enable, delete")
def pools(user):
    number = next(user.rig.pools)
    name = f"o-{user.tag}-{number}"
    user.croft("pool", "create", name, "--cidr", f"10.121.{number // 16}.{number % 16 * 16}/28", "--block-size", "28", "--gateway",
               f"10.121.{number // 16}.{number % 16 * 16 + 1}")
    user.croft("pool", "disable", name)
    user.croft("pool", "enable", name)
    user.croft("pool", "delete", name)
    left = {item["metadata"]["name"] for item in user.rig.kube.call("GET", user.rig.calico("ipreservations"))["items"]}
    if any(name in one for one in left):
        raise Broken(f"the pool's reservation is left: {left}")


@work("croft-operator", "croft pool, block, ip, node list; check; explain")
def looks(user):
    for words in (["pool", "list"], ["pool", "show", "p", "--show-blocks"], ["block", "list"], ["ip", "list"], ["node", "list"],
                  ["explain", "--node", "oak"], ["node", "show", "oak"]):
        user.croft(*words)
    user.croft("check", code=(0, 3))
    user.croft("explain", "--node", "oak", "--pool", "selects", code=(0, 1))


@work("croft-operator", "croft explain of a pool with a namespaceSelector")
def explains(user):
    text = user.croft("explain", "--node", "oak", "--pool", "selects", "--namespace", "default", code=(0, 1))
    if "cannot " in text:
        raise Broken(text)


@work("croft-operator", "croft ip release, affinity claim and release")
def releases(user):
    node = user.rig.as_admin(user.node())
    node.args = lambda container: f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=gone-{container}"
    address, = node.add("c1")
    user.croft("ip", "show", address.split("/")[0])
    user.croft("ip", "release", address.split("/")[0])  # the cluster has no such pod
    user.croft("affinity", "release", "--node", node.name)
    number = next(user.rig.pools)
    pool = f"c-{user.tag}-{number}"
    cidr = f"10.123.{number // 16}.{number % 16 * 16}/28"
    user.rig.admin("pool", "create", pool, "--cidr", cidr, "--block-size", "28", "--gateway", "none")
    user.croft("affinity", "claim", cidr, "--node", node.name, "--force")
    user.croft("affinity", "release", "--node", node.name)
    user.croft("affinity", "claim", cidr, "--node", node.name, "--force")
    user.croft("affinity", "release", "--node", node.name)


@work("croft-operator", "croft ip release in a block that is nobody's")
def releases_block(user):
    node = user.node()
    with_dead_block(user.rig, node)
    held = [row["address"] for row in user.rig.world.held(user.rig.admin_store).values() if row.get("node") == node.name]
    user.croft("ip", "release", *held, "--force")


@work("croft-operator", "croft node remove")
def removes_node(user):
    node = user.rig.as_admin(user.node())
    node.add("c1")
    user.croft("node", "remove", node.name, "--force")
    node.add("c2")
    user.croft("node", "remove", node.name, "--force")


@work("croft-operator", "croft node range config, assign, list, release", alone=True)
def ranges(user):
    rig, name = user.rig, f"n-{user.tag}"
    without_ranges(rig)
    make_node(rig, name)
    try:
        user.croft("node", "range", "config", "--cluster-cidr", "10.200.0.0/20")
        user.croft("node", "range", "assign", name)
        user.croft("node", "range", "list")
        user.croft("node", "range", "show", name)
        user.croft("node", "range", "release", name, "--force")
    finally:
        rig.kube.call("DELETE", f"/api/v1/nodes/{name}")
        without_ranges(rig)


@work("croft-operator", "croft config set, for the first time and again", alone=True)
def configures(user):
    resource = user.rig.calico("ipamconfigs" if not user.rig.group else "ipamconfigurations")
    user.rig.kube.call("DELETE", resource)
    try:
        user.croft("config", "show")
        user.croft("config", "set", "--strict-affinity", "true", "--max-blocks-per-host", "7")
        user.croft("config", "set", "--strict-affinity", "false", "--max-blocks-per-host", "0")
        user.croft("config", "show")
    finally:
        user.rig.kube.call("DELETE", resource)


# Kind of a record -> resource, object's kind, name, a spec that no Croft writes.
DAMAGED = {
    "pool": ("ippools", "IPPool", "damaged", {"cidr": "10.118.0.0/16", "blockSize": 77}),
    "handle": ("ipamhandles", "IPAMHandle", "net.damaged", {"handleID": "another", "block": {}, "deleted": False}),
}
OWN_DAMAGED = {"high_water_mark": ("CroftHighWaterMark", {"sequenceNumber": "1"}), "pool_set": ("CroftPoolSet", {"generation": "1"}),
               "node_range": ("CroftNodeRange", {"node": "oak", "cidr": "10.118.0.0/24"}),
               "node_range_set": ("CroftNodeRangeSet", {"generation": "1", "clusterCIDRs": [], "excluded": [], "cursors": []}),
               "removed_node": ("CroftRemovedNode", {"node": "oak", "held": {}})}


@work("croft-operator", "croft record remove, of a damaged record of each kind", alone=True)
def removes_records(user):
    kube, rig = user.rig.kube, user.rig
    objects = [(kind, rig.calico(resource), object_kind, name, spec) for kind, (resource, object_kind, name, spec) in DAMAGED.items()]
    objects += [(kind, f"/apis/ipam.croft.dev/v1alpha1/{object_kind.lower()}s", object_kind, "default" if kind.endswith("_set") else "damaged",
                 {"name": "another", "formatVersion": 1, **spec}) for kind, (object_kind, spec) in OWN_DAMAGED.items()]
    for kind, path, object_kind, name, spec in objects:
        try:
            kube.call("DELETE", f"{path}/{name}")
        except Refused:
            pass
        served = path.split("/")
        called = "IPAMConfiguration" if served[3] == "v3" and kind == "ipam_config" else object_kind
        try:
            kube.call("POST", path, {"apiVersion": "/".join(served[2:4]), "kind": called, "metadata": {"name": name}, "spec": spec})
            user.croft("record", "remove", kind, name, "--force")
        finally:
            try:
                kube.call("DELETE", f"{path}/{name}")
            except Refused:
                pass


@work("croft-operator", "croft pool create, the first of a register; pool defaults --dry-run", alone=True)
def first_pool(user):
    user.rig.kube.call("DELETE", "/apis/ipam.croft.dev/v1alpha1/croftpoolsets")
    number = next(user.rig.pools)
    user.croft("pool", "create", f"f-{user.tag}-{number}", "--cidr", f"10.124.{number // 16}.{number % 16 * 16}/28", "--block-size", "28",
               "--gateway", "none")
    items = pools_set_aside(user.rig)
    try:
        said = user.croft("pool", "defaults", "--dry-run", code=(0, 1, 2))
        if "10.244.0.0/16" not in said:
            raise Broken(said)
    finally:
        pools_put_back(user.rig, items)


@work("croft-operator", "croft ip release of a pod with two interfaces")
def releases_two(user):
    node = user.rig.as_admin(user.node())
    address, = node.add("c1")
    node.env = {"CNI_IFNAME": "eth1"}
    other, = node.add("c1", ipv4_pools=["second"])
    user.croft("ip", "release", address.split("/")[0], "--force")
    counted(user.rig, f"net.c1-{node.name}", 1)
    user.croft("ip", "release", other.split("/")[0], "--force")


@work("croft-operator", "croft host-local import")
def imports(user):
    number = next(user.rig.pools)
    folder = user.rig.world.directory / f"host-local-{user.tag}-{number}"
    folder.mkdir()
    (folder / f"10.125.{number // 16}.{number % 16 * 16 + 3}").write_text(f"c-{user.tag}-{number}\r\neth0")
    pool = f"i-{user.tag}-{number}"
    cidr = f"10.125.{number // 16}.{number % 16 * 16}/28"
    user.rig.admin("pool", "create", pool, "--cidr", cidr, "--block-size", "28", "--gateway", "none")
    user.croft("host-local", "import", "--dir", folder, "--pool", pool, "--pod-cidr", cidr, "--node", f"n-{user.tag}", "--network", "net")


@work("croft-operator", "croft service list, audit, repair", alone=True)
def services(user):
    user.croft("service", "list", "-A")
    user.croft("service", "show", "kubernetes")
    mending(user, lambda: user.croft("service", "audit", code=(0, 3)) + user.croft("service", "repair", "--apply"))


# ---------------------------------------------------------------- the first pools

def first_pools(rig, there=True):
    rig.kube.call("DELETE", "/apis/ipam.croft.dev/v1alpha1/croftpoolsets")
    for name in ("default-ipv4-ippool", "default-ipv6-ippool", "p-seven"):
        try:
            rig.kube.call("DELETE", f"{rig.calico('ippools')}/{name}")
        except Refused:
            pass


def pools_set_aside(rig):
    """Deletes all pools for a while; puts them back."""
    path = rig.calico("ippools")
    items = rig.kube.call("GET", path)["items"]
    for item in items:
        rig.kube.call("DELETE", f"{path}/{item['metadata']['name']}")
        for member in ("resourceVersion", "uid", "managedFields", "creationTimestamp", "generation"):
            item["metadata"].pop(member, None)
    return items


def pools_put_back(rig, items):
    path = rig.calico("ippools")
    for item in rig.kube.call("GET", path)["items"]:
        rig.kube.call("DELETE", f"{path}/{item['metadata']['name']}")
    reserved = rig.calico("ipreservations")
    for item in rig.kube.call("GET", reserved)["items"]:
        rig.kube.call("DELETE", f"{reserved}/{item['metadata']['name']}")
    for item in items:
        rig.kube.call("POST", path, item)


@work("croft-bootstrap", "croft pool defaults: both families of kubeadm, with gateways", alone=True)
def defaults(user):
    rig = user.rig
    items = pools_set_aside(rig)
    rig.kube.call("DELETE", "/apis/ipam.croft.dev/v1alpha1/croftpoolsets")
    try:
        text = user.croft("pool", "defaults", "--gateways", "first")
        made = {item["metadata"]["name"]: item["spec"] for item in rig.kube.call("GET", rig.calico("ippools"))["items"]}
        if sorted(made) != ["default-ipv4-ippool", "default-ipv6-ippool"]:
            raise Broken(f"pools {sorted(made)}: {text}")
        if any(spec.get("disabled") for spec in made.values()):
            raise Broken(f"a pool was left disabled: {made}")
        user.croft("pool", "defaults", "--gateways", "first")
    finally:
        pools_put_back(rig, items)


@work("croft-bootstrap", "croft pool defaults: not over node ranges, Service ranges or addresses of nodes", alone=True)
def defaults_refused(user):
    rig = user.rig
    items = pools_set_aside(rig)
    without_ranges(rig)
    rig.admin("node", "range", "config", "--cluster-cidr", "10.200.0.0/20")
    try:
        for cidr, whose in (("10.96.0.0/16", "ServiceCIDR"), ("10.250.0.0/16", "node oak"), ("10.200.0.0/16", "node")):
            said = user.croft("pool", "defaults", "--no-kubeadm", "--ipv4-cidr", cidr, "--ipv6-cidr", "none", code=(0, 1, 5))
            if whose not in said:
                raise Broken(f"{cidr}: {said}")
    finally:
        pools_put_back(rig, items)
        without_ranges(rig)


@work("croft-bootstrap", "croft pool defaults: not over the addresses of Services, where no ServiceCIDR is", alone=True)
def defaults_beside_services(user):
    rig = user.rig
    items = pools_set_aside(rig)
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    try:
        # An API server makes its own anew, every ten seconds.
        for _ in range(20):
            for item in rig.kube.call("GET", ranges)["items"]:
                rig.kube.call("DELETE", f"{ranges}/{item['metadata']['name']}")
            said = user.croft("pool", "defaults", "--no-kubeadm", "--ipv4-cidr", "10.96.0.0/16", "--ipv6-cidr", "none", code=1)
            if "of Service" in said:
                return
        raise Broken(f"over a Service: {said}")
    finally:
        wait_for(lambda: rig.kube.call("GET", ranges)["items"], "the API server's ServiceCIDR", 60)
        pools_put_back(rig, items)


# ---------------------------------------------------------------- the test

LEADS = "this controller leads now"
# What breaks without saying which right is missing: (verb, resource) -> what is seen instead.
# Shown by slow work alone.
# What only a slow or rare way needs: of many who make a pool at once, one finds the reservation there and updates it
# (kube_default_pools.py); a controller tells of a pool that fills (kube_status.py).
# An IPAddress is read back only where the reply to its making was lost.
NOT_QUICK = {("croft-controller", "create", "events"), ("croft-controller", "delete", "ipaddresses"),
             ("croft-controller", "get", "ipaddresses"), ("croft-operator", "update", "ipreservations"),
             ("croft-bootstrap", "update", "ipreservations")}
QUIET = {
    ("get", "clusterinformations"): "while datastoreReady was false",
    ("update", "ippools"): "a pool was left disabled",
    ("create", "croftpoolsets"): "a pool was left disabled",
    ("update", "croftpoolsets"): "a pool was left disabled",
    ("get", "configmaps"): "nor kubeadm's podSubnet name a CIDR",
    ("update", "blockaffinities"): "the claim is not confirmed",
    ("delete", "blockaffinities"): "the overtaken claim is left",
    ("delete", "ipamhandles"): "the handle is left",
    ("patch", "leases"): "the second leads within 6 s",
    ("update", "ipamhandles"): "the handle counts what was released",
    ("delete", "ipreservations"): "the pool's reservation is left",
    ("watch", "ipamblocks"): "the overtaken claim is left",
}
# What is used, and no work misses: what it is for all the same.
UNMISSED = {
    ("croft-controller", "update", "ipamhandles"): "of a pod's two addresses the first is released: until the second is, its handle says one",
    ("croft-controller", "get", "ipaddresses"): "whether an etcd was put back to an older state is seen by what was written last",
}


def shown(text):
    """What was waited for is told first, why at the end."""
    return text if len(text) < 2000 else f"{text[:300]} ... {text[-1500:]}"


def find_missing(action, user, right):
    """What the action says without a right; nothing when it does not miss it."""
    try:
        action.act(user.anew())
    except Broken as broken:
        text = str(broken)
        if right.is_missing_in(text):
            return text
        raise Silent(f"{action.name}, without {right}: it breaks and does not say why: {shown(text)}") from broken
    return None


def run_all(jobs):
    """Calls (is alone, what to call) each: those that are alone after the others, one after the other."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(job) for alone, job in jobs if not alone]:
            done.result()
    for alone, job in jobs:
        if alone:
            job()


def prepare(world, kube):
    """What the chart makes with all that a controller may be asked for. The rights of one by the option that it has: "" for none."""
    tools, role = Tools(world), f"{RBAC}/clusterroles/croft-controller"

    def parts(*values):
        text = tools.render("mainPlugin=ptp", "namespace.create=true", "agent.annotationsFromApi=true", *values).stdout
        kinds = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
        found = [part for part in re.split(r"^---$", text, flags=re.MULTILINE)
                 if (kind := re.search(r"^kind: (\w+)$", part, re.MULTILINE)) and kind[1] in kinds]
        return sorted(found, key=lambda part: "kind: Namespace" not in part)

    def rights(*values):
        part, = (part for part in parts(*values) if re.search(r"^kind: ClusterRole\nmetadata:\n  name: croft-controller$", part, re.MULTILINE))
        kube._send("PUT", role, part.encode(), media="application/yaml")
        return rights_of(kube, "croft-controller")

    kube.apply("\n---\n".join(parts()))
    plain = rights_of(kube, "croft-controller")
    allocates, repairs = ("controller.allocateNodeCidrs=true", "controller.clusterCidr=10.244.0.0/16", "defaultPools.ipv4Cidr=none"), ("controller.repairServiceRanges=true",)
    variants = {"": plain, "--allocate-node-cidrs": rights(*allocates), "--repair-service-ranges": rights(*repairs)}
    expect_equal(rights(*allocates, *repairs), set().union(*variants.values()), "rights with both")
    for option, some in variants.items():
        expect(plain <= some and (option == "" or plain < some), f"{option or 'without options'}: {len(some)} rights")
    return variants


def definitions(world, kube):
    """Calico's kinds as the tree ships them, and under the names of its newer group as well; Croft's own."""
    calicos = [apply(kube, part, "application/yaml") for part in shipped_definitions("calico")]
    names = calicos + [apply(kube, part) for part in shipped_definitions("croft")]
    for name in names + newer_group(kube, calicos):
        wait_for(lambda name=name: is_served(kube, name), f"{name} is served", 30)


def newer_group(kube, calicos):
    """The kinds that these definitions of Calico's older group are of, under the names of the newer."""
    names = []
    for name in calicos:
        body = kube.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        called = body["spec"]["names"]
        if called["plural"] in V3_NAMES:
            called = {"kind": "IPAMConfiguration", "plural": "ipamconfigurations"}
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        names.append(apply(kube, json.dumps({
            "apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {"name": f"{called['plural']}.{V3}"},
            "spec": {"group": V3, "scope": "Cluster", "names": {"kind": called["kind"], "plural": called["plural"]},
                     "versions": [{"name": "v3", "served": True, "storage": True, "schema": schema}]}})))
    return names


def furnish_cluster(kube):
    kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "oak"}})
    node = kube.call("GET", "/api/v1/nodes/oak")
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "10.250.3.4"}]
    kube.call("PUT", "/api/v1/nodes/oak/status", node)
    text = ("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n"
            "  podSubnet: 10.244.0.0/16,fd00:10::/48\n  serviceSubnet: 10.96.0.0/24\n")
    kube.call("POST", "/api/v1/namespaces/kube-system/configmaps",
              {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": text}})


def furnish(rig):
    """What the work needs to be there."""
    for pool, cidr, size in (("p", "10.100.0.0/14", 28), ("big", "10.77.0.0/16", 26)):
        rig.admin("pool", "create", pool, "--cidr", cidr, "--block-size", str(size), "--gateway", "none", "--cooldown-seconds", "0")
    path = rig.calico("ippools")
    make = lambda name, **spec: rig.kube.call("POST", path, {"apiVersion": "/".join(path.split("/")[2:4]), "kind": "IPPool",
                                                             "metadata": {"name": name}, "spec": {"nodeSelector": "all()", **spec}})
    make("selects", cidr="10.99.0.0/16", blockSize=28, namespaceSelector="kubernetes.io/metadata.name == 'default'")
    # As no Croft makes it: over the same addresses, with blocks of another size.
    make("of-nodes", cidr="10.98.0.0/16", blockSize=28, nodeSelector="has(kubernetes.io/hostname) || all()")
    make("second", cidr="10.97.0.0/16", blockSize=28)
    make("rival", cidr="10.76.0.0/15", blockSize=28, disabled=True)
    # A list of nodes none of which holds anything is of another cluster: the collector would conclude nothing.
    node = OwnNode(rig.world, rig.admin_store, "oak")
    node.add("kept", ipv4_pools=["p"])
    # Nor from a list of pods that is empty.
    rig.kube.call("POST", "/api/v1/namespaces/default/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kept"},
        "spec": {"nodeName": "oak", "automountServiceAccountToken": False, "containers": [{"name": "a", "image": "registry.invalid/a"}]}})


def wanted_accounts():
    return [account for account in ACCOUNTS if account in sys.argv] or list(ACCOUNTS)


def option_of(action):
    """Of a controller: what it is asked for beside the collector. The chart gives each its own rights."""
    return action.name.split(":")[0] if action.name.startswith("--") else ""


def uses(rig, rights, variants):
    """Right -> the actions that use it. Everything is allowed, and nothing is for nobody. `variants`: of controllers by their option."""
    users = {action: User(rig, variants[option_of(action)] if action.account == "croft-controller" else rights[action.account])
             for action in Action.all if action.account in wanted_accounts()}
    for user in users.values():
        user.wait()

    failed = []

    def play(action, user):
        try:
            action.act(user)
        except (Broken, Failure, Refused) as broken:
            failed.append(f"{action.account}, {action.name}: {broken}")
    run_all([(action.alone, lambda action=action, user=user: play(action, user)) for action, user in users.items()])
    expect(not failed, "with all their rights:\n" + "\n".join(failed))
    time.sleep(0.5)  # the log is written a little later
    asked = rig.asked()
    used = {}
    for action, user in users.items():
        for request, allowed in asked.get(user.name, ()):
            expect(allowed, f"{action.account}, {action.name}: it asks for what its rights do not allow: {request}")
            for right in rights[action.account]:
                if right.allows(request):
                    used.setdefault((action.account, right), []).append(action)
    if "croft-controller" in wanted_accounts():
        for option, some in variants.items():
            idle = [str(right) for right in sorted(some) if is_of_group(rig, right) and
                    ("croft-controller", right.verb, right.resource) not in NOT_QUICK and not
                    any(option_of(action) in ("", option) for action in used.get(("croft-controller", right), ()))]
            expect_equal(idle, [], f"rights that a controller does not use {'with ' + option if option else 'without options'}")
    return used


def mirrored(account, rights):
    """Calico's newer group has the same kinds, under its names: what holds of one group holds of the other."""
    older = {dataclasses.replace(r, group=V3, resource=V3_NAMES.get(r.resource, r.resource)) for r in rights if r.group == V1}
    newer = {r for r in rights if r.group == V3}
    expect_equal({str(r) for r in newer ^ older}, set(), f"{account}: rights in one of Calico's groups only")


def is_of_group(rig, right):
    return right.group not in (V1, V3) or (right.group == V3) == bool(rig.group)


def proves(rig, rights, variants):
    """Each right of this group, taken away."""
    used = uses(rig, rights, variants)
    told, trouble = {}, []
    wanted = [(account, right) for account in wanted_accounts() for right in sorted(rights[account]) if is_of_group(rig, right)]
    for account, right in wanted:
        if (account, right) not in used and (account, right.verb, right.resource) not in NOT_QUICK:
            trouble.append(f"{account}: nobody uses {right}")
    wanted = [one for one in wanted if one in used]
    if "full" not in sys.argv:
        return used, trouble
    users = {(account, right): User(rig, rights[account] - {right}) for account, right in wanted}
    list(users.values())[-1].wait()

    def take_away(account, right):
        user = users[account, right]
        silent = []
        for action in sorted(used[account, right], key=lambda action: action.alone):
            try:
                text = find_missing(action, user, right)
            except Silent as silence:
                silent.append((action, str(silence)))
                continue
            except (Failure, Refused, OSError, subprocess.TimeoutExpired) as failure:
                trouble.append(f"{account}: {action.name}, without {right}: {failure}")
                return
            if text:
                told[account, right] = (action, text)
                say(f"{account}: without {right}: {action.name}")
                return
        quiet = QUIET.get((right.verb, right.resource))
        for action, text in silent:
            if quiet and quiet in text:
                told[account, right] = (action, text)
                say(f"{account}: without {right}, which is not said: {action.name}: {quiet}")
                return
        if (account, right.verb, right.resource) in UNMISSED:
            told[account, right] = (used[account, right][0], UNMISSED[account, right.verb, right.resource])
            return
        if silent:
            trouble.append(f"{account}: {silent[0][1]}")
            return
        trouble.append(f"{account}: nothing breaks without {right}, which is used by: {', '.join(a.name for a in used[account, right])}")

    jobs = [(any(a.alone for a in used[one]), lambda one=one: take_away(*one)) for one in wanted]
    run_all(jobs)
    return told, trouble


def test():
    begin = time.monotonic()
    with World("kube-rights", sys.argv[1]) as world:
        kube = KubeApiserver(world, sys.argv[2])
        with open(kube.tokens, "a") as tokens:
            for number in range(USERS):
                tokens.write(f"token-{number},user-{number},u{number},\n")
        policy = kube.folder / "policy.yaml"
        policy.write_text(POLICY)
        kube.arguments = ("--audit-policy-file", policy, "--audit-log-path", kube.folder / "audit.log", "--audit-log-mode", "blocking",
                          "--disable-admission-plugins", "ServiceAccount")
        with kube:
            definitions(world, kube)
            variants = prepare(world, kube)
            furnish_cluster(kube)
            rig = Rig(world, kube)
            furnish(rig)
            rights = {account: rights_of(kube, account) for account in ACCOUNTS}
            for account in ACCOUNTS:
                say(f"{account}: {len(rights[account])} rights")
            for account in ACCOUNTS:
                mirrored(account, rights[account])
            status_of_a_reader(rig, rights["croft-plugin"])
            told, trouble = proves(rig, rights, variants)
            for account, right in told:
                if "--show" in sys.argv and "full" in sys.argv:
                    action, text = told[account, right]
                    say(f"{account:17} {str(right):60} {action.name}\n    {text.strip()[-300:]}")
            expect(not trouble, "\n".join(trouble))
            say(f"{len(told)} rights are {'missed when they are taken away' if 'full' in sys.argv else 'used'}, in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main(test, 3500)
