"""Least privilege on an etcd with authentication: the roles of docs/runbooks/etcd-roles.md, each
program with its own, and a password that changes under running programs.
"""

import os
import re
import subprocess
import time

from agent_etcd import NodeWithAgent, agent_of
from etcd_lib import Authority, Etcd, Node
from lib import TREE, expect, expect_equal, main, require_programs, run, say, wait_for

RUNBOOK = TREE / "docs" / "runbooks" / "etcd-roles.md"
OK = 0
USERS = ("node", "controller", "operator", "viewer")


class SecretEtcd(Etcd):
    """A member with a certificate, for users with passwords."""

    scheme = "https"

    def __init__(self, world, ca, server):
        self.ctl_flags = ("--cacert", ca)
        super().__init__(world, "--cert-file", server[0], "--key-file", server[1])

    def as_user(self, user, *arguments, check=True):
        return self.ctl("--command-timeout", "30s", "--user", f"{user}:secret-{user}", *arguments, check=check)


def make_roles(world, etcd, ca):
    """What the runbook says, literally."""
    commands = next(block for block in re.findall(r"```\n(.*?)```", RUNBOOK.read_text(), re.DOTALL) if "grant()" in block)
    done = subprocess.run(["sh", "-eu"], input=commands, text=True, capture_output=True, check=False, timeout=60,
                          env={**os.environ, "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": etcd.url, "ETCDCTL_CACERT": str(ca)})
    expect_equal(done.returncode, 0, f"the runbook's commands: {done.stdout}{done.stderr}")
    etcd.ctl("user", "add", "root:secret-root")
    etcd.ctl("user", "grant-role", "root", "root")
    for user in (*USERS, "looker"):
        etcd.ctl("user", "add", f"{user}:secret-{user}")
        if user in USERS:
            etcd.ctl("user", "grant-role", user, f"croft-{user}")
        (world.directory / f"{user}.password").write_text(f"secret-{user}\n")
        (world.directory / f"{user}.password").chmod(0o600)
    etcd.ctl("auth", "enable")
    etcd.ctl_flags = (*etcd.ctl_flags, "--user", "root:secret-root")  # without one nothing is healthy from here on


def roles(world, etcd, url):
    """Everybody can do their work, and nothing else."""
    world.pool(url("operator"), "a", "10.77.0.0/24", "--block-size", "26", "--gateway", "10.77.0.1")
    for store in (url("node"), url("controller"), url("viewer")):
        for command in (["pool", "create", "b", "--cidr", "10.78.0.0/24"], ["pool", "disable", "a"]):
            refused = world.cli(store, *command, codes=None)
            expect(refused.returncode != OK and "permission denied" in refused.stderr, f"{store}: croft {command}: {refused}")
    before = set(etcd.as_user("root", "get", "--prefix", "/", "--keys-only").stdout.split())
    alone = Node(world, url("node"), "elm")
    alone.ipam["agent"] = "none"
    alone.add("alone")
    agent = agent_of(world, url("node"), "oak")
    oak = NodeWithAgent(world, url("node"), agent, "oak")
    for container in ("c1", "c2", "c3"):
        oak.add(container)
    oak.delete("c2")
    alone.delete("alone")
    expect(oak.paths()[0] >= 2, f"served by the agent: {oak.paths()}")
    after = set(etcd.as_user("root", "get", "--prefix", "/", "--keys-only").stdout.split())
    say("written by the node: " + ", ".join(sorted({re.sub(r"/[^/]*$", "/", key) for key in after - before})))
    once = run(world.bin / "croftd", "controller", "--store", url("controller"), "--once", "--grace", "1ms",
               check=False)
    expect(once.returncode in (OK, 3), f"the controller: {once.returncode} {once.stdout}{once.stderr}")
    expect("permission denied" not in once.stdout + once.stderr, f"the controller: {once.stdout}{once.stderr}")
    for store in (url(user) for user in USERS):
        for command in (["ip", "list"], ["pool", "list"], ["check"]):
            world.cli(store, *command)
    held = world.held(url("viewer"))
    expect_equal(sorted(row["containerId"] for row in held.values()), ["c1", "c3"], "held")
    refused = world.cli(url("viewer"), "ip", "release", next(iter(held)), "--force", codes=None)
    expect(refused.returncode != OK and len(world.held(url("viewer"))) == 2, f"the viewer releases: {refused.stderr}")
    for user in USERS:
        for key in ("/registry/services/specs/default/a", "/calico/resources/v3/projectcalico.org/profiles/a/../b",
                    "/croft/v2/a", "/other", "/calico/ipam/v1/a"):
            if user == "operator" and key.startswith("/calico/resources"):
                continue
            denied = etcd.as_user(user, "put", key, "v", check=False)
            expect(denied.returncode != 0, f"{user} writes {key}")
        expect(etcd.as_user(user, "get", "--prefix", "/registry/", check=False).returncode != 0, f"{user} reads /registry/")
    denied = etcd.as_user("node", "put", "/calico/ipam/v2/config", "{}", check=False)
    expect(denied.returncode != 0, "a node writes the configuration")
    say("plugin, agent, controller and croft work with their roles, and write nothing else")
    return agent, oak


