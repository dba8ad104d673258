"""`croft vpc` and `cnivpctl` against agents of several nodes: tables, choices, confirmations, and an agent that is dead or slow.

The agents are ours, of Python's gRPC and bytes that are written here by hand from docs/notes/warm-pool.md#grpc.

usage: vpc_commands.py BIN_DIR
"""

import concurrent.futures
import json
import os
import socket
import sys
import time

from lib import World, expect, expect_equal, main, run, say

try:
    import grpc
except ImportError:
    say("skipped: python3-grpcio is not installed")
    sys.exit(77)

MANY = 25  # agents, more than are asked at once
SLOW = 0.7  # seconds that a slow agent takes


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def text(number, value):
    value = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def number_of(number, value):
    return varint(number << 3) + varint(value)


def texts_in(request, wanted):
    """The texts of a field in a request that has only texts."""
    found, at = [], 0
    while at < len(request):
        tag, length = request[at], request[at + 1]
        value = request[at + 2:at + 2 + length]
        if tag == wanted << 3 | 2:
            found.append(value.decode())
        at += 2 + length
    return found


def pod_network(ip, age=77000, recycled=False, name="", namespace=""):
    now = int(time.time())
    made = text(1, name) + text(2, namespace) + text(6, ip) + text(8, "subnet-1") + number_of(15, now - age)
    return made + (number_of(16, now - age) + number_of(17, 1) if recycled else b"")


class Agent:
    """A node's agent with a stock of its own."""

    def __init__(self, node, pool=(), cooling=(), pods=(), unused=(), in_use=(), slow=0.0):
        self.node, self.slow = node, slow
        self.pool, self.cooling, self.pods = list(pool), list(cooling), list(pods)
        self.unused, self.in_use = list(unused), list(in_use)
        self.released = []
        self.calls = []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
        self.server.add_generic_rpc_handlers((self.handlers(),))

    def listen(self, where):
        port = self.server.add_insecure_port(where)
        self.server.start()
        self.address = where if where.startswith("unix:") else f"127.0.0.1:{port}"
        return self

    def handlers(self):
        agent = self

        class Everything(grpc.GenericRpcHandler):
            def service(self, details):
                service, method = details.method.rsplit("/", 1)
                serve = {"DescribePool": agent.describe, "ListPodNetworkRecord": agent.list_pods,
                         "ListUnuse": agent.list_unused, "PopPool": agent.pop, "PushPool": agent.push,
                         "ReleaseIP": agent.release}.get(method)
                if service != "/rpc.CNIIpam" or serve is None:
                    return None

                def call(request, context):
                    agent.calls.append(method)
                    time.sleep(agent.slow)
                    return serve(request, context)
                return grpc.unary_unary_rpc_method_handler(call)
        return Everything()

    def describe(self, _request, _context):
        return b"".join(text(2, pod_network(ip, recycled=i % 2 == 0)) for i, ip in enumerate(self.pool)) + \
            b"".join(text(3, pod_network(ip, 99, True)) for ip in self.cooling)

    def list_pods(self, _request, _context):
        return b"".join(text(2, pod_network(ip, 390, name=name, namespace=space)) for space, name, ip in self.pods)

    def list_unused(self, _request, _context):
        return b"".join(text(2, pod_network(ip)) for ip in self.unused)

    def pop(self, request, context):
        asked = texts_in(request, 1)
        if not self.pool or (asked and asked[0] not in self.pool):
            context.abort(grpc.StatusCode.INTERNAL, "the pool has none")
        ip = asked[0] if asked else self.pool[0]
        self.pool.remove(ip)
        return text(2, pod_network(ip))

    def push(self, request, _context):
        ip = (texts_in(request, 1) or ["10.9.9.9"])[0]
        if ip not in self.pool:
            self.pool.append(ip)
        return text(2, pod_network(ip))

    def release(self, request, context):
        for ip in texts_in(request, 1):
            if ip in self.in_use:
                context.abort(grpc.StatusCode.INTERNAL, f"{ip} is in use")
            self.unused = [other for other in self.unused if other != ip]
            self.released.append(ip)
        return b""


