/* SPDX-License-Identifier: MIT */
/*
 * Objects that clients upload: who may, whether the bytes are what they must be, and whether they
 * are better than what is here. The identity comes from the bytes. The client gives only the file
 * name, which PE files and PDBs are asked for by.
 */
#ifndef SYMSRV_LOOKUP_UPLOAD_H
#define SYMSRV_LOOKUP_UPLOAD_H

#include "symsrv/lookup/lookup.h"

struct uploads;

int uploads_create(const struct holdings *holdings, struct uploads **ret);
void uploads_destroy(struct uploads *uploads); /* NULL is allowed */

/* The first line of a file is the token; NULL: uploads are off. False, and no change: the file
 * cannot be read, or its token has fewer than 16 characters. */
bool uploads_set_token(struct uploads *uploads, const char *path);

enum upload_right {
	UPLOAD_RIGHT_NONE,    /* uploads are off */
	UPLOAD_RIGHT_UNKNOWN, /* no token was given */
	UPLOAD_RIGHT_WRONG,
	UPLOAD_RIGHT_GOOD,
};

/* `authorization`: the header of the request, or NULL. */
enum upload_right uploads_right_of(struct uploads *uploads, const char *authorization);
/* As uploads_right_of(), and counts requests without the right. */
enum upload_right uploads_claim(struct uploads *uploads, const char *authorization);

enum upload_outcome {
	UPLOADED_STORED,
	UPLOADED_KEPT,    /* what is here is as good or better */
	UPLOADED_REFUSED, /* `reason` */
	UPLOADED_FAILED,  /* `reason`; it may work later */
};

struct upload {
	struct store_incoming *incoming; /* the body; taken over */
	const char *name;                /* of the file, as the client wrote it; or NULL */
	enum upload_outcome outcome;
	char reason[160];
	char *answer; /* JSON, heap; NULL unless stored or kept */
};

/* Verifies and publishes; on a thread that may take long. */
void uploads_take(struct uploads *uploads, struct upload *upload);

struct uploads_counts {
	uint64_t stored, kept, refused, failed;
	uint64_t denied; /* without the token */
};
void uploads_counts(struct uploads *uploads, struct uploads_counts *ret);

#endif
