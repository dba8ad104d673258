"""A peer in the place of etcd whose answers are oversized or unreadable.

usage: etcd_hostile.py BIN_DIR [NAME...]

Each kind of answer is given to calls of the plugin, of the command line and of an agent. None of them may abort, take
much memory, print what the peer says as it is, go on beyond its time, or answer success to an ADD that no store has. The
agent ends when it is told to. Other wrong answers, slow and cut ones, and a good member beside: client_test.cc, http2_connection_test.cc,
silent_store.py.
"""

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from lib import Daemon, Ended, Failure, call_environment, expect, ipam_config, main, memory_of, say, skip
from protobuf import field, fields_of

try:
    import grpc
except ImportError:
    # Debian's package is for Debian's Python, which need not be the first in the path.
    if sys.executable != "/usr/bin/python3" and os.access("/usr/bin/python3", os.X_OK):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])
    grpc = None

ADD_MAX = 15.0  # seconds: an ADD's own limit
SLACK = 20.0    # of a machine that is busy
MIB_MAX = 300  # without the daemons' own libraries a tenth of it


# ---------------------------------------------------------------- answers of etcd

def header(revision=7, cluster=1):
    return field(1, field(1, cluster) + field(2, 1) + field(3, revision) + field(4, 2))


def record(key, value=b"v", revision=3, version=1):
    return field(1, key) + field(2, revision) + field(3, revision) + field(4, version) + field(5, value)


def range_answer(kvs=(), more=False, count=None, head=None):
    return ((head if head is not None else header()) + b"".join(field(2, kv) for kv in kvs)
            + (field(3, 1) if more else b"") + field(4, len(kvs) if count is None else count))


def asked(request):
    """The key of a Range, and whether it is of more than that one."""
    found = fields_of(request)
    return found[1][0], 2 in found


# ---------------------------------------------------------------- peers that speak gRPC


