"""Croft's own Services on the etcd of a running kube-apiserver, from the ranges that both draw from: neither gives what
the other has given, whatever they do at once, and what is deleted is free for both.

In the version whose addresses are objects there is no bitmap of addresses to share: Croft gives nothing there.

usage: service_kube_ranges.py BIN_DIR VERSION
"""

import collections
import itertools
import json
import sys
import threading

from kube_apiserver_lib import JSON, KubeApiserver, Refused
from kube_storage import addresses_of, ports_of
from lib import World, expect, expect_equal, main, run, say

V4, V6, PORTS = "10.96.0.0/23", "fd00:10:96::/112", "30000-30511"
V4_SIZE = 510
EACH = 120  # Services that each of the two makes in the race
ALLOCATED = "already allocated"
FULL = "range is full"


class CroftServices:
    """`croft service` on the apiserver's etcd. Its Services are Croft's own: the apiserver doesn't know them."""

    def __init__(self, world, kube):
        self.world, self.store = world, kube.etcd.store

    def run(self, *arguments):
        return run(self.world.bin / "croft", "--store", self.store, "service", *arguments, "-o", "json", check=False)

    def _data(self, *arguments):
        done = self.run(*arguments)
        expect_equal(done.returncode, 0, f"croft service {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def create(self, name, *flags):
        """The Service made; raises Refused with what Croft said."""
        ports = () if "--tcp" in flags else ("--tcp", "80")
        done = self.run("create", name, *ports, *flags)
        if done.returncode != 0:
            raise Refused(done.returncode, {"message": done.stderr})
        return json.loads(done.stdout)

    def create_plain(self, name):
        return self.create(name)

    def create_with_port(self, name):
        return self.create(name, "--type", "NodePort")

    def delete(self, name):
        expect_equal(self.run("delete", name).returncode, 0, f"delete of Croft's {name}")

    def services(self):
        return self._data("list", "-A")["items"]


class KubeServices:
    """The same words for the apiserver."""

    def __init__(self, kube):
        self.kube = kube

    def create(self, name, spec):
        return self.kube.create_service(name, {"ports": [{"port": 80}], **spec})

    def create_plain(self, name):
        return self.create(name, {})

    def create_with_port(self, name):
        return self.create(name, {"type": "NodePort"})

    def delete(self, name):
        self.kube.delete_service(name)

    def services(self):
        return self.kube.services()


def check(kube, makers):
    """Each bit is held by exactly one Service of either, and each that holds has its bit; what both hold together."""
    addresses, ports = collections.Counter(), collections.Counter()
    for maker in makers:
        for service in maker.services():
            addresses.update(addresses_of(service))
            ports.update(ports_of(service))
    for what, holders in (("addresses", addresses), ("ports", ports)):
        twice = {value: count for value, count in holders.items() if count > 1}
        expect(not twice, f"{what} held by several: {twice}")
    ranges = kube.ranges()
    expect_equal(ranges["serviceips"].members | ranges["secondaryserviceips"].members, set(addresses), "addresses")
    expect_equal(ranges["servicenodeports"].members, set(ports), "ports")
    expect_equal((ranges["serviceips"].text, ranges["secondaryserviceips"].text, ranges["servicenodeports"].text),
                 (V4, V6, PORTS), "texts of the ranges")
    return set(addresses), set(ports)


def refuses(create, name, text):
    try:
        made = create(name)
    except Refused as refused:
        expect(text in refused.message, f"{text!r} is not in {refused.message!r}")
    else:
        expect(False, f"{name} was made: {made['spec']}")


def what_one_has(kube, croft, api):
    """By value: what one has taken the other refuses, and gives once it is given back."""
    both = {"ipFamilyPolicy": "RequireDualStack", "clusterIPs": ["10.96.0.20", "fd00:10:96::ffff"], "type": "NodePort",
            "clusterIP": "10.96.0.20", "ports": [{"port": 80, "nodePort": 30020}]}
    flags = ("--cluster-ip", "10.96.0.20,fd00:10:96::ffff", "--ip-family-policy", "RequireDualStack",
             "--type", "NodePort")
    first = lambda name: api.create(name, {"clusterIP": "10.96.0.20"})
    second = lambda name: api.create(name, {"clusterIP": "fd00:10:96::ffff", "ipFamilies": ["IPv6"]})
    port = lambda name: api.create(name, {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30020}]})
    made = croft.create("c", *flags, "--tcp", "80::30020")
    expect_equal((addresses_of(made), ports_of(made)), ({"10.96.0.20", "fd00:10:96::ffff"}, {30020}), "asked of Croft")
    check(kube, (croft, api))
    for create in (first, second, port):
        refuses(create, "refused", ALLOCATED)
    check(kube, (croft, api))
    croft.delete("c")
    made = api.create("k", both)
    expect_equal((addresses_of(made), ports_of(made)), ({"10.96.0.20", "fd00:10:96::ffff"}, {30020}), "asked of it")
    for arguments in (("--cluster-ip", "10.96.0.20"), ("--cluster-ip", "fd00:10:96::ffff", "--ip-families", "IPv6"),
                      ("--type", "NodePort", "--tcp", "80::30020")):
        refuses(lambda name, a=arguments: croft.create(name, *a), "refused", ALLOCATED)
    refuses(lambda name: croft.create(name, "--cluster-ip", "10.96.0.1"), "refused", ALLOCATED)
    api.delete("k")
    croft.create("c", *flags, "--tcp", "80::30020")
    check(kube, (croft, api))
    croft.delete("c")
    check(kube, (croft, api))
    say("what one has the other refuses, in both directions")


