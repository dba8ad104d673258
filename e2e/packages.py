"""scripts/release and scripts/package: packages, tarball, image, chart and manifests have what they should, say what they need, and are the
same bytes when made again. The programs of tarball, image and croft-cni run where there is nothing but they. What cannot be released says why.

usage: packages.py BIN_DIR [static|arm64]     static: builds the tarball's programs first, of sources from Debian's archive
                                              arm64: what a release has for it, under emulation; BIN_DIR: scripts/emulated's
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from lib import TREE, Daemon, expect, expect_equal, main, own_environment, require_programs, run, say, skip, wait_for, write_kubeconfig
from metrics import free_port, probe

ARCH = "arm64" if "arm64" in sys.argv[2:] else "amd64"
# Before each program, here and in the roots, which get it too.
EMULATOR = ("/usr/bin/qemu-aarch64-static",) if ARCH == "arm64" else ()
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


def release(*words, check=True, tree=TREE):
    return run(tree / "scripts" / "release", *words, check=check, timeout=1400)


def without(*artefacts):
    return [f"--without={name}" for name in artefacts]


def package(world, name):
    """A dry run of a release; for arm64 that builds first."""
    out = world.directory / name
    has_static = "static" in sys.argv[2:] or (world.bin.parent / "static-programs" / "croftd").exists()
    how = [*without("arm64", *([] if has_static else ["tarball", "krew"])), "--build", world.bin.parent]
    if EMULATOR:
        how = without("packages", "tarball", "sbom", "image", "chart", "kustomization", "home", "notes")
    told = release("--dry-run", *how, out).stdout
    expect_equal(told, (out / "CONTENTS").read_text(), "the listing")
    files = {path.name for path in out.iterdir()} - {"CONTENTS", "SHA256SUMS"}
    expect(all(name in told for name in files), f"{files} in {told}")
    return out


def unpacked(world, name, command, *arguments):
    folder = world.directory / name
    folder.mkdir()
    run(command, *arguments, folder)
    return folder


def image(world, out):
    """The archive's one layer is what a container has."""
    archive, = out.glob("*.oci.tar")
    layout = unpacked(world, "layout", "tar", "-xf", archive, "-C")
    blob = lambda entry: layout / "blobs" / entry["digest"].replace(":", "/")
    manifest = json.loads(blob(json.loads((layout / "index.json").read_text())["manifests"][0]).read_text())
    config = json.loads(blob(manifest["config"]).read_text())
    expect_equal((config["architecture"], config["config"]["Entrypoint"]), (ARCH, ["/usr/bin/croftd"]), "of the image")
    root = unpacked(world, "image", "tar", "-xzf", blob(manifest["layers"][0]), "-C")
    in_root(world, root, "usr/bin", "usr/bin", "files dns")


def chart_and_manifests(world, out):
    packed, = out.glob("croft-*.tgz")
    run("diff", "-r", unpacked(world, "chart", "tar", "-xzf", packed, "-C") / "croft", TREE / "deploy" / "helm" / "croft")
    packed, = out.glob("*-kustomization.tar.gz")
    top, = unpacked(world, "manifests", "tar", "-xzf", packed, "-C").iterdir()
    for plugin in ("ptp", "bridge", "calico", "flannel"):
        text = (top / plugin / "kustomization.yaml").read_text()
        applied = re.search(r"^resources: \[(.*)\]$", text, re.MULTILINE)[1].split(", ")
        # Pools are created under another name each time, which kubectl apply can't.
        expect_equal({path.name for path in (top / plugin).iterdir()},
                     {*applied, "kustomization.yaml"} | (set() if plugin == "flannel" else {f"pools-{plugin}.yaml"}), plugin)
        expect_equal("crds-calico.yaml" in applied, plugin != "calico", f"{plugin}: Calico brings its own kinds")
    packed, = out.glob("*-home.tar.gz")
    home = unpacked(world, "home", "tar", "-xzf", packed, "-C")
    pages = "".join(page.read_text() for page in [*home.rglob("README.md"), TREE / "docs" / "kubernetes.md"])
    for name in re.findall(r"croft-[0-9.]+[-\w/.]*\.(?:tgz|tar|gz|yaml)", pages):
        expect((out / name).exists() or (home / name).exists(), f"{name}, which a page names")


