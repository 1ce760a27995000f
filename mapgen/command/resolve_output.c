/* SPDX-License-Identifier: MIT */
#include "mapgen/command/resolve_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mapgen/cli/json_output.h"
#include "mapgen/cli/name_form.h"

/* The name in the form of the options; the full name when out of memory. */
static const char *managed_name(struct answer_printer *printer, const char *name)
{
	size_t needed;
	char *room;

	if (printer->options->names == NAME_FORM_FULL)
		return name;
	needed = name_form_write(printer->options->names, name, printer->short_name,
				 printer->short_name_bytes) +
		 1;
	if (needed > printer->short_name_bytes) {
		room = realloc(printer->short_name, needed);
		if (!room)
			return name;
		printer->short_name = room;
		printer->short_name_bytes = needed;
		name_form_write(printer->options->names, name, room, needed);
	}
	return printer->short_name;
}

/* Native names are not .NET signatures and cannot be shortened. */
static bool has_native_name(const struct sym_answer *answer)
{
	return answer->source == SYM_SOURCE_ELF || answer->source == SYM_SOURCE_EH_FRAME ||
	       answer->source == SYM_SOURCE_DWARF || answer->source == SYM_SOURCE_GOPCLNTAB;
}

static const char *shown_name(struct answer_printer *printer, const struct sym_answer *answer)
{
	if (printer->options->no_demangle && answer->linkage_name)
		return answer->linkage_name;
	return has_native_name(answer) ? answer->name : managed_name(printer, answer->name);
}

static const char *shown_tier(const struct answer_printer *printer, const struct sym_answer *answer)
{
	return printer->options->tiers == TIER_FORM_STRIP ? NULL : answer->tier;
}

