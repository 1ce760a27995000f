#!/bin/sh
# SPDX-License-Identifier: MIT
# Every file below fixtures/ (sources and recipes aside) has a row in
# MANIFEST.md: | path | origin | command | version | licence | sha256 | test |.
# A path that ends in / stands for every file of a directory; its digest is
# that of the sorted list of their digests. With --update the digests of the
# all rows are written first.
set -u
. "$(dirname "$0")/report.sh"
manifest=fixtures/MANIFEST.md

awk -F '|' 'NF >= 8 && $2 !~ /^ *(path|-+) *$/ {
	gsub(/^ *`?|`? *$/, "", $2); gsub(/[ `]/, "", $7); print $2 "\t" $7 }' "$manifest" > "$scratch/rows"

digest() {
	if [ -d "fixtures/$1" ]; then
		(cd "fixtures/$1" && find . -type f | LC_ALL=C sort | xargs sha256sum) | sha256sum | cut -d ' ' -f 1
	else
		sha256sum "fixtures/$1" | cut -d ' ' -f 1
	fi
}

if [ "${1:-}" = --update ]; then
	while IFS='	' read -r path _; do
		sed -i "\\#^| *$path *|#s#^\(\(|[^|]*\)\{5\}\)|[^|]*|#\1| $(digest "$path") |#" "$manifest"
	done < "$scratch/rows"
	exec "$0"
fi

: > "$scratch/bad"
while IFS='	' read -r path sum; do
	if [ ! -e "fixtures/$path" ]; then
		echo "$path: in the manifest, not in the tree"
	elif [ "$(digest "$path")" != "$sum" ]; then
		echo "$path: its digest is $(digest "$path")"
	fi
done < "$scratch/rows" >> "$scratch/bad"

cut -f 1 "$scratch/rows" > "$scratch/paths"
tree_files | sed -n 's|^fixtures/||p' | grep -v -e '^MANIFEST.md$' -e '^src/' -e '^[^/]*\.\(sh\|py\)$' |
	while IFS= read -r file; do
		while IFS= read -r path; do
			case $path in
			*/) case $file in "$path"*) continue 2 ;; esac ;;
			*) [ "$file" != "$path" ] || continue 2 ;;
			esac
		done < "$scratch/paths"
		echo "$file: not in the manifest"
	done >> "$scratch/bad"
verdict "fixtures have their line and digest ($(wc -l < "$scratch/rows") rows)" "$scratch/bad"
finish