def by_krew(world, out):
    """As krew installs a plugin: the archive's sum, the named files into a folder of the version, a link that kubectl finds in PATH."""
    text = next(out.glob("*-krew.yaml")).read_text()
    name, digest = re.search(r"uri: https://\S+/v[0-9.]+/(\S+)\n +sha256: (\w+)\n", text).groups()
    expect_equal(run("sha256sum", out / name).stdout.split()[0], digest, "the sum in krew's manifest")
    store, links = world.directory / "store" / "croft" / "v0", world.directory / "krew-bin"
    store.mkdir(parents=True)
    links.mkdir()
    expect(all(line.startswith("-") for line in run("tar", "-tvzf", out / name).stdout.splitlines()), f"krew refuses {name}: not files alone")
    archive = unpacked(world, "krew", "tar", "-xzf", out / name, "-C")
    for source, to in re.findall(r"{from: (\S+), to: (\S+)}", text):
        shutil.copy(archive / source, store / ("" if to == "." else to))
    (links / "kubectl-croft").symlink_to(store / re.search(r"^ +bin: (\S+)$", text, re.MULTILINE)[1])
    # kubectl hands over to the program of that name in PATH, with the words behind it.
    (links / "kubectl").write_text('#!/bin/sh\nname=kubectl-$1\nshift\nexec ' + " ".join(EMULATOR) + ' "$(command -v "$name")" "$@"\n')
    (links / "kubectl").chmod(0o755)
    write_kubeconfig(world.directory / "kubeconfig", "https://127.0.0.1:1", TREE / "LICENSE", {"token": "t"})
    env = {"PATH": f"{links}:{os.environ['PATH']}", "KUBECONFIG": str(world.directory / "kubeconfig")}
    expect("croft 0." in run("kubectl", "croft", "--version", env=env).stdout, "kubectl croft --version")
    said = run("kubectl", "croft", "pool", "list", env=env, check=False).stderr
    expect("https://127.0.0.1:1:" in said, f"it asks kubectl's cluster, where nobody is: {said}")


