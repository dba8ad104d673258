"""`croft vpc` and `cnivpctl` against agents of several nodes: choices, confirmations, a dead or slow agent. Tables and data: vpc_commands_test.cc.
The agents are ours, of Python's gRPC and docs/notes/warm-pool.md#grpc."""

import concurrent.futures
import json
import os
import socket
import time

from lib import expect, expect_equal, main, run, say
import protobuf
from vpc_lib import field, fields_of, grpc

MANY = 25  # agents, more than are asked at once
SLOW = 0.7  # seconds that a slow agent takes


def pod_network(ip, age=77000, recycled=False, name="", namespace=""):
    now = int(time.time())
    made = field(1, name) + field(2, namespace) + field(6, ip) + field(8, "subnet-1") + protobuf.field(15, now - age)
    return made + (protobuf.field(16, now - age) + protobuf.field(17, 1) if recycled else b"")


def asked_for(request):
    return [address.decode() for address in fields_of(request).get(1, [])]


class Agent:
    """A node's agent with a stock of its own."""

    def __init__(self, node, pool=(), cooling=(), pods=(), unused=(), in_use=(), slow=0.0):
        self.node, self.slow = node, slow
        self.pool, self.cooling, self.pods = list(pool), list(cooling), list(pods)
        self.unused, self.in_use = list(unused), list(in_use)
        self.released = []
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
                serve = {f"/rpc.CNIIpam/{name}": method for name, method in (
                    ("DescribePool", agent.describe), ("ListPodNetworkRecord", agent.list_pods), ("ListUnuse", agent.list_unused),
                    ("PopPool", agent.pop), ("PushPool", agent.push), ("ReleaseIP", agent.release))}.get(details.method)

                def call(request, context):
                    time.sleep(agent.slow)
                    return serve(request, context)
                return serve and grpc.unary_unary_rpc_method_handler(call)
        return Everything()

    def describe(self, _request, _context):
        return b"".join(field(2, pod_network(ip, recycled=i % 2 == 0)) for i, ip in enumerate(self.pool)) + \
            b"".join(field(3, pod_network(ip, 99, True)) for ip in self.cooling)

    def list_pods(self, _request, _context):
        return b"".join(field(2, pod_network(ip, 390, name=name, namespace=space)) for space, name, ip in self.pods)

    def list_unused(self, _request, _context):
        on_its_way = pod_network("10.9.0.50") + field(110, "it is being given back, and the cloud has not confirmed that")
        return b"".join(field(2, one) for one in (on_its_way, *map(pod_network, self.unused)))

    def pop(self, request, context):
        asked = asked_for(request)
        if not self.pool or (asked and asked[0] not in self.pool):
            context.abort(grpc.StatusCode.INTERNAL, "the pool has none")
        ip = asked[0] if asked else self.pool[0]
        self.pool.remove(ip)
        return field(2, pod_network(ip))

    def push(self, request, _context):
        ip = (asked_for(request) or ["10.9.9.9"])[0]
        if ip not in self.pool:
            self.pool.append(ip)
        return field(2, pod_network(ip))

    def release(self, request, context):
        for ip in asked_for(request):
            if ip in self.in_use:
                context.abort(grpc.StatusCode.INTERNAL, f"{ip} is in use")
            self.unused = [other for other in self.unused if other != ip]
            self.released.append(ip)
        return b""


class Cluster:
    def __init__(self, world):
        self.world = world
        # The name decides: a link, as an installation has it.
        self.cnivpctl_path = world.directory / "cnivpctl"
        os.symlink(world.bin / "croft", self.cnivpctl_path)
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

    def _run(self, words, stdin):
        done = run(*words, stdin=stdin, check=False)
        return done.returncode, done.stdout, done.stderr

    def flags(self, agents):
        return [word for agent in agents or self.agents for word in ("--agent", f"{agent.node}={agent.address}")]

    def cnivpctl(self, *words, stdin="", agents=None):
        """Exit code, standard output, standard error; the flags come before the verbs."""
        return self._run([self.cnivpctl_path, *self.flags(agents), *words], stdin)

    def croft(self, *words, stdin="", agents=None):
        return self._run([self.world.bin / "croft", "vpc", *words, *self.flags(agents)], stdin)


