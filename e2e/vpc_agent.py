"""`cni-vpc-ipamd` on the simulated cloud: what UK8S promises of its node agent, and what becomes of addresses when stores and the cloud
get lost. After each case the records are what the cloud has. Calls, replies and agents that get lost: vpc_storm.py; one by one: src/vpc.

usage: vpc_agent.py BIN_DIR [CASE ...]
"""

import concurrent.futures
import json
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import threading
import time

from etcd_lib import SLOW_SYNC
from lib import expect, expect_equal, main, require_network_namespaces, run, say, stop_between_commits, wait_for
from vpc_lib import (ALLOCATIONS, LOOPBACK, SUBNET, Agent, Certificates, Cloud, add_request, at_once, field, fields_of, grpc, make_peers,
                     network_of, refusal, settled, start_program)

PATIENCE = 45  # seconds for what takes a while, on a machine that is busy with other things
BUSY = 4.0  # seconds on top of what a thing takes, for a machine that is busy with other things
QUICK = ("--reconcile-seconds", "1", "--grace-seconds", "2", "--doubt-seconds", "2")
BURST = 110
ADD_MOST_S = 2.0  # of a plugin whose agent gives no sign of life for 1 s
COMMITS_MAX = 30  # 6 and fewer is what an idle machine shows


# ---------------------------------------------------------------- what UK8S promises

def water_marks(world):
    cloud = Cloud(world, "water_marks")
    agent = Agent(cloud)
    for low, high, words in ((51, 50, ("51", "50")), (4, 3, ("4", "3")), (-1, 5, ("-1",)), ("x", 5, ("x",))):
        done = subprocess.run([str(c) for c in agent.command(low, high)], capture_output=True, text=True, timeout=30,
                              check=False)
        expect(done.returncode != 0, f"low {low}, high {high}: taken")
        expect(all(re.search(rf"(?<![\w-]){re.escape(w)}(?!\w)", done.stderr) for w in words),
               f"low {low}, high {high}: {done.stderr}")
    expect(not agent.socket.exists(), "a refused agent leaves no socket")
    expect_equal(cloud.calls(), [], "and asks the cloud for nothing")

    # From nothing to the low mark, exactly; one call.
    agent.start()
    agent.wait_for_free(3)
    expect_equal([len(cloud.held()["node-a"]), len(cloud.calls(*ALLOCATIONS))], [3, 1], "addresses and calls")
    ip = agent.add("one")
    agent.wait_for_free(3)  # filled again
    expect_equal(agent.add("one"), ip, "the same sandbox again")
    settled(cloud, [agent])
    expect_equal(len(cloud.held()["node-a"]), 4, "three free and one held")

    # Above the high mark the surplus goes, and no more. What was just bought is kept for a minute: by another process.
    agent.restart(low=9, high=9)
    agent.wait_for_free(9)
    agent.restart(low=2, high=4)
    agent.wait_for_free(4)
    time.sleep(1)
    settled(cloud, [agent])
    expect_equal(len(cloud.held()["node-a"]), 5, "four free and one held")
    expect_equal(agent.records(), {ip: "one"}, "who holds one keeps it")


def ended(world):
    """By SIGTERM while an ADD waits for a cloud that is silent. Whom the socket lets in: unix_listener_test.cc."""
    cloud = Cloud(world, "ended")
    agent = Agent(cloud, low=0, high=5).start()
    cloud.do("outage", mode="hang")
    waiting = agent.start_add("waits", timeout=60)
    wait_for(lambda: agent.figures()["croft_stock_waiting_adds"] == 1, "the ADD waits")
    begin = time.monotonic()
    agent.process.terminate()
    error = waiting.exception(timeout=20)
    expect_equal(error.code(), grpc.StatusCode.UNAVAILABLE, f"the ADD that waits: {error.details()}")
    wait_for(lambda: not agent.socket.exists(), "the socket file is removed")
    # A call of the cloud that takes too long is cut off; its intent is settled by the next agent.
    code, took = agent.process.wait(30), time.monotonic() - begin
    expect_equal(code, 0, "exit code")
    say(f"SIGTERM with a silent cloud: {took:.1f} s, exit code {code}")
    expect(took < 4.5 + BUSY, f"took {took:.1f} s")
    cloud.do("outage", mode="off")
    agent.start()
    agent.add("waits")
    settled(cloud, [agent])


