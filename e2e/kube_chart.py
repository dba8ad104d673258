"""The chart: helm renders what deploy/kubernetes has, a real API server takes it, and values that make no sense are refused by name."""

import json
import os
import re
import sys

from kube_apiserver_lib import KubeApiserver, program
from kube_store import calico_definitions, write_kubeconfig
from lib import TREE, expect, expect_equal, main, run, say

CHART = TREE / "deploy" / "helm" / "croft"
PLUGINS = ("ptp", "bridge", "calico", "flannel")
EVERYTHING = ["namespace.create=true", "agent.annotationsFromApi=true", "install.ipv6=true", "install.mtu=1400",
              "install.masquerade=false", "install.alsoAs={host-local,calico-ipam}", "apiServer.host=10.0.0.1",
              "apiServer.port=6443", "controller.replicas=3", "controller.allocateNodeCidrs=true",
              "controller.clusterCidr=10.128.0.0/9", "controller.desk=true", "defaultPools.ipv4Cidr=10.1.0.0/16",
              "defaultPools.ipv6Cidr=fd00::/48", "agent.extraArgs={--log-calls}", "agent.metricsPort=9601"]
IMAGE = "localhost/croft"
REFUSED = (("", "mainPlugin"), ("mainPlugin=ptp,image.repository=", "image.repository: name Croft's image"), ("mainPlugin=cilium", "mainPlugin"), ("mainPlugin=ptp,typo=1", "typo"),
           ("mainPlugin=ptp,install.mtu=70000", "mtu"), ("mainPlugin=ptp,install.conflistName=../x.conflist", "conflistName"),
           ("mainPlugin=ptp,defaultPools.ipv4Cidr=ten", "ipv4Cidr"), ("mainPlugin=ptp,install.cniBinDir=opt", "cniBinDir"),
           ("mainPlugin=ptp,controller.grace=5", "grace"),
           ("mainPlugin=ptp,controller.history.enabled=true,controller.replicas=2", "controller.history"),
           *((f"mainPlugin={plugin},controller.allocateNodeCidrs=true,controller.clusterCidr=10.200.0.0/16", "the pool would be kubeadm's podSubnet")
             for plugin in ("ptp", "bridge", "calico")),
           # Of each family of its own.
           *((f"mainPlugin=ptp,controller.allocateNodeCidrs=true,controller.clusterCidr={cluster},defaultPools.{pool}", f"give defaultPools.{wanted}")
             for cluster, pool, wanted in (("10.244.0.0/16", "ipv6Cidr=none", "ipv4Cidr"), ("10.244.0.0/16", "ipv6Cidr=fd00::/56", "ipv4Cidr"),
                                           ("fd00::/48", "ipv4Cidr=none", "ipv6Cidr"), ("10.1.0.0/16\\,fd00::/48", "ipv4Cidr=none", "ipv6Cidr"))),
           *((f"mainPlugin=ptp,controller.allocateNodeCidrs=true,controller.clusterCidr={cluster},defaultPools.{pool}",
              f"controller.allocateNodeCidrs: clusterCidr {word}")
             for cluster, pool, word in (("10.0.0.0/8", "ipv4Cidr=10.200.4.0/22", "10.0.0.0/8 overlaps the pool 10.200.4.0/22"),
                                         ("10.200.7.0/24", "ipv4Cidr=10.200.4.0/22", "10.200.7.0/24 overlaps the pool 10.200.4.0/22"),
                                         ("10.1.0.0/16\\,fd00::/48", "ipv4Cidr=none,defaultPools.ipv6Cidr=FD00::/48", "fd00::/48 overlaps the pool FD00::/48"),
                                         ("::/0", "ipv6Cidr=fd00::1:0/112", "::/0 overlaps the pool fd00::1:0/112"))))
