"""A real Kubernetes cluster of one or two nodes on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler; on each
node containerd, kubelet and kube-proxy.

All of it lives in mount, PID, network and UTS namespaces: the control plane at 10.200.0.1 in one set, each node in one of its own
inside it, joined by a bridge. A node's disks lie on a tmpfs of the test's, so that it can be "rebooted": everything of it killed,
/run gone, disks kept. When the test ends, the kernel ends all of it.
"""

import contextlib
import ipaddress
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from etcd_lib import Authority  # noqa: E402
from kube_apiserver_lib import program  # noqa: E402
from lib import (PLUGINS, Failure, World, expect_equal, image_script, main, make_busybox, require_network_namespaces,
                 require_programs, run, say, wait_for, write_kubeconfig)

VERSION = "1.36"
# One family for all: of nodes, pods and Services. Loopback is of both, as on any machine.
FAMILY = os.environ.get("CROFT_ONE_NODE_FAMILY", "IPv4")
NODES, PODS, SERVICES, EVERYWHERE = {
    "IPv4": ("10.200.0.0/24", "10.244.0.0/16", "10.96.0.0/24", "0.0.0.0"),
    "IPv6": ("fd00:200::/64", "fd00:244::/48", "fd00:96::/112", "::"),
}[FAMILY]
NODES, FIRST_SERVICE = ipaddress.ip_network(NODES), ipaddress.ip_network(SERVICES)[1]
CONTROL, FORWARDING = str(NODES[1]), {"IPv4": "ipv4/ip_forward", "IPv6": "ipv6/conf/all/forwarding"}[FAMILY]
AT_ONCE = ["nodad"] if FAMILY == "IPv6" else []
IMAGE, BUSYBOX, PAUSE = "onenode.local/croft:1", "onenode.local/busybox:1", "onenode.local/pause:1"
APPLETS = ["sh", "ip", "ping", "cat", "echo", "printf", "sleep", "httpd", "nc", "ls", "test"]
SOCKET = "/run/containerd/containerd.sock"
SHARES, DAEMONS = pathlib.Path("/sys/fs/cgroup/cpu"), "daemons"  # where control groups are of version 1
TREE = pathlib.Path(__file__).resolve().parent.parent.parent


def in_url(address):
    return f"[{address}]" if ":" in address else address


# ---------------------------------------------------------------- outside


def in_cluster_namespaces(script, bin_dir, limit):
    """Runs `script BIN_DIR DIRECTORY` as the first process of the cluster's namespaces. Skips where that can't be."""
    require_programs("containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "iptables", "nsenter", "unshare", "etcd",
                     "openssl", "busybox", "bridge", "mount")
    require_network_namespaces()
    programs = [program(VERSION), program(VERSION, "kube-node")]
    with World("onenode", bin_dir) as world:
        world.stack.callback(remove_cgroups)
        child = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", "--mount-proc", "--propagation",
             "private", "sh", "-c", '"$@" & wait $!', "sh", sys.executable, "-B", script, str(world.bin),
             str(world.directory), *map(str, programs)],
            stdin=subprocess.DEVNULL)
        world.stack.callback(child.wait)
        world.stack.callback(child.kill)
        expect_equal(child.wait(timeout=limit), 0, "exit code of the test inside its namespaces")


