"""The history of a register: who held which address, asked back and held against what the plugin's callers know.

Pods come and go by the real plugin on each kind of store while `croftd controller --history` records, is killed and started
anew at random. On etcd the recorder's way to it, and no other, is cut off meanwhile: silent for a while, then broken.
Of 200 random instants each answer is right, or says that it is not known. Then the questions of an operator: by pod, by node,
CSV, a log of flows; `croft top` on a terminal; and a history on a full disk, which keeps nobody from anything.

usage: who_held.py BIN_DIR sqlite|etcd
"""

import contextlib
import csv
import fcntl
import io
import os
import pathlib
import pty
import random
import select
import signal
import subprocess
import sys
import termios
import time

from etcd_lib import Etcd, free_ports
from held_lib import INSTANTS, Recorder, Stay, asked_back, stamp
from lib import Daemon, World, address_of, call_ipam, expect, expect_equal, fill_disk, main, run, say, wait_for

SECONDS = 20


class Way:
    """The recorder's own way to an etcd: what is sent while it is cut waits, as on a link that drops everything."""

    def __init__(self, world, etcd):
        port, = free_ports(1)
        relay = pathlib.Path(__file__).with_name("etcd_relay.py")
        self.process = Daemon(world, "relay", sys.executable, relay, "1", f"{port}=127.0.0.1:{etcd.port}")
        wait_for(lambda: self.process.log() == "ready\n", "the relay")
        self.store = etcd.store.replace(str(etcd.port), str(port))

    def cut(self, is_cut):
        self.process.send_signal(signal.SIGSTOP if is_cut else signal.SIGCONT)


class Recorded(Recorder):
    """And pods that come and go; `way`: the recorder's own to the store."""

    def __init__(self, world, store, way=None):
        super().__init__(world.bin, world.directory, way.store if way else store)
        self.world, self.of_pods, self.way = world, store, way
        world.stack.callback(self.stop, signal.SIGKILL)

    def add(self, pod):
        stay = Stay(pod, time.time())
        _, answer = call_ipam(self.world, "ADD", f"c-{pod}", self.of_pods, "node-a", f"IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={pod}")
        stay.answered = time.time()
        self.stays.setdefault(address_of(answer), []).append(stay)
        return address_of(answer)

    def delete(self, pod, address):
        stay = self.stays[address][-1]
        stay.deleting = time.time()
        call_ipam(self.world, "DEL", f"c-{pod}", self.of_pods, "node-a")
        stay.deleted = time.time()


