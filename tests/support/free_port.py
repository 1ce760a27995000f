# SPDX-License-Identifier: MIT
"""A TCP port for a server that a test starts."""
import functools
import itertools
import os
import socket

LOWEST = 10240
# Checks that run side by side take ports of different remainders: one must not take what another is about to use.
STRIDE = 64


@functools.cache
def tries(process):
    """Numbers that no other process of this moment has, unless ids of both leave the same remainder."""
    return itertools.count(process * 61 * STRIDE + process % STRIDE, STRIDE)


def ephemeral_start():
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        return int(file.read().split()[0])


def free_port():
    """One that nothing listens on, below those the kernel gives to outgoing connections.

    A port of theirs may go to a connection before the server listens. Each call has another port.
    """
    ceiling = max(ephemeral_start(), 2 * LOWEST)
    count = (ceiling - LOWEST) // STRIDE * STRIDE
    for number in itertools.islice(tries(os.getpid()), count // STRIDE):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", LOWEST + number % count))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise RuntimeError("no port below the ephemeral range is free")
