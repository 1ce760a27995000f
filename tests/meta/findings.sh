#!/bin/sh
# SPDX-License-Identifier: MIT
# findings.sh NAME DIRECTORY COMMAND...: runs COMMAND with the sanitizers told
# to log into DIRECTORY. Criterion hides what a sanitizer or valgrind found in
# a test's process, exit code included, so any log that is not empty is a failure.
set -u
. "$(dirname "$0")/report.sh"

name=$1
mkdir -p "$2"
logs=$(cd "$2" && pwd)
shift 2
rm -f "$logs"/*
export ASAN_OPTIONS="log_path=$logs/asan:detect_stack_use_after_return=1"
# libbcc, which the shim's tests ask the same questions, does not free everything.
echo 'leak:libbcc.so' > "$scratch/suppressions"
export LSAN_OPTIONS="suppressions=$scratch/suppressions:print_suppressions=0"
export UBSAN_OPTIONS="print_stacktrace=1:log_path=$logs/ubsan"
export TSAN_OPTIONS="log_path=$logs/tsan"
"$@"
status=$?
find "$logs" -type f -size +0 -exec head -n 40 {} + > "$scratch/findings"
if [ "$status" -ne 0 ]; then
	failed "$name" "the tests ended with status $status"
fi
verdict "$name" "$scratch/findings"
finish
