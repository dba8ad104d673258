"""What the end-to-end tests share: a place that cleans up after itself, network namespaces, and calls of CNI plugins.

A script is called with the directory of the programs and with what CMakeLists.txt gives it. It runs in a World: everything that a
World made (namespaces with all that is in them, processes, directories) goes when its block is left, also by an exception, Ctrl-C
or SIGTERM. Nothing of the host is touched: bridges and routes live in a namespace that plays the node, and a name of the host
(`/run/netns/...`) carries the process id.
"""

import collections
import contextlib
import fcntl
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
PLUGINS = pathlib.Path("/usr/lib/cni")  # Debian's containernetworking-plugins
SKIPPED = 77  # what ctest takes for "skipped"
# How often a kernel asks whether somebody else has an address of its own, before it uses it. In a test nobody has.
DUPLICATES_ASKED = "/proc/sys/net/ipv6/conf/default/dad_transmits"
PATIENCE = 15  # seconds; how long to wait for what should happen at once


class Failure(Exception):
    """The test has failed; the text says what was expected and what came."""


class CniError(Exception):
    """A plugin answered with an error object."""

    def __init__(self, command, answer, stderr):
        self.code = answer.get("code")
        self.msg = answer.get("msg", "")
        self.details = answer.get("details", "")
        super().__init__(f"{command}: code {self.code}: {self.msg}" + (f" ({self.details})" if self.details else "")
                         + (f" [stderr: {stderr.strip()}]" if stderr.strip() else ""))


def own_environment(directory=None):
    """What every call of a plugin has in its environment, so that it touches nothing of the machine: its log below
    `directory` (without one it does not log), no agent but the one that a test or its configuration names, and nothing
    left for later by a DEL that fails."""
    return {"CROFT_AGENT": "none", "CROFT_LOG_DIRECTORY": str(directory) if directory else "none",
            "CROFT_TOMBSTONES": "none"}


