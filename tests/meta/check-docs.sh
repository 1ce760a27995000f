#!/bin/bash
# SPDX-License-Identifier: MIT
# What the program says of itself, its man page and its completion name the
# same commands and options, and the documents name only what exists. The
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
	"$program" "$1" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -e '--[a-z-]+' | sort -u
}

# Options that every command takes stand in a section of their own, those of every command but one too.
man_options() { # command
	sed 's/\\-/-/g' "$man" | awk -v command="$1" '
		/^\.S[sh] / { inside = $0 == ".Ss " command || (/^\.Ss Options of every command/ && $0 !~ (" but " command "$")) }
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

grep -oE '^\.Cm [a-z-]+' "$man" | cut -d ' ' -f 2 | sort -u > "$scratch/man"
sort -u "$scratch/commands" > "$scratch/help"
same 'commands: --help = man page' "$scratch/help" "$scratch/man"
complete_words '' | grep -v '^-' > "$scratch/completion"
same 'commands: --help = completion' "$scratch/help" "$scratch/completion"
while read -r command; do
	help_options "$command" > "$scratch/help"
	[ -s "$scratch/help" ] || failed "options of $command" 'the help text lists none'
	man_options "$command" > "$scratch/man"
	same "options of $command: --help = man page" "$scratch/help" "$scratch/man"
	complete_words "$command" -- > "$scratch/completion"
	same "options of $command: --help = completion" "$scratch/help" "$scratch/completion"
done < "$scratch/commands"

# The fields of JSON: keys that the sources pack, and what that section has behind Li.
cat mapgen/*.c | awk '/json_pack\(|json_object_set/ { inside = 1 } inside { print } /;/ { inside = 0 }' |
	grep -oE '"[a-z]+(_[a-z]+)*",' | tr -d '",' > "$scratch/packed"
grep -ohE '\\"[a-z_]+\\":' mapgen/*.c | tr -d '\\":' | sort -u - "$scratch/packed" > "$scratch/keys"
[ "$(wc -l < "$scratch/keys")" -gt 100 ] || failed 'fields of JSON: sources = man page' 'the sources seem to pack none'
sed -n '/^\.Sh JSON/,/^\.Sh ENV/s/^.*Li //p' "$man" | tr -c 'a-z_\n' '\n' | sort -u > "$scratch/words"
comm -23 "$scratch/keys" "$scratch/words" | sed 's/^/not in the man page: /' > "$scratch/bad"
verdict 'fields of JSON are in the man page' "$scratch/bad"

if command -v mandoc > /dev/null; then
	mandoc -T lint -W warning "$man" libsym/libsym.3 libsym/bcc/libsym-bcc.3 symsrv/symsrv.8 > "$scratch/bad" 2>&1
	verdict 'mandoc has no warning' "$scratch/bad"
else
	skipped 'mandoc has no warning' 'mandoc is not installed'
fi

# The documents: commands, options, make targets, paths.
documents='README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md CHANGELOG.md'
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
		[ -e "$path" ] || echo "$document: no such file: $path"
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
