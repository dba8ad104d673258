"""The least rights: the roles that a real helm renders are those of kube_rights.txt, each right is used, and nothing else is asked for, by a
real kube-apiserver that writes down what it was asked. `--rewrite` writes the table anew: read the diff, it is the change of rights.

usage: kube_rights.py BIN_DIR VERSION [--rewrite]
"""

import contextlib
import itertools
import json
import pathlib
import re
import sys
import time

from desk import ask
from etcd_lib import Node
from kube_apiserver_lib import KubeApiserver
from kube_chart import Tools
from kube_default_pools import KUBEADM, cluster_configuration
from kube_store import CALICO, OWN, V1, V3, V3_NAMES, install_definitions, shipped_definitions, write_kubeconfig
from lib import Controller, Failure, expect, expect_equal, main, own_environment, run, say, start_agent, wait_for, wait_for_agents_memory
from metrics import free_port

TABLE = pathlib.Path(__file__).with_suffix(".txt")
ACCOUNTS = ("croft-plugin", "croft-node", "croft-controller", "croft-bootstrap", "croft-operator")
NAMESPACE = "croft-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SOON = 90  # seconds; a pass takes ten where the machine is busy
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "None", "userGroups": ["system:masters", "system:nodes"]}, {"level": "None", "users": ["system:apiserver"]}, {"level": "Metadata"}]}
# Options of a controller that have rights of their own: the values that give them.
OPTIONS = {"--allocate-node-cidrs": ("controller.allocateNodeCidrs=true", "controller.clusterCidr=10.244.0.0/16",
                                     "defaultPools.ipv4Cidr=none"),
           "--desk": ("controller.desk=true",), "--history": ("controller.history.enabled=true",)}
# Rights that the work below comes by too rarely, (account, verb, resource): the moment that needs them.
RARE = {("croft-operator", "update", "ipreservations"): "several make one pool at once (kube_default_pools.py)",
        ("croft-bootstrap", "update", "ipreservations"): "several make one pool at once (kube_default_pools.py)"}


# ---------------------------------------------------------------- rights: (namespace, group, resource, name, verb)

def rights_of(kube, account):
    """What the bindings give to an account; "" for any namespace and any name."""
    found = set()
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in kube.call("GET", f"{RBAC}/{kind}")["items"]:
            subjects = [(s["kind"], s.get("namespace"), s["name"]) for s in binding.get("subjects", [])]
            if ("ServiceAccount", NAMESPACE, account) not in subjects:
                continue
            namespace, role = binding["metadata"].get("namespace", ""), binding["roleRef"]
            folder = f"/namespaces/{namespace}/roles" if role["kind"] == "Role" else "/clusterroles"
            for rule in kube.call("GET", f"{RBAC}{folder}/{role['name']}").get("rules") or []:
                expect("nonResourceURLs" not in rule, f"{role['name']}: {rule}")
                found.update(itertools.product([namespace], rule["apiGroups"], rule["resources"], rule.get("resourceNames", [""]), rule["verbs"]))
    return found


def as_text(account, rights):
    """Lines of the table. `.calico` stands for both of Calico's groups, which must have the same."""
    older = {(n, V3, V3_NAMES.get(resource, resource), *more) for n, group, resource, *more in rights if group == V1}
    expect_equal({right for right in rights if right[1] == V3} ^ older, set(), f"{account}: rights in one of Calico's groups only")
    rows = {}
    for namespace, group, resource, name, verb in sorted(rights):
        if group != V3:
            group = "." + {V1: "calico"}.get(group, group) if group else ""
            where = f" in {namespace}" if namespace else ""
            rows.setdefault(f"{resource}{group}{' ' + name if name else ''}{where}", []).append(verb)
    return [f"{account}: {what}: {' '.join(verbs)}" for what, verbs in sorted(rows.items())]