def refused(world):
    """What would be no release says so before anything is made, and names all of it at once; set, it is one."""
    tree = world.directory / "tree"
    for name in ("deploy", "scripts", ".github"):
        shutil.copytree(TREE / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CMakeLists.txt", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE"):
        shutil.copy(TREE / name, tree)
    values, changes = tree / "deploy" / "project.env", tree / "CHANGELOG.md"
    values.write_text(re.sub(r"(?:(?<=@)|(?<=//))[\w.]+", "croft.example", values.read_text()))
    changes.write_text(re.sub(r"^(## [0-9.]+),.*$", r"\1, not released yet", changes.read_text(), flags=re.MULTILINE))
    git = lambda *words: run("git", "-C", tree, "-c", "user.name=x", "-c", "user.email=x@x.test", *words).stdout
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    out, rest = world.directory / "released", without("packages", "tarball", "arm64", "sbom", "krew")
    done = release("v99.0.0", out, check=False, tree=tree)
    for word in ("v99.0.0 is not what is checked out", "v99.0.0 is not v0", "CHANGELOG.md has no heading", "set CROFT_MAIL"):
        expect(done.returncode == 1 and word in done.stderr, f"{word}: {done.stderr}")
    values.write_text(values.read_text().replace("croft.example", "croft.test"))
    changes.write_text(changes.read_text().replace("not released yet", "2026-01-02"))
    release("--contacts", tree=tree)
    for name in ("deploy/helm/croft/Chart.yaml", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/ISSUE_TEMPLATE/config.yml"):
        text = (tree / name).read_text()
        expect("croft.test" in text and "croft.example" not in text, f"{name}: {text}")
    version = re.search(r"croft VERSION (\S+)", (tree / "CMakeLists.txt").read_text())[1]
    git("commit", "-qam", "two")
    git("tag", f"v{version}")
    (tree / "LICENSE").write_text("another")
    expect("changes that are not committed" in release(f"v{version}", out, check=False, tree=tree).stderr, "a tree with changes")
    git("checkout", "-q", "LICENSE")
    # Nothing was built there, so the image is one artefact too many.
    done = release(*rest, f"v{version}", out, check=False, tree=tree)
    expect(done.returncode == 1 and "image was not made" in done.stderr and "--without image" in done.stderr, done.stderr)
    expect(not (out / "SHA256SUMS").exists(), "what failed has no sums")
    shutil.rmtree(out)
    told = release(*rest, *without("image"), f"v{version}", out, tree=tree).stdout
    expect_equal(re.findall(r"(\S+) +left out", told), ["packages", "tarball", "arm64", "sbom", "krew", "image"], told)
    run("sh", "-c", f"cd {out} && sha256sum --check --strict SHA256SUMS")


def tarball(world, out):
    packed, = out.glob("croft-*-linux-*.tar.gz")
    top, = unpacked(world, "root", "tar", "-xzf", packed, "-C").iterdir()
    for name in ("croft", "croftd"):
        needed = run("readelf", "--dynamic", "--program-headers", top / "usr" / "bin" / name).stdout
        expect("NEEDED" not in needed and "INTERP" not in needed, f"{name} is static: {needed}")
        said = run(*EMULATOR, top / "usr" / "bin" / name, "--version").stdout
        expect(re.search(r"\(commit [0-9a-f]{12}", said), said)
        expect_equal(said, run(world.bin / name, "--version").stdout, f"version of {name}: the libraries are those of the build")
    expect_equal((top / "opt" / "cni" / "bin" / "croft-ipam").stat().st_mode & 0o777, 0o755, "mode of the plugin")
    in_root(world, top, "opt/cni/bin", "usr/libexec/croft", "files dns")
    for root, names in other_roots(world) if "static" in sys.argv[2:] and os.geteuid() == 0 else ():
        for folder in ("usr/bin", "usr/libexec/croft", "opt/cni/bin"):
            shutil.copytree(top / folder, root / folder, dirs_exist_ok=True)
        in_root(world, root, "opt/cni/bin", "usr/libexec/croft", names)
    by_krew(world, out)


def other_roots(world):
    """(root, where it looks for names) of a system with musl, and of Debian 11 with a module for names, which is of its own glibc."""
    for name, names, command in (("musl", None, "apt-get -q download musl && dpkg-deb -x musl_*.deb"),
                                 ("glibc-2.31", "files myhostname dns", "debootstrap --variant=minbase --include=libnss-myhostname bullseye")):
        done = run("sh", "-c", f"cd {world.directory} && {command} with-{name}", check=False, timeout=900)
        if done.returncode != 0:
            return say(f"not tried with {name}: {done.stdout[-200:]}{done.stderr}")
        yield world.directory / f"with-{name}", names


def in_root(world, top, plugins, host_local, names):
    """Nothing but what was packed, and a file of hosts; or a system with other libraries. `names`: where that looks for the names of hosts."""
    if os.geteuid() != 0:
        return say("not tried in a root of its own: that takes root")
    for folder in ("proc", "tmp", "etc", "dev"):
        (top / folder).mkdir(exist_ok=True)
    for program in EMULATOR:
        shutil.copy(program, top / "usr" / "bin")
    (top / "etc" / "hosts").write_text("127.0.0.1 register.test\n")
    if names:
        (top / "etc" / "nsswitch.conf").write_text(f"hosts: {names}\n")
    inside = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t proc proc "$1/proc" && shift && exec chroot "$@"', "sh",
              top, top, *EMULATOR]

    def there(*words, code=0, **more):
        done = subprocess.run([*map(str, inside), *words], capture_output=True, text=True, timeout=60, check=False, **more)
        expect_equal(done.returncode, code, f"{words} in an empty root: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    store = "sqlite:/tmp/croft.db"
    there("/usr/bin/croft", "--store", store, "pool", "create", "a", "--cidr", "10.1.0.0/24", "--gateway", "none")
    env = {**own_environment(), "CNI_CONTAINERID": "c1", "CNI_NETNS": "/var/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin",
           "PATH": os.environ["PATH"]}
    for program, ipam in ((f"/{host_local}/host-local", {"type": "host-local", "dataDir": "/tmp/held", "ranges": [[{"subnet": "10.2.0.0/24"}]]}),
                          (f"/{plugins}/croft-ipam", {"type": "croft-ipam", "store": store, "nodename": "oak"})):
        config = {"cniVersion": "1.0.0", "name": "net", "ipam": ipam}
        call = lambda command, program=program, **more: there(program, input=json.dumps({**config, **more}), env={**env, "CNI_COMMAND": command})
        call("CHECK", prevResult=json.loads(call("ADD")))
        call("DEL")
        answer = json.loads(call("ADD"))
    expect(answer["ips"][0]["address"].split("/")[0] in there("/usr/bin/croft", "--store", store, "ip", "list"), "the address is listed")
    there("/usr/bin/croft", "--store", store, "check")
    there("/usr/bin/croftd", "controller", "--store", store, "--once", "--grace", "0s", code=3)  # no node has a record
    # Names are looked up by the file of hosts; nothing answers there.
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", top / "tmp" / "key", "-out",
        top / "tmp" / "ca.pem", "-days", "2")
    for name in ("register.test", "elsewhere.test"):
        write_kubeconfig(top / "tmp" / name, f"https://{name}:1", "/tmp/ca.pem", {"token": "t"})
        said = there("/usr/bin/croft", "--store", f"kube:/tmp/{name}", "pool", "list", code=4)
        expect_equal("looking up" in said, name == "elsewhere.test", f"the name {name}: {said}")
    port = free_port()
    controller = Daemon(world, "controller", *inside, "/usr/bin/croftd", "controller", "--store", store, "--metrics-bind-address", f"127.0.0.1:{port}")
    wait_for(lambda: "# TYPE" in (probe(f"127.0.0.1:{port}", "/metrics") or (0, ""))[1], "metrics of the static controller", 20)
    controller.end()
    return say(f"croft, croftd, croft-ipam and host-local work in a root that has nothing but {top.name}")


