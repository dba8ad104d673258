"""What the client and the checker of the host-local power cut share. The networks have little room, so that addresses come round again
within one run; in one so many were there before that Croft keeps an index.
"""

import ipaddress
import json
import os
import pathlib
import shutil
import subprocess

NETWORKS = {
    "one": [[{"subnet": "10.1.0.0/27"}]],
    "two": [[{"subnet": "10.2.0.0/27"}], [{"subnet": "fd02::/123"}]],
    "crowd": [[{"subnet": "10.3.0.0/23", "rangeStart": "10.3.0.2", "rangeEnd": "10.3.1.72"}]],
}
CROWD = {str(ipaddress.ip_address("10.3.0.2") + i): f"crowd-{i}" for i in range(300)}  # of 327 addresses
LIVE_MAX = 18  # containers a network; its sets have room for 29


class HostLocal:
    """A copy of a program, called by the name `host-local` as a runtime does."""

    def __init__(self, program, folder, skip_one_sync_in=0):
        """`skip_one_sync_in`: the planted fault; of the syncs of a process every so manieth does nothing."""
        self.words = []
        if skip_one_sync_in:
            self.words = ["strace", "-f", "-o", "/dev/null", "-e",
                          f"inject=fsync,fdatasync:retval=0:when={skip_one_sync_in}+{skip_one_sync_in}"]
        self.path = pathlib.Path(folder) / "host-local"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, self.path)
        self.program = program

    def start(self, command, data, network, container):
        config = {"cniVersion": "1.0.0", "name": network,
                  "ipam": {"type": "host-local", "dataDir": str(data), "ranges": NETWORKS[network]}}
        env = {"PATH": os.environ["PATH"], "CROFT_LOG_DIRECTORY": "none", "CNI_COMMAND": command,
               "CNI_CONTAINERID": container, "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0",
               "CNI_PATH": str(self.path.parent)}
        process = subprocess.Popen([*self.words, str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=env, text=True)
        process.stdin.write(json.dumps(config))
        process.stdin.close()
        process.stdin = None
        return process

    @staticmethod
    def finish(process):
        """The addresses of an ADD, [] of a DEL; raises RuntimeError with what the plugin said when it failed."""
        answer, errors = process.communicate(timeout=60)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(process.args)}: exit {process.returncode}: {answer} {errors}")
        return [ip["address"].split("/")[0] for ip in json.loads(answer)["ips"]] if answer.strip() else []

    def call(self, command, data, network, container):
        return self.finish(self.start(command, data, network, container))


def content(container):
    return f"{container}\r\neth0".encode("ascii")
