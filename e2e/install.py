"""`cmake --install` of this build into a directory of its own: the programs run there, pages and completions lie where man and
shells look, and nothing is put in the place of other plugins.

usage: install.py BIN_DIR
"""

import os
import pathlib
import sys

from lib import World, expect, expect_equal, main, run

PAGES = {"share/man/man1": ["croft.1", "croft-pool-list.1"], "share/man/man8": ["croftd.8", "croftd-agent.8"],
         "share/bash-completion/completions": ["croft", "croftd"], "share/zsh/site-functions": ["_croft", "_croftd"],
         "share/fish/vendor_completions.d": ["croft.fish", "croftd.fish"]}


def install(build, into, *more):
    run("cmake", "--install", build, "--prefix", "/usr", *more, env={**os.environ, "DESTDIR": str(into)})


def test():
    with World("install", sys.argv[1]) as world:
        build, into = world.bin.parent, world.directory / "all"
        install(build, into)
        for program in ("croft", "croftd"):
            expect(run(into / "usr/bin" / program, "--version").stdout.startswith(program + " "), program)
        expect_equal(sorted(os.listdir(into / "opt/cni/bin")), ["croft-ipam", "croft-ipam-cluster"], "plugins")
        for directory, names in PAGES.items():
            there = {file.name for file in (into / "usr" / directory).iterdir()}
            expect(set(names) <= there, f"{directory}: {sorted(there)}")
        expect("croftd\\-agent" in (into / "usr/share/man/man8/croftd.8").read_text(), "croftd.8")
        expect("complete -o default -F _croftd croftd" in
               (into / "usr/share/bash-completion/completions/croftd").read_text(), "completion of croftd")

        plugin = world.directory / "plugin"
        install(build, plugin, "--component", "plugin")
        files = [str(file.relative_to(plugin)) for file in pathlib.Path(plugin).rglob("*") if file.is_file()]
        expect_equal(sorted(files), ["opt/cni/bin/croft-ipam", "opt/cni/bin/croft-ipam-cluster", "usr/libexec/croft/host-local"], "the plugins alone")


main(test)
