"""`croft service audit`, `repair` and `range` on one sqlite store: a leak and a collision are planted, found, and mended
as far as that is possible. Neither root nor network.

usage: service_repair.py BIN_DIR
"""

import json
import pathlib
import re
import subprocess
import sys

from lib import World, expect, expect_equal, main, run, wait_for, write_past_croft


class Ranges:
    def __init__(self, world, name="croft"):
        self.world = world
        self.store = world.store(name)
        self.path = self.store.removeprefix("sqlite:")

    def text(self, *arguments, code=0):
        done = run(self.world.bin / "croft", "--store", self.store, "service", *arguments, check=False)
        expect_equal(done.returncode, code, f"exit code of {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def data(self, *arguments, code=0):
        return json.loads(self.text(*arguments, "-o", "json", code=code))

    def findings(self, *arguments, code=3):
        return [(one["type"], one["range"], one["value"], one["service"])
                for one in self.data(*arguments, code=code)["findings"]]

    def is_clean(self):
        return run(self.world.bin / "croft", "--store", self.store, "service", "audit", check=False).returncode == 0

    def rows(self, statement, *arguments):
        return write_past_croft(self.path, (statement, arguments))[0][0]

    def forget(self, name):
        """The Service's record alone is gone: what it held has leaked."""
        self.rows("DELETE FROM records WHERE name=?", name)

    def row(self, name):
        return self.rows("SELECT * FROM records WHERE name=?", name)[0]

    def put(self, row):
        self.rows("INSERT INTO records VALUES(?, ?, ?, ?, ?, ?)", *row)


def clean(ranges):
    ranges.text("create", "web", "--type", "NodePort", "--tcp", "80::30090", "--cluster-ip", "10.96.0.10",
                "--service-cluster-ip-range", "10.96.0.0/24,fd00:10:96::/112")
    audit = ranges.data("audit")
    expect_equal((audit["form"], audit["services"], audit["findings"], audit["applied"]), ("bitmap", 1, [], False),
                 "a clean store")
    by_name = {one["name"]: one for one in audit["ranges"]}
    expect_equal(by_name["serviceips"],
                 {"name": "serviceips", "range": "10.96.0.0/24", "size": 254, "used": 1,
                  "static": {"size": 16, "used": 1}, "dynamic": {"size": 238, "used": 0}, "present": True}, "a range")
    expect_equal(sorted(by_name), ["secondaryserviceips", "serviceips", "servicenodeports"], "names of ranges")
    expect("no findings" in ranges.text("audit"), "the table")
    expect("default/web" in ranges.text("audit", "-o", "wide"), "who holds what")


def planted(ranges):
    ranges.text("create", "gone", "--type", "NodePort", "--tcp", "80::30091", "--cluster-ip", "10.96.0.20")
    ranges.text("create", "one", "--cluster-ip", "10.96.0.30", "--tcp", "80")
    one = ranges.row("default/one")
    ranges.text("delete", "one")
    ranges.text("create", "two", "--cluster-ip", "10.96.0.30", "--tcp", "80")
    ranges.put(one)
    ranges.forget("default/gone")
    wanted = [("duplicate", "serviceips", "10.96.0.30", "default/two"), ("leak", "serviceips", "10.96.0.20", None),
              ("leak", "servicenodeports", "30091", None)]
    expect_equal(ranges.findings("audit"), wanted, "what the audit finds")
    expect_equal(ranges.findings("audit"), wanted, "an audit changes nothing")
    expect_equal(ranges.findings("repair"), wanted, "a repair without --apply changes nothing")
    expect_equal(ranges.findings("audit"), wanted, "nothing was written")


def mended(ranges):
    report = ranges.data("repair", "--apply", "--passes", "1", code=3)
    expect(report["applied"], "applied")
    expect_equal(len(ranges.findings("audit")), 3, "one look frees no leak")
    ranges.data("repair", "--apply", "--interval", "1s", code=3)
    expect_equal(ranges.findings("audit"), [("duplicate", "serviceips", "10.96.0.30", "default/two")],
                 "after three passes the leaks are gone")
    ranges.text("delete", "two")
    # Its address went with it, though another has it: that is what the next repair is for.
    expect_equal(ranges.findings("audit"), [("repair", "serviceips", "10.96.0.30", "default/one")], "not allocated")
    text = ranges.text("repair", "--apply")
    expect("is not allocated; repairing" in text and "all is well" in text, text)
    expect_equal(ranges.data("audit")["findings"], [], "clean again")
    report = ranges.data("audit", "--service-cluster-ip-range", "10.97.0.0/24", code=3)
    expect_equal({one["type"] for one in report["findings"]}, {"outOfRange"}, "another range by flag")


def controller(ranges):
    ranges.text("create", "late", "--cluster-ip", "10.96.0.40", "--tcp", "80")
    service = ranges.row("default/late")
    ranges.text("delete", "late")
    ranges.put(service)
    daemon = subprocess.Popen([str(ranges.world.bin / "croftd"), "controller", "--store", ranges.store,
                               "--repair-service-ranges"], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(ranges.is_clean, "the controller to repair at its start")
    finally:
        daemon.terminate()
        log = daemon.communicate(timeout=30)[1]
    expect(re.search(r"warning controller: ClusterIPNotAllocated default/late: Cluster IP \[IPv4\]:10\.96\.0\.40 is not "
                     "allocated; repairing", log), log)


def two_families_turned(world):
    """The ranges change places, and one of them goes: two records of one family are told, until a flag says which counts."""
    ranges = Ranges(world, "turned")
    ranges.text("create", "web", "--cluster-ip", "10.96.0.10", "--tcp", "80", "--service-cluster-ip-range",
                "10.96.0.0/24,fd00:10:96::/112")
    text = ranges.text("repair", "--apply", "--service-cluster-ip-range", "fd00:10:96::/112,10.96.0.0/24")
    expect(text.startswith("1 service;"), f"the count comes first: {text}")
    # Neither kind of flag is given: what is stored counts.
    ranges.text("audit")
    ranges.text("repair", "--apply", "--service-cluster-ip-range", "10.96.0.0/24")
    ranges.text("audit", code=1)
    ranges.text("audit", "--service-cluster-ip-range", "10.96.0.0/24")


def dry_run(world):
    ranges = Ranges(world, "dry")
    done = run(world.bin / "croft", "--store", ranges.store, "service", "create", "web", "--tcp", "80", "--dry-run",
               check=False)
    expect(done.returncode == 4 and "no store at" in done.stderr, f"a dry run without a store: {done}")
    expect_equal(list(pathlib.Path(ranges.path).parent.iterdir()), [], "what a dry run has made")


def test():
    with World("service-repair", sys.argv[1]) as world:
        ranges = Ranges(world)
        clean(ranges)
        planted(ranges)
        mended(ranges)
        controller(ranges)
        two_families_turned(world)
        dry_run(world)


if __name__ == "__main__":
    main(test)
