# SPDX-License-Identifier: MIT
"""Code that processes execute straight out of an archive, as Android does: the archives are made by Python's zipfile or byte by
byte here, the process loads from them with a loader of its own; the oracles are nm, readelf, eu-addr2line and the return value of the code."""
import json
import os
import struct
import subprocess
import zipfile
import zlib

from native_cases import extent, resolve_text
from native_files import place
from native_tools import Elf, Fail

LIBRARY = """
static __attribute__((noinline)) int hidden_NAME(int x) { volatile int v = x; return v * 31 + 7; }
static inline __attribute__((always_inline)) int inlined_NAME(int x)
{
	volatile int v = x;
	return v * 3;
}
__attribute__((noinline)) int exported_NAME(int x)
{
	return hidden_NAME(x) + inlined_NAME(x);
}
"""
INLINED_LINE, CALLED_LINE = 6, 10

LOADER = r"""
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *load(int fd, long at)
{
	static Elf64_Ehdr header;
	static Elf64_Phdr parts[32];
	char *base = mmap(NULL, 1 << 24, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pread(fd, &header, sizeof(header), at);
	pread(fd, parts, header.e_phnum * sizeof(parts[0]), at + header.e_phoff);
	for (int i = 0; i < header.e_phnum; i++) {
		long page = parts[i].p_vaddr & ~4095L, skipped = parts[i].p_vaddr - page;
		int protection = (parts[i].p_flags & PF_R ? PROT_READ : 0) | (parts[i].p_flags & PF_W ? PROT_WRITE : 0) |
				 (parts[i].p_flags & PF_X ? PROT_EXEC : 0);

		if (parts[i].p_type == PT_LOAD && mmap(base + page, parts[i].p_filesz + skipped, protection, MAP_PRIVATE | MAP_FIXED, fd,
						       at + parts[i].p_offset - skipped) == MAP_FAILED)
			return NULL;
	}
	return base;
}

/* ARCHIVE (load OFFSET VADDR | map OFFSET BYTES)... */
int main(int count, char **words)
{
	int fd = open(words[1], O_RDONLY);

	for (int i = 2; i + 2 < count; i += 3) {
		long at = strtol(words[i + 1], NULL, 0), number = strtol(words[i + 2], NULL, 0);

		if (!strcmp(words[i], "load")) {
			char *base = load(fd, at);
			printf("%p %d\n", base, base ? ((int (*)(int))(base + number))(5) : 0);
		} else {
			printf("%p 0\n", mmap(NULL, number, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, at));
		}
	}
	return fflush(stdout) || pause();
}
"""


