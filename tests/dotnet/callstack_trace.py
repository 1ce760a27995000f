# SPDX-License-Identifier: MIT
"""Writes a CTF trace as LTTng's kernel tracer does with the contexts pid and callstack-user.

For machines whose kernel has no LTTng module: babeltrace2 reads it and prints
real text of it. The layout is that of lttng-modules 2.13 (CTF 1.8, byte
packed); the events are system calls with the call chains that the caller has.
Usage: callstack_trace.py DIR PID ADDRESS...
"""
import os
import struct
import sys

METADATA = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace {
	major = 1;
	minor = 8;
	byte_order = le;
	packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
env { hostname = "host"; domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 13; };
clock { name = "monotonic"; freq = 1000000000; offset = 0; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time_t;
stream {
	id = 0;
	packet.context := struct { uint64_t content_size; uint64_t packet_size; uint32_t cpu_id; };
	event.header := struct { uint32_t id; time_t timestamp; };
	event.context := struct {
		integer { size = 32; align = 8; signed = true; } _pid;
		uint32_t __callstack_user_length;
		integer { size = 64; align = 8; signed = false; base = 16; } _callstack_user[ __callstack_user_length ];
	};
};
event {
	name = "syscall_entry_read";
	id = 0;
	stream_id = 0;
	fields := struct { uint32_t _fd; };
};
"""

PACKET_HEADER_BYTES = 4 + 4 + 8 + 8 + 4


def write(directory, pid, chains):
    """One event for each chain, a list of addresses, innermost first."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "metadata"), "w", encoding="ascii") as file:
        file.write(METADATA)
    events = b""
    for number, chain in enumerate(chains):
        events += struct.pack("<IQiI", 0, 1000 * (number + 1), pid, len(chain))
        events += struct.pack(f"<{len(chain)}Q", *chain) + struct.pack("<I", number)
    bits = 8 * (PACKET_HEADER_BYTES + len(events))
    with open(os.path.join(directory, "channel0_0"), "wb") as file:
        file.write(struct.pack("<IIQQI", 0xC1FC1FC1, 0, bits, bits, 0) + events)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), [[int(text, 16) for text in sys.argv[3:]]])
