"""How the daemons end: SIGTERM ends them within five seconds whatever they do, and no socket stays; SIGHUP ends nothing. An agent without
its store does not say "serving"; --user N lets user N connect, and nobody else.
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time

from etcd_lib import Etcd
from lib import Daemon, begin_ipam, expect, expect_equal, main, run, say, wait_for

END_WITHIN = 5.0
SERVING, NOT_SERVING = 1, 2
STRANGER, OTHER = 4711, 4712


HEALTH = """
import grpc, os, sys
if int(sys.argv[2]) != os.geteuid():
    os.setgroups([]), os.setuid(int(sys.argv[2]))
with grpc.insecure_channel("unix:" + sys.argv[1]) as channel:
    print(channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10)[1])
"""


def health(path, user=os.geteuid()):
    """What gRPC's service of health says to a user; None when the door is shut."""
    return int(run(sys.executable, "-c", HEALTH, path, user, check=False).stdout or 0) or None


class Rig:
    def __init__(self, world):
        self.world = world
        self.socket = world.directory / "run" / "agent.sock"
        self.socket.parent.mkdir(mode=0o755)
        self.errors = world.directory / "daemon.log"

    def daemon(self, *arguments):
        self.errors.unlink(missing_ok=True)
        return Daemon(self.world, "daemon", self.world.bin / "croftd", *arguments)

    def agent(self, store, *arguments):
        process = self.daemon("agent", "--store", store, "--socket", self.socket, "--node", "oak", *arguments)
        wait_for(lambda: process.poll() is not None or health(self.socket) == SERVING, "the agent serves")
        expect(process.poll() is None, f"the agent ended: {process.log()}")
        return process

    def add(self, store, container):
        process = begin_ipam(self.world, "ADD", container, store, "oak", agent=str(self.socket))
        self.world.stack.callback(process.wait)
        self.world.stack.callback(process.kill)
        return process

    def ends(self, process, number, what):
        begin = time.monotonic()
        process.send_signal(number)
        try:
            process.wait(timeout=END_WITHIN + 5)
        except subprocess.TimeoutExpired:
            expect(False, f"{what}: not ended by signal {number}; {self.errors.read_text()}")
        took = time.monotonic() - begin
        expect(took < END_WITHIN + 0.5, f"{what}: ended after {took:.1f} s")
        expect(process.returncode in (0, 1), f"{what}: exit {process.returncode}: {self.errors.read_text()}")
        expect(not self.socket.exists(), f"{what}: the socket is left")
        say(f"{what}: ended in {took:.1f} s with {process.returncode}")


def with_nothing_to_do(rig, store):
    for number in (signal.SIGTERM, signal.SIGINT):
        with rig.agent(store) as agent:
            agent.send_signal(signal.SIGHUP)
            time.sleep(0.3)
            expect_equal((agent.poll(), health(rig.socket)), (None, SERVING), "after SIGHUP")
            rig.ends(agent, number, f"an idle agent, signal {number}")
            expect_equal(agent.returncode, 0, "its exit code")
    with rig.daemon("controller", "--store", store) as controller:
        wait_for(lambda: "look" in rig.errors.read_text() or "collect" in rig.errors.read_text(), "the first pass")
        controller.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        expect_equal(controller.poll(), None, "the controller after SIGHUP")
        rig.ends(controller, signal.SIGTERM, "an idle controller")
        expect_equal(controller.returncode, 0, "its exit code")


def behind_a_lock(rig, store):
    """Somebody has the turn and does not give it back: the agent's worker waits for it."""
    lock = pathlib.Path(store.split(":", 1)[1]).parent
    with rig.agent(store) as agent:
        rig.add(store, "before").wait(timeout=30)
        with contextlib.ExitStack() as held:
            for path in lock.glob("*lock*"):
                file = held.enter_context(open(path, "rb+"))
                fcntl.flock(file, fcntl.LOCK_EX)
            for i in range(6):
                rig.add(store, f"c{i}")
            time.sleep(0.7)
            rig.ends(agent, signal.SIGTERM, "an agent whose workers wait for a lock")


def without_its_store(rig, etcd):
    with rig.agent(etcd.store) as agent:
        rig.add(etcd.store, "one").wait(timeout=30)
        etcd.process.send_signal(signal.SIGSTOP)
        try:
            for i in range(6):
                rig.add(etcd.store, f"c{i}")
            wait_for(lambda: health(rig.socket) == NOT_SERVING, "the agent says that it does not serve", 40)
            etcd.process.send_signal(signal.SIGCONT)
            wait_for(lambda: health(rig.socket) == SERVING, "the agent serves again", 40)
            say("an agent without its store says so, until it is back")
            etcd.process.send_signal(signal.SIGSTOP)
            for i in range(6):
                rig.add(etcd.store, f"d{i}")
            time.sleep(0.7)
            rig.ends(agent, signal.SIGTERM, "an agent on an etcd that is stopped")
            with rig.daemon("controller", "--store", etcd.store) as controller:
                time.sleep(1)
                rig.ends(controller, signal.SIGTERM, "a controller on an etcd that is stopped")
        finally:
            etcd.process.send_signal(signal.SIGCONT)


def for_other_users(rig, store):
    if os.geteuid() != 0:
        say("other users: left out, it needs root")
        return
    rig.world.directory.chmod(0o711)
    for users, strangers in (((), (STRANGER,)), ((STRANGER,), (OTHER,))):
        with rig.agent(store, *(["--user", "0", *map(str, users)] if users else [])) as agent:
            expect_equal([health(rig.socket, user) for user in (0, *users, *strangers)], [SERVING] * (1 + len(users)) + [None], f"users, of {users}")
            rig.ends(agent, signal.SIGTERM, f"an agent for {users}")


def test(world):
    rig = Rig(world)
    store = world.store()
    world.croft(store, "pool", "create", "a", "--cidr", "10.82.0.0/24", "--cooldown-seconds", "0")
    with_nothing_to_do(rig, store)
    behind_a_lock(rig, store)
    for_other_users(rig, store)
    etcd = Etcd(world)
    world.croft(etcd.store, "pool", "create", "a", "--cidr", "10.83.0.0/24", "--cooldown-seconds", "0")
    without_its_store(rig, etcd)


main(test, 280)