def library(tools, name, *flags):
    path = tools.path(f"archive/lib{name}.so")
    source = tools.write(f"archive/{name}.c", LIBRARY.replace("NAME", name))
    tools.run("gcc", "-O1", "-g", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id", *flags, "-o", path, source)
    return path


def pack(tools, name, members, page=4096):
    """An archive of (member name, content, packed or stored); the path, and the offset of each stored member's bytes."""
    path = tools.path(f"archive/{name}")
    with zipfile.ZipFile(path, "w") as archive:
        for member, content, method in members:
            info = zipfile.ZipInfo(member)
            info.compress_type = method
            at = archive.fp.tell() + 30 + len(member) + 4
            if method == zipfile.ZIP_STORED and page:
                info.extra = struct.pack("<HH", 0xD935, -at % page) + bytes(-at % page)
            archive.writestr(info, content)
    offsets = []
    with open(path, "rb") as file, zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            name_bytes, extra_bytes = struct.unpack("<HH", file.read(4))
            offsets.append(info.header_offset + 30 + name_bytes + extra_bytes)
    return path, offsets


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Loaded:
    """A process that has loaded or mapped parts of an archive; `bases` are where, `results` what the code returned."""

    def __init__(self, tools, archive, *parts):
        self.tools = tools
        loader = tools.path("archive/loader")
        if not os.path.exists(loader):
            tools.run("gcc", "-O1", "-w", "-o", loader, tools.write("archive/loader.c", LOADER))
        words = [str(word) for part in parts for word in part]
        self.process = subprocess.Popen([loader, archive, *words], stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline().split() for _ in parts]
        self.bases = [int(line[0], 16) for line in lines]
        self.results = [int(line[1]) for line in lines]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def answers(self, addresses, *options):
        done = subprocess.run([self.tools.program, "resolve", "--json", *options, str(self.process.pid), *[f"{a:x}" for a in addresses]],
                              capture_output=True, text=True, timeout=60)
        if done.returncode < 0:
            raise Fail(f"exit code {done.returncode}")
        return json.loads(done.stdout)


def expect_function(loaded, tools, path, shown, name, base, *options):
    """Every byte of a function, loaded at `base`; the answers."""
    start, size = extent(tools, path, name)
    answers = loaded.answers([base + start + i for i in range(size)], *options)
    for i, answer in enumerate(answers):
        if (answer["name"], answer["offset"], answer["image"]) != (name, i, shown):
            raise Fail(f"{answer}, not {name}+{i} of {shown}")
    return answers


def is_right(result):
    return result == 5 * 31 + 7 + 5 * 3


def test_archive_two_libraries_loaded_out_of_one(tools):
    """Segments mapped one by one, each library between members that are packed: names, positions, lines and inlined functions."""
    tools.need("gcc", "nm")
    paths = [library(tools, name) for name in ("one", "two")]
    archive, offsets = pack(tools, "two.apk", [
        ("classes.dex", b"dex\n" * 5000, zipfile.ZIP_DEFLATED), ("lib/x86_64/libone.so", read(paths[0]), zipfile.ZIP_STORED),
        ("res/a.png", b"\x89PNG" * 3000, zipfile.ZIP_STORED), ("lib/x86_64/libtwo.so", read(paths[1]), zipfile.ZIP_STORED)])
    parts = [("load", offsets[1 + 2 * i], place(tools, path, f"exported_{name}")) for i, (path, name) in enumerate(zip(paths, ("one", "two")))]
    with Loaded(tools, archive, *parts) as loaded:
        if not all(is_right(result) for result in loaded.results):
            raise Fail(f"the code returned {loaded.results}")
        for path, name, base in zip(paths, ("one", "two"), loaded.bases):
            shown = f"{archive}!/lib/x86_64/lib{name}.so"
            expect_function(loaded, tools, path, shown, f"hidden_{name}", base)
            answers = expect_function(loaded, tools, path, shown, f"exported_{name}", base, "--inlines")
            chains = [answer["inlined"] for answer in answers if answer["inlined"]]
            if not chains or any(chain[0]["name"] != f"inlined_{name}" for chain in chains):
                raise Fail(f"inlined: {chains}")
            if not any(answer["line"] == INLINED_LINE for answer in answers) or not any(answer["line"] == CALLED_LINE for answer in answers):
                raise Fail(f"lines {sorted({answer['line'] for answer in answers})}")


def test_archive_mapped_as_a_whole(tools):
    """One mapping of all of it, executable: by offset each library, and no name for what is between them."""
    tools.need("gcc", "nm")
    for page in (4096, 0):
        paths = [library(tools, name) for name in ("one", "two")]
        archive, offsets = pack(tools, f"whole{page}.zip", [
            ("a.txt", b"text " * 2000, zipfile.ZIP_STORED), ("libone.so", read(paths[0]), zipfile.ZIP_STORED),
            ("b.txt", b"text " * 2000, zipfile.ZIP_STORED), ("c.so", read(paths[0]), zipfile.ZIP_DEFLATED),
            ("libtwo.so", read(paths[1]), zipfile.ZIP_STORED)], page)
        size = os.path.getsize(archive)
        with Loaded(tools, archive, ("map", 0, size)) as loaded:
            for number, (path, name) in zip((1, 4), zip(paths, ("one", "two"))):
                start, bytes_ = extent(tools, path, f"exported_{name}")
                at = loaded.bases[0] + offsets[number] + Elf(path).offset(start)
                for i, answer in enumerate(loaded.answers([at + i for i in range(bytes_)])):
                    if (answer["name"], answer["offset"], answer["image"]) != (f"exported_{name}", i, f"{archive}!/lib{name}.so"):
                        raise Fail(str(answer))
            for at in (0, offsets[0] + 100, offsets[2] + 100, offsets[3] + 100, size - 10):
                answer = loaded.answers([loaded.bases[0] + at])[0]
                if answer["name"] or not answer["reason"] or answer["image"] != archive:
                    raise Fail(str(answer))


def test_archive_with_only_the_code_of_a_library_mapped(tools):
    """As some loaders do that copy the rest; headers are nowhere in memory."""
    tools.need("gcc", "nm")
    path = library(tools, "one")
    archive, offsets = pack(tools, "code.zip", [("libone.so", read(path), zipfile.ZIP_STORED)])
    vaddr, at, size = next((vaddr, at, size) for vaddr, at, size, runs in Elf(path).loads if runs)
    with Loaded(tools, archive, ("map", offsets[0] + at, size)) as loaded:
        expect_function(loaded, tools, path, f"{archive}!/libone.so", "hidden_one", loaded.bases[0] - vaddr)


def test_archive_member_that_is_packed(tools):
    tools.need("gcc")
    path = library(tools, "one")
    archive, offsets = pack(tools, "packed.zip", [("a", b"x" * 5000, zipfile.ZIP_STORED), ("libone.so", read(path) + os.urandom(1 << 16), zipfile.ZIP_DEFLATED)])
    with Loaded(tools, archive, ("map", (offsets[1] + 4095) & ~4095, 4096)) as loaded:
        answer = loaded.answers([loaded.bases[0] + 16])[0]
        if answer["name"] or "packed" not in answer["reason"] or answer["image"] != f"{archive}!/libone.so":
            raise Fail(str(answer))


def test_archive_member_as_a_file(tools):
    """ARCHIVE!/NAME is a file for those who have no process."""
    tools.need("gcc", "nm")
    path = library(tools, "one")
    archive, _ = pack(tools, "named.zip", [("lib/libone.so", read(path), zipfile.ZIP_STORED), ("lib/two.so", read(path), zipfile.ZIP_DEFLATED)])
    offset = Elf(path).offset(place(tools, path, "hidden_one"))
    text = resolve_text(tools, f"{archive}!/lib/libone.so+0x{offset:x}", code=0)
    if f"hidden_one+0x0 ({archive}!/lib/libone.so)" not in text:
        raise Fail(text)
    for member, words in (("lib/two.so", "packed"), ("lib/none.so", "no member of this name"), ("", "no member of this name")):
        text = resolve_text(tools, f"{archive}!/{member}+0x{offset:x}", code=1)
        if words not in text:
            raise Fail(text)
    # A file of that very path comes first.
    os.makedirs(tools.path("archive/dir!/lib"))
    with open(tools.path("archive/dir!/lib/libone.so"), "wb") as file:
        file.write(read(path))
    text = resolve_text(tools, f"{tools.path('archive/dir!/lib/libone.so')}+0x{offset:x}", code=0)
    if "hidden_one+0x0" not in text:
        raise Fail(text)


def test_archive_member_is_known_by_its_build_id(tools):
    """Normalised here, named elsewhere from the library itself."""
    tools.need("gcc", "nm", "readelf")
    program = os.path.join(os.path.dirname(tools.program), "examples", "symbolize_elsewhere")
    path = library(tools, "one")
    wanted = tools.run("readelf", "-n", path).split("Build ID: ")[1].split()[0]
    archive, offsets = pack(tools, "normal.apk", [("lib/libone.so", read(path), zipfile.ZIP_STORED)])
    vaddr = place(tools, path, "hidden_one")
    with Loaded(tools, archive, ("load", offsets[0], vaddr)) as loaded:
        line = tools.run(program, "normalize", str(loaded.process.pid), input=f"{loaded.bases[0] + vaddr + 1:x}\n")
    if line.split() != [wanted, f"{Elf(path).offset(vaddr) + 1:x}", "libone.so"]:
        raise Fail(line)
    name = tools.run(program, "resolve", os.path.dirname(path), input=line)
    if not name.endswith(" hidden_one+0x1\n"):
        raise Fail(name)


def test_archive_members_without_symbols(tools):
    """Bounds of functions from .eh_frame, and names out of a debug file by its build-id."""
    tools.need("gcc", "nm", "strip", "objcopy")
    path = library(tools, "one")
    stripped = tools.path("archive/stripped.so")
    tools.run("strip", "-s", "-o", stripped, path)
    archive, offsets = pack(tools, "stripped.apk", [("lib/libone.so", read(stripped), zipfile.ZIP_STORED)])
    vaddr = place(tools, path, "hidden_one")
    with Loaded(tools, archive, ("load", offsets[0], vaddr)) as loaded:
        answer = loaded.answers([loaded.bases[0] + vaddr + 2])[0]
        if answer["status"] != "function without a name" or answer["name"] != f"libone.so!0x{vaddr:x}" or answer["offset"] != 2:
            raise Fail(str(answer))


def test_archive_that_is_deleted_or_changed(tools):
    """Through map_files as long as it is the file that is mapped; no name of another one."""
    tools.need("gcc", "nm")
    path = library(tools, "one")
    archive, offsets = pack(tools, "gone.apk", [("lib/libone.so", read(path), zipfile.ZIP_STORED)])
    vaddr = place(tools, path, "hidden_one")
    with Loaded(tools, archive, ("load", offsets[0], vaddr)) as loaded:
        other, _ = pack(tools, "other.apk", [("lib/libother.so", read(library(tools, "two")), zipfile.ZIP_STORED)])
        os.rename(other, archive)
        answer = loaded.answers([loaded.bases[0] + vaddr])[0]
        if answer["name"] not in ("hidden_one", None) or not (answer["name"] or answer["reason"]):
            raise Fail(str(answer))
        if not os.geteuid() and answer["name"] != "hidden_one":
            raise Fail(str(answer))
    with Loaded(tools, archive, ("load", pack(tools, "gone.apk", [("lib/libone.so", read(path), zipfile.ZIP_STORED)])[1][0], vaddr)) as loaded:
        with open(archive, "r+b") as file:
            file.seek(offsets[0] + 0x200)
            file.write(b"\x90" * 64)
        os.utime(archive)
        answer = loaded.answers([loaded.bases[0] + vaddr])[0]
        if answer["name"] not in ("hidden_one", None):
            raise Fail(str(answer))


def test_archives_that_lie_have_reasons(tools):
    """A directory that is cut, points elsewhere or claims the bytes twice; what the mapping shows stays the same."""
    tools.need("gcc", "nm")
    path = library(tools, "one")
    good, offsets = pack(tools, "good.zip", [("libone.so", read(path), zipfile.ZIP_STORED), ("libtwo.so", read(path), zipfile.ZIP_STORED)])
    content = read(good)
    end = content.rindex(b"PK\5\6")
    directory = struct.unpack_from("<I", content, end + 16)[0]
    row = content.index(b"PK\1\2", directory + 4)
    second = struct.unpack_from("<I", content, row + 42)[0]
    vaddr = place(tools, path, "hidden_one")

    def changed(at, form, *values):
        copy = bytearray(content)
        struct.pack_into(form, copy, at, *values)
        return bytes(copy)

    cases = {
        "cut": (content[:-1], True),
        "without its directory": (content[:directory], True),
        "directory behind the end": (changed(end + 16, "<I", len(content)), True),
        "directory in a member": (changed(end + 16, "<I", offsets[0]), True),
        "more members than rows": (changed(end + 10, "<H", 3), True),
        "rows cut short": (changed(end + 12, "<I", 46), True),
        "a header elsewhere": (changed(directory + 42, "<I", 1), True),
        "both rows at one header": (changed(row + 42, "<I", 0), True),
        "a member into the next": (changed(directory + 20, "<II", second + 9, second + 9), True),
        "a header of another method": (changed(8, "<H", 8), True),
        "a header of another name": (changed(30, "<B", 0x6d), True),
        "encrypted": (changed(directory + 8, "<H", 1), True),
        "another disk": (changed(end + 4, "<H", 1), True),
        "a comment that looks like an end": (content[:-2] + struct.pack("<H", 22) + b"PK\5\6" + bytes(16) + b"\7\0", False),
    }
    for name, (bytes_, is_refused) in cases.items():
        lying = tools.path("archive/lying.zip")
        with open(lying, "wb") as file:
            file.write(bytes_)
        with Loaded(tools, lying, ("load", offsets[0], vaddr)) as loaded:
            answer = loaded.answers([loaded.bases[0] + vaddr])[0]
        if bool(answer["name"]) == is_refused or (is_refused and not answer["reason"]):
            raise Fail(f"{name}: {answer}")
        if is_refused:
            tools.figure(f"{name}: {answer['reason']}")


def test_archive_of_more_than_4_gib(tools):
    """Its directory in the form of 64 bits; all but the library is a hole."""
    tools.need("gcc", "nm")
    path = library(tools, "one")
    content, name, hole = read(path), b"lib/libone.so", 5 << 30
    archive = tools.path("archive/large.zip")
    header = hole + 4096 - 30 - len(name)
    wide = struct.pack("<HHQ", 1, 8, header)
    with open(archive, "wb") as file:
        file.seek(header)
        file.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 0, 0, len(content), len(content), len(name), 0) + name + content)
        directory = file.tell()
        file.write(struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 0, 0, len(content), len(content), len(name), len(wide), 0, 0, 0, 0,
                               0xFFFFFFFF) + name + wide)
        record = file.tell()
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, record - directory, directory) +
                   struct.pack("<IIQI", 0x07064B50, 0, record, 1) +
                   struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    with zipfile.ZipFile(archive) as other:
        other.getinfo(name.decode()).CRC = zlib.crc32(content)
        if other.read(name.decode()) != content:
            raise Fail("Python reads it otherwise")
    with Loaded(tools, archive, ("load", hole + 4096, place(tools, path, "exported_one"))) as loaded:
        if not is_right(loaded.results[0]):
            raise Fail(str(loaded.results))
        expect_function(loaded, tools, path, f"{archive}!/lib/libone.so", "hidden_one", loaded.bases[0])
    os.remove(archive)
    with open(archive, "wb") as file:
        file.truncate(5 << 30)
    with Loaded(tools, archive, ("map", 5 << 29, 4096)) as loaded:
        answer = loaded.answers([loaded.bases[0]])[0]
        if answer["name"] or "neither ELF nor PE" not in answer["reason"]:
            raise Fail(str(answer))


