"""The checks of history.py find what they are for, and nothing in a history that is right."""

import json

import history as checks
from lib import expect_equal, main

BLOCK = checks.BLOCKS + "ipv4/block/10.0.0.0-30"


def history_of(*texts):
    """Of calls as `ADD a 0 1 x`: container, begin, end, addresses; with `?` behind the call it is unknown, with `!` refused."""
    history = checks.History()
    for op, container, begin, end, *addresses in (text.split() for text in texts):
        history.add(op=op.rstrip("?!"), container=container, begin=float(begin), end=float(end), addresses=addresses,
                    outcome={"?": "unknown", "!": "refused"}.get(op[-1], "ok"))
    return history


def block(sequence, owners, **changes):
    """The value of a block of four, with handles by ordinal."""
    handles = sorted(set(owners.values()))
    value = {"cidr": "10.0.0.0/30", "sequenceNumber": sequence,
             "allocations": [handles.index(owners[i]) if i in owners else None for i in range(4)],
             "unallocated": [i for i in range(4) if i not in owners],
             "attributes": [{"handle_id": h} for h in handles]}
    return BLOCK, json.dumps({**value, **changes})


def handle(name, count):
    return checks.HANDLES + name, json.dumps({"block": {"10.0.0.0/30": count}})


def replay_of(*revisions):
    """Each revision is a list of (key, value)."""
    return checks.Replay([(number, key, value) for number, changes in enumerate(revisions, 1) for key, value in changes])


A, B, TURN = "ADD a 0 1 x", "DEL a 2 3", ("ADD a 0 1 x", "DEL a 2 3", "ADD b 2 4 x")
OVERLAPS = [  # calls, cooldown, how many overlap
    (TURN, 0, 0), (TURN, 2, 0), (TURN, 2.5, 1),
    ((A, "ADD b 1 2 x", "DEL a 3 4"), 0, 1),
    ((A, "ADD b 2 3 x", "DEL b 4 5", "ADD c 6 7 x", "DEL a 8 9"), 0, 2),
    ((A, "DEL? a 2 9", "ADD b 3 4 x"), 0, 0),
]
CHANGED = [((A, "ADD a 2 3 x"), 0), ((A, "ADD a 2 3 x", "ADD a 4 5 y"), 1), ((A, B, "ADD a 6 7 y"), 0)]
REFUSALS = [((A, "DEL a 5 6", "ADD! b 2 3"), 1, 0), ((A, "DEL a 5 6", "ADD! b 2 3"), 2, 1),
            ((A, "DEL a 5 6", "ADD! b 2 3", "ADD! c 7 8"), 1, 1)]
REVISIONS = [  # how many flaws, and the revisions
    (0, [block(1, {})], [block(2, {1: "h"}), handle("h", 1)], [block(3, {}), (checks.HANDLES + "h", None)], [(BLOCK, None)],
     [block(4, {})]),
    (1, [block(1, {}, unallocated=[0, 1, 2])]),
    (1, [block(1, {0: "h"}, unallocated=[0, 1, 2, 3]), handle("h", 1)]),
    (2, [block(1, {}, unallocated=[0, 1, 2, 3, 3])]),
    (1, [block(1, {}, allocations=[0, None, None, None], unallocated=[1, 2, 3])]),
    (1, [block(2, {})], [block(1, {})]),
    (1, [block(2, {})], [block(2, {1: "h"}), handle("h", 1)]),
    (1, [block(2, {})], [(BLOCK, None)], [block(2, {})]),
    (1, [block(1, {1: "g"}), handle("g", 1)], [block(2, {1: "h"}), handle("h", 1)]),
    (1, [block(1, {1: "h", 2: "h"}), handle("h", 1)]),
    (1, [block(1, {1: "h"}), handle("h", 1)], [handle("h", 0)]),
    (0, [handle("h", 1)], [block(1, {1: "h"})]),  # a count may be ahead
]


def test():
    for calls, cooldown, wanted in OVERLAPS:
        expect_equal(len(checks.overlapping_holds(history_of(*calls), lambda _: cooldown)), wanted, f"overlaps of {calls}, {cooldown}")
    for calls, wanted in CHANGED:
        expect_equal(len(checks.changed_answers(history_of(*calls))), wanted, f"changed answers of {calls}")
    for calls, capacity, wanted in REFUSALS:
        expect_equal(len(checks.untrue_refusals(history_of(*calls), capacity)), wanted, f"untrue refusals of {calls}, {capacity}")
    for wanted, *revisions in REVISIONS:
        expect_equal(len(replay_of(*revisions).flaws), wanted, f"flaws of {revisions}")
    holders = checks.expected_holders(history_of(
        "ADD sure 0 1 x", "ADD gone 0 1 y", "DEL gone 2 3", "ADD? late 0 1", "DEL late 2 3", "ADD del 0 1 z", "DEL? del 2 3",
        "ADD! full 0 1"))
    expect_equal(holders, ({"sure": ["x"]}, {"late", "del"}), "holders")
    replay = replay_of([block(1, {0: "net.a"}), handle("net.a", 1)])
    for calls, wanted in ((("ADD a 0 1 10.0.0.0",), 0), (("ADD a 0 1 10.0.0.0", "ADD b 0 1 10.0.0.0"), 1)):
        expect_equal(len(checks.never_stored(history_of(*calls), replay, lambda c: f"net.{c}")), wanted, f"never stored of {calls}")


main(test)
