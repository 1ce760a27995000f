#!/bin/sh
# SPDX-License-Identifier: MIT
# replay-corpus.sh REPLAY...: runs each fuzz target's replay program over its
# seed corpus, fixtures/corpus/NAME. A target without a corpus is a failure.
set -u
. "$(dirname "$0")/report.sh"

for replay; do
	name=${replay##*replay_}
	corpus=fixtures/corpus/$name
	if [ ! -d "$corpus" ]; then
		failed "replay $name" "no corpus in $corpus"
	elif "$replay" "$corpus" > "$scratch/output" 2>&1; then
		ok "replay $name ($(find "$corpus" -type f | wc -l) files)"
	else
		tail -n 30 "$scratch/output"
		failed "replay $name" "$replay $corpus failed"
	fi
done
finish
