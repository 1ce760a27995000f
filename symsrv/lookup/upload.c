/* SPDX-License-Identifier: MIT */
/*
 * How an upload becomes an object.
 *
 *   read_keys()      the identity in the bytes gives the keys: one, or two for an ELF program with
 *                    symbols
 *   verify_content() the same check as for what an upstream sends
 *   judge_key()      an object that is here is replaced only by one with debug information, if it
 *                    has none; store_publish() compares once more with what a fetch has brought
 *
 * One upload is judged and published at a time, so that of two equal ones one is stored.
 */
#include "symsrv/lookup/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "symsrv/key/debuginfod.h"
#include "symsrv/key/ssqp.h"
#include "symsrv/upstream/image_note.h"
#include "symsrv/upstream/verify.h"

static const size_t shortest_token = 16;

struct uploads {
	const struct holdings *holdings;
	pthread_mutex_t token_lock;
	char *token;          /* NULL: uploads are off */
	pthread_mutex_t lock; /* judging and publishing */
	struct {
		atomic_ullong stored, kept, refused, failed, denied;
	} counts;
};

int uploads_create(const struct holdings *holdings, struct uploads **ret)
{
	struct uploads *uploads = calloc(1, sizeof(*uploads));

	if (!uploads)
		return -ENOMEM;
	uploads->holdings = holdings;
	pthread_mutex_init(&uploads->token_lock, NULL);
	pthread_mutex_init(&uploads->lock, NULL);
	*ret = uploads;
	return 0;
}

void uploads_destroy(struct uploads *uploads)
{
	if (!uploads)
		return;
	pthread_mutex_destroy(&uploads->token_lock);
	pthread_mutex_destroy(&uploads->lock);
	free(uploads->token);
	free(uploads);
}

/* ---- who may ---- */

static char *read_token(const char *path)
{
	int fd AUTO_CLOSE = open(path, O_RDONLY | O_CLOEXEC);
	char *text AUTO_FREE = NULL;
	struct buf content;

	buf_init(&content, 4096);
	if (fd >= 0 && !path_read_all(fd, &content))
		text = buf_steal(&content, NULL);
	buf_deinit(&content);
	if (!text)
		return NULL;
	text[strcspn(text, " \t\r\n")] = 0;
	return strlen(text) < shortest_token ? NULL : STEAL(text);
}

bool uploads_set_token(struct uploads *uploads, const char *path)
{
	char *token = path ? read_token(path) : NULL, *old;

	if (path && !token)
		return false;
	pthread_mutex_lock(&uploads->token_lock);
	old = uploads->token;
	uploads->token = token;
	pthread_mutex_unlock(&uploads->token_lock);
	free(old);
	return true;
}

enum upload_right uploads_right_of(struct uploads *uploads, const char *authorization)
{
	enum upload_right right = UPLOAD_RIGHT_UNKNOWN;
	const char *given = NULL;

	if (authorization && !strncasecmp(authorization, "Bearer ", 7))
		given = authorization + 7 + strspn(authorization + 7, " ");
	pthread_mutex_lock(&uploads->token_lock);
	if (!uploads->token)
		right = UPLOAD_RIGHT_NONE;
	else if (given)
		right = strlen(given) == strlen(uploads->token) &&
					!CRYPTO_memcmp(given, uploads->token, strlen(given))
				? UPLOAD_RIGHT_GOOD
				: UPLOAD_RIGHT_WRONG;
	pthread_mutex_unlock(&uploads->token_lock);
	return right;
}

enum upload_right uploads_claim(struct uploads *uploads, const char *authorization)
{
	enum upload_right right = uploads_right_of(uploads, authorization);

	uploads->counts.denied += right != UPLOAD_RIGHT_GOOD;
	return right;
}

/* ---- what it is ---- */

struct upload_keys {
	struct key keys[2];
	size_t count;
	uint32_t contents; /* enum sym_content */
	char name[256];    /* in lower case; the keys point at it */
};

static bool refuse(struct upload *upload, const char *reason)
{
	upload->outcome = UPLOADED_REFUSED;
	snprintf(upload->reason, sizeof(upload->reason), "%s", reason);
	return false;
}

static bool fail(struct upload *upload, int failure)
{
	upload->outcome = UPLOADED_FAILED;
	snprintf(upload->reason, sizeof(upload->reason), "%s", strerror(-failure));
	return false;
}

