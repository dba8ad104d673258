"""Calico's own plugin and Croft's under its name on one etcd: the same answers, and each gives back what the other assigned."""

import json
import subprocess

from etcd_lib import CalicoPeer, Etcd
from lib import call_environment, expect, expect_equal, main, say


class Both:
    def __init__(self, world, etcd, peer):
        self.world, self.etcd = world, etcd
        self.calico, self.croft = peer.bin / "calico-ipam", world.bin / "calico-ipam"

    def call(self, program, command, container, ipam=None, args="IgnoreUnknown=1", version="1.0.0", node="node-a"):
        """Exit code and standard output."""
        config = {"cniVersion": version, "name": "net", "type": "calico", "nodename": node, "log_level": "error",
                  "datastore_type": "etcdv3", "etcd_endpoints": self.etcd.url,
                  "ipam_lock_file": str(self.world.directory / "ipam.lock"),
                  "log_file_path": str(self.world.directory / "cni.log"), "ipam": {"type": "calico-ipam", **(ipam or {})}}
        done = subprocess.run([program], input=json.dumps(config), env=call_environment(self.world, command, container, args),
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout

    def same_refusal(self, what, **options):
        """Both refuse with the same message; code and details are each one's own."""
        answers = []
        for program in (self.calico, self.croft):
            code, out = self.call(program, "ADD", "refused", **options)
            expect_equal(code, 1, f"{what}: exit code of {program} ({out})")
            answers.append(json.loads(out))
        expect_equal(answers[1]["msg"], answers[0]["msg"], what)
        say(f"{what}: {answers[0]['msg'].strip()}")

    def address(self, program, container, **options):
        code, out = self.call(program, "ADD", container, **options)
        expect_equal(code, 0, f"ADD by {program}: {out}")
        return out


def without_routes(text):
    """What Calico printed before v3.32, with the routes that it prints since."""
    answer = json.loads(text)
    answer.pop("routes", None)
    return answer


def test(world):
    etcd = Etcd(world)
    peer = CalicoPeer(world, etcd)
    both = Both(world, etcd, peer)
    for node in ("node-a", "node-b"):
        peer("node-create", node)
    peer("set-config", "--strict-affinity", "false", "--auto-allocate", "true")
    both.same_refusal("no pool")
    peer("pool-create", "--name", "four", "--cidr", "10.10.0.0/29", "--block-size", "29")
    peer("pool-create", "--name", "six", "--cidr", "fd00::/124", "--block-size", "124")

    first = both.address(both.calico, "calico")
    again = both.address(both.croft, "calico")
    expect_equal(without_routes(again), without_routes(first), "Croft's answer to the owner of Calico's address")
    # Calico gives a container that asks again one more address; Croft the one it has.
    mine = both.address(both.croft, "croft")
    expect_equal(mine, both.address(both.croft, "croft"), "asked again")
    expect(json.loads(mine)["ips"][0]["address"].endswith("/29"), mine)
    taken = json.loads(mine)["ips"][0]["address"].split("/")[0]
    both.same_refusal("taken", args=f"IP={taken}")
    both.same_refusal("in no pool", args="IP=10.99.0.1")
    both.same_refusal("unknown pool", ipam={"ipv4_pools": ["zz"]})
    both.same_refusal("pool of the other family", ipam={"ipv4_pools": ["six"]})
    both.same_refusal("unknown CIDR", ipam={"ipv4_pools": ["10.9.0.0/24"]})
    for i in range(6):
        both.address((both.calico, both.croft)[i % 2], f"more{i}")
    both.same_refusal("full")
    both.same_refusal("full, with IPv6", ipam={"assign_ipv6": "true"})
    left = peer("ips-by-handle", "net.refused", check=False)
    expect_equal(left["done"]["addresses"], [], "nothing is left of a refused dual stack")
    peer("set-config", "--strict-affinity", "true", "--auto-allocate", "true")
    both.same_refusal("full, strict", node="node-b")

    for program, container in ((both.croft, "calico"), (both.calico, "croft"), (both.croft, "nobody")):
        expect_equal(both.call(program, "DEL", container), (0, ""), f"DEL of {container}")
    for i in range(6):
        expect_equal(both.call((both.croft, both.calico)[i % 2], "DEL", f"more{i}"), (0, ""), "DEL crosswise")
    dump = peer("dump")
    expect(not dump.get("undecoded"), f"Calico's library can't read: {dump.get('undecoded')}")
    for container in ("calico", "croft", *(f"more{i}" for i in range(6))):
        left = peer("ips-by-handle", f"net.{container}", check=False)
        expect_equal(left["done"]["addresses"], [], f"held by {container} after its DEL")


main(test, seconds=280)
