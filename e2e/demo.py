"""`./demo` plays to its end with the programs that are there."""

import pathlib
import sys

from lib import TREE, expect, main, require_network_namespaces, require_programs, run, skip



def test():
    require_network_namespaces()
    require_programs("bridge", "host-local", "ip")
    if pathlib.Path(sys.argv[1]).resolve() != TREE / "build" / "release" / "bin":
        skip("the demonstration plays with build/release/bin")
    played = run(TREE / "demo", "--play", timeout=120).stdout
    expect("That was all." in played, f"it did not come to its end:\n{played}")


main(test)
