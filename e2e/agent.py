"""The real plugin and the real agent on one sqlite store: the plugin's answers are right whatever becomes of the agent. One that is
killed, and both ways at once: burst.py.
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from lib import address_of, begin_ipam, expect, expect_equal, finish, main, run, say, start_agent, stop_between_commits, wait_for

PATIENCE = 1.0  # seconds that the plugin gives its agent
SLACK = 4.0  # seconds on top, for a machine that is busy with other things
NODE = "node-a"


class Machine:
    """A store, a plugin's configuration, and agents that come and go."""

    def __init__(self, world):
        self.world = world
        self.store = world.store()
        self.socket = world.directory / "run" / "agent.sock"
        self.socket.parent.mkdir()
        self.log = world.directory / "ipam.log"
        world.pool(self.store, "a", "10.79.0.0/22", "--block-size", "26")

    def start(self, command, container, agent=None):
        return begin_ipam(self.world, command, container, self.store, NODE, log_file_path=str(self.log), agent=str(agent or self.socket))

    @staticmethod
    def finish(process, what):
        """The address of an ADD, None for a DEL; both must succeed."""
        code, answer, err = finish(process)
        expect_equal((code, err), (0, ""), f"{what}: {answer}")
        return answer and address_of(answer)

    def call(self, command, container, agent=None, via=None):
        """The answer; with `via` the log must say that this path served."""
        begin = time.monotonic()
        answer = self.finish(self.start(command, container, agent), f"{command} {container}")
        took = time.monotonic() - begin
        expect(took < PATIENCE + SLACK, f"{command} {container} took {took:.1f} s")
        line = self.log.read_text().splitlines()[-1]
        expect(via is None or f"via={via}" in line, f"not served by the {via}: {line}")
        return answer

    def agent(self):
        return start_agent(self.world, self.store, NODE, self.socket, "--log-calls")

    def expect_no_status(self, *texts):
        """The operator asks for the agent's status, and is told why there is none and what to do."""
        asked = run(self.world.bin / "croft", "agent", "status", env={"CROFT_AGENT": str(self.socket)}, check=False)
        expect_equal((asked.returncode, asked.stdout), (1, ""), f"croft agent status: {asked.stderr}")
        for text in (f" at {self.socket}", *texts):
            expect(text in asked.stderr, f"croft agent status: no {text!r} in {asked.stderr}")

    def sound(self):
        self.world.croft(self.store, "check")


def through_the_agent(machine):
    with machine.agent() as agent:
        first = machine.call("ADD", "one", via="agent")
        expect_equal(machine.call("ADD", "one", via="agent"), first, "asked again")
        expect_equal(machine.call("ADD", "one", agent="none", via="store"), first, "asked again past the agent")
        second = machine.call("ADD", "two", agent="none", via="store")
        expect(second != first, "two owners, one address")
        expect_equal(machine.call("ADD", "two", via="agent"), second, "what the plugin added alone")
        machine.call("DEL", "two", via="agent")
        machine.call("DEL", "two", via="agent")
        machine.call("DEL", "one", agent="none", via="store")
        expect_equal(machine.world.held(machine.store), {}, "held after all DELs")
        for i in range(110):
            machine.call("ADD", f"c{i}", via="agent")
        status = pathlib.Path(f"/proc/{agent.pid}/status").read_text()
        rss = int([l for l in status.splitlines() if l.startswith("VmRSS")][0].split()[1]) / 1024
        say(f"the agent with 110 pods: {rss:.1f} MiB")
        expect(rss <= 40, "the agent's memory: more than 40 MiB")
        (said,) = machine.world.croft(machine.store, "agent", "status", "--socket", machine.socket)
        expect_equal((said["node"], said["store"], said["cacheInUse"], said["failed"]), (NODE, machine.store, True, "0"),
                     "what the agent says of itself")
        expect(int(said["servedFromCache"]) > 100, f"served from the cache: {said}")
        expect(agent.log().count("from=cache") > 100, "the cache hardly ever served")
        for i in range(110):
            machine.call("DEL", f"c{i}", via="agent")
        machine.sound()
        agent.end(15)
        expect(not machine.socket.exists(), "the socket is gone with its agent")
        machine.expect_no_status("no agent answers", "No such file or directory", "Start or restart `croftd agent ")
        off = run(machine.world.bin / "croft", "agent", "status", env={"CROFT_AGENT": "none"}, check=False)
        expect_equal((off.returncode, off.stdout), (2, ""), "croft agent status of no agent")
        expect('"none" names no agent' in off.stderr, off.stderr)
    say("ADD and DEL through the agent; SIGTERM ends it in order")


