# SPDX-License-Identifier: MIT
"""A process that looks like a .NET runtime and is none: lying_runtime.py LIBCORECLR LIE

It maps the runtime's library and serves the diagnostics socket. Prints "ready", and "sent" after a flood; what it answers to a request for events is the lie:

  header   a reply whose size is larger than what follows
  block    a stream with a block of 2 GiB, and zeros for ever
  event    a stream with an event that is larger than its block
  flood N  after a line of input, N events of 2 bytes each, as fast as they are taken; then the end of the stream
"""
import contextlib
import ctypes
import os
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))

from nettrace_bytes import type_of, varint  # noqa: E402

MAGIC = b"DOTNET_IPC_V1\0"
EVENTS_IN_BLOCK = 10000
START_NS = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
# Date, time and ticks a second of its clock; size of pointers, process, processors, sampling.
TRACE = struct.pack("<8HQQ4I", 2026, 11, 0, 29, 0, 0, 0, 0, START_NS, 10**9, 8, os.getpid(), 2, 10**6)
EVENT_PIPE, STOP_TRACING, UNKNOWN_COMMAND = 2, 1, 0x80131385  # set and number of a command; an HRESULT
REPLY = MAGIC + struct.pack("<HBBHQ", 28, 0xff, 0, 0, 7)  # session 7


def block(name, place, content, said_bytes=None):
    """`place`: number of bytes of the stream before it; the content is aligned to 4."""
    head = type_of(name) + struct.pack("<I", len(content) if said_bytes is None else said_bytes)
    return head + b"\0" * (-(place + len(head)) % 4) + content + b"\6"


def event_head(kind, number, time, size_bytes):
    """A compressed header with all fields."""
    return (b"\xff" + varint(kind) + varint(number - 1 & 0xffffffff) + varint(7) + varint(3) + varint(7) + varint(0) + varint(time) +
            b"\0" * 32 + varint(size_bytes))


def begin_stream():
    stream = b"Nettrace" + struct.pack("<I", 20) + b"!FastSerialization.1" + type_of(b"Trace") + TRACE + b"\6"
    name = "Contoso-Flood\0".encode("utf-16-le")
    kind = struct.pack("<I", 1) + name + struct.pack("<I", 1) + b"\0\0" + struct.pack("<QIII", 0, 0, 5, 0)
    head = struct.pack("<HHQQ", 20, 1, 0, 0)
    return stream + block(b"MetadataBlock", len(stream), head + event_head(0, 0, 0, len(kind)) + kind)


def flood(connection, count):
    sys.stdin.readline()
    place = len(begin_stream())
    head = struct.pack("<HHQQ", 20, 1, 0, 0)
    for first in range(0, count, EVENTS_IN_BLOCK):
        # The same header again: the next number, one nanosecond later, no payload.
        content = head + event_head(1, first + 1, time.clock_gettime_ns(time.CLOCK_MONOTONIC), 0) + b"\0\1" * (min(EVENTS_IN_BLOCK, count - first) - 1)
        made = block(b"EventBlock", place, content)
        connection.sendall(made)
        place += len(made)
    connection.sendall(b"\1")
    print("sent", flush=True)


def lie(connection, what, count):
    if what == "header":
        connection.sendall(MAGIC + struct.pack("<HBBH", 0xffff, 0xff, 0, 0) + b"\7")
        return
    connection.sendall(REPLY + begin_stream())
    head = struct.pack("<HHQQ", 20, 1, 0, 0)
    if what == "block":
        connection.sendall(block(b"EventBlock", len(begin_stream()), head, 0x7fffffff))
        while True:
            connection.sendall(bytes(1 << 20))
    if what == "event":
        connection.sendall(block(b"EventBlock", len(begin_stream()), head + event_head(1, 1, 10**9, 1 << 30)))
    if what == "flood":
        flood(connection, count)


def serve(connection, what, count):
    with connection, contextlib.suppress(OSError):
        request = connection.recv(1 << 16)
        # Lists of methods are refused: the lie is for the session of events.
        if "DotNETRuntimePrivate".encode("utf-16-le") in request or request[16] != EVENT_PIPE:
            connection.sendall(MAGIC + struct.pack("<HBBHI", 24, 0xff, 0xff, 0, UNKNOWN_COMMAND))
            return
        if request[17] == STOP_TRACING:
            connection.sendall(REPLY)
            return
        lie(connection, what, count)
        if what != "header":
            connection.recv(1)  # until the other side ends the session


def main():
    library, what, *count = sys.argv[1:]
    ctypes.CDLL(library)
    with open("/proc/self/stat", encoding="utf-8") as file:
        start = file.read().rsplit(")", 1)[1].split()[19]
    path = os.path.join("/tmp", f"dotnet-diagnostic-{os.getpid()}-{start}-socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o600)
        server.listen(8)
        print("ready", flush=True)
        while True:
            threading.Thread(target=serve, args=(server.accept()[0], what, int(count[0]) if count else 0), daemon=True).start()


if __name__ == "__main__":
    main()
