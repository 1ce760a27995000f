# SPDX-License-Identifier: MIT
"""Runs a command for which the kernel has neither BPF nor tracefs: without_bpf.py COMMAND...

A seccomp filter refuses bpf(), as those of containers do; an empty directory hides tracefs in a mount namespace of our own.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/filter.h: BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
ALLOW, REFUSE = 0x7fff0000, 0x00050000
SYS_BPF = {"x86_64": 321, "aarch64": 280}
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def main():
    libc = ctypes.CDLL(None, use_errno=True)

    def call(result, what):
        if result:
            sys.exit(f"without_bpf: {what}: {os.strerror(ctypes.get_errno())}")

    call(libc.unshare(CLONE_NEWNS), "unshare")
    call(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount")
    for path in (b"/sys/kernel/tracing", b"/sys/kernel/debug"):
        if os.path.isdir(path):
            call(libc.mount(b"none", path, b"tmpfs", 0, None), "mount")
    code = ((LOAD_NUMBER, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, SYS_BPF[platform.machine()]), (RETURN, 0, 0, REFUSE | errno.EPERM), (RETURN, 0, 0, ALLOW))
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *instruction) for instruction in code))
    filter_of = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(program)))
    call(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_of, 0, 0), "prctl")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
