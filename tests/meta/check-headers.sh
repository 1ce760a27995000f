#!/bin/sh
# SPDX-License-Identifier: MIT
# Every header compiles when it is the only include. libsym.h is for others, so
# it must also be clean C and C++, old and new, and have no hidden padding, which would
# make its structs' layout an accident.
set -u

# --alone HEADER: prints it and what the compiler writes, if it does not compile.
if [ "${1-}" = --alone ]; then
	output=$(printf '#include "%s"\n' "$2" | ${CC:-gcc} -xc -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -Wall -Wextra -Werror \
		-Wno-unused-function -Wno-unused-const-variable -fsyntax-only - 2>&1) ||
		printf '%s\n%s\n' "$2" "$output" | head -n 6
	exit
fi

. "$(dirname "$0")/report.sh"

tree_files | grep '\.h$' > "$scratch/headers"
xargs -P "$(nproc)" -n 1 "$0" --alone < "$scratch/headers" > "$scratch/bad"
verdict "every header alone ($(wc -l < "$scratch/headers"))" "$scratch/bad"

strict='-pedantic -Wall -Wextra -Wpadded -Wshadow -Wundef -Werror -fsyntax-only -I.'
printf '#include <libsym/libsym.h>\n' > "$scratch/user.c"
cp "$scratch/user.c" "$scratch/user.cc"
for compiler in gcc clang; do
	command -v "$compiler" > /dev/null || continue
	for dialect in c89 c11; do
		# shellcheck disable=SC2086 # a list of options
		"$compiler" -std=$dialect $strict -Wstrict-prototypes "$scratch/user.c" > "$scratch/bad" 2>&1
		verdict "libsym.h as $dialect with $compiler" "$scratch/bad"
	done
done
for compiler in g++ clang++; do
	command -v "$compiler" > /dev/null || continue
	for dialect in c++98 c++17; do
		# shellcheck disable=SC2086
		"$compiler" -std=$dialect $strict "$scratch/user.cc" > "$scratch/bad" 2>&1
		verdict "libsym.h as $dialect with $compiler" "$scratch/bad"
	done
done
# An example is a block that is indented by five or more, with an empty line before it.
awk '/^ \*$/ { empty = 1; if (inside) print ""; next }
	/^ \*     / && (inside || empty) {
		if (!inside) printf "void example_%d(void);\nvoid example_%d(void)\n{\n", ++n, n
		inside = 1; empty = 0; print substr($0, 8); next
	}
	{ if (inside) print "}"; inside = 0; empty = 0 }' libsym/libsym.h libsym/sym_*.h > "$scratch/examples"
{
	cat << 'END'
#include <inttypes.h>
#include <stdio.h>
#include <libsym/libsym.h>
extern struct sym_snapshot *snapshot;
extern struct sym_symbols *list;
extern struct sym_error *error;
extern uint64_t address;
extern int32_t pid;
END
	cat "$scratch/examples"
} > "$scratch/examples.c"
${CC:-gcc} -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I. "$scratch/examples.c" > "$scratch/bad" 2>&1
verdict "examples of libsym.h compile ($(grep -c '^void.*;$' "$scratch/examples"))" "$scratch/bad"
finish
