/* SPDX-License-Identifier: MIT */
#include "symsrv/util/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symsrv/util/log.h"

static bool user_fail(char *message, size_t message_bytes, const char *what, int failure)
{
	snprintf(message, message_bytes, "%s: %s", what, strerror(failure));
	return false;
}

static bool user_change(const char *name, char *message, size_t message_bytes)
{
	const struct passwd *user;

	errno = 0;
	user = getpwnam(name);
	if (!user)
		return user_fail(message, message_bytes, name, errno ? errno : ENOENT);
	if (geteuid() == user->pw_uid && getuid() == user->pw_uid && user->pw_uid)
		return true;
	if (initgroups(name, user->pw_gid) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		return user_fail(message, message_bytes, name, errno);
	return true;
}

/* This needs CAP_SETPCAP, so it comes before the change of user. Without it the bounding set stays.
 */
static void empty_bounding_set(void)
{
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

static bool drop_capabilities(char *message, size_t message_bytes)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, data))
		return user_fail(message, message_bytes, "capabilities", errno);
	/* System call filters may allow capset() only to root. */
	if (!data[0].permitted && !data[1].permitted && !data[0].inheritable &&
	    !data[1].inheritable)
		return true;
	memset(data, 0, sizeof(data));
	if (syscall(SYS_capset, &header, data))
		return user_fail(message, message_bytes, "capabilities", errno);
	return true;
}

bool user_settle(const char *name, char *message, size_t message_bytes)
{
	bool was_root = !geteuid();

	log_begin();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return user_fail(message, message_bytes, "no_new_privs", errno);
	empty_bounding_set();
	if ((name && !user_change(name, message, message_bytes)) ||
	    !drop_capabilities(message, message_bytes))
		return false;
	if (was_root && !name)
		log_message(LOG_LEVEL_WARNING,
			    "runs as root: gave up all capabilities, so files of other users need "
			    "to be readable by all; --user NAME changes the user");
	else if (name)
		log_message(LOG_LEVEL_INFO, "runs as user %s (uid %u), without capabilities", name,
			    (unsigned int)geteuid());
	return true;
}