def looks(world, etcd, url):
    """Who may read what is Calico's alone is told what is not judged, and sees the rest."""
    etcd.ctl("role", "add", "looker")
    for prefix in ("/calico/ipam/v2/assignment/", "/calico/ipam/v2/host/", "/calico/ipam/v2/config", "/calico/resources/"):
        etcd.ctl("role", "grant-permission", "--prefix", "looker", "read", prefix)
    etcd.ctl("user", "grant-role", "looker", "looker")
    for command in (["check"], ["ip", "list"], ["explain", "--node", "oak"]):
        told = world.cli(url("looker"), *command)
        expect("what is Croft's own (etcd: etcdserver: permission denied" in told.stderr, f"croft {command}: {told}")
    expect("handles, " in (told := world.cli(url("looker"), "check")).stderr and "handles not read" in told.stdout, f"{told}")


def rotation(world, etcd, agent, oak):
    """Nothing is restarted. Certificates and authorities that change: tls_test.cc."""
    password = world.directory / "node.password"

    def served_by_agent():
        before = oak.paths()[0]
        oak.add(f"r{time.monotonic_ns()}")
        return oak.paths()[0] > before
    done = subprocess.run(["etcdctl", "--endpoints", etcd.url, *etcd.ctl_flags, "--user", "root:secret-root", "user",
                           "passwd", "node", "--interactive=false"], input="another\n", text=True, capture_output=True,
                          check=False, env={**os.environ, "ETCDCTL_API": "3"})
    expect_equal(done.returncode, 0, f"etcdctl user passwd: {done.stderr}")
    answer = oak.refuse("late")
    expect_equal(answer["code"], 11, f"with the old password: {answer}")
    expect("authentication failed" in str(answer), f"with the old password: {answer}")
    password.write_text("another\n")
    wait_for(served_by_agent, "the agent with the new password", 20)
    say("a new password is used without a restart")

    password.chmod(0o644)
    answer = oak.refuse("open", agent="none")
    expect(f"chmod 640 {password}" in str(answer), f"a password that all can read: {answer}")
    password.chmod(0o600)
    expect(agent.poll() is None, "it is the same agent")


def test(world):
    require_programs("openssl", "etcd", "etcdctl")
    authority = Authority(world.directory, "authority")
    ca = world.directory / "ca.pem"
    ca.write_text(authority.certificate.read_text())
    server = authority.sign("server", "IP:127.0.0.1")
    etcd = SecretEtcd(world, ca, server)
    make_roles(world, etcd, ca)

    def url(user):
        return f"{etcd.store}?ca={ca}&user={user}&password-file={world.directory}/{user}.password"
    agent, oak = roles(world, etcd, url)
    looks(world, etcd, url)
    rotation(world, etcd, agent, oak)


main(test)
