/* SPDX-License-Identifier: MIT */
/* The line of a place in managed code: what is known of it, and the step from IL to a line. */
#ifndef LIBSYM_FILE_MANAGED_LINE_H
#define LIBSYM_FILE_MANAGED_LINE_H

#include "libsym/file/pdb_file.h"
#include "libsym/format/dotnet/il_map.h"

struct managed_line {
	enum sym_line_quality quality; /* SYM_LINE_NONE: no file and line; `reason` explains it */
	uint32_t il_offset;            /* UINT32_MAX: unknown */
	enum sym_line_quality il_quality;
	uint32_t token;   /* 0: unknown */
	const char *mvid; /* with a token; 36 characters */
	const char *file;
	const struct sym_pdb *pdb; /* with a file */
	uint32_t line, column;
	const char *reason;
};

/* Nothing is known. */
static inline struct managed_line managed_line_none(const char *reason)
{
	return (struct managed_line){ .il_offset = UINT32_MAX, .reason = reason };
}

/* Sets method and IL offset. `il_bytes`: size of the method's IL; 0: unknown. */
void managed_line_set_il(struct managed_line *line, enum il_quality quality, uint32_t il_offset,
			 uint32_t il_bytes);

/* Sets file and line by method and IL offset. `pdb` NULL: `reason` says why. */
void managed_line_read(struct managed_line *line, const struct sym_pdb *pdb, const char *reason);

/* Copies everything to the answer. */
void managed_line_answer(const struct managed_line *line, struct sym_answer *answer);

#endif