# Node ranges beside pools, or without any.
BESIDE = ("mainPlugin=ptp,controller.allocateNodeCidrs=true,controller.clusterCidr=10.200.8.0/22,defaultPools.ipv4Cidr=10.200.4.0/22",
          "mainPlugin=ptp,controller.allocateNodeCidrs=true,controller.clusterCidr=10.200.0.0/16,defaultPools.ipv4Cidr=none",
          "mainPlugin=ptp,controller.allocateNodeCidrs=true,controller.clusterCidr=10.200.0.0/16,defaultPools.ipv4Cidr=10.200.0.0/16,"
          "defaultPools.enabled=false",
          "mainPlugin=flannel,controller.allocateNodeCidrs=true,controller.clusterCidr=10.200.0.0/16,defaultPools.ipv4Cidr=10.200.0.0/16",
          *(f"mainPlugin=ptp,controller.allocateNodeCidrs=true,controller.clusterCidr=fd00:0:0:1::/64,defaultPools.ipv6Cidr={pool}"
            for pool in ("none", "fd00::/64", "fd00:0:0:2::/63", "fe00::/8", "FD00:0:0:10:0:0:0:0/60")),
          "mainPlugin=ptp,controller.clusterCidr=10.200.0.0/16,defaultPools.ipv4Cidr=10.200.0.0/16")
# Values that can't be said with --set, each refused by its path: path -> values. None: helm's way to unset one.
REFUSED_VALUES = {
    "defaultPools.ipv4BlockSize": (0, 19, 33, 99, 1000000, "19", "x", 26.5), "defaultPools.ipv6BlockSize": (0, 115, 129, "64"),
    "defaultPools.ipv4Cidr": ("999.1/99", "10.0.0.0/33", "10.0.0.256/8", "10.0.0.0/8\nx: y"),
    "defaultPools.ipv6Cidr": ("fd00/48", "fd00::/129", "10.0.0.0/8", "fd00::/48 #"), "defaultPools.enabled": (None,),
    "apiServer.host": ("not-a-number", "10.0.0", "10.0.0.1\nx"),
    "apiServer.port": ("x", 0, 65536, 99999999, "65536", "-1"),
    "controller.clusterCidr": ("x y: z", "10.0.0.0/8\n            - --grace=0s", "10.0.0.0/8,10.1.0.0/16", "10.0.0.0"),
    "controller.grace": ("9" * 22 + "h", "169h", "10081m", "604801s", "604800001ms", "-1s", "1h\n", None),
    "controller.history.enabled": ("yes", None), "controller.history.retention": ("90", "90m", "0d", None),
    "controller.history.maxBytes": ("4G", "10KiB", "x", None), "controller.history.emptyDirSize": ("6GB", "6 Gi", None),
    "controller.history.claim": ("a b", "A", "-a"),
    "install.mtu": (1, 575, 65536, -1, None), "install.ipv4": (None,), "install.ipv6": (None,), "install.masquerade": (None,),
    "install.networkName": ("a/b _", "my_net", "net-", "net.", "a..b", "n" * 189, 'a"\nb: c'),
    "install.replace": ("a b", "-x", "n" * 254, "a\nb"), "install.conflistName": ("x" * 300 + ".conflist",),
    "install.cniBinDir": ("/opt/../etc", "/..", "/opt\n/x", "/opt\u0000", "/", "", "/opt/cni/bin/", "//", "/.", "/./", "/opt//cni", "/opt/./cni",
                          "/opt/.", None),
    "install.cniConfDir": ("/etc/cni?context=x", "/etc/..", "/etc\t", "/", "/etc/cni/net.d/", "//", "/.", "/./", "/etc//cni", "/etc/./cni",
                           "/etc/.", None),
    "install.extraArgs": (["--x\ny"],), "agent.extraArgs": (["--x\ny"],), "controller.extraArgs": (["--x\ny"],),
    "calicoGroup": ("projectcalico.org/v1", "v3", "x&context=y"), "image.repository": ("r x", "x\n  y: z", "r@sha256:" + "a" * 64, None),
    "image.tag": ("@sha256:" + "a" * 64, "a b", "t" * 129), "image.pullSecrets": ([{}],), "image.pullPolicy": (None,),
    "image.digest": ("sha256:", "sha256:" + "A" * 64, "a" * 64, "sha256:" + "a" * 65),
    "agent.maxUnavailable": ("abc", 0, -1, "5", "0%", "101%", None), "agent.nodeSelector": ({"a": True},),
    "agent.annotationsFromApi": (None,), "agent.metricsPort": (None,), "controller.replicas": (None,),
    "controller.allocateNodeCidrs": (None,), "controller.desk": (None,), "namespace.create": (None,),
    **{f"{part}.priorityClassName": ("x\n      hostPID: true", "A", "a_b", "-a", "x" * 254) for part in ("agent", "controller")},
    **{f"metrics.{name}": (None,) for name in ("service", "serviceMonitor", "prometheusRule", "dashboard", "runbooks")},
    "networkPolicy": (None,), "uninstall": (None,), "calicoKinds": (None,),
}
# Each alone, as they are of the whole or of two values: values, path.
REFUSED_ALONE = (*(({name: None}, name) for name in ("mainPlugin", "image", "namespace", "apiServer", "defaultPools", "install", "agent",
                                                     "controller", "metrics")),
                 ({"install": {"ipv4": False, "ipv6": False}}, "install.ipv6"),
                 ({"controller": {"allocateNodeCidrs": True}}, "controller.clusterCidr"))
