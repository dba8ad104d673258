#!/usr/bin/env python3
"""What moves a node: `croft migrate host-local`, `croft migrate calico` and `croft migrate tombstones`, on real directories and
real stores. Each has a plan that changes nothing, is killed again and again and goes on, and does nothing when called once
more; the way back is tried; what is damaged, or somebody else's, is named and stays.

usage: migrate_node.py BIN_DIR [host-local] [bridge] [calico] [tombstones]
"""

import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from etcd import Node
from etcd_lib import Etcd
from host_local_lib import contents, holder
from lib import Plugin, World, expect, expect_equal, main, own_environment, run, say

LATER = 11
REFUSED = 5


def killed_and_resumed(world, command, first=0.002, step=0.004, turns=40, look=None):
    """Runs a command, killed later and later until it ends by itself; how often it was killed. `look` is called after each
    kill."""
    kills = 0
    for turn in range(turns):
        process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=own_environment(world.directory))
        try:
            out, err = process.communicate(timeout=first + step * turn)
            return kills, process.returncode, out + err
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            if look:
                look()
    done = run(*command, check=False, env=own_environment(world.directory))
    return kills, done.returncode, done.stdout + done.stderr


class Directory:
    """A network's directory of host-local, with pods, and the pool into which it moves."""

    NETWORK, NODE, RANGE = "cbr0", "node-3", "10.244.3.0/24"

    def __init__(self, world):
        self.world, self.store = world, world.store()
        self.networks = world.directory / "networks"
        self.path = self.networks / self.NETWORK
        self.cache = world.directory / "cache"
        (self.cache / "results").mkdir(parents=True)
        croft = [world.bin / "croft", "--store", self.store]
        run(*croft, "pool", "create", "a", "--cidr", "10.244.0.0/16", "--block-size", "24", "--cooldown-seconds", "0", "--gateway", "none")
        run(*croft, "config", "set", "--strict-affinity", "true")
        run(*croft, "affinity", "claim", self.RANGE, "--node", self.NODE, "--force")
        run(*croft, "affinity", "claim", "10.244.1.0/24", "--node", "node-1", "--force")
        config = {"cniVersion": "1.0.0", "name": self.NETWORK, "type": "bridge",
                  "ipam": {"type": "host-local", "dataDir": str(self.networks), "ranges": [[{"subnet": self.RANGE}]]}}
        self.pods = {}
        for number in range(30):
            env = {**own_environment(world.directory), "CNI_COMMAND": "ADD", "CNI_CONTAINERID": f"pod{number}", "CNI_NETNS": "/none",
                   "CNI_IFNAME": "eth0", "CNI_PATH": str(world.bin)}
            answer = json.loads(run(world.bin / "host-local", stdin=json.dumps(config), env=env).stdout)
            self.pods[f"pod{number}"] = {answer["ips"][0]["address"].split("/")[0]}
        # A container with a second address, by a file that somebody made.
        (self.path / "10.244.3.210").write_text(holder("pod0"))
        self.pods["pod0"].add("10.244.3.210")

    def command(self, *more):
        return [self.world.bin / "croft", "--store", self.store, "-o", "json", "migrate", "host-local", "--dir", self.path, "--pool", "a",
                "--pod-cidr", self.RANGE, "--node", self.NODE, "--cni-cache", self.cache, *more]

    def migrate(self, *more, code=0):
        done = run(*self.command(*more), check=False)
        expect_equal(done.returncode, code, f"migrate host-local {more}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else done.stderr

    def files(self):
        """Reservations, by address."""
        return {name: text for name, text in contents(self.path).items() if name.startswith("10.244.")}

    def all(self):
        """Everything in the directory, whatever it is."""
        return {entry.name: (os.readlink(entry.path) if entry.is_symlink() else open(entry.path, "rb").read() if entry.is_file() else "dir")
                for entry in os.scandir(self.path) if entry.name not in ("lock",)}

    def held(self):
        return {address: row["containerId"] for address, row in self.world.held(self.store).items() if row["node"] == self.NODE}

    def check_none_is_lost(self):
        """Of each pod every address is in the directory or in the register, and nobody else's there."""
        files, held = self.files(), self.held()
        for pod, addresses in self.pods.items():
            for address in addresses:
                there = files.get(address) == holder(pod) or held.get(address) == pod
                expect(there, f"{address} of {pod}: {files.get(address)!r} in the directory, {held.get(address)!r} in the register")


@contextlib.contextmanager
def others_come_and_go(directory):
    """Pods of another node on the same store; no address of the directory's is given to them."""
    stop, faults, count = threading.Event(), [], [0]
    node = Node(directory.world, directory.store, "node-1")
    node.network = directory.NETWORK
    mine = {address for addresses in directory.pods.values() for address in addresses}

    def churn(which):
        while not stop.is_set():
            code, answer, err = node.finish(node.start("ADD", f"other-{which}"))
            count[0] += 1
            if code != 0:
                faults.append((answer, err))
            elif answer["ips"][0]["address"].split("/")[0] in mine:
                faults.append(answer)
            code, answer, err = node.finish(node.start("DEL", f"other-{which}"))
            if code != 0:
                faults.append((answer, err))

    threads = [threading.Thread(target=churn, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    expect_equal(faults[:3], [], "calls of another node")
    say(f"{count[0]} ADDs of another node meanwhile")


def host_local(world):
    one = Directory(world)
    # What is no reservation stays, whatever it is; what is damaged is named.
    strange = {"10.244.3.220": b"oldpod", "10.244.3.221": b"", "notes.txt": b"mine", "10.244.3.999": b"x\r\neth0",
               "10.244.3.222": b"\xff\xfe\x00\r\neth0", "10.99.0.7": b"elsewhere\r\neth0"}
    for name, content in strange.items():
        (one.path / name).write_bytes(content)
    (one.path / "10.244.3.223").symlink_to("/etc/hostname")
    (one.path / "10.244.3.224").mkdir()
    before = one.all()

    planned = one.migrate(code=3)
    expect_equal((one.all(), one.held()), (before, {}), "a plan changes nothing")
    said = {tuple(row["addresses"]): row for row in planned}
    for address in ("10.244.3.220", "10.244.3.221", "10.244.3.222", "10.244.3.224", "10.99.0.7"):
        expect_equal(said[(address,)]["outcome"], "left", f"{address}: {said[(address,)]}")
        expect(said[(address,)]["reason"], f"{address} has a reason")
        say(f"left: {address}: {said[(address,)]['reason']}")
    both = next(row for row in planned if row["containerId"] == "pod0")
    expect_equal((set(both["addresses"]), both["outcome"]), (one.pods["pod0"], "moved"), "a container with two addresses")
    one.migrate("--apply", code=REFUSED)
    expect_equal((one.all(), one.held()), (before, {}), "a refusal changes nothing")
    unnamed = [part for part in one.command("--apply") if part not in ("--pod-cidr", one.RANGE)]
    expect_equal(run(*unnamed, check=False).returncode, REFUSED, "whose gateway it is nobody knows without the range")

    # Somebody in the register has an address for another container: the holder is named, and nothing of it moves.
    for name in ("10.244.3.220", "10.244.3.221", "10.244.3.222", "10.244.3.223", "10.244.3.224"):
        path = one.path / name
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    node = Node(world, one.store, one.NODE)
    node.network = one.NETWORK
    (clash,) = one.pods["pod7"]
    node.ipam["ips"] = [clash]
    node.add("somebody")
    rows = {row["containerId"]: row for row in one.migrate(code=3)}
    expect_equal((rows["pod7"]["outcome"], rows["pod7"]["atRisk"]), ("clashes", True), f"{rows['pod7']}")
    expect("somebody" in rows["pod7"]["reason"], f"who has it: {rows['pod7']}")
    say(f"clash: {rows['pod7']['reason']}")
    node.delete("somebody")

    with others_come_and_go(one):
        kills, code, text = killed_and_resumed(world, one.command("--apply"), look=one.check_none_is_lost)
    expect_equal(code, 0, f"at last: {text}")
    one.check_none_is_lost()
    expect_equal(one.held(), {a: pod for pod, addresses in one.pods.items() for a in addresses}, "all is in the register")
    left = one.all()
    expect_equal({name: left.get(name) for name in ("notes.txt", "10.244.3.999", "10.99.0.7")},
                 {name: strange[name] for name in ("notes.txt", "10.244.3.999", "10.99.0.7")}, "what is somebody else's stays")
    say(f"{len(one.pods)} pods moved, killed {kills} times")
    rows = one.migrate("--apply")
    expect_equal([row for row in rows if row["containerId"].startswith("pod")], [], "once more: nothing to move")
    expect_equal((one.all(), len(one.held())), (left, 31), "once more: nothing changed")
    checked = run(world.bin / "croft", "--store", one.store, "check", check=False)
    expect_equal(checked.returncode, 0, f"croft check: {checked.stdout}")
    # Croft's plugin finds them, and gives none of them away.
    del node.ipam["ips"]
    expect_equal({address.split("/")[0] for address in node.add("pod3")}, one.pods["pod3"], "the pod asks again")
    (fresh,) = node.add("fresh")
    expect(fresh.split("/")[0] not in {a for addresses in one.pods.values() for a in addresses}, f"{fresh} is somebody's")
    # Nor what host-local gave to nobody: the gateway is the node's own bridge.
    expect(fresh.split("/")[0] not in ("10.244.3.0", "10.244.3.1", "10.244.3.255"), f"{fresh} is nobody's")
    states = {address: json.loads(run(world.bin / "croft", "--store", one.store, "-o", "json", "ip", "show", address).stdout)[0]["state"]
              for address in ("10.244.3.0", "10.244.3.1", "10.244.3.255", "10.244.1.1")}
    expect_equal(states, {"10.244.3.0": "reserved", "10.244.3.1": "reserved", "10.244.3.255": "reserved", "10.244.1.1": "free"}, "reserved")
    node.delete("fresh")

    # Back, killed too.
    run(world.bin / "croft", "--store", one.store, "pool", "disable", "a")
    back = [world.bin / "croft", "--store", one.store, "-o", "json", "host-local", "import", "--back", "--dir", one.path, "--pool", "a", "--node",
            one.NODE]
    kills, code, text = killed_and_resumed(world, back, look=one.check_none_is_lost)
    expect_equal(code, 0, f"back: {text}")
    one.check_none_is_lost()
    expect_equal(one.held(), {}, "nothing is held in the pool")
    expect_equal({a: text for a, text in one.files().items() if not a.endswith(".999")},
                 {a: holder(pod) for pod, addresses in one.pods.items() for a in addresses}, "the files are there again")
    say(f"and back, killed {kills} times")


def bridge(world):
    """The runbook's way of a node that goes on with `bridge`: a pool of the node's own range. Pods of before and of after reach each
    other and the node."""
    range_, network = "10.244.3.0/24", "cbr0"
    store = f"sqlite:{world.directory}/bridge.db"
    croft = [world.bin / "croft", "--store", store]
    node, networks, cache = world.netns("bridgenode"), world.directory / "bridgenets", world.directory / "bridgecache"
    (cache / "results").mkdir(parents=True)
    plugin = Plugin(world, "bridge", node)
    common = {"cniVersion": "0.4.0", "name": network, "type": "bridge", "bridge": "cni0", "isGateway": True, "isDefaultGateway": True}
    before = {**common, "ipam": {"type": "host-local", "dataDir": str(networks), "ranges": [[{"subnet": range_}]]}}
    after = {**common, "ipam": {"type": "croft-ipam", "store": store, "nodename": "node-3", "ipv4_pools": ["node-3"]}}
    spaces = {name: world.netns(f"bridge{name}") for name in ("old", "new", "newer")}
    old = plugin.add(before, "old", spaces["old"])["ips"][0]
    run(*croft, "pool", "create", "node-3", "--cidr", range_, "--block-size", "24")
    run(*croft, "config", "set", "--strict-affinity", "true")
    run(*croft, "affinity", "claim", range_, "--node", "node-3", "--force")
    moved = run(*croft, "migrate", "host-local", "--dir", networks / network, "--pool", "node-3", "--pod-cidr", range_, "--node", "node-3",
                "--cni-cache", cache, "--apply").stdout
    expect("moved 1 address into the pools, 0 reserved" in moved, f"the pool keeps its own: {moved}")
    for name in ("new", "newer"):
        given = plugin.add(after, name, spaces[name])["ips"][0]
        expect_equal((given["gateway"], given["address"].split("/")[1]), (old["gateway"], old["address"].split("/")[1]), "gateway and length")
        expect(given["address"].split("/")[0] not in ("10.244.3.0", "10.244.3.1", "10.244.3.255", old["address"].split("/")[0]), f"{given}")
        for other in (old["gateway"], old["address"].split("/")[0]):
            spaces[name].run("ping", "-c", "1", "-W", "5", other)
    plugin.call("DEL", after, "old", spaces["old"])
    held = set(json.loads(run(*croft, "-o", "json", "ip", "list", "--state", "held").stdout)[n]["containerId"] for n in range(2))
    expect_equal(held, {"new", "newer"}, "a pod that was moved is deleted under the network's name")


CONFLIST = {"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [
    {"type": "calico", "log_level": "info", "datastore_type": "etcdv3", "nodename": "node-a", "mtu": 1440,
     "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "ipv4_pools": ["a"]}, "policy": {"type": "k8s"}},
    {"type": "portmap", "snat": True, "capabilities": {"portMappings": True}}]}


def calico(world, etcd):
    run(world.bin / "croft", "--store", etcd.store, "pool", "create", "a", "--cidr", "10.80.0.0/24", "--cooldown-seconds", "0")
    Node(world, etcd.store, "node-a").add("before")
    folder = world.directory / "net.d"
    folder.mkdir()
    file, kept = folder / "10-calico.conflist", folder / "10-calico.conflist.before-croft"
    old = json.dumps({**CONFLIST, "plugins": [{**CONFLIST["plugins"][0], "etcd_endpoints": etcd.url}, CONFLIST["plugins"][1]]}, indent=1)
    file.write_text(old)

    def command(*more):
        return [world.bin / "croft", "--store", etcd.store, "migrate", "calico", "--conflist", file, "--cni-bin-dir", world.bin, *more]

    def migrate(*more, code=0):
        done = run(*command(*more), check=False)
        expect_equal(done.returncode, code, f"migrate calico {more}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    there = lambda: sorted(path.name for path in folder.iterdir() if not path.name.endswith(".tmp"))
    text = migrate()
    expect("1 plugin to croft-ipam" in text and "--apply" in text, text)
    expect_equal((file.read_text(), there()), (old, [file.name]), "a plan changes nothing")
    say(text.strip().splitlines()[-2])

    def whole():
        now = json.loads(file.read_text())
        expect(file.read_text() == old or now["plugins"][0]["ipam"]["type"] == "croft-ipam", f"half a file: {now}")
        expect(not kept.exists() or kept.read_text() == old, "what is kept is the old one")
        if file.read_text() != old:
            expect(kept.exists(), "the old one is kept")

    kills, code, text = killed_and_resumed(world, command("--apply"), look=whole)
    expect_equal(code, 0, text)
    whole()
    now = json.loads(file.read_text())
    expect_equal((now["plugins"][0]["ipam"]["type"], now["plugins"][0]["ipam"]["ipv4_pools"], kept.read_text()), ("croft-ipam", ["a"], old),
                 "switched, and the old one kept")
    say(f"switched, killed {kills} times")
    switched = file.read_text()
    text = migrate("--apply")
    expect("nothing to switch" in text, text)
    expect_equal((file.read_text(), there()), (switched, sorted([file.name, kept.name, file.name + ".switched-to-croft"])), "once more: nothing changed")
    # The plugin works by what was written.
    node = Node(world, etcd.store, "node-a")
    node.ipam = {**now["plugins"][0]["ipam"], "nodename": "node-a", "log_file_path": str(world.directory / "ipam.log")}
    node.add("after")
    node.delete("after")

    # Calico's installer has written its own again, another one.
    other = old.replace("1440", "1400")
    file.write_text(other)
    text = migrate("--apply", code=REFUSED)
    expect(str(kept) in text, text)
    text = migrate("--back", "--apply", code=REFUSED)
    expect_equal((file.read_text(), kept.read_text()), (other, old), "a refusal changes nothing")
    file.write_text(switched)

    migrate("--back")
    expect_equal(file.read_text(), switched, "a plan of the way back changes nothing")
    kills, code, text = killed_and_resumed(world, command("--back", "--apply"), look=whole_back(file, kept, old, switched))
    if kept.exists():
        migrate("--back", "--apply")
    expect_equal((file.read_text(), there()), (old, [file.name]), f"as it was: {text}")
    migrate("--back", "--apply", code=1)
    say(f"and back, killed {kills} times")

    # What is no configuration is named and stays.
    for damaged in ("{", "[]", '{"plugins": 5}', ""):
        file.write_text(damaged)
        done = run(*command("--apply"), check=False)
        expect(done.returncode not in (0, 3) and str(file) in done.stderr, f"{damaged!r}: {done}")
        expect_equal((file.read_text(), there()), (damaged, [file.name]), "as it was")
    file.write_text(old)
    # A register that contradicts itself stops the switch.
    key = next(k for k in etcd.get("/calico/ipam/v2/assignment/") if k)
    block = etcd.get(key)[key]
    etcd.put(key, block[:-20])
    text = migrate("--apply", code=REFUSED)
    expect("nothing was switched" in text, text)
    expect_equal((file.read_text(), there()), (old, [file.name]), "a register with findings")
    etcd.put(key, block)
    migrate("--apply")
    expect_equal(run(world.bin / "croft", "--store", etcd.store, "check", check=False).returncode, 0, "croft check")


def node_name(world, etcd):
    """The blocks of a node are Calico's name of it: where its configuration has none, that of Calico's file."""
    folder, said = world.directory / "named.d", world.directory / "nodename"
    folder.mkdir()
    file = folder / "10-calico.conflist"
    plugin = {**CONFLIST["plugins"][0], "etcd_endpoints": etcd.url, "nodename_file": str(said), "nodename_file_optional": False}
    del plugin["nodename"]

    def migrate(*more, **changes):
        file.write_text(json.dumps({**CONFLIST, "plugins": [{**plugin, **changes}]}))
        done = run(world.bin / "croft", "--store", etcd.store, "migrate", "calico", "--conflist", file, "--cni-bin-dir", world.bin, "--apply", *more,
                   check=False)
        ipam = json.loads(file.read_text())["plugins"][0]["ipam"]
        for path in folder.iterdir():
            path.unlink()
        return done, ipam

    def refused(done, ipam, code):
        expect_equal((done.returncode, ipam["type"]), (code, "calico-ipam"), f"{done.stdout}{done.stderr}")
        expect("nodename" in done.stderr and (code != REFUSED or (str(said) in done.stderr and "--node" in done.stderr)), done.stderr)

    refused(*migrate(), REFUSED)
    expect_equal(migrate("--node", "node-c")[1]["nodename"], "node-c", "as it was told")
    expect_equal(migrate(nodename_file_optional=True, hostname="node-h")[1]["nodename"], "node-h", "the next source")
    said.write_text("ip-10-0-0-7.ec2.internal\n")
    done, ipam = migrate(hostname="node-h")
    expect_equal(ipam["nodename"], "ip-10-0-0-7.ec2.internal", "as Calico's plugins have it")
    expect("ip-10-0-0-7.ec2.internal" in done.stdout, f"it is told: {done.stdout}")
    said.write_text("root:SECRET a b\n")
    done, ipam = migrate()
    refused(done, ipam, 2)
    expect(str(said) in done.stderr and "SECRET" not in done.stdout + done.stderr, f"of a file its path alone: {done.stderr}")
    expect("nodename" not in migrate(nodename="node-a")[1], "the configuration's own counts")
    # With what croft-ipam, or the register, refuses each pod would fail.
    ipam = plugin["ipam"]
    for changes, why in (({"nodename": "a\nb"}, "x0ab"), ({"ipam": {**ipam, "ipv4_pools": ["nowhere"]}}, "nowhere"),
                         ({"ipam": {**ipam, "assign_ipv4": "false"}}, "assign_ipv4"),
                         ({"ipam": {**ipam, "ipv4_pools": [f"p{n}" for n in range(65)]}}, "ipv4_pools"), ({"args": {"cni": {"ips": 5}}}, "args.cni.ips")):
        done, kept = migrate("--force", **{"nodename": "node-a", **changes})
        expect((done.returncode, kept["type"]) == (REFUSED, "calico-ipam") and why in done.stderr, f"{changes}: {done}")


def written_meanwhile(world, etcd):
    """Calico's installer writes its file anew while the register is looked through: what it wrote stays, and nothing else is kept."""
    folder = world.directory / "meanwhile.d"
    folder.mkdir()
    file, kept = folder / "10-calico.conflist", folder / "10-calico.conflist.before-croft"
    text = lambda mtu: json.dumps({**CONFLIST, "plugins": [{**CONFLIST["plugins"][0], "etcd_endpoints": etcd.url, "mtu": mtu}]})
    host, port = etcd.url.removeprefix("http://").split(":")

    def migrate(meanwhile):
        """`meanwhile` is done when the register is asked first: the file was read then."""
        with socket.create_server(("127.0.0.1", 0)) as door:
            def serve():
                meanwhile()
                door.settimeout(30)
                while True:
                    try:
                        client, _ = door.accept()
                    except OSError:
                        return
                    server = socket.create_connection((host, int(port)))
                    for one, other in ((client, server), (server, client)):
                        threading.Thread(target=pass_on, args=(one, other), daemon=True).start()

            store = f"etcd:http://127.0.0.1:{door.getsockname()[1]}"
            process = subprocess.Popen([str(world.bin / "croft"), "--store", store, "migrate", "calico", "--conflist", str(file), "--plugin-store",
                                        etcd.store, "--cni-bin-dir", str(world.bin), "--apply"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env=own_environment(world.directory))
            select.select([door], [], [], 30)
            threading.Thread(target=serve, daemon=True).start()
            out, err = process.communicate()
        return process.returncode, out + err

    there = lambda: {path.name: path.read_text() for path in folder.iterdir() if path.suffix != ".switched-to-croft"}

    def writes(path, content):
        return lambda: path.write_text(content)

    file.write_text(text(1440))
    code, said = migrate(writes(file, text(8900)))
    expect_equal((code, there()), (REFUSED, {file.name: text(8900)}), f"written meanwhile: {said}")
    expect(str(file) in said and "again" in said, said)
    code, said = migrate(file.unlink)
    expect_equal((code != 0, there()), (True, {}), f"removed meanwhile: {said}")
    file.write_text(text(1440))
    code, said = migrate(writes(kept, "precious"))
    expect_equal((code, there()), (REFUSED, {file.name: text(1440), kept.name: "precious"}), f"another kept one meanwhile: {said}")
    kept.unlink()
    code, said = migrate(lambda: None)
    expect_equal((code, there()[kept.name]), (0, text(1440)), said)


def pass_on(one, other):
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def whole_back(file, kept, old, switched):
    def look():
        expect(file.read_text() in (old, switched), "one or the other")
        expect(file.read_text() == old or kept.exists(), "the old one is somewhere")
    return look


def tombstones(world, etcd):
    file = f"sqlite:{world.directory}/register.db"
    croft = world.bin / "croft"
    run(croft, "--store", file, "pool", "create", "b", "--cidr", "10.82.0.0/24", "--cooldown-seconds", "0")
    place = world.directory / "tombstones"
    old, new = Node(world, file, "node-a"), Node(world, etcd.store, "node-a")
    old.env = new.env = {"CROFT_TOMBSTONES": str(place)}
    pods = {f"c{number}": old.add(f"c{number}") for number in range(12)}
    move = [croft, "migrate", "store", "--from", file, "--to", etcd.store]
    process = subprocess.Popen([*map(str, move), "--apply"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=own_environment(world.directory))
    for line in process.stderr:
        if "the source is closed" in line:
            process.kill()
            break
    process.communicate()
    gone = [f"c{number}" for number in range(8)]
    for container in gone:
        old.delete(container)
    left = lambda: sorted(left_or_none(place))
    expect_equal(left(), gone, "tombstones")
    run(*move, "--apply")

    # Somebody else's, and what can't be read: named, and not lost.
    another = Node(world, "etcd:http://127.0.0.1:1", "node-a")
    another.env = old.env
    another.delete("elsewhere")
    expect_equal(left(), sorted([*gone, "elsewhere"]), "tombstones with another store's")
    (place / "damaged.json").write_text("{")
    # A container that came back on the new store before its DEL was made up for: it lives.
    expect_equal(new.add("c0"), pods["c0"], "it has what it had")

    def command(*more):
        return [croft, "migrate", "tombstones", "--from", file, "--to", etcd.store, "--dir", place, *more]

    held = lambda: {row["containerId"] for row in world.held(etcd.store).values() if row["containerId"].startswith("c")}
    before = sorted(path.name for path in place.iterdir())
    plan = run(*command(), check=False)
    say(plan.stdout.strip())
    expect_equal(plan.returncode, 3, f"something can't be read: {plan.stderr}")
    # It may have been set aside by the ADD, which makes up for a few.
    expect("/damaged.json" in plan.stderr and "1 file of DELs cannot be read" in plan.stderr, f"and is named: {plan.stderr}")
    for directory, why in ((place / "nowhere", "is not there"), ("tombstones", "is not absolute"), (croft, "no directory")):
        wrong = run(*command()[:-1], directory, check=False)
        expect(wrong.returncode == 2 and why in wrong.stderr, f"--dir {directory}: {wrong.returncode} {wrong.stderr}")
    (place / "lock").unlink(missing_ok=True)
    (place / "lock").mkdir()
    wrong = run(*command("--apply"), check=False)
    expect(wrong.returncode != 0 and f"{place}/lock" in wrong.stderr, f"a lock of another kind: {wrong.stderr}")
    (place / "lock").rmdir()
    before = sorted(path.name for path in place.iterdir())
    # As an operator may name the old store, and the plugin did not.
    expect("1 DEL waits for etcd:http://127.0.0.1:1" in plan.stderr and "--from" in plan.stderr, f"others are told: {plan.stderr}")
    expect_equal((sorted(path.name for path in place.iterdir()), held()), (before, set(pods)), "a plan changes nothing")

    def look():
        waiting = set(left_or_none(place))
        for container in gone[1:]:
            expect(container in waiting or container not in held(), f"{container}: neither waits nor is gone")
        expect({f"c{n}" for n in range(8, 12)} <= held(), "who lives has its address")

    kills, code, text = killed_and_resumed(world, command("--apply"), look=look)
    expect_equal(code, 3, text)
    say(f"killed {kills} times: {text.strip().splitlines()[-1]}")
    expect_equal(held(), {f"c{n}" for n in range(8, 12)} | {"c0"}, "held after all DELs are made up for")
    expect_equal(left(), ["elsewhere"], "another store's waits on")
    expect(any(path.name.startswith("damaged.json") for path in place.iterdir()), "what can't be read is kept")
    again = run(*command("--apply"), check=False)
    expect(again.stdout.startswith("0 DELs wait"), f"once more: {again.stdout}")
    expect(again.returncode == 3 and ".damaged: " in again.stderr, f"what was set aside is told: {again.stderr}")
    for path in place.glob("*.damaged"):
        path.unlink()
    # Far more than an agent looks into at once.
    names = [f"many-{number}" for number in range(1000)]
    pattern = json.loads(next(place.glob("*.json")).read_text())
    for name in names:
        owner = "".join(f"{part}\0" for part in (pattern["network"], name, pattern["ifName"]))
        content = {**pattern, "store": file, "containerID": name}
        (place / f"{hashlib.sha256(owner.encode()).hexdigest()}.json").write_text(json.dumps(content))
    text = run(*command("--apply")).stdout
    expect("1000 of 1000 DELs are done" in text, f"all in one run: {text}")
    checked = run(croft, "--store", etcd.store, "check", check=False)
    expect_equal(checked.returncode, 0, f"croft check: {checked.stdout}")


def left_or_none(place):
    found = []
    for path in place.glob("*.json"):
        try:
            found.append(json.loads(path.read_text())["containerID"])
        except (FileNotFoundError, ValueError):
            continue
    return found


def test():
    with World("migrate-node", sys.argv[1]) as world:
        parts = sys.argv[2:] or ["host-local", "bridge", "calico", "tombstones"]
        if "host-local" in parts:
            host_local(world)
        if "bridge" in parts:
            bridge(world)
        if "calico" in parts:
            etcd = Etcd(world)
            calico(world, etcd)
            node_name(world, etcd)
            written_meanwhile(world, etcd)
        if "tombstones" in parts:
            tombstones(world, Etcd(world))


if __name__ == "__main__":
    main(test, 280)
