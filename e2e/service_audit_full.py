"""A range of Service addresses of a /12 in which every address leaked: an audit of it counts them all, names a few, and
keeps within bounds of memory. Needs no root.

usage: service_audit_full.py BIN_DIR
"""

import base64
import json
import os
import subprocess
import sys

from etcd_lib import Etcd
from lib import World, expect, expect_equal, main, say

ADDRESSES = (1 << 20) - 2  # of a /12, without the network's own and the last
MIB_MAX = 300
FOUND = 3


def audit(world, store, *form):
    """(the output, the peak in MiB)"""
    process = subprocess.Popen([world.bin / "croft", "--store", store, "service", "audit", *form],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    expect_equal(process.returncode, FOUND, f"exit code of the audit: {out[:1000]}")
    return out, usage.ru_maxrss / 1024


def test():
    with World("service-audit-full", sys.argv[1]) as world:
        etcd = Etcd(world)
        full = ((1 << ADDRESSES) - 1).to_bytes((ADDRESSES + 7) // 8, "big")
        record = {"apiVersion": "v1", "kind": "RangeAllocation", "metadata": {"name": "serviceips"},
                  "range": "10.0.0.0/12", "data": base64.b64encode(full).decode()}
        subprocess.run(["etcdctl", "--endpoints", etcd.url, "put", "/registry/ranges/serviceips"], check=True,
                       input=json.dumps(record).encode(), stdout=subprocess.DEVNULL,
                       env={**os.environ, "ETCDCTL_API": "3"}, timeout=60)
        for form in ((), ("-o", "wide"), ("-o", "json"), ("-o", "yaml")):
            out, peak = audit(world, etcd.store, *form)
            say(f"audit {' '.join(form)}: {peak:.0f} MiB, {len(out) / 1024:.0f} KiB of output")
            expect(peak < MIB_MAX, f"an audit of a full range took {peak:.0f} MiB")
            expect(len(out) < 4 << 20, f"an audit of a full range printed {len(out)} bytes")
            if "json" in form:
                report = json.loads(out)
                expect_equal(report["ranges"][0]["used"], ADDRESSES, "addresses taken")
                expect_equal(sum(one.get("count", 1) for one in report["findings"]), ADDRESSES, "leaks counted")
            else:
                expect("more" in out, f"says how many are not named: {out[-500:]}")


if __name__ == "__main__":
    main(test)
