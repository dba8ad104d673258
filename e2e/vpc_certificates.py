"""croft vpc certificates: files that openssl takes, kept while they are good, and Secrets.

usage: vpc_certificates.py BIN_DIR
"""

import base64
import os
import pathlib
import re
import subprocess
import sys

from lib import Failure, World, main, require_programs, run


def check(is_so, what):
    if not is_so:
        raise Failure(what)


def test():
    require_programs("openssl")
    with World("vpc-certificates", sys.argv[1]) as world:
        croft = pathlib.Path(sys.argv[1]) / "croft"
        place = world.directory / "tls"

        def make(*arguments, code=0):
            done = subprocess.run([croft, "vpc", "certificates", *arguments], capture_output=True, text=True,
                                  check=False, umask=0)
            check(done.returncode == code, f"{arguments}: {done.returncode} {done.stdout}{done.stderr}")
            return done.stdout + done.stderr

        first = make("--directory", place, "--node", "node-a", "--node", "node-b.example")
        check("ca.crt: made" in first and "node-a.crt: made" in first, first)
        for name in ("ca", "node-a", "node-b.example"):
            check((place / f"{name}.key").stat().st_mode & 0o777 == 0o600, f"{name}.key")
            check((place / f"{name}.crt").stat().st_mode & 0o777 == 0o644, f"{name}.crt")
        for purpose in ("sslserver", "sslclient"):
            run("openssl", "verify", "-x509_strict", "-purpose", purpose, "-verify_hostname", "node-a", "-CAfile",
                place / "ca.crt", place / "node-a.crt")
        before = {path.name: path.read_bytes() for path in place.iterdir()}
        again = make("--directory", place, "--node", "node-a", "--node", "node-b.example")
        check(again.count(": kept") == 3, again)
        check(before == {path.name: path.read_bytes() for path in place.iterdir()}, "nothing is written again")

        # The name of the CA's own files, beside a good one.
        for more in ([], ["-o", "yaml"]):
            text = make("--directory", place, "--node", "node-z", "--node", "ca", *more, code=2)
            check("--node ca" in text, text)
        check(before == {path.name: path.read_bytes() for path in place.iterdir()}, "nothing is written for it")
        make("--directory", world.directory / "none", "--node", "ca", code=2)
        check(not (world.directory / "none").exists(), "nor a directory made")

        # A key that is another one.
        (place / "node-a.key").write_bytes((place / "node-b.example.key").read_bytes())
        if os.geteuid() == 0:  # of an agent of another user
            os.chown(place / "node-a.key", 1234, 2345)
        os.chmod(place / "node-a.key", 0o640)
        given = (place / "node-a.key").stat()
        check("node-a.crt: made, as it could not be used" in make("--directory", place, "--node", "node-a"), "")
        has = (place / "node-a.key").stat()
        check((has.st_mode, has.st_uid, has.st_gid) == (given.st_mode, given.st_uid, given.st_gid), "who may read the key anew")
        check((place / "ca.crt").read_bytes() == before["ca.crt"], "the CA stays")

        text = make("--directory", place, "--node", "node-c", "-o", "yaml")
        check(not (place / "node-c.crt").exists(), "-o yaml writes no files")
        check("ca.key" not in text, "the key of a CA that is there is not printed")
        data = {key: base64.b64decode(value) for key, value in re.findall(r"^  (\S+): (\S{99,})$", text, re.MULTILINE)}
        check(set(data) == {"node-c.crt", "node-c.key", "ca.crt"} and data["ca.crt"] == before["ca.crt"], text)
        check("ca.key" in make("--node", "node-c", "-o", "yaml"), "a new CA is printed")

        for wrong in ("Node", "../x", "a/b", ""):
            check("is no name of a node" in make("--directory", place, "--node", wrong, code=2), wrong)
        make("--directory", place, code=2)
        make("--node", "node-a", code=2)
        (place / "ca.key").unlink()
        check("put it back" in make("--directory", place, "--node", "node-a", code=2), "")
        check((place / "ca.crt").read_bytes() == before["ca.crt"], "the CA stays")


if __name__ == "__main__":
    main(test, 100)
