/* SPDX-License-Identifier: MIT */
/*
 * Prints the jitted code of a .NET process, as lines of a perf map. The process needs no
 * preparation and is not stopped.
 *
 *   list_jitted PID
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsym/libsym.h"

static struct sym_error *list(struct sym_snapshot *snapshot)
{
	const struct sym_jit_info *jit;
	struct sym_symbols *symbols;
	size_t size_bytes;
	char *text = NULL;
	struct sym_error *error = sym_snapshot_symbols(snapshot, SYM_SYMBOLS_RUNTIME, &symbols);

	if (error)
		return error;
	error = sym_snapshot_jit(snapshot, &jit);
	if (!error)
		error = sym_symbols_format(symbols, 0, sym_symbols_count(symbols), SYM_MAP_PERF, 0,
					   &text, &size_bytes);
	if (!error) {
		fwrite(text, 1, size_bytes, stdout);
		fprintf(stderr, "%" PRIu64 " methods by %s, %" PRIu64 " not named\n",
			jit->method_count, sym_jit_method_text(jit->method), jit->unnamed_count);
		if (jit->method == SYM_JIT_NONE && jit->contract_reason)
			fprintf(stderr, "%s\n", jit->contract_reason);
	}
	free(text);
	sym_symbols_destroy(symbols);
	return error;
}

int main(int argc, char **argv)
{
	struct sym_snapshot *snapshot;
	struct sym_error *error;

	if (argc != 2) {
		fprintf(stderr, "usage: list_jitted PID\n");
		return 2;
	}
	error = sym_snapshot_open((int32_t)strtol(argv[1], NULL, 10), NULL, &snapshot);
	if (!error) {
		error = list(snapshot);
		sym_snapshot_close(snapshot);
	}
	if (!error)
		return 0;
	fprintf(stderr, "%s\n", sym_error_message(error));
	sym_error_destroy(error);
	return 1;
}
