"""The readers of kube_storage.py on what Kubernetes' own code wrote (src/services/format/testdata/kubernetes): both forms agree.

usage: kube_storage_test.py BIN_DIR
"""

import pathlib

from kube_storage import Range, addresses_of, decode_ip_address, decode_service, decode_service_cidr, ports_of
from lib import expect, expect_equal, main, say

FILES = pathlib.Path(__file__).resolve().parent.parent / "src" / "services" / "format" / "testdata" / "kubernetes"


def both(name):
    return (FILES / f"{name}.pb").read_bytes(), (FILES / f"{name}.json").read_bytes()


def ranges():
    held = {
        "addresses": {"10.0.0.1", "10.0.0.10", "10.0.0.20"},
        "untrimmed": {"10.0.0.1", "10.0.0.10", "10.0.0.20"},
        "metadata": {"10.96.0.1", "10.96.0.10", "10.96.0.254"},
        "ports": {30080},
        "ports_several": {30080, 30443, 32767},
        "ipv6": {"fd00:10:96::1", "fd00:10:96::a", "fd00:10:96::ffff"},
        "empty": set(),
        "nil": set(),
        "full": {f"10.0.0.{i}" for i in range(1, 255)},
        "too_long": {"10.0.0.1", "10.0.0.254", "10.0.0.255", "10.0.1.45"},
    }
    expect_equal({p.stem for p in FILES.glob("range_*.pb")}, {f"range_{name}" for name in held}, "files of ranges")
    for name, members in held.items():
        value, document = both(f"range_{name}")
        older = (FILES / "1.32" / f"range_{name}.json").read_bytes()
        for form in (value, document, older):
            expect_equal(Range.decode(form).members, members, f"range_{name}")
        expect(b'"creationTimestamp":null' in older, f"range_{name}.json of the older release")
        expect(b'"creationTimestamp"' not in document, f"range_{name}.json of the newer release")
        # What carries metadata, has no data at all or has bytes to spare is not what this encoder writes.
        if name not in ("metadata", "nil", "untrimmed"):
            expect_equal(Range.of(Range.decode(value).text, members).encode(), value, f"range_{name}.pb, encoded")
    say(f"{len(held)} ranges")


def services():
    held = {
        "kubernetes": ({"10.96.0.1"}, set()),
        "dual_stack": ({"10.96.0.20", "fd00:10:96::14"}, set()),
        "headless": (set(), set()),
        "external_name": (set(), set()),
        "node_port": ({"10.96.0.30"}, {30053}),
        "load_balancer": ({"10.96.0.40"}, {30118}),
        "leaving": ({"10.96.0.41"}, {30041}),
        "before_dual_stack": ({"10.96.0.50"}, set()),
        "many_fields": ({"10.96.1.2", "fd00:10:96::102"}, {30180, 30443, 30999, 32000}),
    }
    expect_equal({p.stem for p in FILES.glob("service_*.pb")} - {"service_cidr_v1", "service_cidr_v1beta1"},
                 {f"service_{name}" for name in held}, "files of Services")
    for name, (addresses, ports) in held.items():
        for form in both(f"service_{name}"):
            service = decode_service(form)
            expect_equal((addresses_of(service), ports_of(service)), (addresses, ports), f"service_{name}")
    say(f"{len(held)} Services")


def objects():
    for version in ("v1", "v1beta1"):
        group = f"networking.k8s.io/{version}"
        for family, address in (("ipv4", "10.96.0.20"), ("ipv6", "fd00:10:96::14")):
            for form in both(f"ip_address_{version}_{family}"):
                expect_equal(decode_ip_address(form), (group, address, ("services", "default", "web")), address)
        for form in both(f"service_cidr_{version}"):
            expect_equal(decode_service_cidr(form), (group, "kubernetes", ["10.96.0.0/16", "fd00:10:96::/112"]), group)
    say("addresses and ranges as objects, of two versions")


def test():
    ranges()
    services()
    objects()


if __name__ == "__main__":
    main(test)
