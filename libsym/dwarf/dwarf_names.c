/* SPDX-License-Identifier: MIT */
#include "libsym/dwarf/dwarf_names.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/limits.h"
#include "libsym/symbols/demangle.h"

static const char *intern_text(struct name_pool *names, const char *text)
{
	return strlen(text) <= LIMIT_NAME_BYTES ? name_pool_add(names, text, strlen(text)) : NULL;
}

static const char *text_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute found;
	const char *text =
		dwarf_attr_integrate(die, attribute, &found) ? dwarf_formstring(&found) : NULL;

	return text && *text ? text : NULL;
}

static uint32_t number_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute found;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &found) || dwarf_formudata(&found, &value) ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static void name_scope(struct name_pool *names, struct dwarf_scope *scope)
{
	const char *linkage = text_of(&scope->die, DW_AT_linkage_name);
	const char *plain = text_of(&scope->die, DW_AT_name);
	const char *shown = NULL;
	struct buf text;

	if (!linkage)
		linkage = text_of(&scope->die, DW_AT_MIPS_linkage_name);
	buf_init(&text, LIMIT_NAME_BYTES + 1);
	if (linkage && demangle(linkage, &text))
		shown = buf_string(&text);
	/* An unmangled linkage name is an assembler alias; the source uses the plain name. */
	if (!shown)
		shown = plain ? plain : linkage;
	scope->name = shown ? intern_text(names, shown) : NULL;
	if (linkage && shown != linkage)
		scope->linkage = intern_text(names, linkage);
	buf_deinit(&text);
}

/* For a file in the compilation directory itself, libdw has already prepended the directory. */
static bool is_below(const char *path, const char *directory)
{
	size_t bytes = strlen(directory);

	return !strncmp(path, directory, bytes) && path[bytes] == '/';
}

const char *dwarf_names_path(struct name_pool *names, Dwarf_Die *unit, const char *path)
{
	const char *directory, *between, *kept;
	struct buf text;

	if (!path || *path == '/' || *path == '<')
		return path ? intern_text(names, path) : NULL;
	directory = text_of(unit, DW_AT_comp_dir);
	if (!directory || !*directory || is_below(path, directory))
		return intern_text(names, path);
	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	between = directory[strlen(directory) - 1] == '/' ? "" : "/";
	kept = intern_text(names, buf_printf(&text, "%s%s%s", directory, between, path)
					  ? buf_string(&text)
					  : path);
	buf_deinit(&text);
	return kept;
}

static void record_call_place(struct name_pool *names, Dwarf_Die *unit, struct dwarf_scope *scope)
{
	uint32_t number = number_of(&scope->die, DW_AT_call_file);
	const char *path = NULL;
	Dwarf_Files *files;
	size_t count;

	/* DWARF 5 counts from 0; earlier versions use 0 for none. libdw has an entry 0 for both. */
	if (!dwarf_getsrcfiles(unit, &files, &count) && number < count)
		path = dwarf_filesrc(files, number, NULL, NULL);
	scope->call_file = dwarf_names_path(names, unit, path);
	scope->call_line = number_of(&scope->die, DW_AT_call_line);
	scope->call_column = number_of(&scope->die, DW_AT_call_column);
}

void dwarf_names_scope(struct name_pool *names, Dwarf_Die *unit, struct dwarf_scope *scope)
{
	name_scope(names, scope);
	if (scope->is_inlined)
		record_call_place(names, unit, scope);
}