def image_script():
    """scripts/image as a module: what makes images."""
    path = TREE / "scripts" / "image"
    spec = importlib.util.spec_from_loader("image_script", importlib.machinery.SourceFileLoader("image_script", str(path)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def skip(reason):
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(SKIPPED)


def say(text):
    print(text, flush=True)


def expect(condition, text):
    if not condition:
        raise Failure(text)


def expect_equal(got, wanted, what):
    if got != wanted:
        raise Failure(f"{what}: expected {wanted!r}, got {got!r}")


def wait_for(condition, what, seconds=PATIENCE):
    """Calls `condition` until it is true; its last value is returned."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited {seconds} s in vain: {what}")
        time.sleep(0.05)


def run(*command, check=True, stdin="", env=None, timeout=60):
    """Runs a program; its output as text. An environment that is given is completed by own_environment()."""
    env = None if env is None else {**own_environment(), **env}
    done = subprocess.run([str(c) for c in command], input=stdin, capture_output=True, text=True, env=env,
                          timeout=timeout, check=False)
    if check and done.returncode != 0:
        raise Failure(f"{' '.join(str(c) for c in command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def build(*command, timeout, env=None):
    """Runs a script that builds something; skips where that says that it can't."""
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode == SKIPPED:
        skip(done.stderr.strip().splitlines()[-1])
    expect(done.returncode == 0, done.stderr)


def require_programs(*names):
    missing = [n for n in names if not shutil.which(n) and not (PLUGINS / n).exists()]
    if missing:
        skip(f"not installed: {', '.join(missing)} (scripts/setup installs them)")


def require_network_namespaces():
    """Skips when this process may not make network namespaces; anything else that goes wrong is a failure."""
    if os.geteuid() != 0:
        skip("network namespaces need root")
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        skip(f"no network namespaces here: {probe.stderr.strip()}")


class Namespace:
    """A named network namespace."""

    def __init__(self, name):
        self.name = name
        self.path = f"/run/netns/{name}"

    def run(self, *command, **options):
        return run("nsenter", f"--net={self.path}", *command, **options)

    def addresses(self, interface="eth0"):
        """The global addresses of an interface as `address/length`, in the kernel's order."""
        found = json.loads(self.run("ip", "-json", "address", "show", "dev", interface).stdout)
        return [f"{a['local']}/{a['prefixlen']}" for entry in found for a in entry.get("addr_info", [])
                if a.get("scope") == "global"]

    def mac(self, interface="eth0"):
        return json.loads(self.run("ip", "-json", "link", "show", "dev", interface).stdout)[0]["address"]

    def wait_until_addresses_settle(self):
        """Waits for the end of duplicate address detection: until then the kernel does not answer for an address."""
        def settled():
            found = json.loads(self.run("ip", "-json", "-6", "address", "show").stdout)
            return not [a for entry in found for a in entry.get("addr_info", []) if a.get("tentative")]
        wait_for(settled, f"duplicate address detection in {self.name}")

    def neighbour(self, address):
        """The MAC that answered for an address, as this namespace's neighbour table has it; None when none did."""
        found = json.loads(self.run("ip", "-json", "neighbour", "show", "to", address).stdout or "[]")
        macs = [n["lladdr"] for n in found if "lladdr" in n]
        return macs[0] if macs else None

    def forget_neighbours(self):
        self.run("ip", "neighbour", "flush", "all")

    def echo_requests(self, family):
        """How many echo requests this namespace's own stack has received."""
        if family == 4:
            lines = self.run("cat", "/proc/self/net/snmp").stdout.splitlines()
            names, values = [line.split() for line in lines if line.startswith("Icmp:")]
            return int(dict(zip(names, values))["InEchos"])
        lines = self.run("cat", "/proc/self/net/snmp6").stdout.splitlines()
        return int(dict(line.split() for line in lines)["Icmp6InEchos"])

    def ping(self, address):
        """One echo request and its answer; the text of a failure is ping's own."""
        self.run("ping", "-n", "-c", "1", "-W", "5", address)


class Plugin:
    """A main or IPAM plugin, run in the namespace that plays the node."""

    def __init__(self, world, name, node, path=None):
        self.world, self.name, self.node = world, name, node
        self.path = path or world.find_plugin(name)

    def call(self, command, config, container=None, netns=None, ifname="eth0", args=""):
        """One CNI call. The decoded answer (None when there is none); raises CniError for an error object."""
        env = {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), "CNI_COMMAND": command,
               "CNI_PATH": self.world.cni_path, **own_environment(getattr(self.world, "directory", None))}
        if container:
            env.update(CNI_CONTAINERID=container, CNI_IFNAME=ifname)
        if netns:
            env["CNI_NETNS"] = netns.path
        if args:
            env["CNI_ARGS"] = args
        done = run("nsenter", f"--net={self.node.path}", self.path, check=False, stdin=json.dumps(config), env=env)
        try:
            answer = json.loads(done.stdout) if done.stdout.strip() else None
        except json.JSONDecodeError as error:
            raise Failure(f"{self.name} {command}: not JSON on standard output ({error}): {done.stdout!r} "
                          f"{done.stderr!r}") from error
        if done.returncode != 0:
            if not isinstance(answer, dict):
                raise Failure(f"{self.name} {command}: exit {done.returncode} without an error object: {done.stderr!r}")
            raise CniError(f"{self.name} {command}", answer, done.stderr)
        return answer

    def add(self, config, container, netns, **more):
        return self.call("ADD", config, container, netns, **more)

    def check(self, config, previous, container, netns, **more):
        return self.call("CHECK", {**config, "prevResult": previous}, container, netns, **more)

    def delete(self, config, container, netns=None, **more):
        return self.call("DEL", config, container, netns, **more)


class World:
    """See the top of this file."""

    def __init__(self, name, bin_dir=None):
        self.prefix = f"croft-{name}-{os.getpid()}"
        self.bin = pathlib.Path(bin_dir).resolve() if bin_dir else None
        self.stack = contextlib.ExitStack()
        self.directory = None

    def __enter__(self):
        # A signal ends the test the way an exception does, so that the stack unwinds.
        def stop(number, _frame):
            raise SystemExit(128 + number)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, stop)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=self.prefix + "-"))
        self.stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        return self

    def __exit__(self, *why):
        # A second Ctrl-C does not stop the cleaning.
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        return self.stack.__exit__(*why)

    @property
    def cni_path(self):
        return ":".join([str(self.bin), str(PLUGINS)] if self.bin else [str(PLUGINS)])

    def find_plugin(self, name):
        for folder in self.cni_path.split(":"):
            path = pathlib.Path(folder) / name
            if path.exists():
                return path
        raise Failure(f"no plugin {name} in {self.cni_path}")

    def plugin(self, name, node):
        return Plugin(self, name, node)

    def netns(self, name):
        namespace = Namespace(f"{self.prefix}-{name}")
        run("ip", "netns", "add", namespace.name)
        self.stack.callback(run, "ip", "netns", "delete", namespace.name, check=False)
        namespace.run("sh", "-c", f"ip link set lo up && echo 0 >{DUPLICATES_ASKED}")
        return namespace

    def nameless_netns(self):
        """One that has no name on this machine, as another machine's would not: nothing here takes its addresses for in use."""
        process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        self.stack.callback(lambda: (process.kill(), process.wait()))
        namespace = Namespace("another machine")
        namespace.path = f"/proc/{process.pid}/ns/net"
        own = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink(namespace.path) != own, "a namespace of its own")
        return namespace

    def store(self, name="croft"):
        folder = self.directory / f"store-{name}"
        folder.mkdir()
        return f"sqlite:{folder}/croft.db"

    def croft(self, store, *arguments, check=True):
        """The operator's command line; what it printed, decoded."""
        done = run(self.bin / "croft", "--store", store, "-o", "json", *arguments, check=check)
        try:
            return json.loads(done.stdout) if done.stdout.strip() else None
        except json.JSONDecodeError as error:
            raise Failure(f"croft -o json {' '.join(arguments)}: not JSON ({error}): {done.stdout!r}") from error

    def cli(self, store, *arguments, codes=(0,), **options):
        """The same as people have it: texts and the exit code, which is one of `codes`, if these are said."""
        done = run(self.bin / "croft", "--store", store, *arguments, check=False, **options)
        expect(codes is None or done.returncode in codes, f"croft {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def wait_for_store(self, store, seconds=30):
        wait_for(lambda: self.cli(store, "pool", "list", codes=None).returncode == 0, "the store is back", seconds)

    def pool(self, store, name, cidr, *more, cooldown=0):
        self.croft(store, "pool", "create", name, "--cidr", cidr, "--cooldown-seconds", str(cooldown), *more)

    def held(self, store):
        """The rows of `croft ip list` that somebody holds, by address."""
        return {row["address"]: row for row in self.croft(store, "ip", "list") if row["state"] == "held"}

    def holders(self, store):
        """By container the addresses that it holds."""
        held = collections.defaultdict(list)
        for address, row in sorted(self.held(store).items()):
            held[row["containerId"]].append(address)
        return dict(held)


class Commands:
    """Of `croft` on one store, as people have them."""

    def __init__(self, world, store, *noun):
        self.world, self.store, self.noun = world, store, noun

    def run(self, *arguments, code=0, stdin=""):
        return self.world.cli(self.store, *self.noun, *arguments, codes=(code,), stdin=stdin)

    def text(self, *arguments, code=0, stdin=""):
        done = self.run(*arguments, code=code, stdin=stdin)
        return done.stdout + done.stderr

    def data(self, *arguments, stdin=""):
        return json.loads(self.run(*arguments, "-o", "json", stdin=stdin).stdout)


def call_environment(world, command, container, args="", **more):
    """Of a plugin's call on eth0 of a pod whose namespace nobody looks at."""
    return {**own_environment(world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_IFNAME": "eth0",
            "CNI_NETNS": "/var/run/netns/none", "CNI_PATH": str(world.bin), "CNI_ARGS": args, **more}


def ipam_config(store, node, version="1.0.0", network="net", **ipam):
    """A network whose addresses are croft-ipam's."""
    return json.dumps({"cniVersion": version, "name": network,
                       "ipam": {"type": "croft-ipam", "store": store, "nodename": node, **ipam}})


def begin(program, given, env):
    """A program that is under way, with all that it reads."""
    process = subprocess.Popen([program], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(given)
    process.stdin.close()
    process.stdin = None
    return process


def finish(process):
    """Exit code of a plugin, its answer, None when there is none, and what it said besides."""
    out, err = process.communicate(timeout=60)
    return process.returncode, json.loads(out) if out.strip() else None, err


def begin_ipam(world, command, container, store, node="node-a", args="", env=None, **ipam):
    """A call of croft-ipam that is under way."""
    return begin(world.bin / "croft-ipam", ipam_config(store, node, **ipam), call_environment(world, command, container, args, **(env or {})))


def call_ipam(world, command, container, store, node="node-a", args="", env=None, **ipam):
    """One call of croft-ipam: its exit code and its answer."""
    return finish(begin_ipam(world, command, container, store, node, args, env, **ipam))[:2]


def address_of(answer, number=0):
    """Of a result, without its length."""
    return answer["ips"][number]["address"].split("/")[0]


def cache_entry(folder, container, network="net", netns=None, address=None, pod=None, **more):
    """What libcni writes down of an ADD, in a directory of results; `pod`: namespace and name."""
    (folder / f"{network}-{container}-eth0").write_text(json.dumps(
        {"kind": "cniCacheV1", "containerId": container, "ifName": "eth0", "networkName": network, **({"netns": str(netns)} if netns else {}),
         "result": {"cniVersion": "1.0.0", "ips": [{"address": f"{address}/24"}]} if address else {},
         "cniArgs": [["K8S_POD_NAMESPACE", pod[0]], ["K8S_POD_NAME", pod[1]]] if pod else [], **more}))


def write_kubeconfig(path, server, authority, user):
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test", "users": [{"name": "u", "user": user}],
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}]}))
    path.chmod(0o600)
    return path


