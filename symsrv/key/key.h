/* SPDX-License-Identifier: MIT */
/*
 * An object that a client asks for, without any protocol: a kind, an identity, and a name if the
 * kind has one. An object has the same key in every protocol. Knows no path, no URL and no file.
 *
 * An ELF build-id is kept without the zero bytes that SSQP appends to ids of fewer than 20 bytes,
 * so that a padded id and an exact id are one object. (One SHA-1 in 2^32 ends in four zero bytes;
 * it still matches itself.)
 */
#ifndef SYMSRV_KEY_KEY_H
#define SYMSRV_KEY_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

enum key_kind {
	KEY_NONE = 0,
	KEY_EXECUTABLE, /* an ELF file with code */
	KEY_DEBUGINFO,  /* an ELF file with symbols */
	KEY_SOURCE,     /* a source file of an ELF file; name: its path */
	KEY_CLR, /* a file that belongs to a libcoreclr.so; id: build-id of that; name: file */
	KEY_PE,
	KEY_PDB,
	KEY_MSFZ,
	KEY_PORTABLE_PDB,
	KEY_MAP, /* r2rmap */
	KEY_MACHO,
	KEY_DWARF, /* the symbols of a Mach-O file */
	KEY_MACHO_CLR,
	KEY_SHA1,
	KEY_SHA256,
	KEY_WASM,
	KEY_NAMES,      /* the names-only file of a debug file */
	KEY_NAMES_ZSTD, /* the same, compressed; of this server only */
	/* These four are of this server only, too: */
	KEY_PE_R2RMAP,    /* the r2rmap of a PE image; id: of the image */
	KEY_PE_MAP,       /* its map in the form of crossgen */
	KEY_IMAGE_OF_MAP, /* which PE image an r2rmap belongs to; id and name: of the r2rmap */
	KEY_IMAGE_OF_PDB, /* which PE images a PDB belongs to; id: its GUID */
	KEY_KIND_COUNT
};

#define KEY_MAX_ID 64
/* The longest name or source path; PATH_MAX is 4096. */
#define KEY_MAX_NAME   4096
#define KEY_TEXT_BYTES (KEY_MAX_NAME + 2 * KEY_MAX_ID + 64)

struct key {
	enum key_kind kind;
	uint8_t id[KEY_MAX_ID];
	size_t id_bytes;
	uint32_t number;    /* PDB: age; PE: SizeOfImage; r2rmap: version */
	uint32_t timestamp; /* PE */
	const char *name;   /* lower case, borrowed; NULL when the kind has none or it is unknown */
	const char *spelling; /* the name as the client wrote it, borrowed; NULL as for `name` */
};

/*
 * Writes the name of a file as keys have it: in lower case. Returns whether a request can have it:
 * it has neither slashes nor control characters. `room`: as large as `name`, or `name` itself.
 */
bool key_lower_name(const char *name, char *room);

/* Removes the padding; call this after the id of an ELF key was set. */
void key_normalise_build_id(struct key *key);

/*
 * The key as one line of text, unique to the object; tables and the store use it. Returns its
 * length.
 */
size_t key_text(const struct key *key, char room[KEY_TEXT_BYTES]);

/* Parses a text of key_text(); the name points into `text`. */
bool key_from_text(struct key *key, const char *text);

/* Returns "executable", "pdb", ...; static. */
const char *key_kind_text(enum key_kind kind);

/*
 * Whether a file with this identity is the object of `key`. *reason_ret: static text, why not.
 * Kinds without an identity inside the file (source, CLR, SHA) are not decided here.
 */
bool key_matches(const struct key *key, const struct sym_identity *identity,
		 const char **reason_ret);

/* True if the content of this kind can be verified against its key. */
bool key_is_verifiable(enum key_kind kind);

/* Keys under which clients may ask for a file with this identity, at most 2; returns how many.
 * `name`: of the file, lower case. */
size_t keys_of_identity(const struct sym_identity *identity, const char *name, struct key keys[2]);

#endif
