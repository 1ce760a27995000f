# SPDX-License-Identifier: MIT
"""Foreign text reaches a terminal without control characters: every command, both streams."""
import os
import pty
import subprocess
import tty

from native_tools import Fail

# As UTF-8; ESC and CSI draw, U+202E writes backwards, the last byte is CSI where the terminal is not UTF-8.
EVIL = b"\x1b[31m\xc2\x9b31m\xc2\x85\x7f\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f\x9b"
TARGET = """
#include <unistd.h>
int main(void) { write(1, "x", 1); pause(); return 0; }
"""


def obeyed(text):
    """The characters of a text that a terminal obeys."""
    bidi = [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    decoded = text.decode("utf-8", "surrogateescape")
    return [hex(ord(c)) for c in decoded
            if (ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) <= 0x9F or ord(c) in bidi or 0xDC80 <= ord(c) <= 0xDCFF]


def shown(command, text=b""):
    """The bytes that a terminal gets from a command."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=dict(os.environ, TERM="dumb"))
    os.close(theirs)
    process.stdin.write(text)
    process.stdin.close()
    got = b""
    try:
        while piece := os.read(ours, 65536):
            got += piece
    except OSError:  # all have closed it
        pass
    os.close(ours)
    process.wait(timeout=60)
    return got


def test_nothing_from_outside_draws_on_a_terminal(tools):
    name = b"evil" + EVIL
    program = os.path.join(tools.path("terminal").encode(), name)
    os.makedirs(os.path.dirname(program), exist_ok=True)
    tools.run("gcc", "-O1", "-s", "-o", os.fsdecode(program), tools.write("terminal.c", TARGET))
    target = subprocess.Popen([program], stdout=subprocess.PIPE)
    map_path = f"/tmp/perf-{target.pid}.map"
    try:
        target.stdout.read(1)
        with open(f"/proc/{target.pid}/maps", "rb") as maps:
            code = next(line for line in maps if b"r-xp" in line and b"evil" in line)
        pid, address = str(target.pid), code.split(b"-")[0].decode()
        with open(map_path, "wb") as perf_map:
            perf_map.write(b"1000 1000 name" + EVIL + b"\n")
        commands = [(["resolve", pid, address], b""), (["resolve", pid], EVIL + b"\n"), (["resolve", program + b"+0x10"], b""),
                    (["resolve", "--json", pid, address], b""), (["symbolize", pid], EVIL + b"\n0x1004\n\t" + address.encode() + b"\n"),
                    (["symbolize", program], b""), (["fetch-symbols", pid], b""), (["fetch-symbols", program], b""), (["info", pid], b""),
                    (["list", pid], b""), (["list"], b""), (["merge", pid], b""), (["merge", "-o", program, pid], b""), (["watch", pid], b""),
                    (["generate", program], b""), (["generate", "-o", program, program], b""), (["perf-fix", program], b""), (["standin", "install", program], b""),
                    (["bcc", "--", program + b"x"], b""), ([name], b""), (["list", b"--" + name], b"")]
        for words, text in commands:
            got = shown([tools.program, *words], text)
            if bad := obeyed(got):
                raise Fail(f"{words}: {bad} reach the terminal: {got[:300]}")
        if b"evil?[31m?31m" not in shown([tools.program, "resolve", pid, address]):
            raise Fail("the path was not shown at all")
        if EVIL not in subprocess.run([tools.program, "symbolize", pid], input=EVIL, capture_output=True, timeout=60).stdout:
            raise Fail("a pipe does not get the bytes as they are")
    finally:
        target.kill()
        target.communicate()
        if os.path.exists(map_path):
            os.remove(map_path)