def memory_of(pid):
    """The most memory that a process has had, in MiB. What wait4 tells is at least that of this program, from which it was forked."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")), 0.0)
    return 0.0


class Ended:
    """What became of a process: its code, what it printed, how long it took, and the most memory that it was seen with."""

    def __init__(self, command, stdin="", env=None, limit=60.0):
        begin, self.mib = time.monotonic(), 0.0
        # A file and no pipe: communicate() hands its input over no more once it was called again after its time.
        with tempfile.TemporaryFile() as given:
            given.write(stdin.encode())
            given.seek(0)
            process = subprocess.Popen([str(c) for c in command], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        while process.returncode is None:
            try:
                self.out, self.err = process.communicate(timeout=0.05)
            except subprocess.TimeoutExpired:
                self.mib = max(self.mib, memory_of(process.pid))
                if time.monotonic() - begin > limit:
                    process.kill()
        self.seconds = time.monotonic() - begin
        self.code = process.returncode
        self.what = " ".join(str(c) for c in command[-4:])


def require_strace():
    require_programs("strace")
    probe = run("strace", "-o", os.devnull, "true", check=False)
    if probe.returncode != 0:
        skip(f"strace cannot trace here: {probe.stderr.strip()}")


def system_calls(trace):
    """Of what strace wrote: (name, which of that name, line). strace counts each name apart."""
    counts = collections.Counter()
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        name = line.split(maxsplit=1)[1].split("(")[0]
        if name.isidentifier():  # else the second half of a call, an exit or a signal
            counts[name] += 1
            yield name, counts[name], line


def was_injected(trace):
    text = trace.read_text(encoding="utf-8", errors="replace")
    return "INJECTED" in text or "+++ killed by SIGKILL +++" in text


def make_busybox(root, applets):
    """The files of an image that has busybox under these names."""
    (root / "bin").mkdir(parents=True)
    for name in ("etc", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir()
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for name in applets:
        (root / "bin" / name).symlink_to("busybox")


def listens(place):
    family, place = (socket.AF_INET, place) if isinstance(place, tuple) else (socket.AF_UNIX, str(place))
    with socket.socket(family) as probe:
        return probe.connect_ex(place) == 0


class Daemon(subprocess.Popen):
    """A program that goes on, with what it says in NAME.log. It is killed at the end of its block, or else with the World."""

    def __init__(self, world, name, *command, env=None):
        self.name, self.log_path = name, world.directory / f"{name}.log"
        with open(self.log_path, "ab") as log:
            super().__init__([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        world.stack.callback(self.kill)

    def __exit__(self, *why):
        self.kill()
        if why[0] is not None:
            say(f"--- {self.log_path.name}\n{self.tail()}")

    def kill(self):
        super().kill()
        self.wait()

    def end(self, seconds=20):
        """By SIGTERM, in order; the seconds that it took."""
        begin = time.monotonic()
        self.terminate()
        try:
            expect_equal(self.wait(seconds), 0, f"exit code of {self.name}; its log:\n{self.tail()}")
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not end within {seconds} s\n{self.tail()}") from None
        return time.monotonic() - begin

    def log(self):
        return self.log_path.read_text(errors="replace")

    def tail(self, count=40):
        return "\n".join(self.log().splitlines()[-count:])


def start_agent(world, store, node, place, *options, env=None):
    """A node's agent at the socket `place`, once it listens."""
    agent = Daemon(world, "agent", world.bin / "croftd", "agent", "--store", store, "--node", node, "--socket", place, *options, env=env)
    agent.socket = place
    wait_for(lambda: agent.poll() is not None or listens(place), "the agent listens", 30)
    expect(agent.poll() is None, f"the agent ended: {agent.log()}")
    return agent


