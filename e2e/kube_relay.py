"""Between clients and a kube-apiserver: TLS and HTTP/2 frames that pass, or are swallowed.

    relay = Relay(world, kube)
    Node(world, f"kube:{relay.kubeconfig(path)}", "oak")
    relay.stalled = True  # watches say nothing more; connections stay, and answer PINGs

It knows of HTTP/2 where a frame begins and what it is called; headers pass unread.
"""

import asyncio
import contextlib
import ssl
import threading

DATA = 0


class Relay:
    def __init__(self, world, kube):
        self.kube = kube
        self.stalled, self.swallowed = False, []  # frames
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(kube.certificate, kube.key)
        self.to_server = ssl.create_default_context(cafile=str(kube.ca.certificate))
        for context in (self.tls, self.to_server):
            context.set_alpn_protocols(["h2"])
        ready = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self._run(ready)), daemon=True)
        thread.start()
        ready.wait(10)
        world.stack.callback(thread.join, 10)
        world.stack.callback(lambda: self.loop.call_soon_threadsafe(self.end.set))

    def kubeconfig(self, path):
        """The same as another one, but through here."""
        mine = path.with_name(f"{path.name}-relayed")
        mine.write_text(path.read_text().replace(self.kube.url, f"https://127.0.0.1:{self.port}"))
        mine.chmod(0o600)
        return mine

    async def _run(self, ready):
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self.end.wait()

    async def _serve(self, from_client, to_client):
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.kube.port, ssl=self.to_server)
        with contextlib.suppress(asyncio.CancelledError):
            answers = asyncio.ensure_future(self._answers(from_server, to_client))
            with contextlib.suppress(OSError):
                while piece := await from_client.read(65536):
                    to_server.write(piece)
            answers.cancel()
        for end in (to_client, to_server):
            end.close()

    async def _answers(self, reader, to_client):
        mute = set()  # streams
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, stream, frame = await read_frame(reader)
                if kind == DATA and self.stalled and frame[9:].startswith(b'{"type":'):
                    mute.add(stream)  # a watch
                if kind == DATA and stream in mute:
                    self.swallowed.append(frame)
                else:
                    to_client.write(frame)
        to_client.close()


async def read_frame(reader):
    """(kind, stream, all of it)"""
    head = await reader.readexactly(9)
    return head[3], int.from_bytes(head[5:], "big"), head + await reader.readexactly(int.from_bytes(head[:3], "big"))
