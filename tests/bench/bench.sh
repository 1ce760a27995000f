#!/bin/sh
# SPDX-License-Identifier: MIT
# bench.sh BUILD: every benchmark, one line a figure:
#   NAME ours=VALUE peer=VALUE ratio=R goal=G ok|short
# Peers run in the same process as ours or interleaved with it. A figure that
# falls short is printed, never a failure; the last line counts them.
set -u

build=$1
results=$build/bench/results.txt
mkdir -p "$build/bench"
for program in "$build"/bench/bench_*; do
	case $program in
	*.d | *.o) continue ;;
	esac
	[ -x "$program" ] && "$program"
done > "$results"
if command -v python3 > /dev/null; then
	python3 tests/bench/command_figures.py --build "$build" >> "$results"
	python3 tests/bench/real_map_figures.py --build "$build" >> "$results"
	python3 tests/bench/contract_figures.py --build "$build" >> "$results"
	python3 tests/bench/perf_fix_figures.py --build "$build" >> "$results"
	python3 tests/bench/report_figures.py --build "$build" >> "$results"
	python3 tests/bench/symbolize_figures.py --build "$build" >> "$results"
	python3 tests/bench/stack_figures.py --build "$build" >> "$results"
	python3 tests/bench/record_figures.py --build "$build" >> "$results"
	python3 tests/bench/event_figures.py --build "$build" >> "$results"
	python3 tests/bench/request_figures.py --build "$build" >> "$results"
	python3 tests/bench/flame_figures.py --build "$build" >> "$results"
	python3 tests/bench/profiler_figures.py --build "$build" >> "$results"
	python3 tests/bench/bcc_figures.py --build "$build" >> "$results"
	python3 tests/bench/fleet_figures.py --program "$build/symsrv-bin/symsrv" >> "$results"
	python3 tests/bench/resolve_figures.py --program "$build/symsrv-bin/symsrv" >> "$results"
	python3 tests/bench/idle_figures.py --program "$build/symsrv-bin/symsrv" >> "$results"
	python3 tests/bench/server_figures.py --program "$build/symsrv-bin/symsrv" >> "$results"
else
	echo 'command figures: python3 is not installed' >> "$results"
fi
cat "$results"
awk '$NF == "ok" { ok++ } $NF == "short" { short++ } END { printf "%d figures ok, %d short\n", ok, short }' "$results"
