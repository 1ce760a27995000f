#!/bin/sh
# SPDX-License-Identifier: MIT
# An include points to the same folder or to one that stands before it in layers.txt; programs see
# libsym.h, base/ and the pure readers of format/ only; some facts have exactly one owner.
set -u
. "$(dirname "$0")/report.sh"
layers=$(dirname "$0")/layers.txt

tree_files | grep '\.[ch]$' > "$scratch/sources"
xargs grep -nH '^[[:space:]]*#[[:space:]]*include' < "$scratch/sources" |
	sed -n 's/^\([^:]*\):\([0-9]*\):[^"<]*["<]\([^">]*\)[">].*/\1 \2 \3/p' > "$scratch/includes"

# A folder has its place in the list, else that of the folder around it.
awk 'function level(path) {
		while (sub(/\/[^\/]*$/, "", path))
			if (path in place) return place[path]
		return 0
	}
	FILENAME == ARGV[1] { sub(/#.*/, ""); for (i = 1; i <= NF; i++) place[$i] = ++count; next }
	FILENAME == ARGV[2] {
		if (/^(libsym|mapgen|symsrv)\// && !level($0)) print $0 " is in no folder of layers.txt"
		next
	}
	$1 ~ /^(libsym|mapgen|symsrv)\// && $3 ~ /^(libsym|mapgen|symsrv|tests)\// {
		if (!level($3)) print $1 ":" $2 ": " $3 " is in no folder of layers.txt"
		else if (level($3) > level($1)) print $1 ":" $2 ": " $3 " stands behind it in layers.txt"
	}' "$layers" "$scratch/sources" "$scratch/includes" > "$scratch/bad"
xargs grep -nHE '^#include "[^/"]+"' < "$scratch/sources" | sed 's/$/ without its directory/' >> "$scratch/bad"
verdict 'includes point to the same folder or to the left' "$scratch/bad"

# Programs have the library's error type, and make errors of it.
awk '$1 ~ /^(mapgen|symsrv|libsym\/examples|libsym\/bcc)\// && $3 ~ /^libsym\// &&
	$3 != "libsym/libsym.h" && $3 != "libsym/error.h" && $3 !~ /^libsym\/(base|format)\// && !($1 ~ /^libsym\/bcc\// && $3 ~ /^libsym\/bcc\//) &&
	!($1 ~ /^libsym\/examples\// && $3 ~ /^libsym\/examples\//) { print $1 ":" $2 ": " $3 }' \
	"$scratch/includes" > "$scratch/bad"
verdict 'programs include libsym.h, error.h, base and format only' "$scratch/bad"

only_includers() { # header, file...
	header=$1
	shift
	awk -v header="$header" -v owners=" $* " '$3 == header && !index(owners, " " $1 " ") { print $1 ":" $2 }' \
		"$scratch/includes" > "$scratch/bad"
	verdict "only $* includes $header" "$scratch/bad"
}
only_includers uthash.h libsym/base/hash.h
only_includers microhttpd.h symsrv/http/request.h symsrv/http/response.c
only_includers curl/curl.h symsrv/upstream/http_client.c symsrv/upstream/s3.h symsrv/upstream/tier_uploads.c symsrv/upstream/url_origin.c mapgen/debuginfo/libcurl_dlopen.h

# The place of a perf map is spelt once in the library, and not in the programs. Where libbcc
# looks for one is a fact of its own.
grep -E '^(libsym|mapgen|symsrv)/.*\.c$' "$scratch/sources" | grep -v '^libsym/bcc/perfmap_calls.c$' |
	xargs grep -lE '"[^"]*(/tmp/perf-|perf-%)' > "$scratch/spelt"
if [ "$(wc -l < "$scratch/spelt")" -gt 1 ]; then
	cp "$scratch/spelt" "$scratch/bad"
else
	: > "$scratch/bad"
fi
verdict 'the path of a perf map is spelt in one file' "$scratch/bad"
finish
