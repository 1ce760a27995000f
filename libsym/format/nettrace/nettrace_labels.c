/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace/nettrace_labels.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/base/leb.h"
#include "libsym/format/nettrace/nettrace_text.h"

enum {
	MOST_LISTS = 1 << 20,
	LAST_OF_LIST = 0x80,
};

enum label {
	LABEL_ACTIVITY = 1,
	LABEL_RELATED = 2,
	LABEL_TRACE = 3,
	LABEL_SPAN = 4,
	LABEL_TEXT = 5,
	LABEL_NUMBER = 6,
	LABEL_OPCODE = 7,
	LABEL_KEYWORDS = 8,
	LABEL_LEVEL = 9,
	LABEL_VERSION = 10,
};

void nettrace_labels_deinit(struct nettrace_labels *labels)
{
	free(labels->items);
	*labels = (struct nettrace_labels){ 0 };
}

static bool read_guid(struct reader *reader, uint8_t ret[16])
{
	const uint8_t *bytes = reader_bytes(reader, 16);

	if (bytes)
		memcpy(ret, bytes, 16);
	return bytes != NULL;
}

static void read_label(struct reader *block, enum label label, struct nettrace_label_list *list)
{
	switch (label) {
	case LABEL_ACTIVITY:
		list->has_activity = read_guid(block, list->activity);
		break;
	case LABEL_RELATED:
		list->has_related = read_guid(block, list->related_activity);
		break;
	case LABEL_TRACE:
		reader_skip(block, 16);
		break;
	case LABEL_SPAN:
	case LABEL_KEYWORDS:
		reader_skip(block, 8);
		break;
	case LABEL_TEXT:
		nettrace_skip_text8(block);
		nettrace_skip_text8(block);
		break;
	case LABEL_NUMBER:
		nettrace_skip_text8(block);
		leb_unsigned(block);
		break;
	case LABEL_OPCODE:
	case LABEL_LEVEL:
	case LABEL_VERSION:
		reader_skip(block, 1);
		break;
	default:
		reader_fail(block, "unknown label");
	}
}

bool nettrace_labels_read(struct nettrace_labels *labels, struct reader block)
{
	uint32_t number = reader_u32(&block), count = reader_u32(&block);

	if (labels->count && number <= labels->items[labels->count - 1].number)
		labels->count = 0;
	for (uint32_t i = 0; i < count && reader_left(&block) && labels->count < MOST_LISTS; i++) {
		struct nettrace_label_list list = { .number = number + i };
		uint8_t kind = 0;

		while (!(kind & LAST_OF_LIST) && reader_left(&block)) {
			kind = reader_u8(&block);
			read_label(&block, (enum label)(kind & ~LAST_OF_LIST), &list);
		}
		if (!reader_ok(&block))
			break;
		if (!grow_items((void **)&labels->items, &labels->capacity, labels->count,
				sizeof(*labels->items)))
			return false;
		labels->items[labels->count++] = list;
	}
	return true;
}

const struct nettrace_label_list *nettrace_labels_find(const struct nettrace_labels *labels,
						       uint32_t number)
{
	size_t before = ASCENDING_COUNT(labels->count, i, labels->items[i].number <= number);

	return before && labels->items[before - 1].number == number ? &labels->items[before - 1]
								    : NULL;
}
