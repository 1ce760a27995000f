#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz-for.sh SECONDS DIRECTORY: runs every fuzzer of DIRECTORY for SECONDS,
# starting from its seed corpus; what it finds stays in DIRECTORY.
set -u
. "$(dirname "$0")/report.sh"

seconds=$1
directory=$2
for fuzzer in "$directory"/fuzz_*; do
	name=${fuzzer##*fuzz_}
	grown=$directory/corpus/$name
	mkdir -p "$grown"
	if "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -verbosity=0 \
		-artifact_prefix="$directory/found-$name-" "$grown" "fixtures/corpus/$name" \
		> "$scratch/output" 2>&1; then
		ok "fuzz $name ($seconds s)"
	else
		tail -n 40 "$scratch/output"
		failed "fuzz $name" "input kept as $directory/found-$name-*"
	fi
done
finish
