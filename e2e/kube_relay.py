"""Between clients and a kube-apiserver: TLS and HTTP/2 frames that pass, are held back, or are swallowed.

    relay = Relay(world, kube)
    Node(world, f"kube:{relay.kubeconfig(path)}", "oak")

It knows of HTTP/2 where a frame begins and what it is called; headers pass unread.
"""

import asyncio
import contextlib
import ssl
import threading

DATA, HEADERS, END_STREAM = 0, 1, 1
PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


class Relay:
    def __init__(self, world, kube):
        self.kube = kube
        self.hold = None  # a client's DATA that has these bytes is held back
        self.held = []  # (connection, frame)
        self.late = {}  # (connection, stream) of what was held, once it is passed on -> its answer has begun
        self.connections = []
        self.stalled, self.swallowed = False, []  # frames
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(kube.certificate, kube.key)
        self.to_server = ssl.create_default_context(cafile=str(kube.ca.certificate))
        for context in (self.tls, self.to_server):
            context.set_alpn_protocols(["h2"])
        self.ready = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        thread.start()
        self.ready.wait(10)
        world.stack.callback(thread.join, 10)
        world.stack.callback(lambda: self.loop.call_soon_threadsafe(self.end.set))

    async def _run(self):
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await self.end.wait()

    def kubeconfig(self, path):
        """The same as another one, but through here."""
        mine = path.with_name(f"{path.name}-relayed")
        mine.write_text(path.read_text().replace(self.kube.url, f"https://127.0.0.1:{self.port}"))
        mine.chmod(0o600)
        return mine

    def stall(self):
        """Answers that are open now, and watches that begin later, say nothing more; connections stay, and answer PINGs."""
        self.stalled = True
        for connection in self.connections:
            connection.mute |= connection.open

    def release(self):
        """What was held goes on, though its client may be gone."""
        self.hold, held, self.held = None, self.held, []
        for connection, frame in held:
            self.late[connection, stream_of(frame)] = False
            self.loop.call_soon_threadsafe(connection.to_server.write, frame)

    async def _serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._pass_on(reader, writer)

    async def _pass_on(self, reader, writer):
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.kube.port, ssl=self.to_server)
        connection = Connection(self, writer, to_server)
        self.connections.append(connection)
        answers = asyncio.ensure_future(connection.answers(from_server))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            to_server.write(await reader.readexactly(PREFACE))
            while True:
                frame = await read_frame(reader)
                if self.hold and frame[3] == DATA and self.hold in frame:
                    self.held.append((connection, frame))
                else:
                    to_server.write(frame)
        # A client that is gone takes back nothing that is on its way.
        while any(one is connection for one, _ in self.held) or not all(
                begun for (one, _), begun in self.late.items() if one is connection):
            await asyncio.sleep(0.05)
        answers.cancel()
        for end in (writer, to_server):
            end.close()


class Connection:
    def __init__(self, relay, to_client, to_server):
        self.relay, self.to_client, self.to_server = relay, to_client, to_server
        self.open, self.mute = set(), set()  # streams

    async def answers(self, reader):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await read_frame(reader)
                kind, stream = frame[3], stream_of(frame)
                if kind in (DATA, HEADERS):
                    (self.open.discard if frame[4] & END_STREAM else self.open.add)(stream)
                    if (self, stream) in self.relay.late:
                        self.relay.late[self, stream] = True
                if kind == DATA and self.relay.stalled and frame[9:].startswith(b'{"type":'):
                    self.mute.add(stream)
                if kind == DATA and stream in self.mute:
                    self.relay.swallowed.append(frame)
                else:
                    self.to_client.write(frame)
        self.to_client.close()


async def read_frame(reader):
    head = await reader.readexactly(9)
    return head + await reader.readexactly(int.from_bytes(head[:3], "big"))


def stream_of(frame):
    return int.from_bytes(frame[5:9], "big") & 0x7FFFFFFF
