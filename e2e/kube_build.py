"""Builds the kube-apiserver that other tests start, or what runs beside it, unless it is in the cache already.

usage: kube_build.py BIN_DIR VERSION [kube-node]
"""

import sys

from kube_apiserver_lib import program
from lib import main, say


def test():
    say(f"{program(*sys.argv[2:])}")


if __name__ == "__main__":
    main(test, 3500)
