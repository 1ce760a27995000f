# SPDX-License-Identifier: MIT
"""The runtimes that live_record.py leaves out, because a minute each is too long for every change: `make check-long`."""
from live_record import check_version


def test_record_of_a_web_application_3_1(context):
    check_version(context, "3.1")


def test_record_of_a_web_application_9(context):
    check_version(context, "9.0")


def test_record_of_a_web_application_11(context):
    check_version(context, "11.0")
