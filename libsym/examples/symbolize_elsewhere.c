/* SPDX-License-Identifier: MIT */
/*
 * Resolves addresses on another machine than that of the process.
 *
 *   symbolize_elsewhere normalize PID < addresses > positions
 *   symbolize_elsewhere resolve DIRECTORY... < positions
 *
 * A position is a line "BUILD-ID VADDR FILE".
 * The second step needs only the files: DIRECTORY is a tree of build-ids like /usr/lib/debug, a
 * cache of debuginfod, or the directory of the files.
 * A vaddr is the same in a file and in its debug file. An offset is not: a debug file has no code.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"

static int fail(struct sym_error *error)
{
	fprintf(stderr, "%s\n", sym_error_message(error));
	sym_error_destroy(error);
	return 1;
}

/* ---- here: addresses to positions ---- */

static void print_position(const struct sym_position *position)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	const char *path = position->image ? sym_image_path(position->image) : "";
	struct sym_error *error;

	if (!position->image || position->image_position == UINT64_MAX) {
		printf("- %" PRIx64 " %s\n", position->address, sym_status_text(position->status));
		return;
	}
	error = sym_image_identity(position->image, &identity);
	if (error || identity.kind != SYM_IDENTITY_ELF || !identity.id_size_bytes) {
		printf("- %" PRIx64 " %s\n", position->address, path);
		sym_error_destroy(error);
		return;
	}
	for (uint32_t i = 0; i < identity.id_size_bytes; i++)
		printf("%02x", identity.id[i]);
	printf(" %" PRIx64 " %s\n", position->image_position,
	       strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

static int normalize(const char *pid)
{
	struct sym_snapshot *snapshot;
	struct sym_position position;
	uint64_t address;
	struct sym_error *error =
		sym_snapshot_open((int32_t)strtol(pid, NULL, 10), NULL, &snapshot);

	if (error)
		return fail(error);
	while (!error && scanf("%" SCNx64, &address) == 1) {
		error = sym_snapshot_normalize(snapshot, &address, 1, &position);
		if (!error)
			print_position(&position);
	}
	sym_snapshot_close(snapshot);
	return error ? fail(error) : 0;
}

/* ---- there: positions to names ---- */

static bool read_id(const char *text, struct sym_identity *identity)
{
	size_t bytes = strlen(text) / 2;

	*identity = (struct sym_identity){ .size = sizeof(*identity), .kind = SYM_IDENTITY_ELF };
	if (bytes < 2 || bytes > sizeof(identity->id))
		return false;
	for (size_t i = 0; i < bytes; i++) {
		char byte[3] = { text[2 * i], text[2 * i + 1], '\0' }, *end;

		identity->id[i] = (uint8_t)strtoul(byte, &end, 16);
		if (end != byte + 2)
			return false;
	}
	identity->id_size_bytes = (uint32_t)bytes;
	return true;
}

static struct sym_error *print_name(const char *id, uint64_t vaddr, const char *file,
				    const char *const *directories, struct sym_result *result)
{
	struct sym_identity identity;
	struct sym_image *image = NULL;
	const struct sym_answer *answer;
	struct sym_error *error;

	if (!read_id(id, &identity)) {
		printf("%s!0x%" PRIx64 " [no build-id]\n", file, vaddr);
		return NULL;
	}
	error = sym_image_open_by_id(&identity, file, directories, &image);
	if (error) {
		printf("%s!0x%" PRIx64 " [%s]\n", file, vaddr, sym_error_message(error));
		sym_error_destroy(error);
		return NULL;
	}
	error = sym_image_resolve(image, SYM_POSITION_VADDR, &vaddr, 1, result);
	answer = error ? NULL : sym_result_at(result, 0);
	if (answer && answer->status == SYM_RESOLVED)
		printf("%s!0x%" PRIx64 " %s+0x%" PRIx64 "\n", file, vaddr, answer->name,
		       answer->offset_bytes);
	else if (answer)
		printf("%s!0x%" PRIx64 " [%s]\n", file, vaddr, sym_status_text(answer->status));
	sym_image_close(image);
	return error;
}

static int resolve(const char *const *directories)
{
	struct sym_result *result = NULL;
	struct sym_error *error = sym_result_create(&result);
	char id[129], file[256];
	uint64_t vaddr;

	while (!error && scanf("%128s %" SCNx64 " %255[^\n]", id, &vaddr, file) == 3)
		error = print_name(id, vaddr, file, directories, result);
	sym_result_destroy(result);
	return error ? fail(error) : 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "normalize"))
		return normalize(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "resolve"))
		return resolve((const char *const *)(argv + 2));
	fprintf(stderr, "usage: symbolize_elsewhere normalize PID < addresses\n"
			"       symbolize_elsewhere resolve DIRECTORY... < positions\n");
	return 2;
}