def churn(recorded, dice, seconds, kills=True):
    living, number, end = {}, 0, time.monotonic() + seconds
    next_kill = time.monotonic() + (4 if kills else seconds)
    while time.monotonic() < end:
        if len(living) < 6 or (len(living) < 12 and dice.random() < 0.5):
            living[f"web-{number}"] = recorded.add(f"web-{number}")
            number += 1
        else:
            pod = dice.choice(sorted(living))
            recorded.delete(pod, living.pop(pod))
        time.sleep(dice.random() * 0.6)
        if time.monotonic() > next_kill:
            recorded.stop(dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            time.sleep(dice.random() * 2)
            recorded.start()
            next_kill = time.monotonic() + 3 + dice.random() * 4
    return living, number


def churn_while_cut(recorded, dice):
    """Pods come and go while the recorder hears nothing, and does not know it; returns when that was."""
    for seconds in (6, 16):  # a wait; longer than a client is patient with a connection
        began = time.time()
        recorded.way.cut(True)
        for pod, address in churn(recorded, dice, seconds, kills=False)[0].items():
            recorded.delete(pod, address)
        reach = recorded.who(next(iter(recorded.stays)), began + 3)
        expect(not reach["sure"] and reach["known"].startswith("as of"), f"nobody knows what was while it was cut off: {reach}")
        recorded.way.cut(False)
        wait_for(lambda: recorded.reaches(time.time() - 3), "it comes to what it missed", 40)
        yield began, time.time() - 4


def questions(recorded, address):
    stay = recorded.stays[address][-1]
    text = recorded.croft("history", f"shop/{stay.pod}")
    expect(address in text and "node-a" in text and "recorded from" in text, text)
    expect(f"shop/{stay.pod}" in recorded.croft("history", "node-a", "--from", "2h", "--no-headers"), "by node")
    rows = list(csv.DictReader(io.StringIO(recorded.croft("history", address, "--csv"))))
    expect_equal([(row["namespace"], row["pod"], row["container"]) for row in rows][-1], ("shop", stay.pod, f"c-{stay.pod}"), "the last row")
    cut = run(str(recorded.bin / "croft"), "history", "node-a", "--history", str(recorded.file), "--limit", "1", "-o", "json", check=False)
    expect(cut.stdout.count('"address"') == 1 and "--limit shows more" in cut.stderr, f"data that is cut says so: {cut.stdout}{cut.stderr}")
    flows = recorded.world.directory / "flows.csv"
    flows.write_text(f"time,src_ip,dst_ip,bytes\n{stamp(stay.answered + 4)},{address},192.0.2.1,7\n{stamp(stay.answered - 86400)},{address},,7\n"
                     f"{stamp(stay.answered + 0.01)},{address},,7\n")
    joined = recorded.croft("history", "join", str(flows)).splitlines()
    expect(joined[1].split(",")[4:] in ([f"shop/{stay.pod}", nobody] for nobody in ("", "?")), f"holders of a flow: {joined[1]}")
    expect_equal(joined[2].split(",")[4], "?", "of one before the history")
    expect(joined[3].split(",")[4] in (f"shop/{stay.pod}", f"shop/{stay.pod}?") or "?" in joined[3], f"of the moment of the ADD: {joined[3]}")
    expect("collects nothing of" in recorded.log.read_text(), "a grace of 0 is said as what it is")
    for words in (("who", address), ("--store", recorded.of_pods, "top", "--once")):
        missing = run(str(recorded.bin / "croft"), *words, "--history", "/nonexistent/history.db", check=False)
        expect(missing.returncode == 1 and "no history /nonexistent" in missing.stderr, missing.stderr)


def take_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def top(recorded, tail, begin=None):
    return subprocess.Popen([str(recorded.bin / "croft"), "--store", recorded.of_pods, "top", "--history", str(recorded.file), "--interval", "1"],
                            stdin=tail, stdout=tail, stderr=tail, env={**os.environ, "TERM": "xterm"}, preexec_fn=begin)


def until_shown(head, wanted):
    """What the screen gets, up to that."""
    seen, end = b"", time.monotonic() + 20
    while wanted not in seen:
        expect(time.monotonic() < end, f"{wanted} is shown: {seen[-2000:]}")
        if select.select([head], [], [], 0.2)[0]:
            with contextlib.suppress(OSError):
                seen += os.read(head, 65536)
    return seen


def on_a_terminal(recorded):
    """`croft top` draws, obeys its keys, and gives the terminal back; also one that is told to end."""
    for begin, keys, ending in ((take_terminal, ((b"m", "two addresses a character".encode()), (b"n", b"pods"), (b"\x03", b"")), signal.SIGINT),
                                (None, (), signal.SIGTERM)):
        head, tail = pty.openpty()
        before = termios.tcgetattr(tail)
        process = top(recorded, tail, begin)
        seen = until_shown(head, b"node-a")
        expect(termios.tcgetattr(tail) != before, "keys come one by one")
        for key, wanted in keys:
            os.write(head, key)
            seen += until_shown(head, wanted)
        if not keys:
            process.terminate()
        seen += until_shown(head, b"\x1b[?1049l")
        expect_equal(process.wait(10), -ending, "what ended croft top")
        expect(b"\x1b[?7l" in seen and b"\x1b[?7h" in seen, "lines are cut at the edge, and later no more")
        if not keys:  # a terminal goes with the process whose session it was
            expect_equal(termios.tcgetattr(tail), before, "the terminal")
        os.close(head)
        os.close(tail)
    once = run(str(recorded.bin / "croft"), "--store", recorded.of_pods, "top", "--once").stdout
    expect("10.79.0.0/27" in once and "A MINUTE" in once, once)


def on_a_full_disk(recorded):
    """The history's disk is full: pods come, the log says it once, and later all of it is recorded."""
    recorded.stop()
    small = recorded.world.directory / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small))
    try:
        recorded.file = small / "history.db"
        fill_disk(small)
        times = lambda: recorded.log.read_text().count("trying again")
        before = times()
        recorded.start()
        wait_for(lambda: times() > before, "the log says that nothing is recorded", 30)
        address = recorded.add("full-1")
        (small / "filler").unlink()
        wait_for(lambda: recorded.file.exists() and recorded.file.stat().st_size > 0, "the history is begun", 30)
        wait_for(lambda: recorded.who(address, time.time() - 0.1)["holdings"], "and knows the pod", 30)
        expect_equal(times() - before, 1, "times that the log says it")
        recorded.stop()
    finally:
        run("umount", "-l", str(small))


def test():
    kind, dice = sys.argv[2], random.Random(int(os.environ.get("SEED", "7")))
    with World("who", sys.argv[1]) as world:
        etcd = Etcd(world) if kind == "etcd" else None
        store = etcd.store if etcd else world.store()
        world.croft(store, "pool", "create", "pods", "--cidr", "10.79.0.0/27", "--block-size", "27", "--cooldown-seconds", "3")
        recorded = Recorded(world, store, Way(world, etcd) if etcd else None)
        recorded.begin()
        since = time.time()
        living, count = churn(recorded, dice, SECONDS)
        time.sleep(16)  # a quiet history says every 10 s that it lives
        until = time.time() - 16
        say(f"  {count} pods on {len(recorded.stays)} addresses, {len(living)} live")
        tally = asked_back(recorded, dice, since, until)
        # An old etcd's watch proves nothing after a lost connection (docs/formats/history.md#limits).
        enough = INSTANTS // 5 if etcd else tally["open"]
        expect(tally["right"] > enough, f"{tally}: enough is known")
        questions(recorded, next(iter(living.values())))
        for began, ended in churn_while_cut(recorded, dice) if etcd else ():
            asked_back(recorded, dice, began, ended)
        if kind == "sqlite":
            on_a_terminal(recorded)
            on_a_full_disk(recorded)


if __name__ == "__main__":
    main(test, 240)
