"""A node with living pods: this process's own network namespace plays the node, so that servers on loopback are in reach of plugins that
run there, and pods are made by `ptp`.
"""

import json
import os
import pathlib
import sys

from lib import (DUPLICATES_ASKED, CniError, Namespace, Plugin, cache_entry, expect, expect_equal, require_network_namespaces,
                 require_programs, run)

NETWORK = "net"
INSIDE = "CROFT_TEST_IN_OWN_NAMESPACE"


def enter_own_namespace():
    """Runs the test anew in a network namespace of its own; what the network is needed for is to be done before."""
    if INSIDE in os.environ:
        run("ip", "link", "set", "lo", "up")
        pathlib.Path(DUPLICATES_ASKED).write_text("0")
        return
    require_network_namespaces()
    require_programs("ip", "ptp", "nsenter", "unshare")
    os.execvpe("unshare", ["unshare", "--net", sys.executable, "-B", *sys.argv], {**os.environ, INSIDE: "1"})


class Here(Namespace):
    """The namespace that this process is in."""

    def __init__(self):
        super().__init__("node")
        self.path = f"/proc/{os.getpid()}/ns/net"


class Pods:
    """Pods of one node, as its runtime makes them: with what that writes down of them (`cache`)."""

    def __init__(self, world, store, node, **ipam):
        self.world, self.store, self.node, self.here = world, store, node, Here()
        self.ipam = {"type": "croft-ipam", "store": store, "nodename": node, "agent": "none",
                     "log_file_path": str(world.directory / "ipam.log"), **ipam}
        self.cache = world.directory / f"cni-{node}"
        (self.cache / "results").mkdir(parents=True)
        self.living = {}  # by container: its namespace, the result of its ADD, its pod
        self.made = 0

    def config(self, **ipam):
        return {"cniVersion": "1.0.0", "name": NETWORK, "type": "ptp", "ipam": {**self.ipam, **ipam}}

    def args(self, pod, more=""):
        return f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod}" + more

    def entry(self, name):
        return self.cache / "results" / f"{NETWORK}-{name}-eth0"

    def plugin(self):
        return Plugin(self.world, "ptp", self.here)

    def add(self, name, pod=None, args="", **ipam):
        """The addresses that the container `name` has, from its own namespace; the pod is called so, too, if nothing is said."""
        self.made += 1
        pod = pod or name
        netns = self.world.netns(f"{name}-{self.made}")
        try:
            result = self.plugin().add(self.config(**ipam), name, netns, args=self.args(pod, args))
        except CniError:
            # As every runtime does.
            self.plugin().delete(self.config(**ipam), name, netns, args=self.args(pod, args))
            raise
        self.living[name] = (netns, result, pod)
        cache_entry(self.cache / "results", name, NETWORK, netns.path, pod=("default", pod), result=result)
        netns.wait_until_addresses_settle()
        return self.addresses(name)

    def addresses(self, name):
        return sorted(a.split("/")[0] for a in self.living[name][0].addresses())

    def stop(self, name):
        """As a runtime stops a sandbox: DEL with the result of its ADD, and its namespace goes."""
        netns, result, pod = self.living.pop(name)
        self.plugin().delete({**self.config(), "prevResult": result}, name, netns, args=self.args(pod))
        run("ip", "netns", "delete", netns.name)
        self.entry(name).unlink()

    def check_no_address_twice(self):
        """What the pods really have, and that each of them is reached by it."""
        owners = {}
        for name in self.living:
            for address in self.addresses(name):
                expect(address not in owners, f"{address} is {owners.get(address)}'s and {name}'s")
                owners[address] = name
        for name, (netns, _, _) in self.living.items():
            for address in self.addresses(name):
                before = netns.echo_requests(6 if ":" in address else 4)
                self.here.ping(address)
                expect_equal(netns.echo_requests(6 if ":" in address else 4) - before, 1, f"echo requests that reached {name}")
        return owners

    def check(self, *more):
        """What `croft check` finds, with what the runtime knows: by kind and subject."""
        done = run(self.world.bin / "croft", "--store", self.store, "-o", "json", "check", "--cni-cache", self.cache, "--node",
                   self.node, "--grace-seconds", "0", "--in-container", *more, check=False)
        return {(row["finding"], row["subject"]): row for row in json.loads(done.stdout)}
