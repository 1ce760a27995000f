/* SPDX-License-Identifier: MIT */
/*
 * Changes the credentials of one thread, in this order: groups, file system group, file system
 * user, capabilities; and back.
 *
 * setfsuid() from 0 to another user removes the file capabilities from the effective set, and back
 * to 0 it adds them again (capabilities(7)). A thread with another uid keeps them, and
 * SECBIT_NO_SETUID_FIXUP disables the rule. So the capabilities are always set with capset().
 *
 * A change of the file system user also makes the process undumpable (commit_creds() in every
 * kernel so far). That would hide /proc/PID from its own user, so it is restored.
 */
#include "libsym/base/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's CAP_FS_SET, and capabilities that lift quotas and reserved blocks. */
static const uint64_t file_capabilities =
	1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_DAC_READ_SEARCH |
	1ull << CAP_FOWNER | 1ull << CAP_FSETID | 1ull << CAP_LINUX_IMMUTABLE | 1ull << CAP_MKNOD |
	1ull << CAP_MAC_OVERRIDE | 1ull << CAP_SYS_RESOURCE;
static const uint64_t id_capabilities = 1ull << CAP_SETUID | 1ull << CAP_SETGID;

/* An invalid id: the call changes nothing and returns the present id. */
static const uint32_t no_id = UINT32_MAX;

static int set_capabilities(const struct rights_held *held, uint64_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct data[2] = {
		{ (uint32_t)effective, (uint32_t)held->permitted, (uint32_t)held->inheritable },
		{ (uint32_t)(effective >> 32), (uint32_t)(held->permitted >> 32),
		  (uint32_t)(held->inheritable >> 32) },
	};

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static int read_capabilities(struct rights_held *held)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	held->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	held->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	held->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

static int read_groups(struct rights_held *held)
{
	long count = syscall(SYS_getgroups, 0, NULL);

	if (count < 0)
		return -errno;
	held->groups = calloc((size_t)count + 1, sizeof(*held->groups));
	if (!held->groups)
		return -ENOMEM;
	if (syscall(SYS_getgroups, count, held->groups) != count)
		return -EAGAIN;
	held->group_count = (size_t)count;
	return 0;
}

static uint32_t set_user(uint32_t uid)
{
	return (uint32_t)syscall(SYS_setfsuid, uid);
}

static uint32_t set_group(uint32_t gid)
{
	return (uint32_t)syscall(SYS_setfsgid, gid);
}

static int rights_read_thread(struct rights_held *held)
{
	int result;

	*held = (struct rights_held){ .uid = set_user(no_id), .gid = set_group(no_id) };
	held->dumpable = prctl(PR_GET_DUMPABLE);
	result = read_capabilities(held);
	return result ? result : read_groups(held);
}

static bool has_groups(const struct rights_held *held, const struct rights *rights)
{
	return held->group_count == rights->group_count &&
	       (!held->group_count ||
		!memcmp(held->groups, rights->groups, held->group_count * sizeof(*held->groups)));
}

/* Returns false if the kernel did not allow it. */
static bool set_ids(uint32_t uid, uint32_t gid, const uint32_t *groups, size_t group_count)
{
	if (syscall(SYS_setgroups, group_count, groups))
		return false;
	set_group(gid);
	set_user(uid);
	return set_group(no_id) == gid && set_user(no_id) == uid;
}

static void block_signals(struct rights_held *held)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &held->signals);
}

/* `held` has the present credentials of the thread; changes what differs. */
static int rights_change(struct rights_held *held, const struct rights *rights)
{
	bool is_same = held->uid == rights->uid && held->gid == rights->gid;
	bool may_change = (held->effective & id_capabilities) == id_capabilities;
	uint64_t effective = held->effective & (~file_capabilities | rights->capabilities);
	int result = 0;

	if (!is_same && !may_change)
		return -EPERM;
	/* If the thread may not change groups, those of the same user are its own. */
	held->has_new_ids = may_change && (!is_same || !has_groups(held, rights));
	if (!held->has_new_ids && effective == held->effective)
		return 0;
	block_signals(held);
	held->is_changed = true;
	if (held->has_new_ids &&
	    !set_ids(rights->uid, rights->gid, rights->groups, rights->group_count))
		result = -EPERM;
	return result ? result : set_capabilities(held, effective);
}

static int rights_finish(int result, struct rights_held *held)
{
	if (result || !held->is_changed)
		rights_restore(held);
	return result;
}

int rights_assume(const struct rights *rights, struct rights_held *ret)
{
	int result;

	*ret = (struct rights_held){ .is_changed = false };
	if (!rights)
		return 0;
	result = rights_read_thread(ret);
	return rights_finish(result ? result : rights_change(ret, rights), ret);
}

int rights_drop_file_capabilities(struct rights_held *ret)
{
	int result = rights_read_thread(ret);

	if (!result && ret->effective & file_capabilities) {
		block_signals(ret);
		ret->is_changed = true;
		result = set_capabilities(ret, ret->effective & ~file_capabilities);
	}
	return rights_finish(result, ret);
}

void rights_restore(struct rights_held *held)
{
	int saved = errno;

	/* Works because the capabilities for it were kept. */
	if (held->has_new_ids)
		set_ids(held->uid, held->gid, held->groups, held->group_count);
	if (held->is_changed) {
		set_capabilities(held, held->effective);
		if (held->dumpable == 1)
			prctl(PR_SET_DUMPABLE, 1);
		pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
	}
	free(held->groups);
	*held = (struct rights_held){ .is_changed = false };
	errno = saved;
}
