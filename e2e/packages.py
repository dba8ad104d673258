"""scripts/package: Debian's packages and the tarball have what they should, say what they need, and are the same bytes when made
again.

usage: packages.py BIN_DIR
"""

import pathlib
import re
import sys

from lib import World, expect, expect_equal, main, require_programs, run, say

TREE = pathlib.Path(__file__).resolve().parent.parent
IN_CROFT = {"/usr/bin/croft", "/usr/bin/croftd", "/lib/systemd/system/croftd-agent.service",
            "/lib/systemd/system/croftd-controller.service", "/usr/share/man/man1/croft.1", "/usr/share/man/man8/croftd-agent.8",
            "/usr/share/bash-completion/completions/croft", "/usr/share/zsh/site-functions/_croftd",
            "/usr/share/fish/vendor_completions.d/croft.fish", "/usr/share/doc/croft/copyright"}
IN_PLUGIN = {"/opt/cni/bin/croft-ipam", "/usr/share/doc/croft-cni/copyright"}


def files_of(package):
    lines = run("dpkg-deb", "-c", package).stdout.splitlines()
    for line in lines:
        expect(line.split()[1] == "root/root", f"whose: {line}")
    return {line.split()[5].removeprefix(".") for line in lines if not line.startswith("d")}


def package(world, name):
    out = world.directory / name
    run(TREE / "scripts" / "package", "--build", world.bin.parent, out, timeout=120)
    return out


def test():
    require_programs("dpkg-deb", "dpkg-shlibdeps", "cpack")
    with World("packages", sys.argv[1]) as world:
        out = package(world, "once")
        programs, = out.glob("croft_*.deb")
        plugin, = out.glob("croft-cni_*.deb")
        expect(IN_CROFT <= files_of(programs), f"in croft: {IN_CROFT - files_of(programs)}")
        expect(not [path for path in files_of(programs) if path.startswith(("/etc", "/opt", "/var"))], "croft stays in its places")
        expect_equal(files_of(plugin), IN_PLUGIN, "in croft-cni")
        needs = run("dpkg-deb", "-f", programs, "Depends").stdout
        for library in ("libc6", "libsqlite3-0", "libssl3", "libnghttp2-14"):
            expect(library in needs, f"{library} of {needs}")
        expect_equal(run("dpkg-deb", "-f", plugin, "Depends").stdout.strip(), "", "the static plugin needs nothing")
        root = world.directory / "root"
        root.mkdir()
        tarball, = out.glob("croft-*.tar.gz")
        run("tar", "-C", root, "-xzf", tarball)
        top, = root.iterdir()
        for name in ("croft", "croftd"):
            said = run(top / "usr" / "bin" / name, "--version").stdout
            expect_equal(said, run(world.bin / name, "--version").stdout, f"version of {name}")
            expect(re.search(r"\(commit [0-9a-f]{12}", said), said)
        expect_equal((top / "opt" / "cni" / "bin" / "croft-ipam").stat().st_mode & 0o777, 0o755, "mode of the plugin")
        run("sh", "-c", f"cd {out} && sha256sum --check --strict SHA256SUMS")
        expect(list(out.glob("*.spdx.json")), "what they are made of")
        again = package(world, "again")
        expect_equal((again / "SHA256SUMS").read_text(), (out / "SHA256SUMS").read_text(), "made again")
        sizes = {file.name: f"{file.stat().st_size / 1e6:.1f} MB" for file in sorted(out.iterdir()) if file.name != "SHA256SUMS"}
        say(f"{sizes}; needs {needs.strip()}")


main(test)
