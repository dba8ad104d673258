"""An agent that had nothing to do answers at once: counted in sleeps and wake-ups under strace, not in time.

usage: agent_idle.py BIN_DIR

Between the moment a plugin's connection is taken and its answer goes out, the two threads that serve it (the one that moves
bytes, the one that commits) may sleep only for each other and for the disk: no sleep that ends by a timer, and as many
sleeps after a pause as without one (the calmest call after each pause counts).
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from lib import World, call_ipam, expect, expect_equal, main, require_programs, say, wait_for, wait_for_agents_memory

NODE = "node-a"
PAUSES = (0.0, 0.5, 1.0)  # seconds before a call
CALLS = 5  # after each pause: a plugin that waits for a processor adds sleeps, so the calmest counts
SLEEPS_MAX = 12  # of both threads in one call; 7 are usual
LINE = re.compile(r"^(\d+)\s+(\d+\.\d+) (?:<\.\.\. )?(\w+)(.*)$")


def traced_calls(trace):
    """What each thread did while a call was served: a list of (thread, system call, its text) for each call."""
    calls, current = [], None
    for line in trace.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if not found:
            continue
        thread, _, name, rest = found.groups()
        if name == "accept4" and re.search(r"= \d+", rest):
            current = []
            calls.append(current)
        elif current is not None:
            current.append((thread, name, rest))
    return calls


def until_answered(call):
    """Up to the last bytes that were sent to the plugin."""
    sent = [i for i, (_, name, _) in enumerate(call) if name in ("sendto", "sendmsg", "write", "writev")]
    expect(sent, "nothing was sent")
    return call[:sent[-1]]


def end(strace, number):
    """Ends the program that strace looks at, and with it strace."""
    children = pathlib.Path(f"/proc/{strace.pid}/task/{strace.pid}/children")
    for child in children.read_text().split() if children.exists() else []:
        os.kill(int(child), number)
    strace.wait(timeout=30)


def test():
    require_programs("strace")
    with World("agent-idle", sys.argv[1]) as world:
        store = world.store()
        world.croft(store, "pool", "create", "a", "--cidr", "10.82.0.0/22", "--cooldown-seconds", "0")
        socket = world.directory / "agent.sock"
        trace = world.directory / "trace"
        errors = open(world.directory / "agent.log", "wb")
        agent = subprocess.Popen(
            ["strace", "-f", "-ttt", "-o", trace, "-e",
             "trace=accept4,epoll_wait,epoll_pwait,poll,ppoll,select,pselect6,futex,nanosleep,clock_nanosleep,sendto,sendmsg",
             world.bin / "croftd", "agent", "--store", store, "--socket", socket, "--node", NODE], stderr=errors)
        world.stack.callback(lambda: (end(agent, signal.SIGKILL), errors.close()))
        wait_for(socket.exists, "the agent's socket")
        wait_for_agents_memory(world, socket)
        pauses = [pause for pause in PAUSES for _ in range(CALLS)]
        for i, pause in enumerate(pauses):
            time.sleep(pause)
            code, answer = call_ipam(world, "ADD", f"c{i}", store, NODE, agent=str(socket))
            expect_equal(code, 0, f"{answer}")
        log = (world.directory / "ipam.log").read_text()
        expect_equal(log.count("via=agent"), len(pauses), "served by the agent")
        end(agent, signal.SIGTERM)
        calls = [until_answered(call) for call in traced_calls(trace)[-len(pauses):]]
        expect_equal(len(calls), len(pauses), "connections in the trace")
        calmest = {}
        for pause, call in zip(pauses, calls):
            # Who serves: the thread that sends, and whom it wakes; others (the store's follower) have their own timers.
            # On a busy machine the answer may be there before it has slept once.
            server = next((thread for thread, name, _ in call if name in ("epoll_wait", "epoll_pwait")), None)
            sleeps = [(thread, name, rest) for thread, name, rest in call
                      if name in ("epoll_wait", "epoll_pwait") or (name == "futex" and "FUTEX_WAIT" in rest)]
            timed_out = [rest for thread, name, rest in call if thread == server and name.startswith("epoll")
                         and re.search(r"= 0\b", rest)]
            naps = [name for thread, name, _ in call if name in ("nanosleep", "clock_nanosleep")]
            # A call that a busy machine keeps for 0.1 s is told that it is taken, by a timer.
            mine = (len(timed_out) + len(naps), len(sleeps))
            calmest[pause] = min(mine, calmest.get(pause, mine))
        expect(all(by_timer == 0 and sleeps <= SLEEPS_MAX for by_timer, sleeps in calmest.values()),
               f"sleeps while a call is served, those that a timer ended first: {calmest}")
        calmest = {pause: sleeps for pause, (_, sleeps) in calmest.items()}
        say(f"sleeps while a call is served, after a pause of so many seconds: {calmest}; none ended by a timer")


main(test)
