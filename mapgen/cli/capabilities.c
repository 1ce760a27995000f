/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/capability.h is older than Linux 5.9 on some machines. */
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

#ifndef CAP_BPF
#define CAP_BPF 39
#endif

#define BIT(capability) (UINT64_C(1) << (capability))

/* To look at a process of another user: its mappings, memory and descriptors, files that only its
 * user may read, and its paths with its own rights. */
#define LOOK                                                                                       \
	(BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHECKPOINT_RESTORE) |            \
	 BIT(CAP_SETUID) | BIT(CAP_SETGID))
/* To ask a runtime over a socket that only its user may open. */
#define ASK BIT(CAP_DAC_OVERRIDE)
/* To write where only another user may, and to give the file to that user. */
#define WRITE (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_CHOWN))
/* To see addresses of the kernel. */
#define KERNEL BIT(CAP_SYSLOG)

static const struct {
	enum command_id command;
	uint64_t kept;
} rows[] = {
	{ COMMAND_LIST, LOOK | ASK },
	{ COMMAND_INFO, LOOK | ASK },
	{ COMMAND_GENERATE, LOOK | WRITE },
	{ COMMAND_MERGE, LOOK | ASK | WRITE | KERNEL },
	{ COMMAND_WATCH, LOOK | ASK | WRITE | KERNEL },
	{ COMMAND_RESOLVE, LOOK | ASK | WRITE | KERNEL },
	{ COMMAND_SYMBOLIZE, LOOK | ASK | WRITE | KERNEL },
	{ COMMAND_FETCH_SYMBOLS, LOOK | ASK | WRITE },
	{ COMMAND_PERF_FIX, LOOK | ASK | WRITE | KERNEL },
	/* For large ring buffers, to be woken before they are full, and to place uprobes. */
	{ COMMAND_RECORD, LOOK | ASK | KERNEL | BIT(CAP_PERFMON) | BIT(CAP_BPF) |
				  BIT(CAP_SYS_RESOURCE) | BIT(CAP_IPC_LOCK) | BIT(CAP_SYS_NICE) },
	{ COMMAND_CHECK, LOOK | ASK | WRITE | KERNEL | BIT(CAP_PERFMON) },
	{ COMMAND_REPORT, LOOK | ASK | WRITE | KERNEL },
	{ COMMAND_FLAME,
	  LOOK | ASK | WRITE | KERNEL | BIT(CAP_PERFMON) | BIT(CAP_BPF) | BIT(CAP_SYS_RESOURCE) },
	{ COMMAND_TOP, LOOK | ASK | WRITE | KERNEL | BIT(CAP_PERFMON) | BIT(CAP_SYS_RESOURCE) },
	{ COMMAND_EVENTS, LOOK | ASK },
	{ COMMAND_STACK, LOOK | ASK | KERNEL | BIT(CAP_SYS_NICE) },
	{ COMMAND_STANDIN, LOOK | ASK | WRITE },
};

uint64_t capabilities_of(enum command_id command)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].command == command)
			return rows[i].kept;
	return UINT64_MAX;
}

uint64_t capabilities_of_raw_uprobes(void)
{
	return BIT(CAP_SYS_ADMIN);
}

/* Stops at the first number that the kernel does not know. */
static void capabilities_bound(uint64_t kept)
{
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(kept & BIT(i)))
			/* Without CAP_SETPCAP the children of this program keep what they have. */
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

int capabilities_keep(uint64_t kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (kept == UINT64_MAX)
		return 0;
	/* Before Linux 5.9 /proc/PID/map_files needs CAP_SYS_ADMIN instead. */
	if (kept & BIT(CAP_CHECKPOINT_RESTORE) &&
	    prctl(PR_CAPBSET_READ, CAP_CHECKPOINT_RESTORE, 0, 0, 0) < 0)
		kept |= BIT(CAP_SYS_ADMIN);
	/* This also limits set-user-ID programs that are run later. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capget, &header, data))
		return -errno;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	capabilities_bound(kept);
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(kept >> (32 * i));
		data[i].effective &= (uint32_t)(kept >> (32 * i));
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

int capabilities_drop(uint64_t dropped)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= ~(uint32_t)(dropped >> (32 * i));
		data[i].effective &= ~(uint32_t)(dropped >> (32 * i));
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}
