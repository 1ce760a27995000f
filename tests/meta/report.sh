# SPDX-License-Identifier: MIT
# Sourced by the checks. One line a finding, in the form that all-checks.sh
# counts; knows nothing of what is being checked.

report_failures=0

ok() {
	printf 'ok %s\n' "$1"
}

failed() {
	printf 'FAILED %s: %s\n' "$1" "$2"
	report_failures=$((report_failures + 1))
}

skipped() {
	printf 'skipped %s: %s\n' "$1" "$2"
}

# verdict NAME FILE: ok when FILE is empty, else its lines and one failure.
verdict() {
	if [ -s "$2" ]; then
		sed 's/^/    /' "$2"
		failed "$1" "$(wc -l < "$2") findings, listed above"
	else
		ok "$1"
	fi
}

finish() {
	[ "$report_failures" -eq 0 ]
	exit
}

# Files of the tree, tracked or new, without what was built.
tree_files() {
	if git rev-parse --is-inside-work-tree > /dev/null 2>&1; then
		git ls-files -co --exclude-standard | while IFS= read -r file; do
			[ ! -e "$file" ] || printf '%s\n' "$file"
		done
	else
		find . -type f ! -path './build/*' ! -path './.git/*' | sed 's|^\./||'
	fi | LC_ALL=C sort
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