# Where nothing means the same as the default, or as nothing said.
MAY_BE_UNSET = ("controller.history.claim", "image.tag", "image.digest", "image.pullSecrets", "apiServer.host", "apiServer.port", "defaultPools.ipv4Cidr",
                "defaultPools.ipv4BlockSize", "install.conflistName", "install.networkName", "install.replace", "install.alsoAs", "uninstallForce", "install.extraArgs",
                "agent.clearNetworkUnavailable", "agent.resources", "agent.nodeSelector", "agent.priorityClassName", "agent.extraArgs", "controller.resources",
                "controller.nodeSelector", "controller.clusterCidr", "controller.priorityClassName", "controller.extraArgs", "calicoGroup")
# deploy/NAME/values.yaml -> the range that the pool is told; None: it is kubeadm's.
AT_HOME = {"k3s": "10.42.0.0/16", "kind": None, "kubeadm": None, "talos": "10.244.0.0/16"}
# Values that are odd and fine: (values, a text of what is rendered).
TAKEN_VALUES = (
    ({"install": {"cniBinDir": "/opt: x #}, y: {"}}, 'hostPath: {path: "/opt: x #}, y: {", type: DirectoryOrCreate}'),
    ({"install": {"cniConfDir": "/etc/c: #n"}}, '- "--plugin-store=kube:/etc/c: #n/croft-kubeconfig"'),
    ({"install": {"networkName": "cbr0"}}, '- "--network-name=cbr0"'),
    ({"install": {"replace": "my_net"}}, '- "--replace=my_net"'),
    ({"uninstall": True, "uninstallForce": True}, "- --force"),
    ({"install": {"conflistName": "00-a.conflist"}}, '- "--conflist-name=00-a.conflist"'),
    ({"calicoGroup": "projectcalico.org/v3"}, '{name: CROFT_STORE, value: "kube:?group=projectcalico.org/v3"}'),
    ({"calicoGroup": "projectcalico.org/v3"}, '- "--plugin-store=kube:/etc/cni/net.d/croft-kubeconfig?group=projectcalico.org/v3"'),
    ({"agent": {"priorityClassName": "true"}}, 'priorityClassName: "true"'),
    # Who gives nodes their ranges waits for none of its own.
    ({"mainPlugin": "flannel", "controller": {"allocateNodeCidrs": True, "clusterCidr": "10.244.0.0/16"}},
     "- {key: node.kubernetes.io/network-unavailable, operator: Exists}"),
    ({"agent": {"maxUnavailable": 5}}, "maxUnavailable: 5}"),
    ({"agent": {"maxUnavailable": "100%"}}, 'maxUnavailable: "100%"}'),
    ({"image": {"repository": "r.example:5000/x", "digest": "sha256:" + "a" * 64, "tag": "v1"}},
     'image: "r.example:5000/x@sha256:' + "a" * 64 + '"'),
    ({"image": {"tag": "1e3"}}, 'image: "localhost/croft:1e3"'),
    ({"install": {"mtu": 65535}}, '- "--mtu=65535"'),
    ({"install": {"mtu": 576, "ipv4": False, "ipv6": True}}, '- "--mtu=576"'),
    ({"defaultPools": {"ipv4BlockSize": "20", "ipv6BlockSize": 128}}, '- "--ipv4-block-size=20"'),
    ({"defaultPools": {"ipv4BlockSize": 32, "ipv6Cidr": "fd00:10:244::/56"}}, '- "--ipv6-cidr=fd00:10:244::/56"'),
    ({"apiServer": {"host": "fd00::1", "port": 65535}}, 'value: "65535"}'),
    ({"controller": {"allocateNodeCidrs": True, "clusterCidr": "10.0.0.0/8,fd00::/48", "grace": "168h"},
      "defaultPools": {"enabled": False}},
     '- "--cluster-cidr=10.0.0.0/8,fd00::/48"'),
    ({"controller": {"grace": "0s"}}, '- "--grace=0s"'),
    ({"controller": {"history": {"enabled": True}}}, 'emptyDir: {sizeLimit: "6Gi"}'),
    ({"controller": {"history": {"enabled": True, "claim": "c"}}}, "strategy: {type: Recreate}"),
)


