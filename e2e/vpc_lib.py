"""The simulated cloud, node agents on it, and calls of them (proto/rpc/ipamd.proto), for the end-to-end tests of `croftd vpc-agent`."""

import concurrent.futures
import json
import os
import pathlib
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request

import protobuf
from etcd_lib import free_ports
from lib import Daemon, Failure, call_environment, expect, expect_equal, listens, run, say, skip, wait_for
from protobuf import fields_of

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what is refused is told by the answer
try:
    import grpc
except ImportError:
    skip("python3-grpcio is not installed (scripts/setup installs it)")

SUBNET = "subnet-1"
LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))
BEGINS = 60  # seconds until a process of many that begin at once on a busy machine answers
SETTLED = 25  # seconds until what was left half done is settled: doubt, a round of settling, and a busy machine


# ---------------------------------------------------------------- messages

def field(number, value):
    """A text or a message; nothing where it is empty."""
    return protobuf.field(number, value) if value else b""


NETWORK = {1: "pod", 2: "namespace", 3: "uid", 4: "sandbox", 5: "netns", 6: "ip", 7: "vpc", 8: "subnet", 9: "gateway",
           10: "mask", 11: "mac"}


def network_of(message):
    found = fields_of(message)
    return {name: found.get(number, [b""])[0].decode() for number, name in NETWORK.items()}


def add_request(sandbox, pod="", uid="", old=False):
    """As our plugin asks; `old`: as UK8S' plugin does, which says no version."""
    speech = b"" if old else field(110, bytes([1 << 3, 2]) + field(3, "a test"))
    return speech + field(1, pod or f"pod-{sandbox}") + field(2, "default") + field(3, sandbox) + field(4, "/run/netns/none") + \
        field(5, "eth0") + field(101, uid)


# ---------------------------------------------------------------- processes

def start_program(world, name, command, **env):
    """One of our programs, which knows of this machine no more than where programs are."""
    return Daemon(world, name, *command, env={"PATH": os.environ.get("PATH", ""), **env})


class Cloud:
    """vpc_sim.py. Its API is asked by agents alone; here are its controls."""

    def __init__(self, world, name, nodes=("node-a",), length=24, token_life=3600, prefix=None, listen="127.0.0.1", addresses=None):
        self.world, self.name = world, name
        # An agent looks at the addresses of all namespaces of the machine: those of other tests must not be among ours.
        self.prefix = prefix or f"10.{random.randrange(128, 256)}.{random.randrange(256)}"
        subnet = f"{self.prefix}.0/{length}"
        self.nodes = {node: f"52:54:00:00:00:{number + 10:02x}" for number, node in enumerate(nodes)}
        config = {"region": "cn-bj2", "zone": "cn-bj2-04", "project": "org-test", "vpc": "uvnet-1", "publicKey": "pub",
                  "privateKey": "priv", "tokenLifeSeconds": token_life,
                  "subnets": [{"id": SUBNET, "range": subnet, "gateway": f"{self.prefix}.1"}],
                  "nodes": [{"name": node, "mac": mac, "subnet": SUBNET, **({"address": addresses[node]} if addresses else {})}
                            for node, mac in self.nodes.items()]}
        path = world.directory / f"{name}.json"
        path.write_text(json.dumps(config))
        self.port, = free_ports(1)
        self.url = f"http://{listen}:{self.port}"
        self.process = start_program(world, f"{name}-cloud", [world.bin / "croft-vpc-sim", "--config", path, "--listen", f"{listen}:{self.port}"])
        wait_for(self.is_there, f"the cloud {name} answers", BEGINS)

    def is_there(self):
        expect(self.process.poll() is None, f"the cloud has ended:\n{self.process.tail()}")
        try:
            return self.truth() is not None
        except OSError:
            return False

    def _get(self, path, data=None):
        try:
            with LOOPBACK.open(self.url + path, data=data, timeout=20) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise Failure(f"{path}: {error.code} {error.read().decode()}") from error

    def do(self, what, **parameters):
        """A control: cloud.do("fault", kind="lose", action="*")."""
        return self._get(f"/sim/{what}", urllib.parse.urlencode(parameters).encode())

    def truth(self):
        return self._get("/sim/truth")

    def held(self):
        """{node: addresses}"""
        held = {node: set() for node in self.nodes}
        for one in self.truth()["addresses"]:
            held.setdefault(one["node"], set()).add(one["ip"])
        return held

    def calls(self, *actions):
        return [call for call in self.truth()["calls"] if not actions or call["action"] in actions]

    def given(self):
        """Addresses that were given out ever, once each time."""
        return [event["ip"] for event in self.truth()["events"] if not event["from"] and event["to"]]

    def check(self):
        expect_equal(self._get("/sim/check"), [], f"what contradicts itself in the cloud {self.name}")


ALLOCATIONS = ("AllocateSecondaryIp", "AllocateBatchSecondaryIp")


