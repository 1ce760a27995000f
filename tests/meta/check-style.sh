#!/bin/sh
# SPDX-License-Identifier: MIT
# Form of the sources: clang-format, lengths, unique names, a licence line, and
# nothing that holds on one machine only.
set -u
. "$(dirname "$0")/report.sh"

tree_files > "$scratch/files"
grep '\.[ch]$' "$scratch/files" > "$scratch/c"
grep -E '\.(c|h|sh|py|cs|map|in)$|Makefile|bootstrap|^\.ci/' "$scratch/files" > "$scratch/sources"

formatter=${CLANG_FORMAT:-clang-format}
if command -v "$formatter" > /dev/null; then
	xargs "$formatter" --dry-run < "$scratch/c" 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:.*clang-format-violations.*/\1/p' |
		sort | uniq -c | awk '{ print $2 ": " $1 " places" }' > "$scratch/bad"
	verdict 'clang-format agrees' "$scratch/bad"
else
	skipped 'clang-format agrees' 'clang-format is not installed'
fi

xargs wc -l < "$scratch/sources" | awk '$2 != "total" && $1 > 800 { print $2 ": " $1 " lines" }' > "$scratch/bad"
verdict 'files have 800 lines at most' "$scratch/bad"

# In kernel layout only a function has its opening brace in column one.
xargs awk 'FNR == 1 { start = 0 }
	/^\{/ { start = FNR }
	/^\}/ && start { if (FNR - start - 1 > 60) print FILENAME ":" start ": " FNR - start - 1 " lines"; start = 0 }' \
	< "$scratch/c" > "$scratch/bad"
verdict 'functions have 60 lines at most' "$scratch/bad"

# A path that a process of another user names is opened with its rights, by one function. Comments and constant paths do not count.
grep -E '^(libsym|mapgen)/' "$scratch/c" | grep -v '^libsym/examples/' |
	xargs grep -nE '(^|[^A-Za-z0-9_>.])(open|openat|openat2|fopen|freopen|creat|opendir)\(' |
	grep -vE '^[^:]*:[0-9]*:[[:blank:]]*(/?\*|//)|(open|opendir)\("|/\*[^*]*[a-z]\(\)|static int (open|creat)' |
	cut -d: -f1 | sort | uniq -c | awk '{ print $1 "\t" $2 }' | sort -k 2 > "$scratch/opening"
grep -v '^#' tests/meta/opening.txt | cut -f 1,2 | sort -k 2 | diff - "$scratch/opening" |
	sed -n 's/^< \([0-9]*\)\t\(.*\)/\2: opens no longer \1 times itself, as tests\/meta\/opening.txt says/p
		s/^> \([0-9]*\)\t\(.*\)/\2: opens \1 times itself: use libsym\/base\/foreign_file.h, or give the reason in tests\/meta\/opening.txt/p' \
	> "$scratch/bad"
verdict 'one function opens what others may have named' "$scratch/bad"

grep -E '\.(c|h|sh|py|cs)$' "$scratch/files" | sed 's|.*/||' | sort | uniq -d > "$scratch/bad"
verdict 'file names are unique' "$scratch/bad"

sed 's|/.*||' "$scratch/files" | sort -u | grep -vxE \
	-e 'Makefile|bootstrap|(README|ARCHITECTURE|CONTRIBUTING|CHANGELOG|SECURITY)\.md|LICENSE' \
	-e '\.(ci|gitignore|clang-format|editorconfig)|debian|docs|libsym|mapgen|symsrv|tests|fixtures' > "$scratch/bad"
verdict 'nothing else at the top level' "$scratch/bad"

while IFS= read -r file; do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT' || echo "$file"
done < "$scratch/sources" | grep -v '\.\(csproj\|map\|in\)$' > "$scratch/bad"
verdict 'sources name their licence' "$scratch/bad"

# An image is mapped, an object file is on disk, a module is what ECMA-335 calls so.
xargs grep -nE 'struct sym_image \*+(const )?[a-z_]*modules?\>|struct object_file \*+(const )?([a-z]+_)*images?\>[^_(]' \
	< "$scratch/c" > "$scratch/bad"
verdict 'image and object_file are two words' "$scratch/bad"

# Folders are listed in plain-english.txt once their sentences are rewritten.
python3 "$(dirname "$0")/plain_english.py" "$(dirname "$0")/plain-english.txt" < "$scratch/files" > "$scratch/bad" 2>&1
verdict 'sentences are plain English' "$scratch/bad"

python3 "$(dirname "$0")/check_sleeps.py" < "$scratch/files" > "$scratch/bad" 2>&1
verdict 'tests wait for what they need to see' "$scratch/bad"

grep -vE '^(fixtures/(corpus|recorded)/)' "$scratch/files" | xargs grep -nHIE \
	-e '\b(TO[D]O|FIX[M]E|XX[X])\b' \
	-e '(^|[^A-Za-z0-9_./}])/(ro[o]t|ho[m]e|wo[r]k)/[a-z.]' \
	-e '/tmp/w[t]/' \
	-e '\b(nu[g]et\.org|npm[j]s\.|deb[.]debian|pypi[.]org)' > "$scratch/bad"
verdict 'nothing unfinished, nothing of one machine' "$scratch/bad"
finish