static bool copy_name(const char *name, char room[256])
{
	size_t length = name ? strlen(name) : 0;

	room[0] = 0;
	if (!length)
		return true;
	return length <= 255 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       key_lower_name(name, room);
}

static bool read_keys(struct upload *upload, struct upload_keys *ret)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	int fd = store_incoming_fd(upload->incoming);
	uint64_t size_bytes = store_incoming_bytes(upload->incoming);
	struct sym_error *error;
	bool no_memory;

	if (!copy_name(upload->name, ret->name))
		return refuse(upload, "not the name of a file");
	error = sym_identity_read(fd, size_bytes, &identity);
	if (error) {
		no_memory = sym_error_code(error) == SYM_ERROR_NO_MEMORY;
		refuse(upload, sym_error_message(error));
		sym_error_destroy(error);
		return no_memory ? fail(upload, -ENOMEM) : false;
	}
	ret->contents = identity.contents;
	ret->count = keys_of_identity(&identity, ret->name, ret->keys);
	if (!ret->count)
		return refuse(upload, "the file has no identity that can be verified");
	if (ret->keys[0].name && !*ret->keys[0].name)
		return refuse(upload, "a file of this kind is asked for by its name: add ?name=");
	return true;
}

static bool verify_keys(struct upload *upload, const struct upload_keys *keys)
{
	uint32_t contents;

	for (size_t i = 0; i < keys->count; i++) {
		int failure = verify_content(store_incoming_fd(upload->incoming),
					     store_incoming_bytes(upload->incoming), &keys->keys[i],
					     &contents, upload->reason, sizeof(upload->reason));

		if (failure == -EBADMSG)
			upload->outcome = UPLOADED_REFUSED;
		else if (failure)
			fail(upload, failure);
		if (failure)
			return false;
	}
	return true;
}

/* ---- whether it is better ---- */

/* Whether the upload is to be stored under `text`. */
static bool judge_key(const struct holdings *holdings, const char *text, uint32_t contents)
{
	struct store_record record;
	uint32_t here;
	int fd;

	/* A file of --index cannot be replaced, and is served first. */
	if (file_index_has(holdings->index, text))
		return false;
	if (store_find(holdings->store, text, &fd, &record))
		return true;
	here = record.contents;
	store_record_deinit(&record);
	close(fd);
	/* As in the index and in the tier. */
	return (contents & SYM_CONTENT_DEBUG_INFO) > (here & SYM_CONTENT_DEBUG_INFO);
}

/* ---- publishing ---- */

static int copy_bytes(struct store_incoming *from, struct store_incoming *to)
{
	uint64_t size_bytes = store_incoming_bytes(from);
	char piece[64 << 10];
	int failure = store_reserve(to, size_bytes);

	for (uint64_t done = 0; done < size_bytes && !failure;) {
		size_t count = size_bytes - done < sizeof(piece) ? (size_t)(size_bytes - done)
								 : sizeof(piece);

		failure = path_read_at(store_incoming_fd(from), piece, count, done);
		if (!failure)
			failure = store_append(to, piece, count);
		done += count;
	}
	return failure;
}

/* Another arrival with the same bytes, because one arrival becomes one object. */
static int copy_arrival(struct store *store, struct store_incoming *from,
			struct store_incoming **ret)
{
	int failure = store_begin(store, ret);

	if (failure)
		return failure;
	failure = copy_bytes(from, *ret);
	if (failure)
		store_abandon(*ret);
	return failure;
}

static void add_to_tier(const struct holdings *holdings, const char *text)
{
	struct upstream_set *set = fetcher_upstreams(holdings->fetcher);

	tier_uploads_add(holdings->uploads, set, text);
	upstream_set_release(set);
}

/* Ends the arrival in any case. */
static int publish_key(const struct holdings *holdings, const struct upload *upload,
		       struct store_incoming *incoming, const struct key *key, uint32_t contents)
{
	char text[KEY_TEXT_BYTES];
	struct store_record record = { .key = text, .source = "upload", .contents = contents };
	int failure;

