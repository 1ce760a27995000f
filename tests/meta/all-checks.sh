#!/bin/sh
# SPDX-License-Identifier: MIT
# all-checks.sh TARGET... [-- TARGET...]...: runs make targets, shows their
# output and ends with the counts, on a line alone. Targets up to the first
# `--` run one after another. What follows are lanes, which run side by side:
# the first shows what it says as it comes, the others afterwards, and each has
# a lower priority than the one before it. A failing target does not keep the next from running.
# Counts lines `ok`, `FAILED`, `skipped`, and Criterion's synthesis. A target
# that fails without saying what, or says nothing at all, is a failure.
# Seconds and CPU minutes of each target and each lane are printed. A lane that has run for
# LANE_SECONDS is ended, with all that it has started.
set -u

make=${MAKE:-make}
logs=build/checks
limit=${LANE_SECONDS:-3600}

# CPU minutes of all children that have ended so far. Not in a subshell, which has no children.
read_cpu_minutes() {
	times > "$logs/times.$$"
	cpu=$(awk 'NR == 2 { split($1, user, "m"); split($2, kernel, "m")
		printf "%.1f", user[1] + kernel[1] + (user[2] + kernel[2]) / 60 }' "$logs/times.$$")
	rm "$logs/times.$$"
}

# Writes to a file and shows that: a process that outlives the target cannot keep anyone waiting for the end of a pipe.
run_target() {
	target=$1
	left=$((limit - ($(date +%s) - lane_began)))
	[ "$left" -gt 0 ] || left=1
	: > "$logs/$target.log"
	# shellcheck disable=SC2086 # $make may carry options
	timeout -k 30 "$left" $make --no-print-directory "$target" >> "$logs/$target.log" 2>&1 < /dev/null &
	running=$!
	tail -s 0.2 -n +1 -f --pid="$running" "$logs/$target.log" 2> /dev/null
	wait "$running"
	status=$?
	kill -s KILL -- "-$running" 2> /dev/null # what the target has left behind
	running=
	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
		printf 'FAILED %s: its lane did not end within %s s\n' "$target" "$limit" | tee -a "$logs/$target.log"
	fi
	echo "$status" > "$logs/$target.status"
}

run_lane() {
	lane_began=$(date +%s)
	cpu=0
	for target; do
		printf '\n== %s\n' "$target"
		began=$(date +%s)
		before=$cpu
		run_target "$target"
		read_cpu_minutes
		printf '   %s: %s s, %s CPU minutes\n' "$target" "$(($(date +%s) - began))" \
			"$(awk -v all="$cpu" -v before="$before" 'BEGIN { printf "%.1f", all - before }')"
	done
	printf '%s s, %s CPU minutes: %s\n' "$(($(date +%s) - lane_began))" "$cpu" "$*" >> "$logs/times"
}

running=
end_running() {
	[ -z "$running" ] || kill -- "-$running" 2> /dev/null
	exit 1
}

if [ "${1-}" = --lane ]; then
	shift
	trap end_running HUP INT TERM
	run_lane "$@"
	exit
fi

rm -rf "$logs"
mkdir -p "$logs"
lanes=0
targets=
: > "$logs/lane.0"
for word; do
	if [ "$word" = -- ]; then
		lanes=$((lanes + 1))
		: > "$logs/lane.$lanes"
	else
		targets="$targets $word"
		printf '%s\n' "$word" >> "$logs/lane.$lanes"
	fi
done

pids=
end_lanes() {
	[ -z "$running" ] || kill -- "-$running" 2> /dev/null
	for pid in $pids; do
		kill -- "-$pid" 2> /dev/null
	done
	exit 1
}
trap end_lanes HUP INT TERM

# Each in a session of its own, so that all of it can be ended, and waited for, which a signal interrupts.
start_lane() {
	number=$1
	shift
	setsid nice -n $((5 * (number - 1))) "$0" --lane "$@" < /dev/null &
	pids="$pids $!"
}

# Lanes disturb each other: a few tests that fail run again, alone (runner.py, run_units.py).
[ "$lanes" -eq 0 ] || export SECOND_RUN=1

# shellcheck disable=SC2046 # lists of targets
{
	run_lane $(cat "$logs/lane.0")
	for lane in $(seq 2 "$lanes"); do
		start_lane "$lane" $(cat "$logs/lane.$lane") > "$logs/lane.$lane.out" 2>&1
	done
	[ "$lanes" -eq 0 ] || start_lane 1 $(cat "$logs/lane.1")
}
[ "$lanes" -eq 0 ] || wait $! # lane 1, which was started last
lane=2
for pid in ${pids% *}; do
	wait "$pid"
	cat "$logs/lane.$lane.out"
	lane=$((lane + 1))
done

passed=0
failed=0
skipped=0

count() {
	grep -c "$1" "$2"
}

for target in $targets; do
	log=$logs/$target.log
	status=$(cat "$logs/$target.status" || echo 1)
	good=$(count '^ok ' "$log")
	bad=$(count '^FAILED ' "$log")
	not_run=$(count '^skipped ' "$log")
	synthesis=$(sed 's/\x1b\[[0-9;]*m//g' "$log" |
		sed -n 's/.*Tested: \([0-9]*\) | Passing: \([0-9]*\) | Failing: \([0-9]*\) | Crashing: \([0-9]*\).*/\2 \3 \4/p')
	for_each=$(printf '%s\n' "$synthesis" | awk '{ p += $1; f += $2 + $3 } END { print p + 0, f + 0 }')
	good=$((good + ${for_each% *}))
	bad=$((bad + ${for_each#* }))
	if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((good + not_run)) -eq 0 ]; }; then
		printf 'FAILED %s: ended with status %s and %s results\n' "$target" "$status" "$good" | tee -a "$log"
		bad=1
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
	skipped=$((skipped + not_run))
done

printf '\n'
sed 's/^/    /' "$logs/times"
printf '\n'
if grep -h -e '^FAILED ' -e '^skipped ' "$logs"/*.log; then
	printf '\n'
fi
if grep -h '^failed in its first run' "$logs"/*.log; then
	printf '\n'
fi
if [ "$skipped" -gt 0 ]; then
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
else
	printf '%d passed, %d failed\n' "$passed" "$failed"
fi
[ "$failed" -eq 0 ]