class Peer:
    """An etcd that has nothing and takes everything. Others differ from it where they are named."""

    def range(self, request):
        return range_answer()

    def txn(self, request):
        return header() + field(2, 1) + self.parts(request)

    def parts(self, request):
        parts = b""
        for op in fields_of(request).get(2, []):
            (kind, (inner,)), = fields_of(op).items()
            answer = {1: lambda i=inner: self.range(i), 2: lambda: b"", 3: lambda: b"", 4: lambda i=inner: self.txn(i)}
            parts += field(3, field(kind, answer[kind]()))
        return parts

    def watch(self, requests):
        for request in requests:
            for inner in fields_of(request).get(1, []):
                yield header() + field(2, fields_of(inner).get(7, [0])[0]) + field(3, 1)

    def serve(self):
        """The port."""
        class Everything(grpc.GenericRpcHandler):
            def service(_, details):
                name = details.method.rsplit("/", 1)[-1]
                if name == "Watch":
                    return grpc.stream_stream_rpc_method_handler(lambda requests, _: self.watch(requests))
                answer = {"Range": self.range, "Txn": self.txn}.get(name)
                return answer and grpc.unary_unary_rpc_method_handler(lambda request, _: answer(request))
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=16),
                             options=[("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)])
        server.add_generic_rpc_handlers((Everything(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.server = server  # it ends with whoever forgets it
        return port


class Garbage(Peer):
    def txn(self, request):
        return bytes(range(256)) * 100

    range = txn


class Values(Peer):
    """Whatever is asked for is there, and no record."""
    def range(self, request):
        key, is_list = asked(request)
        return range_answer([record(key + (b"10.0.0.0-26" if is_list else b""), b"\x1b]0;x\x07" * 1000)])


class BigValues(Peer):
    """What no record is, near the limit of one answer."""
    def range(self, request):
        key, is_list = asked(request)
        if not is_list:
            return range_answer([record(key, b"{" + b" " * (7 << 20) + b"}")])
        base = key.split(b"\x00")[0]
        return range_answer([record(base + b"%04d" % i, b"{" + b" " * (1 << 20) + b"}") for i in range(60)])


class EndlessList(Peer):
    """Every page is full, and there is more."""
    def range(self, request):
        key, is_list = asked(request)
        if not is_list:
            return range_answer()
        limit, start = min(fields_of(request).get(3, [500])[0], 500), time.monotonic_ns()
        base = key.split(b"\x00")[0]
        keys = [base + b"%020d" % (start + i) for i in range(limit)]
        return range_answer([record(k) for k in keys], more=True, count=1 << 40)


PEERS = {"endless-list": EndlessList, "big-values": BigValues, "garbage": Garbage, "values": Values}


# ---------------------------------------------------------------- calls

def check(name, ended, seconds_max):
    text = (ended.out + ended.err)[:2000]
    expect(ended.code >= 0, f"{name}: {ended.what} was ended by signal {-ended.code} after {ended.seconds:.1f} s: {text}")
    expect(ended.seconds < seconds_max, f"{name}: {ended.what} took {ended.seconds:.1f} s: {text}")
    expect(ended.mib < MIB_MAX, f"{name}: {ended.what} took {ended.mib:.0f} MiB")
    expect(len(ended.out + ended.err) < 1 << 20, f"{name}: {ended.what} printed {len(ended.out + ended.err)} bytes")


def plugin(world, store, op, node="oak"):
    return Ended([world.bin / "croft-ipam"], ipam_config(store, node, "1.1.0"), call_environment(world, op, "c1"))


def try_agent(world, name, store):
    path = world.directory / f"{name}.sock"
    agent = Daemon(world, name, world.bin / "croftd", "agent", "--store", store, "--socket", path, "--node", "oak")
    end = time.monotonic() + 3
    while time.monotonic() < end:
        expect(agent.poll() is None or agent.returncode >= 0, f"{name}: the agent ended by signal {agent.returncode}")
        time.sleep(0.2)
    if agent.poll() is not None:
        return  # it refuses to start
    mib = memory_of(agent.pid)
    begin = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    try:
        code = agent.wait(5 + SLACK)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"{name}: the agent does not end") from late
    if code == 1:
        return  # it was still asking, and refuses to start
    expect(code == 0, f"{name}: the agent ended with {code}")
    expect(mib < MIB_MAX, f"{name}: the agent took {mib:.0f} MiB")
    say(f"{name}: the agent took {mib:.0f} MiB and ended in {time.monotonic() - begin:.1f} s")


@contextlib.contextmanager
def served(name):
    """The port of a peer in a process of its own: one that floods would hold up who measures."""
    with subprocess.Popen([sys.executable, "-B", __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        try:
            yield int(peer.stdout.readline())
        finally:
            peer.kill()


def try_peer(world, name):
    with served(name) as port:
        store = f"etcd:http://127.0.0.1:{port}"
        # A list without end is read for as long as a command of the operator's may take, which is long.
        commands = [["pool", "show"], ["ip", "list"], ["check"], ["explain", "--node", "oak"]][:1 if name == "endless-list" else 4]
        with concurrent.futures.ThreadPoolExecutor(max_workers=8 if name == "endless-list" else 1) as pool:
            # Each of a node of its own: calls of one node take turns, and an ADD would wait for the whole time of a DEL.
            add, *others = [pool.submit(plugin, world, store, op, f"node-{op}".lower()) for op in ("ADD", "DEL", "STATUS")]
            asked = [pool.submit(Ended, [world.bin / "croft", "--store", store, *command]) for command in commands]
            add = add.result()
        for ended in (add, *(one.result() for one in others)):
            check(name, ended, ADD_MAX + SLACK)
        for one in asked:
            check(name, one.result(), 45 + SLACK)
        answer = json.loads(add.out)
        expect(add.code == 1 and "code" in answer, f"{name}: ADD was answered with {add.out[:500]}")
        expect("\x1b" not in add.out.decode(), f"{name}: ADD prints an escape: {add.out[:500]}")
        say(f"{name}: {add.code}, {add.seconds:.1f} s, {add.mib:.0f} MiB: {answer.get('code')} "
            f"{answer.get('msg', '')[:60]} {answer.get('details', '')[:160]}")
        try_agent(world, name, store)


def test(world):
    if grpc is None:
        skip("not installed: python3-grpcio (scripts/setup installs it)")
    names = sys.argv[2:] or list(PEERS)
    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        tries = [pool.submit(try_peer, world, name) for name in names]
        for done in tries:
            done.result()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        print(PEERS[sys.argv[2]]().serve(), flush=True)
        sys.stdin.read()
    else:
        main(test, 280)