def board(world):
    """Board and alerts name figures and label values that an agent has, and each alert has its place in the runbook."""
    cloud = Cloud(world, "board")
    agent = Agent(cloud, low=2, high=5).start()
    agent.wait_for_free(2)
    agent.delete("a", agent.add("a"))
    tree = pathlib.Path(__file__).resolve().parent.parent
    alerts = (tree / "deploy/kubernetes/vpc-alerts.yaml").read_text()
    texts = [target["expr"] for panel in json.loads((tree / "deploy/kubernetes/vpc-board.json").read_text())["panels"]
             for target in panel["targets"]] + re.findall(r"expr: >-\n +(.*)", alerts)
    figures = agent.figures()
    names = {name.split("{")[0] for name in figures}
    wanted = {name for text in texts for name in re.findall(r"\bcroft_\w+", text)}
    expect(len(wanted) > 10 and wanted <= names, f"nobody has {wanted - names}")
    pairs = {(name, pair) for text in texts for name, labels in re.findall(r"\b(croft_\w+)\{([^}]*)\}", text)
             for pair in re.findall(r'(\w+="[^"]*")', labels) if not pair.startswith("job=")}
    known = {(name.split("{")[0], pair) for name in figures for pair in re.findall(r'(\w+="[^"]*")', name)}
    expect(len(pairs) > 5 and pairs <= known, f"nobody has {pairs - known}")
    runbook = (tree / "docs/runbooks/vpc-agent.md").read_text()
    anchors = re.findall(r"runbook: docs/runbooks/vpc-agent\.md#(.*)", alerts)
    expect_equal(len(anchors), alerts.count("alert: "), "alerts with a place in the runbook")
    for anchor in anchors:
        expect(f'<a id="{anchor}"></a>\n## ' in runbook, f"the runbook has no {anchor}")


def burst(world):
    cloud = Cloud(world, "burst")
    agent = Agent(cloud, low=BURST, high=BURST).start()
    agent.wait_for_free(BURST)
    expect_equal(len(cloud.calls(*ALLOCATIONS)), 1, "one call for all")
    agent.restart(low=0, flags=["--reconcile-seconds", "86400"])
    wait_for(lambda: "interface" in agent.process.tail(), "it has found its interface")
    agent.add("warm")
    agent.delete("warm")
    time.sleep(0.5)
    calls, commits, begin = cloud.calls(), agent.commits(), time.monotonic()
    waiting = [agent.start_add(f"b{i}", timeout=60) for i in range(BURST)]
    # One cools.
    answers = [network_of(fields_of(one.result())[2][0]) for one in waiting[:BURST - 1]]
    took = time.monotonic() - begin
    commits = agent.commits() - commits
    expect_equal(len({answer["ip"] for answer in answers}), BURST - 1, "addresses are different")
    # Those for the last one, which are made meanwhile, begin with a look at the subnet.
    expect_equal([call for call in cloud.calls()[len(calls):] if call["action"] not in (*ALLOCATIONS, "DescribeSubnet")], [],
                 "calls of the cloud")
    say(f"{BURST} ADDs at once: {took:.3f} s, {commits:.0f} commits")
    expect(commits <= COMMITS_MAX, f"{commits} commits for {BURST} ADDs at once")
    # And the last one from the cloud.
    answers.append(network_of(fields_of(waiting[-1].result())[2][0]))
    expect_equal(len({answer["ip"] for answer in answers}), BURST, "addresses are different")
    expect_equal(agent.records(), {answer["ip"]: answer["sandbox"] for answer in answers}, "the records")
    settled(cloud, [agent])


# ---------------------------------------------------------------- few addresses, and other nodes'

def make_cluster(world, name, low):
    """Of nodes with these marks."""
    cloud = Cloud(world, name, list(low), 28)
    agents = [Agent(cloud, node, low=mark, high=20, flags=QUICK) for node, mark in low.items()]
    certificates = Certificates(world, f"{name}-tls", low)
    make_peers(agents, certificates)
    return cloud, agents, certificates


