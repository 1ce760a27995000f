/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/debug_info.h"

enum {
	FLAG_PATCHPOINT = 1,
	FLAG_RICH = 2,
	MOST_LOCALS = 1 << 16,
	MOST_CHUNK_BYTES = 1 << 24,
};

/* Sizes of the chunks, in the order in which they lie. */
enum chunk {
	CHUNK_BOUNDS,
	CHUNK_UNINSTRUMENTED_10, /* .NET 10 has it before the variables */
	CHUNK_VARIABLES,
	CHUNK_UNINSTRUMENTED,
	CHUNK_PATCHPOINT,
	CHUNK_RICH,
	CHUNK_ASYNC,
	CHUNK_COUNT,
};

static const struct form_facts {
	bool has_flags;
	enum il_map_form map;
	uint8_t patchpoint_bytes; /* without locals */
	uint8_t locals_at;        /* in it: their number */
} facts[] = {
	[DEBUG_INFO_R2R_NIBBLE] = { false, IL_MAP_NIBBLE, 0, 0 },
	[DEBUG_INFO_R2R_PACKED] = { false, IL_MAP_PACKED_2, 0, 0 },
	[DEBUG_INFO_R2R_FAT] = { false, IL_MAP_PACKED_3, 0, 0 },
	[DEBUG_INFO_JIT_NIBBLE] = { true, IL_MAP_NIBBLE, 32, 8 },
	[DEBUG_INFO_JIT_PACKED] = { true, IL_MAP_PACKED_2, 40, 16 },
	[DEBUG_INFO_JIT_FAT] = { false, IL_MAP_PACKED_3, 0, 0 },
};

static void skip_patchpoint(const struct form_facts *form, struct reader *reader)
{
	struct reader info = *reader;
	uint32_t locals;

	reader_skip(&info, form->locals_at);
	locals = reader_u32(&info);
	if (locals > MOST_LOCALS)
		reader_fail(reader, "patchpoint information with too many locals");
	reader_skip(reader, form->patchpoint_bytes + (size_t)4 * locals);
}

/* Reads the flags. Jitted code has them before the sizes, up to .NET 10. */
static void read_flags(const struct form_facts *form, struct reader *reader, struct debug_info *ret)
{
	uint8_t flags = reader_u8(reader);

	if (flags & ~(FLAG_PATCHPOINT | FLAG_RICH))
		reader_fail(reader, "unknown flags of debug information");
	if (flags & FLAG_PATCHPOINT)
		skip_patchpoint(form, reader);
	if (flags & FLAG_RICH) {
		uint32_t size_bytes = reader_u32(reader);

		ret->rich = reader_bytes(reader, size_bytes);
		ret->rich_bytes = size_bytes;
	}
}

static void read_sizes(enum debug_info_form form, struct nibble_reader *reader,
		       uint32_t sizes[CHUNK_COUNT])
{
	const bool may_be_fat = form == DEBUG_INFO_R2R_FAT || form == DEBUG_INFO_JIT_FAT;
	uint32_t first = nibble_read(reader);

	if (may_be_fat && !first) {
		static const uint8_t order[] = { CHUNK_BOUNDS,         CHUNK_VARIABLES,
						 CHUNK_UNINSTRUMENTED, CHUNK_PATCHPOINT,
						 CHUNK_RICH,           CHUNK_ASYNC };

		for (size_t i = 0; i < sizeof(order); i++)
			sizes[order[i]] = nibble_read(reader);
		return;
	}
	sizes[CHUNK_BOUNDS] = first;
	if (form == DEBUG_INFO_JIT_PACKED && first == UINT32_MAX) {
		sizes[CHUNK_BOUNDS] = nibble_read(reader);
		sizes[CHUNK_UNINSTRUMENTED_10] = nibble_read(reader);
	}
	sizes[CHUNK_VARIABLES] = nibble_read(reader);
}

/* A profiler that rewrote the IL leaves a map of the original IL beside the other: it counts. */
static void take_chunks(const uint32_t sizes[CHUNK_COUNT], struct reader *reader,
			struct debug_info *ret)
{
	for (unsigned int i = 0; i < CHUNK_COUNT; i++) {
		const uint8_t *bytes;

		if (!sizes[i])
			continue;
		if (sizes[i] > MOST_CHUNK_BYTES)
			reader_fail(reader, "debug information that is too big");
		/* Variables come before what may be needed, but need not be there themselves. */
		bytes = reader_bytes(reader, sizes[i]);
		if (i == CHUNK_BOUNDS || i == CHUNK_UNINSTRUMENTED_10 ||
		    i == CHUNK_UNINSTRUMENTED) {
			ret->bounds = bytes;
			ret->bounds_bytes = sizes[i];
		} else if (i == CHUNK_RICH) {
			ret->rich = bytes;
			ret->rich_bytes = sizes[i];
		}
	}
}

/* The chunks after the last one that is of use need not be there. */
static void drop_rest(uint32_t sizes[CHUNK_COUNT])
{
	sizes[CHUNK_ASYNC] = 0;
	if (sizes[CHUNK_RICH])
		return;
	sizes[CHUNK_PATCHPOINT] = 0;
	if (!sizes[CHUNK_UNINSTRUMENTED])
		sizes[CHUNK_VARIABLES] = 0;
}

struct debug_info debug_info_read(const void *bytes, size_t size_bytes, enum debug_info_form form)
{
	struct nibble_reader nibbles = { .bytes = reader_over(bytes, size_bytes) };
	struct debug_info info = { .form = facts[form].map };
	uint32_t sizes[CHUNK_COUNT] = { 0 };
	struct reader *reader = &nibbles.bytes;

	if (facts[form].has_flags)
		read_flags(&facts[form], reader, &info);
	read_sizes(form, &nibbles, sizes);
	drop_rest(sizes);
	take_chunks(sizes, reader, &info);
	info.whole_bytes = reader->position;
	info.failure = reader->failure;
	if (info.failure) {
		info.is_short = !strcmp(info.failure, "unexpected end of data");
		info.bounds = info.rich = NULL;
		info.bounds_bytes = info.rich_bytes = 0;
	}
	return info;
}
