"""`croftd controller --metrics-bind-address`: pools are what the command line says of the same store, and probes are told that it is away.
Samples of ranges: metrics_test.cc; the server: server_test.cc.
"""

import json
import pathlib
import re
import urllib.error
import urllib.request

from etcd_lib import free_ports
from lib import Controller, Failure, call_ipam, expect, expect_equal, main, own_environment, run, say, start_agent, wait_for

SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")


def free_port():
    """A port that nobody listens at, now."""
    return free_ports(1)[0]


def get(address, path="/metrics", **options):
    return urllib.request.urlopen(urllib.request.Request(f"http://{address}{path}", **options), timeout=10)


def scrape(address):
    """The samples by name and labels, as they are written; None as long as nobody answers."""
    try:
        with get(address) as answer:
            expect_equal(answer.status, 200, "status")
            expect(answer.headers["Content-Type"].startswith("text/plain"), answer.headers["Content-Type"])
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        raise Failure(f"{address}: {error}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return None
        raise
    samples = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = SAMPLE.fullmatch(line)
        expect(found, f"not a sample: {line!r}")
        name = found[1] + (f"{{{found[2]}}}" if found[2] else "")
        expect(name not in samples, f"twice: {name}")
        samples[name] = float(found[3])
    return samples


def probe(address, path):
    """What a probe gets: status and text; None as long as nobody answers."""
    try:
        with get(address, path) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError:
        return None


def health(world):
    """While the store is away the controller lives and is not ready."""
    say("health")
    store, address = world.store("health"), f"127.0.0.1:{free_port()}"
    path = pathlib.Path(store.removeprefix("sqlite:"))
    world.croft(store, "pool", "create", "p", "--cidr", "10.99.0.0/24", "--gateway", "none")
    with Controller(world, store, "health", "--metrics-bind-address", address, "--interval", "200ms", "--grace", "1h"):
        wait_for(lambda: probe(address, "/readyz") == (200, "[+]collector ok\nreadyz check passed\n"), "ready after the first pass")
        hidden = path.rename(path.with_name("hidden.db"))
        path.mkdir()
        unready = wait_for(lambda: probe(address, "/readyz")[0] == 503 and probe(address, "/readyz"), "not ready")
        expect("[-]collector failed: " in unready[1], f"{unready}")
        expect_equal(probe(address, "/healthz"), (200, "ok\n"), "alive all the same")
        path.rmdir()
        hidden.rename(path)
        wait_for(lambda: probe(address, "/readyz")[0] == 200, "ready again")


def of_pool(samples, pool):
    """State to count, of a pool's addresses."""
    return {found[1]: int(value) for name, value in samples.items()
            if (found := re.fullmatch(rf'croft_pool_addresses{{pool="{pool}",family="IPv\d",state="(\w+)"}}', name))}


def pools(world):
    """What is counted of pools is what `croft pool list` says; a pool that fills is said once in the log, by check and by metrics."""
    say("pools")
    store = world.store("pools")
    world.croft(store, "pool", "create", "web", "--cidr", "10.98.0.0/28", "--block-size", "28", "--gateway", "none", "--cooldown-seconds", "1200")
    world.croft(store, "pool", "create", "wide", "--cidr", "fd00:98::/64")
    socket_path = world.directory / "agent.sock"
    address, agents = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    start_agent(world, store, "node-a", socket_path, "--metrics-bind-address", agents, env=own_environment(world.directory))

    # Pods wait for a node's addresses, and nobody for its metrics.
    beside = start_agent(world, store, "node-b", world.directory / "beside.sock", "--metrics-bind-address", agents, env=own_environment(world.directory))
    wait_for(lambda: f"metrics can't be served at {agents}" in beside.log() and "serving node node-b" in beside.log(), "it says so, and serves", 20)
    expect(beside.poll() is None, beside.log())

    def plugin(command, container):
        return call_ipam(world, command, container, store, agent=str(socket_path))

    with Controller(world, store, "pools", "--metrics-bind-address", address, "--interval", "100ms", "--status-interval", "100ms", "--grace",
                    "1h") as controller:
        for number in range(10):
            expect_equal(plugin("ADD", f"c{number}")[0], 0, "an ADD")
        plugin("DEL", "c9")
        wait_for(lambda: of_pool(scrape(address) or {}, "web").get("cooling") == 1, "the pool as it is")
        samples = scrape(address)
        row = next(row for row in world.croft(store, "pool", "list") if row["name"] == "web")
        expect_equal(of_pool(samples, "web"), {name: int(row["usage"][name]) for name in ("held", "cooling", "reserved", "free", "stranded")}, "as the command says")
        expect_equal(sum(of_pool(samples, "web").values()), samples['croft_pool_capacity{pool="web",family="IPv4"}'], "together")
        expect_equal(samples['croft_pool_blocks{pool="web",family="IPv4",state="owned"}'], 1, "blocks")
        wide = samples['croft_pool_capacity{pool="wide",family="IPv6"}']
        expect(abs(wide / 2**64 - 1) < 1e-9, f"a wide one: {wide}")
        expect_equal(world.croft(store, "check"), [], "it is not full yet")
        for number in range(10, 10 + int(row["usage"]["free"])):
            expect_equal(plugin("ADD", f"c{number}")[0], 0, "an ADD")
        code, refused = plugin("ADD", "late")
        expect(code != 0 and "pool web" in str(refused), f"{refused}")
        wait_for(lambda: of_pool(scrape(address), "web")["free"] == 0, "a full pool")
        samples = scrape(agents)
        expect_equal(samples['croft_agent_refusals_total{pool="web",reason="full"}'], 1, "refusals")
        expect_equal(samples['croft_agent_add_duration_seconds_count{outcome="refused"}'], 1, "refused ADDs")
        expect_equal(samples['croft_agent_add_duration_seconds_count{outcome="ok"}'], 10 + int(row["usage"]["free"]), "ADDs")
        expect_equal(probe(agents, "/readyz"), (200, "[+]store ok\nreadyz check passed\n"), "the agent's health")
        found = json.loads(world.cli(store, "-o", "json", "check", codes=(3,)).stdout)
        expect_equal([(one["finding"], one["subject"]) for one in found], [("pool_full", "pool web")], "check")
        run(world.bin / "croft", "--store", store, "pool", "disable", "web")
        wait_for(lambda: scrape(address)['croft_pool_disabled{pool="web",family="IPv4"}'] == 1, "disabled")
        expect_equal(world.croft(store, "check"), [], "a pool that is to give nothing is not full")
    told = [line for line in controller.log().splitlines() if "pool web" in line and "full" in line]
    expect_equal(len([line for line in told if " is full: " in line]), 1, f"said once: {told}")


def test(world):
    for part in (health, pools):
        part(world)


if __name__ == "__main__":
    main(test)
