"""Protobuf messages read and written by hand, from the description of the format: no generated code is needed. And frames of HTTP/2."""

import struct

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A number, a text, bytes or a message."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    value = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields_of(data):
    """All fields of a message in their order, {number: [value, ...]}: numbers, or bytes."""
    found, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = read_varint(data, at)
        else:
            length, at = read_varint(data, at) if kind == BYTES else ({FIXED64: 8, FIXED32: 4}[kind], at)
            if at + length > len(data):
                raise ValueError(f"a field of {length} bytes, {len(data) - at} are left")
            value, at = data[at:at + length], at + length
        found.setdefault(tag >> 3, []).append(value)
    return found


def frame(kind, flags, stream, payload=b""):
    """Of HTTP/2 (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