class Cluster:
    def __init__(self, world):
        self.world = world
        folder = world.directory / "bin"
        folder.mkdir()
        # The name decides: a link, as an installation has it.
        os.symlink(world.bin / "croft", folder / "cnivpctl")
        self.cnivpctl_path = folder / "cnivpctl"
        self.a = self.add(Agent("10.0.0.9", pool=["10.9.0.20", "10.9.0.3"], cooling=["10.9.0.100"],
                                pods=[("shop", "cart-0", "10.9.0.4")], unused=["10.9.0.70", "10.9.0.8"],
                                in_use=["10.9.0.4"]), f"unix:{world.directory}/a.sock")
        self.b = self.add(Agent("10.0.0.10", pool=["10.9.1.1"], pods=[("kube-system", "dns-1", "10.9.1.7")], slow=SLOW),
                          "127.0.0.1:0")
        self.agents = [self.a, self.b]

    def add(self, agent, where):
        agent.listen(where)
        self.world.stack.callback(lambda: agent.server.stop(0).wait())
        return agent

    def flags(self, agents=None):
        return [word for agent in agents or self.agents for word in ("--agent", f"{agent.node}={agent.address}")]

    def cnivpctl(self, *words, stdin="", agents=None):
        """Exit code, standard output, standard error; the flags come before the verbs."""
        done = run(self.cnivpctl_path, *self.flags(agents), *words, stdin=stdin, check=False)
        return done.returncode, done.stdout, done.stderr

    def croft(self, *words, stdin="", agents=None):
        done = run(self.world.bin / "croft", "vpc", *words, *self.flags(agents), stdin=stdin, check=False)
        return done.returncode, done.stdout, done.stderr


def lists(cluster):
    expect_equal(cluster.cnivpctl("get", "node"),
                 (0, "NODE       SUBNET    POOL  \n"
                     "10.0.0.9   subnet-1  2     \n"
                     "10.0.0.10  subnet-1  1     \n", ""), "get node")
    pool = ("IP          RECYCLED  COOLDOWN  AGE  \n"
            "10.9.0.3    <none>    false     21h  \n"
            "10.9.0.20   21h       false     21h  \n")
    code, out, err = cluster.cnivpctl("-n", "10.0.0.9", "get", "pool")
    expect_equal((code, err), (0, ""), "get pool")
    expect(out.startswith(pool), f"get pool: {out}")
    expect(out.splitlines()[3].startswith("10.9.0.100  9"), f"what cools is listed too: {out}")
    expect_equal(cluster.cnivpctl("get", "pool", "-n", "10.0.0.9")[1].splitlines()[:3], out.splitlines()[:3],
                 "flags may come after the verb")
    wide = cluster.cnivpctl("get", "pool", "-owide")[1].splitlines()
    expect_equal((wide[0].split(), wide[-1].split()),
                 (["IP", "RECYCLED", "COOLDOWN", "AGE", "NODE"], ["10.9.1.1", "21h", "false", "21h", "10.0.0.10"]),
                 "-owide")
    pods = ("NAMESPACE    NAME    IP        AGE  \n"
            "shop         cart-0  10.9.0.4  6m   \n"
            "kube-system  dns-1   10.9.1.7  6m   \n")
    for name in ("pod", "pods", "po"):
        expect_equal(cluster.cnivpctl("get", name), (0, pods, ""), f"get {name}")
    for name in ("no", "nodes"):
        expect_equal(cluster.cnivpctl("get", name)[0], 0, f"get {name}")
    expect_equal(cluster.cnivpctl("get", "unuse"), (0, "IP         SUBNET    \n"
                                                       "10.9.0.8   subnet-1  \n"
                                                       "10.9.0.70  subnet-1  \n", ""), "get unuse")
    expect_equal(cluster.cnivpctl("get", "pod", "1.7")[1].count("\n"), 2, "an ID filters by a part of the address")
    expect_equal(cluster.cnivpctl("get", "pod", "nope"), (0, "No record\n", ""), "nothing left")
    expect_equal(cluster.cnivpctl("get", "pool", "-n", "x"), (1, 'error: Could not find node "x"\n', ""), "no such node")
    code, out, err = cluster.cnivpctl("get", "pool", "-o", "xml")
    expect(code == 1 and out.startswith("error: Unknown output") and not err, f"-o xml: {code} {out} {err}")
    code, out, err = cluster.cnivpctl("frobnicate")
    expect(code == 1 and out.startswith("error: ") and out.count("\n") == 1 and not err, f"usage: {code} {out} {err}")


