/* SPDX-License-Identifier: MIT */
#include "symsrv/scrub.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symsrv/log.h"
#include "symsrv/store.h"
#include "symsrv/verify.h"

/* Not only the checksum, the identity too: what is in the store was verified once, by an older
 * version perhaps. */
static int check(int fd, const struct store_record *record, const char **reason_ret)
{
	static _Thread_local char reason[160];
	uint32_t contents;
	struct key key;

	*reason_ret = reason;
	if (!key_from_text(&key, record->key)) {
		snprintf(reason, sizeof(reason), "a key of no known kind");
		return -EBADMSG;
	}
	return verify_content(fd, record->size_bytes, &key, &contents, reason, sizeof(reason));
}

static void report(const char *name, const char *reason, int failure)
{
	if (failure)
		printf("not removed %s: %s: %s\n", name, reason, strerror(-failure));
	else
		printf("removed %s: %s\n", name, reason);
}

int scrub_run(const char *directory)
{
	struct store_scrub_result result;
	int failure = store_scrub(directory, check, report, &result);

	if (failure == -ENOTEMPTY) {
		log_message(LOG_LEVEL_ERROR, STORE_OF_OTHERS, directory);
		return 1;
	}
	if (failure) {
		log_message(LOG_LEVEL_ERROR, "%s: %s", directory, strerror(-failure));
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
