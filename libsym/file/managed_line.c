/* SPDX-License-Identifier: MIT */
#include "libsym/file/managed_line.h"

const char *sym_line_quality_text(enum sym_line_quality quality)
{
	static const char *const texts[] = {
		[SYM_LINE_NONE] = "none",
		[SYM_LINE_EXACT] = "exact",
		[SYM_LINE_NEAREST] = "nearest",
		[SYM_LINE_PROLOG] = "prolog",
	};

	return (size_t)quality < sizeof(texts) / sizeof(texts[0]) ? texts[quality] : "none";
}

void managed_line_set_il(struct managed_line *line, enum il_quality quality, uint32_t il_offset,
			 uint32_t il_bytes)
{
	static const enum sym_line_quality qualities[] = {
		[IL_NONE] = SYM_LINE_NONE,
		[IL_EXACT] = SYM_LINE_EXACT,
		[IL_NEAREST] = SYM_LINE_NEAREST,
		[IL_PROLOG] = SYM_LINE_PROLOG,
	};

	line->quality = qualities[quality];
	if (quality == IL_NONE) {
		line->reason = "the debug information of the code is empty or malformed";
	} else if (il_bytes && il_offset >= il_bytes) {
		/* Async variants and other methods that the compiler of the image made. */
		line->quality = SYM_LINE_NONE;
		line->reason = "its debug information is not of the IL in the module";
	} else {
		line->il_offset = il_offset;
		line->il_quality = line->quality;
	}
}

void managed_line_read(struct managed_line *line, const struct sym_pdb *pdb, const char *reason)
{
	static const char *const reasons[] = {
		[PDB_FOUND] = NULL,
		[PDB_NO_METHOD] = "the PDB has no such method",
		[PDB_NO_POINTS] = "the compiler recorded no line for this code",
		[PDB_BAD_POINTS] = "the lines of this method are malformed in the PDB",
	};
	struct pdb_point point;
	enum pdb_outcome outcome;

	if (line->quality == SYM_LINE_NONE)
		return;
	if (!pdb) {
		line->quality = SYM_LINE_NONE;
		line->reason = reason ? reason : "out of memory";
		return;
	}
	outcome = portable_pdb_find(pdb_file_tables(pdb), line->token & 0xffffff, line->il_offset,
				    &point);
	line->reason = reasons[outcome];
	if (outcome == PDB_FOUND) {
		line->file = pdb_file_document(pdb, point.document);
		line->line = point.line;
		line->column = point.column;
		line->pdb = pdb;
		if (!line->file)
			line->reason = reasons[PDB_BAD_POINTS];
	}
	if (!line->file)
		line->quality = SYM_LINE_NONE;
}

void managed_line_answer(const struct managed_line *line, struct sym_answer *answer)
{
	bool has_line = line->quality != SYM_LINE_NONE && line->file;

	answer->il_offset = line->il_offset;
	answer->il_quality = line->il_quality;
	answer->method_token = line->token;
	answer->module_mvid = line->token ? line->mvid : NULL;
	answer->line_quality = has_line ? line->quality : SYM_LINE_NONE;
	answer->line_reason = has_line ? NULL : line->reason;
	if (!has_line)
		return;
	answer->file = line->file;
	answer->line = line->line;
	answer->column = line->column;
	answer->pdb = line->pdb;
}