def data(cluster):
    one = json.loads(cluster.cnivpctl("get", "unuse", "0.70", "-o", "json")[1])
    expect_equal(one, {"Node": "10.0.0.9", "IP": "10.9.0.70", "SubnetID": "subnet-1"}, "one record is an object")
    expect_equal([r["IP"] for r in json.loads(cluster.cnivpctl("get", "unuse", "-ojson")[1])],
                 ["10.9.0.8", "10.9.0.70"], "several are an array")
    expect_equal(cluster.cnivpctl("get", "unuse", "nope", "-o", "json"), (0, "No record\n", ""), "none")
    yaml = 'Node: "10.0.0.9"\n"IP": "10.9.0.70"\nSubnetID: "subnet-1"\n'
    for form in ("yaml", "yml"):
        expect_equal(cluster.cnivpctl("get", "unuse", "0.70", "-o", form), (0, yaml, ""), form)
    code, out, err = cluster.croft("get", "unuse", "0.70", "-o", "json")
    expect_equal((code, json.loads(out), err), (0, [one], ""), "croft prints an array always")
    expect_equal(sorted(json.loads(cluster.croft("get", "node", "-o", "json")[1])[0]), ["addr", "name", "pool", "subnet"],
                 "keys of a node")


def pop_and_push(cluster):
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9", "10.9.0.3"), (0, "Pop IP: 10.9.0.3\n", ""), "pop one")
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9", "10.9.0.3"),
                 (1, "error: rpc error: code = Internal desc = the pool has none\n", ""), "pop it again")
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9"), (0, "Pop IP: 10.9.0.20\n", ""), "pop any")
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9")[0], 1, "pop from an empty pool")
    code, out, err = cluster.croft("pop", "10.0.0.9")
    expect_equal((code, out, err), (1, "", "croft: rpc error: code = Internal desc = the pool has none\n"), "croft's manner")
    expect_equal(cluster.croft("push", "10.0.0.9", "--dry-run")[0], 0, "push --dry-run")
    expect_equal(cluster.a.pool, [], "which does nothing")
    for _ in range(2):
        expect_equal(cluster.cnivpctl("push", "10.0.0.9", "10.9.0.3"), (0, "Push IP: 10.9.0.3\n", ""), "push, and again")
    expect_equal(cluster.a.pool, ["10.9.0.3"], "pushed once")
    expect_equal(cluster.croft("pop", "10.0.0.9", "--dry-run")[0], 0, "pop --dry-run")
    expect_equal(cluster.a.pool, ["10.9.0.3"], "which does nothing")
    expect_equal(cluster.cnivpctl("push", "10.0.0.9"), (0, "Push IP: 10.9.9.9\n", ""), "push any")
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9", "10.9")[0], 1, "half an address")
    expect_equal(cluster.croft("pop", "10.0.0.9", "10.9")[0], 2, "half an address, croft's exit code")


