/* SPDX-License-Identifier: MIT */
/*
 * Objects of the store have a record behind their bytes, and the checksum of a PDB is that of the
 * whole file. So the bytes are copied.
 */
#include "symsrv/resolve/wanted_object.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "symsrv/resolve/resolve_request.h"

static const uint64_t most_bytes = UINT64_C(256) << 20;

struct awaited {
	struct lookup lookup;
	sem_t ended;
};

static void on_ended(struct lookup *lookup)
{
	struct awaited *awaited =
		(struct awaited *)((char *)lookup - offsetof(struct awaited, lookup));

	sem_post(&awaited->ended);
}

static int copy_object(const struct object *object)
{
	int fd AUTO_CLOSE = memfd_create("symsrv", MFD_CLOEXEC);
	char part[1 << 16];

	if (fd < 0 || object->size_bytes > most_bytes)
		return -1;
	for (uint64_t done = 0; done < object->size_bytes;) {
		size_t left = object->size_bytes - done < sizeof(part)
				      ? (size_t)(object->size_bytes - done)
				      : sizeof(part);

		if (path_read_at(object->fd, part, left, object->offset + done) ||
		    write(fd, part, left) != (ssize_t)left)
			return -1;
		done += left;
	}
	return steal_fd(&fd);
}

int wanted_object_open(const struct lookup *as, const json_t *wanted)
{
	char text[LOOKUP_TEXT_BYTES];
	struct resolve_asked asked;
	struct awaited awaited;
	int fd = -1;

	if (!resolve_request_parse_file(wanted, &asked)) {
		lookup_text(&asked.key, NULL, text);
		awaited.lookup = (struct lookup){
			.holdings = as->holdings,
			.key = asked.key,
			.text = text,
			.forwarded_for = as->forwarded_for,
			.depth = as->depth,
			.from_peer = as->from_peer,
			.is_local = as->is_local,
			.deadline_ms = as->deadline_ms,
			.done = on_ended,
		};
		sem_init(&awaited.ended, 0, 0);
		lookup_start(&awaited.lookup);
		while (sem_wait(&awaited.ended))
			;
		sem_destroy(&awaited.ended);
		if (awaited.lookup.outcome == LOOKUP_FOUND)
			fd = copy_object(awaited.lookup.object);
		object_release(awaited.lookup.object);
	}
	resolve_asked_deinit(&asked);
	return fd;
}
