"""One machine with a sqlite store of its own: plugins, perhaps an agent, the operator's commands, and a runtime's cache."""

import contextlib
import json
import pathlib
import signal
import subprocess

from lib import expect, expect_equal, own_environment, run, wait_for

NODE = "node-a"
SUFFIXES = ("", "-wal", "-shm", "-lock")
CORRUPT = 101


class Machine:
    """A store in a directory of its own, and what is called on it."""

    def __init__(self, world, name, cidr, block_size, cooldown=0):
        self.world = world
        self.folder = world.directory / name
        self.folder.mkdir()
        self.db = self.folder / "croft.db"
        self.store = f"sqlite:{self.db}"
        self.socket = world.directory / f"{name}.sock"
        self.log = world.directory / f"{name}.log"
        self.cache = world.directory / f"{name}-cni"
        (self.cache / "results").mkdir(parents=True)
        self.croft("pool", "create", "a", "--cidr", cidr, "--block-size", block_size, "--cooldown-seconds", cooldown,
                   check=True)

    def call(self, command, container, agent=False, preexec=None, **ipam):
        """(CNI code, 0 for success; the addresses; the text)"""
        config = {"cniVersion": "1.1.0", "name": "net", "ipam": {
            "type": "croft-ipam", "store": self.store, "nodename": NODE, "log_file_path": str(self.log), **ipam,
            "agent": str(self.socket) if agent else "none"}}
        env = {**own_environment(self.world.directory), "CNI_COMMAND": command, "CNI_CONTAINERID": container,
               "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": str(self.world.bin)}
        done = subprocess.run([self.world.bin / "croft-ipam"], input=json.dumps(config), env=env, capture_output=True,
                              text=True, timeout=60, check=False, preexec_fn=preexec)
        expect(done.returncode in (0, 1), f"{command} {container}: exit {done.returncode} {done.stderr}")
        answer = json.loads(done.stdout) if done.stdout.strip() else {}
        if done.returncode != 0:
            return answer["code"], [], answer["msg"]
        return 0, [ip["address"].split("/")[0] for ip in answer.get("ips", [])], ""

    def add(self, container, **how):
        code, addresses, text = self.call("ADD", container, **how)
        expect_equal(code, 0, f"ADD {container}: {text}")
        return addresses[0]

    def last_line(self):
        return self.log.read_text().splitlines()[-1]

    def path(self, suffix):
        return pathlib.Path(str(self.db) + suffix)

    def note_running(self, container, address):
        """As libcni does after an ADD."""
        entry = {"kind": "cniCacheV1", "containerId": container, "ifName": "eth0", "networkName": "net",
                 "result": {"cniVersion": "1.0.0", "ips": [{"address": f"{address}/24"}]}}
        (self.cache / "results" / f"net-{container}-eth0").write_text(json.dumps(entry))

    def croft(self, *arguments, check=False):
        return run(self.world.bin / "croft", "--store", self.store, *arguments, check=check)

    def held(self):
        return {row["address"]: row["handle"] for row in self.world.croft(self.store, "ip", "list")
                if row["state"] == "held"}

    @contextlib.contextmanager
    def agent(self):
        with open(self.world.directory / "agent.log", "a", encoding="utf-8") as errors:
            process = subprocess.Popen([self.world.bin / "croftd", "agent", "--store", self.store, "--socket",
                                        self.socket, "--node", NODE], stderr=errors)
            try:
                wait_for(lambda: process.poll() is not None or self.socket.exists(), "the agent serves")
                yield process
                expect(process.poll() is None, "the agent died")
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                process.wait(timeout=30)

    @contextlib.contextmanager
    def agent_or_refusal(self):
        """An agent that may refuse to start."""
        process = subprocess.Popen([self.world.bin / "croftd", "agent", "--store", self.store, "--socket", self.socket,
                                    "--node", NODE], stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: process.poll() is not None or self.socket.exists(), "the agent serves or ends")
            yield
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
