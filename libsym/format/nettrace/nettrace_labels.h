/* SPDX-License-Identifier: MIT */
/*
 * The label lists of a nettrace stream of version 6 since its last sequence point. The two
 * activities of each list are kept.
 *
 *   LabelListBlock: u32 first number, u32 count, then labels: u8 kind, content. Bit 7 of the kind
 *   ends a list.
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_LABELS_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct nettrace_label_list {
	uint32_t number;
	bool has_activity, has_related;
	uint8_t activity[16], related_activity[16];
};

struct nettrace_labels {
	struct nettrace_label_list *items; /* ascending by number */
	size_t count, capacity;
};

void nettrace_labels_deinit(struct nettrace_labels *labels);

/* Takes a block; only the lists before the fault if it is malformed. Returns false if out of
 * memory. */
bool nettrace_labels_read(struct nettrace_labels *labels, struct reader block);

/* NULL: no list has this number. */
const struct nettrace_label_list *nettrace_labels_find(const struct nettrace_labels *labels,
						       uint32_t number);

#endif
