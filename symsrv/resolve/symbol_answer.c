/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/symbol_answer.h"

#include <endian.h>

enum answer_flag {
	HAS_NAME = 1,
	HAS_LINKAGE_NAME = 2,
	HAS_FILE = 4,
};

static uint32_t flags_of(const char *name, const char *linkage_name, const char *file)
{
	return (name ? HAS_NAME : 0) | (linkage_name ? HAS_LINKAGE_NAME : 0) |
	       (file ? HAS_FILE : 0);
}

static void write_texts(struct buf *buf, const char *name, const char *linkage_name,
			const char *file)
{
	const char *const texts[] = { name, linkage_name, file };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i])
			buf_append(buf, texts[i], strlen(texts[i]) + 1);
}

void symbol_answer_write(struct buf *buf, const struct sym_answer *answer)
{
	bool is_named = answer && answer->status == SYM_RESOLVED && answer->name;
	size_t count = is_named ? answer->inlined_count : 0;
	uint32_t numbers[4] = { 0 };
	uint64_t offset;

	if (!is_named) {
		buf_append(buf, numbers, sizeof(numbers[0]));
		return;
	}
	if (count > SYMBOL_ANSWER_INLINED)
		count = SYMBOL_ANSWER_INLINED;
	numbers[0] = htole32(flags_of(answer->name, answer->linkage_name, answer->file));
	numbers[1] = htole32(answer->line);
	numbers[2] = htole32(answer->line_quality);
	numbers[3] = htole32((uint32_t)count);
	offset = htole64(answer->offset_bytes);
	buf_append(buf, numbers, sizeof(numbers));
	buf_append(buf, &offset, sizeof(offset));
	write_texts(buf, answer->name, answer->linkage_name, answer->file);
	for (size_t i = 0; i < count; i++) {
		const struct sym_inlined *one = &answer->inlined[i];

		numbers[0] = htole32(flags_of(one->name, one->linkage_name, one->call_file));
		numbers[1] = htole32(one->call_line);
		buf_append(buf, numbers, 2 * sizeof(numbers[0]));
		write_texts(buf, one->name, one->linkage_name, one->call_file);
	}
}

/* Both the answer and an inlined function always have a name. */
static void read_texts(struct reader *reader, uint32_t flags, const char **name_ret,
		       const char **linkage_name_ret, const char **file_ret)
{
	if (!(flags & HAS_NAME) || flags > (HAS_NAME | HAS_LINKAGE_NAME | HAS_FILE))
		reader_fail(reader, "malformed flags");
	*name_ret = reader_string(reader);
	*linkage_name_ret = flags & HAS_LINKAGE_NAME ? reader_string(reader) : NULL;
	*file_ret = flags & HAS_FILE ? reader_string(reader) : NULL;
}

bool symbol_answer_read(struct reader *reader, struct sym_inlined inlined[SYMBOL_ANSWER_INLINED],
			struct sym_answer *ret)
{
	uint32_t flags = reader_u32(reader);

	*ret = (struct sym_answer){ .status = SYM_NO_MATCH };
	if (!flags)
		return reader_ok(reader);
	ret->status = SYM_RESOLVED;
	ret->line = reader_u32(reader);
	ret->line_quality = reader_u32(reader);
	ret->inlined_count = reader_u32(reader);
	ret->offset_bytes = reader_u64(reader);
	ret->inlined = inlined;
	if (ret->offset_bytes > INT64_MAX)
		reader_fail(reader, "an offset that JSON readers do not take");
	read_texts(reader, flags, &ret->name, &ret->linkage_name, &ret->file);
	if (ret->inlined_count > SYMBOL_ANSWER_INLINED)
		reader_fail(reader, "too many inlined functions");
	for (size_t i = 0; reader_ok(reader) && i < ret->inlined_count; i++) {
		struct sym_inlined *one = &inlined[i];

		flags = reader_u32(reader);
		*one = (struct sym_inlined){ .call_line = reader_u32(reader) };
		read_texts(reader, flags, &one->name, &one->linkage_name, &one->call_file);
	}
	return reader_ok(reader);
}
