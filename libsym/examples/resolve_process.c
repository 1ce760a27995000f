/* SPDX-License-Identifier: MIT */
/*
 * Resolves addresses of a running process.
 *
 *   resolve_process PID < addresses      one hexadecimal address a line
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsym/libsym.h"

static int fail(struct sym_error *error)
{
	fprintf(stderr, "%s\n", sym_error_message(error));
	sym_error_destroy(error);
	return 1;
}

static void print_answer(const struct sym_answer *answer)
{
	if (answer->name) /* or the text of a stripped function */
		printf("%" PRIx64 " %s+0x%" PRIx64 " (%s)\n", answer->address, answer->name,
		       answer->offset_bytes, answer->image_path);
	else
		printf("%" PRIx64 " [%s%s%s] (%s)\n", answer->address,
		       sym_status_text(answer->status), answer->reason ? ": " : "",
		       answer->reason ? answer->reason : "", answer->image_path);
}

static struct sym_error *print_names(struct sym_snapshot *snapshot)
{
	enum {
		BATCH = 1000
	};
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;
	uint64_t addresses[BATCH];
	struct sym_error *error = sym_result_create(&result);
	size_t count = BATCH;

	if (!error)
		error = sym_resolver_create(snapshot, &resolver);
	while (!error && count == BATCH) {
		for (count = 0; count < BATCH && scanf("%" SCNx64, &addresses[count]) == 1;)
			count++;
		error = sym_resolver_resolve(resolver, addresses, count, result);
		for (size_t i = 0; !error && i < count; i++)
			print_answer(sym_result_at(result, i));
	}
	sym_resolver_destroy(resolver);
	sym_result_destroy(result);
	return error;
}

int main(int argc, char **argv)
{
	struct sym_snapshot *snapshot;
	struct sym_error *error;

	if (argc != 2) {
		fprintf(stderr, "usage: resolve_process PID < addresses\n");
		return 2;
	}
	error = sym_snapshot_open((int32_t)strtol(argv[1], NULL, 10), NULL, &snapshot);
	if (error)
		return fail(error);
	error = print_names(snapshot);
	sym_snapshot_close(snapshot);
	return error ? fail(error) : 0;
}