class Tools:
    """helm and kubectl, by these names."""

    def __init__(self, world):
        self.folder = world.directory / "tools"
        self.folder.mkdir()
        for name in ("helm", "kubectl"):
            (self.folder / name).symlink_to(program("1.36", "kube-node"))
        self.home = {"HOME": str(world.directory), "PATH": os.environ["PATH"]}

    def helm(self, *arguments, check=True):
        return run(self.folder / "helm", *arguments, check=check, env=self.home)

    def render(self, *values, check=True):
        return self.helm("template", "croft", CHART, "-n", "croft-system", "--set", f"image.repository={IMAGE}", *(["--set", ",".join(values)] if any(values) else []),
                         check=check)

    def render_values(self, world, values, *more, check=True, release="croft", namespace="croft-system"):
        page = world.directory / "values.json"
        image = {"image": {"repository": IMAGE, **values["image"]}} if values.get("image") else {}
        page.write_text(json.dumps({"mainPlugin": "ptp", "image": {"repository": IMAGE}, **values, **image}))
        return self.helm("template", release, CHART, "-n", namespace, "-f", page, *more, check=check)

    def kubectl(self, kubeconfig, *arguments, given=""):
        return run(self.folder / "kubectl", "--kubeconfig", kubeconfig, *arguments, env=self.home, stdin=given)


def at(values):
    """Values by path -> as helm has them: {"a.b": 1} is {"a": {"b": 1}}."""
    found = {}
    for path, value in values.items():
        *parents, name = path.split(".")
        place = found
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = value
    return found


def refuses_values(world, tools):
    """The schema names all that is wrong at once: each time one bad value of every path."""
    rounds = [(at(bad), bad) for number in range(max(map(len, REFUSED_VALUES.values())))
              if (bad := {path: some[number] for path, some in REFUSED_VALUES.items() if number < len(some)})]
    for values, bad in rounds + [(values, {path: values.get(path, 0)}) for values, path in REFUSED_ALONE]:
        done = tools.render_values(world, values, check=False)
        for path, value in bad.items():
            parent, _, name = ("/" + path.replace(".", "/")).rpartition("/")
            told = f"at '{parent}': missing propert.*'{name}'" if value is None else f"at '{parent}/{name}[/']"
            expect(done.returncode != 0 and re.search(told, done.stderr), f"{path}={value}: {done.returncode} {done.stderr}")


