"""croft-ipam on an etcd that speaks TLS and wants certificates: what works, what every refusal says, files renewed.

usage: etcd_tls.py BIN_DIR
"""

import json
import os
import shutil
import sys

from etcd import Node
from etcd_lib import Etcd
from lib import World, call_ipam, expect, expect_equal, main, require_programs, run, say

TRY_AGAIN, BAD_CONFIGURATION = 11, 7
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
LONG_AGO = ("20200101000000Z", "20200201000000Z")


class Authority:
    """An authority and what it has signed, in one directory."""

    def __init__(self, folder, name):
        self.folder = folder / name
        self.folder.mkdir()
        self.certificate, self.key = self.folder / "ca.crt", self.folder / "ca.key"
        run("openssl", "req", "-x509", *CURVE, "-subj", f"/CN={name}", "-days", "2", "-keyout", self.key,
            "-out", self.certificate)

    def sign(self, subject, names, period=None):
        """(certificate, key) with these names, as in "IP:127.0.0.1"; valid now, or in a period."""
        request, config = self.folder / f"{subject}.csr", self.folder / f"{subject}.cnf"
        certificate, key = self.folder / f"{subject}.crt", self.folder / f"{subject}.key"
        run("openssl", "req", "-new", *CURVE, "-subj", f"/CN={subject}", "-keyout", key, "-out", request)
        (self.folder / f"{subject}.db").touch()
        config.write_text(
            f"[ca]\ndefault_ca=a\n[a]\ndatabase={self.folder / subject}.db\nnew_certs_dir={self.folder}\n"
            "rand_serial=yes\npolicy=p\ndefault_md=sha256\nunique_subject=no\n[p]\ncommonName=supplied\n"
            f"[e]\nsubjectAltName={names}\n")
        when = ["-startdate", period[0], "-enddate", period[1]] if period else ["-days", "2"]
        run("openssl", "ca", "-batch", "-config", config, "-extensions", "e", "-cert", self.certificate,
            "-keyfile", self.key, "-in", request, "-out", certificate, "-notext", *when)
        return certificate, key


class TlsEtcd(Etcd):
    """A member that shows a certificate and wants one."""

    scheme = "https"

    def __init__(self, world, ca, server, client):
        self.ctl_flags = ("--cacert", ca, "--cert", client[0], "--key", client[1])
        super().__init__(world, "--cert-file", server[0], "--key-file", server[1], "--client-cert-auth",
                         "--trusted-ca-file", ca)


def url(etcd, ca=None, pair=(None, None), more=""):
    options = [f"{name}={value}" for name, value in (("ca", ca), ("cert", pair[0]), ("key", pair[1])) if value]
    return etcd.store + ("?" + "&".join(options) if options else "") + more


def refused(world, store, code, *parts):
    """An ADD and a DEL are refused with a code, and the text has all the parts."""
    node = Node(world, store, "oak")
    for command in ("ADD", "DEL"):
        status, answer, err = node.finish(node.start(command, "refused"))
        expect_equal((status, err), (1, ""), f"{command} with {store}: {answer}")
        expect_equal(answer["code"], code, f"{command} with {store}: {answer}")
        text = f"{answer['msg']} {answer.get('details', '')}"
        for part in parts:
            expect(str(part) in text, f"{command} with {store}: {part!r} is not in {text!r}")
    say(f"refused, {code}: {text.strip()}")


def from_environment(world, etcd, ca, client):
    names = {"ETCD_CA_CERT_FILE": ca, "ETCD_CERT_FILE": client[0], "ETCD_KEY_FILE": client[1]}
    for command in ("ADD", "DEL"):
        code, answer = call_ipam(world, command, "env", etcd.store, "oak", env={name: str(path) for name, path in names.items()})
        expect_equal(code, 0, f"{command}: {answer}")
    rows = run(world.bin / "croft", "--store", etcd.store, "-o", "json", "pool", "list",
               env={**os.environ, **{name: str(path) for name, path in names.items()}})
    expect_equal([row["name"] for row in json.loads(rows.stdout)], ["a"], "pools, with files from the environment")


