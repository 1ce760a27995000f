/* SPDX-License-Identifier: MIT */
#include "symsrv/key/debuginfod.h"

#include <string.h>

#include "libsym/base/hex.h"
#include "symsrv/key/percent.h"

static const size_t longest_section_name_bytes = 255;

bool debuginfod_parse(const char *path, struct key *key, const char **section_ret)
{
	size_t digits = strspn(path, "0123456789abcdef");
	const char *rest = path + digits;

	*key = (struct key){ 0 };
	*section_ret = NULL;
	if (digits < 2 || digits % 2 || digits > 2 * KEY_MAX_ID || *rest != '/' ||
	    !hex_read_bytes(path, key->id, digits / 2))
		return false;
	key->id_bytes = digits / 2;
	key_normalise_build_id(key);
	rest++;
	if (!strcmp(rest, "executable")) {
		key->kind = KEY_EXECUTABLE;
	} else if (!strcmp(rest, "debuginfo")) {
		key->kind = KEY_DEBUGINFO;
	} else if (!strcmp(rest, "symtab")) {
		key->kind = KEY_NAMES;
	} else if (!strncmp(rest, "section/", 8) && rest[8] && !strchr(rest + 8, '/') &&
		   strlen(rest + 8) <= longest_section_name_bytes) {
		key->kind = KEY_DEBUGINFO;
		*section_ret = rest + 8;
	} else if (!strncmp(rest, "source/", 7) && rest[7] && strlen(rest + 6) < KEY_MAX_NAME) {
		key->kind = KEY_SOURCE;
		key->name = key->spelling = rest + 6;
	}
	return key->kind != KEY_NONE;
}

bool debuginfod_format(struct buf *buf, const struct key *key)
{
	char id[2 * KEY_MAX_ID + 1];

	hex_write_bytes(id, key->id, key->id_bytes);
	switch (key->kind) {
	case KEY_EXECUTABLE:
	case KEY_DEBUGINFO:
		return buf_printf(buf, "buildid/%s/%s", id, key_kind_text(key->kind));
	case KEY_NAMES:
		return buf_printf(buf, "buildid/%s/symtab", id);
	case KEY_SOURCE:
		return buf_printf(buf, "buildid/%s/source", id) &&
		       percent_encode(buf, key->name, "/");
	default:
		return false;
	}
}
