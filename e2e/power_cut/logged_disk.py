# nbdkit plugin: a disk in memory that appends every write, zero and flush to a log, so that any moment can be replayed.
#
# Record: kind (1 byte: W, Z or F), offset (8 bytes, little endian), length (4 bytes), then `length` bytes for W.
# Configuration: size=<bytes> log=<file>. The log is written before the request is answered.

import os
import struct

import nbdkit

API_VERSION = 2
HEADER = struct.Struct("<cQI")

size = 0
log_path = None
log_fd = -1
disk = None


def config(key, value):
    global size, log_path
    if key == "size":
        size = int(value)
    elif key == "log":
        log_path = value
    else:
        raise RuntimeError("unknown parameter " + key)


def config_complete():
    if size <= 0 or log_path is None:
        raise RuntimeError("size=<bytes> and log=<file> are needed")


def get_ready():
    global log_fd, disk
    disk = bytearray(size)
    log_fd = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def append(kind, offset, length, data=b""):
    record = HEADER.pack(kind, offset, length) + data
    if os.write(log_fd, record) != len(record):
        raise RuntimeError("the log is full")


def open(readonly):
    return 1


def get_size(handle):
    return size


def can_write(handle):
    return True


def can_flush(handle):
    return True


def can_fua(handle):
    return nbdkit.FUA_EMULATE


def can_multi_conn(handle):
    return True


def pread(handle, buf, offset, flags):
    buf[:] = disk[offset:offset + len(buf)]


def pwrite(handle, buf, offset, flags):
    append(b"W", offset, len(buf), bytes(buf))
    disk[offset:offset + len(buf)] = buf


def zero(handle, count, offset, flags):
    append(b"Z", offset, count)
    disk[offset:offset + count] = bytes(count)


def trim(handle, count, offset, flags):
    zero(handle, count, offset, flags)


def flush(handle, flags):
    append(b"F", 0, 0)
