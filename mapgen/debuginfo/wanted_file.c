/* SPDX-License-Identifier: MIT */
#include "mapgen/debuginfo/wanted_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "mapgen/cli/message.h"

static const uint32_t any_symbols = SYM_CONTENT_DEBUG_INFO | SYM_CONTENT_SYMBOL_TABLE;

/* ---- debug files ----------------------------------------------------------------------------- */

static const char *debug_file_objection(const struct wanted_file *wanted, int fd,
					uint64_t *size_bytes_ret)
{
	struct sym_identity found = { .size = sizeof(found) };
	struct sym_error *error = sym_identity_read(fd, UINT64_MAX, &found);

	if (error) {
		sym_error_destroy(error);
		return "it is damaged or cut";
	}
	if (found.kind != SYM_IDENTITY_ELF)
		return "it is no ELF file";
	if (found.id_size_bytes != wanted->identity->id_size_bytes ||
	    memcmp(found.id, wanted->identity->id, found.id_size_bytes) != 0)
		return "it has another build-id";
	if (!(found.contents & any_symbols))
		return "it has no symbols";
	if (!(found.contents & wanted->contents))
		return "it has no DWARF";
	*size_bytes_ret = found.file_size_bytes;
	return NULL;
}

/* The path of debuginfod comes first, because symsrv has it too; a symbol server quickly answers
 * 404. */
static char *debug_file_url(const struct wanted_file *wanted, const char *server, int length,
			    unsigned int protocol)
{
	const struct sym_identity *identity = wanted->identity;
	char id[2 * sizeof(identity->id) + 1];

	hex_write_bytes(id, identity->id, identity->id_size_bytes);
	if (!protocol)
		return message_format("%.*s/buildid/%s/%s", length, server, id,
				      wanted->names_only ? "symtab" : "debuginfo");
	if (wanted->names_only || identity->id_size_bytes < 8 || identity->id_size_bytes > 20)
		return NULL;
	return message_format("%.*s/_.debug/elf-buildid-sym-%s%.*s/_.debug", length, server, id,
			      (int)(2 * (20 - identity->id_size_bytes)),
			      "000000000000000000000000");
}

/* ---- PDBs ------------------------------------------------------------------------------------ */

static const char *pdb_objection(const struct sym_pdb_reference *reference, int fd,
				 uint64_t *size_bytes_ret)
{
	struct sym_identity found = { .size = sizeof(found) };
	struct sym_pdb *pdb = NULL;
	struct sym_error *error = sym_identity_read(fd, UINT64_MAX, &found);
	const char *why = NULL;

	if (!error && found.kind != SYM_IDENTITY_PORTABLE_PDB)
		return "it is no portable PDB";
	if (!error)
		error = sym_pdb_read(fd, &pdb);
	if (error)
		why = "it is damaged or cut";
	else if (!sym_pdb_matches(pdb, reference))
		why = "it is the PDB of another build";
	sym_error_destroy(error);
	sym_pdb_close(pdb);
	*size_bytes_ret = found.file_size_bytes;
	return why;
}

bool wanted_file_has_plain_name(const struct sym_pdb_reference *pdb)
{
	size_t length = strlen(pdb->name);

	return length && length <= NAME_MAX && strcmp(pdb->name, ".") != 0 &&
	       strcmp(pdb->name, "..") != 0;
}

static void write_key(const struct sym_pdb_reference *pdb, char room[static 41])
{
	hex_write_bytes(room, pdb->guid, sizeof(pdb->guid));
	memcpy(room + 32, "FFFFFFFF", sizeof("FFFFFFFF"));
}

/* Percent-encodes all but what RFC 3986 calls unreserved. */
static char *escape(const char *name)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";
	struct buf escaped;

	buf_init(&escaped, 3 * NAME_MAX + 1);
	for (; *name; name++) {
		if (strchr(plain, *name))
			buf_append_char(&escaped, *name);
		else
			buf_printf(&escaped, "%%%02X", (unsigned char)*name);
	}
	return buf_steal(&escaped, NULL);
}

static char *pdb_url(const struct sym_pdb_reference *pdb, const char *server, int length)
{
	char *name AUTO_FREE = escape(pdb->name);
	char key[41];

	write_key(pdb, key);
	return name ? message_format("%.*s/%s/%s/%s", length, server, name, key, name) : NULL;
}

/* ---- both ------------------------------------------------------------------------------------ */

const char *wanted_file_objection(const struct wanted_file *wanted, int fd,
				  uint64_t *size_bytes_ret)
{
	return wanted->pdb ? pdb_objection(wanted->pdb, fd, size_bytes_ret)
			   : debug_file_objection(wanted, fd, size_bytes_ret);
}

char *wanted_file_url(const struct wanted_file *wanted, const char *server, unsigned int protocol)
{
	int length = (int)strlen(server);

	while (length && server[length - 1] == '/')
		length--;
	if (!wanted->pdb)
		return debug_file_url(wanted, server, length, protocol);
	return protocol ? NULL : pdb_url(wanted->pdb, server, length);
}

/* A server of NuGet refuses a request without it. */
char *wanted_file_header(const struct wanted_file *wanted)
{
	const struct sym_pdb_reference *pdb = wanted->pdb;
	char *digits AUTO_FREE = NULL;

	if (!pdb || !pdb->checksum || strpbrk(pdb->checksum_algorithm, "\r\n;:"))
		return NULL;
	digits = malloc(2 * (size_t)pdb->checksum_size_bytes + 1);
	if (!digits)
		return NULL;
	hex_write_bytes(digits, pdb->checksum, pdb->checksum_size_bytes);
	return message_format("SymbolChecksum: %s:%s", pdb->checksum_algorithm, digits);
}

char *wanted_file_path(const struct wanted_file *wanted, const char *tree)
{
	char id[2 * sizeof(wanted->identity->id) + 1], key[41];

	if (wanted->pdb) {
		write_key(wanted->pdb, key);
		return message_format("%s/%s/%s/%s", tree, wanted->pdb->name, key,
				      wanted->pdb->name);
	}
	hex_write_bytes(id, wanted->identity->id, wanted->identity->id_size_bytes);
	return message_format("%s/.build-id/%.2s/%s.debug", tree, id, id + 2);
}
