"""What workers did to a register, and the checks that are made of it afterwards.

A call has `begin` and `end` (seconds, one clock for all), `container`, `op`, and `outcome`:
    ok       acknowledged; an ADD has its `addresses`
    refused  certainly not done: no address was free
    unknown  an error, or the caller was killed: it may have been done, or may be yet
"""

import collections
import ipaddress
import json
import threading
import time

FOREVER = float("inf")


class History:
    """For several threads."""

    def __init__(self):
        self.calls = []
        self.lock = threading.Lock()
        self.start = time.monotonic()

    def now(self):
        return time.monotonic() - self.start

    def add(self, **call):
        with self.lock:
            self.calls.append(call)

    def by_container(self):
        calls = collections.defaultdict(list)
        for call in sorted(self.calls, key=lambda c: c["begin"]):
            calls[call["container"]].append(call)
        return calls


def holds_of(calls):
    """The times in which one container certainly holds addresses: from the end of the ADD that was acknowledged to the
    begin of the next DEL. As (begin, end, addresses)."""
    holds, held = [], None
    for call in calls:
        if call["op"] == "ADD" and call["outcome"] == "ok" and held is None:
            held = (call["end"], call["addresses"])
        if call["op"] == "DEL" and held is not None:
            # A DEL may begin before an ADD beside it ends; workers here wait for one before the other.
            holds.append((held[0], call["begin"], held[1]))
            held = None
    if held is not None:
        holds.append((held[0], FOREVER, held[1]))
    return holds


def overlapping_holds(history, cooldown_of):
    """Addresses held twice at once, or given out again before they had rested. A hold seen from outside is shorter than
    the real one, at both ends, so what is found here is wrong for certain."""
    rows = collections.defaultdict(list)
    for container, calls in history.by_container().items():
        for begin, end, addresses in holds_of(calls):
            for address in addresses:
                rows[address].append((begin, end, container))
    wrong = []
    for address, holds in rows.items():
        latest = None
        for hold in sorted(holds):
            if latest and hold[0] < latest[1]:
                wrong.append(f"{address} is held twice: {latest} and {hold}")
            elif latest and hold[0] - latest[1] < cooldown_of(address):
                wrong.append(f"{address} did not rest: {latest} and {hold}")
            if latest is None or hold[1] > latest[1]:
                latest = hold
    return wrong


def changed_answers(history):
    """A container that holds addresses and asks again gets the same ones."""
    wrong = []
    for calls in history.by_container().values():
        held = None
        for call in calls:
            if call["op"] == "DEL":
                held = None
            elif call["op"] == "ADD" and call["outcome"] == "ok":
                if held not in (None, call["addresses"]):
                    wrong.append(f"asked again, another answer: {call}, before {held}")
                held = call["addresses"]
    return wrong


def untrue_refusals(history, capacity, about=""):
    """Calls that were told "full" although, counting everybody who may have held an address at any time of the call,
    fewer were in use than there are. `about` is in the text of the refusals that are meant: those of the only pool of a
    family, which must have no cooldown."""
    may_hold = []
    for calls in history.by_container().values():
        begin = None
        for call in calls:
            if call["op"] == "ADD" and call["outcome"] != "refused" and begin is None:
                begin = call["begin"]
            if call["op"] == "DEL" and call["outcome"] == "ok" and begin is not None:
                may_hold.append((begin, call["end"]))
                begin = None
        if begin is not None:
            may_hold.append((begin, FOREVER))
    wrong = []
    for call in history.calls:
        if call["outcome"] != "refused" or about not in call.get("said", ""):
            continue
        count = sum(1 for begin, end in may_hold if begin < call["end"] and end > call["begin"])
        if count < capacity:
            wrong.append(f"refused although at most {count} of {capacity} addresses were in use: {call}")
    return wrong


def expected_holders(history):
    """(container -> addresses that it certainly holds, containers that may hold any)."""
    certain, maybe = {}, set()
    for container, calls in history.by_container().items():
        doubt = False
        held = None
        for call in calls:
            if call["op"] == "ADD" and call["outcome"] == "ok":
                held = call["addresses"]
            if call["op"] == "ADD" and call["outcome"] == "unknown":
                # Nobody can take back what is on its way; a DEL that came before it found nothing.
                doubt = True
            if call["op"] == "DEL":
                doubt = doubt or call["outcome"] != "ok" and held is not None
                held = None
        if held is not None:
            certain[container] = held
        elif doubt:
            maybe.add(container)
    return certain, maybe


# ------------------------------------------------------------------------------------------------ the log of revisions