def renders(world, tools):
    run(TREE / "scripts" / "manifests", "--check", env={**tools.home, "HELM": str(tools.folder / "helm")}, timeout=300)
    for values, word in REFUSED:
        done = tools.render(values, check=False)
        expect(done.returncode != 0 and word in done.stderr, f"{values}: {done.returncode} {done.stderr}")
    for values in BESIDE:
        tools.render(values)
    for name, range_ in AT_HOME.items():
        text = tools.helm("template", "croft", CHART, "-n", "croft-system", "-f", TREE / "deploy" / name / "values.yaml").stdout
        expect_equal(re.findall(r'--ipv4-cidr=([^"]+)', text), [range_] if range_ else [], f"the range that deploy/{name} tells")
    refuses_values(world, tools)
    text = tools.render_values(world, at(dict.fromkeys(MAY_BE_UNSET))).stdout
    expect(not re.search("<nil>|%!", text), text)
    # helm can be told to pass over the schema.
    for name in ("cniBinDir", "cniConfDir"):
        for value in ("/etc/cni/", "//", "/.", "/etc//cni", "/", "etc/cni", None):
            done = tools.render_values(world, {"install": {name: value}}, "--skip-schema-validation", check=False)
            expect(done.returncode != 0 and f"install.{name}" in done.stderr, f"{name} {value}: {done.returncode} {done.stderr}")
    for values, wanted in TAKEN_VALUES:
        text = tools.render_values(world, values).stdout
        expect(wanted in text, f"{values}: {wanted} in {text}")
    # calico-node and flanneld write the condition of their nodes.
    for plugin, clears in (("ptp", True), ("bridge", True), ("calico", False), ("flannel", False)):
        text = tools.render_values(world, {"mainPlugin": plugin}).stdout
        expect_equal("- --clear-network-unavailable" in text, clears, f"{plugin}: NetworkUnavailable is taken back")
        gone = tools.render_values(world, {"mainPlugin": plugin, "uninstall": True, "agent": {"clearNetworkUnavailable": True}}).stdout
        notes = tools.helm("install", "croft", CHART, "-n", "croft-system", "--dry-run=client", "--set", f"mainPlugin={plugin},image.repository={IMAGE}").stdout
        expect_equal(("get ippools.crd.projectcalico.org " in notes, "PODCIDRS" in notes), (plugin != "flannel", plugin == "flannel"), f"{plugin}: {notes}")
        expect("--clear-network-unavailable" not in gone and "nodes/status" not in gone, f"{plugin}: a node that Croft leaves is left alone")
    # What is on its way out makes no pools.
    for uninstalls in ("false", "true"):
        text = tools.render("mainPlugin=ptp", f"uninstall={uninstalls}").stdout
        expect_equal(("kind: Job" in text, "- --uninstall" in text), (uninstalls == "false", uninstalls == "true"), f"uninstall={uninstalls}")
    for plugin in PLUGINS:
        text = tools.render(f"mainPlugin={plugin}", *EVERYTHING).stdout
        expect(f"--main-plugin={plugin}" in text, plugin)
        # As croftd install chooses for the plugin.
        expect("--conflist-name" not in text, f"{plugin}: {text}")
    # Whoever asks the register has a kubeconfig, which somebody has to renew.
    for plugin, also_as, is_wanted in (("flannel", "", False), ("flannel", "host-local", False), ("flannel", "calico-ipam", True),
                                       ("flannel", "host-local,calico-ipam", True), ("ptp", "", True), ("ptp", "host-local", True)):
        text = tools.render(f"mainPlugin={plugin}", *([f"install.alsoAs={{{also_as}}}"] if also_as else [])).stdout
        for flag in ("--plugin-kubeconfig=", "--plugin-store="):
            expect_equal(flag in text, is_wanted, f"{flag} of {plugin} and {also_as or 'no other name'}")
    text = tools.render("mainPlugin=ptp", "metrics.serviceMonitor=true", "metrics.prometheusRule=true",
                        "metrics.dashboard=true").stdout
    kinds = set(re.findall(r"^kind: (\w+)$", text, re.MULTILINE))
    expect({"ServiceMonitor", "PrometheusRule", "ConfigMap"} <= kinds, f"{kinds}")
    board = json.loads(json.loads(re.search(r'^  croft\.json: (".*")$', text, re.MULTILINE)[1]))
    named = set(re.findall(r"\b((?:kube_)?(?:apiserver|node_ipam|leader)_\w+|croft_[a-z_]+)", json.dumps(board) + text))
    named = {re.sub(r"(?<=_duration_seconds)_(bucket|sum|count)$", "", name) for name in named}
    known = "".join(file.read_text() for file in (TREE / "src" / "agent" / "metrics").glob("*metrics.cc"))
    expect_equal({name for name in named if f'"{name}"' not in known}, set(), "figures that nobody gives")
    for page in re.findall(r'runbook_url: "(\S+)"', text):
        expect((TREE / page).exists(), f"{page} is there")
    say(f"rendered for {', '.join(PLUGINS)}; {len(REFUSED) + sum(map(len, REFUSED_VALUES.values()))} bad values refused by name; alerts and board name {len(named)} figures")


