/* SPDX-License-Identifier: MIT */
#include "symsrv/key/ssqp.h"

#include <string.h>
#include <strings.h>

#include "libsym/base/hex.h"
#include "symsrv/key/percent.h"

static const size_t build_id_bytes = 20;
static const size_t longest_name_bytes = 255;

static bool all_hex(const char *text, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (hex_values[(unsigned char)text[i]] < 0)
			return false;
	return true;
}

/* Exactly `count` bytes of hex, and nothing behind them; an identity of zeroes is refused. */
static bool take_id(struct key *key, const char *digits, size_t count)
{
	size_t i;

	if (strlen(digits) != 2 * count || !hex_read_bytes(digits, key->id, count))
		return false;
	key->id_bytes = count;
	for (i = 0; i < count; i++)
		if (key->id[i])
			return true;
	return false;
}

static bool take_number(const char *digits, uint32_t *ret)
{
	size_t count = strlen(digits);
	uint64_t value;

	if (!count || count > 8 || hex_read_u64(digits, count, &value) != count)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* Identities that name their kind. A prefix stands before those that it begins with. */
static const struct prefix {
	const char *text;
	enum key_kind kind;
	size_t id_bytes;
} prefixes[] = {
	{ "elf-buildid-sym-", KEY_DEBUGINFO, 20 },
	{ "elf-buildid-coreclr-", KEY_CLR, 20 },
	{ "elf-buildid-", KEY_EXECUTABLE, 20 },
	{ "mach-uuid-sym-", KEY_DWARF, 16 },
	{ "mach-uuid-coreclr-", KEY_MACHO_CLR, 16 },
	{ "mach-uuid-", KEY_MACHO, 16 },
	{ "sha1-", KEY_SHA1, 20 },
};

static const size_t prefix_count = sizeof(prefixes) / sizeof(*prefixes);

static bool ends_with(const char *name, const char *suffix)
{
	size_t length = strlen(name);
	size_t end = strlen(suffix);

	return length > end && !strcasecmp(name + length - end, suffix);
}

static bool is_of_elf(const struct key *key)
{
	return key->kind == KEY_EXECUTABLE || key->kind == KEY_DEBUGINFO || key->kind == KEY_CLR;
}

static bool parse_prefixed(struct key *key, const struct prefix *prefix, const char *digits)
{
	key->kind = prefix->kind;
	if (!take_id(key, digits, prefix->id_bytes))
		return false;
	if (is_of_elf(key))
		key_normalise_build_id(key);
	return true;
}

static bool parse_map(struct key *key, const char *id)
{
	const char *version = id + strlen("r2rmap-v");
	const char *dash = strchr(version, '-');
	const char *digit;

	/* Decimal, unlike the numbers of the other kinds. */
	if (!dash || dash == version || dash - version > 6)
		return false;
	for (digit = version; digit < dash; digit++) {
		if (*digit < '0' || *digit > '9')
			return false;
		key->number = key->number * 10 + (uint32_t)(*digit - '0');
	}
	key->kind = KEY_MAP;
	return take_id(key, dash + 1, 16);
}

static bool parse_pdb(struct key *key, const char *id)
{
	char guid[33];

	if (strlen(id) < 33 || !all_hex(id, strlen(id)) || !take_number(id + 32, &key->number))
		return false;
	memcpy(guid, id, 32);
	guid[32] = 0;
	key->kind = KEY_PDB;
	if (key->number == UINT32_MAX) {
		key->kind = KEY_PORTABLE_PDB;
		key->number = 0;
	}
	return take_id(key, guid, 16);
}

static bool parse_pe(struct key *key, const char *id)
{
	char stamp[9];

	if (strlen(id) < 9 || strlen(id) > 16)
		return false;
	memcpy(stamp, id, 8);
	stamp[8] = 0;
	key->kind = KEY_PE;
	return take_number(stamp, &key->timestamp) && take_number(id + 8, &key->number);
}

static bool parse_identity(struct key *key, const char *name, const char *id)
{
	size_t length = strlen(id);

	for (size_t i = 0; i < prefix_count; i++)
		if (!strncasecmp(id, prefixes[i].text, strlen(prefixes[i].text)))
			return parse_prefixed(key, &prefixes[i], id + strlen(prefixes[i].text));
	if (!strncasecmp(id, "r2rmap-v", strlen("r2rmap-v")))
		return parse_map(key, id);
	if (ends_with(name, ".pdb"))
		return parse_pdb(key, id);
	if (ends_with(name, ".map") && length == 64) {
		key->kind = KEY_SHA256;
		return take_id(key, id, 32);
	}
	if (ends_with(name, ".wasm")) {
		key->kind = KEY_WASM;
		return length % 2 == 0 && length / 2 <= KEY_MAX_ID && length &&
		       take_id(key, id, length / 2);
	}
	return parse_pe(key, id);
}

static bool is_name(const char *name)
{
	size_t length = strlen(name);

	return length && length <= longest_name_bytes && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

/* Splits at slashes; empty pieces (PerfView's doubled slash) are dropped. Returns 0 for more than
 * `most`. */
static size_t ssqp_split(char *path, char **pieces, size_t most)
{
	size_t count = 0;
	char *piece;

	while ((piece = strsep(&path, "/"))) {
		if (!*piece)
			continue;
		if (count == most)
			return 0;
		pieces[count++] = piece;
	}
	return count;
}

bool ssqp_parse(char *path, char *room, struct key *key)
{
	char *pieces[4];
	size_t count = ssqp_split(path, pieces, 4);

	*key = (struct key){ 0 };
	if (count < 3 || !is_name(pieces[0]) || strcasecmp(pieces[0], pieces[count - 1]) != 0 ||
	    !parse_identity(key, pieces[0], pieces[1]))
		return false;
	if (count == 4) {
		if (key->kind != KEY_PDB || strcasecmp(pieces[2], "msfz0") != 0)
			return false;
		key->kind = KEY_MSFZ;
	}
	key_lower_name(pieces[0], room);
	key->name = room;
	key->spelling = pieces[0];
	/* The symbols of an ELF or Mach-O file have one name, whatever the client wrote. */
	if (key->kind == KEY_DEBUGINFO || key->kind == KEY_DWARF)
		key->name = key->spelling = NULL;
	return true;
}

static bool append_identity(struct buf *buf, const struct key *key)
{
	char id[2 * KEY_MAX_ID + 1];

	hex_write_bytes(id, key->id, key->id_bytes);
	if (key->kind == KEY_PE)
		return buf_printf(buf, "%08X%x", key->timestamp, key->number);
	if (key->kind == KEY_MAP)
		return buf_printf(buf, "r2rmap-v%u-%s", key->number, id);
	for (size_t i = 0; i < prefix_count; i++)
		if (prefixes[i].kind == key->kind)
			buf_append_string(buf, prefixes[i].text);
	buf_append_string(buf, id);
	if (is_of_elf(key))
		buf_printf(buf, "%.*s", (int)(2 * (build_id_bytes - key->id_bytes)),
			   "0000000000000000000000000000000000000000");
	else if (key->kind == KEY_PDB || key->kind == KEY_MSFZ)
		buf_printf(buf, "%x", key->number);
	else if (key->kind == KEY_PORTABLE_PDB)
		buf_append_string(buf, "FFFFFFFF");
	return buf->failure == BUF_OK;
}

bool ssqp_format(struct buf *buf, const struct key *key, bool as_spelt)
{
	const char *name = as_spelt ? key->spelling : key->name;

	if (key->kind == KEY_DEBUGINFO)
		name = "_.debug";
	if (key->kind == KEY_DWARF)
		name = "_.dwarf";
	if (!name || key->kind == KEY_SOURCE || key->kind == KEY_NONE ||
	    (is_of_elf(key) && (key->id_bytes < 8 || key->id_bytes > build_id_bytes)))
		return false;
	percent_encode(buf, name, "");
	buf_append_char(buf, '/');
	append_identity(buf, key);
	buf_append_string(buf, key->kind == KEY_MSFZ ? "/msfz0/" : "/");
	return percent_encode(buf, name, "");
}