class Controller(Daemon):
    def __init__(self, world, store, name, *flags):
        super().__init__(world, name, world.bin / "croftd", "controller", "--store", store, *flags, env=own_environment(world.directory))


def stop_between_commits(process, store):
    """SIGSTOP of a daemon: within a commit the store would be its own (docs/limits.md)."""
    with open(f"{str(store).removeprefix('sqlite:')}-lock", "r+", encoding="utf-8") as gate:
        while True:
            process.send_signal(signal.SIGSTOP)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A signal takes its time: until then the lock is ours.
                return wait_for(lambda: ") T " in pathlib.Path(f"/proc/{process.pid}/stat").read_text(), "it is stopped")
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)


def wait_for_agents_memory(world, place):
    """Until it knows its node, and answers without asking the store."""
    def knows_its_node():
        asked = run(world.bin / "croft", "agent", "status", "--socket", place, "-o", "json", check=False)
        if asked.returncode != 0:
            return False
        answer = json.loads(asked.stdout)
        return (answer[0] if isinstance(answer, list) else answer)["cacheInUse"]
    wait_for(knows_its_node, "the agent knows its node")


def fill_disk(directory):
    """To the last byte, by a file."""
    with open(directory / "filler", "wb") as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 65536)
            filler.flush()


WRITER = """import os, pickle, sqlite3, sys
path, statements = pickle.load(sys.stdin.buffer)
connection = sqlite3.connect(path, timeout=10)
connection.execute("BEGIN IMMEDIATE")
results = []
for sql, arguments in statements:
    cursor = connection.execute(sql, arguments)
    results.append((cursor.fetchall(), cursor.rowcount))
connection.commit()
sys.stdout.buffer.write(pickle.dumps(results))
sys.stdout.buffer.flush()
os._exit(0)
"""


