/* SPDX-License-Identifier: MIT */
#include "tests/support/bpf_program.h"

#include <linux/bpf.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int bpf_program_load(const char *name)
{
	/* r0 = 0; exit */
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(*code);
	attr.license = (uintptr_t) "GPL";
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* "ADDRESS t bpf_prog_TAG_NAME\t[bpf]" */
static bool is_line_of(const char *line, const char *name, uint64_t *address_ret)
{
	const char *found = strstr(line, "\t[bpf]");
	size_t name_bytes = strlen(name);

	if (!found || (size_t)(found - line) <= name_bytes ||
	    found[-1 - (ptrdiff_t)name_bytes] != '_' ||
	    memcmp(found - name_bytes, name, name_bytes) != 0)
		return false;
	*address_ret = strtoull(line, NULL, 16);
	return *address_ret;
}

bool bpf_program_listed(const char *name, uint64_t *address_ret)
{
	FILE *list = fopen("/proc/kallsyms", "re");
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (list && !found && getline(&line, &room, list) > 0)
		found = is_line_of(line, name, address_ret);
	free(line);
	if (list)
		fclose(list);
	return found;
}

void bpf_program_free(int fd, const char *name)
{
	uint64_t address;

	close(fd);
	while (bpf_program_listed(name, &address))
		sched_yield();
}
