"""A server that never answers: `croft check` says so in half a minute, and a DEL leaves its tombstone within the 15 s of one call."""

import concurrent.futures
import contextlib
import json
import re
import socket
import ssl
import threading
import time

from etcd_lib import Authority, Node
from lib import expect, expect_equal, main, say, write_kubeconfig
from protobuf import frame

BOUND = 45.0  # half a minute, and a machine under load
DEL_BOUND = 20.0  # 15 s, likewise


def serve(stack, talk):
    """The port of a server that gives each connection to `talk`, in a thread of its own."""
    server, kept = socket.create_server(("127.0.0.1", 0)), []
    stack.callback(lambda: [one.close() for one in (server, *kept)])

    def guarded(connection):
        with contextlib.suppress(OSError):  # ssl.SSLError is one
            talk(connection)

    def take():
        while True:
            try:
                connection = server.accept()[0]
            except OSError:
                return
            kept.append(connection)
            threading.Thread(target=guarded, args=(connection,), daemon=True).start()

    threading.Thread(target=take, daemon=True).start()
    return server.getsockname()[1]


def answers_no_request(tls):
    """TLS and HTTP/2 as they should be, PINGs answered, and no request ever."""
    settings, ping, ack = 4, 6, 1

    def talk(connection):
        with tls.wrap_socket(connection, server_side=True) as stream:
            stream.sendall(frame(settings, 0, 0))
            read_exactly(stream, len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
            while True:
                head = read_exactly(stream, 9)
                payload = read_exactly(stream, int.from_bytes(head[:3], "big"))
                if head[3] in (settings, ping) and not head[4] & ack:
                    stream.sendall(frame(head[3], ack, 0, payload if head[3] == ping else b""))

    return talk


def read_exactly(stream, count):
    data = b""
    while len(data) < count:
        some = stream.recv(count - len(data))
        if not some:
            raise OSError("the other end is gone")
        data += some
    return data


def ends_in_time(world, store):
    begin = time.monotonic()
    done = world.cli(store, "check", codes=(4,), env={}, timeout=120)
    took = time.monotonic() - begin
    expect(took < BOUND, f"croft check on {store} took {took:.0f} s")
    expect(re.search("no answer in time|does not answer", done.stderr), f"it says why: {done.stderr}")
    say(f"{store.rsplit('/', 1)[-1]}: {took:.1f} s: {done.stderr.strip()}")


def deletes_in_time(world, number, store):
    """The agent, too, takes connections and never answers."""
    place, agent = world.directory / f"tombstones-{number}", world.directory / f"agent-{number}.sock"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(agent))
        mute.listen()
        node = Node(world, store, "oak")
        node.env = {"CROFT_TOMBSTONES": str(place), "CROFT_AGENT": str(agent)}
        begin = time.monotonic()
        node.delete("c1")
        took = time.monotonic() - begin
    expect(took < DEL_BOUND, f"DEL on {store} took {took:.0f} s")
    expect_equal([json.loads(path.read_text())["containerID"] for path in place.glob("*.json")], ["c1"], f"tombstones of {store}")
    say(f"{store.rsplit('/', 1)[-1]}: DEL: {took:.1f} s")


def test(world):
    authority = Authority(world.directory, "kube")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.sign("kube-apiserver", "IP:127.0.0.1"))
    tls.set_alpn_protocols(["h2"])
    mute, no_tls = serve(world.stack, answers_no_request(tls)), serve(world.stack, lambda connection: None)
    stores = [f"etcd:http://127.0.0.1:{no_tls}"]
    for name, port in (("mute", mute), ("no-tls", no_tls)):
        kubeconfig = write_kubeconfig(world.directory / f"kubeconfig-{name}", f"https://127.0.0.1:{port}", authority.certificate, {"token": "x"})
        stores += [f"kube:{kubeconfig}?group=projectcalico.org/v3", f"kube:{kubeconfig}"]
    with concurrent.futures.ThreadPoolExecutor(2 * len(stores)) as pool:
        jobs = [pool.submit(ends_in_time, world, store) for store in stores]
        jobs += [pool.submit(deletes_in_time, world, number, store) for number, store in enumerate(stores)]
    for job in jobs:
        job.result()


main(test)