def has_its_image(world, tools):
    """What scripts/image makes is what the chart runs, under the name that a kubelet asks a runtime for: with registry and tag."""
    archive = world.directory / "croft.tar"
    said = run(TREE / "scripts" / "image", "--archive", archive, world.bin).stdout.strip()
    index = json.loads(run("tar", "-xOf", archive, "index.json").stdout)
    archive.unlink()
    for name, text in [("the chart", tools.render("mainPlugin=ptp").stdout),
                       ("deploy/kubernetes/cni-vpc-ipamd.yml", (TREE / "deploy/kubernetes/cni-vpc-ipamd.yml").read_text())]:
        used = set(re.findall(r'^ +image: "?([^"\n]+)"?$', text, re.MULTILINE))
        expect_equal(used, {said}, f"images of {name}")
    expect_equal({entry["annotations"]["io.containerd.image.name"] for entry in index["manifests"]}, {said}, "the archive's image")
    expect(re.fullmatch(rf"{IMAGE}:[0-9.]+", said), f"a whole name, of no registry: {said}")
    expect(said in (TREE / "docs" / "kubernetes.md").read_text(), f"{said} in docs/kubernetes.md")
    say(f"scripts/image makes {said}, which the chart runs")


def is_taken(tools, admin):
    tools.kubectl(admin, "delete", "customresourcedefinitions", "--all")  # of helm, which would keep their fields
    for plugin in PLUGINS:
        text = tools.render(f"mainPlugin={plugin}", *EVERYTHING[1:]).stdout
        said = tools.kubectl(admin, "apply", "--dry-run=server", "-f", "-", given=text).stdout
        expect("daemonset.apps/croft-agent" in said and "deployment.apps/croft-controller" in said, said)
    # What the tree ships of Calico's kinds goes beside, and under, what Calico ships.
    for name in ("crds-croft.yaml", "crds-calico.yaml"):
        tools.kubectl(admin, "apply", "--server-side", "-f", TREE / "deploy" / "kubernetes" / name)
    for page in sorted((TREE / "deploy" / "kubernetes").glob("*.yaml")):
        # Kinds of the Prometheus operator, which brings them.
        if "monitoring.coreos.com/" not in page.read_text():
            verb = "create" if "\n  generateName:" in page.read_text() else "apply"
            tools.kubectl(admin, verb, "--dry-run=server", "-f", page)
    for text in calico_definitions():
        tools.kubectl(admin, "apply", "--server-side", "--force-conflicts", "-f", "-", given=text)
    say("a real API server takes all of it, and Calico's own kinds over Croft's")


