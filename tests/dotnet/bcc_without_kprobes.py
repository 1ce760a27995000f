# SPDX-License-Identifier: MIT
"""Runs Debian's offcputime-bpfcc on a kernel without kprobes, with "@ADDRESS" behind each user name.

The tool's own file is run: its options, its tables, its printing, and so the way in which it asks for names. Only where its BPF
function is attached differs. The tool has one kprobe, on finish_task_switch(), where the kernel has just begun to run another
thread: there it notes when `prev` stopped, and how long the thread that goes on had waited. No tracepoint is at that place with
both of them, so the function's text is cut in two, at run time: the first half is called by sched_switch, in the thread that
stops; the second by rseq_update, which the kernel passes when a thread that was switched out goes back to its own code, with
the stack that it waited in. Usage: bcc_without_kprobes.py TOOL ARGUMENT...
"""
import sys

import bcc_with_addresses
from bcc import BPF

ENTRY = "int oncpu(struct pt_regs *ctx, struct task_struct *prev) {"
SECOND_HALF = "pid = bpf_get_current_pid_tgid();"
STOPS = """RAW_TRACEPOINT_PROBE(sched_switch)
{
    u64 id = bpf_get_current_pid_tgid();
    struct { u32 pid, tgid; } leaving = { id, id >> 32 }, *prev = &leaving;
"""
GOES_ON = """    return 0;
}

RAW_TRACEPOINT_PROBE(rseq_update)
{
    u32 pid, tgid;
    u64 *tsp;

    """

create = BPF.__init__


def cut(text):
    begin = text.index(ENTRY)
    middle = text.index(SECOND_HALF, begin)
    return text[:begin] + STOPS + text[begin + len(ENTRY):middle] + GOES_ON + text[middle:]


def create_cut(self, *arguments, text=None, **options):
    create(self, *arguments, text=cut(text), **options)


def attach_nothing(*_, **__):
    """The tracepoints are attached by their names."""


BPF.__init__ = create_cut
BPF.attach_kprobe = attach_nothing
BPF.num_open_kprobes = lambda self: len(self.raw_tracepoint_fds)
bcc_with_addresses.run(sys.argv[1:])
