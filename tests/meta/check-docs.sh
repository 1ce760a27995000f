#!/bin/bash
# SPDX-License-Identifier: MIT
# Help text, man page and completion of each program name the same commands and options, with the
# same defaults; the documents name only what exists. The
# option table behind --help is the original.
set -u
. "$(dirname "$0")/report.sh"

program=${BUILD:-build}/dotnet-mapgen
man=mapgen/dotnet-mapgen.1
completion=$(echo mapgen/*.bash)
for file in "$program" "$man" "$completion"; do
	[ -e "$file" ] || {
		failed 'help, man page and completion' "$file is missing"
		finish
	}
done

"$program" --help | sed -n 's/^  \([a-z-]*\)  *[A-Z].*/\1/p' > "$scratch/commands"

help_options() { # command
	"$program" "$1" --help | grep -oE '^ {2,6}(-[a-zA-Z], )?--[a-z-]+' | grep -oE -e '--[a-z-]+' | sort -u
}

# An option stands in the section of its command, or in one of those that have the options of several:
# "Options of every command but A and B", "Options of A, B, C".
man_options() { # command
	sed 's/\\-/-/g' "$man" | awk -v command="$1" '
		/^\.S[sh] / {
			listed = $0 ~ ("[ ,]" command "([ ,]|$)")
			inside = $0 == ".Ss " command || (/^\.Ss Options of every command/ ? !listed : /^\.Ss Options of/ && listed)
		}
		inside && /^\.It Fl/ { for (i = 1; i <= NF; i++) if ($i == "Fl" && $(i + 1) ~ /^-[a-z]/) print "-" $(i + 1) }' |
		sort -u
}

complete_words() { # word...: what the completion offers for the last one
	# shellcheck disable=SC1090
	. "./$completion"
	COMP_WORDS=(dotnet-mapgen "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_dotnet_mapgen
	printf '%s\n' "${COMPREPLY[@]}" | sed 's/=$//' | sort -u
}

same() { # name, file, file
	diff "$2" "$3" > "$scratch/bad"
	verdict "$1" "$scratch/bad"
}

# Debian's bpftrace loses stacks where the map is large, but with this variable.
grep -nE "bpftrace (-e|\.\.\.)" README.md docs/*.md "$man" $(find mapgen -name '*.c' ! -path '*/stacktext/*') | grep -v 'BPFTRACE_CACHE_USER_SYMBOLS=1' > "$scratch/bad"
verdict 'lines with bpftrace have BPFTRACE_CACHE_USER_SYMBOLS=1' "$scratch/bad"

# Probes of other tools that destroy a .NET process.
for document in README.md docs/probes.md "$man"; do
	for word in uretprobe inherit uprobe_events; do
		grep -q "$word" "$document" || echo "$document does not warn: $word is missing"
	done
done > "$scratch/bad"
verdict 'documents warn of probes that destroy .NET' "$scratch/bad"

grep -oE '^\.Cm [a-z-]+' "$man" | cut -d ' ' -f 2 | sort -u > "$scratch/man"
sort -u "$scratch/commands" > "$scratch/help"
same 'commands: --help = man page' "$scratch/help" "$scratch/man"
complete_words '' | grep -v '^-' > "$scratch/completion"
same 'commands: --help = completion' "$scratch/help" "$scratch/completion"

# Each help text ends with two to four examples of that command.
while read -r command; do
	"$program" "$command" --help | sed -n '/^Examples:/,/^$/p' | grep '^  ' > "$scratch/examples"
	count=$(wc -l < "$scratch/examples")
	{ [ "$count" -ge 2 ] && [ "$count" -le 4 ]; } || echo "$command: $count examples, not 2 to 4 (struct command in mapgen/main.c)"
	grep -v "dotnet-mapgen $command " "$scratch/examples" | grep -vx "  dotnet-mapgen $command" | sed "s/^/$command: an example of another command:/"
done < "$scratch/commands" > "$scratch/bad"
verdict 'help of every command has examples' "$scratch/bad"

while read -r command; do
	help_options "$command" > "$scratch/help"
	[ -s "$scratch/help" ] || failed "options of $command" 'the help text lists none'
	man_options "$command" > "$scratch/man"
	same "options of $command: --help = man page" "$scratch/help" "$scratch/man"
	complete_words "$command" -- > "$scratch/completion"
	same "options of $command: --help = completion" "$scratch/help" "$scratch/completion"
done < "$scratch/commands"

# symsrv: each option of --help has an item in its man page, with the default that --help has in brackets.
server=${BUILD:-build}/symsrv-bin/symsrv
"$server" --help | sed -nE 's/^  --([a-z-]+).*/\1/p' | sort -u > "$scratch/help"
sed -nE 's/^\.It Fl \\-([a-z\\-]+).*/\1/p' symsrv/symsrv.8 | tr -d '\\' | sort -u > "$scratch/man"
same 'symsrv: options: --help = man page' "$scratch/help" "$scratch/man"
"$server" --help | sed -nE 's/^  --([a-z-]+).*\[([^]]*)\]$/\1 \2/p' | sort > "$scratch/help"
[ "$(wc -l < "$scratch/help")" -ge 20 ] || failed 'symsrv: defaults' 'the help text has fewer than 20'
tr -d '\\' < symsrv/symsrv.8 | awk '/^\.It Fl -/ { option = substr($3, 2) } /^\.(El|Sh|Ss)/ { option = "" }
	option != "" && /^Default: / { sub(/^Default: /, ""); sub(/\.$/, ""); print option, $0 }' | sort > "$scratch/man"
comm -23 "$scratch/help" "$scratch/man" | sed 's/^/not in the man page: /' > "$scratch/bad"
verdict 'symsrv: defaults: --help = man page' "$scratch/bad"

# libsym.3 and libsym-bcc.3 name only functions of the headers.
for page in libsym/libsym.3 libsym/bcc/libsym-bcc.3; do
	sed -nE 's/^\.(Fn|Fo|Xr) ([a-z_0-9]+).*/\2/p' "$page" | grep -E '^(sym|bcc)_' | sort -u > "$scratch/named"
	[ -s "$scratch/named" ] || echo "$page names no function"
	grep -ohE '\b_*(sym|bcc)_[a-z_0-9]+\(' libsym/libsym.h libsym/sym_*.h libsym/bcc/libsym-bcc.h | tr -d '(' | sort -u |
		comm -23 "$scratch/named" - | sed "s|^|$page: not in a header: |"
done > "$scratch/bad"
verdict 'functions in the library pages exist' "$scratch/bad"

# FUNCTIONS of libsym.3 has each exported function, in the section of the header that declares it.
sed -n 's/^\t\(sym_[a-z_0-9]*\);.*/\1/p' libsym/libsym.map | sort -u > "$scratch/exported"
for header in libsym/libsym.h libsym/sym_*.h; do
	sed -nE 's/^([^ *\t/].*)?\b(sym_[a-z_0-9]+)\(.*/\2/p' "$header" | sort -u | comm -12 - "$scratch/exported" | sed "s|^|${header#libsym/} |"
done | sort > "$scratch/declared"
sed -n '/^\.Sh FUNCTIONS/,/^\.Sh EXAMPLES/p' libsym/libsym.3 |
	awk '/^\.Ss / { header = $2 } /^\.It Fn / { print header, $3 }' | sort > "$scratch/listed"
[ "$(wc -l < "$scratch/exported")" -gt 100 ] || failed 'functions: libsym.map = libsym.3' 'libsym.map seems to list none'
same 'functions: headers = libsym.3' "$scratch/declared" "$scratch/listed"

# The fields of JSON: keys that the sources pack, and what that section has behind Li.
find mapgen -name '*.c' ! -path '*/stacktext/*' ! -name speedscope_view.c ! -name flame_page.c -exec cat {} + | awk '/json_pack\(|json_object_set/ { inside = 1 } inside { print } /;/ { inside = 0 }' |
	grep -oE '"[a-z]+(_[a-z]+)*",' | tr -d '",' > "$scratch/packed"
grep -ohE '\\"[a-z_]+\\":' $(find mapgen -name '*.c' ! -path '*/stacktext/*' ! -name speedscope_view.c ! -name flame_page.c) | tr -d '\\":' | sort -u - "$scratch/packed" > "$scratch/keys"
[ "$(wc -l < "$scratch/keys")" -gt 100 ] || failed 'fields of JSON: sources = man page' 'the sources seem to pack none'
sed -n '/^\.Sh JSON/,/^\.Sh ENV/p' "$man" | grep -w Li | tr -c 'a-z_\n' '\n' | sort -u > "$scratch/words"
comm -23 "$scratch/keys" "$scratch/words" | sed 's/^/not in the man page: /' > "$scratch/bad"
verdict 'fields of JSON are in the man page' "$scratch/bad"

if command -v mandoc > /dev/null; then
	mandoc -T lint -W warning "$man" libsym/libsym.3 libsym/bcc/libsym-bcc.3 symsrv/symsrv.8 > "$scratch/bad" 2>&1
	verdict 'mandoc has no warning' "$scratch/bad"
else
	skipped 'mandoc has no warning' 'mandoc is not installed'
fi

# The documents: commands, options, make targets, paths.
documents="README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md CHANGELOG.md $(echo docs/*.md)"
sed -n 's/^\([a-z][a-z-]*\):.*/\1/p; s/^## \([a-z-]*\):.*/\1/p' Makefile | sort -u > "$scratch/targets"
: > "$scratch/bad"
for document in $documents; do
	[ -e "$document" ] || {
		echo "$document is missing"
		continue
	}
	grep -oE '(\./bootstrap|\bmake) [a-z]+(-[a-z]+)*' "$document" | awk '{ print $2 }' | sort -u |
		comm -23 - "$scratch/targets" | sed "s|^|$document: no such target: |"
	# Commands stand in backquotes, or in a transcript behind a prompt or an indentation.
	grep -oE '(`|\$ |^    )dotnet-mapgen [a-z]+(-[a-z]+)*' "$document" | sed 's/.* //' | sort -u |
		grep -vxF -f "$scratch/commands" |
		sed "s|^|$document: no such command: |"
	grep -oE '\]\([a-zA-Z0-9_./-]+' "$document" | sed 's/^](//' | while read -r path; do
		[ -e "$(dirname "$document")/$path" ] || echo "$document: no such file: $path"
	done
	# A word in backquotes that looks like a path of this tree.
	grep -oE '`(libsym|mapgen|tests|fixtures)/[a-z0-9_./-]+`' "$document" | tr -d '`' | while read -r path; do
		[ -e "$path" ] || echo "$document: no such file: $path"
	done
done > "$scratch/bad"
while read -r command; do help_options "$command"; done < "$scratch/commands" | sort -u > "$scratch/options"
printf '%s\n' --version --help >> "$scratch/options"
grep -hoE 'dotnet-mapgen [^`|]*' README.md | grep -oE -e '--[a-z][a-z-]+' | sort -u |
	grep -vxF -f "$scratch/options" | sed 's/^/README.md: no such option: /' >> "$scratch/bad"
verdict 'documents name only what exists' "$scratch/bad"

while read -r command; do
	grep -q "\`dotnet-mapgen $command[ \`]" README.md || echo "README.md: nothing about $command"
done < "$scratch/commands" > "$scratch/bad"
verdict 'README has every command' "$scratch/bad"
finish
