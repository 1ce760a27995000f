# SPDX-License-Identifier: MIT
"""The capabilities of root that a running command keeps, as /proc shows them."""
import os
import subprocess

from native_tools import Fail, Skip

SYS_MODULE, NET_ADMIN, SYS_PTRACE, SYS_BOOT = 16, 12, 19, 22


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def test_a_running_command_has_given_up_capabilities(tools):
    own = int(status_of("self")["CapEff"], 16)
    if os.geteuid() or not own >> SYS_PTRACE & 1:
        raise Skip("this needs root with CAP_SYS_PTRACE")
    with subprocess.Popen([tools.program, "resolve", str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # An answer shows that it has begun.
        process.stdin.write(b"0x1000\n")
        process.stdin.flush()
        process.stdout.readline()
        status = status_of(process.pid)
        process.stdin.close()
    for name in ("CapEff", "CapPrm", "CapBnd"):
        left = int(status[name], 16)
        for capability in SYS_MODULE, NET_ADMIN, SYS_BOOT:
            if left >> capability & 1:
                raise Fail(f"{name} has capability {capability}: {left:x}")
    if not int(status["CapEff"], 16) >> SYS_PTRACE & 1:
        raise Fail("without CAP_SYS_PTRACE root sees no other user's process")
    if int(status["CapInh"], 16) or int(status["CapAmb"], 16) or status["NoNewPrivs"] != "1":
        raise Fail("programs that it runs get more")
