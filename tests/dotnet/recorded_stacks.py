# SPDX-License-Identifier: MIT
"""Samples of a perf.data that `record --keep-stack-bytes` wrote: call chain, registers and bytes of the stack.

Knows perf's format (tools/perf/Documentation/perf.data-file-format.txt) as far as such a file has it; walks frame pointers by itself.
"""
import struct

SAMPLE, KERNEL, USER = 9, 2**64 - 128, 2**64 - 512
RBP, RSP, RIP = 6, 7, 8
FIELDS = ("identifier", "ip", "tid", "time", "cpu", "period")


class Sample:
    def __init__(self, event, tid, time, chain, registers, stack):
        self.event = event
        self.tid = tid
        self.time = time
        self.chain = chain
        """User part, innermost first."""
        self.registers = registers
        """By perf's number."""
        self.stack = stack

    def frame_pointers(self):
        """The chain that frame pointers give, and whether it ends with a zero, where a thread began."""
        chain, base, frame = [self.registers[RIP]], self.registers[RSP], self.registers[RBP]
        while frame:
            offset = frame - base
            if offset < 0 or offset + 16 > len(self.stack) or offset % 8:
                return chain, False
            after, address = struct.unpack_from("<QQ", self.stack, offset)
            if after and after <= frame:
                return chain, False
            chain.append(address)
            frame = after
        return chain, True


def attributes(data):
    """Mask of registers and event for each id; sample_type is the same for all."""
    size, offset, length = struct.unpack_from("<QQQ", data, 16)
    found = {}
    for at in range(offset, offset + length, size):
        config, = struct.unpack_from("<Q", data, at + 8)
        mask, = struct.unpack_from("<Q", data, at + 80)
        ids, ids_bytes = struct.unpack_from("<QQ", data, at + size - 16)
        for place in range(ids, ids + ids_bytes, 8):
            found[struct.unpack_from("<Q", data, place)[0]] = ("cpu-clock" if config == 0 else "context-switches", mask)
    return found


def user_part(chain):
    part, is_user = [], False
    for address in chain:
        if address >= 2**64 - 4095:
            is_user = address == USER
        elif is_user:
            part.append(address)
    return part


def sample_of(data, at, known):
    identifier, _, _, tid, time, _, _, count = struct.unpack_from("<QQIIQQQQ", data, at + 8)
    place = at + 8 + 56
    event, mask = known[identifier]
    chain = user_part(struct.unpack_from(f"<{count}Q", data, place))
    place += 8 * count
    abi, = struct.unpack_from("<Q", data, place)
    place += 8
    registers = {}
    for number in range(64):
        if abi and mask >> number & 1:
            registers[number], = struct.unpack_from("<Q", data, place)
            place += 8
    size, = struct.unpack_from("<Q", data, place)
    place += 8
    used = struct.unpack_from("<Q", data, place + size)[0] if size else 0
    return Sample(event, tid, time, chain, registers, data[place:place + min(size, used)])


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    known = attributes(data)
    at, length = struct.unpack_from("<QQ", data, 40)
    end, found = at + length, []
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == SAMPLE:
            found.append(sample_of(data, at, known))
        at += size
    return found


def is_part(short, long):
    """Has `long` all of `short` in the same order?"""
    rest = iter(long)
    return all(address in rest for address in short)
