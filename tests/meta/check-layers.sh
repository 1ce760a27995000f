#!/bin/sh
# SPDX-License-Identifier: MIT
# Includes point to lower layers only (layers.txt); programs see libsym.h and
# base/ only; some facts have exactly one owner.
set -u
. "$(dirname "$0")/report.sh"
layers=$(dirname "$0")/layers.txt

level_of() {
	while read -r level pattern; do
		case $level in '#'*) continue ;; esac
		# shellcheck disable=SC2254 # a pattern on purpose
		case $1 in
		$pattern)
			echo "$level"
			return
			;;
		esac
	done < "$layers"
	echo none
}

tree_files | grep '\.[ch]$' > "$scratch/sources"
xargs grep -nH '^[[:space:]]*#[[:space:]]*include' < "$scratch/sources" |
	sed -n 's/^\([^:]*\):\([0-9]*\):[^"<]*["<]\([^">]*\)[">].*/\1 \2 \3/p' > "$scratch/includes"

: > "$scratch/bad"
grep '^libsym/' "$scratch/sources" | while IFS= read -r file; do
	[ "$(level_of "$file")" != none ] || echo "$file is in no layer of layers.txt"
done > "$scratch/bad"
grep '^libsym/' "$scratch/includes" | grep -E ' (libsym|mapgen|symsrv|tests)/' |
	while read -r file line included; do
		from=$(level_of "$file")
		to=$(level_of "$included")
		if [ "$to" = none ]; then
			echo "$file:$line: $included is no part of the library"
		elif [ "$from" != none ] && [ "$to" -gt "$from" ]; then
			echo "$file:$line: level $from includes $included of level $to"
		fi
	done >> "$scratch/bad"
xargs grep -nHE '^#include "[^/"]+"' < "$scratch/sources" | sed 's/$/ without its directory/' >> "$scratch/bad"
verdict 'includes point to lower layers' "$scratch/bad"

awk '$1 ~ /^(mapgen|symsrv|libsym\/examples|libsym\/bcc)\// && $3 ~ /^libsym\// &&
	$3 != "libsym/libsym.h" && $3 !~ /^libsym\/base\// && !($1 ~ /^libsym\/bcc\// && $3 ~ /^libsym\/bcc\//) &&
	!($1 ~ /^libsym\/examples\// && $3 ~ /^libsym\/examples\//) { print $1 ":" $2 ": " $3 }' \
	"$scratch/includes" > "$scratch/bad"
verdict 'programs include libsym.h and base only' "$scratch/bad"

only_includers() { # header, file...
	header=$1
	shift
	awk -v header="$header" -v owners=" $* " '$3 == header && !index(owners, " " $1 " ") { print $1 ":" $2 }' \
		"$scratch/includes" > "$scratch/bad"
	verdict "only $* includes $header" "$scratch/bad"
}
only_includers uthash.h libsym/base/hash.h
only_includers microhttpd.h symsrv/server.c symsrv/response.c
only_includers curl/curl.h symsrv/upstream.c mapgen/curl_api.h

# The place of a perf map is spelt once in the library, and not in the programs. Where libbcc
# looks for one is a fact of its own.
grep -E '^(libsym|mapgen|symsrv)/.*\.c$' "$scratch/sources" | grep -v '^libsym/bcc/perf_map_calls.c$' |
	xargs grep -lE '"[^"]*(/tmp/perf-|perf-%)' > "$scratch/spelt"
if [ "$(wc -l < "$scratch/spelt")" -gt 1 ]; then
	cp "$scratch/spelt" "$scratch/bad"
else
	: > "$scratch/bad"
fi
verdict 'the path of a perf map is spelt in one file' "$scratch/bad"
finish
