# SPDX-License-Identifier: MIT
"""The runtimes that live_event_views.py leaves out: `make check-long`."""
from live_event_views import check


def test_report_counts_as_program_and_traceevent_3_1(context):
    # With counters the runtime of 3.1 may not end its session.
    check(context, "3.1", counters=False)


def test_report_counts_as_program_and_traceevent_9(context):
    check(context, "9.0")


def test_report_counts_as_program_and_traceevent_11(context):
    check(context, "11.0")
