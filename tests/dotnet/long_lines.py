# SPDX-License-Identifier: MIT
"""Source lines on further versions of .NET; live_lines.py has the rest."""
import live_lines


def test_lines_are_those_of_stacktrace_on_net9(context):
    live_lines.check(context, live_lines.on_framework("9.0"), ("QuickJitted",))


def test_maps_in_memory_are_those_of_the_runtimes_events_on_net11(context):
    live_lines.check_every_body(context, live_lines.on_framework("11.0"))


def test_lines_are_those_of_stacktrace_on_net11(context):
    live_lines.check(context, live_lines.on_framework("11.0"), ("QuickJitted", "PreJIT"))
