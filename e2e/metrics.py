"""`croftd controller --metrics-bind-address`: what Prometheus would read, compared with what the command line says of the
same store. Neither root nor a network but this machine's loopback.

usage: metrics.py BIN_DIR
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
from etcd_lib import Etcd, free_ports
from lib import Failure, World, call_ipam, expect, expect_equal, main, own_environment, run, say, start_agent, wait_for
from service_repair import Ranges

CIDRS = "10.96.0.0/24,fd00:10:96::/112"
CLUSTER = "10.244.0.0/22"
ERROR = 1
SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")


def free_port():
    """A port that nobody listens at, now."""
    return free_ports(1)[0]


def has_ipv6():
    """Whether this machine can."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


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


class Controller:
    """croftd controller while a block lasts; `address` empty: no metrics."""

    def __init__(self, world, store, address, *arguments):
        self.command = [str(world.bin / "croftd"), "controller", "--store", store, *arguments]
        if address:
            self.command += ["--metrics-bind-address", address]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *why):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.log = self.process.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.log = self.process.communicate()[1]
            raise
        if why[0] is not None:
            say(self.log)

    def listens(self):
        """Whether the process has a socket that listens."""
        listening = set()
        for name in ("tcp", "tcp6"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{self.process.pid}/net/{name}") as table:
                listening |= {row.split()[9] for row in table if row.split()[3] == "0A"}
        folder = f"/proc/{self.process.pid}/fd"
        own = set()
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                own.add(os.readlink(f"{folder}/{fd}"))
        return any(f"socket:[{inode}]" in own for inode in listening)


def plant(ranges):
    """A leak, two Services with one address, and one whose address is free."""
    ranges.text("create", "web", "--type", "NodePort", "--tcp", "80::30090", "--cluster-ip", "10.96.0.10",
                "--service-cluster-ip-range", CIDRS)
    ranges.text("create", "gone", "--type", "NodePort", "--tcp", "80::30091", "--cluster-ip", "10.96.0.20")
    ranges.text("create", "one", "--cluster-ip", "10.96.0.30", "--tcp", "80")
    ranges.text("create", "late", "--cluster-ip", "10.96.0.40", "--tcp", "80")
    rows = [ranges.row(f"default/{name}") for name in ("one", "late")]
    for name in ("one", "late"):
        ranges.text("delete", name)
    ranges.text("create", "two", "--cluster-ip", "10.96.0.30", "--tcp", "80")
    for row in rows:
        ranges.put(row)
    ranges.forget("default/gone")


def expect_service_samples(samples, ranges):
    # The leak is still there: it takes three passes, three minutes apart.
    wanted = {"leak": 0, "repair": 1, "full": 0, "outOfRange": 0, "duplicate": 1, "invalid": 0, "unknown": 0}
    for kind, count in wanted.items():
        expect_equal(samples[f'apiserver_clusterip_repair_ip_errors_total{{type="{kind}"}}'], count, f"IPs: {kind}")
        port = samples.get(f'apiserver_nodeport_repair_port_errors_total{{type="{kind}"}}')
        expect_equal(port, None if kind == "invalid" else 0, f"ports: {kind}")
    for what in ("clusterip", "nodeport"):
        expect_equal(samples[f"apiserver_{what}_repair_reconcile_errors_total"], 0, f"reconcile errors, {what}")
    rows = ranges.data("audit", code=3)["ranges"]
    expect_equal(sorted((row["range"], row["used"]) for row in rows),
                 [("10.96.0.0/24", 4), ("30000-32767", 2), ("fd00:10:96::/112", 0)], "the audit's ranges")
    for row in rows:
        if row["name"] == "servicenodeports":
            allocated, available, label = "nodeport_allocator_allocated_ports", "nodeport_allocator_available_ports", ""
        else:
            allocated, available = "clusterip_allocator_allocated_ips", "clusterip_allocator_available_ips"
            label = f'{{cidr="{row["range"]}"}}'
        expect_equal(samples[f"kube_apiserver_{allocated}{label}"], row["used"], f"allocated of {row['range']}")
        expect_equal(samples[f"kube_apiserver_{available}{label}"], row["size"] - row["used"],
                     f"available of {row['range']}")
    expect(not [name for name in samples if "allocation_total" in name], "the controller allocates nothing")


def cidrset(samples, name):
    return samples.get(f'node_ipam_controller_{name}{{clusterCIDR="{CLUSTER}"}}')


def expect_node_samples(address, croft, taken, allocations, releases):
    def is_so():
        samples = scrape(address)
        return (cidrset(samples, "cidrset_cidrs_allocations_total"),
                cidrset(samples, "cidrset_cidrs_releases_total")) == (allocations, releases) and samples
    samples = wait_for(is_so, f"{allocations} allocations and {releases} releases; last: {scrape(address)}")
    use = croft("node", "range", "show")[0]["clusterCidrs"][0]
    expect_equal((use["cidr"], use["taken"]), (CLUSTER, taken), "node range show")
    expect_equal(cidrset(samples, "cidrset_usage_cidrs"), use["taken"] / use["ranges"], "usage")
    expect_equal(cidrset(samples, "cirdset_max_cidrs"), use["ranges"], "max")
    return samples


def values(world, ranges):
    def croft(*arguments):
        return world.croft(ranges.store, *arguments)

    plant(ranges)
    croft("node", "range", "config", f"--cluster-cidr={CLUSTER}")
    croft("node", "range", "assign", "node-a")
    croft("node", "label", "node-b", "zone=a")
    address = f"127.0.0.1:{free_port()}"
    with Controller(world, ranges.store, address, "--repair-service-ranges", "--allocate-node-cidrs", "--interval",
                    "200ms", "--grace", "1h") as controller:
        wait_for(lambda: (scrape(address) or {}).get("apiserver_nodeport_repair_reconcile_errors_total") is not None,
                 "the first pass")
        say("service ranges")
        expect_service_samples(scrape(address), ranges)
        say("node ranges")
        samples = expect_node_samples(address, croft, taken=2, allocations=2, releases=0)
        expect_equal(cidrset(samples, "cidrset_allocation_tries_per_request_count"), 1, "given out here")
        croft("node", "label", "node-c", "zone=a")
        samples = expect_node_samples(address, croft, taken=3, allocations=3, releases=0)
        expect_equal(cidrset(samples, "cidrset_allocation_tries_per_request_count"), 2, "given out here")
        run(world.bin / "croft", "--store", ranges.store, "node", "remove", "node-a", "--force")
        expect_node_samples(address, croft, taken=2, allocations=3, releases=1)

        say("what else can be asked")
        for path, options in (("/", {}), ("/metrics", {"data": b"x"}), ("/../etc/passwd", {})):
            try:
                with get(address, path, **options) as answer:
                    status = answer.status
            except urllib.error.HTTPError as error:
                status = error.code
            expect(status in (400, 403, 404, 405), f"{path}: {status}")
        with get(address, headers={"Host": "elsewhere.example"}) as answer:
            expect_equal(answer.status, 200, "by another name")
        # Who connects and says nothing keeps nobody from scraping, nor the controller from ending.
        host, port = address.split(":")
        idle = []
        for _ in range(200):
            with contextlib.suppress(OSError):
                idle.append(socket.create_connection((host, int(port)), timeout=0.02))
        expect(len(idle) > 20, "idle connections")
        begin = time.monotonic()
        expect(scrape(address), "a scrape beside idle connections")
        expect(time.monotonic() - begin < 9, "a scraper waited longer than it does")
    for one in idle:
        one.close()
    expect_equal(controller.process.returncode, 0, "exit code")
    expect(f"metrics at http://{address}/metrics" in controller.log, controller.log)
    expect("told to stop" in controller.log, controller.log)


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
    """/healthz and /readyz, as probes of Kubernetes ask: while the store is away the controller lives and is not ready."""
    say("health")
    path = world.directory / "health" / "croft.db"
    store = f"sqlite:{path}"
    world.croft(store, "pool", "create", "p", "--cidr", "10.99.0.0/24", "--gateway", "none")
    address = f"127.0.0.1:{free_port()}"
    with Controller(world, store, address, "--interval", "200ms", "--grace", "1h"):
        wait_for(lambda: (probe(address, "/readyz") or (0,))[0] == 200, "ready after the first pass")
        expect_equal(probe(address, "/readyz")[1], "[+]collector ok\nreadyz check passed\n", "what is ready")
        for alive in ("/healthz", "/livez"):
            expect_equal(probe(address, alive), (200, "ok\n"), alive)
        expect_equal(probe(address, "/readyz/more")[0], 404, "another path")
        hidden = path.with_name("hidden.db")
        path.rename(hidden)
        path.mkdir()
        unready = wait_for(lambda: (probe(address, "/readyz") or (0,))[0] == 503 and probe(address, "/readyz"), "not ready")
        expect("[-]collector failed: " in unready[1] and unready[1].endswith("readyz check failed\n"), f"{unready}")
        expect_equal(probe(address, "/healthz")[0], 200, "alive all the same")
        path.rmdir()
        hidden.rename(path)
        wait_for(lambda: (probe(address, "/readyz") or (0,))[0] == 200, "ready again")


def stuck(world):
    """A pass that does not end ends the controller, whoever can or can't reach its port."""
    say("stuck")
    etcd = Etcd(world)
    store = f"etcd:{etcd.url}"
    world.croft(store, "pool", "create", "p", "--cidr", "10.99.0.0/24", "--gateway", "none")
    command = [str(world.bin / "croftd"), "controller", "--store", store, "--interval", "100ms", "--grace", "1h"]
    quick = subprocess.Popen([*command, "--work-timeout", "1s"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    patient = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: "released" in quick.stderr.readline(), "a pass")
        expect_equal(quick.poll(), None, "it works as long as the store answers")
        etcd.process.send_signal(signal.SIGSTOP)
        expect_equal(quick.wait(60), ERROR, "exit code")
        said = quick.stderr.read()
        expect("ending, to be started anew: " in said and "work has been going on for" in said, said)
        expect_equal(patient.poll(), None, "a quarter of an hour is not over")
    finally:
        for process in (quick, patient):
            process.kill()
            process.wait()
        etcd.kill()


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
    log = world.directory / "agent.log"
    wait_for(lambda: f"metrics can't be served at {agents}" in log.read_text() and log.read_text().count("serving node node-b"), "it says so, and serves", 20)
    expect(beside.poll() is None, log.read_text())

    def plugin(command, container):
        return call_ipam(world, command, container, store, agent=str(socket_path))

    with Controller(world, store, address, "--interval", "100ms", "--status-interval", "100ms", "--grace", "1h") as controller:
        for number in range(10):
            expect_equal(plugin("ADD", f"c{number}")[0], 0, "an ADD")
        plugin("DEL", "c9")
        wait_for(lambda: of_pool(scrape(address) or {}, "web").get("cooling") == 1, "the pool as it is")
        samples = scrape(address)
        row = next(row for row in world.croft(store, "pool", "list") if row["name"] == "web")
        expect_equal(of_pool(samples, "web"), {**{name: int(row["usage"][name]) for name in ("held", "cooling", "reserved", "free")}, "stranded": 0}, "as the command says")
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
        done = run(world.bin / "croft", "--store", store, "-o", "json", "check", check=False)
        found = json.loads(done.stdout)
        expect_equal((done.returncode, [(one["finding"], one["subject"]) for one in found]), (3, [("pool_full", "pool web")]), "check")
        run(world.bin / "croft", "--store", store, "pool", "disable", "web")
        wait_for(lambda: scrape(address)['croft_pool_disabled{pool="web",family="IPv4"}'] == 1, "disabled")
        expect_equal(world.croft(store, "check"), [], "a pool that is to give nothing is not full")
    told = [line for line in controller.log.splitlines() if "pool web" in line and "full" in line]
    expect_equal(len([line for line in told if " is full: " in line]), 1, f"said once: {told}")


def addresses(world, ranges):
    say("addresses")
    with Controller(world, ranges.store, "") as controller:
        expect(not controller.listens(), "it listens without the flag")
    address = f"127.0.0.1:{free_port()}"
    with Controller(world, ranges.store, address) as controller:
        samples = wait_for(lambda: scrape(address), "metrics of a controller that only collects")
        expect(controller.listens(), "a socket that listens")
        expect(not [name for name in samples if not name.startswith("croft_")], "of ranges nothing was asked for")
    if has_ipv6():
        port = free_port()
        with Controller(world, ranges.store, f":{port}"):
            for one in (f"127.0.0.1:{port}", f"[::1]:{port}"):
                wait_for(lambda one=one: scrape(one), one)
    else:
        say("no IPv6 here: not tried")

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        done = run(world.bin / "croftd", "controller", "--store", ranges.store, "--once", "--grace", "0s", "--metrics-bind-address", taken,
                   check=False)
        expect(done.returncode == ERROR and f"metrics can't be served at {taken}: " in done.stderr, f"{done}")


def test():
    with World("metrics", sys.argv[1]) as world:
        ranges = Ranges(world)
        values(world, ranges)
        health(world)
        stuck(world)
        pools(world)
        addresses(world, ranges)


if __name__ == "__main__":
    main(test)
