"""scripts/package: Debian's packages and the tarball have what they should, say what they need, and are the same bytes when made again. The
tarball's programs run where there is nothing but they.

usage: packages.py BIN_DIR [static]     static: builds the tarball's programs first, of sources from Debian's archive
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

from lib import expect, expect_equal, main, own_environment, require_programs, run, say, skip, wait_for, write_kubeconfig
from metrics import free_port

TREE = pathlib.Path(__file__).resolve().parent.parent
IN_CROFT = {"/usr/bin/croft", "/usr/bin/croftd", "/usr/bin/cnivpctl", "/usr/bin/cni-vpc-ipamd", "/lib/systemd/system/croftd-agent.service",
            "/lib/systemd/system/croftd-controller.service", "/usr/share/man/man1/croft.1", "/usr/share/man/man8/croftd-agent.8",
            "/usr/share/bash-completion/completions/croft", "/usr/share/zsh/site-functions/_croftd",
            "/usr/share/fish/vendor_completions.d/croft.fish", "/usr/share/doc/croft/copyright"}
IN_PLUGIN = {"/opt/cni/bin/croft-ipam", "/opt/cni/bin/croft-ipam-cluster", "/usr/libexec/croft/host-local", "/usr/share/doc/croft-cni/copyright"}


def files_of(package):
    lines = run("dpkg-deb", "-c", package).stdout.splitlines()
    for line in lines:
        expect(line.split()[1] == "root/root", f"whose: {line}")
    return {line.split()[5].removeprefix(".") for line in lines if not line.startswith("d")}


def package(world, name):
    out = world.directory / name
    run(TREE / "scripts" / "package", "--build", world.bin.parent, out, timeout=120)
    return out


def tarball(world, out):
    root = world.directory / "root"
    root.mkdir()
    packed, = out.glob("croft-*.tar.gz")
    run("tar", "-C", root, "-xzf", packed)
    top, = root.iterdir()
    for name in ("croft", "croftd"):
        needed = run("readelf", "--dynamic", "--program-headers", top / "usr" / "bin" / name).stdout
        expect("NEEDED" not in needed and "INTERP" not in needed, f"{name} is static: {needed}")
        said = run(top / "usr" / "bin" / name, "--version").stdout
        expect(re.search(r"\(commit [0-9a-f]{12}", said), said)
        # The libraries that it says are those of the build.
        expect_equal(said, run(world.bin / name, "--version").stdout, f"version of {name}")
    expect_equal((top / "opt" / "cni" / "bin" / "croft-ipam").stat().st_mode & 0o777, 0o755, "mode of the plugin")
    if os.geteuid() != 0:
        return say("not tried in an empty root: that takes root")
    return in_an_empty_root(world, top)


def in_an_empty_root(world, top):
    """Nothing but what was packed: no library, no shell, no /etc but a file of hosts."""
    for folder in ("proc", "tmp", "etc", "dev"):
        (top / folder).mkdir()
    (top / "etc" / "hosts").write_text("127.0.0.1 register.test\n")
    (top / "etc" / "nsswitch.conf").write_text("hosts: files dns\n")
    inside = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t proc proc "$1/proc" && shift && exec chroot "$@"', "sh",
              top, top]

    def there(*words, code=0, **more):
        done = subprocess.run([*map(str, inside), *words], capture_output=True, text=True, timeout=60, check=False, **more)
        expect_equal(done.returncode, code, f"{words} in an empty root: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    store = "sqlite:/tmp/croft.db"
    there("/usr/bin/croft", "--store", store, "pool", "create", "a", "--cidr", "10.1.0.0/24", "--gateway", "none")
    config = {"cniVersion": "1.0.0", "name": "net", "ipam": {"type": "croft-ipam", "store": store, "nodename": "oak"}}
    env = {**own_environment(), "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c1", "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0",
           "CNI_PATH": "/opt/cni/bin", "PATH": os.environ["PATH"]}
    answer = json.loads(there("/opt/cni/bin/croft-ipam", input=json.dumps(config), env=env))
    address = answer["ips"][0]["address"].split("/")[0]
    expect(address in there("/usr/bin/croft", "--store", store, "ip", "list"), "the address is listed")
    there("/usr/bin/croftd", "controller", "--store", store, "--once", "--grace", "0s", code=3)  # no node has a record
    # Names are looked up by the file of hosts; nothing answers there.
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", top / "tmp" / "key", "-out",
        top / "tmp" / "ca.pem", "-days", "2")
    for name in ("register.test", "elsewhere.test"):
        write_kubeconfig(top / "tmp" / name, f"https://{name}:1", "/tmp/ca.pem", {"token": "t"})
        said = there("/usr/bin/croft", "--store", f"kube:/tmp/{name}", "pool", "list", code=4)
        expect_equal("looking up" in said, name == "elsewhere.test", f"the name {name}: {said}")
    port = free_port()
    with open(world.directory / "controller.log", "wb") as log:
        controller = subprocess.Popen([*map(str, inside), "/usr/bin/croftd", "controller", "--store", store, "--metrics-bind-address",
                                       f"127.0.0.1:{port}"], stdout=log, stderr=log)
        world.stack.callback(controller.kill)

        def answers():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
                    return page.read().decode()
            except OSError:
                return ""
        wait_for(lambda: "# TYPE" in answers(), "metrics of the static controller", 20)
        controller.terminate()
        expect_equal(controller.wait(20), 0, "the controller's end")
    say("croft, croftd and croft-ipam work in a root that has nothing but the tarball")


def by_dpkg(world, programs, plugin):
    """Installed, upgraded, removed and purged in a root of its own, with a systemctl that only writes down what it was asked."""
    root, tools, asked = world.directory / "dpkg", world.directory / "systemctl", world.directory / "systemctl.log"
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "run/systemd/system", "etc/systemd/system/multi-user.target.wants", "var/lib/croft"):
        (root / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "var/lib/croft/croft.db").write_text("a register")
    tools.mkdir()
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{asked}\n')
    (tools / "systemctl").chmod(0o755)
    units = "croftd-agent.service croftd-controller.service"

    def dpkg(*words):
        asked.write_text("")
        # What the programs need is here, and not in that root.
        run("dpkg", f"--root={root}", "--force-script-chrootless,depends,not-root", "--log=/dev/null", *words,
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        return asked.read_text().splitlines()

    def files():
        return {"/" + str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() or path.is_symlink()} - {
            path for path in ("/" + str(p.relative_to(root)) for p in (root / "var/lib/dpkg").rglob("*"))}

    before = files()
    expect_equal(dpkg("-i", programs, plugin), ["daemon-reload"], "systemd is told of the units, and starts none")
    expect(IN_CROFT | IN_PLUGIN <= files(), f"{(IN_CROFT | IN_PLUGIN) - files()}")
    for path in root.rglob("*"):
        if not path.is_symlink() and "var/lib" not in str(path):
            status = path.stat()
            expect(status.st_uid == 0 and not status.st_mode & 0o7022, f"{path}: {status.st_uid} {oct(status.st_mode)}")
    for unit in units.split():
        (root / "etc/systemd/system/multi-user.target.wants" / unit).symlink_to(f"/lib/systemd/system/{unit}")
    expect_equal(dpkg("-i", programs), ["daemon-reload", f"try-restart {units}"], "after an upgrade")
    expect_equal(dpkg("-r", "croft"), [f"stop {units}", "daemon-reload"], "before nothing is there to be run")
    dpkg("-P", "croft", "croft-cni")
    expect_equal(files(), before, "all is gone but the register")
    say("dpkg: installed, upgraded, removed, purged; the register stays")


def build_static():
    build = pathlib.Path(sys.argv[1]).resolve().parent
    made = run(TREE / "scripts" / "static-libraries", build / "static-libraries", check=False, timeout=600)
    if made.returncode != 0 and "could not be had" in made.stderr:
        skip(made.stderr.strip().splitlines()[-1])
    expect_equal(made.returncode, 0, made.stderr)
    run("cmake", "--build", build, "--target", "croft-static", "croftd-static", timeout=1200)


def test(world):
    require_programs("dpkg", "dpkg-deb", "dpkg-shlibdeps", "cpack", "readelf")
    if "static" in sys.argv[2:]:
        build_static()
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
    by_dpkg(world, programs, plugin)
    if list(out.glob("croft-*.tar.gz")):
        tarball(world, out)
    elif "static" in sys.argv[2:]:
        expect(False, "no tarball was written")
    else:
        say("the tarball is not looked at: the targets croft-static and croftd-static are not built here")
    run("sh", "-c", f"cd {out} && sha256sum --check --strict SHA256SUMS")
    expect(list(out.glob("*.spdx.json")), "what they are made of")
    again = package(world, "again")
    expect_equal((again / "SHA256SUMS").read_text(), (out / "SHA256SUMS").read_text(), "made again")
    sizes = {file.name: f"{file.stat().st_size / 1e6:.1f} MB" for file in sorted(out.iterdir()) if file.name != "SHA256SUMS"}
    say(f"{sizes}; needs {needs.strip()}")


main(test, 1500 if "static" in sys.argv[2:] else 150)
