"""The chart's alerts and board in a real Prometheus: it scrapes a controller and an agent while a pool fills, leaks come and passes fail;
`promtool test rules` fires each alert on the series that it recorded; every expression of alerts and board is evaluated there.

usage: alerts.py BIN_DIR
"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from etcd_lib import free_ports
from lib import World, call_ipam, expect, expect_equal, main, own_environment, run, say, start_agent, wait_for
from metrics import Controller
from prometheus_lib import Prometheus, program

TREE = pathlib.Path(__file__).resolve().parent.parent
PHASE = 120  # minutes that a state lasts in the tests of rules; it is recorded as it begins and as it ends
OURS = ("CroftPoolIsFull", "CroftPoolIsNearlyFull", "CroftLeakCandidatesGrow", "CroftCollectorFails", "CroftControllerIsAway")


def rules():
    """The rules as promtool reads them, out of the manifest for the Prometheus operator."""
    text = (TREE / "deploy" / "kubernetes" / "alerts.yaml").read_text()
    body = text[text.index("\nspec:\n") + len("\nspec:\n"):]
    return "\n".join(line.removeprefix("  ") for line in body.splitlines()) + "\n"


def expressions(text):
    """By the alert's name."""
    found = re.findall(r"- alert: (\w+)\n +expr: (>-\n(?: {10,}.*\n)+|.*\n)", text)
    return {name: " ".join(line.strip() for line in expr.removeprefix(">-").strip().strip("'\"").splitlines()).replace('\\"', '"') for name, expr in found}


class Run:
    """A controller and an agent on one store, and what Prometheus recorded of them."""

    def __init__(self, world):
        self.world = world
        self.store = world.store()
        self.facts = world.directory / "facts.json"
        self.controller, self.agent = (f"127.0.0.1:{port}" for port in free_ports(2))
        self.socket = world.directory / "agent.sock"
        self.recorded = []  # (name of the state, labels to value as it begins, as it ends)

    def croft(self, *arguments):
        run(self.world.bin / "croft", "--store", self.store, *arguments)

    def tell_pods(self, names):
        made = self.world.directory / "facts.new"
        made.write_text(json.dumps({"nodes": [{"name": "node-a"}], "complete": True, "pods": [{"namespace": "default", "name": name, "node": "node-a"} for name in names]}))
        made.rename(self.facts)

    def add(self, pod):
        """Whether it got an address."""
        args = f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod};K8S_POD_INFRA_CONTAINER_ID=of-{pod}"
        return call_ipam(self.world, "ADD", f"of-{pod}", self.store, args=args, agent=str(self.socket))[0] == 0

    def snapshot(self):
        samples = self.prometheus.query('{job="croft-controller"}')
        return {json.dumps(labels, sort_keys=True): value for labels, value in samples}

    def value(self, expression):
        """Of the one series that there is."""
        found = self.prometheus.query(expression)
        return found[0][1] if len(found) == 1 else None

    def record(self, name, condition, what, more=lambda: True):
        """A state: from when `condition` holds until `more` does."""
        wait_for(condition, f"{name}: {what}", 30)
        begin = self.snapshot()
        wait_for(more, f"{name}: it goes on", 30)
        self.recorded.append((name, begin, self.snapshot()))
        say(f"recorded: {name}")

    def passes(self, outcome):
        return self.value(f'croft_collector_passes_total{{outcome="{outcome}"}}') or 0

    def free(self):
        return self.value('croft_pool_addresses{pool="web", state="free"}')

    def some_passes(self, outcome):
        begin = self.passes(outcome)
        return lambda: self.passes(outcome) >= begin + 3


def live(world):
    """Fills, leaks and fails."""
    a = Run(world)
    a.croft("pool", "create", "web", "--cidr", "10.97.0.0/27", "--block-size", "27", "--gateway", "none", "--cooldown-seconds", "0")
    a.croft("pool", "create", "off", "--cidr", "10.97.1.0/30", "--block-size", "30", "--gateway", "none")
    a.croft("pool", "disable", "off")
    a.croft("node", "label", "node-a", "zone=a")
    pods = [f"p{number}" for number in range(40)]
    a.tell_pods(pods)
    start_agent(world, a.store, "node-a", a.socket, "--metrics-bind-address", a.agent, env=own_environment(world.directory))
    with Controller(world, a.store, a.controller, "--facts", str(a.facts), "--grace", "168h", "--interval", "100ms", "--status-interval", "100ms",
                    "--repair-service-ranges", "--service-cluster-ip-range", "10.96.0.0/24", "--allocate-node-cidrs", "--cluster-cidr", "10.244.0.0/22"):
        a.prometheus = Prometheus(world, {"croft-controller": [a.controller], "croft-agent": [a.agent]}, {"namespace": "croft-system"})
        wait_for(lambda: a.free() is not None, "the first count", 30)
        room = int(a.free())
        for pod in pods[:5]:
            expect(a.add(pod), f"an address for {pod}")
        a.record("room", lambda: a.free() == room - 5, "five pods", a.some_passes("ok"))
        for pod in pods[5:room - 2]:
            expect(a.add(pod), f"an address for {pod}")
        a.record("nearly full", lambda: a.free() == 2, "two are free", a.some_passes("ok"))
        for pod in pods[room - 2:room]:
            expect(a.add(pod), f"an address for {pod}")
        expect(not a.add(pods[-1]), "nothing is free")
        a.record("full", lambda: a.free() == 0, "nothing is free", a.some_passes("ok"))
        # As many more pods as had addresses keep the list from having shrunk: what looks dead is what is missing in it.
        a.tell_pods(pods[3:])
        a.record("leaks", lambda: a.value("croft_leak_candidates") == 3, "three look dead", a.some_passes("ok"))
        a.tell_pods(pods[5:])
        a.record("more leaks", lambda: a.value("croft_leak_candidates") == 5, "five look dead", a.some_passes("ok"))
        evaluate(a)
        database = pathlib.Path(a.store.removeprefix("sqlite:"))
        hidden = database.with_name("hidden.db")
        database.rename(hidden)
        database.mkdir()
        begin = a.passes("failed")
        a.record("passes fail", lambda: a.passes("failed") > begin, "a pass that failed", a.some_passes("failed"))
        database.rmdir()
        hidden.rename(database)
    return a


