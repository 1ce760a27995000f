/* SPDX-License-Identifier: MIT */
/*
 * Names for stacks of build-ids and file offsets (BPF_F_USER_BUILD_ID), whose process may be gone.
 * There is an ELF file for each build-id. It is opened when a frame needs it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/base/hex.h"
#include "libsym/bcc/bcc_budget.h"
#include "libsym/bcc/bcc_settings.h"
#include "libsym/bcc/libsym-bcc.h"
#include "libsym/libsym.h"

enum {
	BUILD_ID_BYTES = 20,
};

struct build_id_file {
	uint8_t build_id[BUILD_ID_BYTES];
	char *path;
	struct sym_image *image; /* NULL before a frame needs it, or while it cannot be opened */
	UT_hash_handle hh;
};

struct build_id_cache {
	struct build_id_file *files;
	struct sym_result *result;
	pthread_mutex_t lock;
	struct build_id_cache *next;
};

/* All caches that are not freed. Any other handle is rejected. */
static pthread_mutex_t caches_lock = PTHREAD_MUTEX_INITIALIZER;
static struct build_id_cache *caches;

static struct build_id_cache **find_cache(void *handle)
{
	struct build_id_cache **place = &caches;

	while (*place && *place != handle)
		place = &(*place)->next;
	return place;
}

/* Locks a cache; NULL for an invalid handle. */
static struct build_id_cache *lock_cache(void *handle)
{
	struct build_id_cache *cache;

	pthread_mutex_lock(&caches_lock);
	cache = *find_cache(handle);
	if (cache)
		pthread_mutex_lock(&cache->lock);
	pthread_mutex_unlock(&caches_lock);
	return cache;
}

void *bcc_buildsymcache_new(void)
{
	struct build_id_cache *cache = calloc(1, sizeof(*cache));
	struct sym_error *error;

	if (!cache)
		return NULL;
	error = sym_result_create(&cache->result);
	if (error) {
		sym_error_destroy(error);
		free(cache);
		return NULL;
	}
	pthread_mutex_init(&cache->lock, NULL);
	pthread_mutex_lock(&caches_lock);
	cache->next = caches;
	caches = cache;
	pthread_mutex_unlock(&caches_lock);
	return cache;
}

static void free_file(struct build_id_file *file)
{
	sym_image_close(file->image);
	free(file->path);
	free(file);
}

void bcc_free_buildsymcache(void *symcache)
{
	struct build_id_cache **place, *cache;

	pthread_mutex_lock(&caches_lock);
	place = find_cache(symcache);
	cache = *place;
	if (cache)
		*place = cache->next;
	pthread_mutex_unlock(&caches_lock);
	if (!cache)
		return;
	/* The thread that had it locked has finished, and no other can find it any more. */
	pthread_mutex_lock(&cache->lock);
	pthread_mutex_unlock(&cache->lock);
	HASH_DESTROY(cache->files, free_file);
	sym_result_destroy(cache->result);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* 0, or -1 when out of memory. */
static int add_file(struct build_id_cache *cache, const uint8_t *build_id, const char *path)
{
	struct build_id_file *file;

	HASH_FIND(hh, cache->files, build_id, BUILD_ID_BYTES, file);
	if (file)
		return 0;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -1;
	memcpy(file->build_id, build_id, BUILD_ID_BYTES);
	file->path = strdup(path);
	if (file->path) {
		HASH_ADD(hh, cache->files, build_id, BUILD_ID_BYTES, file);
		if (hash_added(file))
			return 0;
	}
	free_file(file);
	return -1;
}

int bcc_buildsymcache_add_module(void *resolver, const char *module_name)
{
	char text[2 * BUILD_ID_BYTES + 1];
	uint8_t build_id[BUILD_ID_BYTES];
	struct build_id_cache *cache;
	int added;

	if (bcc_elf_get_buildid(module_name, text) < 0 ||
	    !hex_read_bytes(text, build_id, BUILD_ID_BYTES))
		return -1;
	cache = lock_cache(resolver);
	if (!cache)
		return -1;
	added = add_file(cache, build_id, module_name);
	pthread_mutex_unlock(&cache->lock);
	return added;
}

/* ---- answers -------------------------------------------------------------------------------- */

/*
 * The image of a file. NULL when the file was replaced since it was added, or cannot be opened. The
 * next frame tries again, because descriptors may have been missing.
 */
static struct sym_image *get_image(struct build_id_file *file)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	struct sym_image_opts opts = { .size = sizeof(opts) };
	struct sym_image *image = NULL;
	struct bcc_settings settings;
	struct sym_error *error;

	if (file->image)
		return file->image;
	bcc_settings_read(&settings);
	opts.budget = bcc_budget_get(&settings);
	error = sym_image_open_with(file->path, &opts, &image);
	if (!error)
		error = sym_image_identity(image, &identity);
	if (!error && identity.id_size_bytes == BUILD_ID_BYTES &&
	    !memcmp(identity.id, file->build_id, BUILD_ID_BYTES))
		file->image = STEAL(image);
	sym_error_destroy(error);
	sym_image_close(image);
	return file->image;
}

/* File offsets equal vaddrs in most libraries. libbcc takes one for the other. */
static int resolve_offset(struct build_id_cache *cache, struct build_id_file *file, uint64_t offset,
			  struct bcc_symbol *sym)
{
	const struct sym_answer *answer;
	struct sym_image *image;
	struct sym_error *error;

	*sym = (struct bcc_symbol){ 0 };
	image = get_image(file);
	if (!image)
		return -1;
	error = sym_image_resolve(image, SYM_POSITION_OFFSET, &offset, 1, cache->result);
	if (error) {
		sym_error_destroy(error);
		return -1;
	}
	answer = sym_result_at(cache->result, 0);
	if (answer->status != SYM_RESOLVED && answer->status != SYM_BOUNDS_ONLY)
		return -1;
	*sym = (struct bcc_symbol){ answer->name, answer->name, file->path, answer->offset_bytes };
	return 0;
}

int bcc_buildsymcache_resolve(void *resolver, struct bpf_stack_build_id *trace,
			      struct bcc_symbol *sym)
{
	struct build_id_cache *cache;
	struct build_id_file *file;
	int found = -1;

	if (!trace || !sym)
		return -1;
	if (trace->status == BPF_STACK_BUILD_ID_EMPTY || trace->status == BPF_STACK_BUILD_ID_IP)
		return 0;
	cache = lock_cache(resolver);
	if (!cache)
		return -1;
	HASH_FIND(hh, cache->files, trace->build_id, BUILD_ID_BYTES, file);
	if (file)
		found = resolve_offset(cache, file, trace->offset, sym);
	pthread_mutex_unlock(&cache->lock);
	return found;
}