def remove_cgroups():
    """A runtime that was killed leaves its control groups; those that still have processes stay."""
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        if "k8s.io" not in names:
            continue
        for folder, _, _ in os.walk(os.path.join(top, "k8s.io"), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def group_of(*names):
    """What takes the processes of a group that shares the processors with others; remove_cgroups() takes it away."""
    group = SHARES.joinpath("k8s.io", *names)
    group.mkdir(parents=True, exist_ok=True)
    return group / "cgroup.procs"


def play(script, chapters_of, limit):
    """`script BIN_DIR`: what a story tells in the namespaces of a cluster of its own, where it calls itself. `chapters_of` a cluster that began:
    what is called, one after the other. `limit`: seconds."""
    if len(sys.argv) == 2:
        main(lambda: in_cluster_namespaces(script, sys.argv[1], limit), 3500)
    else:
        main(lambda: inside(*sys.argv[1:], chapters_of), limit - 20)


# ---------------------------------------------------------------- inside


def inside(bin_dir, directory, apiserver, node_program, chapters_of):
    cluster = Cluster(bin_dir, directory, apiserver, node_program)
    try:
        cluster.start()
        for chapter in chapters_of(cluster):
            begin = time.monotonic()
            chapter()
            say(f"== {chapter.__name__}: {time.monotonic() - begin:.1f} s")
    except BaseException:
        cluster.told()
        raise


class Cluster:
    def __init__(self, bin_dir, directory, apiserver, node_program):
        self.bin, self.place = pathlib.Path(bin_dir), pathlib.Path(directory)
        self.programs = self.place / "programs"
        self.nodes = {}
        self.processes = []
        run("mount", "-t", "tmpfs", "-o", "mode=755,size=6g", "croft-e2e", self.place)
        self.programs.mkdir()
        self.logs = self.place / "logs"
        self.logs.mkdir()
        (self.programs / "kube-apiserver").symlink_to(apiserver)
        for name in ("kubelet", "kubectl", "kube-controller-manager", "kube-scheduler", "kube-proxy", "helm"):
            (self.programs / name).symlink_to(node_program)
        os.environ["PATH"] = f"{self.programs}:{os.environ['PATH']}:/usr/sbin:/sbin"
        run("hostname", "control")
        self._make_network()
        self._make_certificates()
        self._make_images()

    def _make_network(self):
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "lan", "address", "02:00:00:00:00:01", "type", "bridge")  # else a new port may change its MAC, which others have in their ARP
        run("ip", "address", "add", f"{CONTROL}/{NODES.prefixlen}", "dev", "lan", *AT_ONCE)
        run("ip", "link", "set", "lan", "up")
        pathlib.Path("/proc/sys/net", FORWARDING).write_text("1")

    def _make_certificates(self):
        self.pki = self.place / "pki"
        self.pki.mkdir()
        self.ca = Authority(self.pki, "cluster")
        self.server = self.ca.sign("kube-apiserver", f"IP:127.0.0.1,IP:{FIRST_SERVICE},IP:{CONTROL},DNS:kubernetes,"
                                                     "DNS:kubernetes.default,DNS:kubernetes.default.svc")
        self.account_key = self.pki / "accounts.key"
        run("openssl", "genrsa", "-out", self.account_key, "2048")
        users = {"admin": "admin/system:masters", "kcm": "system:kube-controller-manager/",
                 "scheduler": "system:kube-scheduler/", "proxy": "system:kube-proxy/"}
        self.tokens = {name: f"token-of-{name}" for name in users}
        (self.pki / "tokens.csv").write_text("".join(
            f'{self.tokens[name]},{who.split("/")[0]},{name},"{who.split("/")[1]}"\n' for name, who in users.items()))
        for name, token in self.tokens.items():
            self.write_kubeconfig(name, {"token": token})
        os.environ["KUBECONFIG"] = str(self.pki / "admin.conf")

    def write_kubeconfig(self, name, user):
        return write_kubeconfig(self.pki / f"{name}.conf", f"https://{in_url(CONTROL)}:6443", self.ca.certificate, user)

    def _make_images(self):
        self.images = self.place / "images"
        self.images.mkdir()
        image = image_script()
        root = self.place / "busybox"
        make_busybox(root, APPLETS)
        layer = image.layer_of(root)
        image.write_archive(self.images / "busybox.tar", BUSYBOX, layer, {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]})
        image.write_archive(self.images / "pause.tar", PAUSE, layer,
                            {"Env": ["PATH=/bin"], "Entrypoint": ["/bin/sleep", "2000000000"]})
        image.croft_archive(self.images / "croft.tar", IMAGE, self.bin, self.place / "croft-image")

    def daemon(self, name, *arguments, log=None):
        with open(self.logs / f"{log or name}.log", "ab") as out:
            process = subprocess.Popen([name, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.processes.append(process)
        return process

    def start(self):
        """The control plane."""
        data = self.place / "etcd"
        data.mkdir(mode=0o700)
        client = "http://127.0.0.1:2379"
        self.daemon("etcd", "--data-dir", data, "--listen-client-urls", client, "--advertise-client-urls", client,
                    "--experimental-watch-progress-notify-interval=5s",  # as kubeadm has it
                    "--listen-peer-urls", "http://127.0.0.1:2380", "--unsafe-no-fsync=true" if self._etcd_may_skip() else
                    "--name=default")
        self.start_apiserver()
        self.daemon("kube-controller-manager", "--kubeconfig", self.pki / "kcm.conf", "--bind-address", "127.0.0.1",
                    "--use-service-account-credentials", "--service-account-private-key-file", self.account_key,
                    "--root-ca-file", self.ca.certificate, "--leader-elect=false", "--node-monitor-period=2s")
        self.daemon("kube-scheduler", "--kubeconfig", self.pki / "scheduler.conf", "--bind-address", "127.0.0.1",
                    "--leader-elect=false")
        wait_for(lambda: self.kubectl("get", "serviceaccount", "default", check=False).returncode == 0,
                 "the controller manager works", 60)

    @staticmethod
    def _etcd_may_skip():
        return "unsafe-no-fsync" in subprocess.run(["etcd", "--help"], capture_output=True, text=True, check=False).stderr

    def start_apiserver(self):
        self.apiserver = self.daemon(
            "kube-apiserver", "--etcd-servers", "http://127.0.0.1:2379", "--bind-address", EVERYWHERE, "--secure-port", "6443",
            "--advertise-address", CONTROL, "--tls-cert-file", self.server[0], "--tls-private-key-file", self.server[1],
            "--client-ca-file", self.ca.certificate, "--token-auth-file", self.pki / "tokens.csv",
            "--kubelet-preferred-address-types", "InternalIP", "--kubelet-certificate-authority", self.ca.certificate, "--kubelet-client-certificate", self._kubelet_client()[0],
            "--kubelet-client-key", self._kubelet_client()[1], "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", self.account_key, "--service-account-signing-key-file", self.account_key,
            "--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
            "--service-cluster-ip-range", SERVICES, "--allow-privileged=true", "--cert-dir", self.pki)
        wait_for(lambda: self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0, "kube-apiserver is ready", 90)

    def stop_apiserver(self):
        self.apiserver.send_signal(signal.SIGKILL)
        self.apiserver.wait()

    def _kubelet_client(self):
        if not hasattr(self, "_client"):
            self._client = client_certificate(self.ca, "apiserver-client", "/O=system:masters/CN=apiserver-kubelet-client")
        return self._client

    def kubectl(self, *arguments, check=True, given=None, timeout=60):
        done = subprocess.run(["kubectl", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=timeout,
                              input=given)
        if check and done.returncode != 0:
            raise Failure(f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done

    def get(self, *what):
        """An object or a list, decoded."""
        return json.loads(self.kubectl("get", *what, "-o", "json").stdout)

    def apply(self, text):
        self.kubectl("apply", "-f", "-", given=text if isinstance(text, str) else json.dumps(text))

    def pods(self, *what):
        return self.get("pods", *what)["items"]

    def node(self, name):
        if name not in self.nodes:
            self.nodes[name] = Node(self, name, str(NODES[11 + len(self.nodes)]))
        return self.nodes[name]

    def told(self):
        """The ends of the logs, for a test that failed."""
        for node in self.nodes.values():
            for log in sorted((node.disk / "var" / "up" / "log" / "pods").glob("croft-*/*/*.log")):
                lines = log.read_text(errors="replace").splitlines()
                say(f"--- {log.parent.parent.name} {log.name}\n" + "\n".join(line[36:400] for line in lines[-6:]))
        for log in sorted(self.logs.glob("*.log")):
            lines = [line for line in log.read_text(errors="replace").splitlines()
                     if 'level=info' not in line and not line.startswith("I")]
            say(f"--- {log.name}\n" + "\n".join(line[:400] for line in lines[-6:]))


def client_certificate(ca, name, subject):
    """(certificate, key) of a client, by the subject that the API server reads."""
    certificate, key, request = (ca.folder / f"{name}.{kind}" for kind in ("crt", "key", "csr"))
    extensions = ca.folder / f"{name}.ext"
    extensions.write_text("extendedKeyUsage=clientAuth,serverAuth\n")
    run("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", key, "-out", request)
    run("openssl", "x509", "-req", "-in", request, "-CA", ca.certificate, "-CAkey", ca.key, "-CAcreateserial", "-days", "2",
        "-extfile", extensions, "-out", certificate)
    return certificate, key


# ---------------------------------------------------------------- a node


class Node:
    """A machine of the cluster. It runs between start() and kill(); its disks stay."""

    def __init__(self, cluster, name, address):
        self.cluster, self.name, self.address = cluster, name, address
        self.disk = cluster.place / name
        self.disk.mkdir()
        self.process, self.pid = None, None
        server = cluster.ca.sign(name, f"IP:{address},DNS:{name}")
        client = client_certificate(cluster.ca, f"{name}-client", f"/O=system:nodes/CN=system:node:{name}")
        self.kubeconfig = cluster.write_kubeconfig(
            name, {"client-certificate": str(client[0]), "client-key": str(client[1])})
        (self.disk / "containerd.toml").write_text(f"""version = 2
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
""")
        (self.disk / "resolv.conf").write_text(f"nameserver {CONTROL}\n")
        (self.disk / "kubelet.json").write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": address,
            "healthzBindAddress": "127.0.0.1", "tlsCertFile": str(server[0]), "tlsPrivateKeyFile": str(server[1]),
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(cluster.ca.certificate)}},
            "authorization": {"mode": "Webhook"}, "containerRuntimeEndpoint": f"unix://{SOCKET}", "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False, "enforceNodeAllocatable": [], "failCgroupV1": False, "failSwapOn": False,
            "localStorageCapacityIsolation": True, "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                             "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
            "resolvConf": str(self.disk / "resolv.conf"), "oomScoreAdj": 0, "registerNode": True, "syncFrequency": "10s",
            "nodeStatusUpdateFrequency": "2s", "shutdownGracePeriod": "0s"}))
        (self.disk / "proxy.json").write_text(json.dumps({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables", "bindAddress": EVERYWHERE,
            "clientConnection": {"kubeconfig": str(cluster.pki / "proxy.conf")}, "clusterCIDR": PODS,
            "hostnameOverride": name, "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
            # What it would write into the kernel's settings, which are the host's.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}))

    def like_a_machine(self, most_pods):
        """Before start(): the node's daemons and its pods share the processors as on a node with systemd, pods by their requests.
        Without it each thread of a daemon has as much as all pods together, and an agent in a pod waits while containers start."""
        config = json.loads((self.disk / "kubelet.json").read_text()) | {"maxPods": most_pods}
        if SHARES.is_dir():
            config |= {"cgroupsPerQOS": True, "cgroupRoot": f"/k8s.io/{self.name}"}
            for controller in SHARES.parent.iterdir():
                (controller / "k8s.io" / self.name).mkdir(parents=True, exist_ok=True)
            group_of(self.name, DAEMONS)
            # Beside this group each thread of the machine counts 1024.
            (SHARES / "k8s.io" / "cpu.shares").write_text("8192")
            for process in self.cluster.processes:
                group_of("control").write_text(str(process.pid))
        (self.disk / "kubelet.json").write_text(json.dumps(config))

    def start(self):
        """Powers it on; returns as soon as its containerd answers and its kubelet has been started."""
        arguments = [sys.executable, "-B", __file__, "--node", self.name, str(self.disk), str(self.cluster.logs)]
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", "--mount-proc", "--propagation",
             "private", "sh", "-c", '"$@" & wait $!', "sh", *arguments], stdin=subprocess.PIPE)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.pid = int(wait_for(lambda: children.read_text().split(), f"{self.name} has begun")[0])
        side = f"lan-{self.name}"
        run("ip", "link", "add", side, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid))
        run("ip", "link", "set", side, "master", "lan", "up")
        for command in (["link", "set", "lo", "up"], ["address", "add", f"{self.address}/{NODES.prefixlen}", "dev", "eth0", *AT_ONCE],
                        ["link", "set", "eth0", "up"], ["route", "add", "default", "via", CONTROL]):
            run("nsenter", "-t", str(self.pid), "-n", "ip", *command)
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()
        wait_for((self.disk / "up").exists, f"{self.name} is up", 60)

    def kill(self):
        """The power goes: every process of the node, its /run and its network with them. Its disks stay."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
        (self.disk / "up").unlink()
        run("ip", "link", "delete", f"lan-{self.name}", check=False)
        remove_cgroups()

    def run(self, *command, check=True, given=None, timeout=60):
        """A command on the node."""
        done = subprocess.run(["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-u", *map(str, command)], check=False,
                              capture_output=True, text=True, timeout=timeout, input=given)
        if check and done.returncode != 0:
            raise Failure(f"{self.name}: {' '.join(map(str, command))}: {done.stdout.strip()} {done.stderr.strip()}")
        return done

    def read(self, path):
        return self.run("cat", path).stdout

    def exists(self, path):
        return self.run("test", "-e", path, check=False).returncode == 0

    def ctr(self, *arguments):
        return self.run("ctr", "-a", SOCKET, "-n", "k8s.io", *arguments)

    def import_images(self, *names):
        for name in names:
            self.ctr("images", "import", self.cluster.images / f"{name}.tar")

    def conditions(self):
        status = self.cluster.get("node", self.name)["status"]
        return {one["type"]: one for one in status.get("conditions", [])}

    def is_ready(self):
        return self.conditions().get("Ready", {}).get("status") == "True"

    def taints(self):
        return {taint["key"] for taint in self.cluster.get("node", self.name)["spec"].get("taints", [])}


def be_node(name, disk, logs):
    """The first process of a node but one: its mounts, its daemons."""
    sys.stdin.readline()  # the network is there
    kubelet = json.loads((disk / "kubelet.json").read_text())
    if "cgroupRoot" in kubelet:
        group_of(name, DAEMONS).write_text("0")
    run("hostname", name)
    # Pods' volumes want mounts that are shared: they are, within this namespace.
    run("mount", "--make-rshared", "/")
    for folder in ("etc", "opt", "var"):
        for part in ("up", "work"):
            (disk / folder / part).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "overlay", "croft-e2e", "-o",
            f"lowerdir=/{folder},upperdir={disk}/{folder}/up,workdir={disk}/{folder}/work", f"/{folder}")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "croft-e2e", "/run")
    for folder in ("/run/lock", "/run/netns", "/var/log/pods"):
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    is_new = not (disk / "installed").exists()
    if is_new:
        for folder in ("/etc/cni", "/opt/cni", "/var/lib/cni", "/var/lib/croft", "/var/log/croft"):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in ("/etc/cni/net.d", "/opt/cni/bin", "/var/lib/cni"):
            os.makedirs(folder)
        for plugin in ("bridge", "ptp", "loopback", "portmap"):
            shutil.copy(PLUGINS / plugin, f"/opt/cni/bin/{plugin}")
        others = os.environ.get("CROFT_OTHERS_PLUGINS")
        for plugin in os.listdir(others) if others else []:
            shutil.copy(os.path.join(others, plugin), f"/opt/cni/bin/{plugin}")
        (disk / "installed").touch()
    for folder in ("containerd", "kubelet"):
        for path in (disk / folder, pathlib.Path("/var/lib") / folder):
            path.mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", disk / folder, f"/var/lib/{folder}")
    # kubelet writes these where they differ; they are the host's, so it is shown what it wants.
    for setting, value in (("vm/overcommit_memory", 1), ("kernel/panic", 10), ("kernel/panic_on_oops", 1)):
        shown = disk / setting.replace("/", "-")
        shown.write_text(f"{value}\n")
        run("mount", "--bind", shown, f"/proc/sys/{setting}")
    pathlib.Path("/proc/sys/net", FORWARDING).write_text("1")
    pathlib.Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n{CONTROL} control\n")

    def daemon(program_name, *arguments):
        with open(logs / f"{name}-{program_name}.log", "ab") as out:
            return subprocess.Popen([program_name, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    daemon("containerd", "-c", disk / "containerd.toml")
    wait_for(lambda: subprocess.run(["ctr", "-a", SOCKET, "version"], capture_output=True, check=False).returncode == 0,
             "containerd answers", 30)
    if is_new:
        for image in ("pause", "busybox"):
            run("ctr", "-a", SOCKET, "-n", "k8s.io", "images", "import", disk.parent / "images" / f"{image}.tar")
    daemon("kube-proxy", "--config", disk / "proxy.json")
    while True:  # started again where it ends, as systemd does: it gives up when a mount goes while it looks at them
        process = daemon("kubelet", "--config", disk / "kubelet.json", "--kubeconfig", disk.parent / "pki" / f"{name}.conf",
                         "--hostname-override", name, "--node-ip", kubelet["address"], "--v=2")
        (disk / "up").touch()
        process.wait()
        time.sleep(1)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--node":
        be_node(sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]))
    else:
        sys.exit(__doc__)
