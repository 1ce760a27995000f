#!/bin/bash
# SPDX-License-Identifier: MIT
# libsym.so exports what libsym.h and its parts declare with SYM_API, in the node that libsym.map
# lists it in. A node that was released is frozen: tests/meta/abi/NODE lists its names, and the node
# must stay that list. "check-abi.sh --freeze" writes the list of the newest node at a release.
set -u
. "$(dirname "$0")/report.sh"

library=${BUILD:-build}/libsym.so
map=libsym/libsym.map
frozen=tests/meta/abi

# NODE NAME of each global name in a version script; nodes without a name are "-".
map_names() { # version script
	sed -e 's|/\*.*\*/||; s/#.*//' "$1" | tr '\n\t' '  ' | sed -E 's/[{};]|global:|local:/\n&\n/g' | awk '
		{ gsub(/^ +| +$/, "") }
		$0 == "" || /^\/\*/ || /\*\/$/ { next }
		$0 == "{" { node = last == "" ? "-" : last; inside = 1; last = ""; next }
		$0 == "}" { inside = 0; last = ""; next }
		$0 == "global:" { global = 1; next }
		$0 == "local:" { global = 0; next }
		$0 == ";" { if (inside && global && last != "") print node, last; last = ""; next }
		{ last = $0 }' | LC_ALL=C sort
}

# NODE NAME of each exported function.
library_names() { # library
	nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" {
		count = split($3, parts, /@+/)
		print (count > 1 ? parts[2] : "-"), parts[1]
	}' | LC_ALL=C sort
}

# Names that a released node has lost or gained.
node_changes() { # NODE NAME pairs, directory of frozen lists
	for list in "$2"/*; do
		[ -e "$list" ] || continue
		node=${list##*/}
		awk -v node="$node" '$1 == node { print $2 }' "$1" | LC_ALL=C sort | diff "$list" - |
			sed -n -e "s/^< /$node: released, no longer there: /p" -e "s/^> /$node: was added after the release: /p"
	done
}

map_names "$map" > "$scratch/mapped"
newest=$(awk '{ print $1 }' "$scratch/mapped" | sort -V | tail -n 1)
if [ "${1:-}" = --freeze ]; then
	mkdir -p "$frozen"
	awk -v node="$newest" '$1 == node { print $2 }' "$scratch/mapped" > "$frozen/$newest"
	exit
fi

awk 'BEGIN { RS = ";" } /SYM_API/ && match($0, /sym_[a-z0-9_]+\(/) {
	text = substr($0, index($0, "SYM_API"))
	while (match(text, /sym_[a-z0-9_]+\(/)) {
		print substr(text, RSTART, RLENGTH - 1)
		break
	}
}' libsym/libsym.h libsym/sym_*.h | LC_ALL=C sort -u > "$scratch/declared"
library_names "$library" > "$scratch/exported"
awk '{ print $2 }' "$scratch/exported" | LC_ALL=C sort -u | diff "$scratch/declared" - |
	sed -n -e 's/^< /declared, not exported: /p' -e 's/^> /exported, not declared: /p' > "$scratch/bad"
verdict "exported names = declared names ($(wc -l < "$scratch/declared"))" "$scratch/bad"

diff "$scratch/mapped" "$scratch/exported" |
	sed -n -e 's/^< /in libsym.map, not exported in that node: /p' -e 's/^> /exported in a node that libsym.map does not list it in: /p' > "$scratch/bad"
verdict 'libsym.map lists every exported name in its node' "$scratch/bad"

for script in libsym/libsym.map libsym/bcc/*.map; do
	map_names "$script" | grep -F '*' | sed "s|^|$script: a pattern: |"
done > "$scratch/bad"
verdict 'version scripts have no patterns' "$scratch/bad"

# Every node but the newest one was released.
node_changes "$scratch/mapped" "$frozen" > "$scratch/bad"
awk '{ print $1 }' "$scratch/mapped" | sort -u | grep -vxF "$newest" | while read -r node; do
	[ -e "$frozen/$node" ] || echo "$node is not frozen: $frozen/$node is missing"
done >> "$scratch/bad"
verdict 'released nodes are as they were released' "$scratch/bad"

# That comparison sees a name that goes and one that comes.
mkdir "$scratch/abi"
printf '%s\n' sym_first sym_second > "$scratch/abi/LIBSYM_9.9"
printf '%s\n' 'LIBSYM_9.9 sym_second' 'LIBSYM_9.9 sym_third' > "$scratch/changed"
node_changes "$scratch/changed" "$scratch/abi" > "$scratch/changes"
printf '%s\n' 'LIBSYM_9.9: released, no longer there: sym_first' 'LIBSYM_9.9: was added after the release: sym_third' |
	diff - "$scratch/changes" > "$scratch/bad"
verdict 'a changed node would be reported' "$scratch/bad"

objdump -p "$library" | awk '$1 == "SONAME" { print $2 }' > "$scratch/soname"
major=$(sed -n 's/^#define SYM_VERSION_MAJOR //p' libsym/libsym.h)
if [ "$(cat "$scratch/soname")" = "libsym.so.$major" ]; then
	ok 'soname is the major version'
else
	failed 'soname is the major version' "it is $(cat "$scratch/soname")"
fi

# libsym-bcc.so has the functions of its header, without a version; nothing more of libsym may show.
sed -n 's/^SYM_BCC_API .*[ *]\([a-z_0-9]*\)(.*/- \1/p' libsym/bcc/libsym-bcc.h | LC_ALL=C sort -u > "$scratch/declared"
library_names "${BUILD:-build}/libsym-bcc.so" > "$scratch/exported"
diff "$scratch/declared" "$scratch/exported" |
	sed -n -e 's/^< - /declared, not exported: /p' -e 's/^> /exported, not declared: /p' > "$scratch/bad"
map_names libsym/bcc/libsym-bcc.map | diff - "$scratch/exported" |
	sed -n -e 's/^< /in libsym-bcc.map, not exported: /p' -e 's/^> /exported, not in libsym-bcc.map: /p' >> "$scratch/bad"
verdict "libsym-bcc: exported names = declared names ($(wc -l < "$scratch/declared"))" "$scratch/bad"

library_names "${BUILD:-build}/libsym-bcc-preload.so" | sed 's/^- //' > "$scratch/all"
grep -vx dlsym "$scratch/all" > "$scratch/preloaded"
sed 's/^- //' "$scratch/declared" | comm -13 - "$scratch/preloaded" | sed 's/^/exported, not declared: /' > "$scratch/bad"
sed -n 's/^\tREPLACE(\(.*\)),$/\1/p' libsym/bcc/preload.c | LC_ALL=C sort -u | diff - "$scratch/preloaded" >> "$scratch/bad"
map_names libsym/bcc/libsym-bcc-preload.map | sed 's/^- //' | diff - "$scratch/all" >> "$scratch/bad"
verdict 'libsym-bcc-preload: exported names = replaced names, and dlsym' "$scratch/bad"
finish
