"""The chart's alerts, each fired by `promtool test rules`, and each kept still by what must not fire it; every expression of the board
is one that Prometheus reads. The names of figures are held against the code by kube_chart.py.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from lib import TREE, expect, expect_equal, main, run, say, skip

MANIFEST = (TREE / "deploy" / "kubernetes" / "alerts.yaml").read_text()
OURS = 'job="croft-controller"'
POOL, OF_POOL = f'{OURS},pool="web",family="IPv4"', {"pool": "web", "family": "IPv4"}
LEADS = 'leader_election_master_status{name="croftd-controller",instance="%s"}'
SERVICES = "kube_apiserver_clusterip_allocator_%s_ips{" + OURS + ',cidr="10.96.0.0/24"}'
PASSES = "croft_collector_passes_total{" + OURS + ',outcome="%s"}'


def pool(free, held, **more):
    addresses = {f'croft_pool_addresses{{{POOL},state="{state}"}}': f"{count}x200" for state, count in (("free", free), ("held", held), ("reserved", 2))}
    return {**addresses, **more}


# (alert, series as promtool has them, minutes, labels besides the severity or nothing: it is still, its value).
CASES = [
    ("CroftPoolIsFull", pool(0, 30), 6, OF_POOL, ""),
    ("CroftPoolIsFull", pool(2, 28), 60, None, ""),
    ("CroftPoolIsFull", pool(0, 30, **{f"croft_pool_disabled{{{POOL}}}": "1x200"}), 60, None, ""),
    ("CroftPoolIsNearlyFull", pool(2, 28), 16, OF_POOL, ""),
    ("CroftPoolIsNearlyFull", pool(0, 30), 60, None, ""),
    ("CroftPoolIsNearlyFull", pool(5, 25), 60, None, ""),
    ("CroftPoolFillsWithinHours", {f'croft_pool_exhaustion_seconds{{{OURS},pool="web"}}': "7200x60"}, 15, {"pool": "web"}, "2h 0m 0s"),
    ("CroftPoolFillsWithinHours", {f'croft_pool_exhaustion_seconds{{{OURS},pool="web"}}': "1e9x60"}, 15, None, ""),
    ("CroftPoolFillsWithinDays", {f'croft_pool_exhaustion_seconds{{{OURS},pool="web"}}': "86400x90"}, 70, {"pool": "web"}, "1d 0h 0m 0s"),
    ("CroftPoolFillsWithinDays", {f'croft_pool_exhaustion_seconds{{{OURS},pool="web"}}': "7200x90"}, 70, None, ""),
    ("CroftLeakCandidatesGrow", {f"croft_leak_candidates{{{OURS}}}": "3x60 5x60"}, 95, {}, "5"),
    ("CroftLeakCandidatesGrow", {f"croft_leak_candidates{{{OURS}}}": "0x60 5x60"}, 95, None, ""),
    ("CroftCollectorFails", {PASSES % "failed": "0+1x90", PASSES % "ok": "7x90"}, 60, {}, ""),
    ("CroftCollectorFails", {PASSES % "failed": "0+1x90", PASSES % "ok": "0+1x90"}, 60, None, ""),
    ("CroftControllerIsAway", {f'up{{{OURS},namespace="croft-system"}}': "1x5 0x60"}, 25, {}, ""),
    ("CroftControllerIsAway", {f'up{{{OURS},namespace="croft-system"}}': "1x60"}, 25, None, ""),
    ("CroftControllerHasNoLeader", {LEADS % "a": "0x60", LEADS % "b": "0x60"}, 16, {}, ""),
    ("CroftControllerHasNoLeader", {LEADS % "a": "0x60", LEADS % "b": "1x60"}, 16, None, ""),
    ("CroftNodeRangesRunOut", {f'node_ipam_controller_cidrset_usage_cidrs{{{OURS},clusterCIDR="10.244.0.0/16"}}': "0.95x60"}, 16,
     {"clusterCIDR": "10.244.0.0/16"}, ""),
    ("CroftServiceAddressesRunOut", {SERVICES % "available": "5x60", SERVICES % "allocated": "95x60"}, 16,
     {"job": "croft-controller", "cidr": "10.96.0.0/24"}, ""),
    ("CroftServiceRangeIsWrong", {f'apiserver_clusterip_repair_ip_errors_total{{{OURS},type="leak"}}': "0+1x40"}, 20,
     {"job": "croft-controller", "type": "leak"}, ""),
]


def promtool():
    """This machine's, or Debian's, fetched once into the user's cache directory: installing the package starts a server."""
    installed = shutil.which("promtool")
    if installed:
        return pathlib.Path(installed)
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "croft" / "prometheus"
    path = root / "usr" / "bin" / "promtool"
    if not path.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as folder:
            done = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "prometheus"], cwd=folder, capture_output=True,
                                  text=True, check=False)
            if done.returncode != 0:
                skip(f"no promtool here, and Debian's package can't be had: {done.stderr.strip().splitlines()[-1:]}")
            made = pathlib.Path(folder) / "made"
            run("dpkg-deb", "-x", next(pathlib.Path(folder).glob("*.deb")), made)
            shutil.rmtree(root, ignore_errors=True)
            made.rename(root)
    return path


def rules():
    """The rules as promtool reads them, out of the manifest for the Prometheus operator."""
    body = MANIFEST[MANIFEST.index("\nspec:\n") + len("\nspec:\n"):]
    return "\n".join(line.removeprefix("  ") for line in body.splitlines()) + "\n"


def expected(alert, labels, value):
    part = MANIFEST[MANIFEST.index(f"- alert: {alert}\n"):]
    severity, summary, page = (re.search(pattern, part)[1] for pattern in (r"severity: (\w+)", r"summary: (.*)", r'runbook_url: "(.*)"'))
    expect((TREE / page).exists(), f"{page} is there")
    said = re.sub(r"\{\{ \$value[^}]*\}\}", value, re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], summary))
    return {"exp_labels": {"severity": severity, **labels}, "exp_annotations": {"summary": said, "runbook_url": page}}


def test(world):
    tool = promtool()
    folder = world.directory
    known = re.findall(r"- alert: (\w+)", MANIFEST)
    expect_equal(set(known), {alert for alert, *_, labels, _ in CASES if labels is not None}, "alerts, and those that are fired here")
    board = json.loads((TREE / "deploy/helm/croft/board.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    (folder / "board.yml").write_text(json.dumps({"groups": [{"name": "board", "rules": [
        {"record": f"board:{number}", "expr": expression} for number, expression in enumerate(asked)]}]}))
    (folder / "rules.yml").write_text(rules())
    for file in ("rules.yml", "board.yml"):
        run(tool, "check", "rules", folder / file)
    tests = [{"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
              "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": alert,
                                   "exp_alerts": [] if labels is None else [expected(alert, labels, value)]}]}
             for alert, series, minutes, labels, value in CASES]
    (folder / "test.yml").write_text(json.dumps({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}))
    done = run(tool, "test", "rules", folder / "test.yml", check=False)
    expect_equal(done.returncode, 0, f"promtool test rules: {done.stdout}{done.stderr}")
    say(f"{len(known)} alerts in {len(CASES)} cases, {len(asked)} expressions of the board")


main(test)
