"""An agent that had nothing to do answers at once, counted under strace and not in time: while it serves a call, its two threads sleep
only for each other and for the disk, never until a timer, and as often after a pause as without one. A call that the machine kept
for a tenth of a second tells nothing.
"""

import os
import pathlib
import re
import signal
import time

from lib import Daemon, call_ipam, expect, expect_equal, main, require_programs, say, wait_for, wait_for_agents_memory

NODE = "node-a"
PAUSES = (0.0, 0.5, 1.0)  # seconds before a call
ROUNDS_MAX = 25
KEPT = 0.09  # seconds; by 0.1 the agent gives a sign of life
SLEEPS_MAX = 12  # of both threads in one call; 7 are usual
LINE = re.compile(r"^(\d+)\s+(\d+\.\d+) (?:<\.\.\. )?(\w+)(.*)$")


def last_call(trace):
    """What each thread did while the last call was served, up to its answer: (thread, time, system call, its text) of each."""
    call = []
    for line in trace.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if found and found[3] == "accept4" and re.search(r"= \d+", found[4]):
            call = []
        if found:
            call.append((found[1], float(found[2]), found[3], found[4]))
    sent = [i for i, (_, _, name, _) in enumerate(call) if name in ("sendto", "sendmsg")]
    return call[:sent[-1] + 1] if sent else []


def sleeps_of(call):
    """(those that a timer ended, all). The store's follower has timers of its own: only who moves bytes counts for the first."""
    server = next((thread for thread, _, name, _ in call if name.startswith("epoll")), None)
    by_timer = [name for thread, _, name, rest in call
                if name.endswith("nanosleep") or (thread == server and name.startswith("epoll") and re.search(r"= 0\b", rest))]
    return len(by_timer), len([1 for _, _, name, rest in call if name.startswith("epoll") or (name == "futex" and "FUTEX_WAIT" in rest)])


def end(strace, number):
    """Ends the program that strace looks at, and with it strace."""
    children = pathlib.Path(f"/proc/{strace.pid}/task/{strace.pid}/children")
    for child in children.read_text().split() if children.exists() else []:
        os.kill(int(child), number)
    strace.wait(timeout=30)


def test(world):
    require_programs("strace")
    store = world.store()
    world.croft(store, "pool", "create", "a", "--cidr", "10.82.0.0/22", "--cooldown-seconds", "0")
    socket = world.directory / "agent.sock"
    trace = world.directory / "trace"
    agent = Daemon(
        world, "agent", "strace", "-f", "-ttt", "-o", trace, "-e",
        "trace=accept4,epoll_wait,epoll_pwait,poll,ppoll,select,pselect6,futex,nanosleep,clock_nanosleep,sendto,sendmsg",
        world.bin / "croftd", "agent", "--store", store, "--socket", socket, "--node", NODE)
    world.stack.callback(end, agent, signal.SIGKILL)
    wait_for(socket.exists, "the agent's socket")
    wait_for_agents_memory(world, socket)
    told = {}  # of each pause: the sleeps of the calls that were answered soon
    for i in range(ROUNDS_MAX):
        for pause in (one for one in PAUSES if one not in told):
            time.sleep(pause)
            code, answer = call_ipam(world, "ADD", f"c{i}-{pause}", store, NODE, agent=str(socket))
            expect_equal(code, 0, f"{answer}")
            time.sleep(0.1)  # what strace says comes a moment later
            call = last_call(trace)
            if call and call[-1][1] - call[0][1] < KEPT:
                told[pause] = sleeps_of(call)
    end(agent, signal.SIGTERM)
    expect("via=agent" in (world.directory / "ipam.log").read_text(), "served by the agent")
    expect_equal(sorted(told), list(PAUSES), f"pauses after which one of {ROUNDS_MAX} calls was answered within {KEPT} s")
    expect(all(by_timer == 0 and sleeps <= SLEEPS_MAX for by_timer, sleeps in told.values()),
           f"sleeps while a call is served, those that a timer ended first: {told}")
    say(f"sleeps while a call is served, after a pause of so many seconds: {told}")


main(test)
