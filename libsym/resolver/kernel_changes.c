/* SPDX-License-Identifier: MIT */
#include "libsym/resolver/kernel_changes.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "libsym/base/cleanup.h"

enum {
	/* missing in linux/bpf.h before Linux 5.8 */
	LINK_GET_NEXT_ID = 31
};

/* Adds the ids of all programs, or of all links. Kernels before 5.8 have no links (EINVAL). */
static bool add_numbers(int command, uint64_t *digest)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	while (!syscall(SYS_bpf, command, &attr, sizeof(attr))) {
		*digest = XXH3_64bits_withSeed(&attr.next_id, sizeof(attr.next_id), *digest);
		attr.start_id = attr.next_id;
	}
	return errno == ENOENT || (command == LINK_GET_NEXT_ID && errno == EINVAL);
}

/* Name and address only: the number of users changes without any change of code. */
static bool add_modules(uint64_t *digest)
{
	FILE *file GUARDED(file) = fopen("/proc/modules", "re");
	char name[64], address[32];

	if (!file)
		return errno == ENOENT; /* a kernel without modules */
	while (fscanf(file, "%63s %*s %*s %*s %*s %31s%*[^\n]", name, address) == 2) {
		*digest = XXH3_64bits_withSeed(name, strlen(name) + 1, *digest);
		*digest = XXH3_64bits_withSeed(address, strlen(address), *digest);
	}
	return !ferror(file);
}

bool kernel_changes_digest(uint64_t *ret)
{
	uint64_t programs = 0, links = 0, modules = 0;

	if (!add_numbers(BPF_PROG_GET_NEXT_ID, &programs) ||
	    !add_numbers(LINK_GET_NEXT_ID, &links) || !add_modules(&modules))
		return false;
	*ret = XXH3_64bits_withSeed(&links, sizeof(links), programs ^ modules);
	return true;
}