class Roles:
    """The chart's roles, applied. `options` has the controller's rights by the option that it has, "" for none."""

    def __init__(self, world, kube):
        self.tools, self.kube = Tools(world), kube
        kinds = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
        parts = [part for part in self._render() if any(f"\nkind: {kind}\n" in "\n" + part for kind in kinds)]
        kube.apply("\n---\n".join(sorted(parts, key=lambda part: "kind: Namespace\n" not in part)))
        self.rights = {account: rights_of(kube, account) for account in ACCOUNTS}
        plain = self.rights["croft-controller"]
        self.options = {"": plain, **{option: self.controller(option) for option in OPTIONS}}
        expect_equal(self.controller(*OPTIONS), set().union(*self.options.values()), "rights with all options")
        self.controller()

    def _render(self, *values):
        text = self.tools.render("mainPlugin=ptp", "namespace.create=true", "agent.annotationsFromApi=true", *values).stdout
        return re.split(r"^---$", text, flags=re.MULTILINE)

    def controller(self, *options):
        """Gives the controller the rights of some options, and tells them."""
        values = [value for option in options for value in OPTIONS[option]]
        part, = (part for part in self._render(*values) if re.search(r"^kind: ClusterRole\nmetadata:\n  name: croft-controller$", part, re.MULTILINE))
        self.kube._send("PUT", f"{RBAC}/clusterroles/croft-controller", part.encode(), media="application/yaml")
        return rights_of(self.kube, "croft-controller")

    def text(self):
        lines = [line for account in ACCOUNTS for line in as_text(account, self.rights[account])]
        for option in OPTIONS:
            lines += as_text(f"croft-controller {option}", self.options[option] - self.options[""])
        return "\n".join(["# What the chart's accounts may: account [option]: resource[.group] [name] [in namespace]: verbs",
                          "# kube_rights.py --rewrite writes it anew; `.calico` is crd.projectcalico.org and projectcalico.org.",
                          *lines, ""])


# ---------------------------------------------------------------- who does the work

