#!/bin/bash
# SPDX-License-Identifier: MIT
# The built files have the protections of CONTRIBUTING.md (Hardening): seen in the files themselves, by
# readelf, so that a flag that a rule forgets is found.
set -u
. "$(dirname "$0")/report.sh"

build=${BUILD:-build}
libraries=("$build"/libsym.so.*.*.* "$build"/libsym-bcc.so.*.*.* "$build"/libsym-bcc-preload.so)
programs=("$build"/dotnet-mapgen "$build"/symsrv-bin/symsrv)
while IFS= read -r source; do
	programs+=("$build/examples/$(basename "$source" .c)")
done < <(printf '%s\n' libsym/examples/*.c)

for product in "${programs[@]}" "${libraries[@]}"; do
	if [ ! -f "$product" ]; then
		echo "$product: is not there"
		continue
	fi
	readelf -hldW "$product" > "$scratch/headers" 2> "$scratch/errors" || echo "$product: readelf cannot read it"
	readelf -sW --dyn-syms "$product" > "$scratch/symbols"
	grep -q 'GNU_RELRO' "$scratch/headers" || echo "$product: no RELRO"
	grep -qE '\(BIND_NOW\)|FLAGS.*(BIND_)?NOW' "$scratch/headers" || echo "$product: no BIND_NOW"
	grep -E 'GNU_STACK' "$scratch/headers" | grep -q ' RW ' || echo "$product: the stack may be executable"
	grep -E '^ +LOAD' "$scratch/headers" | grep -q 'RWE' && echo "$product: a segment can be written and executed"
	grep -qE '\(TEXTREL\)|\(RPATH\)|\(RUNPATH\)' "$scratch/headers" && echo "$product: TEXTREL, RPATH or RUNPATH"
	grep -q '__stack_chk_fail' "$scratch/symbols" || echo "$product: no stack protector"
	grep -qE ' __[a-z]+_chk(@|$)' "$scratch/symbols" || echo "$product: no FORTIFY_SOURCE"
done > "$scratch/bad"
verdict 'programs and libraries are hardened' "$scratch/bad"

for product in "${programs[@]}"; do
	readelf -hdW "$product" 2> "$scratch/errors" | grep -qE 'FLAGS_1.*PIE' || echo "$product: no PIE"
done > "$scratch/bad"
verdict 'programs are position independent' "$scratch/bad"

# The crt files and archives of the distribution decide for a whole program; our objects must not be what lacks it.
case $(${CC:-cc} -dumpmachine) in
x86_64-* | i?86-*) feature='IBT, SHSTK' ;;
aarch64-*) feature='BTI' ;;
*) feature= ;;
esac
readelf -nW "$build/installed/libsym.a" > "$scratch/notes" 2> "$scratch/errors"
if [ -z "$feature" ]; then
	skipped 'objects have protection of branches' 'this machine has none'
elif grep -q "feature.*$feature" "$scratch/notes"; then
	ok 'objects have protection of branches'
else
	failed 'objects have protection of branches' "$build/installed/libsym.a has no note with $feature"
fi
finish
