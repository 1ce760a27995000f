# SPDX-License-Identifier: MIT
"""Runs a command as an older kernel, or a container, would: older_kernel.py links,bpf,tracefs COMMAND...

Each word takes something away. links: BPF links, as before Linux 5.7; bpf: all of BPF, by a seccomp filter as those of containers.
tracefs: an empty directory hides it in a mount namespace of our own.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/filter.h: BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
CALL, FIRST_ARGUMENT = 0, 16                           # places in struct seccomp_data
ALLOW, REFUSE = 0x7fff0000, 0x00050000
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_LINK_CREATE = 28
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def call(result, what):
    if result:
        sys.exit(f"older_kernel: {what}: {os.strerror(ctypes.get_errno())}")


def hide_tracefs():
    call(libc.unshare(CLONE_NEWNS), "unshare")
    call(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount")
    for path in (b"/sys/kernel/tracing", b"/sys/kernel/debug"):
        if os.path.isdir(path):
            call(libc.mount(b"none", path, b"tmpfs", 0, None), "mount")


def refuse_bpf(links_only):
    is_bpf = (LOAD_NUMBER, 0, 0, CALL), (JUMP_IF_EQUAL, 0, 3 if links_only else 1, SYS_BPF[platform.machine()])
    is_link = ((LOAD_NUMBER, 0, 0, FIRST_ARGUMENT), (JUMP_IF_EQUAL, 0, 1, BPF_LINK_CREATE)) if links_only else ()
    refusal = (RETURN, 0, 0, REFUSE | (errno.EINVAL if links_only else errno.EPERM))
    code = *is_bpf, *is_link, refusal, (RETURN, 0, 0, ALLOW)
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *instruction) for instruction in code))
    filter_of = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(program)))
    call(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_of, 0, 0), "prctl")


def main():
    missing = sys.argv[1].split(",")
    if "tracefs" in missing:
        hide_tracefs()
    if "links" in missing or "bpf" in missing:
        refuse_bpf("bpf" not in missing)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