def release(cluster):
    question = "About to release:\n10.9.0.8\n10.9.0.70\nContinue? (y/n) "
    for answer in ("", "n\n", "yes\n", "Y\n", " y\n"):
        expect_equal(cluster.cnivpctl("release", "10.0.0.9", stdin=answer), (1, question, ""), f"answer {answer!r}")
        code, out, _ = cluster.cnivpctl("release", "10.0.0.9", "10.9.0.8", stdin=answer)
        expect_equal((code, out), (1, 'Are you sure to release "10.9.0.8"? (y/n) '), f"answer {answer!r}")
    expect_equal(cluster.a.released, [], "nothing was released")
    expect_equal(cluster.croft("release", "10.0.0.9", "--dry-run")[:2], (0, "Would release:\n10.9.0.8\n10.9.0.70\n"), "dry")
    code, out, _ = cluster.cnivpctl("release", "10.0.0.9", "10.9.0.4", stdin="y\n")
    expect(code == 1 and out.endswith("error: rpc error: code = Internal desc = 10.9.0.4 is in use\n"), f"in use: {out}")
    code, out, _ = cluster.cnivpctl("release", "10.0.0.9", "10.9.0.8", stdin="y\n")
    expect_equal((code, out, cluster.a.released), (0, 'Are you sure to release "10.9.0.8"? (y/n) ', ["10.9.0.8"]), "y")
    expect_equal(cluster.cnivpctl("release", "10.0.0.9", "-y"),
                 (0, "About to release:\n10.9.0.70\nDone, released 1 IP(s)\n", ""), "-y")
    expect_equal(cluster.cnivpctl("release", "10.0.0.9"), (0, "No IP to release\n", ""), "nothing to do")
    expect_equal(cluster.cnivpctl("get", "unuse", "-n", "10.0.0.9"), (0, "No record\n", ""), "nothing listed")


def dead_and_slow(cluster):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, not listening: refused
        dead = Agent("10.0.0.5")
        dead.address = f"127.0.0.1:{closed.getsockname()[1]}"
        agents = [dead, *cluster.agents]
        code, out, err = cluster.cnivpctl("get", "pod", agents=agents)
        expect_equal((code, out.count("\n")), (1, 3), f"the rest is printed: {out} {err}")
        expect(err.startswith("warning: node 10.0.0.5: rpc error: code = Unavailable desc = ") and err.count("\n") == 1,
               f"a warning: {err}")
        code, out, err = cluster.croft("get", "pod", agents=agents)
        expect(code == 1 and "cart-0" in out and err.startswith("croft: warning: node 10.0.0.5: "), f"croft: {out} {err}")
        code, out, err = cluster.cnivpctl("get", "pod", "-n", "10.0.0.5", agents=agents)
        expect(code == 1 and out.startswith("error: rpc error: code = Unavailable") and not err, f"alone: {out} {err}")
        expect_equal(cluster.croft("get", "pod", "-n", "10.0.0.5", agents=agents)[0], 4, "alone, croft's exit code")
    many = [cluster.add(Agent(f"10.1.0.{i}", pool=["10.9.2.1"], slow=SLOW), "127.0.0.1:0") for i in range(MANY)]
    begin = time.monotonic()
    code, out, _ = cluster.cnivpctl("get", "node", agents=many)
    took = time.monotonic() - begin
    expect_equal((code, out.count("\n")), (0, MANY + 1), "many agents")
    expect(took < SLOW * MANY / 2, f"{MANY} agents were asked one after the other: {took:.1f} s")


def words(cluster):
    done = run(cluster.cnivpctl_path, "version")
    expect_equal([line.split(":")[0] for line in done.stdout.splitlines()],
                 ["CNI Version", "Go Version", "OS/Arch", "Build Time", "Commit"], "version")
    for flag in ("-h", "--help", "--version"):
        expect_equal(run(cluster.cnivpctl_path, flag, check=False).returncode, 0, flag)
    twice = run(cluster.cnivpctl_path, "--agent", "a=10.0.0.1:1", "--agent", "a=10.0.0.2:1", "get", "node", check=False)
    expect(twice.returncode == 1 and "has two" in twice.stdout, f"two agents of one node: {twice.stdout}")
    named = run(cluster.cnivpctl_path, "--agent", "a=localhost:7312", "get", "node", check=False)
    expect(named.returncode == 1 and "address of an agent" in named.stdout, f"a name: {named.stdout}")


def test():
    with World("vpc", sys.argv[1]) as world:
        cluster = Cluster(world)
        for part in (lists, data, pop_and_push, release, dead_and_slow, words):
            part(cluster)
            say(f"{part.__name__}: fine")


main(test)
