/* SPDX-License-Identifier: MIT */
#include "libsym/source/precompiled.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/limits.h"
#include "libsym/symbols/symbols.h"

struct precompiled {
	struct object_file *object; /* used by the tables below */
	const struct object_managed *managed;
	struct r2r *r2r;
	const struct r2r_range *ranges;
	size_t range_count;
	_Atomic(const char *) *names; /* by range; NULL until the name is first needed */
	pthread_mutex_t lock;         /* protects the rest */
	struct name_pool pool;
	struct buf scratch;
};

void precompiled_close(struct precompiled *precompiled)
{
	if (!precompiled)
		return;
	r2r_close(precompiled->r2r);
	if (precompiled->managed)
		object_file_unuse_managed(precompiled->object);
	name_pool_deinit(&precompiled->pool);
	buf_deinit(&precompiled->scratch);
	pthread_mutex_destroy(&precompiled->lock);
	free(precompiled->names);
	free(precompiled);
}

struct sym_error *precompiled_open(struct object_file *object,
				   const struct r2r_assemblies *assemblies,
				   struct precompiled **ret)
{
	struct precompiled *opened AUTO_PRECOMPILED = calloc(1, sizeof(*opened));
	struct sym_error *error;

	if (!opened)
		return &sym_error_no_memory;
	pthread_mutex_init(&opened->lock, NULL);
	buf_init(&opened->scratch, LIMIT_NAME_BYTES);
	opened->object = object;
	error = object_file_use_managed(object, &opened->managed);
	if (error)
		return error;
	error = r2r_open(&opened->managed->pe, opened->managed->metadata, assemblies, &opened->r2r);
	if (error)
		return sym_error_with_path(error, object->path);
	opened->ranges = r2r_ranges(opened->r2r, &opened->range_count);
	opened->names = calloc(opened->range_count + 1, sizeof(*opened->names));
	if (!opened->names)
		return &sym_error_no_memory;
	*ret = STEAL(opened);
	return NULL;
}

const struct r2r *precompiled_r2r(const struct precompiled *precompiled)
{
	return precompiled->r2r;
}

const struct pe *precompiled_pe(const struct precompiled *precompiled)
{
	return &precompiled->managed->pe;
}

static bool write_stub_name(const struct precompiled *precompiled, struct buf *buf)
{
	const char *assembly;

	if (!object_file_identify(precompiled->object)) {
		buf->failure = BUF_NO_MEMORY;
		return false;
	}
	assembly = object_file_assembly_name(precompiled->object);
	return buf_append_string(buf, "stub DelayLoadMethodCallThunks<") &&
	       buf_append_string(buf, assembly ? assembly : "") && buf_append_char(buf, '>');
}

bool precompiled_write_name(struct precompiled *precompiled, size_t range, struct buf *buf,
			    const char **why_ret)
{
	const struct r2r_range *asked = &precompiled->ranges[range];

	if (asked->kind == R2R_STUB)
		return write_stub_name(precompiled, buf);
	return r2r_name(precompiled->r2r, asked->entry, R2R_NAME_RUNTIME, buf, why_ret);
}

/* With the lock held: another thread may have made the name already. */
static const char *make_name(struct precompiled *precompiled, size_t range, const char **why_ret)
{
	const char *name;

	name = atomic_load_explicit(&precompiled->names[range], memory_order_acquire);
	if (name)
		return name;
	buf_clear(&precompiled->scratch);
	*why_ret = "its name could not be made";
	if (precompiled_write_name(precompiled, range, &precompiled->scratch, why_ret))
		name = name_pool_add(&precompiled->pool, precompiled->scratch.data,
				     precompiled->scratch.size_bytes);
	else if (precompiled->scratch.failure != BUF_NO_MEMORY)
		return NULL;
	if (!name)
		*why_ret = NULL;
	else
		atomic_store_explicit(&precompiled->names[range], name, memory_order_release);
	return name;
}

const char *precompiled_name(struct precompiled *precompiled, size_t range, const char **why_ret)
{
	const char *name = atomic_load_explicit(&precompiled->names[range], memory_order_acquire);

	if (name)
		return name;
	pthread_mutex_lock(&precompiled->lock);
	name = make_name(precompiled, range, why_ret);
	pthread_mutex_unlock(&precompiled->lock);
	return name;
}

/* Bytes up to the start of the next range; UINT32_MAX after the last one. */
static uint32_t room_behind(const struct precompiled *precompiled, size_t range)
{
	uint32_t rva = precompiled->ranges[range].rva;

	while (range < precompiled->range_count && precompiled->ranges[range].rva == rva)
		range++;
	return range < precompiled->range_count ? precompiled->ranges[range].rva - rva : UINT32_MAX;
}

bool precompiled_has_method(const struct precompiled *precompiled, uint32_t rva,
			    uint32_t size_bytes)
{
	bool has_constants = precompiled->managed->pe.machine == PE_MACHINE_ARM64;
	size_t low = ASCENDING_COUNT(precompiled->range_count, i, precompiled->ranges[i].rva < rva);

	for (; low < precompiled->range_count && precompiled->ranges[low].rva == rva; low++) {
		const struct r2r_range *range = &precompiled->ranges[low];

		if (range->kind != R2R_METHOD)
			continue;
		if (range->size_bytes == size_bytes)
			return true;
		if (has_constants && size_bytes > range->size_bytes &&
		    size_bytes <= room_behind(precompiled, low))
			return true;
	}
	return false;
}