def evaluate(a):
    """Each expression of alerts and board; those of pools and agents tell something."""
    texts = list(expressions(rules()).values())
    board = json.loads((TREE / "deploy/helm/croft/board.json").read_text())
    expect(board["panels"][0]["title"].startswith("Pools"), "pools come first")
    told = 0
    panels = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for text in texts + panels:
        found = a.prometheus.query(text)
        told += bool(found)
        is_ours = "croft_" in text and text in panels and "released_total" not in text
        expect(found or not is_ours, f"nothing comes of {text}")
    say(f"{len(texts)} expressions of alerts and {len(panels)} of the board evaluated by {version()}; {told} had a value in this run")


def version():
    return re.match(r"promtool, (version \S+)", run(program("promtool"), "--version").stdout)[1]


def values_of(series, states):
    """A value a minute. A gauge is as it was when its state began; a counter goes straight to where it was at its end."""
    is_counter = json.loads(series)["__name__"].endswith("_total")
    parts = []
    for _, begin, end in states:
        if series not in begin or series not in end:
            parts.append(f"_x{PHASE}")
            continue
        step = (end[series] - begin[series]) / (PHASE - 1) if is_counter else 0
        parts.append(f"{begin[series]:.17g}+{step:.17g}x{PHASE - 1}")
    return " ".join(parts)


def named(series):
    labels = json.loads(series)
    return labels.pop("__name__") + "{" + ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items())) + "}"


def fires(a):
    """Which alerts fire at the end of each state, as promtool tells it of the recorded series."""
    states = a.recorded
    known = sorted({series for _, begin, end in states for series in (*begin, *end)})
    wanted = {name: set() for name, _, _ in states}
    wanted["nearly full"] = {"CroftPoolIsNearlyFull"}
    wanted["full"] = {"CroftPoolIsFull"}
    wanted["leaks"] = {"CroftPoolIsFull"}
    wanted["more leaks"] = {"CroftPoolIsFull", "CroftLeakCandidatesGrow"}
    wanted["passes fail"] = {"CroftPoolIsFull", "CroftCollectorFails"}
    labels = {"CroftPoolIsFull": {"severity": "critical", "pool": "web", "family": "IPv4"},
              "CroftPoolIsNearlyFull": {"severity": "warning", "pool": "web", "family": "IPv4"},
              "CroftLeakCandidatesGrow": {"severity": "warning"}, "CroftCollectorFails": {"severity": "warning"},
              "CroftControllerIsAway": {"severity": "warning"}}
    summaries = {name: re.search(rf"- alert: {name}\n(?:.*\n)*?            summary: (.*)", rules_as_written())[1] for name in OURS}
    folder = a.world.directory / "rules"
    folder.mkdir()
    (folder / "rules.yml").write_text(rules())
    checks = []
    # Behind the last state nobody answers.
    ends = [(name, f"{PHASE * (index + 1) - 70 if name == 'more leaks' else PHASE * (index + 1) - 10}m") for index, (name, _, _) in enumerate(states)]
    wanted["away"] = {"CroftControllerIsAway"}
    ends.append(("away", f"{PHASE * len(states) + 45}m"))
    for name, at in ends:
        for alert in OURS:
            firing = [{"exp_labels": labels[alert], "exp_annotations": annotations(alert, summaries[alert])}] if alert in wanted[name] else []
            checks.append({"eval_time": at, "alertname": alert, "exp_alerts": firing})
    test = {"rule_files": ["rules.yml"], "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": [{"series": named(series), "values": values_of(series, states)} for series in known],
                       "alert_rule_test": checks}]}
    (folder / "test.yml").write_text(json.dumps(test))
    run(program("promtool"), "check", "rules", folder / "rules.yml")
    done = run(program("promtool"), "test", "rules", folder / "test.yml", check=False)
    expect_equal(done.returncode, 0, f"promtool test rules: {done.stdout}{done.stderr}")
    say(f"promtool: {len(checks)} statements hold on {len(known)} recorded series")
    # What it says of rules that fire when they should not is seen.
    (folder / "rules.yml").write_text(rules().replace("== 0", ">= 0", 1))
    expect(run(program("promtool"), "test", "rules", folder / "test.yml", check=False).returncode != 0, "another rule is another answer")


def rules_as_written():
    return (TREE / "deploy" / "kubernetes" / "alerts.yaml").read_text()


def annotations(alert, summary):
    text = summary.replace("{{ $labels.pool }}", "web").replace("{{ $value }}", "5")
    page = re.search(rf'- alert: {alert}\n(?:.*\n)*?            runbook_url: "(.*)"', rules_as_written())[1]
    expect((TREE / page).exists(), f"{page} is there")
    return {"summary": text, "runbook_url": page}


def test():
    with World("alerts", sys.argv[1]) as world:
        program("prometheus")
        fires(live(world))


if __name__ == "__main__":
    main(test)
