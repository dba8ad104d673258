"""The page in Debian's Chromium: what people see, by mouse and by keys, in light and in dark, whatever pods are called.

usage: desk_browser.py BIN_DIR [--pictures FOLDER]   writes the pictures of docs/desk.md there
Needs chromium, node and npm; npm gets playwright-core and axe-core as browser/package-lock.json pins them, once, into the user's cache.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

from desk import Desk, ask
from lib import Failure, call_ipam, expect_equal, main, run, say, skip, wait_for
from metrics import free_port

HERE = pathlib.Path(__file__).resolve().parent / "browser"
IN_DOCS = ("desk-pools-light.png", "desk-map-dark.png")
HOSTILE = "<script>alert(1)</script>"


def modules():
    """The folder with node_modules, made once; skips where the registry is not to be had."""
    if not shutil.which("chromium"):
        skip("not installed: chromium (apt-get install chromium)")
    if not shutil.which("npm"):
        skip("not installed: nodejs, npm")
    lock = (HERE / "package-lock.json").read_bytes()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "croft-tests" / f"desk-{hashlib.sha256(lock).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, folder / name)
            # It holds what comes to the checksums of the lock file, and runs none of it.
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode != 0:
                if "EINTEGRITY" in done.stderr:
                    raise Failure(done.stderr)
                skip(f"npm cannot get playwright-core and axe-core: {done.stderr.strip().splitlines()[-1:]}")
            (folder / "done").touch()
    return folder


def cluster(world):
    """A register as one meets it: a pool that is nearly full, a large one, one of IPv6, one that is off, cooling and borrowed addresses."""
    store = world.store("desk")
    world.pool(store, "web", "10.10.0.0/26", "--block-size", "28", cooldown=600)
    world.pool(store, "batch", "10.64.0.0/12", "--block-size", "26")
    world.pool(store, "six", "fd00:10::/64")
    world.pool(store, "spare", "10.11.0.0/24")
    world.cli(store, "pool", "disable", "spare")
    world.cli(store, "reservation", "create", "lab", "--cidr", "10.64.128.0/20")

    def add(container, node, pool, pod, namespace="shop"):
        family = {"ipv6_pools": [pool], "assign_ipv4": "false", "assign_ipv6": "true"} if pool == "six" else {"ipv4_pools": [pool]}
        code, answer = call_ipam(world, "ADD", container, store, node=node, args=f"K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={pod}", **family)
        expect_equal(code, 0, f"{answer}")

    for number in range(56):
        add(f"w{number}", f"node-{number % 5}", "web", f"web-{number}")
    for number in range(0, 12, 3):
        expect_equal(call_ipam(world, "DEL", f"w{number}", store)[0], 0, "a DEL")
    for number in range(150):
        add(f"b{number}", f"node-{number % 9}", "batch", f"batch-{number}", "jobs")
    add("evil", "node-1", "batch", HOSTILE)
    for number in range(20):
        add(f"s{number}", f"node-{number % 4}", "six", f"six-{number}")
    return store


def test(world):
    folder = modules()
    pictures = world.directory / "pictures"
    pictures.mkdir()
    store, port = cluster(world), free_port()
    token = world.directory / "token"
    token.write_text("a-token-of-the-test")
    token.chmod(0o600)
    with Desk(world, store, f"127.0.0.1:{port}", "--desk-token-file", str(token), "--interval", "1h",
              "--history", str(world.directory / "history.db")):
        wait_for(lambda: ask(port, "/"), "the page")
        held = next(row for row in world.held(store).values() if row["pod"] == HOSTILE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = run("node", HERE / "desk.mjs", folder, f"http://127.0.0.1:{port}", token.read_text(), pictures, held["address"], HOSTILE,
                       check=False, timeout=200)
            say(done.stdout)
            if done.returncode != 0:
                raise Failure(done.stderr)
            for name in IN_DOCS if sys.argv[2:3] == ["--pictures"] else ():
                shutil.copy(pictures / name, sys.argv[3])
            return
        raise Failure("the browser did not come to an end")


main(test, seconds=280)