class Rig:
    def __init__(self, world, kube):
        self.world, self.kube, self.numbers = world, kube, itertools.count(1)
        self.stores = {"admin": f"kube:{write_kubeconfig(world, kube)}"}
        self.stores.update({account: f"kube:{write_kubeconfig(world, kube, account)}" for account in ACCOUNTS})
        self.socket = world.directory / "agent.sock"

    def croft(self, account, *words, any_code=False):
        done = run(self.world.bin / "croft", "--store", self.stores[account], *words, check=False)
        text = done.stdout + done.stderr
        expect(any_code or done.returncode == 0, f"croft {' '.join(map(str, words))}: exit code {done.returncode}: {text}")
        expect("forbidden" not in text and "not judged" not in text, text)
        return text

    def cni(self, account, command, node, container="", pool="p", interface="eth0", pod="", more=None, **ipam):
        """A call of the plugin; croft-node's go by the agent. The addresses of an ADD."""
        caller = Node(self.world, self.stores[account], node)
        caller.env, caller.more = {"CNI_IFNAME": interface}, more or {}
        caller.args = lambda _: f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod or container}"
        ipam.setdefault("ipv4_pools", [pool])
        if account == "croft-node":
            ipam["agent"] = str(self.socket)
        code, answer, err = caller.finish(caller.start(command, container, **ipam))
        expect(code == 0 and "forbidden" not in err, f"{command} {container} of {account}: {answer} {err}")
        return answer

    def pool(self):
        """A new pool of a single block."""
        number = next(self.numbers)
        self.croft("admin", "pool", "create", f"one-{number}", "--cidr", f"10.120.{number}.0/28", "--block-size", "28", "--gateway", "none",
                   "--cooldown-seconds", "0")
        return f"one-{number}"

    def forsake(self, node):
        """Takes a node's claims away; an API server's memory of them may be a little behind."""
        wait_for(lambda: "no node" not in self.croft("admin", "affinity", "release", "--node", node, "--force", any_code=True),
                 f"the claim of {node} is seen")

    def node(self, name):
        self.kube.make_node(name)
        return name

    def without_ranges(self):
        for kind in ("croftnoderanges", "croftnoderangesets"):
            self.kube.call("DELETE", f"{OWN}/{kind}")

    def items(self, path):
        return self.kube.call("GET", path)["items"]

    def holders(self):
        return {row.get("node") for row in self.world.held(self.stores["admin"]).values()}

    def events_of(self, name):
        return [e for e in self.items("/api/v1/namespaces/default/events") if e["involvedObject"].get("name") == name]

    def asked(self):
        """Account -> what it asked for, (request as a right, whether it was allowed)."""
        found = {account: set() for account in ACCOUNTS}
        for line in (self.kube.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            of, account = event.get("objectRef"), event["user"]["username"].removeprefix(f"system:serviceaccount:{NAMESPACE}:")
            if of and account in found:
                resource = of["resource"] + (f"/{of['subresource']}" if of.get("subresource") else "")
                request = (of.get("namespace", ""), of.get("apiGroup", ""), resource, of.get("name", ""), event["verb"])
                found[account].add((request, event.get("responseStatus", {}).get("code") != 403))
        return found

    @contextlib.contextmanager
    def controller(self, *flags):
        """A controller, which ends in order and was refused nothing."""
        with Controller(self.world, self.stores["croft-controller"], f"controller-{next(self.numbers)}", "--grace", "200ms",
                        "--interval", "100ms", "--status-interval", "100ms", *flags) as one:
            yield
            one.end()
        expect("forbidden" not in one.log(), one.log())


# ---------------------------------------------------------------- their work

# The plugin's and the agent's calls of a container `a` on their node. ONE: a new pool of a single block. A call of `admin` is made by
# who may do everything, on the same node or on `other`.
CALLS = (
    ("a block is claimed", "ADD"),
    ("a pod's second interface", "ADD", "ADD interface=eth1 pool=second", "DEL interface=eth1 pool=second"),
    ("a block that is nobody's goes with its last address, and comes again", "admin ADD pool=ONE", "FORSAKE", "DEL", "ADD pool=ONE",
     "FORSAKE", "DEL"),
    ("an address is borrowed; the node's own claim on the block came too late", "admin-other ADD pool=ONE container=b", "OVERTAKEN",
     "ADD pool=ONE", "admin-other DEL container=b"),
    ("a pool has blocks of another size", "ADD pool=big"),
    ("a pool selects nodes", "ADD pool=of-nodes"),
    ("a pool selects namespaces", "ADD pool=selects"),
    ("a pod has annotations", "ADD pod=annotated annotations=api"),
    ("CHECK", "ADD", "CHECK"),
    ("GC and STATUS", "ADD", "GC", "STATUS"),
)


def plays_calls(rig, account, node):
    other = f"{node}-other"
    for number, (name, *steps) in enumerate(CALLS):
        one = rig.pool() if any("ONE" in step for step in steps) else None
        answer = None
        for step in [*steps, "DEL"]:
            who, *words = step.split()
            by, where = ("admin", other if who == "admin-other" else node) if who.startswith("admin") else (account, node)
            command, *options = words if by == "admin" else [who, *words]
            given = {"container": "a", **dict(option.split("=") for option in options)}
            given["container"] += f"-{number}-{account}"
            if given.get("pool") == "ONE":
                given["pool"] = one
            try:
                if command == "FORSAKE":
                    rig.forsake(node)
                elif command == "OVERTAKEN":
                    claims_too_late(rig, node, other)
                elif command in ("GC", "STATUS"):
                    rig.cni(by, command, where, more={"cniVersion": "1.1.0", "cni.dev/valid-attachments": []})
                else:
                    answer = rig.cni(by, command, where, more={"prevResult": {**answer, "interfaces": []}} if command == "CHECK" else {}, **given)
            except Failure as failure:
                raise Failure(f"{account}: {name}: {step}: {failure}") from failure


def claims_too_late(rig, node, other):
    """The node's own pending claim on a block that another has confirmed."""
    path = f"{CALICO}/blockaffinities"
    specs = [item["spec"] for item in rig.items(path) if item["spec"]["node"] == other and item["spec"]["cidr"].startswith("10.120.")]
    spec = max(specs, key=lambda spec: int(spec["cidr"].split(".")[2]))  # of the newest pool
    rig.kube.make(path, "BlockAffinity", f"{node}-{re.sub('[./]', '-', spec['cidr'])}",
        spec={**spec, "node": node, "state": "pending"})
    time.sleep(1)  # the agent sees it


def works_as_agent(rig, rights):
    rig.node("n-agent")
    token = rig.world.directory / "kubeconfig-made"
    token.write_text("{}")  # one that is to be written anew
    token.chmod(0o600)
    condition = {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated", "message": ""}
    rig.kube._send("PATCH", "/api/v1/nodes/n-agent/status", json.dumps({"status": {"conditions": [condition]}}).encode(),
                   media="application/strategic-merge-patch+json")
    begin = lambda: start_agent(rig.world, rig.stores["croft-node"], "n-agent", rig.socket, "--tombstones", "none", "--clear-network-unavailable",
                                "--plugin-kubeconfig", str(token), "--api-server", rig.kube.url, env=own_environment(rig.world.directory))
    agent = begin()
    wait_for_agents_memory(rig.world, rig.socket)
    wait_for(lambda: rig.kube.call("GET", "/api/v1/nodes/n-agent")["status"]["conditions"][0]["status"] == "False", "the condition goes")
    wait_for(lambda: "token" in token.read_text(), "the plugin's token is made")
    for number in range(5):
        plays_calls(rig, "croft-node", "n-agent")
        if not [right for right in idle("croft-node", rights, rig.asked()["croft-node"]) if right[1] == V1]:
            break
        # What it knows by its watches it reads before they are there, which is for a moment.
        one = rig.pool()
        agent.end()
        agent = begin()
        for command in ("ADD", "DEL"):
            rig.cni("croft-node", command, "n-agent", f"early-{number}", pool=one)
    wait_for_agents_memory(rig.world, rig.socket)
    with contextlib.suppress(Failure):
        rig.cni("croft-node", "ADD", "n-agent", "told", pool="nowhere")
    wait_for(lambda: rig.events_of("told"), "a pod is told why it has no address")
    follows = lambda what: any(request[2] == what and request[4] == "watch" for request, _ in rig.asked()["croft-node"])
    wait_for(lambda: follows("pods") and follows("namespaces"), "the agent follows annotations")
    expect("forbidden" not in agent.log(), agent.log())


def works_as_collector(rig):
    lives, bare, leaves = (rig.node(name) for name in ("lives", "bare", "leaves"))
    one = rig.pool()
    add = lambda node, container, **more: rig.cni("admin", "ADD", node, container, **more)
    add(lives, "gone")
    add(lives, "gone", interface="eth1", pool="second")  # in another block: its handle is written before it is deleted
    add(leaves, "gone-2")
    add("said", "gone-3")
    rig.croft("admin", "node", "remove", "said", "--force")
    rig.kube.make(f"{OWN}/croftpools", "CroftPool", "none", spec={"pool": "none"})
    pools = lambda: {item["metadata"]["name"]: item.get("status") for item in rig.items(f"{OWN}/croftpools")}
    with rig.controller("--leader-elect-resource-namespace", NAMESPACE):
        for time_ in ("first", "second"):  # the second time the block's mark is there
            add(bare, time_, pool=one)
            rig.forsake(bare)
            wait_for(lambda: not rig.holders() & {lives, bare, "said"}, f"addresses of pods that are gone are free, {time_}", SOON)
        rig.kube.call("DELETE", f"/api/v1/nodes/{leaves}")
        wait_for(lambda: leaves not in rig.holders() | {item["spec"]["node"] for item in rig.items(f"{CALICO}/blockaffinities")},
                 "addresses and claims of a node that is gone are free", SOON)
        wait_for(lambda: not rig.items(f"{OWN}/croftremovednodes"), "the record of a node that was said to be gone goes", SOON)
        wait_for(lambda: "none" not in pools() and pools().get("p"), "pools are shown, and no others", SOON)
    plays(rig, "croft-controller", IN_ITS_POD)


def works_with_ranges(rig):
    ranges = lambda: {item["spec"]["node"] for item in rig.items(f"{OWN}/croftnoderanges")}
    flags = ("--leader-elect=false", "--allocate-node-cidrs", "--cluster-cidr", "10.200.0.0/23")
    for item in rig.items("/api/v1/nodes"):
        if item["metadata"]["name"] != "oak":
            rig.kube.call("DELETE", f"/api/v1/nodes/{item['metadata']['name']}")
    rig.kube.call("DELETE", f"{OWN}/croftpoolsets")  # the first controller makes it, the second writes it
    with rig.controller(*flags):
        wait_for(lambda: ranges() == {"oak"}, "a range is given", SOON)
    rig.without_ranges()
    rig.node("first")
    with rig.controller(*flags):
        wait_for(lambda: ranges() == {"oak", "first"}, "both ranges are given", SOON)
        rig.node("later")
        wait_for(lambda: rig.events_of("later"), "a node that gets none is told", SOON)
        rig.kube.call("DELETE", "/api/v1/nodes/first")
        wait_for(lambda: ranges() == {"oak", "later"}, "the range of a node that is gone is given to who waits", SOON)
        wait_for(lambda: rig.items(f"{OWN}/croftnoderangesets")[0].get("status"), "node ranges are shown", SOON)


def works_with_desk(rig):
    """Whoever may list blocks and pods sees the page; others, known or not, do not. Pods and Services are on it."""
    port = free_port()
    service = rig.kube.create_service("seen", {"ports": [{"port": 80}]})["spec"]["clusterIP"]
    look = lambda path, account: ask(port, path, Authorization=f"Bearer {rig.kube.token_of(account, NAMESPACE) if account else 'wrong'}")
    with rig.controller("--leader-elect=false", "--desk", f"127.0.0.1:{port}"):
        wait_for(lambda: ask(port, "/"), "the page")
        for account, status in (("croft-operator", 200), ("croft-controller", 200), ("croft-plugin", 403), ("croft-bootstrap", 403), (None, 401)):
            expect_equal(look("/api/overview", account)[0], status, f"{account}")
        for path in ("/api/findings", "/api/reliefs", "/api/nodes", "/api/explain?node=oak", f"/api/who?address={service}"):
            status, _, body = look(path, "croft-operator")
            expect(status == 200 and "forbidden" not in body, f"{path}: {status}: {body}")
        expect_equal(json.loads(body)["state"], "service", "an address of a Service")
        seen = json.loads(look("/api/overview", "croft-operator")[2])
        expect_equal(seen["notes"], [], "everything is shown")
        expect(any(pool["held"] for pool in seen["pools"]), f"{seen['pools']}")
    rig.kube.delete_service("seen")


def works_with_history(rig):
    """It begins with the pools, and follows the blocks."""
    asked = lambda: {(request[2], request[4]) for request, _ in rig.asked()["croft-controller"]}
    with rig.controller("--leader-elect=false", "--history", rig.world.directory / "history.db"):
        wait_for(lambda: {("croftpoolsets", "list"), ("ipamblocks", "watch")} <= asked(), "pools are listed and blocks watched", SOON)


# `=> WORD`: whatever the exit code, it says that. {…}: a name of what was made for the rows.
BOOTSTRAP = (
    "pool defaults --no-kubeadm --ipv4-cidr 10.96.0.0/16 --ipv6-cidr none => ServiceCIDR",
    "pool defaults --no-kubeadm --ipv4-cidr 10.250.0.0/16 --ipv6-cidr none => node oak",
    "pool defaults --no-kubeadm --ipv4-cidr 10.200.0.0/16 --ipv6-cidr none => node",
    "pool defaults --gateways first => 10.244.0.0/16",
    "pool defaults --gateways first",
)
OPERATOR = (
    "pool create o --cidr 10.121.0.0/28 --block-size 28 --gateway 10.121.0.1",
    "pool disable o", "pool enable o", "pool delete o",
    "pool list", "pool show p --show-blocks", "block list", "ip list", "node list", "node show oak", "explain --node oak",
    "check => findings", "explain --node oak --pool selects --namespace default => selects",
    "pool defaults --dry-run => fd00:10::/48",
    "ip show {address}", "ip release {address}", "ip release {second} --force", "ip release {nobodys} --force",
    "affinity claim {cidr} --node op --force", "affinity release --node op", "affinity claim {cidr} --node op --force",
    "affinity release --node op", "node remove held --force",
    "node range config --cluster-cidr 10.200.0.0/20", "node range assign oak", "node range list", "node range show oak",
    "node range release oak --force",
    "config show", "config set --strict-affinity true --max-blocks-per-host 7", "config set --strict-affinity false --max-blocks-per-host 0",
    "host-local import --dir {folder} --pool {import} --pod-cidr {import_cidr} --node imported --network net",
    "service list -A => kubernetes", "service show kubernetes", "service create mine --tcp 80 => use kubectl",
)


# `kubectl exec deploy/croft-controller -- croft ...`
IN_ITS_POD = ("check => pools", "explain --node oak", "ip list", "pool list", "pool show p", "block list", "node list", "node show oak",
              "config show", "node range list")


def plays(rig, account, rows, **names):
    for row in rows:
        command, _, word = row.format(**names).partition(" => ")
        text = rig.croft(account, *command.split(), any_code=bool(word))
        expect(word in text, f"{command}: no {word!r} in: {text}")


def works_as_bootstrap(rig):
    """On a register without pools."""
    rig.croft("admin", "node", "range", "config", "--cluster-cidr", "10.200.0.0/20")
    rig.kube.call("DELETE", f"{OWN}/croftpoolsets")  # the first pool of a register makes it
    plays(rig, "croft-bootstrap", BOOTSTRAP)
    made = {item["metadata"]["name"] for item in rig.items(f"{CALICO}/ippools")}
    expect_equal(made, {"default-ipv4-ippool", "default-ipv6-ippool"}, "first pools")
    for name in made:
        rig.croft("admin", "pool", "delete", name)
    rig.without_ranges()
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"

    def lists_services():
        # An API server makes its own anew, every ten seconds.
        for item in rig.items(ranges):
            rig.kube.call("DELETE", f"{ranges}/{item['metadata']['name']}")
        return "of Service" in rig.croft("croft-bootstrap", "pool", "defaults", "--no-kubeadm", "--ipv4-cidr", "10.96.0.0/16", "--ipv6-cidr", "none",
                                         any_code=True)
    wait_for(lists_services, "without ServiceCIDRs the addresses of Services are left out", 30)
    ready = lambda: any(condition["type"] == "Ready" and condition["status"] == "True" for item in rig.items(ranges)
                        for condition in item.get("status", {}).get("conditions", []))
    wait_for(ready, "Services get addresses again", 60)


# Records as no Croft writes them, of kinds that no other command deletes: `croft record remove KIND NAME`.
DAMAGED = (("high_water_mark", "CroftHighWaterMark", "damaged", {"sequenceNumber": "1"}),
           ("pool_set", "CroftPoolSet", "default", {"generation": "1"}),
           ("node_range_set", "CroftNodeRangeSet", "default", {"generation": "1", "clusterCIDRs": [], "excluded": [], "cursors": []}),
           ("removed_node", "CroftRemovedNode", "damaged", {"node": "oak", "held": {}}))


def works_as_operator(rig):
    folder, pool, forsaken = rig.world.directory / "host-local", rig.pool(), rig.pool()
    folder.mkdir()
    (folder / "10.125.0.3").write_text("imported\r\neth0")
    rig.croft("admin", "pool", "create", "import", "--cidr", "10.125.0.0/28", "--block-size", "28", "--gateway", "none")
    add = lambda node, container, **more: rig.cni("admin", "ADD", node, container, **more)["ips"][0]["address"].split("/")[0]
    names = {"address": add("op", "gone"), "second": add("op", "gone", interface="eth1", pool="second"),
             "nobodys": add("forsaken", "gone-too", pool=forsaken), "folder": folder, "import": "import", "import_cidr": "10.125.0.0/28",
             "cidr": next(item["spec"]["cidr"] for item in rig.items(f"{CALICO}/ippools") if item["metadata"]["name"] == pool)}
    add("held", "held")
    rig.forsake("forsaken")
    rig.kube.call("DELETE", f"{CALICO}/ipamconfigs")
    rig.kube.call("DELETE", f"{OWN}/croftpoolsets")  # the first pool of a register makes it
    plays(rig, "croft-operator", OPERATOR, **names)
    add("held", "held-again")
    rig.croft("croft-operator", "node", "remove", "held", "--force")  # the record is there, and is written again
    for kind, object_kind, name, spec in DAMAGED:
        rig.kube._send("DELETE", f"{OWN}/{object_kind.lower()}s?fieldSelector=metadata.name={name}")
        rig.kube.make(f"{OWN}/{object_kind.lower()}s", object_kind, name, spec={"name": "another", "formatVersion": 1, **spec})
        for trial in (("--dry-run",), ()):  # tried before, it is there
            rig.croft("croft-operator", "record", "remove", kind, name, "--force", *trial)


# ---------------------------------------------------------------- the test

def furnish_cluster(kube):
    kube.make_node("oak")
    node = kube.call("GET", "/api/v1/nodes/oak")
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "10.250.3.4"}]
    kube.call("PUT", "/api/v1/nodes/oak/status", node)
    kube.make(KUBEADM, "ConfigMap", "kubeadm-config",
        data={"ClusterConfiguration": cluster_configuration("10.244.0.0/16,fd00:10::/48")})


