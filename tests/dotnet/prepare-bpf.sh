#!/bin/sh
# SPDX-License-Identifier: MIT
# Prepares what BCC needs beside its packages, for the live tests: tracefs
# and debugfs mounted, and kernel headers where it looks for them. Run as root; says what it
# changed. Headers of another kernel do for tools that read no kernel structs.
set -u

if [ "$(id -u)" -ne 0 ]; then
	echo 'prepare-bpf: needs root' >&2
	exit 1
fi

tracing=/sys/kernel/tracing
if [ -d "$tracing" ] && [ ! -e "$tracing/events" ]; then
	if mount -t tracefs tracefs "$tracing" 2> /dev/null; then
		echo "prepare-bpf: mounted tracefs at $tracing"
	else
		echo "prepare-bpf: tracefs could not be mounted at $tracing" >&2
	fi
fi

# BCC reads there which functions must not be probed.
debugging=/sys/kernel/debug
if [ -d "$debugging" ] && [ ! -e "$debugging/kprobes" ]; then
	if mount -t debugfs debugfs "$debugging" 2> /dev/null; then
		echo "prepare-bpf: mounted debugfs at $debugging"
	else
		echo "prepare-bpf: debugfs could not be mounted at $debugging" >&2
	fi
fi

# Debian splits the headers in two directories; BCC looks behind `build` and `source`.
modules=/lib/modules/$(uname -r)
if [ ! -e "$modules/build" ] && [ ! -e /sys/kernel/kheaders.tar.xz ]; then
	if ! ls -d /usr/src/linux-headers-*-amd64 > /dev/null 2>&1; then
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
			linux-headers-amd64 > /dev/null 2>&1 || {
			echo 'prepare-bpf: linux-headers-amd64 could not be installed' >&2
			exit 1
		}
	fi
	headers=$(ls -d /usr/src/linux-headers-*-amd64 | sort -V | tail -n 1)
	mkdir -p "$modules"
	ln -sfn "$headers" "$modules/build"
	ln -sfn "${headers%-amd64}-common" "$modules/source"
	echo "prepare-bpf: linked $modules/build and source to $headers"
fi