class Crew:
    """Threads that make Services with one maker, and what came of it."""

    def __init__(self, maker, prefix, threads=2):
        self.maker, self.prefix, self.count = maker, prefix, threads
        self.made, self.troubles, self.names = [], [], itertools.count()
        self.threads = []

    def start(self, create, how_many=None):
        """Each thread makes Services until `how_many` of all are made, or else until the range is full."""
        numbers = itertools.count()
        self.threads = [threading.Thread(target=self._work, args=(create, how_many, numbers), daemon=True)
                        for _ in range(self.count)]
        for thread in self.threads:
            thread.start()

    def _work(self, create, how_many, numbers):
        while how_many is None or next(numbers) < how_many:
            name = f"{self.prefix}{next(self.names)}"
            try:
                create(name)
            except Refused as refused:
                if how_many is None and FULL in refused.message:
                    return
                self.troubles.append(str(refused))
                return
            except Exception as error:  # a thread has nobody else to tell
                self.troubles.append(repr(error))
                return
            self.made.append(name)

    def join(self):
        for thread in self.threads:
            thread.join()
        expect_equal(self.troubles, [], f"troubles of {self.prefix}")

    def delete_all(self):
        names, self.made = iter(self.made), []
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    name = next(names, None)
                if name is None:
                    return
                try:
                    self.maker.delete(name)
                except Exception as error:  # as above
                    self.troubles.append(repr(error))
                    return
        self.threads = [threading.Thread(target=work, daemon=True) for _ in range(self.count)]
        for thread in self.threads:
            thread.start()


def both_at_once(kube, croft, api):
    crews = Crew(croft, "c"), Crew(api, "k")
    for crew in crews:
        crew.start(crew.maker.create_with_port, EACH)
    for crew in crews:
        crew.join()
    expect_equal([len(crew.made) for crew in crews], [EACH, EACH], "Services with a port that each has made")
    addresses, ports = check(kube, (croft, api))
    expect_equal((len(addresses), len(ports)), (2 * EACH + 1, 2 * EACH), "addresses and ports, each once")
    say(f"{EACH} Services with a port each, made at once: no address and no port twice")

    for crew in crews:
        crew.start(crew.maker.create_plain)
    for crew in crews:
        crew.join()
    addresses, _ = check(kube, (croft, api))
    expect_equal(len(addresses), V4_SIZE, "addresses of a full range")
    say(f"full: all {V4_SIZE} addresses are given once, {len(crews[0].made)} of this round by Croft, "
        f"{len(crews[1].made)} by Kubernetes")

    for crew in crews:
        crew.delete_all()
    for crew in crews:
        crew.join()
    addresses, ports = check(kube, (croft, api))
    expect_equal((addresses, ports), ({"10.96.0.1"}, set()), "what is held after all deletes")
    say("given back by both at once")


def after_a_start(kube, croft, api):
    """The other form on disk, and the repair of a start, which leaves what it doesn't know for two more passes."""
    made = croft.create("stays", "--cluster-ip", "10.96.0.30", "--type", "NodePort", "--tcp", "80::30030")
    kube.restart(media=JSON)
    expect(addresses_of(made) <= check(kube, (croft, api))[0], "kept by the repair")
    refuses(lambda name: api.create(name, {"clusterIP": "10.96.0.30"}), "refused", ALLOCATED)
    api.create_with_port("k")
    expect(kube.raw("ranges/")["ranges/serviceips"].startswith(b"{"), "the apiserver writes JSON now")
    croft.create_with_port("c")
    api.create_with_port("k2")
    for maker, name in ((api, "k"), (croft, "c"), (api, "k2"), (croft, "stays")):
        maker.delete(name)
        check(kube, (croft, api))
    say("the same after a start that writes JSON")


def nothing_to_share(kube, croft):
    """Addresses that objects hold: a bitmap beside them would give what they have, so none is made unasked."""
    before = kube.raw("")
    for flags in ((), ("--type", "NodePort")):
        refuses(lambda name, f=flags: croft.create(name, *f), "refused", "as IPAddress objects")
    after = kube.raw("")
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    expect_equal({key for key in changed if key.startswith(("ranges/", "services/", "ipaddresses/"))}, set(), "changed")
    say("no bitmap of addresses, no address from it")


def test():
    version = sys.argv[2]
    with World("kube-ranges", sys.argv[1]) as world:
        with KubeApiserver(world, version, addresses=f"{V4},{V6}", ports=PORTS) as kube:
            croft, api = CroftServices(world, kube), KubeServices(kube)
            if version != "1.32":
                nothing_to_share(kube, croft)
                return
            what_one_has(kube, croft, api)
            both_at_once(kube, croft, api)
            after_a_start(kube, croft, api)


main(test, 3500)
