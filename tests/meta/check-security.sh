#!/bin/bash
# SPDX-License-Identifier: MIT
# Each row of the threat model in SECURITY.md names its tests in the last cell: `suite/name` of a unit
# test, or the function of a Python test without "test_". They must exist.
set -u
. "$(dirname "$0")/report.sh"

grep -rhoE '^(Parameterized)?Test\([a-z0-9_]+, [a-z0-9_]+' tests | sed -E 's/.*\(//; s/, /\//' > "$scratch/tests"
grep -rhoE --include='*.py' '^def [a-z0-9_]+\(' tests | sed -E 's/^def //; s/\($//; s/^test_//' >> "$scratch/tests"
sort -u -o "$scratch/tests" "$scratch/tests"

# Rows of tables whose heading ends with "test".
awk '
	/^\|/ && !inside { inside = 1; wanted = /\| tests? \|$/; next }
	!/^\|/ { inside = 0 }
	inside && wanted && !/^\| *---/ { count = split($0, cells, "|"); print cells[2] "|" cells[count - 1] }
' SECURITY.md > "$scratch/rows"
[ "$(wc -l < "$scratch/rows")" -ge 15 ] || failed 'tests of SECURITY.md' 'the tables have fewer than 15 rows'
while IFS='|' read -r what named; do
	grep -q '`' <<< "$named" || echo "no test: $what"
	grep -oE '`[^`]+`' <<< "$named" | tr -d '`' | while read -r name; do
		grep -qxF "$name" "$scratch/tests" || echo "no such test: $name: $what"
	done
done < "$scratch/rows" > "$scratch/bad"
verdict 'each row of SECURITY.md has its test' "$scratch/bad"
finish
