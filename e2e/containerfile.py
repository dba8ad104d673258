"""deploy/Containerfile, built by a container builder as a user does it, from a checkout with its history; what comes of it runs.
No registry is asked: the base image is made here, of Debian's own archive, under the name that the Containerfile has.
"""

import json
import os
import pathlib
import re
import shutil

from lib import TREE, expect, expect_equal, main, require_programs, run, say, skip

BASE = "docker.io/library/debian:12-slim"


class Builder:
    """buildah with a storage of its own, which needs neither mounts nor a container runtime."""

    def __init__(self, world):
        self.place = world.directory
        (self.place / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        (self.place / "registries.conf").write_text('unqualified-search-registries = ["docker.io"]\n')
        self.environment = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(self.place / "registries.conf"),
                            "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(self.place)}

    def __call__(self, *arguments, timeout=600):
        return run("buildah", "--storage-driver", "vfs", "--root", self.place / "storage", "--runroot", self.place / "run", *arguments,
                   env=self.environment, timeout=timeout).stdout

    def build(self, folder, *arguments, timeout=600):
        return self("bud", "--signature-policy", self.place / "policy.json", "--pull-never", *arguments, folder, timeout=timeout)


def make_base(world, builder):
    """Debian 12 as its image is: the essential packages and apt, with the archives of this machine."""
    root = world.directory / "debian"
    done = run("debootstrap", "--variant=minbase", "bookworm", root, "http://deb.debian.org/debian", check=False, timeout=900)
    if done.returncode != 0:
        skip(f"Debian's archive could not be had for a base image: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
    for source in pathlib.Path("/etc/apt/sources.list.d").glob("debian.sources"):
        shutil.copy(source, root / "etc" / "apt" / "sources.list.d" / source.name)
        (root / "etc" / "apt" / "sources.list").write_text("")
    shutil.rmtree(root / "var" / "cache" / "apt" / "archives")
    (root / "var" / "cache" / "apt" / "archives" / "partial").mkdir(parents=True)
    made = world.directory / "base"
    made.mkdir()
    run("tar", "-C", root, "--numeric-owner", "-cf", made / "root.tar", ".", timeout=300)
    shutil.rmtree(root)
    (made / "Containerfile").write_text('FROM scratch\nADD root.tar /\nCMD ["bash"]\n')
    builder.build(made, "-t", BASE)
    say(f"{BASE} of Debian's archive: {(made / 'root.tar').stat().st_size / 1e6:.0f} MB")
    shutil.rmtree(made)


def checkout(world):
    """As a user has it, with no more history than says the commit."""
    folder = world.directory / "checkout"
    run("git", "clone", "--quiet", "--depth", "1", f"file://{TREE}", folder, timeout=120)
    return folder, run("git", "-C", folder, "rev-parse", "--short=12", "HEAD").stdout.strip()


def test(world):
    require_programs("buildah", "debootstrap", "git")
    if os.geteuid() != 0:
        skip("a builder without a container runtime needs root")
    builder = Builder(world)
    make_base(world, builder)
    folder, commit = checkout(world)
    file = folder / "deploy" / "Containerfile"
    said = builder.build(folder, "-f", file, "-t", "croft", timeout=3300)
    say("\n".join(said.strip().splitlines()[-3:]))
    image = json.loads(builder("inspect", "--type", "image", "croft"))
    expect_equal(image["OCIv1"]["config"]["Entrypoint"], ["/usr/bin/croftd"], "what it runs")
    container = builder("from", "--pull-never", "croft").strip()
    version = builder("run", "--isolation", "chroot", container, "--", "/usr/bin/croft", "--version")
    expect(re.search(rf"\(commit {commit}", version), f"the image's program tells its commit {commit}: {version}")
    builder("run", "--isolation", "chroot", container, "--", "/usr/bin/croftd", "--help")
    mounted = pathlib.Path(builder("mount", container).strip())
    there = {str(path.relative_to(mounted)) for path in mounted.rglob("*") if path.is_file()}
    expect({"usr/bin/croft", "usr/bin/croftd", "usr/bin/croft-ipam", "usr/bin/croft-ipam-cluster", "usr/bin/host-local"} <= there, f"{sorted(there)}")
    expect(not [path for path in there if path.endswith(("/sh", "/bash"))], "no shell")
    say(f"the image: {len(there)} files, {version.splitlines()[0]}")


main(test, 4000)
