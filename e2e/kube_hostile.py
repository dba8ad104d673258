"""Something that takes the place of a Kubernetes API server and answers too much, or with what forges lines.

usage: kube_hostile.py BIN_DIR [NAME...]

To whatever it is asked it answers as much as is taken, in forms that cost a reader the most: lists of many small
objects, one object of many values, a text without end, lists of many small pages that never end. The plugin and the command line must end with an error, in their
time, and take no more memory than is said in docs/limits.md. What names, values and messages have in them never begins
a line of an output or of a log, and no control character gets to a terminal.
"""

import json
import socket
import struct
import sys
import threading

from lib import Ended, World, call_environment, expect, ipam_config, main, say

MIB = 1 << 20
MUCH = 80 * MIB  # above every bound of a client's
PLUGIN_MIB_MAX = 130
CROFT_MIB_MAX = 130
SECONDS_MAX = 45 + 20

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, ACK = 1, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Connection:
    """One client's HTTP/2 without encryption: as much of it as a client of ours needs."""

    def __init__(self, sock, body_of):
        self.sock, self.body_of = sock, body_of
        self.lock = threading.Condition()
        self.window, self.first_window = 65535, 65535
        self.streams = {}
        self.open = True

    def send(self, data):
        with self.lock:
            self.sock.sendall(data)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise ConnectionError("the client has gone")
            data += part
        return data

    def serve(self):
        try:
            self.exactly(24)
            self.send(frame(SETTINGS, 0, 0))
            while True:
                head = self.exactly(9)
                size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
                self.take(kind, flags, stream, self.exactly(size))
        except OSError:
            pass
        finally:
            with self.lock:
                self.open = False
                self.lock.notify_all()
            self.sock.close()

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            with self.lock:
                for at in range(0, len(payload), 6):
                    name, value = struct.unpack(">HI", payload[at:at + 6])
                    if name == 4:
                        for known in self.streams:
                            self.streams[known] += value - self.first_window
                        self.first_window = value
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            with self.lock:
                more = int.from_bytes(payload, "big")
                if stream == 0:
                    self.window += more
                elif stream in self.streams:
                    self.streams[stream] += more
                self.lock.notify_all()
        elif kind == RST_STREAM:
            with self.lock:
                self.streams.pop(stream, None)
                self.lock.notify_all()
        elif kind == HEADERS:
            with self.lock:
                self.streams[stream] = self.first_window
            threading.Thread(target=self.answer, args=(stream,), daemon=True).start()

    def answer(self, stream):
        try:
            status, body = self.body_of()
            self.send(frame(HEADERS, 4, stream, bytes([status])))
            for piece in body:
                while piece:
                    with self.lock:
                        while self.open and stream in self.streams and min(self.window, self.streams[stream]) <= 0:
                            self.lock.wait()
                        if not self.open or stream not in self.streams:
                            return
                        size = min(self.window, self.streams[stream], 16384, len(piece))
                        self.window -= size
                        self.streams[stream] -= size
                        self.sock.sendall(frame(DATA, 0, stream, piece[:size]))
                    piece = piece[size:]
            self.send(frame(DATA, END_STREAM, stream))
        except OSError:
            pass


class Server:
    def __init__(self, body_of):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.body_of = body_of
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=Connection(sock, self.body_of).serve, daemon=True).start()

    def stop(self):
        self.listener.close()


