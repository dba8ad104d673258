"""A real runtime: Debian's containerd runs containers whose addresses come from croft-ipam through `bridge`.

`ctr run --cni` reads /etc/cni/net.d, /opt/cni/bin and /var/lib/cni and nothing else, so all runs in mount, PID and network
namespaces of its own, where these places are ours; they end with the first process.

usage: containerd.py BIN_DIR
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from lib import (PLUGINS, Daemon, World, expect, expect_equal, image_script, main, make_busybox, own_environment,
                 require_network_namespaces, require_programs, run, say, wait_for)

IMAGE = "croft.test/busybox:1"
NETWORK = "containers"
# Two addresses a block, so that three containers need two.
POOL = {"name": "containers", "cidr": "10.89.0.0/26", "blockSize": 31, "cooldownSeconds": 30}
POOL6 = {"name": "containers6", "cidr": "fd00:89::/120", "blockSize": 127, "cooldownSeconds": 30}
GATEWAY, GATEWAY6 = "10.89.0.1", "fd00:89::1"
APPLETS = ["sh", "ip", "ping", "cat", "echo", "sleep"]
# What a container does: prove that its network works, say so, and stay until it is told to end.
WORKLOAD = f"""
ip -o addr show dev eth0
ping -c 1 -W 5 {GATEWAY} >/dev/null && echo pinged gateway
for n in 1 2 3 4 5; do ping -6 -c 1 -W 2 {GATEWAY6} >/dev/null && echo pinged gateway6 && break; sleep 1; done
echo ready
read line
for address in $line; do ping -c 1 -W 5 $address >/dev/null && echo pinged $address; done
echo done
read line
"""


# ---------------------------------------------------------------- the image


def oci_image(path):
    """Writes an OCI archive of one layer with busybox and its names."""
    root = path.with_name(path.name + ".root")
    make_busybox(root, APPLETS)
    image_script().write_archive(path, IMAGE, image_script().layer_of(root), {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]})


# ---------------------------------------------------------------- inside


def prepare_mounts(directory, bin_dir, configuration):
    """Puts our own /run, /opt, /var/lib and /etc in place; seen by this mount namespace only."""
    etc = directory / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
    plugins = pathlib.Path("/opt/cni/bin")
    run("mount", "--make-rprivate", "/")
    for place in ("/run", "/opt", "/var/lib"):
        run("mount", "-t", "tmpfs", "-o", "mode=755", "croft-e2e", place)
    run("mount", "--bind", etc, "/etc")
    plugins.mkdir(parents=True)
    for source in (PLUGINS / "bridge", bin_dir / "croft-ipam"):
        (plugins / source.name).symlink_to(source)
    networks = pathlib.Path("/etc/cni/net.d")
    networks.mkdir(parents=True, exist_ok=True)
    for old in networks.iterdir():
        old.unlink()
    (networks / "10-croft.conf").write_text(json.dumps(configuration), encoding="utf-8")


class Containerd:
    def __init__(self, world, namespace):
        directory = self.directory = world.directory
        self.namespace = namespace
        self.socket = directory / "containerd.sock"
        config = directory / "containerd.toml"
        config.write_text(
            f'version = 2\nroot = "{directory}/root"\nstate = "/run/croft-containerd"\n'
            'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]\n'
            f'[grpc]\n  address = "{self.socket}"\n[ttrpc]\n  address = "{self.socket}.ttrpc"\n', encoding="utf-8")
        self.process = Daemon(world, "containerd", "containerd", "--config", config)
        wait_for(self.answers, f"containerd to answer; its log:\n{self.process.log()}", 30)

    def answers(self):
        expect(self.process.poll() is None, f"containerd ended:\n{self.process.log()}")
        return self.ctr("version", check=False).returncode == 0

    def command(self, *arguments):
        return ["ctr", "--address", str(self.socket), "--namespace", self.namespace, *arguments]

    def ctr(self, *arguments, check=True):
        return run(*self.command(*arguments), check=check)


class Container:
    """`ctr run --cni`, talking to the workload over standard input and output."""

    def __init__(self, containerd, name):
        self.full_id = f"{containerd.namespace}-{name}"  # what ctr gives CNI as container ID
        self.errors = containerd.directory / f"{name}.stderr"
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                containerd.command("run", "--rm", "--cni", "--snapshotter", "native", IMAGE, name, "/bin/sh", "-c",
                                   WORKLOAD),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.lines = self.read_until("ready")

    def read_until(self, word):
        lines = []
        while True:
            line = self.process.stdout.readline()
            expect(line, f"container {self.full_id} ended early after {lines}: "
                   f"{self.errors.read_text(encoding='utf-8')}")
            lines.append(line.rstrip("\n"))
            if lines[-1] == word:
                return lines

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def addresses(self):
        """The global addresses that the container itself sees, without length."""
        return [field.split("/")[0] for line in self.lines if " scope global" in line
                for field in line.split() if "/" in field and field[0].isalnum() and ("." in field or ":" in field)]

    def end(self):
        self.tell("")
        expect_equal(self.process.wait(timeout=30), 0, f"exit code of ctr run ({self.errors.read_text()})")


def inside(bin_dir, directory, namespace):
    """The test proper, run by `outside` in namespaces of its own."""
    class Inside(World):
        def __enter__(self):
            self.directory = directory
            return self

    os.environ.update(own_environment(directory))  # ctr hands it on to the plugins
    world = Inside("inside", bin_dir)
    with world:
        store = world.store()
        prepare_mounts(directory, world.bin, {
            "cniVersion": "1.0.0", "name": NETWORK, "type": "bridge", "bridge": "croft0", "isGateway": True,
            "isDefaultGateway": True,
            "ipam": {"type": "croft-ipam", "store": store, "log_file_path": str(directory / "ipam.log"),
                     "nodename": "node-e2e", "pools": [POOL, POOL6], "assign_ipv4": "true", "assign_ipv6": "true"}})
        image = directory / "image.tar"
        oci_image(image)
        containerd = Containerd(world, namespace)
        try:
            containerd.ctr("image", "import", "--snapshotter", "native", str(image))
            containers = [Container(containerd, name) for name in ("one", "two", "three")]
            for container in containers:
                addresses = container.addresses()
                say(f"  {container.full_id}: {' '.join(addresses)}")
                expect_equal(len(addresses), 2, f"addresses seen in the container ({container.lines})")
                expect("pinged gateway" in container.lines, f"no answer from {GATEWAY}: {container.lines}")
                expect("pinged gateway6" in container.lines, f"no answer from {GATEWAY6}: {container.lines}")
                rows = {a: r for a, r in world.held(store).items() if r["containerId"] == container.full_id}
                expect_equal(sorted(rows), sorted(addresses), f"register of {container.full_id}")
                expect_equal({(r["network"], r["ifname"], r["node"]) for r in rows.values()},
                             {(NETWORK, "eth0", "node-e2e")}, f"owner of {container.full_id}")
            blocks = {r["block"] for r in world.held(store).values() if "." in r["block"]}
            expect(len(blocks) >= 2, f"three containers should need two IPv4 blocks, got {blocks}")
            # The last container, in another block than the first, reaches the others.
            others = [a for c in containers[:-1] for a in c.addresses()]
            containers[-1].tell(" ".join(others))
            said = containers[-1].read_until("done")
            expect_equal([line for line in said if line.startswith("pinged")], [f"pinged {a}" for a in others],
                         "answers to the last container")
            for container in containers[:-1]:
                container.tell("")
                container.read_until("done")
            for container in containers:
                container.end()
                left = [a for a, r in world.held(store).items() if r["containerId"] == container.full_id]
                expect_equal(left, [], f"addresses of {container.full_id} after its end")
            expect_equal(world.held(store), {}, "addresses held after all")
        finally:
            containerd.process.terminate()


# ---------------------------------------------------------------- outside


def remove_cgroups(namespace):
    """A runtime that was killed leaves its control groups; their name is the containerd namespace's."""
    tops = [os.path.join(folder, namespace) for folder, names, _ in os.walk("/sys/fs/cgroup") if namespace in names]

    def removed(group):
        with contextlib.suppress(OSError):  # busy until the last process has ended
            os.rmdir(group)
        return not os.path.exists(group)

    for top in tops:
        for group in [folder for folder, _, _ in os.walk(top, topdown=False)]:
            wait_for(lambda group=group: removed(group), f"removing {group}")


def outside(bin_dir):
    require_programs("containerd", "ctr", "runc", "bridge", "ip", "nsenter", "unshare", "busybox")
    require_network_namespaces()
    with World("containerd", bin_dir) as world:
        node = world.netns("node")
        world.stack.callback(remove_cgroups, world.prefix)
        child = subprocess.Popen(
            ["nsenter", f"--net={node.path}", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             sys.executable, __file__, str(world.bin), str(world.directory), world.prefix], stdin=subprocess.DEVNULL)
        world.stack.callback(child.wait)
        world.stack.callback(child.kill)
        try:
            expect_equal(child.wait(timeout=240), 0, "exit code of the test inside its namespaces")
        except BaseException:
            for log in sorted(world.directory.glob("*.log")):
                lines = [line for line in log.read_text(errors="replace").splitlines() if "level=info" not in line]
                say(f"--- {log.name}\n" + "\n".join(lines[-20:]))
            raise


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(lambda: outside(sys.argv[1]))
    elif len(sys.argv) == 4:
        main(lambda: inside(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]))
    else:
        sys.exit(__doc__)