class Agent:
    """A node's agent, begun as UK8S begins it. It may be killed and begun again."""

    def __init__(self, cloud, node="node-a", low=3, high=50, flags=(), name=None):
        self.cloud, self.node, self.low, self.high, self.flags = cloud, node, low, high, list(flags)
        self.name = name or f"{cloud.name}-{node}"
        self.directory = cloud.world.directory / self.name
        self.directory.mkdir(exist_ok=True)
        self.socket = self.directory / "agent.sock"
        self.store = self.directory / "stock.db"
        self.metrics_port, self.port = free_ports(2)
        self.process = self.channel = None
        self.before = ()  # words before its command

    def command(self, low=None, high=None):
        return [self.cloud.world.bin / "cni-vpc-ipamd",
                f"-availablePodIPLowWatermark={self.low if low is None else low}",
                f"--availablePodIPHighWatermark={self.high if high is None else high}", "--node", self.node,
                "--socket", self.socket, "--store", f"sqlite:{self.store}", "--api", self.cloud.url,
                "--metadata", f"{self.cloud.url}/{self.node}", "--no-probe", "--log-directory", "none",
                "--metrics", f"127.0.0.1:{self.metrics_port}", *self.flags]

    def start(self):
        self.process = start_program(self.cloud.world, self.name, [*self.before, *self.command()])
        wait_for(self.answers, f"{self.name} answers", BEGINS)
        if "--listen" in self.flags:  # which may begin later
            wait_for(lambda: listens(("127.0.0.1", self.port)), f"{self.name} listens for its peers", BEGINS)
        return self

    def open_channel(self):
        return grpc.insecure_channel(f"unix:{self.socket}", options=(
            ("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 200), ("grpc.enable_http_proxy", 0)))

    def answers(self):
        if self.process.poll() is not None:
            raise Failure(f"{self.name} has ended:\n{self.process.tail()}")
        # A new channel each time: one that was refused waits before it tries again.
        if self.channel is not None:
            self.channel.close()
        self.channel = self.open_channel()
        try:
            self.call("Ping", timeout=5)
            return True
        except grpc.RpcError as error:
            return error.code() == grpc.StatusCode.FAILED_PRECONDITION  # it is there, and will not have us

    def kill(self):
        self.process.kill()

    def stop(self, seconds=15):
        self.process.end(seconds)

    def restart(self, **changes):
        """After a SIGTERM; with other marks or flags."""
        self.stop()
        for key, value in changes.items():
            setattr(self, key, value)
        return self.start()

    def method(self, name):
        return self.channel.unary_unary(f"/rpc.CNIIpam/{name}")

    def call(self, name, request=b"", timeout=20):
        return fields_of(self.method(name)(request, timeout=timeout))

    def add(self, sandbox, pod="", uid="", timeout=20):
        answer = self.call("AddPodNetwork", add_request(sandbox, pod, uid), timeout)
        expect_equal(answer.get(1, [0]), [0], f"code of ADD {sandbox}")
        network = network_of(answer[2][0])
        expect_equal((network["sandbox"], network["mac"].lower(), network["subnet"]),
                     (sandbox, self.cloud.nodes[self.node], SUBNET), f"ADD {sandbox}")
        return network["ip"]

    def start_add(self, sandbox, timeout=20):
        """A future of the answer."""
        return self.method("AddPodNetwork").future(add_request(sandbox), timeout=timeout)

    def delete(self, sandbox, ip="", timeout=20):
        answer = self.call("DelPodNetwork", field(1, field(1, f"pod-{sandbox}") + field(2, "default") + field(4, sandbox) +
                                                  field(6, ip)), timeout)
        expect_equal(answer.get(1, [0]), [0], f"code of DEL {sandbox}")

    def plugin(self, command, container, args=""):
        """A call of this build's plugin on the node: its exit code and its answer."""
        config = {"cniVersion": "1.0.0", "name": "demo", "type": "croft-vpc", "ipam": {
            "type": "croft-vpc", "agent": str(self.socket), "store": f"sqlite:{self.store}", "api": self.cloud.url,
            "metadata": f"{self.cloud.url}/{self.node}", "probe": False}}
        world = self.cloud.world
        done = run(world.bin / "croft-vpc", stdin=json.dumps(config), check=False, timeout=120,
                   env=call_environment(world, command, container, args, CROFT_LOG_DIRECTORY=str(self.directory)))
        return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None

    def plugin_add(self, container, args=""):
        code, answer = self.plugin("ADD", container, args)
        expect_equal(code, 0, f"ADD {container}: {answer}")
        return answer["ips"][0]["address"].split("/")[0]

    def plugin_delete(self, container, args=""):
        expect_equal(self.plugin("DEL", container, args), (0, None), f"DEL {container}")

    def last_call(self):
        """Of the plugin, by its log."""
        return (self.directory / "ipam.log").read_text().splitlines()[-1]

    def records(self, timeout=20):
        """{address: sandbox} of what pods hold."""
        found = {}
        for message in self.call("ListPodNetworkRecord", timeout=timeout).get(2, []):
            network = network_of(message)
            expect(network["ip"] not in found, f"{self.name} lists {network['ip']} twice")
            found[network["ip"]] = network["sandbox"]
        return found

    def pool(self):
        """What is free, and what cools."""
        answer = self.call("DescribePool")
        return tuple({network_of(message)["ip"] for message in answer.get(number, [])} for number in (2, 3))

    def unused(self):
        return {network_of(message)["ip"] for message in self.call("ListUnuse").get(2, [])}

    def free(self):
        return self.pool()[0]

    def figures(self):
        """Its metrics: {"name{labels}": value}."""
        with LOOPBACK.open(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and line[0] != "#"}

    def commits(self):
        return self.figures()["croft_stock_commits_total"]

    def known(self):
        """All that it has a record of or shows to the operator. No address may be in two of the sets."""
        held, (free, cooling), unused = set(self.records()), self.pool(), self.unused()
        whole = held | free | cooling | unused
        expect_equal(len(whole), len(held) + len(free) + len(cooling) + len(unused),
                     f"{self.name} has an address in two states: {held} {free} {cooling} {unused}")
        return whole

    def wait_for_free(self, count, seconds=SETTLED):
        wait_for(lambda: len(self.free()) == count, f"{self.name} has {count} free; it has {len(self.free())}", seconds)


def refusal(call, *arguments, **more):
    """The gRPC status and text of a call that has to fail."""
    try:
        got = call(*arguments, **more)
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise Failure(f"{call.__name__} {arguments} was served: {got}")


def settled(cloud, agents, unused=frozenset(), seconds=SETTLED):
    """Waits until the records of each agent are what the cloud gave to its node, and nothing but `unused` is left over
    (None: whatever is); then nothing may contradict itself."""
    said = ""

    def is_settled():
        nonlocal said
        try:
            return look()
        except grpc.RpcError as error:  # it does not know its cloud yet
            said = error.details()
            return False

    def look():
        nonlocal said
        truth = cloud.held()
        known = {agent.node: agent.known() for agent in agents}
        over = set().union(*(agent.unused() for agent in agents))
        said = "; ".join(f"{node}: the cloud has {sorted(truth[node] - mine)}, the agent {sorted(mine - truth[node])} more"
                         for node, mine in known.items() if truth[node] != mine) + f"; unused {sorted(over)}"
        return (unused is None or over == set(unused)) and all(truth[node] == mine for node, mine in known.items()) and \
            all(not addresses for node, addresses in truth.items() if node not in known)
    try:
        wait_for(is_settled, "settled", seconds)
    except Failure:
        raise Failure(f"{cloud.name} is not settled after {seconds} s: {said}") from None
    cloud.check()


class Certificates:
    """Of agents, made by the commands of the runbook."""

    def __init__(self, world, name, nodes):
        self.directory = pathlib.Path(world.directory) / name
        self.directory.mkdir(parents=True)
        page = pathlib.Path(__file__).parent.parent / "docs/runbooks/vpc-certificates.md"
        self.commands = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        self._run(self.commands[0])
        for node in nodes:
            self.make(node)

    def make(self, node):
        """A new certificate and key for a node."""
        self._run(self.commands[1], NODE=node)

    def _run(self, command, **variables):
        run("sh", "-ec", f'cd "$DIRECTORY"\n{command}', env={**os.environ, "DIRECTORY": str(self.directory), **variables})

    def flags(self, node):
        return ["--tls-ca", self.directory / "ca.crt", "--tls-certificate", self.directory / f"{node}.crt",
                "--tls-key", self.directory / f"{node}.key"]


def make_peers(agents, certificates):
    """Each may borrow from all others."""
    for agent in agents:
        agent.flags += ["--listen", f"127.0.0.1:{agent.port}", *certificates.flags(agent.node)]
        for other in agents:
            if other is not agent:
                agent.flags += ["--peer", f"{other.node}=127.0.0.1:{other.port}"]


def at_once(world, cases, lanes):
    """Runs functions of a World side by side, `lanes` at a time. The first failure ends all."""
    def serve(case):
        begin = time.monotonic()
        case(world)
        say(f"{case.__name__}: fine ({time.monotonic() - begin:.1f} s)")
    pool = concurrent.futures.ThreadPoolExecutor(lanes)
    running = {pool.submit(serve, case): case.__name__ for case in cases}
    for one in concurrent.futures.as_completed(running):
        if error := one.exception():
            pool.shutdown(wait=False, cancel_futures=True)
            for log in sorted(world.directory.glob(f"{running[one]}*.log")):
                say(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-30:]))
            raise Failure(f"{running[one]}: {error if isinstance(error, Failure) else repr(error)}") from error
