"""`croftd install` as a table: the directory of network configurations before, flags, the exit code with words of the answer, the
directory after. A node has one network; nothing is written before the plugin answers STATUS with the drafted files. Which networks are
others', Multus' and a package's files: node_network_test.cc, node_files_test.cc.

usage: install_choices.py BIN_DIR [ROW...]
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time

from lib import PLUGINS, expect, expect_equal, main, own_environment, run, say

OWN, CALICOS_OWN = "10-croft.conflist", "05-croft.conflist"
RECORD = "croft-install.record"


def network(name, *plugins, **members):
    return {"cniVersion": "0.4.0", "name": name, **members, "plugins": list(plugins)}


KINDNET = network("kindnet", {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.9.0.0/25"}}, {"type": "portmap"})
FLANNELS = network("cbr1", {"type": "flannel", "delegate": {"hairpinMode": True}}, {"type": "portmap"})
CALICOS = network("k8s-pod-network", {"type": "calico", "datastore_type": "kubernetes", "ipam": {"type": "calico-ipam"}})
ONE_NETWORK = ("a node has one network", "Drain the node", "--replace")


class Host:
    """The directories of a runtime."""

    def __init__(self, world, number):
        self.world, root = world, world.directory / f"host{number}"
        self.bin, self.conf = root / "bin", root / "net.d"
        self.bin.mkdir(parents=True)
        self.conf.mkdir()
        for plugin in ("ptp", "bridge", "portmap", "host-local"):
            shutil.copy(PLUGINS / plugin, self.bin / plugin)
        for plugin in ("flannel", "calico"):  # they only have to be there
            shutil.copy(PLUGINS / "ptp", self.bin / plugin)

    def put(self, files):
        for name, text in files.items():
            (self.conf / name).write_text(text if isinstance(text, str) else json.dumps(text))

    def call(self, *flags):
        place = [] if "--cni-bin-dir" in flags else ["--cni-bin-dir", self.bin]
        return subprocess.run([str(part) for part in (self.world.bin / "croftd", "install", "--cni-conf-dir", self.conf, *place, *flags)],
                              env={**os.environ, **own_environment(self.world.directory)}, capture_output=True, text=True, timeout=90, check=False)

    def install(self, *flags):
        """With defaults for what a row does not say."""
        defaults = {"--main-plugin": "ptp", "--node": "oak", "--store": self.world.register}
        if "--no-conflist" in flags:
            defaults.pop("--main-plugin")
        return self.call(*[part for flag, value in defaults.items() if flag not in flags for part in (flag, value)], *flags)

    def names(self):
        return sorted(path.name for path in self.conf.iterdir())

    def everything(self):
        return {path: path.read_bytes() for folder in (self.conf, self.bin) for path in folder.iterdir() if path.is_file()}


def expect_answer(answer, code, words):
    said = answer.stdout + answer.stderr
    expect_equal(answer.returncode, code, f"exit code of {answer.args[5:]}: {said}")
    for word in words:
        expect(str(word) in said, f"{word!r} is said: {said}")


# (what it shows, directory before, flags, exit code, words, directory after); None: as before. Rows run on a node without Croft.
FIRST = [
    ("an empty directory", {}, (), 0, (), [OWN, RECORD]),
    ("a dry run", {}, ("--dry-run",), 0, (OWN, "would be written"), None),
    ("under calico", {"calico-kubeconfig": "x"}, ("--main-plugin", "calico"), 0, (), [CALICOS_OWN, "calico-kubeconfig", RECORD]),
    ("another network", {"20-kindnet.conflist": KINDNET}, (), 5, ("20-kindnet.conflist", "kindnet", "host-local", *ONE_NETWORK), None),
    ("another network, set aside", {"20-kindnet.conflist": KINDNET}, ("--replace", "kindnet"), 0, ("addresses that Croft does not know",),
     [OWN, "20-kindnet.conflist.before-croft", RECORD]),
    ("another network before ours, by its file", {"05-x.conflist": KINDNET}, ("--replace", "05-x.conflist"), 0, (), ["05-x.conflist.before-croft", OWN, RECORD]),
    ("another network of our file's name", {OWN: KINDNET}, ("--replace", "kindnet"), 0, (), [OWN, OWN + ".before-croft", RECORD]),
    ("flannel's own", {"10-flannel.conflist": FLANNELS}, ("--main-plugin", "flannel"), 0, (), [OWN, "10-flannel.conflist", RECORD]),
    ("Calico's own, another register", {"10-calico.conflist": CALICOS, "calico-kubeconfig": "x"}, ("--main-plugin", "calico"), 5, ONE_NETWORK, None),
    ("Calico's own", {"10-calico.conflist": CALICOS, "calico-kubeconfig": "x"}, ("--main-plugin", "calico", "--store", "KUBECONFIG", "--dry-run"), 0, (), None),
    ("Calico's installer comes later", {}, ("--main-plugin", "calico"), 4, ("calico-kubeconfig", "run this again"), None),
    ("no main plugin", {}, ("--main-plugin", ""), 2, ("--main-plugin is missing", "ptp, bridge, calico, flannel"), None),
    ("two choices", {}, ("--main-plugin", "ptp", "--no-conflist"), 2, ("--no-conflist",), None),
    ("nothing to replace by", {}, ("--replace", "x", "--no-conflist"), 2, ("--replace", "--no-conflist"), None),
    ("forced, what needs no force", {}, ("--force",), 2, ("--force", "--uninstall"), None),
    ("the plugin alone", {"10-calico.conflist": CALICOS}, ("--no-conflist",), 0, (), ["10-calico.conflist", RECORD]),
    ("a file that is no list", {}, ("--conflist-name", "10-croft.conf"), 2, ("--conflist-name", ".conflist"), None),
    ("a file elsewhere", {}, ("--conflist-name", "../a.conflist"), 2, ("--conflist-name",), None),
    ("no family", {}, ("--no-ipv4",), 2, ("--no-ipv4",), None),
    ("a plugin that is not there", {}, ("--cni-bin-dir", "/nonexistent"), 1, ("/nonexistent/ptp", "--cni-bin-dir"), None),
    ("programs elsewhere", {}, ("--source", "/nonexistent"), 1, ("/nonexistent", "--source"), None),
    ("no such store", {"20-kindnet.conflist": KINDNET}, ("--store", "nonsense"), 2, ("nonsense", "sqlite:"), None),
    ("STATUS: an etcd that is away", {}, ("--store", "etcd:http://127.0.0.1:1"), 4, ("the plugin's STATUS", "127.0.0.1:1"), None),
    ("STATUS: not asked", {}, ("--store", "etcd:http://127.0.0.1:1", "--no-probe"), 0, (), [OWN, RECORD]),
    ("STATUS: no pool", {}, ("--store", "EMPTY"), 4, ("the plugin's STATUS", "pool"), None),
    ("STATUS: no such pool", {}, ("--ipv4-pool", "b"), 1, ("the plugin's STATUS", "b"), None),
    ("STATUS: a pool of the other family", {}, ("--ipv6", "--ipv6-pool", "a"), 1, ("the plugin's STATUS",), None),
    ("STATUS: no text of a pool's name", {}, ("--ipv4-pool", "Nope!"), 2, ("ipam.ipv4_pools", "Nope!"), None),
    ("no gateway", {}, ("--store", "NO_GATEWAY"), 1, ("gateway", "croft pool defaults --gateways first"), None),
    ("one without a gateway", {}, ("--store", "MIXED"), 1, ("pool calicos has no gateway", "croft pool disable calicos", "--ipv4-pool"), None),
    ("one without a gateway, not used", {}, ("--store", "MIXED", "--ipv4-pool", "a"), 0, (), [OWN, RECORD]),
    ("one without a gateway, by its CIDR", {}, ("--store", "MIXED", "--ipv4-pool", "10.8.0.9/24"), 1, ("no IPv4 pool has a gateway",), None),
    ("no gateway, as Calico's", {"calico-kubeconfig": "x"}, ("--store", "NO_GATEWAY", "--main-plugin", "calico"), 0, (), [CALICOS_OWN, "calico-kubeconfig", RECORD]),
    ("a network's name with a slash", {}, ("--network-name", "../x"), 2, ("network name",), None),
    ("a record that cannot be read", {RECORD: "{"}, (), 1, (RECORD, "remove it"), None),
]

# On a node with Croft: what comes to its directory, flags, code, words, what is there then besides (OWN, RECORD).
AGAIN = [
    ("the same again", {}, (), 0, ("is as it should be",), []),
    ("the same again, tried", {}, ("--dry-run",), 0, (f"{OWN} is as it should be",), []),
    ("another MTU", {}, ("--mtu", "1400"), 0, ("replaced",), []),
    ("another name of the file", {}, ("--conflist-name", "11-croft.conflist"), 0, ("removed",), ["11-croft.conflist"]),
    ("another register", {}, ("--store", "NO_GATEWAY"), 5, (OWN, *ONE_NETWORK), []),
    ("another register, said", {}, ("--store", "WITH_GATEWAY", "--replace", "k8s-pod-network"), 0, ("another register", "croft store copy"), []),
    ("host-local in the register's place", {}, ("--main-plugin", "flannel"), 5, ONE_NETWORK, []),
    ("another network behind ours", {"20-kindnet.conflist": KINDNET}, (), 0, ("20-kindnet.conflist", "the runtime goes by"), ["20-kindnet.conflist"]),
    ("another network before ours", {"05-kindnet.conflist": KINDNET}, (), 5, ("05-kindnet.conflist", *ONE_NETWORK), ["05-kindnet.conflist"]),
    ("our file emptied", {OWN: ""}, (), 0, (OWN,), [OWN + ".before-croft"]),
    ("our file in another's words", {OWN: KINDNET}, (), 5, ONE_NETWORK, []),
    ("taken back", {}, ("--uninstall",), 0, (), None),
    ("taken back, tried", {}, ("--uninstall", "--dry-run"), 0, ("would be removed",), []),
    ("taken back before another", {"20-kindnet.conflist": KINDNET}, ("--uninstall",), 5, ("20-kindnet.conflist", "--force"), ["20-kindnet.conflist"]),
    ("taken back before another, forced", {"20-kindnet.conflist": KINDNET}, ("--uninstall", "--force"), 0, (), None),
]


def awaits_pools(world):
    """The node gets its network once STATUS says so, as when something has made the first pool."""
    host, store = Host(world, "awaits"), f"sqlite:{world.directory}/to-come.db"
    pool = lambda *words: run(world.bin / "croft", "--store", store, "pool", *words)
    pool("create", "gone", "--cidr", "10.7.0.0/24")
    pool("delete", "gone")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        waiting = threads.submit(host.install, "--store", store, "--await-pools", "50")
        time.sleep(1.5)
        expect_equal((waiting.done(), OWN in host.names()), (False, False), "while there is none")
        pool("create", "a", "--cidr", "10.7.0.0/24")
        expect_answer(waiting.result(), 0, ("asking again",))
    expect(OWN in host.names(), host.names())


def rows(world, number, row, is_again):
    what, before, flags, code, words, after = row
    host = Host(world, number)
    if is_again:
        expect_answer(host.install(), 0, ())
    host.put(before)
    flags = [world.stores.get(flag, flag) for flag in flags]
    files, there = host.everything(), host.names()
    answer = host.call(*flags) if "--uninstall" in flags else host.install(*flags)
    expect_answer(answer, code, words)
    if code != 0:
        expect_equal(host.everything(), files, f"{what}: nothing was changed")
    if not is_again:
        expect_equal(host.names(), sorted(there if after is None else after), f"{what}: files after")
    elif after is None:
        expect_equal((host.names(), (host.bin / "croft-ipam").exists()), (sorted(before), False), f"{what}: files after")
    else:
        own = [] if "11-croft.conflist" in after else [OWN]
        expect_equal(host.names(), sorted([*own, RECORD, *after]), f"{what}: files after")
    if code == 0 and not is_again and after:
        expect_answer(host.call("--uninstall", "--force"), 0, ())
        expect((host.bin / "host-local").read_bytes() == (PLUGINS / "host-local").read_bytes() and not (host.bin / "croft-ipam").exists(), f"{what}: taken back")


def test(world):
    croft = lambda store, *words: run(world.bin / "croft", "--store", store, "pool", *words)
    world.register, kubeconfig = world.store(), world.directory / "kubeconfig"
    kubeconfig.write_text("{}")
    world.stores = {name: f"sqlite:{world.directory}/{name}.db" for name in ("EMPTY", "NO_GATEWAY", "WITH_GATEWAY", "MIXED")}
    for store in (world.register, *(world.stores[name] for name in ("WITH_GATEWAY", "EMPTY", "MIXED"))):
        croft(store, "create", "a", "--cidr", "10.9.0.0/24")
    world.stores["KUBECONFIG"] = f"kube:{kubeconfig}"
    croft(world.stores["MIXED"], "create", "calicos", "--cidr", "10.8.0.0/24", "--gateway", "none")
    croft(world.stores["NO_GATEWAY"], "defaults", "--ipv4-cidr", "10.9.0.0/24")
    croft(world.stores["EMPTY"], "delete", "a")
    for number, (row, is_again) in enumerate([*((row, False) for row in FIRST), *((row, True) for row in AGAIN)]):
        if not sys.argv[2:] or row[0] in sys.argv[2:]:
            rows(world, number, row, is_again)
    awaits_pools(world)
    say(f"{len(FIRST)} first installations, {len(AGAIN)} over Croft")


main(test, 400)
