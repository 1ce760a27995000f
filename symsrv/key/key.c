/* SPDX-License-Identifier: MIT */
/*
 * The text of a key is "KIND/ID", "KIND/ID/NAME", "KIND/ID-NUMBER/NAME" or "KIND/TIMESTAMP-
 * SIZE/NAME", one form for each kind. Tables and the store use the text, so two protocols share
 * one object. key_matches() compares a key with the identity that was read from a file.
 */
#include "symsrv/key/key.h"

#include <stdio.h>
#include <string.h>

#include "libsym/base/hex.h"

/* SSQP pads shorter build-ids to this length. */
static const size_t padded_bytes = 20;

enum key_shape {
	SHAPE_ID,       /* KIND/ID */
	SHAPE_NAMED_ID, /* KIND/ID/NAME */
	SHAPE_NUMBERED, /* KIND/ID-NUMBER/NAME */
	SHAPE_IMAGE,    /* KIND/TIMESTAMP-SIZE/NAME */
};

static const struct key_kind_row {
	const char *text;
	enum key_shape shape;
} kinds[KEY_KIND_COUNT] = {
	[KEY_NONE] = { "none", SHAPE_ID },
	[KEY_EXECUTABLE] = { "executable", SHAPE_ID },
	[KEY_DEBUGINFO] = { "debuginfo", SHAPE_ID },
	[KEY_SOURCE] = { "source", SHAPE_NAMED_ID },
	[KEY_CLR] = { "clr", SHAPE_NAMED_ID },
	[KEY_PE] = { "pe", SHAPE_IMAGE },
	[KEY_PDB] = { "pdb", SHAPE_NUMBERED },
	[KEY_MSFZ] = { "msfz", SHAPE_NUMBERED },
	[KEY_PORTABLE_PDB] = { "portable-pdb", SHAPE_NAMED_ID },
	[KEY_MAP] = { "r2rmap", SHAPE_NUMBERED },
	[KEY_MACHO] = { "macho", SHAPE_ID },
	[KEY_DWARF] = { "dwarf", SHAPE_ID },
	[KEY_MACHO_CLR] = { "macho-clr", SHAPE_NAMED_ID },
	[KEY_SHA1] = { "sha1", SHAPE_NAMED_ID },
	[KEY_SHA256] = { "sha256", SHAPE_NAMED_ID },
	[KEY_WASM] = { "wasm", SHAPE_ID },
	[KEY_NAMES] = { "names", SHAPE_ID },
	[KEY_NAMES_ZSTD] = { "names-zstd", SHAPE_ID },
	[KEY_PE_R2RMAP] = { "pe-r2rmap", SHAPE_IMAGE },
	[KEY_PE_MAP] = { "pe-map", SHAPE_IMAGE },
	[KEY_IMAGE_OF_MAP] = { "image-of-map", SHAPE_NUMBERED },
	[KEY_IMAGE_OF_PDB] = { "image-of-pdb", SHAPE_ID },
};

const char *key_kind_text(enum key_kind kind)
{
	return kinds[kind].text;
}