def borrowing(world):
    """Three agents and a subnet of 13 that is used up."""
    cloud, (a, b, c), _ = make_cluster(world, "borrowing", {"node-a": 0, "node-b": 6, "node-c": 7})
    b.start()
    c.start()
    b.wait_for_free(6)
    c.wait_for_free(7)
    b.restart(low=0)
    c.restart(low=0)
    a.start()
    begin = time.monotonic()
    waiting = [a.start_add(f"a{i}", timeout=30) for i in range(5)]
    mine = [network_of(fields_of(one.result())[2][0])["ip"] for one in waiting]
    say(f"5 ADDs from other nodes' stocks: {time.monotonic() - begin:.1f} s")
    expect_equal(len(set(mine)), 5, "addresses are different")
    settled(cloud, [a, b, c])
    expect_equal((a.figures()['croft_stock_moves_total{what="borrowed"}'],
                  sum(x.figures()['croft_stock_moves_total{what="lent"}'] for x in (b, c))), (5, 5), "counted")
    # The rest is used by the pods of those who have it.
    rest = {x: [x.add(f"{x.node}-{i}") for i in range(len(x.free()))] for x in (b, c)}
    expect_equal(sorted(len(x.free()) for x in (a, b, c)), [0, 0, 0], "none is left")
    expect_equal(len(set(mine) | {ip for ips in rest.values() for ip in ips}), 13, "all have different ones")
    code, why = refusal(a.add, "too-many", timeout=4)
    expect_equal(code, grpc.StatusCode.INTERNAL, why)
    expect("no addresses left" in why, why)
    # They race for the last one.
    c.delete("node-c-0", timeout=5)
    settled(cloud, [a, b, c])

    # A certificate speaks for its own node. What else a peer may not: StockServerTest.ADoorForPeersLendsAndNoMore, ACertificateIsOfItsNode.
    a.flags = [*a.flags[:a.flags.index("--peer")], "--peer", f"node-c=127.0.0.1:{b.port}"]
    a.restart()
    code, why = refusal(a.add, "misled", timeout=4)
    expect("node-c" in why and "ostname mismatch" in why, f"{code} {why}")
    settled(cloud, [a, b, c])


def renewed_certificate(world):
    """The runbook's commands make certificates that agents take, and one that was renewed is used without a restart."""
    _, (agent, _), certificates = make_cluster(world, "renewed", {"node-a": 0, "node-b": 0})
    for purpose in ("sslserver", "sslclient"):
        run("openssl", "verify", "-x509_strict", "-purpose", purpose, "-verify_hostname", "node-a", "-CAfile",
            certificates.directory / "ca.crt", certificates.directory / "node-a.crt")
    agent.start()
    shown = lambda: ssl.get_server_certificate(("127.0.0.1", agent.port), timeout=5)
    before = shown()
    certificates.make("node-a")
    wait_for(lambda: shown() != before, "the renewed certificate is shown")
    expect_equal(shown().strip(), (certificates.directory / "node-a.crt").read_text().strip(), "the new one")


# ---------------------------------------------------------------- what others do to the cloud, and to the node