def test_archive_offsets_are_those_of_the_members_there(tools):
    """An offset into the archive, as perf prints it beside its path: without a process and with one."""
    tools.need("gcc", "nm")
    paths = [library(tools, name) for name in ("one", "two")]
    archive, offsets = pack(tools, "offsets.apk", [
        ("a.txt", b"text " * 2000, zipfile.ZIP_STORED), ("lib/libone.so", read(paths[0]), zipfile.ZIP_STORED),
        ("packed.so", read(paths[0]), zipfile.ZIP_DEFLATED), ("lib/libtwo.so", read(paths[1]), zipfile.ZIP_STORED)])
    questions = [f"{archive}+0x{offsets[at] + Elf(path).offset(place(tools, path, f'hidden_{name}')) + 3:x}"
                 for at, path, name in ((1, paths[0], "one"), (3, paths[1], "two"))]
    wanted = [f"hidden_{name}+0x3 ({archive}!/lib/lib{name}.so)" for name in ("one", "two")]
    text = resolve_text(tools, *questions, code=0)
    if [line.split(" ", 1)[1] for line in text.splitlines()] != wanted:
        raise Fail(text)
    answer = json.loads(tools.run(tools.program, "resolve", "--json", "--inlines", questions[0]))[0]
    if answer["line"] != 2:
        raise Fail(str(answer))
    nothing = resolve_text(tools, f"{archive}+0x{offsets[0] + 9:x}", f"{archive}+0x{offsets[2] + 99:x}")
    if nothing.count("[") != 2:
        raise Fail(nothing)
    with Loaded(tools, archive, ("load", offsets[1], place(tools, paths[0], "exported_one"))) as loaded:
        text = resolve_text(tools, str(loaded.process.pid), questions[0], code=0)
    if wanted[0] not in text:
        raise Fail(text)


