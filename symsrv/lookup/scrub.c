/* SPDX-License-Identifier: MIT */
#include "symsrv/lookup/scrub.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symsrv/store/store.h"
#include "symsrv/upstream/verify.h"
#include "symsrv/util/log.h"

/* Compares the identity as well as the checksum, because an older version may have verified the
 * object. */
static int scrub_check(int fd, const struct store_record *record, const char **reason_ret)
{
	static _Thread_local char reason[160];
	uint32_t contents;
	struct key key;

	*reason_ret = reason;
	if (!key_from_text(&key, record->key)) {
		snprintf(reason, sizeof(reason), "a key of an unknown kind");
		return -EBADMSG;
	}
	return verify_content(fd, record->size_bytes, &key, &contents, reason, sizeof(reason));
}

static void scrub_report(const char *name, const char *reason, int failure)
{
	if (failure)
		printf("cannot remove %s: %s: %s\n", name, reason, strerror(-failure));
	else
		printf("removed %s: %s\n", name, reason);
}

int scrub_run(const char *directory)
{
	struct store_scrub_result result;
	int failure = store_scrub(directory, scrub_check, scrub_report, &result);

	if (failure) {
		log_message(LOG_LEVEL_ERROR, "%s: %s", directory, store_failure_text(failure));
		return 1;
	}
	printf("%llu objects good (%llu bytes), %llu removed\n",
	       (unsigned long long)result.good_count, (unsigned long long)result.good_bytes,
	       (unsigned long long)result.removed_count);
	if (result.failed_count)
		printf("%llu could not be read or removed\n",
		       (unsigned long long)result.failed_count);
	return result.failed_count ? 1 : result.removed_count ? 3 : 0;
}
