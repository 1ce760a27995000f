/* SPDX-License-Identifier: MIT */
/*
 * All fuzz targets in one plain program, so that any compiler can replay a corpus: `replay NAME
 * PATH...` runs target NAME once over every file of the given directories or files. The Makefile
 * generates the list of targets and compiles each fuzz_NAME.c with another name for its function.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int fuzz_target(const uint8_t *data, size_t size);

#define TARGET(name) fuzz_target fuzz_##name;
FUZZ_TARGETS
#undef TARGET

#define TARGET(name) { #name, fuzz_##name },
static const struct {
	const char *name;
	fuzz_target *run;
} targets[] = { FUZZ_TARGETS };

static fuzz_target *find_target(const char *name)
{
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++)
		if (!strcmp(targets[i].name, name))
			return targets[i].run;
	return NULL;
}

static int run_file(fuzz_target *target, const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0, got;

	if (!file) {
		perror(path);
		return 1;
	}
	do {
		uint8_t *grown = realloc(data, size + 65536);

		if (!grown)
			abort();
		data = grown;
		got = fread(data + size, 1, 65536, file);
		size += got;
	} while (got);
	fclose(file);
	/* Exactly the size of the input, so that a sanitizer detects a read past the end. */
	data = realloc(data, size ? size : 1);
	target(data, size);
	free(data);
	return 0;
}

static int run_directory(fuzz_target *target, const char *path, DIR *directory)
{
	struct dirent *entry;
	int failed = 0;

	while ((entry = readdir(directory))) {
		char file[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		failed |= run_file(target, file);
	}
	return failed;
}

int main(int argc, char **argv)
{
	fuzz_target *target = argc > 2 ? find_target(argv[1]) : NULL;
	int failed = 0, i;

	if (!target) {
		fprintf(stderr, "usage: replay TARGET PATH...\n");
		return 2;
	}
	for (i = 2; i < argc; i++) {
		DIR *directory = opendir(argv[i]);

		failed |= directory ? run_directory(target, argv[i], directory)
				    : run_file(target, argv[i]);
		if (directory)
			closedir(directory);
	}
	return failed;
}
