/* SPDX-License-Identifier: MIT */
#include "mapgen/resolve_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mapgen/json_output.h"

/* The name in the form asked for; the full one when memory is short. */
static const char *shown_name(struct answer_printer *printer, const struct sym_answer *answer)
{
	const char *name = answer->name;
	size_t needed;
	char *room;

	if (printer->options->names == NAME_FORM_RAW && answer->linkage_name)
		return answer->linkage_name;
	/* Of native code there is nothing to be left out: its names are no .NET signatures. */
	if (printer->options->names != NAME_FORM_SHORT || answer->source == SYM_SOURCE_ELF ||
	    answer->source == SYM_SOURCE_EH_FRAME || answer->source == SYM_SOURCE_DWARF ||
	    answer->source == SYM_SOURCE_GOPCLNTAB)
		return name;
	needed = sym_name_shorten(name, printer->short_name, printer->short_name_bytes) + 1;
	if (needed > printer->short_name_bytes) {
		room = realloc(printer->short_name, needed);
		if (!room)
			return name;
		printer->short_name = room;
		printer->short_name_bytes = needed;
		sym_name_shorten(name, room, needed);
	}
	return printer->short_name;
}

static const char *shown_tier(const struct answer_printer *printer, const struct sym_answer *answer)
{
	return printer->options->tiers == TIER_FORM_STRIP ? NULL : answer->tier;
}

/* Foreign text onto what may be a terminal. */
static void print_text(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

/* Code that no line of its file says, such as what a compiler adds, has line 0. */
static void print_place(const char *file, uint32_t line)
{
	print_text(file);
	if (line)
		printf(":%" PRIu32, line);
	else
		fputs(":?", stdout);
}

static const char *inlined_name(const struct answer_printer *printer,
				const struct sym_inlined *inlined)
{
	return printer->options->names == NAME_FORM_RAW && inlined->linkage_name
		       ? inlined->linkage_name
		       : inlined->name;
}

static void print_inlined(const struct answer_printer *printer, const struct sym_inlined *inlined)
{
	fputs("    ", stdout);
	print_text(*inlined->name ? inlined_name(printer, inlined) : "?");
	fputs(" inlined at ", stdout);
	print_place(inlined->call_file ? inlined->call_file : "?", inlined->call_line);
	putchar('\n');
}

static void print_answer(struct answer_printer *printer, const struct question *question,
			 const struct sym_answer *answer)
{
	const char *tier = shown_tier(printer, answer);

	print_text(question->text);
	putchar(' ');
	if (answer->status == SYM_RESOLVED || answer->status == SYM_UNNAMED) {
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
		print_place(answer->file, answer->line);
	}
	putchar('\n');
	for (size_t i = 0; i < answer->inlined_count; i++)
		print_inlined(printer, &answer->inlined[i]);
}

/* Beyond a name, when it was asked for. */
static void add_place_json(const struct answer_printer *printer, const struct sym_answer *answer,
			   json_t *object)
{
	json_t *array;

	if (!printer->options->lines && !printer->options->inlines)
		return;
	json_object_set_new(object, "file", json_output_text(answer->file));
	json_object_set_new(object, "line", json_integer(answer->line));
	json_object_set_new(object, "column", json_integer(answer->column));
	if (!printer->options->inlines)
		return;
	array = json_array();
	for (size_t i = 0; i < answer->inlined_count; i++) {
		const struct sym_inlined *inlined = &answer->inlined[i];

		json_array_append_new(array,
				      json_pack("{s:o, s:o, s:I, s:I}", "name",
						json_output_text(inlined_name(printer, inlined)),
						"call_file", json_output_text(inlined->call_file),
						"call_line", (json_int_t)inlined->call_line,
						"call_column", (json_int_t)inlined->call_column));
	}
	json_object_set_new(object, "inlined", array);
}

/* A composite has no MVID of its own; its components have. */
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
	bool bounded = named || answer->status == SYM_UNNAMED;
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

/* One array, one object a line, each as soon as it is known. */
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
}
