# SPDX-License-Identifier: MIT
"""Where the code of a precompiled assembly lies, by the image's own tables and nothing of ours."""
import bisect
import struct


class Image:
    """As much of a precompiled PE file as it takes to say where its code lies."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        header = self.u32(0x3C)
        sections, optional = struct.unpack_from("<H12xH", self.data, header + 6)
        self.sections = [struct.unpack_from("<8xIIII", self.data, header + 24 + optional + 40 * i) for i in range(sections)]
        is_64bit = struct.unpack_from("<H", self.data, header + 24)[0] == 0x20B
        self.machine_bytes = 12 if is_64bit else 8
        cli = self.u32(header + 24 + (112 if is_64bit else 96) + 14 * 8)
        native = self.offset(self.u32(self.offset(cli) + 64))
        count = self.u32(native + 12)
        self.tables = {kind: (rva, size) for kind, rva, size in
                       (struct.unpack_from("<III", self.data, native + 16 + 12 * i) for i in range(count))}

    def u32(self, offset):
        return struct.unpack_from("<I", self.data, offset)[0]

    def offset(self, rva):
        for size, start, raw_size, raw in self.sections:
            if start <= rva < start + max(size, raw_size):
                return raw + rva - start
        raise ValueError(f"rva {rva:#x} is in no section")

    def rva(self, offset):
        for _, start, raw_size, raw in self.sections:
            if raw <= offset < raw + raw_size:
                return start + offset - raw
        return None

    def functions(self):
        """Pairs (start, end) of all RUNTIME_FUNCTIONs, ascending; x64 only. None for an image that has none of its own."""
        rva, size = self.tables.get(102, (0, 0))
        if not size:
            return None
        begin = self.offset(rva)
        return [row[:2] for row in struct.iter_unpack("<III", self.data[begin:begin + size // 12 * 12])]

    def thunks(self):
        """(start, end) of the stubs that calls of methods go through the first time."""
        rva, size = self.tables.get(103, (0, 0))
        return rva, rva + size

    def cold_parts(self):
        """Pairs (rva of the cold part, rva of the method that it belongs to); x64 only."""
        rva, size = self.tables.get(120, (0, 0))
        functions = self.offset(self.tables[102][0])
        for i in range(size // 8):
            cold, hot = struct.unpack_from("<II", self.data, self.offset(rva) + 8 * i)
            yield self.u32(functions + 12 * cold), self.u32(functions + 12 * hot)


class Code:
    """The code of an image: its functions, and the thunks behind its imports. The sections that may be executed have IL too."""

    def __init__(self, path):
        self.starts = self.ends = None
        try:
            self.image = Image(path)
            functions = self.image.functions()
        except (OSError, ValueError, struct.error):
            return
        if functions:
            self.starts, self.ends = zip(*functions)

    def may_be_at(self, offset):
        """Is code at this offset into the file? True also where the image does not say."""
        rva = self.image.rva(offset) if self.starts else None
        if rva is None:
            return True
        at = bisect.bisect_right(self.starts, rva) - 1
        start, end = self.image.thunks()
        return start <= rva < end or (at >= 0 and rva < self.ends[at])
