"""`croftd controller --desk`: the page says what the commands say of the same store, to whom it may, and changes nothing.
What a browser makes of it: desk_browser.py; routes and tokens one by one: src/desk.
"""

import http.client
import json
import signal
import socket
import time

from etcd_lib import Etcd
from lib import Controller, call_ipam, expect, expect_equal, main, run, say, wait_for
from metrics import free_port

HOSTILE = "<script>alert(1)</script>"


def ask(port, path, host="127.0.0.1", method="GET", **fields):
    """(status, header, body) of one request; None as long as nobody listens."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    except ConnectionRefusedError:
        return None
    finally:
        connection.close()


def data(port, path, **fields):
    status, _, body = ask(port, path, **fields)
    expect_equal(status, 200, f"{path}: {body}")
    return json.loads(body)


class Desk(Controller):
    def __init__(self, world, store, at, *arguments):
        super().__init__(world, store, "desk", "--desk", at, "--grace", "1h", *arguments)


def with_pods(world, store):
    """A store with two pods, one of them of a name that would be markup."""
    world.pool(store, "web", "10.97.0.0/24", "--block-size", "28")
    for container, pod in (("c1", "web-0"), ("c2", HOSTILE)):
        code, answer = call_ipam(world, "ADD", container, store, args=f"K8S_POD_NAMESPACE=shop;K8S_POD_NAME={pod}")
        expect_equal(code, 0, f"{answer}")
    return store


def on_loopback(world):
    """Without a token: this machine alone, by its own names, and nothing but GET and HEAD. One by one: desk_pages_test.cc, server_test.cc."""
    say("on loopback")
    store, port = with_pods(world, world.store("loopback")), free_port()
    before = world.croft(store, "block", "list")
    with Desk(world, store, f"127.0.0.1:{port}", "--interval", "1h", "--dry-run"):
        wait_for(lambda: ask(port, "/"), "the page")
        _, header, _ = ask(port, "/desk.js")
        expect("default-src 'none'" in header["Content-Security-Policy"], header["Content-Security-Policy"])
        expect_equal((header["X-Content-Type-Options"], header["Cache-Control"]), ("nosniff", "no-store"), "of every answer")
        expect_equal(ask(port, "/api/overview", method="POST")[0], 405, "POST")
        expect_equal(ask(port, "/api/overview", Host="evil.example")[0], 403, "a page of another name that leads here")
        as_commands_say(world, store, port)
    expect_equal(world.croft(store, "block", "list"), before, "looking changes nothing")


def as_commands_say(world, store, port, host="127.0.0.1"):
    told = lambda path: data(port, path, host=host)
    pool = told("/api/overview")["pools"][0]
    said = world.croft(store, "pool", "list")[0]["usage"]
    expect_equal({name: pool[name] for name in ("held", "cooling", "reserved", "free")}, {name: said[name] for name in ("held", "cooling", "reserved", "free")}, "a pool")
    for address, row in world.held(store).items():
        who = told(f"/api/who?address={address}")
        expect_equal(who["holder"], row, "who has it")
        expect_equal((who["state"], who["pool"], who["block"]), ("used", "web", row["block"]), "and where")
    pods = {row["pod"] for row in world.held(store).values()}
    expect_equal(pods, {"web-0", HOSTILE}, "names as they are")
    expect_equal(told("/api/nodes"), world.croft(store, "node", "list"), "nodes")
    found = json.loads(world.cli(store, "-o", "json", "check", codes=(0, 3)).stdout)
    expect_equal(told("/api/findings")["findings"], found, "findings")
    text = world.cli(store, "explain", "--node", "node-a", "--pool", "web").stdout
    expect_equal(told("/api/explain?node=node-a&pool=web")["text"], text, "an explanation")
    cells = told("/api/map?cidr=10.97.0.0/24")["cells"]
    expect_equal((len(cells), cells.count("u")), (256, 2), "the map")


def with_a_history(world):
    """An earlier hour, as `croft who` tells of it."""
    say("with a history")
    store, port = with_pods(world, world.store("past")), free_port()
    path = world.directory / "history.db"
    with Desk(world, store, f"127.0.0.1:{port}", "--interval", "1h", "--history", str(path)):
        wait_for(lambda: ask(port, "/"), "the page")
        times = []

        def used(at):
            cells = data(port, f"/api/map?cidr=10.97.0.0/24&at={at}")["cells"]
            return "doubt" if "c" in cells else cells.count("u")

        def time_of(count):
            """One of the looks so far at which so many were held, for sure."""
            times.append(data(port, "/api/overview")["history"].get("until"))
            return next((at for at in reversed(times) if at and used(at) == count), None)

        seen = wait_for(lambda: time_of(2), "the history", 30)
        address = next(address for address, row in world.held(store).items() if row["pod"] == HOSTILE)
        expect_equal(call_ipam(world, "DEL", "c2", store)[0], 0, "a DEL")
        gone = wait_for(lambda: time_of(1), "it is gone", 30)
        said = json.loads(run(world.bin / "croft", "who", address, "--at", seen, "--history", path, "-o", "json").stdout)
        expect_equal(past(port, address, seen), [f"{row['namespace']}/{row['pod']}" for row in said["holdings"]], "who had it")
        expect_equal((used(seen), past(port, address, gone)), (2, []), "before and after")


def past(port, address, seen):
    return [one["who"] for one in data(port, f"/api/who?address={address}&at={seen}")["past"]["holders"]]


def with_a_token(world):
    """Everywhere else: whoever has the token. What is no token's file: doorkeeper_test.cc."""
    say("with a token")
    store, port = with_pods(world, world.store("token")), free_port()
    done = run(world.bin / "croftd", "controller", "--store", store, "--desk", f":{port}", check=False)
    expect(done.returncode not in (0, 3) and "--desk-token-file" in done.stderr, f"without one it does not begin: {done}")
    token = world.directory / "token"
    token.write_text("open-sesame-is-no-token\n")
    token.chmod(0o600)
    with Desk(world, store, f":{port}", "--desk-token-file", str(token)):
        wait_for(lambda: ask(port, "/"), "the page")
        for host in ("127.0.0.1", "::1"):
            right = {"Authorization": f"Bearer {token.read_text().strip()}", "Host": "desk.example"}
            expect_equal(ask(port, "/", host=host)[0], 200, "the page itself")
            expect_equal(ask(port, "/api/overview", host=host)[0], 401, "without a token")
            status, header, body = ask(port, "/api/overview", host=host, Authorization="Bearer wrong")
            expect_equal((status, header["WWW-Authenticate"]), (401, "Bearer"), "a wrong one")
            expect("pools" not in body, body)
            expect_equal(ask(port, "/api/overview", host=host, **right)[0], 200, "the right one")


