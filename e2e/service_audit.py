"""`croft service audit` and `repair` on the etcd of a running kube-apiserver: nothing to find where nothing is wrong,
each fault that is planted is named, what can be mended is mended, and the apiserver goes on from there with nothing
left for its own repair. And what that apiserver keeps (kube_apiserver.py).
"""

import json
import sys

import kube_apiserver as field
from kube_apiserver_lib import PREFIX, KubeApiserver, refused
from kube_storage import Range, ports_of
from lib import expect, expect_equal, main, run, say

FOUND = 3
WATCHED = ("ranges/", "services/", "ipaddresses/", "servicecidrs/")


class Auditor:
    def __init__(self, world, kube):
        self.world, self.kube = world, kube

    def _run(self, verb, *arguments, code):
        kube = self.kube
        command = ("service", verb, "--etcd-servers", kube.etcd.url, "--etcd-prefix", PREFIX.rstrip("/"),
                   "--service-cluster-ip-range", kube.addresses, "--service-node-port-range", kube.ports)
        done = run(self.world.bin / "croft", *command, *arguments, "-o", "json", check=False, timeout=120)
        expect_equal(done.returncode, code, f"croft service {verb} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def audit(self, *findings):
        """Looks, and finds just these, each (type, range, value, Service); it writes nothing, and nor does a repair that isn't
        told to. What collides or is out of range: service_audit_views_test.cc and what that names."""
        for verb in ("audit", "repair"):
            before = self.kube.revisions(*WATCHED)
            report = self._run(verb, code=FOUND if findings else 0)
            expect_equal(self.kube.revisions(*WATCHED), before, f"revisions after {verb}")
            expect_equal(report["applied"], False, f"{verb} has written")
            found = {(f["type"], f["range"], f["value"], f["service"]) for f in report["findings"]}
            expect_equal(found, set(findings), f"findings of {verb}")
            for finding in report["findings"]:
                expect(finding["reason"] and finding["message"], f"no reason or no message: {finding}")

    def mend(self, *arguments, code=0):
        """Exit 3 when something is left."""
        return self._run("repair", "--apply", *arguments, code=code)


def plant(kube, name, take=(), give=()):
    """Sets and clears bits of a range as it stands in etcd."""
    value = kube.raw("ranges/")[f"ranges/{name}"]
    old = Range.decode(value)
    new = Range.of(old.text, (old.members | set(take)) - set(give))
    kube.put_raw(f"ranges/{name}", new.encode())


def free_of(kube, name, candidates):
    members = kube.ranges()[name].members
    return next(candidate for candidate in candidates if candidate not in members)


def expect_nothing_left(kube):
    """The repair that a start does first finds nothing."""
    kube.restart()
    field.check(kube)
    expect_equal(kube.repaired(), {}, "what its own repair has found")


def clean(auditor):
    auditor.audit()
    expect_equal(auditor.mend()["findings"], [], "findings of a repair that has nothing to do")


def leaks(kube, auditor):
    """Bits that no Service has. One look frees none; three looks do."""
    planted = [("servicenodeports", free_of(kube, "servicenodeports", range(30127, 30016, -1)))]
    if not kube.has_objects:  # which Croft audits in place of the bitmaps beside them
        planted.append(("serviceips", free_of(kube, "serviceips", (f"10.96.0.{i}" for i in range(253, 17, -1)))))
        planted.append(("secondaryserviceips", "fd00:10:96::abcd"))
    for name, value in planted:
        plant(kube, name, take=[value])
    wanted = [("leak", name, str(value), None) for name, value in planted]
    auditor.audit(*wanted)
    auditor.mend("--passes", "1", code=FOUND)
    ranges = kube.ranges()
    expect(all(value in ranges[name].members for name, value in planted), "one look has freed what may be in the making")
    auditor.mend("--passes", "3", "--interval", "1s")
    field.check(kube)
    auditor.audit()
    port = planted[0][1]
    made = kube.create_service("found", {"type": "NodePort", "ports": [field.port(80, nodePort=port)]})
    expect_equal(ports_of(made), {port}, "the port that had leaked")
    kube.delete_service("found")
    say(f"{len(planted)} leaks found, and freed by the third look")


def taken_away(kube, auditor):
    """Bits cleared under Services that live."""
    dns, asked = kube.get_service("dns"), kube.get_service("asked")
    planted = [("servicenodeports", min(ports_of(dns)), "default/dns")]
    if not kube.has_objects:  # which Croft audits in place of the bitmaps beside them
        planted.append(("serviceips", asked["spec"]["clusterIP"], "default/asked"))
    for name, value, _ in planted:
        plant(kube, name, give=[value])
    auditor.audit(*(("repair", name, str(value), service) for name, value, service in planted))
    report = auditor.mend()
    expect_equal(report["applied"], True, "applied")
    field.check(kube)
    auditor.audit()
    why = refused(422, kube.create_service, "thief", {"type": "NodePort", "ports": [field.port(80, nodePort=planted[0][1])]})
    expect("already allocated" in why.message, f"the port again: {why}")
    kube.create_service("next", {"type": "NodePort", "ports": [field.port(80)]})
    field.check(kube)
    kube.delete_service("next")
    expect_nothing_left(kube)
    say("what live Services hold is marked again, and the apiserver goes on from there")


def nothing_to_share(world, kube):
    """Addresses that objects hold: a bitmap beside them would give what they have, so none is made unasked."""
    before = kube.revisions(*WATCHED)
    for flags in ((), ("--type", "NodePort")):
        done = run(world.bin / "croft", "--store", kube.etcd.store, "service", "create", "refused", "--tcp", "80", *flags, check=False)
        expect(done.returncode != 0 and "as IPAddress objects" in done.stderr, f"{done}")
    expect_equal(kube.revisions(*WATCHED), before, "no bitmap of addresses, no address from it")


def test(world):
    with KubeApiserver(world, sys.argv[2], addresses=f"{field.V4},{field.V6}", ports=field.PORTS) as kube:
        say(f"kube-apiserver {kube.version} was ready after {kube.started_in:.1f} s")
        auditor = Auditor(world, kube)
        auditor.audit()
        field.check(kube)
        field.each_type(kube)
        clean(auditor)
        leaks(kube, auditor)
        taken_away(kube, auditor)
        if kube.has_objects:
            nothing_to_share(world, kube)
        for part in (field.refusals, field.changes, field.in_json):
            part(kube)
        auditor.audit()


main(test, 3500)
