#!/bin/sh
# SPDX-License-Identifier: MIT
# replay-corpus.sh REPLAY NAME...: runs each fuzz target over its seed corpus,
# fixtures/corpus/NAME. A target without a corpus is a failure.
set -u
. "$(dirname "$0")/report.sh"

replay=$1
shift
for name; do
	corpus=fixtures/corpus/$name
	if [ ! -d "$corpus" ]; then
		failed "replay $name" "no corpus in $corpus"
	elif "$replay" "$name" "$corpus" > "$scratch/output" 2>&1; then
		ok "replay $name ($(find "$corpus" -type f | wc -l) files)"
	else
		tail -n 30 "$scratch/output"
		failed "replay $name" "$replay $name $corpus failed"
	fi
done
finish