def by_dpkg(world, programs, plugin):
    """Installed, upgraded, removed and purged in a root of its own, with a systemctl that only writes down what it was asked."""
    root, tools, asked = world.directory / "dpkg", world.directory / "systemctl", world.directory / "systemctl.log"
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "run/systemd/system", "etc/systemd/system/multi-user.target.wants", "var/lib/croft",
                   "usr/bin"):
        (root / folder).mkdir(parents=True)
    for program in EMULATOR:
        shutil.copy(program, root / "usr" / "bin")
    (root / "var/lib/dpkg/status").touch()
    (root / "var/lib/croft/croft.db").write_text("a register")
    tools.mkdir()
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{asked}\n')
    (tools / "systemctl").chmod(0o755)
    units = "croftd-agent.service croftd-controller.service"

    def dpkg(*words):
        asked.write_text("")
        # What the programs need is here, and not in that root.
        run("dpkg", f"--root={root}", "--force-script-chrootless,depends,not-root" + (",architecture" if EMULATOR else ""), "--log=/dev/null", *words,
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        return asked.read_text().splitlines()

    def files():
        found = [path for path in root.rglob("*") if (path.is_file() or path.is_symlink()) and root / "var/lib/dpkg" not in path.parents]
        return {"/" + str(path.relative_to(root)) for path in found}

    before = files()
    expect_equal(dpkg("-i", programs, plugin), ["daemon-reload"], "systemd is told of the units, and starts none")
    expect(IN_CROFT | IN_PLUGIN <= files(), f"{(IN_CROFT | IN_PLUGIN) - files()}")
    for path in () if os.geteuid() != 0 else ("/opt/cni/bin/croft-ipam", "/opt/cni/bin/croft-ipam-cluster", "/usr/libexec/croft/host-local"):
        expect("0." in run("chroot", root, *EMULATOR, path, "--version").stdout, f"{path} runs without a library")
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
    expect(all(library in needs for library in ("libc6 (", "libgcc-s1 (", "libsqlite3-0 (", "libssl3 (", "libnghttp2-14 (")), needs)
    expect_equal(run("dpkg-deb", "-f", plugin, "Depends").stdout.strip(), "", "the static plugin needs nothing")
    by_dpkg(world, programs, plugin)
    if list(out.glob("croft-*-linux-*.tar.gz")):
        tarball(world, out)
    else:
        expect("static" not in sys.argv[2:], "no tarball was written")
        say("the tarball is not looked at: the targets croft-static and croftd-static are not built here")
    image(world, out)
    if not EMULATOR:
        chart_and_manifests(world, out)
        refused(world)
        expect(list(out.glob("*.spdx.json")), "what they are made of")
    run("sh", "-c", f"cd {out} && sha256sum --check --strict SHA256SUMS")
    again = package(world, "again")
    expect_equal((again / "SHA256SUMS").read_text(), (out / "SHA256SUMS").read_text(), "made again")
    say(f"{(out / 'CONTENTS').read_text()}needs {needs.strip()}")


main(test, 1500 if sys.argv[2:] else 500)