def stopped(machine):
    with machine.agent() as agent:
        machine.call("ADD", "one", via="agent")
        stop_between_commits(agent, machine.store)
        two = machine.call("ADD", "two", via="store")
        machine.call("DEL", "two", via="store")
        machine.call("DEL", "one", via="store")
        one = machine.call("ADD", "one", via="store")
        agent.send_signal(signal.SIGCONT)
        # What lay in the socket is too old by now: it must neither free the second `one` nor bring `two` back.
        wait_for(lambda: "via=agent" in (machine.call("ADD", "late"), machine.log.read_text().splitlines()[-1])[1],
                 "the agent serves again")
        held = machine.world.held(machine.store)
        expect(one in held, f"{one} was freed by a call that came too late")
        expect_equal(len(held), 2, f"held: {sorted(held)}; {two} came back by a call that came too late")
        machine.call("DEL", "one", via="agent")
        machine.call("DEL", "late", via="agent")
    machine.sound()
    say("SIGSTOP and SIGCONT: the plugin goes alone in time, late calls do nothing")


def killed_plugin(machine):
    """A runtime kills an ADD that waits and sends its DEL at once: nothing stays held, whatever the agent had begun."""
    with machine.agent(), open(f"{machine.store.removeprefix('sqlite:')}-lock", "r+", encoding="utf-8") as lock:
        machine.call("ADD", "warm", via="agent")
        for i in range(6):
            fcntl.flock(lock, fcntl.LOCK_EX)
            # With others at work before it the ADD waits in the agent's queue, else at the lock.
            others = [machine.start("ADD", f"o{j}") for j in range(6 * (i % 2))]
            time.sleep(0.05 * (i % 2))
            adding = machine.start("ADD", f"k{i}")
            time.sleep(0.04 * i)
            adding.kill()
            adding.communicate()
            deleting = machine.start("DEL", f"k{i}")
            time.sleep(0.1)
            fcntl.flock(lock, fcntl.LOCK_UN)
            machine.finish(deleting, f"DEL k{i}")
            for j, other in enumerate(others):
                machine.finish(other, f"ADD o{j}")
            for j in range(len(others)):
                machine.call("DEL", f"o{j}")
        machine.call("DEL", "warm", via="agent")
        time.sleep(0.5)  # for what the agent may still do
        expect_equal(machine.world.held(machine.store), {}, "held after the DELs of killed ADDs")
    machine.sound()
    say("an ADD that is killed and its DEL: nothing stays held")


def full_queue(machine):
    with socket.socket(socket.AF_UNIX) as server, contextlib.ExitStack() as waiting:
        machine.socket.unlink(missing_ok=True)
        server.bind(str(machine.socket))
        server.listen(0)
        for _ in range(3):
            one = waiting.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            one.connect_ex(str(machine.socket))
        machine.call("ADD", "one", via="store")
        machine.call("DEL", "one", via="store")
    say("an agent that takes no connection any more: the plugin goes alone in time")


def somebody_elses(machine):
    if os.geteuid() != 0:
        say("skipped: a socket of another user (needs root)")
        return
    os.chmod(machine.world.directory, 0o755)
    os.chmod(machine.socket.parent, 0o777)
    machine.socket.unlink(missing_ok=True)
    child = subprocess.Popen(
        [sys.executable, "-c", "import os, socket, sys\n"
         "os.setuid(65534)\n"
         "s = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen(5)\nprint('ready', flush=True)\n"
         "for _ in range(2):\n  c = s.accept()[0]\n  print(len(c.recv(100)), flush=True)\n", str(machine.socket)],
        stdout=subprocess.PIPE, text=True)
    try:
        expect_equal(child.stdout.readline(), "ready\n", "the other user's server")
        machine.call("ADD", "one", via="store")
        expect_equal(child.stdout.readline(), "0\n", "bytes that the other user got to see")
        machine.expect_no_status("was not asked", "belongs to user 65534", "ask as root")
        expect_equal(child.stdout.readline(), "0\n", "bytes of croft agent status that the other user got to see")
        machine.call("DEL", "one", agent="none", via="store")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        os.chmod(machine.socket.parent, 0o755)
        machine.socket.unlink(missing_ok=True)
    say("a socket of another user is not spoken to")


def test(world):
    machine = Machine(world)
    for part in (through_the_agent, stopped, killed_plugin, full_queue, somebody_elses):
        part(machine)
        expect_equal(world.held(machine.store), {}, f"held after {part.__name__}")
    machine.sound()


main(test, 280)