BLOCKS, HANDLES = "/calico/ipam/v2/assignment/", "/calico/ipam/v2/handle/"


def owners_in(block):
    """Handle by ordinal, of the ordinals that are allocated and point at an attribute."""
    attributes = block["attributes"] or []
    return {ordinal: attributes[index].get("handle_id") for ordinal, index in enumerate(block["allocations"])
            if index is not None and 0 <= index < len(attributes)}


def flaws_of_block(block, before, last_sequence):
    """What is wrong with one version of a block. `before` is the version before it, None after a deletion;
    `last_sequence` the last sequence number under this key, deletions or not."""
    size = len(block["allocations"])
    allocated = [i for i, index in enumerate(block["allocations"]) if index is not None]
    free = block["unallocated"]
    flaws = []
    cidr = ipaddress.ip_network(block["cidr"])
    if size != cidr.num_addresses:
        flaws.append(f"{size} ordinals in {cidr}")
    if len(set(free)) != len(free):
        flaws.append(f"an ordinal is free twice: {free}")
    if sorted([*allocated, *free]) != list(range(size)):
        flaws.append(f"free and allocated are not all: {free} and {allocated}")
    if any(not 0 <= block["allocations"][i] < len(block["attributes"] or []) for i in allocated):
        flaws.append("an allocation points at no attribute")
    sequence = block["sequenceNumber"]
    if before is None and last_sequence is not None and sequence <= last_sequence:
        flaws.append(f"made again, its sequence number is not new: {last_sequence}, {sequence}")
    if before is not None:
        now, then = owners_in(block), owners_in(before)
        if sequence < before["sequenceNumber"] or now != then and sequence == before["sequenceNumber"]:
            flaws.append(f"the sequence number did not grow: {before['sequenceNumber']}, {sequence}")
        for ordinal in now.keys() & then.keys():
            if now[ordinal] != then[ordinal]:
                flaws.append(f"ordinal {ordinal} went from {then[ordinal]} to {now[ordinal]} at once")
    return flaws


class Replay:
    """Goes through every revision of the register's keys and keeps what was wrong in any of them."""

    def __init__(self, events):
        self.blocks, self.handles, self.last_sequence = {}, {}, {}
        self.held = collections.Counter()  # (handle, CIDR) -> addresses, by the blocks
        self.ever = collections.defaultdict(set)  # handle -> addresses that it held at some revision
        self.flaws, self.versions, self.revisions = [], 0, 0
        by_revision = collections.defaultdict(list)
        for revision, key, value in events:
            by_revision[revision].append((key, value))
        for revision in sorted(by_revision):
            self.revisions += 1
            touched = set()
            for key, value in by_revision[revision]:
                self.change(revision, key, value, touched)
            self.check_counts(revision, touched)

    def change(self, revision, key, value, touched):
        if key.startswith(BLOCKS):
            self.change_block(revision, key, json.loads(value) if value is not None else None, touched)
        elif key.startswith(HANDLES):
            handle = key[len(HANDLES):]
            counts = json.loads(value)["block"] if value is not None else {}
            touched.update((handle, cidr) for cidr in {**counts, **self.handles.get(handle, {})})
            self.handles[handle] = counts

    def change_block(self, revision, key, block, touched):
        before = self.blocks.pop(key, None)
        if block is not None:
            self.versions += 1
            for flaw in flaws_of_block(block, before, self.last_sequence.get(key)):
                self.flaws.append(f"revision {revision}, {key}: {flaw}")
            self.blocks[key] = block
            self.last_sequence[key] = block["sequenceNumber"]
        for version, step in ((before, -1), (block, 1)):
            if version is None:
                continue
            network = ipaddress.ip_network(version["cidr"])
            for ordinal, handle in owners_in(version).items():
                self.held[(handle, version["cidr"])] += step
                touched.add((handle, version["cidr"]))
                if step == 1:
                    self.ever[handle].add(str(network[ordinal]))

    def check_counts(self, revision, touched):
        for handle, cidr in touched:
            counted, real = self.handles.get(handle, {}).get(cidr, 0), self.held[(handle, cidr)]
            if counted < real:
                self.flaws.append(f"revision {revision}: handle {handle} counts {counted} in {cidr}, it holds {real}")


def never_stored(history, replay, handle_of):
    """Acknowledged ADDs whose addresses were never that container's in any revision."""
    return [f"acknowledged and never stored: {call}" for call in history.calls
            if call["op"] == "ADD" and call["outcome"] == "ok"
            and not set(call["addresses"]) <= replay.ever[handle_of(call["container"])]]