def test_file_mapped_flat(tools):
    """blazesym's normalize_custom_so: one executable mapping of all of a library; also deleted, and also overwritten."""
    tools.need("gcc", "nm")
    for flags in ((), ("-Wl,-z,noseparate-code",)):
        path = library(tools, "one", *flags)
        vaddr, size = extent(tools, path, "hidden_one")
        at = Elf(path).offset(vaddr)
        with Loaded(tools, path, ("map", 0, os.path.getsize(path))) as loaded:
            for deleted in (False, True):
                if deleted:
                    os.unlink(path)
                for i, answer in enumerate(loaded.answers([loaded.bases[0] + at + i for i in range(size)])):
                    if (answer["name"], answer["offset"], answer["image"]) != ("hidden_one", i, path) and not (deleted and os.geteuid()):
                        raise Fail(f"{flags} {deleted}: {answer}")
    path = library(tools, "one")
    at = Elf(path).offset(place(tools, path, "hidden_one"))
    with Loaded(tools, path, ("map", 0, os.path.getsize(path))) as loaded:
        os.rename(path, path + ".moved")
        library(tools, "one", "-Wl,-z,noseparate-code", "-Wl,--hash-style=sysv")
        with open(path, "rb") as file, open(path + ".moved", "r+b") as moved:
            moved.write(file.read())
        answer = loaded.answers([loaded.bases[0] + at])[0]
        if answer["name"] == "hidden_one" and Elf(path).offset(place(tools, path, "hidden_one")) != at:
            raise Fail(str(answer))