def installs(tools, admin):
    """By helm, more than once: what was interrupted is made whole, a second release is refused, what has the register stays."""

    def helm(*words, check=True):
        return tools.helm("--kubeconfig", admin, *words, check=check)

    def kinds():
        names = tools.kubectl(admin, "get", "customresourcedefinitions", "-o", "name").stdout.split()
        return {name.split("/")[1] for name in names}

    def of_the_agent(path):
        return tools.kubectl(admin, "-n", "croft-system", "get", "daemonset", "croft-agent", "-o", f"jsonpath={path}").stdout

    tools.kubectl(admin, "create", "namespace", "croft-system")
    helm("install", "croft", CHART, "-n", "croft-system", "--set", f"mainPlugin=ptp,image.repository={IMAGE}")
    all_kinds = kinds()
    expect({"ippools.crd.projectcalico.org", "ipamhandles.crd.projectcalico.org", "croftpoolsets.ipam.croft.dev"} <= all_kinds, f"{all_kinds}")
    second = helm("install", "second", CHART, "-n", "default", "--set", f"mainPlugin=ptp,image.repository={IMAGE}", check=False)
    expect(second.returncode != 0 and 'must equal "second"' in second.stderr, f"a second release: {second.stderr}")
    # As when the first one was killed between two definitions.
    tools.kubectl(admin, "delete", "customresourcedefinition", "ipamhandles.crd.projectcalico.org")
    helm("upgrade", "croft", CHART, "-n", "croft-system", "--reuse-values", "--set", "uninstall=true", "--set", "controller.replicas=0")
    expect_equal(kinds(), all_kinds, "kinds after an upgrade")
    expect("--uninstall" in of_the_agent("{.spec.template.spec.initContainers[0].args}"), "it takes the files back")
    helm("uninstall", "croft", "-n", "croft-system")
    expect_equal(kinds(), all_kinds, "kinds without the release")
    # With the labels of Pod Security.
    labelled = ["install", "croft", CHART, "-n", "labelled", "--set", f"mainPlugin=ptp,namespace.create=true,image.repository={IMAGE}"]
    alone = helm(*labelled, check=False)
    expect(alone.returncode != 0 and '"labelled" not found' in alone.stderr, f"helm keeps the release in the namespace: {alone.stderr}")
    helm(*labelled, "--create-namespace")
    labels = json.loads(tools.kubectl(admin, "get", "namespace", "labelled", "-o", "jsonpath={.metadata.labels}").stdout)
    expect_equal(labels.get("pod-security.kubernetes.io/enforce"), "privileged", "agents use the node's network")
    # What the agent wrote of a node goes as the page says.
    command = re.search(r"^kubectl (patch node) NODE (--subresource=status --type=strategic -p) '(.*)'$",
                        (TREE / "docs" / "runbooks" / "kubernetes-node.md").read_text(), re.MULTILINE)
    tools.kubectl(admin, "apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "oak"}}))
    both = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "NetworkUnavailable", "status": "False", "reason": "CroftIsUp"}]}}
    for patch, left in ((json.dumps(both), {"Ready", "NetworkUnavailable"}), (command[3], {"Ready"})):
        tools.kubectl(admin, *command[1].split(), "oak", *command[2].split(), patch)
        said = tools.kubectl(admin, "get", "node", "oak", "-o", "jsonpath={.status.conditions[*].type}").stdout
        expect_equal(set(said.split()), left, patch)
    say("installed, upgraded and uninstalled; a second release is refused; the register's kinds stay")


