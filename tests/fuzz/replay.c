/* SPDX-License-Identifier: MIT */
/*
 * A plain main for a fuzz target: runs it once over every file of the
 * directories or files given, so that any compiler can replay a corpus.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
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
	/* Exactly as many bytes as the input has, so that a sanitizer sees one read too many. */
	data = realloc(data, size ? size : 1);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

static int run_directory(const char *path, DIR *directory)
{
	struct dirent *entry;
	int failed = 0;

	while ((entry = readdir(directory))) {
		char file[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		failed |= run_file(file);
	}
	return failed;
}

int main(int argc, char **argv)
{
	int failed = argc < 2, i;

	for (i = 1; i < argc; i++) {
		DIR *directory = opendir(argv[i]);

		failed |= directory ? run_directory(argv[i], directory) : run_file(argv[i]);
		if (directory)
			closedir(directory);
	}
	return failed;
}
