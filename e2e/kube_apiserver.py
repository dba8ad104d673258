"""What a real kube-apiserver keeps in etcd of Service addresses and node ports: in each form and version, exactly what
its Services hold. service_audit.py runs it.
"""

from kube_apiserver_lib import JSON, refused
from kube_storage import MAGIC, Range, addresses_of, ports_of
from lib import expect, expect_equal, say

V4, V6, PORTS = "10.96.0.0/24", "fd00:10:96::/112", "30000-30127"
SELECTOR = {"app": "web"}


def held(services):
    addresses, ports = set(), set()
    for service in services:
        addresses |= addresses_of(service)
        ports |= ports_of(service)
    return addresses, ports


def check(kube):
    """What etcd holds is what the Services hold: read by key and by the REST API, and to the byte."""
    addresses, ports = held(kube.services())
    expect_equal(held(kube.stored_services()), (addresses, ports), "stored Services beside those of the REST API")
    ranges = kube.ranges()
    wanted = {"servicenodeports": Range.of(PORTS, ports)}
    if kube.has_bitmaps:
        wanted["serviceips"] = Range.of(V4, {a for a in addresses if ":" not in a})
        wanted["secondaryserviceips"] = Range.of(V6, {a for a in addresses if ":" in a})
    objects = {address: ("services", one["metadata"]["namespace"], one["metadata"]["name"])
               for one in kube.services() for address in addresses_of(one)}
    expect_equal(kube.ip_addresses(), objects if kube.has_objects else {}, "objects of addresses")
    if kube.has_objects:
        expect_equal(kube.service_cidrs(), {"kubernetes": [V4, V6]}, "objects of ranges")
    expect_equal(set(ranges), set(wanted), "keys of ranges")
    raw = kube.raw("ranges/")
    for name, value in wanted.items():
        expect_equal((ranges[name].text, ranges[name].members), (value.text, value.members), name)
        if raw[f"ranges/{name}"].startswith(MAGIC) and value.members:  # an empty one has no bits, or none set, by version
            expect_equal(raw[f"ranges/{name}"], value.encode(), f"bytes of {name}")
    return addresses, ports


def port(number, protocol="TCP", **more):
    return {"name": f"{protocol.lower()}-{number}", "port": number, "protocol": protocol, **more}


def each_type(kube):
    create = kube.create_service
    # What is asked for comes before what is drawn, or lies in the static band, from which nothing is drawn.
    create("last", {"clusterIP": "10.96.0.254", "ports": [port(80)]})
    create("asked", {"clusterIP": "10.96.0.10", "ports": [port(80)]})
    create("plain", {"selector": SELECTOR, "ports": [port(80)]})
    both = create("both", {"ipFamilyPolicy": "RequireDualStack", "ports": [port(80)],
                           "clusterIP": "10.96.0.11", "clusterIPs": ["10.96.0.11", "fd00:10:96::ffff"]})
    expect_equal(addresses_of(both), {"10.96.0.11", "fd00:10:96::ffff"}, "asked for one of each family")
    drawn = create("drawn", {"ipFamilyPolicy": "PreferDualStack", "ports": [port(80)]})
    expect_equal(len(addresses_of(drawn)), 2, "given one of each family")
    create("headless", {"clusterIP": "None", "selector": SELECTOR, "ports": [port(80)]})
    create("elsewhere", {"type": "ExternalName", "externalName": "db.example.com"})

    dns = create("dns", {"type": "NodePort", "ports": [port(53, nodePort=30005), port(53, "UDP", nodePort=30005)]})
    expect_equal(ports_of(dns), {30005}, "one number in two protocols")
    shared = create("shared", {"type": "NodePort", "ports": [port(53), port(53, "UDP")]})
    expect_equal(len(ports_of(shared)), 1, "given one number for two protocols")
    several = create("several", {"type": "NodePort", "ports": [port(80), port(443), port(9999, "SCTP")]})
    expect_equal(len(ports_of(several)), 3, "given three numbers")

    local = create("local", {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [port(80)],
                             "allocateLoadBalancerNodePorts": False, "healthCheckNodePort": 30012})
    expect_equal(ports_of(local), {30012}, "the health check's port alone")
    balanced = create("balanced", {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [port(80)]})
    expect_equal(len(ports_of(balanced)), 2, "a port and the health check's")

    addresses, ports = check(kube)
    expect({"10.96.0.1", "10.96.0.10", "10.96.0.254", "fd00:10:96::ffff"} <= addresses, f"addresses: {addresses}")
    expect({30005, 30012} <= ports, f"ports: {ports}")
    say(f"{len(kube.services())} Services with {len(addresses)} addresses and {len(ports)} node ports")


def refusals(kube):
    """What it refuses leaves no bit behind."""
    before = check(kube)
    asked = (({"clusterIP": "10.96.0.10", "ports": [port(80)]}, "provided IP is already allocated"),
             ({"clusterIP": "10.97.0.10", "ports": [port(80)]}, "10.97.0.10"),
             ({"type": "NodePort", "ports": [port(80, nodePort=30005)]}, "provided port is already allocated"),
             ({"type": "NodePort", "ports": [port(80, nodePort=30128)]}, "provided port is not in the valid range"))
    for spec, text in asked:
        why = refused(422, kube.create_service, "refused", spec)
        expect(text in why.message, f"{text!r} is not in {why.message!r}")
    expect_equal(check(kube), before, "after the refusals")
    say("four refusals, nothing taken")


def changes(kube):
    """Given back, taken anew, kept."""
    kube.delete_service("several")
    kube.delete_service("both")
    addresses, _ = check(kube)
    expect("10.96.0.11" not in addresses and "fd00:10:96::ffff" not in addresses, "given back")
    service = kube.get_service("plain")
    service["spec"]["type"] = "NodePort"
    expect_equal(len(ports_of(kube.update_service(service))), 1, "a port with the new type")
    check(kube)
    service = kube.get_service("balanced")
    service["spec"]["type"], kept = "ClusterIP", addresses_of(service)
    service["spec"].pop("externalTrafficPolicy", None)
    after = kube.update_service(service)
    expect_equal((ports_of(after), addresses_of(after)), (set(), kept), "ports given back with the type, address kept")
    check(kube)
    say("given back and taken by delete and update")


def in_json(kube):
    """The other form: what is there is read in the old one, what is written is written in the new one."""
    before = check(kube)
    kube.restart(media=JSON)
    kube.create_service("later", {"type": "NodePort", "ipFamilyPolicy": "RequireDualStack", "ports": [port(80)]})
    after = check(kube)
    expect(before[0] < after[0] and before[1] < after[1], "one more of each")
    metadata = b'"metadata":{"creationTimestamp":null}' if kube.minor < 34 else b'"metadata":{}'
    for key, value in kube.raw("ranges/").items():
        start = b'{"kind":"RangeAllocation","apiVersion":"v1",' + metadata + b',"range":"'
        expect(value.startswith(start) and value.endswith(b'"}\n'), f"{key} in JSON: {value!r}")
    say("the same in JSON")
