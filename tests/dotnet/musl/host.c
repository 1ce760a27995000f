/* SPDX-License-Identifier: MIT */
/*
 * Runs an assembly as a program of musl's C library, which Alpine's are: host APPLICATION.dll
 * WORD... by the hosting functions of the libcoreclr.so beside it. .NET's own hosts need more of a
 * C++ library for musl than there is here.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int initialize(const char *host, const char *name, int count, const char **keys,
		       const char **values, void **handle, unsigned int *domain);
typedef int execute(void *handle, unsigned int domain, int count, const char **words,
		    const char *assembly, unsigned int *code);

/* Every assembly beside the application, with a colon behind each. */
static char *assemblies(const char *directory)
{
	char *text = NULL;
	size_t size;
	FILE *list = open_memstream(&text, &size);
	DIR *files = opendir(directory);
	struct dirent *file;

	while (files && (file = readdir(files)))
		if (strstr(file->d_name, ".dll"))
			fprintf(list, "%s/%s:", directory, file->d_name);
	fclose(list);
	return text;
}

int main(int count, char **words)
{
	static const char *keys[] = { "TRUSTED_PLATFORM_ASSEMBLIES",
				      "NATIVE_DLL_SEARCH_DIRECTORIES", "APP_PATHS",
				      "System.Globalization.Invariant" };
	char application[PATH_MAX], directory[PATH_MAX], runtime[PATH_MAX + 32];
	unsigned int domain, code;
	void *library, *handle;
	int failure;

	if (count < 2 || !realpath(words[1], application))
		return 2;
	strcpy(directory, application);
	*strrchr(directory, '/') = '\0';
	snprintf(runtime, sizeof(runtime), "%s/libcoreclr.so", directory);
	library = dlopen(runtime, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	const char *values[] = { assemblies(directory), directory, directory, "true" };

	failure = ((initialize *)dlsym(library, "coreclr_initialize"))(words[0], "sample", 4, keys,
								       values, &handle, &domain);
	if (!failure)
		failure = ((execute *)dlsym(library, "coreclr_execute_assembly"))(
			handle, domain, count - 2, (const char **)words + 2, application, &code);
	if (failure)
		fprintf(stderr, "0x%x\n", (unsigned int)failure);
	return failure ? 4 : (int)code;
}