def renewed(world, etcd, authority, client, stranger):
    """The same URL, other files under the same names: the next call uses them."""
    mine = world.directory / "mine.crt", world.directory / "mine.key"

    def put(pair):
        for source, target in zip(pair, mine):
            shutil.copyfile(source, target.with_suffix(".new"))
            target.with_suffix(".new").chmod(0o600)
            target.with_suffix(".new").rename(target)
    store = url(etcd, authority.certificate, mine)
    node = Node(world, store, "oak")
    put(client)
    before = node.add("renewed")
    put(stranger)
    refused(world, store, TRY_AGAIN, "bad certificate")
    put(authority.sign("next", "DNS:client"))
    expect_equal(node.add("renewed"), before, "asked again after a renewal, the same")
    node.delete("renewed")


def test():
    require_programs("openssl", "etcd", "etcdctl")
    with World("etcd-tls", sys.argv[1]) as world:
        authority, stranger = Authority(world.directory, "ours"), Authority(world.directory, "strange")
        ca = authority.certificate
        client = authority.sign("client", "DNS:client")
        etcd = TlsEtcd(world, ca, authority.sign("server", "IP:127.0.0.1,DNS:etcd.example"), client)
        good = url(etcd, ca, client)
        world.croft(good, "pool", "create", "a", "--cidr", "10.77.0.0/24", "--block-size", "28")
        node = Node(world, good, "oak")
        kept = node.add("kept")
        expect_equal(node.add("kept"), kept, "asked again, the same")
        expect_equal(Node(world, good + "&name=etcd.example", "oak").add("kept"), kept, "by the server's name")
        from_environment(world, etcd, ca, client)
        say("certificates on both sides: from the URL, and from the environment")

        foreigner = stranger.sign("foreigner", "DNS:client")
        refused(world, url(etcd, stranger.certificate, client), TRY_AGAIN, stranger.certificate, etcd.url)
        refused(world, url(etcd, ca), TRY_AGAIN, etcd.url, "bad certificate")
        refused(world, url(etcd, ca, foreigner), TRY_AGAIN, etcd.url, "bad certificate")
        refused(world, url(etcd, ca, authority.sign("expired", "DNS:client", LONG_AGO)), TRY_AGAIN, etcd.url,
                "bad certificate")
        refused(world, good + "&name=other.example", TRY_AGAIN, "mismatch")
        refused(world, url(etcd, ca, (client[0], authority.key)), TRY_AGAIN, authority.key, "does not belong")
        client[1].chmod(0o644)
        refused(world, url(etcd, ca, client), TRY_AGAIN, client[1], "others can read", f"chmod 640 {client[1]}")
        client[1].chmod(0o600)
        refused(world, url(etcd, ca, (client[0], None)), BAD_CONFIGURATION, "a certificate and its key, or neither")
        refused(world, etcd.store, BAD_CONFIGURATION, "ETCD_CA_CERT_FILE")
        refused(world, url(etcd, world.directory / "none.crt", client), TRY_AGAIN, "none.crt", "No such file")
        refused(world, good.replace("https:", "http:"), TRY_AGAIN, f"127.0.0.1:{etcd.port}")
        renewed(world, etcd, authority, client, foreigner)
        say("renewed files are used by the next call")

        etcd.kill()
        server = authority.sign("server-long-ago", "IP:127.0.0.1", LONG_AGO)
        etcd.arguments = ["--cert-file", server[0], "--key-file", server[1], *etcd.arguments[4:]]
        etcd.ctl_flags = (*etcd.ctl_flags, "--insecure-skip-tls-verify")
        etcd.start()
        refused(world, good, TRY_AGAIN, etcd.url, "expired")
        etcd.kill()
        plain = Etcd(world)
        refused(world, url(plain, ca, client).replace("http:", "https:"), TRY_AGAIN, f"127.0.0.1:{plain.port}")
        plain.kill()

        server = authority.sign("server-again", "IP:127.0.0.1")
        etcd.arguments = ["--cert-file", server[0], "--key-file", server[1], *etcd.arguments[4:]]
        etcd.start()
        expect_equal([row["containerId"] for row in world.held(good).values()], ["kept"],
                     "no refusal has changed anything")
        node.delete("kept")


if __name__ == "__main__":
    main(test)
