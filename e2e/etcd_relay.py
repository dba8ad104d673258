"""Passes connections of clients on to etcd members, from 127.0.0.1. SIGUSR1: from now on some answers are lost once the member has begun
to send them: the connection is reset, or nothing comes any more. SIGUSR2: no more, and print how many were lost.

usage: etcd_relay.py SEED PORT=ADDRESS:PORT...
"""

import asyncio
import json
import random
import signal
import sys

from kube_relay import read_frame

PROBABILITY = 0.15
SWALLOWED = 0.2  # of the lost ones; a client notices only when its patience ends
HEADERS = 1


class Relay:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.dropping = False
        self.counts = {"cut": 0, "swallowed": 0, "passed": 0}

    def fate_of(self, kind, stream, begun):
        """Of the answer that begins with this frame, if one does; `begun`: the streams whose answers have."""
        if kind != HEADERS or stream in begun:
            return None
        begun.add(stream)
        # The first one for certain, so that a slow machine loses one too.
        if not self.dropping or (self.counts["cut"] > 0 and self.draw.random() >= PROBABILITY):
            return "passed"
        return "swallowed" if self.counts["cut"] > 0 and self.draw.random() < SWALLOWED else "cut"

    async def requests(self, reader, writer):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()

    async def answers(self, reader, writer):
        begun, fate = set(), None
        while fate != "cut":
            kind, stream, frame = await read_frame(reader)
            if fate == "swallowed":
                continue
            if fate := self.fate_of(kind, stream, begun):
                self.counts[fate] += 1
            if fate in (None, "passed"):
                writer.write(frame)
                await writer.drain()

    async def serve(self, client_reader, client_writer, address, port):
        try:
            member_reader, member_writer = await asyncio.wait_for(asyncio.open_connection(address, port), 3)
        except (OSError, asyncio.TimeoutError):
            client_writer.transport.abort()
            return
        ways = [asyncio.ensure_future(self.requests(client_reader, member_writer)),
                asyncio.ensure_future(self.answers(member_reader, client_writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        client_writer.transport.abort()
        member_writer.transport.abort()

    def drop(self, dropping):
        self.dropping = dropping
        if not dropping:
            print(json.dumps(self.counts), flush=True)


async def main():
    relay = Relay(int(sys.argv[1]))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, relay.drop, True)
    loop.add_signal_handler(signal.SIGUSR2, relay.drop, False)
    servers = []
    for argument in sys.argv[2:]:
        port, _, target = argument.partition("=")
        address, _, target_port = target.rpartition(":")
        servers.append(await asyncio.start_server(
            lambda r, w, a=address, p=int(target_port): relay.serve(r, w, a, p), "127.0.0.1", int(port)))
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main())
