# SPDX-License-Identifier: MIT
"""Events of a nettrace stream of version 4 or 5, as microsoft/perfview NetTraceFormat_v5.md describes it. Knows nothing of our reader."""
import collections
import struct

Event = collections.namedtuple("Event", "provider id thread time stack payload")


class _Block:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def varint(self, bits=64):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & ((1 << bits) - 1)

    def take(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        end = self.at
        while self.data[end:end + 2] != b"\0\0":
            end += 2
        value = self.data[self.at:end].decode("utf-16-le")
        self.at = end + 2
        return value


def _blobs(data, header_bytes):
    """(metadata id, thread, time, stack id, payload) of each blob of a block."""
    block = _Block(data)
    is_compressed = struct.unpack_from("<HH", data)[1] & 1
    block.at = struct.unpack_from("<H", data)[0]
    if not is_compressed:
        raise ValueError("a block that is not compressed")
    metadata = sequence = capture = processor = thread = stack = time = size = 0
    while block.at < len(data):
        flags = block.take("B")
        if flags & 1:
            metadata = block.varint(32)
        if flags & 2:
            sequence += block.varint(32)
            capture = block.varint()
            processor = block.varint(32)
            if metadata:
                sequence += 1
        elif metadata:
            sequence += 1
        if flags & 4:
            thread = block.varint()
        if flags & 8:
            stack = block.varint(32)
        time = (time + block.varint()) & ((1 << 64) - 1)
        if flags & 16:
            block.at += 16
        if flags & 32:
            block.at += 16
        if flags & 128:
            size = block.varint(32)
        yield metadata, thread, time, stack, data[block.at:block.at + size]
        block.at += size


def _objects(data):
    """(type name, content) of each object, as far as the stream goes."""
    if not data:  # its target was killed before it sent anything
        return
    if data[:8] != b"Nettrace":
        raise ValueError("no nettrace stream")
    at = 8 + 4 + struct.unpack_from("<I", data, 8)[0]
    while at < len(data) and data[at] == 5:
        name_bytes = struct.unpack_from("<I", data, at + 11)[0]
        name = data[at + 15:at + 15 + name_bytes].decode()
        at += 15 + name_bytes + 1
        if name == "Trace":
            content, at = data[at:at + 48], at + 48
        else:
            size = struct.unpack_from("<I", data, at)[0]
            at = (at + 4 + 3) // 4 * 4
            content, at = data[at:at + size], at + size
        at += 1
        yield name, content


def read(data):
    """All events of the bytes of a stream; `stack` has the addresses, innermost first."""
    kinds, stacks, events = {}, {}, []
    for name, content in _objects(data):
        if name == "MetadataBlock":
            for _, _, _, _, payload in _blobs(content, 0):
                block = _Block(payload)
                number, provider, event = block.take("I"), block.text(), block.take("I")
                kinds[number] = provider, event
        elif name == "StackBlock":
            block = _Block(content)
            first, count = block.take("I"), block.take("I")
            for number in range(first, first + count):
                size = block.take("I")
                stacks[number] = struct.unpack_from(f"<{size // 8}Q", content, block.at)
                block.at += size
        elif name == "EventBlock":
            for metadata, thread, time, stack, payload in _blobs(content, 0):
                events.append(Event(*kinds[metadata], thread, time, stacks.get(stack, ()), payload))
    return events
