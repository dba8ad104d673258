"""A real Prometheus and its promtool, out of Debian's package, which is not installed: installing it starts a server.

    with World("alerts", sys.argv[1]) as world:
        prometheus = Prometheus(world, {"croft-controller": ["127.0.0.1:9600"]}, {"namespace": "croft-system"})
        prometheus.query('up{job="croft-controller"}')
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from etcd_lib import free_ports
from lib import run, skip, wait_for

INTERVAL = "200ms"  # between two scrapes


def program(name):
    """`prometheus` or `promtool`: this machine's, or Debian's, fetched once into the user's cache directory."""
    installed = shutil.which(name)
    if installed:
        return pathlib.Path(installed)
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "croft" / "prometheus"
    path = root / "usr" / "bin" / name
    if not path.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as folder:
            done = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "prometheus"], cwd=folder, capture_output=True,
                                  text=True, check=False)
            if done.returncode != 0:
                skip(f"no {name} here, and Debian's package can't be had: {done.stderr.strip().splitlines()[-1:]}")
            made = pathlib.Path(folder) / "made"
            run("dpkg-deb", "-x", next(pathlib.Path(folder).glob("*.deb")), made)
            shutil.rmtree(root, ignore_errors=True)
            made.rename(root)
    return path


class Prometheus:
    """A server that scrapes `jobs`, addresses by job, while the world lasts; `labels` are given to all, as an operator does."""

    def __init__(self, world, jobs, labels):
        folder = world.directory / "prometheus"
        folder.mkdir()
        config = {"global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL},
                  "scrape_configs": [{"job_name": job, "static_configs": [{"targets": targets, "labels": labels}]} for job, targets in jobs.items()]}
        (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen([program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                        f"--web.listen-address={self.address}"], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        world.stack.callback(lambda: (process.kill(), process.wait()))
        wait_for(self.is_ready, "Prometheus is ready", 30)

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except urllib.error.URLError:
            return False

    def query(self, expression):
        """What an expression is now: (labels, value) of each series. An expression that Prometheus can't take is an error."""
        with urllib.request.urlopen(f"http://{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": expression}), timeout=10) as answer:
            result = json.load(answer)["data"]
        return [(one["metric"], float(one["value"][1])) for one in result["result"]]