def repeated(head, piece, tail, size=MUCH):
    """A body of about `size`, as pieces."""
    many = piece * max(1, 65536 // len(piece))
    yield head
    for _ in range(size // len(many)):
        yield many
    yield piece.rstrip(b",") + tail


META = b'"metadata":{"name":"a","uid":"u","resourceVersion":"7"'
LIST = (b'{"kind":"IPPoolList","apiVersion":"crd.projectcalico.org/v1","metadata":{"resourceVersion":"7"},'
        b'"items":[')
BODIES = {
    # What no client may read to its end.
    "endless text": lambda: repeated(b'{"kind":"X",' + META + b'},"spec":"', b"x" * 1000, b'"}'),
    "endless list of nothing": lambda: repeated(LIST, b"{},", b"]}"),
    "endless list of objects": lambda: repeated(LIST, b'{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":{}},', b"]}"),
    "endless values": lambda: repeated(b'{"kind":"X",' + META + b'},"spec":[', b"0,", b"]}"),
    # What is within the bounds of bytes, just so.
    "16 MB of objects": lambda: repeated(LIST, b'{"metadata":{"name":"a","resourceVersion":"7"}},', b"]}", 16_000_000),
}


FORGED = "x\\n\\nFORGED \\r\\u001b[2J\\u009b\\u2028FORGED"
OBJECT = ('{"apiVersion":"v1","kind":"IPPool","metadata":{"name":"NAME","uid":"u","resourceVersion":"7",'
          '"labels":{"NAME":"NAME"},"annotations":{"NAME":"NAME"}},"spec":{"cidr":"CIDR","blockSize":26,'
          '"handleID":"NAME","affinity":"host:NAME","node":"NAME","nodeSelector":"all()","allocations":["NAME"],'
          '"attributes":[{"handle_id":"NAME","secondary":{"pod":"NAME"}}]}}').replace("NAME", FORGED)
STATUS = ('{"kind":"Status","apiVersion":"v1","status":"Failure","message":"NAME","reason":"NAME",'
          '"details":{"name":"NAME","causes":[{"message":"NAME","field":"NAME"}]}}').replace("NAME", FORGED)
OK, BAD_REQUEST, INTERNAL = 0x88, 0x8C, 0x8E  # :status of 200, 400, 500 in HPACK's static table
FORGERIES = {
    "forged pools": (OK, LIST.decode() + OBJECT.replace("CIDR", "10.0.0.0/24") + "]}"),
    "forged damage": (OK, LIST.decode() + OBJECT.replace("CIDR", "10.0.0.0/24" + FORGED) + "]}"),
    "forged objects": (OK, OBJECT.replace("CIDR", "10.0.0.0/26")),
    "forged refusal": (BAD_REQUEST, STATUS),
    "forged failure": (INTERNAL, STATUS),
    "forged words": (BAD_REQUEST, "FORGED \x1b[2J\nFORGED"),
}


def expect_no_forgery(name, what, data):
    text = data.decode(errors="surrogateescape")
    for line in text.split("\n"):
        expect(not line.lstrip().startswith("FORGED"), f"{name}: {what}: a line is forged: {text[:2000]!r}")
    odd = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029"]
    expect(not odd, f"{name}: {what}: {odd[:5]!r} in {text[:2000]!r}")


def plugin(world, store, command):
    return Ended([world.bin / "croft-ipam"], ipam_config(store, "oak", "1.1.0"),
                 call_environment(world, command, "c1", CROFT_LOG_DIRECTORY=str(world.directory / "log")), SECONDS_MAX)


def kubeconfig_of(world, server):
    path = world.directory / "kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
        "users": [{"name": "u", "user": {}}]}))
    path.chmod(0o600)
    return f"kube:{path}"


COMMANDS = (("ip", "list"), ("pool", "list"), ("check",), ("block", "list"), ("explain", "--node", "oak"), ("pool", "defaults"),
            ("node", "list"), ("pool", "show"), ("ip", "show", "10.0.0.1"), ("block", "show", "10.0.0.0/26"), ("node", "show", "oak"),
            ("config", "show"), ("service", "list"))


def test_of_much(world, name):
    server = Server(lambda: (OK, BODIES[name]()))
    store = kubeconfig_of(world, server)
    calls = [("plugin", "ADD", plugin(world, store, "ADD"))]
    for command in (("check",), ("pool", "defaults")):  # lists of all kinds, and single objects
        calls.append(("croft", " ".join(command), Ended([world.bin / "croft", "--store", store, *command], limit=SECONDS_MAX)))
    server.stop()
    for who, what, done in calls:
        say(f"{name}: {what}: {done.code}, {done.seconds:.1f} s, {done.mib:.0f} MiB: "
            f"{(done.out if who == 'plugin' else done.err)[:200].decode(errors='replace')}")
        expect(done.code >= 0, f"{name}: {what}: ended by signal {-done.code}, after {done.seconds:.0f} s")
        expect(done.code != 0, f"{name}: {what}: that is no register: {done.out[:300]}")
    return [(who, done.mib) for who, _, done in calls]


def test_of_forgery(world, name):
    status, body = FORGERIES[name]
    server = Server(lambda: (status, [body.encode()]))
    store = kubeconfig_of(world, server)
    for op in ("ADD", "DEL", "STATUS"):
        done = plugin(world, store, op)
        expect_no_forgery(name, op, done.out)
        expect_no_forgery(name, op, done.err)
    for command in COMMANDS:
        for form in ((), ("--output", "json")):
            done = Ended([world.bin / "croft", "--store", store, *form, *command], limit=SECONDS_MAX)
            expect_no_forgery(name, " ".join(command), done.out)
            expect_no_forgery(name, " ".join(command), done.err)
    server.stop()
    for log in (world.directory / "log").glob("*"):
        expect_no_forgery(name, "log", log.read_bytes())
    if status != OK:  # else it may have been refused for something else
        expect(any(b"FORGED" in log.read_bytes() for log in (world.directory / "log").glob("*")), f"{name}: it is logged")
    say(f"{name}: no line is forged")


def test():
    with World("kube-hostile", sys.argv[1]) as world:
        worst = {"plugin": 0.0, "croft": 0.0}
        for name in sys.argv[2:] or [*BODIES, *FORGERIES]:
            if name in FORGERIES:
                test_of_forgery(world, name)
                continue
            for who, mib in test_of_much(world, name):
                worst[who] = max(worst[who], mib)
        say(f"at the most: the plugin {worst['plugin']:.0f} MiB, croft {worst['croft']:.0f} MiB")
        expect(worst["plugin"] <= PLUGIN_MIB_MAX, f"the plugin took {worst['plugin']:.0f} MiB")
        expect(worst["croft"] <= CROFT_MIB_MAX, f"croft took {worst['croft']:.0f} MiB")


main(test, 900)
