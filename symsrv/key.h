/* SPDX-License-Identifier: MIT */
/*
 * What is asked for, free of any protocol: a kind, an identity, and a name
 * where the kind has one. One object has one key whichever protocol asks.
 * Knows no path, no URL and no file.
 *
 * An ELF build-id is kept without the zero bytes that SSQP appends to ids
 * shorter than 20 bytes, so that a padded and an exact id are one object (a
 * SHA-1 that ends in four zero bytes is one in 2^32, and still matches itself).
 */
#ifndef SYMSRV_KEY_H
#define SYMSRV_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

enum key_kind {
	KEY_NONE = 0,
	KEY_EXECUTABLE, /* ELF with its code */
	KEY_DEBUGINFO,  /* ELF with its symbols */
	KEY_SOURCE,     /* a source file of an ELF; name: path */
	KEY_CLR, /* a file that belongs to a libcoreclr.so; id: that one's build-id; name: file */
	KEY_PE,
	KEY_PDB,
	KEY_MSFZ,
	KEY_PORTABLE_PDB,
	KEY_MAP, /* r2rmap */
	KEY_MACHO,
	KEY_DWARF, /* symbols of a Mach-O file */
	KEY_MACHO_CLR,
	KEY_SHA1,
	KEY_SHA256,
	KEY_WASM,
	KEY_KIND_COUNT
};

#define KEY_MAX_ID 64
/* Longest name or source path; PATH_MAX is 4096. */
#define KEY_MAX_NAME   4096
#define KEY_TEXT_BYTES (KEY_MAX_NAME + 2 * KEY_MAX_ID + 64)

struct key {
	enum key_kind kind;
	uint8_t id[KEY_MAX_ID];
	size_t id_bytes;
	uint32_t number;    /* PDB: age; PE: SizeOfImage; r2rmap: version */
	uint32_t timestamp; /* PE */
	const char *name;   /* lower case, borrowed; NULL where the kind has none or nobody said */
	const char *spelling; /* the name as the client wrote it, borrowed; NULL as above */
};

/* Takes the padding off; call after the id of an ELF key was set. */
void key_normalise_build_id(struct key *key);

/*
 * The key as one line of text, unique to the object: what tables and the store
 * go by. Returns its length.
 */
size_t key_text(const struct key *key, char room[KEY_TEXT_BYTES]);

/* The reverse, for texts that key_text() made; the name then points into `text`. */
bool key_from_text(struct key *key, const char *text);

/* "executable", "pdb", ...: static. */
const char *key_kind_text(enum key_kind kind);

/*
 * Whether a file with this identity is what `key` asks for. *reason_ret: static
 * text, why not. Kinds without an identity inside the file (source, CLR, SHA)
 * are not decided here.
 */
bool key_matches(const struct key *key, const struct sym_identity *identity,
		 const char **reason_ret);

/* Whether the content of this kind can be checked against its key. */
bool key_is_verifiable(enum key_kind kind);

/* Keys under which a file with this identity may be asked for, at most 2; returns how many. `name`:
 * of the file, lower case. */
size_t keys_of_identity(const struct sym_identity *identity, const char *name, struct key keys[2]);

#endif
