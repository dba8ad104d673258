"""A real etcd for end-to-end tests, and what they ask it."""

import base64
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import time
import urllib.request

from lib import Failure, Killable, SKIPPED, require_programs, run, skip, wait_for


SLOW_SYNC = pathlib.Path(__file__).resolve().parent / "slow_sync.py"

_reserved = []  # by the ports that this process has given out, as long as it lives


def free_ports(count):
    """Ports for servers that nobody listens at now. Below those that the kernel gives to whoever connects: one of these
    may be a client's of another test by the time the server begins, or begins again. The UDP port of the number is kept,
    so that no other test, and no other part of this one, takes it before the server does."""
    ports = set()
    while len(ports) < count:
        port = random.randrange(10000, 30000)
        keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                keeper.bind(("127.0.0.1", port))
            except OSError:
                keeper.close()
                continue
        _reserved.append(keeper)
        ports.add(port)
    return list(ports)


CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """An authority and what it has signed, in one directory."""

    def __init__(self, folder, name):
        self.folder = folder / name
        self.folder.mkdir()
        self.certificate, self.key = self.folder / "ca.crt", self.folder / "ca.key"
        run("openssl", "req", "-x509", *CURVE, "-subj", f"/CN={name}", "-days", "2", "-keyout", self.key,
            "-out", self.certificate)

    def sign(self, subject, names):
        """(certificate, key) with these names, as in "IP:127.0.0.1"."""
        request, extensions = self.folder / f"{subject}.csr", self.folder / f"{subject}.cnf"
        certificate, key = self.folder / f"{subject}.crt", self.folder / f"{subject}.key"
        run("openssl", "req", "-new", *CURVE, "-subj", f"/CN={subject}", "-keyout", key, "-out", request)
        extensions.write_text(f"subjectAltName={names}\n")
        run("openssl", "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", "2",
            "-extfile", extensions, "-out", certificate)
        return certificate, key


class Etcd(Killable):
    """One member, with its data in the World's directory; it goes with the World. `slowable`: see slow_down()."""

    scheme = "http"
    ctl_flags = ()

    def __init__(self, world, *arguments, slowable=False):
        require_programs("etcd", "etcdctl")
        self.world, self.arguments, self.slowable = world, arguments, slowable
        self.port, peer = free_ports(2)
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.peer = f"http://127.0.0.1:{peer}"
        self.data = world.directory / f"etcd-{self.port}"
        world.stack.callback(self.kill)
        self.start()

    def start(self):
        log = open(self.world.directory / f"etcd-{self.port}.log", "ab")
        program = [sys.executable, SLOW_SYNC, self._delay, "etcd"] if self.slowable else ["etcd"]
        self.process = subprocess.Popen(
            [*program, "--data-dir", self.data, "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
             "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
             "--initial-cluster", f"default={self.peer}", "--logger", "zap", "--log-level", "error", *self.arguments],
            stdout=log, stderr=log)
        wait_for(lambda: self.ctl("endpoint", "health", check=False).returncode == 0, "etcd is healthy")

    @property
    def _delay(self):
        return self.world.directory / f"etcd-{self.port}.delay"

    def slow_down(self, seconds):
        """Lets a write take about so long from now on; 0: as long as it takes. A write waits for its own sync of the log,
        and mostly for one or two of the database. Returns what a write takes then, measured."""
        self._delay.write_text(str(seconds * 0.45))
        return self.write_time()

    def write_time(self, count=3):
        """The mean of a few writes, one after the other, without their programs' own time."""
        took = []
        for i in range(count):
            body = json.dumps({"key": base64.b64encode(b"/slow_down").decode(), "value": base64.b64encode(str(i).encode()).decode()})
            begin = time.monotonic()
            with urllib.request.urlopen(urllib.request.Request(self.url + "/v3/kv/put", body.encode()), timeout=60) as answer:
                answer.read()
            took.append(time.monotonic() - begin)
        return sum(took) / count

    @property
    def store(self):
        return f"etcd:{self.url}"

    def ctl(self, *arguments, check=True):
        return run("etcdctl", "--endpoints", self.url, *self.ctl_flags, *arguments, check=check,
                   env={**os.environ, "ETCDCTL_API": "3"})

    def requests(self):
        """How many requests of each kind etcd has handled so far."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=10) as answer:
            text = answer.read().decode()
        counts = {}
        for method, number in re.findall(r'grpc_server_handled_total\{[^}]*grpc_method="(\w+)"[^}]*\} (\S+)', text):
            counts[method] = counts.get(method, 0) + float(number)
        return {method: int(number) for method, number in counts.items() if number}

    def requests_of(self, call):
        """The requests that a call makes."""
        before = self.requests()
        call()
        after = self.requests()
        return {m: after[m] - before.get(m, 0) for m in after if after[m] != before.get(m, 0)}

    def get(self, prefix):
        """All keys with a prefix, with their values."""
        lines = self.ctl("get", "--prefix", prefix).stdout.split("\n")
        return dict(zip(lines[0::2], lines[1::2]))

    def put(self, key, value):
        self.ctl("put", key, value)


class CalicoPeer:
    """Calico's own library as a program (bench/peers/calico), its plugin and calicoctl. Skips the test where it can't be built."""

    def __init__(self, world, etcd):
        source = pathlib.Path(__file__).resolve().parent.parent / "bench" / "peers" / "build-calico"
        cache = pathlib.Path(os.environ.get("CROFT_CALICO_PEER", world.bin.parent / "peers"))
        if not all((cache / program).exists() for program in ("calico-peer", "calicoctl")):
            done = subprocess.run([source, cache], capture_output=True, text=True, timeout=900, check=False)
            if done.returncode == SKIPPED:
                skip(done.stderr.strip().splitlines()[-1])
            if done.returncode != 0:
                raise Failure(done.stderr)
        self.bin, self.etcd = cache, etcd

    def __call__(self, command, *arguments, check=True, timeout=120):
        done = run(self.bin / "calico-peer", "--endpoint", self.etcd.url, command, *arguments, check=False,
                   timeout=timeout)
        answer = json.loads(done.stdout) if done.stdout.strip() else None
        if check and done.returncode != 0:
            raise Failure(f"calico-peer {command} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return answer

    def start(self, command, *arguments):
        return subprocess.Popen([self.bin / "calico-peer", "--endpoint", self.etcd.url, command, *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