def without_helm(tools, admin):
    """By kubectl alone: what is applied may be applied again with another image, whatever became of the Job of the first pools."""
    place = TREE / "deploy" / "kubernetes"
    for plugin in PLUGINS:
        text = (place / f"croft-{plugin}.yaml").read_text()
        for number in range(3):
            tools.kubectl(admin, "apply", "-f", "-", given=text.replace("croft:0.1.0", f"croft:0.1.{number}"))
        image = tools.kubectl(admin, "-n", "croft-system", "get", "daemonset", "croft-agent", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
        expect(image.stdout.endswith("croft:0.1.2"), f"{plugin}: {image.stdout}")
    pages = sorted(page.name for page in place.glob("pools-*.yaml"))
    expect_equal(pages, [f"pools-{plugin}.yaml" for plugin in sorted(PLUGINS) if plugin != "flannel"], "who has pools of the register")
    # Again, as where nobody did what the first one said.
    for page in pages * 2:
        tools.kubectl(admin, "create", "-f", place / page)
    jobs = json.loads(tools.kubectl(admin, "-n", "croft-system", "get", "jobs", "-l", "app.kubernetes.io/component=default-pools", "-o", "json").stdout)
    expect_equal(len(jobs["items"]), 2 * len(pages), "each has a Job of its own")
    say("applied with kubectl alone, three images one after the other")


def is_released(world, tools, admin):
    """Chart and manifests as a release has them, and `kubectl croft` by the link that krew makes."""
    out = world.directory / "release"
    run(TREE / "scripts" / "release", "--dry-run", *(f"--without={name}" for name in ("packages", "tarball", "arm64", "sbom", "image", "krew")), out)
    packed, = out.glob("croft-*.tgz")
    text = tools.helm("template", "croft", packed, "-n", "croft-system", "--set", f"mainPlugin=ptp,image.repository={IMAGE}").stdout
    expect_equal(text, tools.render("mainPlugin=ptp").stdout, "the packed chart")
    shown = tools.helm("show", "chart", packed).stdout
    expect(all(re.search(rf"^{member}:", shown, re.MULTILINE) for member in ("home", "icon", "maintainers", "sources")), shown)
    run("tar", "-C", out, "-xzf", next(out.glob("*-kustomization.tar.gz")))
    for plugin in PLUGINS:
        page = next(out.glob(f"*/{plugin}/kustomization.yaml"))
        page.write_text(page.read_text().replace("newName: localhost/croft", "newName: r.example:5000/x"))
        made = run(tools.folder / "kubectl", "kustomize", page.parent, env=tools.home).stdout
        images = set(re.findall(r"^ +image: (\S+)$", made, re.MULTILINE))
        expect(len(images) == 1 and images.pop().startswith("r.example:5000/x:"), f"{plugin}: {made}")
        said = tools.kubectl(admin, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", page.parent).stdout
        expect("daemonset.apps/croft-agent" in said and "deployment.apps/croft-controller" in said, said)
    (tools.folder / "kubectl-croft").symlink_to(world.bin / "croft")
    env = {**tools.home, "PATH": f"{tools.folder}:{os.environ['PATH']}", "KUBECONFIG": str(admin)}
    run("kubectl", "croft", "pool", "create", "a", "--cidr", "10.9.0.0/24", "--gateway", "none", env=env)
    expect("10.9.0.0/24" in run("kubectl", "croft", "pool", "list", env=env).stdout, "kubectl croft pool list")
    say("a release's chart and manifests are those of the tree; kubectl croft reads its cluster")


def test(world):
    tools = Tools(world)
    renders(world, tools)
    has_its_image(world, tools)
    with KubeApiserver(world, sys.argv[2]) as kube:
        admin = write_kubeconfig(world, kube)
        installs(tools, admin)  # first: helm takes over no kind that is there
        is_taken(tools, admin)
        without_helm(tools, admin)
        is_released(world, tools, admin)


if __name__ == "__main__":
    main(test, 900)
