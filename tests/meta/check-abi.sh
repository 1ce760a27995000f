#!/bin/sh
# SPDX-License-Identifier: MIT
# What libsym.so exports is what libsym.h and its parts declare with SYM_API, no more, no less.
set -u
. "$(dirname "$0")/report.sh"

library=${BUILD:-build}/libsym.so
awk 'BEGIN { RS = ";" } /SYM_API/ && match($0, /sym_[a-z0-9_]+\(/) {
	text = substr($0, index($0, "SYM_API"))
	while (match(text, /sym_[a-z0-9_]+\(/)) {
		print substr(text, RSTART, RLENGTH - 1)
		break
	}
}' libsym/libsym.h libsym/sym_*.h | LC_ALL=C sort -u > "$scratch/declared"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	LC_ALL=C sort -u > "$scratch/exported"
diff "$scratch/declared" "$scratch/exported" |
	sed -n -e 's/^< /declared, not exported: /p' -e 's/^> /exported, not declared: /p' > "$scratch/bad"
verdict "exported names = declared names ($(wc -l < "$scratch/declared"))" "$scratch/bad"

objdump -p "$library" | awk '$1 == "SONAME" { print $2 }' > "$scratch/soname"
major=$(sed -n 's/^#define SYM_VERSION_MAJOR //p' libsym/libsym.h)
if [ "$(cat "$scratch/soname")" = "libsym.so.$major" ]; then
	ok 'soname is the major version'
else
	failed 'soname is the major version' "it is $(cat "$scratch/soname")"
fi

# libsym-bcc.so has the functions of its header; nothing more of libsym may show.
sed -n 's/^SYM_BCC_API .*[ *]\([a-z_0-9]*\)(.*/\1/p' libsym/bcc/libsym-bcc.h | LC_ALL=C sort -u > "$scratch/declared"
exported() {
	nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort -u
}
exported "${BUILD:-build}/libsym-bcc.so" > "$scratch/exported"
diff "$scratch/declared" "$scratch/exported" |
	sed -n -e 's/^< /declared, not exported: /p' -e 's/^> /exported, not declared: /p' > "$scratch/bad"
verdict "libsym-bcc: exported names = declared names ($(wc -l < "$scratch/declared"))" "$scratch/bad"

exported "${BUILD:-build}/libsym-bcc-preload.so" | grep -vx dlsym > "$scratch/preloaded"
comm -13 "$scratch/declared" "$scratch/preloaded" | sed 's/^/exported, not declared: /' > "$scratch/bad"
sed -n 's/^\tREPLACE(\(.*\)),$/\1/p' libsym/bcc/preload.c | LC_ALL=C sort -u | diff - "$scratch/preloaded" >> "$scratch/bad"
verdict 'libsym-bcc-preload: exported names = replaced names, and dlsym' "$scratch/bad"
finish