def hanging_cloud(world):
    """An operator's push and pop while the cloud does not answer: an error in time, and nothing that may have been done is lost."""
    cloud = Cloud(world, "hanging")
    agent = Agent(cloud, low=2, high=50, flags=QUICK).start()
    agent.wait_for_free(2)
    cloud.do("outage", mode="hang")
    for what, words in (("push", ("push", "node-a")), ("pop", ("pop", "node-a"))):
        while True:
            begin = time.monotonic()
            # The agent says what its node is called, which is not this machine's host name.
            done = run(world.bin / "croft", "vpc", *words, "--agent", f"unix:{agent.socket}", check=False)
            if "what the host uses is not known" not in done.stderr:  # as another test is making a namespace
                break
        expect(done.returncode in (1, 4) and "SecondaryIp" in done.stderr, f"{what}: {done.returncode} {done.stdout} {done.stderr}")
        expect(time.monotonic() - begin < 20, f"{what} took {time.monotonic() - begin:.1f} s")
    show = [world.bin / "croft", "vpc", "show", "--agent", f"unix:{agent.socket}"]
    # As soon as the call that hangs is given up.
    wait_for(lambda: json.loads(run(*show, "-o", "json").stdout)[0]["trouble"], "its trouble is told", 60)
    over_tcp = run(world.bin / "croft", "vpc", "show", "--agent", f"node-a=127.0.0.1:{agent.port}", check=False)
    expect(over_tcp.returncode != 0 and "its own machine" in over_tcp.stderr, over_tcp.stderr)
    cloud.do("outage", mode="off")
    settled(cloud, [agent], seconds=60)  # the next call hangs already, for 30 s


def old_clients(world):
    """The flags of UK8S' own agent. What its plugin asks: stock_server_test.cc."""
    cloud = Cloud(world, "oldclients")
    agent = Agent(cloud, low=0, high=5, flags=[*QUICK, "-availablePodIPHighWatermark=2", "-availablePodIPHighWatermark=9"])
    alone = run(*agent.command(), "--calicoPolicyFlag=true", check=False, env={"KUBERNETES_SERVICE_HOST": ""})
    expect("--calicoPolicyFlag" in alone.stderr and alone.returncode == 2, f"{alone.returncode} {alone.stderr}")
    inside = start_program(world, "inside", agent.command(), KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT="1")
    wait_for(lambda: "serviceaccount/token" in inside.tail(), "the agent asks the API of the cluster that it is in")
    inside.kill()
    agent.start()
    expect("water marks 0 and 9" in agent.process.tail(), "of a flag that is given twice the last counts")
    agent.add("one")
    settled(cloud, [agent])


def stopped(world):
    """An agent that is stopped for 30 s amid ADDs and DELs: its plugins go on without it, and it goes on behind them."""
    cloud = Cloud(world, "stopped")
    agent = Agent(cloud, low=60, high=110, flags=QUICK).start()
    agent.wait_for_free(60)
    lock, held, took, given = threading.Lock(), {}, [], []

    def pod(number):
        begin = time.monotonic()
        address = agent.plugin_add(f"c{number}")
        seconds = time.monotonic() - begin
        with lock:
            expect(address not in held, f"{address} was given to c{number}, and {held.get(address)} has it")
            held[address] = f"c{number}"
            took.append(seconds)
            given.append(address)
        if number % 2:
            with lock:
                del held[address]
            agent.plugin_delete(f"c{number}")

    with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
        pods = [pool.submit(pod, number) for number in range(50)]
        wait_for(lambda: len(given) >= 5, "pods start")
        stop_between_commits(agent.process, agent.store)
        time.sleep(30)
        alone = len(given)
        agent.process.send_signal(signal.SIGCONT)
        for one in pods:
            one.result()
    expect(alone > 15, f"{alone} pods started while the agent was stopped")
    in_time(took)
    say(f"stopped: {alone} ADDs without the agent, the slowest {max(took):.2f} s")
    wait_for(lambda: agent.records() == held, "the agent knows what the plugins did")
    agent.plugin_add("last")
    expect("via=agent" in agent.last_call(), "it is asked again")
    expect("read anew" in agent.process.tail(400), agent.process.tail())
    settled(cloud, [agent])