	key_text(key, text);
	if (upload->name)
		snprintf(record.name, sizeof(record.name), "%s", upload->name);
	if (key->kind == KEY_PE)
		image_note_add(holdings->store, store_incoming_fd(incoming),
			       store_incoming_bytes(incoming), text);
	failure = store_publish(incoming, &record);
	if (failure)
		return failure;
	lru_table_remove(holdings->objects, text);
	add_to_tier(holdings, text);
	return 0;
}

/* The path by which clients ask for the object. */
static json_t *path_json(const struct key *key)
{
	struct buf path;
	json_t *ret = NULL;
	bool is_there;

	buf_init(&path, 3 * KEY_TEXT_BYTES);
	buf_append_char(&path, '/');
	is_there = debuginfod_format(&path, key);
	if (!is_there) {
		buf_clear(&path);
		buf_append_string(&path, "/symbols/");
		is_there = ssqp_format(&path, key, false);
	}
	if (is_there)
		ret = json_string(buf_string(&path) ?: "");
	buf_deinit(&path);
	return ret ? ret : json_null();
}

/* Publishes those that are wanted; the last one gets the arrival itself. One that is not stored,
 * because a fetch has brought a better one, is not wanted any more. */
static int publish_wanted(const struct holdings *holdings, struct upload *upload,
			  const struct upload_keys *keys, bool *is_wanted)
{
	size_t left = 0;
	int failure = 0;

	for (size_t i = 0; i < keys->count; i++)
		left += is_wanted[i];
	for (size_t i = 0; i < keys->count && !failure; i++) {
		struct store_incoming *incoming = upload->incoming;

		if (!is_wanted[i])
			continue;
		if (--left)
			failure = copy_arrival(holdings->store, upload->incoming, &incoming);
		else
			upload->incoming = NULL;
		if (!failure)
			failure = publish_key(holdings, upload, incoming, &keys->keys[i],
					      keys->contents);
		is_wanted[i] = failure != -EEXIST;
		if (!is_wanted[i])
			failure = 0;
	}
	return failure;
}

static char *answer_json(const struct upload_keys *keys, const bool *is_wanted)
{
	json_t *stored = json_array(), *kept = json_array(), *root;
	char *text;

	for (size_t i = 0; i < keys->count; i++)
		json_array_append_new(is_wanted[i] ? stored : kept, path_json(&keys->keys[i]));
	root = json_pack("{s:o, s:o}", "stored", stored, "kept", kept);
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}

static void publish_keys(struct uploads *uploads, struct upload *upload,
			 const struct upload_keys *keys)
{
	const struct holdings *holdings = uploads->holdings;
	bool is_wanted[2] = { false }, is_new;
	char text[KEY_TEXT_BYTES];
	int failure;

	pthread_mutex_lock(&uploads->lock);
	for (size_t i = 0; i < keys->count; i++) {
		key_text(&keys->keys[i], text);
		is_wanted[i] = judge_key(holdings, text, keys->contents);
	}
	failure = publish_wanted(holdings, upload, keys, is_wanted);
	pthread_mutex_unlock(&uploads->lock);
	is_new = is_wanted[0] || is_wanted[1];
	if (failure) {
		fail(upload, failure);
		return;
	}
	upload->outcome = is_new ? UPLOADED_STORED : UPLOADED_KEPT;
	/* An earlier miss is here now. */
	if (is_new)
		negative_cache_clear(holdings->negative);
	upload->answer = answer_json(keys, is_wanted);
}

void uploads_take(struct uploads *uploads, struct upload *upload)
{
	struct upload_keys keys;

	if (read_keys(upload, &keys) && verify_keys(upload, &keys))
		publish_keys(uploads, upload, &keys);
	store_abandon(upload->incoming);
	upload->incoming = NULL;
	uploads->counts.stored += upload->outcome == UPLOADED_STORED;
	uploads->counts.kept += upload->outcome == UPLOADED_KEPT;
	uploads->counts.refused += upload->outcome == UPLOADED_REFUSED;
	uploads->counts.failed += upload->outcome == UPLOADED_FAILED;
}

void uploads_counts(struct uploads *uploads, struct uploads_counts *ret)
{
	*ret = (struct uploads_counts){
		.stored = uploads->counts.stored,
		.kept = uploads->counts.kept,
		.refused = uploads->counts.refused,
		.failed = uploads->counts.failed,
		.denied = uploads->counts.denied,
	};
}
