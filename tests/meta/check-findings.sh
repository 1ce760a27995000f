#!/bin/sh
# SPDX-License-Identifier: MIT
# check-san finds only what findings.sh shows: undefined behaviour in a child process without standard streams, as the
# one that reads DWARF, whose end its parent survives.
set -u
. "$(dirname "$0")/report.sh"

cat > "$scratch/silent.c" << 'END'
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
	volatile int sum = INT_MAX;

	(void)words;
	if (!fork()) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDERR_FILENO);
		close_range(STDERR_FILENO + 1, ~0U, 0);
		sum += count;
		_exit(sum < 0);
	}
	wait(NULL);
	return 0;
}
END
$CC -D_GNU_SOURCE -fsanitize=address,undefined -fno-sanitize-recover=all -o "$scratch/silent" "$scratch/silent.c" \
	tests/support/sanitizers/*.c || failed findings 'the program with a fault does not compile'
tests/meta/findings.sh silent "$scratch/logs" "$scratch/silent" > "$scratch/output" 2>&1
if grep -q 'silent.c.*overflow' "$scratch/output" && grep -q '^FAILED silent' "$scratch/output"; then
	ok 'findings in a silent child'
else
	cat "$scratch/output"
	failed 'findings in a silent child' 'they are not seen'
fi
finish