def write_past_croft(store, *statements):
    """Runs (sql, arguments) on the database of a store as another program would, in one transaction; (rows, count) of
    each. That program dies without closing the file: as it closes, SQLite copies the log, and a page that it changed
    would have a checksum that is no longer right."""
    done = subprocess.run([sys.executable, "-c", WRITER], input=pickle.dumps((str(store).removeprefix("sqlite:"), statements)),
                          capture_output=True, timeout=60, check=False)
    expect(done.returncode == 0, f"{statements}: {done.stderr.decode()}")
    return pickle.loads(done.stdout)


def numbers_given(*defaults):
    """The numbers behind BIN_DIR, with defaults for those that are not given."""
    given = [int(word) for word in sys.argv[2:]]
    return (*given, *defaults[len(given):])


def main(test, seconds=150):
    """Runs a test function, with a World of the script's name if it takes one, and turns what came of it into an exit code that
    ctest knows. A test that takes longer than `seconds` fails and still cleans up; ctest's own limit, which kills, must be longer."""
    def late(_number, _frame):
        raise Failure(f"took longer than {seconds} s")
    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        if test.__code__.co_argcount == 0:
            test()
        else:
            with World(pathlib.Path(sys.argv[0]).stem.replace("_", "-"), sys.argv[1]) as world:
                test(world)
    except (Failure, CniError, subprocess.TimeoutExpired) as failure:
        say(f"FAILED: {failure}")
        sys.exit(1)
    say("passed")