def furnish(rig):
    """Pools, and what lives: from lists without any pod or holder a collector would conclude nothing."""
    for pool, cidr, size in (("p", "10.100.0.0/14", "28"), ("big", "10.77.0.0/16", "26")):
        rig.croft("admin", "pool", "create", pool, "--cidr", cidr, "--block-size", size, "--gateway", "none", "--cooldown-seconds", "0")
    make = lambda name, **spec: rig.kube.make(f"{CALICO}/ippools", "IPPool", name,
        spec={"nodeSelector": "all()", "blockSize": 28, **spec})
    make("selects", cidr="10.99.0.0/16", namespaceSelector="kubernetes.io/metadata.name == 'default'")
    make("of-nodes", cidr="10.98.0.0/16", nodeSelector="has(kubernetes.io/hostname) || all()")
    make("second", cidr="10.97.0.0/16")
    # As no Croft makes it: over the same addresses, with blocks of another size.
    make("rival", cidr="10.76.0.0/15", disabled=True)
    rig.kube.make_pod("kept", "oak")
    rig.kube.make_pod("annotated", "oak", annotations={"ipam.croft.dev/ipv4pools": '["big"]'})
    rig.cni("admin", "ADD", "oak", "kept")


def idle(account, rights, asked):
    """Rights that nobody has used yet, but for rare ones."""
    return [right for right in sorted(rights) if right[1] != V3 and (account, right[4], right[2]) not in RARE
            and not any((right[1], right[2], right[4]) == (r[1], r[2], r[4]) and right[0] in ("", r[0]) and right[3] in ("", r[3]) for r, _ in asked)]