bool key_lower_name(const char *name, char *room)
{
	bool is_good = true;

	for (; *name; name++) {
		unsigned char byte = (unsigned char)*name;

		is_good &= byte >= 0x20 && byte != 0x7f && byte != '/';
		*room++ = (char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
	}
	*room = 0;
	return is_good;
}

void key_normalise_build_id(struct key *key)
{
	static const uint8_t zeroes[12];

	if (key->id_bytes != padded_bytes)
		return;
	if (!memcmp(key->id + 8, zeroes, 12))
		key->id_bytes = 8;
	else if (!memcmp(key->id + 16, zeroes, 4))
		key->id_bytes = 16;
}

static size_t key_append(char *room, size_t position, const char *text)
{
	size_t length = strlen(text);

	memcpy(room + position, text, length + 1);
	return position + length;
}

size_t key_text(const struct key *key, char room[KEY_TEXT_BYTES])
{
	const struct key_kind_row *kind = &kinds[key->kind];
	size_t at = key_append(room, 0, kind->text);

	room[at++] = '/';
	if (kind->shape == SHAPE_IMAGE) {
		at += hex_write_u64_padded(room + at, key->timestamp, 8);
		room[at++] = '-';
		at += hex_write_u64(room + at, key->number);
	} else {
		hex_write_bytes(room + at, key->id, key->id_bytes);
		at += 2 * key->id_bytes;
	}
	if (kind->shape == SHAPE_NUMBERED) {
		room[at++] = '-';
		at += hex_write_u64(room + at, key->number);
	}
	room[at] = 0;
	if (kind->shape != SHAPE_ID) {
		room[at++] = '/';
		at = key_append(room, at, key->name);
	}
	return at;
}

static bool read_number(const char **text, uint32_t *ret)
{
	uint64_t value;
	size_t count = hex_read_u64(*text, strnlen(*text, 17), &value);

	if (!count || value > UINT32_MAX)
		return false;
	*text += count;
	*ret = (uint32_t)value;
	return true;
}

static bool read_identity(struct key *key, enum key_shape shape, const char **text)
{
	size_t digits;

	if (shape == SHAPE_IMAGE) {
		if (!read_number(text, &key->timestamp) || *(*text)++ != '-')
			return false;
		return read_number(text, &key->number);
	}
	digits = strspn(*text, "0123456789abcdef");
	if (!digits || digits % 2 || digits > 2 * KEY_MAX_ID ||
	    !hex_read_bytes(*text, key->id, digits / 2))
		return false;
	key->id_bytes = digits / 2;
	*text += digits;
	if (shape == SHAPE_NUMBERED)
		return *(*text)++ == '-' && read_number(text, &key->number);
	return true;
}

bool key_from_text(struct key *key, const char *text)
{
	const char *slash = strchr(text, '/');
	enum key_kind kind;

	*key = (struct key){ 0 };
	for (kind = KEY_NONE + 1; slash && kind < KEY_KIND_COUNT; kind++)
		if (strlen(kinds[kind].text) == (size_t)(slash - text) &&
		    !memcmp(kinds[kind].text, text, (size_t)(slash - text)))
			key->kind = kind;
	if (!key->kind)
		return false;
	text = slash + 1;
	if (!read_identity(key, kinds[key->kind].shape, &text))
		return false;
	if (kinds[key->kind].shape == SHAPE_ID)
		return !*text;
	if (*text != '/' || !text[1])
		return false;
	key->name = key->spelling = text + 1;
	return true;
}

/* Zeros stand for "none" in many files, and are the id of none. Also true for no bytes. */
static bool has_zero_id(const struct sym_identity *identity)
{
	for (size_t i = 0; i < identity->id_size_bytes; i++)
		if (identity->id[i])
			return false;
	return true;
}

static bool same_id(const struct key *key, const struct sym_identity *identity)
{
	struct key other = { .id_bytes = identity->id_size_bytes };

	if (has_zero_id(identity))
		return false;
	memcpy(other.id, identity->id, identity->id_size_bytes);
	if (key->kind == KEY_EXECUTABLE || key->kind == KEY_DEBUGINFO || key->kind == KEY_NAMES)
		key_normalise_build_id(&other);
	return key->id_bytes == other.id_bytes && !memcmp(key->id, other.id, other.id_bytes);
}

static const char *elf_objection(const struct key *key, const struct sym_identity *identity)
{
	uint32_t wanted = key->kind == KEY_EXECUTABLE ? SYM_CONTENT_CODE
			  : key->kind == KEY_NAMES
				  ? SYM_CONTENT_SYMBOL_TABLE
				  : SYM_CONTENT_DEBUG_INFO | SYM_CONTENT_SYMBOL_TABLE;

	if (identity->kind != SYM_IDENTITY_ELF)
		return "not an ELF file";
	if (!same_id(key, identity))
		return "another build-id";
	return identity->contents & wanted ? NULL : "without the content asked for";
}

static const char *pdb_objection(const struct key *key, const struct sym_identity *identity)
{
	static const uint32_t containers[KEY_KIND_COUNT] = {
		[KEY_PDB] = SYM_IDENTITY_PDB,
		[KEY_MSFZ] = SYM_IDENTITY_COMPRESSED_PDB,
		[KEY_PORTABLE_PDB] = SYM_IDENTITY_PORTABLE_PDB,
	};

	if (identity->kind != containers[key->kind])
		return "not a PDB of that kind";
	if (!same_id(key, identity))
		return "another GUID";
	/* Microsoft's server answers a request for an older age with a newer file. */
	if (key->kind != KEY_PORTABLE_PDB && identity->age < key->number)
		return "an older age";
	return NULL;
}

static const char *key_objection(const struct key *key, const struct sym_identity *identity)
{
	switch (key->kind) {
	case KEY_EXECUTABLE:
	case KEY_DEBUGINFO:
	case KEY_NAMES:
		return elf_objection(key, identity);
	case KEY_PE:
		if (identity->kind != SYM_IDENTITY_PE)
			return "not a PE file";
		return identity->timestamp == key->timestamp &&
				       identity->image_size_bytes == key->number
			       ? NULL
			       : "another time stamp or size";
	case KEY_PDB:
	case KEY_MSFZ:
	case KEY_PORTABLE_PDB:
		return pdb_objection(key, identity);
	case KEY_MAP:
		if (identity->kind != SYM_IDENTITY_RELATIVE_MAP || identity->age != key->number)
			return "not an r2rmap of that version";
		return same_id(key, identity) ? NULL : "another signature";
	case KEY_MACHO:
	case KEY_DWARF:
		return identity->kind == SYM_IDENTITY_MACHO && same_id(key, identity)
			       ? NULL
			       : "not that Mach-O file";
	case KEY_WASM:
		return identity->kind == SYM_IDENTITY_WASM && same_id(key, identity)
			       ? NULL
			       : "not that WebAssembly module";
	case KEY_CLR:
		return identity->kind == SYM_IDENTITY_ELF || identity->kind == SYM_IDENTITY_PE
			       ? NULL
			       : "neither ELF nor PE";
	default:
		return NULL;
	}
}

bool key_matches(const struct key *key, const struct sym_identity *identity,
		 const char **reason_ret)
{
	*reason_ret = key_objection(key, identity);
	return !*reason_ret;
}

bool key_is_verifiable(enum key_kind kind)
{
	return kind != KEY_SOURCE && kind != KEY_CLR && kind != KEY_MACHO_CLR;
}

static size_t keys_of_elf(const struct sym_identity *identity, struct key keys[2])
{
	const uint32_t names = SYM_CONTENT_DEBUG_INFO | SYM_CONTENT_SYMBOL_TABLE;
	size_t count = 0;
	size_t i;

	if (identity->contents & SYM_CONTENT_CODE)
		keys[count++].kind = KEY_EXECUTABLE;
	if (identity->contents & names)
		keys[count++].kind = KEY_DEBUGINFO;
	for (i = 0; i < count; i++)
		key_normalise_build_id(&keys[i]);
	return count;
}

size_t keys_of_identity(const struct sym_identity *identity, const char *name, struct key keys[2])
{
	static const enum key_kind by_identity[] = {
		[SYM_IDENTITY_PE] = KEY_PE,
		[SYM_IDENTITY_PDB] = KEY_PDB,
		[SYM_IDENTITY_COMPRESSED_PDB] = KEY_MSFZ,
		[SYM_IDENTITY_PORTABLE_PDB] = KEY_PORTABLE_PDB,
		[SYM_IDENTITY_RELATIVE_MAP] = KEY_MAP,
		[SYM_IDENTITY_MACHO] = KEY_MACHO,
		[SYM_IDENTITY_WASM] = KEY_WASM,
	};
	size_t i;

	if (identity->kind != SYM_IDENTITY_PE && has_zero_id(identity))
		return 0;
	for (i = 0; i < 2; i++) {
		keys[i] = (struct key){ .id_bytes = identity->id_size_bytes };
		memcpy(keys[i].id, identity->id, identity->id_size_bytes);
	}
	if (identity->kind == SYM_IDENTITY_ELF)
		return keys_of_elf(identity, keys);
	if (identity->kind >= sizeof(by_identity) / sizeof(*by_identity) ||
	    !by_identity[identity->kind])
		return 0;
	keys[0].kind = by_identity[identity->kind];
	keys[0].number =
		identity->kind == SYM_IDENTITY_PE ? identity->image_size_bytes : identity->age;
	keys[0].timestamp = identity->timestamp;
	if (kinds[keys[0].kind].shape != SHAPE_ID)
		keys[0].name = keys[0].spelling = name;
	if (keys[0].kind == KEY_PORTABLE_PDB)
		keys[0].number = 0;
	if (keys[0].kind != KEY_MACHO)
		return 1;
	keys[1].kind = KEY_DWARF; /* A .dwarf file has the UUID of the image that it describes. */
	return 2;
}
