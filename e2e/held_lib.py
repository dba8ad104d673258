"""What tests of the history share: a recorder that is killed and started anew, and answers held against what others know."""

import collections
import dataclasses
import datetime
import json
import math
import re
import signal
import subprocess

from lib import expect, run, say, wait_for

INSTANTS = 200
NOT_TRUSTED_S = 0.5  # around a call: when its commit was made inside it, the caller does not know


def stamp(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat().replace("+00:00", "Z")


@dataclasses.dataclass
class Stay:
    """A pod at an address: when its ADD began and was answered, and its DEL."""
    pod: str
    began: float
    answered: float = math.inf
    deleting: float = math.inf
    deleted: float = math.inf

    def is_sure(self, at):
        return self.answered + NOT_TRUSTED_S <= at <= self.deleting - NOT_TRUSTED_S

    def is_possible(self, at):
        return self.began - NOT_TRUSTED_S <= at <= self.deleted + NOT_TRUSTED_S


class Recorder:
    """`croftd controller --history`, and what others know of its register."""

    def __init__(self, bin_dir, directory, store):
        self.bin, self.store = bin_dir, store
        self.file, self.log = directory / "history.db", directory / "controller.log"
        self.stays = {}  # address -> Stays
        self.somewhere = []  # Stays whose address nobody knows: their ADDs failed
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(self.bin / "croftd"), "controller", "--store", self.store, "--grace", "0s",
                                             "--history", str(self.file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def begin(self):
        """Until all is read."""
        count = lambda: self.log.read_text().count("are recorded in")
        before = count() if self.log.exists() else 0
        self.start()
        wait_for(lambda: count() > before, "the history is begun", 30)

    def revive(self):
        """One that finds no register has ended."""
        if self.process.poll() is not None:
            self.start()

    def stop(self, number=signal.SIGTERM):
        if self.process:
            self.process.send_signal(number)
            self.process.wait()

    def croft(self, *arguments):
        return run(str(self.bin / "croft"), *arguments, "--history", str(self.file)).stdout

    def who(self, address, at):
        return json.loads(self.croft("who", address, "--at", stamp(at), "-o", "json"))

    def reaches(self, at):
        return not self.who(next(iter(self.stays)), at)["known"].startswith("as of")


def asked_back(recorder, dice, since, until):
    """Of random instants no answer is wrong and sure. How many were right, open, or asked for the time of a call, when each of
    those that may have held it is right."""
    tally, reasons, wrong = collections.Counter(), collections.Counter(), []
    for _ in range(INSTANTS):
        address, at = dice.choice(sorted(recorder.stays)), since + dice.random() * (until - since)
        answer = recorder.who(address, at)
        pods = {one["pod"] for one in answer["holdings"]}
        sure, possible = ({stay.pod for stay in recorder.stays[address] if test(stay, at)} for test in (Stay.is_sure, Stay.is_possible))
        if not answer["sure"]:
            tally["open"] += 1
            reasons[re.split(r", | between|: its", answer["known"])[0]] += 1
        elif sure <= pods <= possible.union(stay.pod for stay in recorder.somewhere if stay.is_possible(at)):
            tally["right" if sure == pods == possible else "in a call"] += 1
        else:
            tally["wrong"] += 1
            wrong.append(f"{address} at {stamp(at)}: {answer}, but surely {sure}, maybe {possible}: {recorder.stays[address]}")
    say(f"  {INSTANTS} instants: {dict(tally)}; open: {dict(reasons)}")
    expect(not wrong, "\n".join([f"{len(wrong)} answers are sure and wrong", *wrong]))
    return tally