def is_used(account, rights, asked):
    for request, allowed in asked:
        expect(allowed, f"{account} asks for what its rights do not allow: {request}")
    expect_equal(idle(account, rights, asked), [], f"{account}: rights that nobody uses")


def test(world):
    begin = time.monotonic()
    kube = KubeApiserver(world, sys.argv[2])
    policy = kube.folder / "policy.yaml"
    policy.write_text(json.dumps(POLICY))
    kube.arguments = ("--audit-policy-file", policy, "--audit-log-path", kube.folder / "audit.log", "--audit-log-mode", "blocking",
                      "--disable-admission-plugins", "ServiceAccount")
    with kube:
        install_definitions(world, kube, shipped_definitions("calico"))
        roles = Roles(world, kube)
        if "--rewrite" in sys.argv:
            TABLE.write_text(roles.text())
        expect_equal(set(roles.text().splitlines()) ^ set(TABLE.read_text().splitlines()), set(), "rows of the chart or of kube_rights.txt alone")
        furnish_cluster(kube)
        rig = Rig(world, kube)
        works_as_bootstrap(rig)
        furnish(rig)
        plays_calls(rig, "croft-plugin", rig.node("n-plugin"))
        works_as_agent(rig, roles.rights["croft-node"])
        works_as_operator(rig)
        works_as_collector(rig)
        for option, works in (("--allocate-node-cidrs", works_with_ranges), ("--desk", works_with_desk), ("--history", works_with_history)):
            roles.rights["croft-controller"] |= roles.controller(option)
            time.sleep(0.5)
            works(rig)
        asked = rig.asked()
        for account in ACCOUNTS:
            is_used(account, roles.rights[account], asked[account])
            say(f"{account}: {len(roles.rights[account])} rights, which it needs and which are enough")
        say(f"in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main(test, 680)