def in_time(took):
    """Of ADDs: as a rule, and the slowest on a busy machine."""
    took = sorted(took)
    expect(took[len(took) * 3 // 4] <= ADD_MOST_S and took[-1] <= ADD_MOST_S + BUSY, f"ADDs took {took}")


def slow_disk(world):
    """A disk whose syncs take 12 s: the agent is alive for its probe all the time, and goes on with what it was asked."""
    cloud, delay = Cloud(world, "slowdisk"), world.directory / "slowdisk-seconds"
    agent = Agent(cloud, low=3, high=9, flags=QUICK)
    agent.before = (sys.executable, SLOW_SYNC, delay)
    agent.start()
    agent.wait_for_free(3)
    delay.write_text("12")
    begin, waiting = time.monotonic(), agent.start_add("slow", timeout=60)
    while not waiting.done():
        with LOOPBACK.open(f"http://127.0.0.1:{agent.metrics_port}/healthz", timeout=5) as answer:
            expect_equal(answer.status, 200, "it is alive")
        time.sleep(0.5)
    expect(time.monotonic() - begin > 10, "it was slow")
    ip = network_of(fields_of(waiting.result())[2][0])["ip"]
    delay.write_text("0")
    expect_equal((agent.add("slow", timeout=60), agent.process.poll()), (ip, None), "the same agent, the same address")
    settled(cloud, [agent], seconds=60)


REBOOTED = ("unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"')


def rebooted(world):
    """A node that begins anew while the cloud is away, with 110 addresses in stock: pods start, and none of before loses its own."""
    cloud, boot = Cloud(world, "rebooted"), world.directory / "boot-id"
    boot.write_text("01234567-89ab-cdef-0011-2233445566ff\n")
    agent = Agent(cloud, low=BURST, high=BURST + 10).start()
    agent.wait_for_free(BURST)
    before = {agent.add(f"before-{i}"): f"before-{i}" for i in range(10)}
    agent.wait_for_free(BURST)
    cloud.do("outage", mode="refuse")
    agent.stop()
    agent.before = (*REBOOTED, boot)
    agent.start()
    after = {agent.add(f"after-{i}", timeout=30): f"after-{i}" for i in range(50)}
    expect_equal(agent.records(), {**before, **after}, "who has which address")
    expect_equal(len(before | after), 60, "addresses of all")
    cloud.do("outage", mode="off")
    settled(cloud, [agent], seconds=45)


def flip(store):
    """Bits all over the database, whose log is folded into it."""
    run("sqlite3", store, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(store.read_bytes())
    for at in range(4096, len(content), 97):
        content[at] ^= 1 << at % 8
    store.write_bytes(content)


def remove(store, *more):
    for suffix in ("", "-wal", "-shm", *more):
        store.with_name(store.name + suffix).unlink(missing_ok=True)


def lost_store(world, name, lose, while_running):
    """A damaged stock is set aside, and what the cloud has is quarantined: two pods live, one ends meanwhile.
    Disks that are full or read-only, and what is no damage: stock_store_test.cc, disk_trouble_test.cc."""
    cloud, pods = Cloud(world, name), world.netns(name.replace("_", "-"))
    agent = Agent(cloud, low=3, high=8, flags=[*QUICK, "--cooldown-seconds", "1"]).start()
    agent.wait_for_free(3)
    use = lambda address, verb="add": pods.run("ip", "address", verb, f"{address}/32", "dev", "lo")
    said = lambda: agent.process.log()

    def served(call, *arguments, **more):
        """As long as it is busy with what it lost, it says why not."""
        def is_served():
            try:
                return call(*arguments, **more) or True
            except grpc.RpcError as error:
                expect(error.details(), f"{name}: a failure without a reason: {error}")
                return False
        return wait_for(is_served, f"{name}: {call.__name__} {arguments}", PATIENCE)
    living = {agent.add("web"), agent.add("db")}
    for address in living:
        use(address)
    ended = agent.add("job")
    agent.wait_for_free(3)
    if not while_running:
        agent.stop()
    before = cloud.held()["node-a"]
    lose(agent.store)
    if while_running:
        expect(agent.process.wait(PATIENCE) != 0 and "the store is lost" in said(), f"{name}: {said()}")
    agent.start()
    # Whatever is given meanwhile is none of before: who knows what uses those.
    given = {"early": served(agent.add, "early", timeout=PATIENCE)}
    expect(given["early"] not in before, f"{name}: {given['early']} was given blindly")
    use(given["early"])
    wait_for(lambda: ended in agent.unused(), f"{name}: {ended} is set aside", PATIENCE)
    expect(not living & agent.unused(), f"{name}: {living} live")
    for i in range(6):
        given[f"late-{i}"] = agent.add(f"late-{i}", timeout=PATIENCE)
        use(given[f"late-{i}"])
    expect_equal(len(living | set(given.values())), 9, f"{name}: {living} live, and given are {given}")
    expect(not living & set().union(*agent.pool()), f"{name}: {living} are in the stock")
    is_aside = "is set aside as" in agent.process.log() and list(agent.directory.glob("stock.db.damaged*"))
    expect(is_aside or while_running, f"{name}: nothing is set aside: {agent.process.log()}")
    # What nobody knows a use of any more goes only when an operator says so; not while the agent is just asking the cloud for more.
    for address in living:
        use(address, "delete")
    wait_for(lambda: agent.unused() == before, f"{name}: what is unused", PATIENCE)
    served(agent.call, "ReleaseIP", b"".join(field(1, address) for address in before))
    gone = {event["ip"] for event in cloud.truth()["events"] if event["from"] and not event["to"]}
    expect(before <= gone, f"{name}: {before} went back to the cloud")
    agent.restart()
    expect_equal(served(agent.add, "late-0", timeout=PATIENCE), given["late-0"], f"{name}: it has what was recorded")
    cloud.check()


def insecure_peers(world):
    """Beside UK8S' own agents: plain gRPC on TCP, borrowed in both directions, and any operator is let in."""
    cloud = Cloud(world, "insecure", ("node-a", "node-b"), 29)
    a, b = (Agent(cloud, node, low=2, high=5, flags=QUICK) for node in ("node-a", "node-b"))
    for agent, other in ((a, b), (b, a)):
        agent.flags += ["--insecure-peers", "--listen", f"127.0.0.1:{agent.port}",
                        "--peer", f"{other.node}=127.0.0.1:{other.port}"]
    both = run(*a.command(), "--tls-ca", "ca.crt", check=False)
    expect(both.returncode == 2 and "--insecure-peers" in both.stderr, f"{both.returncode} {both.stderr}")
    a.start()
    b.start()
    a.wait_for_free(2)
    b.wait_for_free(2)
    with grpc.insecure_channel(f"127.0.0.1:{a.port}", options=(("grpc.enable_http_proxy", 0),)) as channel:
        pool = fields_of(channel.unary_unary("/rpc.CNIIpam/DescribePool")(b"", timeout=10))
        expect_equal({network_of(one)["ip"] for one in pool[2]}, a.free(), "the pool, as cnivpctl of another node asks")
        borrow = channel.unary_unary("/rpc.CNIIpam/BorrowIP")
        lent = network_of(fields_of(borrow(field(1, cloud.nodes["node-b"].upper()), timeout=10))[2][0])["ip"]
        expect(lent in cloud.held()["node-b"], "as UK8S' agent borrows, without a name for its request")
        code, why = refusal(channel.unary_unary("/rpc.CNIIpam/AddPodNetwork"), add_request("x"), timeout=10)
        expect_equal(code, grpc.StatusCode.UNIMPLEMENTED, why)
    a.wait_for_free(2)
    cloud.do("exhaust", subnet=SUBNET)
    of_a, own = a.free(), len(b.free())
    given = [b.add(f"b{i}", timeout=30) for i in range(own + 1)]
    expect(given[-1] in of_a and given[-1] in cloud.held()["node-b"], f"borrowed by a Croft: {given}")
    settled(cloud, [a, b], unused=None)


def case_of(function, name, *arguments):
    def case(world):
        function(world, name, *arguments)
    case.__name__ = name
    return case


LOST_STORES = [case_of(lost_store, name, lose, name.startswith("running")) for name, lose in (
    ("flipped", flip), ("emptied", lambda store: store.write_bytes(b"")), ("removed", remove),
    ("running_removed", lambda store: remove(store, "-lock")))]

# The longest first.
CASES = [hanging_cloud, stopped, slow_disk, water_marks, *LOST_STORES, borrowing, burst, board, ended, old_clients, insecure_peers, rebooted,
         renewed_certificate]


def test(world):
    require_network_namespaces()
    wanted = set(sys.argv[2:])
    at_once(world, [case for case in CASES if not wanted or case.__name__ in wanted], 8)


main(test, 200)
