"""Runs a program whose every fsync and fdatasync takes as many seconds more as FILE says at that moment.

usage: slow_sync.py FILE PROGRAM [ARGUMENT ...]

The program keeps this process's id. The kernel tells a second process, which ends with the program, of each call
(seccomp_unotify(2)): so it works on programs written in Go too, which LD_PRELOAD does not reach.
"""

import ctypes
import errno
import fcntl
import os
import pathlib
import platform
import select
import socket
import struct
import sys
import threading
import time

CALLS = {"x86_64": (74, 75), "aarch64": (82, 83)}  # fsync and fdatasync
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_NO_NEW_PRIVILEGES, SET_FILTER, NEW_LISTENER, WAIT_KILLABLE = 38, 1, 1 << 3, 1 << 5
ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
NOTIFICATION, ANSWER = struct.Struct("QII64x"), struct.Struct("QqiI")
RECEIVE, SEND = 0xC0002100 | NOTIFICATION.size << 16, 0xC0002101 | ANSWER.size << 16
GO_ON = 1


def filtered():
    """From here on this process, and what it becomes, asks before it syncs; the descriptor where it asks."""
    machine = platform.machine()
    first, second = CALLS[machine]
    # Load the number of the call; is it one of the two?
    code = [(0x20, 0, 0, 0), (0x15, 1, 0, first), (0x15, 0, 1, second), (0x06, 0, 0, NOTIFY), (0x06, 0, 0, ALLOW)]
    lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("H6xQ", len(code), ctypes.addressof(lines)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    asked = libc.syscall(SECCOMP[machine], SET_FILTER, NEW_LISTENER | WAIT_KILLABLE, program)
    if asked < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return asked


def delay(path):
    try:
        return float(pathlib.Path(path).read_text() or 0)
    except (FileNotFoundError, ValueError):
        return 0


def answer(asked, number, path):
    time.sleep(delay(path))
    try:
        fcntl.ioctl(asked, SEND, ANSWER.pack(number, 0, 0, GO_ON))
    except OSError as error:
        if error.errno != errno.ENOENT:  # who asked is gone
            raise


def serve(asked, path):
    poll = select.poll()
    poll.register(asked, select.POLLIN)
    while True:
        if any(event & select.POLLHUP for _, event in poll.poll()):
            return
        try:
            told = fcntl.ioctl(asked, RECEIVE, bytes(NOTIFICATION.size))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            raise
        threading.Thread(target=answer, args=(asked, NOTIFICATION.unpack(told)[0], path), daemon=True).start()


def main():
    path, *command = sys.argv[1:]
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        os.setsid()
        serve(socket.recv_fds(theirs, 1, 1)[1][0], path)
        os._exit(0)
    theirs.close()
    asked = filtered()
    socket.send_fds(ours, [b"1"], [asked])
    os.close(asked)
    os.execvp(command[0], command)


main()
