# SPDX-License-Identifier: MIT
"""A TCP port for a server that a test starts."""
import itertools
import os
import socket

LOWEST = 10240
TRIES = itertools.count(os.getpid() * 61)


def ephemeral_start():
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        return int(file.read().split()[0])


def free_port():
    """One that nothing listens on, below those the kernel gives to outgoing connections.

    A port of theirs may go to a connection before the server listens. Each call has another port.
    """
    ceiling = max(ephemeral_start(), 2 * LOWEST)
    for number in itertools.islice(TRIES, ceiling - LOWEST):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", LOWEST + number % (ceiling - LOWEST)))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise RuntimeError("no port below the ephemeral range is free")
