"""The checks of history.py find what they are for, and nothing in a history that is right.

usage: history_test.py BIN_DIR
"""

import json
import sys
import unittest

import history as checks

BLOCK = checks.BLOCKS + "ipv4/block/10.0.0.0-30"


def call(op, container, begin, end, outcome="ok", *addresses):
    return {"op": op, "container": container, "begin": begin, "end": end, "outcome": outcome,
            "addresses": list(addresses)}


def history_of(*calls):
    history = checks.History()
    for one in calls:
        history.add(**one)
    return history


def block(sequence, owners, **changes):
    """The value of a block of four, with handles by ordinal."""
    handles = sorted(set(owners.values()))
    value = {"cidr": "10.0.0.0/30", "sequenceNumber": sequence,
             "allocations": [handles.index(owners[i]) if i in owners else None for i in range(4)],
             "unallocated": [i for i in range(4) if i not in owners],
             "attributes": [{"handle_id": h} for h in handles]}
    return json.dumps({**value, **changes})


def handle(name, count):
    return checks.HANDLES + name, json.dumps({"block": {"10.0.0.0/30": count}})


def flaws(*revisions):
    """Each revision is a list of (key, value)."""
    events = [(number, key, value) for number, changes in enumerate(revisions, 1) for key, value in changes]
    return checks.Replay(events).flaws


class Calls(unittest.TestCase):
    def overlaps(self, *calls, cooldown=0):
        return len(checks.overlapping_holds(history_of(*calls), lambda _address: cooldown))

    def test_one_after_the_other(self):
        calls = [call("ADD", "a", 0, 1, "ok", "x"), call("DEL", "a", 2, 3), call("ADD", "b", 2, 4, "ok", "x")]
        self.assertEqual(self.overlaps(*calls), 0)
        self.assertEqual(self.overlaps(*calls, cooldown=2), 0)
        self.assertEqual(self.overlaps(*calls, cooldown=2.5), 1)

    def test_two_at_once(self):
        self.assertEqual(self.overlaps(call("ADD", "a", 0, 1, "ok", "x"), call("ADD", "b", 1, 2, "ok", "x"),
                                       call("DEL", "a", 3, 4)), 1)

    def test_one_within_another_then_a_third(self):
        self.assertEqual(self.overlaps(
            call("ADD", "a", 0, 1, "ok", "x"), call("ADD", "b", 2, 3, "ok", "x"), call("DEL", "b", 4, 5),
            call("ADD", "c", 6, 7, "ok", "x"), call("DEL", "a", 8, 9)), 2)

    def test_a_failed_del_ends_a_hold(self):
        self.assertEqual(self.overlaps(call("ADD", "a", 0, 1, "ok", "x"), call("DEL", "a", 2, 9, "unknown"),
                                       call("ADD", "b", 3, 4, "ok", "x")), 0)

    def test_another_answer(self):
        same = [call("ADD", "a", 0, 1, "ok", "x"), call("ADD", "a", 2, 3, "ok", "x")]
        self.assertEqual(checks.changed_answers(history_of(*same)), [])
        self.assertEqual(len(checks.changed_answers(history_of(*same, call("ADD", "a", 4, 5, "ok", "y")))), 1)
        self.assertEqual(checks.changed_answers(history_of(*same, call("DEL", "a", 4, 5),
                                                           call("ADD", "a", 6, 7, "ok", "y"))), [])

    def test_refusals(self):
        calls = [call("ADD", "a", 0, 1, "ok", "x"), call("DEL", "a", 5, 6), call("ADD", "b", 2, 3, "refused")]
        self.assertEqual(checks.untrue_refusals(history_of(*calls), 1), [])
        self.assertEqual(len(checks.untrue_refusals(history_of(*calls), 2)), 1)
        late = call("ADD", "c", 7, 8, "refused")
        self.assertEqual(len(checks.untrue_refusals(history_of(*calls, late), 1)), 1)

    def test_holders(self):
        certain, maybe = checks.expected_holders(history_of(
            call("ADD", "sure", 0, 1, "ok", "x"),
            call("ADD", "gone", 0, 1, "ok", "y"), call("DEL", "gone", 2, 3),
            call("ADD", "late", 0, 1, "unknown"), call("DEL", "late", 2, 3),
            call("ADD", "del", 0, 1, "ok", "z"), call("DEL", "del", 2, 3, "unknown"),
            call("ADD", "full", 0, 1, "refused")))
        self.assertEqual((certain, maybe), ({"sure": ["x"]}, {"late", "del"}))

    def test_never_stored(self):
        replay = checks.Replay([(1, BLOCK, block(1, {0: "net.a"})), (1, *handle("net.a", 1))])
        good = call("ADD", "a", 0, 1, "ok", "10.0.0.0")
        self.assertEqual(checks.never_stored(history_of(good), replay, lambda c: f"net.{c}"), [])
        bad = call("ADD", "b", 0, 1, "ok", "10.0.0.0")
        self.assertEqual(len(checks.never_stored(history_of(good, bad), replay, lambda c: f"net.{c}")), 1)


class Revisions(unittest.TestCase):
    def test_right(self):
        self.assertEqual(flaws([(BLOCK, block(1, {}))], [(BLOCK, block(2, {1: "h"})), handle("h", 1)],
                               [(BLOCK, block(3, {})), (checks.HANDLES + "h", None)], [(BLOCK, None)],
                               [(BLOCK, block(4, {}))]), [])

    def test_not_all(self):
        self.assertEqual(len(flaws([(BLOCK, block(1, {}, unallocated=[0, 1, 2]))])), 1)
        self.assertEqual(len(flaws([(BLOCK, block(1, {0: "h"}, unallocated=[0, 1, 2, 3])), handle("h", 1)])), 1)
        self.assertEqual(len(flaws([(BLOCK, block(1, {}, unallocated=[0, 1, 2, 3, 3]))])), 2)

    def test_no_attribute(self):
        value = block(1, {}, allocations=[0, None, None, None], unallocated=[1, 2, 3])
        self.assertEqual(len(flaws([(BLOCK, value)])), 1)

    def test_sequence_numbers(self):
        self.assertEqual(len(flaws([(BLOCK, block(2, {}))], [(BLOCK, block(1, {}))])), 1)
        self.assertEqual(len(flaws([(BLOCK, block(2, {}))], [(BLOCK, block(2, {1: "h"})), handle("h", 1)])), 1)
        self.assertEqual(len(flaws([(BLOCK, block(2, {}))], [(BLOCK, None)], [(BLOCK, block(2, {}))])), 1)

    def test_another_owner_at_once(self):
        self.assertEqual(len(flaws([(BLOCK, block(1, {1: "g"})), handle("g", 1)],
                                   [(BLOCK, block(2, {1: "h"})), handle("h", 1)])), 1)

    def test_counts(self):
        self.assertEqual(len(flaws([(BLOCK, block(1, {1: "h", 2: "h"})), handle("h", 1)])), 1)
        self.assertEqual(len(flaws([(BLOCK, block(1, {1: "h"})), handle("h", 1)], [handle("h", 0)])), 1)
        self.assertEqual(flaws([handle("h", 1)], [(BLOCK, block(1, {1: "h"}))]), [], "a count may be ahead")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