def on_an_etcd(world):
    """The same of a cluster's register. While it does not answer the page lives, tells what it knew, and says that it is old; a check that
    hangs keeps nobody from an orderly end."""
    say("on an etcd")
    etcd = Etcd(world)
    store, port = with_pods(world, etcd.store), free_port()
    with Desk(world, store, f"[::1]:{port}", "--interval", "1h"):
        wait_for(lambda: ask(port, "/", "::1"), "the page")
        as_commands_say(world, store, port, "::1")
        expect_equal(data(port, "/api/overview", host="::1")["trouble"], None, "all is well")
        etcd.process.send_signal(signal.SIGSTOP)
        seen = wait_for(lambda: (now := data(port, "/api/overview", host="::1"))["trouble"] and now, "it says so", 30)
        expect_equal(seen["pools"][0]["held"], 2, "what it knew")
        etcd.process.send_signal(signal.SIGCONT)
        wait_for(lambda: data(port, "/api/overview", host="::1")["trouble"] is None, "well again", 30)
    with Desk(world, store, f"127.0.0.1:{port}", "--interval", "1h") as desk:
        wait_for(lambda: ask(port, "/"), "the page")
        data(port, "/api/overview")
        time.sleep(1)  # the collector's first pass is over
        etcd.process.send_signal(signal.SIGSTOP)
        expect_equal(ask(port, "/api/findings")[0], 503, "being checked")
        desk.end(10)
    etcd.process.send_signal(signal.SIGCONT)


def at_a_busy_port(world):
    """The collector works; the page is tried again."""
    say("at a busy port")
    store = with_pods(world, world.store("busy"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        with Desk(world, store, f"127.0.0.1:{other.getsockname()[1]}", "--interval", "1h") as desk:
            time.sleep(1)
            expect_equal(desk.poll(), None, "it lives")
    expect("desk can't be served" in desk.log() and "trying again in a minute" in desk.log(), desk.log())


def test(world):
    for part in (on_loopback, with_a_history, with_a_token, on_an_etcd, at_a_busy_port):
        part(world)


if __name__ == "__main__":
    main(test)
