# SPDX-License-Identifier: MIT
"""How often a test takes samples. The kernel lowers its limit where samples took much time: above it perf_event_open fails, and perf takes fewer."""

LIMIT = "/proc/sys/kernel/perf_event_max_sample_rate"


def sampling(hertz, seconds):
    """(Hz, seconds): as many samples as these would be, not more often than the kernel allows now."""
    try:
        with open(LIMIT, encoding="ascii") as file:
            rate = min(hertz, int(file.read()))
    except FileNotFoundError:
        rate = hertz
    return rate, round(seconds * hertz / rate, 2)
