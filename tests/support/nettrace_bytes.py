# SPDX-License-Identifier: MIT
"""Parts of nettrace streams that several writers need."""
import struct


def text(value):
    return value.encode("utf-16-le") + b"\0\0"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([128 | value & 127])
        value >>= 7
    return out + bytes([value])


def type_of(name):
    """How an object of a stream of version 4 begins."""
    return b"\5\5\1" + struct.pack("<III", 2, 2, len(name)) + name + b"\6"
