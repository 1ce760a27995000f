#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs make targets one after another, shows their output and ends with the
# counts, on a line alone. A failing target does not keep the next from
# running. Counts lines `ok`, `FAILED`, `skipped`, and Criterion's synthesis.
# A target that fails without saying what, or says nothing at all, is a failure.
set -u

make=${MAKE:-make}
logs=build/checks
mkdir -p "$logs"
passed=0
failed=0
skipped=0

count() {
	grep -c "$1" "$2"
}

for target; do
	log=$logs/$target.log
	printf '\n== %s\n' "$target"
	# shellcheck disable=SC2086 # $make may carry options
	{ $make --no-print-directory "$target" 2>&1; echo $? > "$logs/status"; } | tee "$log"
	status=$(cat "$logs/status")
	good=$(count '^ok ' "$log")
	bad=$(count '^FAILED ' "$log")
	not_run=$(count '^skipped ' "$log")
	synthesis=$(sed 's/\x1b\[[0-9;]*m//g' "$log" |
		sed -n 's/.*Tested: \([0-9]*\) | Passing: \([0-9]*\) | Failing: \([0-9]*\) | Crashing: \([0-9]*\).*/\2 \3 \4/p')
	for_each=$(printf '%s\n' "$synthesis" | awk '{ p += $1; f += $2 + $3 } END { print p + 0, f + 0 }')
	good=$((good + ${for_each% *}))
	bad=$((bad + ${for_each#* }))
	if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((good + not_run)) -eq 0 ]; }; then
		printf 'FAILED %s: ended with status %s and %s results\n' "$target" "$status" "$good"
		bad=1
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
	skipped=$((skipped + not_run))
done

printf '\n'
if grep -h -e '^FAILED ' -e '^skipped ' "$logs"/*.log; then
	printf '\n'
fi
if [ "$skipped" -gt 0 ]; then
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
else
	printf '%d passed, %d failed\n' "$passed" "$failed"
fi
[ "$failed" -eq 0 ]
