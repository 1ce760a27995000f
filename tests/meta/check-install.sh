#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs into a scratch directory and builds C and C++ programs against it,
# shared and static, with nothing but pkg-config; then uninstalls.
set -u
. "$(dirname "$0")/report.sh"

prefix=$scratch/prefix
${MAKE:-make} -s install PREFIX="$prefix" > "$scratch/output" 2>&1 || {
	tail -n 20 "$scratch/output"
	failed install 'make install failed'
	finish
}
cat > "$scratch/user.c" << 'PROGRAM'
#include <libsym/libsym.h>

#include <string.h>

int main(void)
{
	return strcmp(sym_version(), EXPECTED) != 0;
}
PROGRAM
cp "$scratch/user.c" "$scratch/user.cc"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
version=$(pkg-config --modversion libsym)

build() { # name, compiler and options, source, libraries
	# shellcheck disable=SC2086 # lists of options
	if $2 -Wall -Werror -DEXPECTED="\"$version\"" $(pkg-config --cflags libsym) -o "$scratch/user" "$3" $4 \
		> "$scratch/output" 2>&1 && LD_LIBRARY_PATH="$prefix/lib" "$scratch/user"; then
		ok "installed library: $1"
	else
		cat "$scratch/output"
		failed "installed library: $1" 'does not build or run'
	fi
}
shared=$(pkg-config --libs libsym)
static="$prefix/lib/libsym.a $(pkg-config --static --libs libsym | sed 's/-lsym//')"
build 'C, shared' "${CC:-gcc} -std=c11" "$scratch/user.c" "$shared"
build 'C++, shared' "${CXX:-g++} -std=c++17" "$scratch/user.cc" "$shared"
cat > "$scratch/bcc.c" << 'PROGRAM'
#include <libsym/libsym-bcc.h>

#include <string.h>
#include <unistd.h>

int main(void)
{
	void *cache = bcc_symcache_new(getpid(), NULL);
	struct bcc_symbol symbol;
	int found = bcc_symcache_resolve(cache, (uint64_t)&main, &symbol);

	if (found == 0)
		found = strcmp(symbol.name, "main");
	bcc_symbol_free_demangle_name(&symbol);
	bcc_free_symcache(cache, getpid());
	return found != 0;
}
PROGRAM
sed 's/&main/\&bcc_symcache_new/; s/"main"/"bcc_symcache_new"/; s/.main.)/&/' "$scratch/bcc.c" > "$scratch/bcc.cc"
build 'C in place of libbcc' "${CC:-gcc} -std=c11" "$scratch/bcc.c" "$(pkg-config --libs libsym-bcc)"
build 'C++ in place of libbcc' "${CXX:-g++} -std=c++17" "$scratch/bcc.cc" "$(pkg-config --libs libsym-bcc)"
# README's program for tool authors, asked about itself.
{
	sed -n '/^## For tool authors/,/^## /{/^```c$/,/^```$/{/^```/!p;};}' README.md
	cat << 'PROGRAM'
#include <string.h>
#include <unistd.h>

int main(void)
{
	uint64_t address = (uint64_t)&print_stack + 1;

	return print_stack(getpid(), &address, 1);
}
PROGRAM
} > "$scratch/author.c"
build 'the program in README' "${CC:-gcc} -std=gnu17" "$scratch/author.c" "$shared"
LD_LIBRARY_PATH="$prefix/lib" "$scratch/user" | grep -qx print_stack &&
	ok 'the program in README names its own function' ||
	failed 'the program in README names its own function' "it said: $("$scratch/user" 2>&1)"
lines=$(sed -n '/^int print_stack/,/^}/p' "$scratch/author.c" | wc -l)
[ "$lines" -le 15 ] && ok 'it has 15 lines' || failed 'it has 15 lines' "$lines"
build 'C, static' "${CC:-gcc} -std=c11" "$scratch/user.c" "$static"
# A program may call its own functions as it likes.
nm -g --defined-only "$prefix/lib/libsym.a" | awk 'NF == 3 && $3 !~ /^sym_/ { print $3 }' > "$scratch/bad"
verdict 'the static library has no names but its own' "$scratch/bad"

: > "$scratch/bad"
for path in bin/dotnet-mapgen share/man/man1/dotnet-mapgen.1 share/man/man3/libsym.3 \
	share/bash-completion/completions/dotnet-mapgen lib/libsym.so lib/libsym-bcc.so lib/libsym-bcc-preload.so \
	include/libsym/libsym-bcc.h share/man/man3/libsym-bcc.3; do
	[ -e "$prefix/$path" ] || echo "$path" >> "$scratch/bad"
done
verdict 'program, manual and completion are installed' "$scratch/bad"

for file in bin/dotnet-mapgen bin/symsrv lib/libsym.so lib/libsym-bcc.so lib/libsym-bcc-preload.so; do
	[ -e "$prefix/$file" ] && readelf -SW "$prefix/$file" | grep -qE ' \.(symtab|debug_info) ' && echo "$file"
done > "$scratch/bad"
verdict 'programs and shared libraries are stripped' "$scratch/bad"

${MAKE:-make} -s uninstall PREFIX="$prefix" > /dev/null 2>&1
find "$prefix" ! -type d > "$scratch/bad"
verdict 'uninstall leaves no file' "$scratch/bad"
finish