/* Prints foreign text without control characters. */
static void print_text(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

/* Line 0: code that no line of the file stands for, such as code that a compiler adds. */
static void print_place(const char *file, uint32_t line, bool is_approximate)
{
	print_text(file);
	if (line)
		printf(":%s%" PRIu32, is_approximate ? "~" : "", line);
	else
		fputs(":?", stdout);
}

/* The line as the fragment of the URL. */
static void print_url(struct answer_printer *printer, const struct sym_pdb *pdb, const char *file,
		      uint32_t line)
{
	const char *reason, *url;

	if (!printer->urls)
		return;
	url = source_urls_find(printer->urls, pdb, file, &reason);
	if (url)
		printf(" %s#L%" PRIu32, url, line);
}

static void add_url_json(struct answer_printer *printer, const struct sym_pdb *pdb,
			 const char *file, json_t *object)
{
	const char *reason = "no source file is known", *url = NULL;

	if (!printer->urls)
		return;
	if (file)
		url = source_urls_find(printer->urls, pdb, file, &reason);
	json_object_set_new(object, "url", json_output_text(url));
	json_object_set_new(object, "url_reason", json_output_text(reason));
}

static const char *inlined_name(struct answer_printer *printer, const struct sym_answer *answer,
				const struct sym_inlined *inlined)
{
	if (printer->options->no_demangle && inlined->linkage_name)
		return inlined->linkage_name;
	return has_native_name(answer) ? inlined->name : managed_name(printer, inlined->name);
}

static void print_inlined(struct answer_printer *printer, const struct sym_answer *answer,
			  const struct sym_inlined *inlined)
{
	fputs("    ", stdout);
	print_text(*inlined->name ? inlined_name(printer, answer, inlined) : "?");
	fputs(" inlined at ", stdout);
	print_place(inlined->call_file ? inlined->call_file : "?", inlined->call_line, false);
	putchar('\n');
}

static void print_answer(struct answer_printer *printer, const struct question *question,
			 const struct sym_answer *answer)
{
	const char *tier = shown_tier(printer, answer);

	print_text(question->text);
	putchar(' ');
	if (answer->status == SYM_RESOLVED || answer->status == SYM_BOUNDS_ONLY) {
		print_text(shown_name(printer, answer));
		if (tier)
			printf("[%s]", tier);
		printf("+0x%" PRIx64, answer->offset_bytes);
	} else {
		printf("[%s", sym_status_text(answer->status));
		if (answer->reason) {
			fputs(": ", stdout);
			print_text(answer->reason);
		}
		putchar(']');
	}
	if (answer->status != SYM_UNMAPPED) {
		fputs(" (", stdout);
		print_text(*answer->image_path ? answer->image_path : "anonymous memory");
		putchar(')');
	}
	if (answer->file) {
		putchar(' ');
		print_place(answer->file, answer->line, answer->line_quality == SYM_LINE_NEAREST);
		print_url(printer, answer->pdb, answer->file, answer->line);
	} else if (answer->method_token && answer->il_offset != UINT32_MAX) {
		printf(" +IL %s0x%" PRIx32, answer->il_quality == SYM_LINE_NEAREST ? "~" : "",
		       answer->il_offset);
	}
	putchar('\n');
	for (size_t i = 0; i < answer->inlined_count; i++)
		print_inlined(printer, answer, &answer->inlined[i]);
}

/* Adds the facts by which a line can be looked up later, on any machine. */
static void add_il_json(const struct sym_answer *answer, json_t *object)
{
	char token[16];

	snprintf(token, sizeof(token), "0x%08" PRIx32, answer->method_token);
	json_object_set_new(object, "module_mvid", json_output_text(answer->module_mvid));
	json_object_set_new(object, "method_token",
			    answer->method_token ? json_string(token) : json_null());
	json_object_set_new(object, "il_offset",
			    answer->method_token && answer->il_offset != UINT32_MAX
				    ? json_integer(answer->il_offset)
				    : json_null());
	json_object_set_new(
		object, "il_quality",
		json_string(sym_line_quality_text((enum sym_line_quality)answer->il_quality)));
}

/* The lines of --lines and --inlines. */
static void add_place_json(struct answer_printer *printer, const struct sym_answer *answer,
			   json_t *object)
{
	json_t *array;

	if (!printer->options->lines && !printer->options->inlines && !printer->urls)
		return;
	json_object_set_new(object, "file", json_output_text(answer->file));
	json_object_set_new(object, "line", json_integer(answer->line));
	json_object_set_new(object, "column", json_integer(answer->column));
	json_object_set_new(
		object, "quality",
		json_string(sym_line_quality_text((enum sym_line_quality)answer->line_quality)));
	json_object_set_new(object, "line_reason", json_output_text(answer->line_reason));
	add_il_json(answer, object);
	add_url_json(printer, answer->pdb, answer->file, object);
	if (!printer->options->inlines)
		return;
	array = json_array();
	for (size_t i = 0; i < answer->inlined_count; i++) {
		const struct sym_inlined *inlined = &answer->inlined[i];

		json_array_append_new(
			array, json_pack("{s:o, s:o, s:I, s:I}", "name",
					 json_output_text(inlined_name(printer, answer, inlined)),
					 "call_file", json_output_text(inlined->call_file),
					 "call_line", (json_int_t)inlined->call_line, "call_column",
					 (json_int_t)inlined->call_column));
	}
	json_object_set_new(object, "inlined", array);
}

/* A composite image has no MVID; its components have one each. */
static void add_component_json(const struct sym_answer *answer, json_t *object)
{
	if (answer->component)
		json_object_set_new(object, "component",
				    json_pack("{s:o, s:o}", "assembly",
					      json_output_text(answer->component), "mvid",
					      json_output_text(answer->component_mvid)));
}

static json_t *answer_json(struct answer_printer *printer, const struct question *question,
			   const struct sym_answer *answer)
{
	bool named = answer->status == SYM_RESOLVED;
	bool bounded = named || answer->status == SYM_BOUNDS_ONLY;
	const char *mvid = answer->image ? sym_image_mvid(answer->image) : NULL;
	json_t *object;

	object = json_pack(
		"{s:o, s:o, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "input",
		json_output_text(question->text), "position", json_output_address(answer->address),
		"resolved", named, "status", sym_status_text(answer->status), "reason",
		json_output_text(answer->reason), "name",
		json_output_text(bounded ? shown_name(printer, answer) : NULL), "tier",
		json_output_text(named ? shown_tier(printer, answer) : NULL), "offset",
		bounded ? json_integer((json_int_t)answer->offset_bytes) : json_null(), "size",
		bounded ? json_integer((json_int_t)answer->size_bytes) : json_null(), "image",
		json_output_text(answer->image_path), "image_position",
		json_output_address(answer->image_position), "mvid", json_output_text(mvid),
		"source", sym_source_text(answer->source));
	add_component_json(answer, object);
	add_place_json(printer, answer, object);
	return object;
}

/* One array with one object a line, each printed as soon as it is known. */
static void print_json(struct answer_printer *printer, json_t *object)
{
	fputs(printer->objects++ ? ",\n" : "[", stdout);
	json_output_compact(object);
}

void answer_printer_print(struct answer_printer *printer, const struct question *question,
			  const struct sym_answer *answer)
{
	if (printer->options->json)
		print_json(printer, answer_json(printer, question, answer));
	else
		print_answer(printer, question, answer);
}

void answer_printer_print_line(struct answer_printer *printer, const struct question *question,
			       const struct sym_pdb *pdb, const struct sym_source_line *line)
{
	const enum sym_line_quality quality =
		question->is_approximate ? SYM_LINE_NEAREST : SYM_LINE_EXACT;

	if (printer->options->json) {
		json_t *object = json_pack(
			"{s:o, s:b, s:s, s:o, s:I, s:I, s:s}", "input",
			json_output_text(question->text), "resolved", 1, "status",
			sym_status_text(SYM_RESOLVED), "file", json_output_text(line->file), "line",
			(json_int_t)line->line, "column", (json_int_t)line->column, "quality",
			sym_line_quality_text(quality));

		add_url_json(printer, pdb, line->file, object);
		print_json(printer, object);
		return;
	}
	print_text(question->text);
	putchar(' ');
	print_place(line->file, line->line, question->is_approximate);
	print_url(printer, pdb, line->file, line->line);
	putchar('\n');
}

void answer_printer_print_bad(struct answer_printer *printer, const struct question *question,
			      const char *reason)
{
	if (printer->options->json) {
		print_json(printer,
			   json_pack("{s:o, s:b, s:s, s:o, s:n}", "input",
				     json_output_text(question->text), "resolved", 0, "status",
				     "no answer", "reason", json_output_text(reason), "name"));
		return;
	}
	print_text(question->text);
	fputs(" [", stdout);
	print_text(reason);
	puts("]");
}

void answer_printer_end(struct answer_printer *printer)
{
	if (printer->options->json)
		puts(printer->objects ? "]" : "[]");
}

void answer_printer_deinit(struct answer_printer *printer)
{
	free(printer->short_name);
	source_urls_destroy(printer->urls);
}