def lists(cluster):
    for names in (("node", "no", "nodes"), ("pod", "po", "pods"), ("unuse",), ("pool",)):
        for name in names:
            expect_equal(cluster.cnivpctl("get", name)[0], 0, f"get {name}")
    expect_equal(cluster.cnivpctl("get", "pod", "1.7")[1],
                 "NAMESPACE    NAME   IP        AGE  \nkube-system  dns-1  10.9.1.7  6m   \n", "an ID filters by a part of the address")
    for words in (("-n", "10.0.0.9", "get", "pool"), ("get", "pool", "-n", "10.0.0.9")):
        rows = [line.split()[0] for line in cluster.cnivpctl(*words)[1].splitlines()]
        expect_equal(rows, ["IP", "10.9.0.3", "10.9.0.20", "10.9.0.100"], "flags may come before the verb and after it; what cools is listed too")
    one = {"Node": "10.0.0.9", "IP": "10.9.0.70", "SubnetID": "subnet-1"}
    expect_equal(json.loads(cluster.cnivpctl("get", "unuse", "0.70", "-o", "json")[1]), one, "one record is an object")
    expect_equal(json.loads(cluster.croft("get", "unuse", "0.70", "-o", "json")[1]), [one], "croft prints an array always")
    expect("given back" in cluster.croft("get", "unuse", "0.50")[1], "what is on its way is listed, and not released with all")
    for words in (("pod", "nope"), ("unuse", "nope", "-o", "json")):
        expect_equal(cluster.cnivpctl("get", *words), (0, "No record\n", ""), "nothing left")
    expect_equal(cluster.cnivpctl("get", "pool", "-n", "x"), (1, 'error: Could not find node "x"\n', ""), "no such node")
    for words, said in ((("get", "pool", "-o", "xml"), "error: Unknown output"), (("frobnicate",), "error: ")):
        code, out, err = cluster.cnivpctl(*words)
        expect(code == 1 and out.startswith(said) and not err, f"{words}: {code} {out} {err}")


def pop_and_push(cluster):
    refusal = "rpc error: code = Internal desc = the pool has none\n"
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9", "10.9.0.3"), (0, "Pop IP: 10.9.0.3\n", ""), "pop one")
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9", "10.9.0.3"), (1, f"error: {refusal}", ""), "pop it again")
    expect_equal(cluster.cnivpctl("pop", "10.0.0.9"), (0, "Pop IP: 10.9.0.20\n", ""), "pop any")
    expect_equal(cluster.croft("pop", "10.0.0.9"), (1, "", f"croft: {refusal}"), "an empty pool, in croft's manner")
    expect_equal((cluster.croft("push", "10.0.0.9", "--dry-run")[0], cluster.a.pool), (0, []), "a dry run does nothing")
    for _ in range(2):
        expect_equal(cluster.cnivpctl("push", "10.0.0.9", "10.9.0.3"), (0, "Push IP: 10.9.0.3\n", ""), "push, and again")
    expect_equal((cluster.croft("pop", "10.0.0.9", "--dry-run")[0], cluster.a.pool), (0, ["10.9.0.3"]), "pushed once")
    expect_equal(cluster.cnivpctl("push", "10.0.0.9"), (0, "Push IP: 10.9.9.9\n", ""), "push any")
    expect_equal((cluster.cnivpctl("pop", "10.0.0.9", "10.9")[0], cluster.croft("pop", "10.0.0.9", "10.9")[0]), (1, 2), "half an address")


def release(cluster):
    question = "About to release:\n10.9.0.8\n10.9.0.70\nContinue? (y/n) "
    for answer in ("", "n\n", "yes\n", "Y\n", " y\n"):
        expect_equal(cluster.cnivpctl("release", "10.0.0.9", stdin=answer), (1, question, ""), f"answer {answer!r}")
    expect_equal(cluster.croft("release", "10.0.0.9", "--dry-run")[:2], (0, "Would release:\n10.9.0.8\n10.9.0.70\n"), "dry")
    expect_equal(cluster.a.released, [], "nothing was released")
    code, out, _ = cluster.cnivpctl("release", "10.0.0.9", "10.9.0.4", stdin="y\n")
    expect(code == 1 and out.endswith("error: rpc error: code = Internal desc = 10.9.0.4 is in use\n"), f"in use: {out}")
    code, out, _ = cluster.cnivpctl("release", "10.0.0.9", "10.9.0.8", stdin="y\n")
    expect_equal((code, out, cluster.a.released), (0, 'Are you sure to release "10.9.0.8"? (y/n) ', ["10.9.0.8"]), "y")
    expect_equal(cluster.cnivpctl("release", "10.0.0.9", "-y"),
                 (0, "About to release:\n10.9.0.70\nDone, released 1 IP(s)\n", ""), "-y")
    expect_equal(cluster.cnivpctl("release", "10.0.0.9"), (0, "No IP to release\n", ""), "nothing to do")


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
    for flags, said in ((("--agent", "a=10.0.0.1:1", "--agent", "a=10.0.0.2:1"), "has two"), (("--agent", "a=localhost:7312"), "address of an agent")):
        done = run(cluster.cnivpctl_path, *flags, "get", "node", check=False)
        expect(done.returncode == 1 and said in done.stdout, f"{flags}: {done.stdout}")


def test(world):
    cluster = Cluster(world)
    for part in (lists, pop_and_push, release, dead_and_slow, words):
        part(cluster)
        say(f"{part.__name__}: fine")


main(test)
