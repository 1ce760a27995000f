/* SPDX-License-Identifier: MIT */
#include "libsym/file/pdb_file.h"

#include <errno.h>
#include <sha2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/limits.h"

struct sym_pdb {
	struct budget_account *account;
	uint8_t *bytes;
	size_t size_bytes;
	struct portable_pdb *tables;
	_Atomic(char *) *documents; /* by rid - 1; NULL: not made yet */
};

void pdb_file_close(struct sym_pdb *pdb)
{
	if (!pdb)
		return;
	for (uint32_t i = 0; pdb->documents && i < portable_pdb_document_count(pdb->tables); i++)
		free(atomic_load(&pdb->documents[i]));
	free(pdb->documents);
	portable_pdb_close(pdb->tables);
	free(pdb->bytes);
	budget_release(pdb->account, pdb->size_bytes);
	free(pdb);
}

/* ---- opening ------------------------------------------------------------ */

/*
 * Opens bytes, and takes ownership of them on success; they were charged to `account`.
 */
static struct sym_error *pdb_file_open_bytes(struct budget_account *account, uint8_t *bytes,
					     size_t size_bytes, struct sym_pdb **ret)
{
	struct sym_pdb *pdb = calloc(1, sizeof(*pdb));
	struct sym_error *error;

	if (!pdb)
		return &sym_error_no_memory;
	error = portable_pdb_open(bytes, size_bytes, &pdb->tables);
	if (!error) {
		pdb->documents = calloc((size_t)portable_pdb_document_count(pdb->tables) + 1,
					sizeof(*pdb->documents));
		if (!pdb->documents)
			error = &sym_error_no_memory;
	}
	if (error) {
		portable_pdb_close(pdb->tables);
		free(pdb);
		return error;
	}
	pdb->account = account;
	pdb->bytes = bytes;
	pdb->size_bytes = size_bytes;
	*ret = pdb;
	return NULL;
}

/* Room that is charged; free() it and release the charge, or open it. */
static struct sym_error *take_room(struct budget_account *account, uint64_t size_bytes,
				   const char *path, uint8_t **ret)
{
	struct sym_error *error;

	if (size_bytes > LIMIT_PDB_BYTES)
		return sym_error_create(SYM_ERROR_LIMIT, "%s: the PDB is too big", path);
	error = budget_charge(account, size_bytes, path);
	if (error)
		return error;
	*ret = malloc(size_bytes ? (size_t)size_bytes : 1);
	if (*ret)
		return NULL;
	budget_release(account, size_bytes);
	return &sym_error_no_memory;
}

static struct sym_error *read_file(struct budget *budget, int fd, uint64_t size_bytes,
				   const char *path, struct sym_pdb **ret)
{
	struct budget_account *account = budget_account_of_file(budget, fd);
	struct sym_error *error;
	uint8_t *bytes;
	int failure;

	error = take_room(account, size_bytes, path, &bytes);
	if (error)
		return error;
	failure = path_read_at(fd, bytes, (size_t)size_bytes, 0);
	error = failure ? sym_error_from_errno(-failure, path, "cannot read")
			: pdb_file_open_bytes(account, bytes, (size_t)size_bytes, ret);
	if (error) {
		free(bytes);
		budget_release(account, size_bytes);
	}
	return sym_error_with_path(error, path);
}

struct sym_error *pdb_file_open(struct budget *budget, const struct pdb_place *place,
				struct sym_pdb **ret)
{
	struct stat status;
	int fd AUTO_CLOSE =
		foreign_file_open(place->root_fd, place->path, 0, place->rights, &status);

	if (fd == -EINVAL)
		return sym_error_create_path(SYM_ERROR_ARGUMENT, place->path, SYM_OFFSET_UNKNOWN,
					     "not a regular file");
	if (fd < 0)
		return sym_error_from_errno(-fd, place->path, "cannot open");
	return read_file(budget, fd, (uint64_t)status.st_size, place->path, ret);
}

/* Raw deflate. False unless it yields exactly `room_bytes`. */
static bool unpack(const struct pe_debug *debug, uint8_t *room)
{
	z_stream stream = {
		.next_in = (Bytef *)(uintptr_t)debug->packed,
		.avail_in = (uInt)debug->packed_bytes,
		.next_out = room,
		.avail_out = (uInt)debug->unpacked_bytes,
	};
	bool whole;

	if (debug->packed_bytes > UINT32_MAX || inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return false;
	whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && !stream.avail_out;
	inflateEnd(&stream);
	return whole;
}

struct sym_error *pdb_file_open_embedded(struct budget_account *account,
					 const struct pe_debug *debug, struct sym_pdb **ret)
{
	static const char what[] = "embedded PDB";
	struct sym_error *error;
	uint8_t *bytes;

	/* Deflate expands one byte to at most 1,032. */
	if (debug->unpacked_bytes / 1032 > debug->packed_bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"the embedded PDB claims a size that its data cannot have");
	error = take_room(account, debug->unpacked_bytes, what, &bytes);
	if (error)
		return error;
	error = unpack(debug, bytes)
			? pdb_file_open_bytes(account, bytes, debug->unpacked_bytes, ret)
			: sym_error_create(SYM_ERROR_FORMAT, "the embedded PDB cannot be unpacked");
	if (error) {
		free(bytes);
		budget_release(account, debug->unpacked_bytes);
	}
	return error;
}

/* ---- identity ------------------------------------------------------------- */

struct digest {
	const char *name;
	size_t size_bytes;
	void (*start)(SHA2_CTX *state);
	void (*add)(SHA2_CTX *state, const uint8_t *bytes, size_t count);
	void (*end)(uint8_t *digest, SHA2_CTX *state);
};

static const struct digest digests[] = {
	{ "SHA256", SHA256_DIGEST_LENGTH, SHA256Init, SHA256Update, SHA256Final },
	{ "SHA384", SHA384_DIGEST_LENGTH, SHA384Init, SHA384Update, SHA384Final },
	{ "SHA512", SHA512_DIGEST_LENGTH, SHA512Init, SHA512Update, SHA512Final },
};

/* The checksum covers the file with zeros in place of its id. */
static bool has_checksum(const struct sym_pdb *pdb, const struct digest *digest,
			 const uint8_t *wanted)
{
	static const uint8_t zeros[PORTABLE_PDB_ID_BYTES];
	size_t at = portable_pdb_id_offset(pdb->tables), after = at + sizeof(zeros);
	uint8_t found[SHA512_DIGEST_LENGTH];
	SHA2_CTX state;

	digest->start(&state);
	digest->add(&state, pdb->bytes, at);
	digest->add(&state, zeros, sizeof(zeros));
	digest->add(&state, pdb->bytes + after, pdb->size_bytes - after);
	digest->end(found, &state);
	return !memcmp(found, wanted, digest->size_bytes);
}

const char *pdb_file_mismatch(const struct sym_pdb *pdb, const struct pe_debug *debug)
{
	const uint8_t *id = portable_pdb_id(pdb->tables);
	uint32_t stamp = (uint32_t)id[16] | (uint32_t)id[17] << 8 | (uint32_t)id[18] << 16 |
			 (uint32_t)id[19] << 24;

	if (memcmp(id, debug->guid, sizeof(debug->guid)) != 0 || stamp != debug->stamp)
		return "the PDB is of another build";
	for (size_t i = 0; debug->algorithm && i < sizeof(digests) / sizeof(digests[0]); i++)
		if (!strcmp(debug->algorithm, digests[i].name) &&
		    (debug->checksum_bytes != digests[i].size_bytes ||
		     !has_checksum(pdb, &digests[i], debug->checksum)))
			return "the checksum of the PDB is not the one that the image records";
	return NULL;
}

/* ---- contents ------------------------------------------------------------- */

const struct portable_pdb *pdb_file_tables(const struct sym_pdb *pdb)
{
	return pdb->tables;
}

static char *make_document(const struct sym_pdb *pdb, uint32_t rid)
{
	char *path = NULL;
	struct buf text;

	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	if (portable_pdb_write_document(pdb->tables, rid, &text))
		path = buf_steal(&text, NULL);
	buf_deinit(&text);
	return path;
}

const char *pdb_file_document(const struct sym_pdb *pdb, uint32_t rid)
{
	char *path, *made;

	if (rid - 1 >= portable_pdb_document_count(pdb->tables))
		return NULL;
	path = atomic_load(&pdb->documents[rid - 1]);
	if (path)
		return path;
	made = make_document(pdb, rid);
	if (made && !atomic_compare_exchange_strong(&pdb->documents[rid - 1], &path, made)) {
		free(made);
		return path;
	}
	return made;
}

/* ---- public functions ------------------------------------------------------ */

struct sym_error *sym_pdb_open(const char *path, struct sym_pdb **ret)
{
	const struct pdb_place place = { .path = path, .root_fd = -1 };

	return pdb_file_open(NULL, &place, ret);
}

struct sym_error *sym_pdb_read(int fd, struct sym_pdb **ret)
{
	static const char what[] = "PDB";
	struct stat status;

	if (fstat(fd, &status))
		return sym_error_from_errno(errno, what, "cannot read");
	if (!S_ISREG(status.st_mode))
		return sym_error_create(SYM_ERROR_ARGUMENT, "not a regular file");
	return read_file(NULL, fd, (uint64_t)status.st_size, what, ret);
}

void sym_pdb_close(struct sym_pdb *pdb)
{
	pdb_file_close(pdb);
}

static uint32_t row_of(uint32_t token)
{
	return token >> 24 == METADATA_METHOD_DEF ? token & 0xffffff : 0;
}

int sym_pdb_find_line(const struct sym_pdb *pdb, uint32_t token, uint32_t il_offset,
		      struct sym_source_line *ret)
{
	struct pdb_point point;
	const char *file;

	if (portable_pdb_find(pdb->tables, row_of(token), il_offset, &point) != PDB_FOUND)
		return 0;
	file = pdb_file_document(pdb, point.document);
	if (!file)
		return 0;
	*ret = (struct sym_source_line){ file, point.line, point.column, point.end_line,
					 point.end_column };
	return 1;
}

uint32_t sym_pdb_kickoff(const struct sym_pdb *pdb, uint32_t token)
{
	uint32_t row = portable_pdb_kickoff(pdb->tables, row_of(token));

	return row ? (uint32_t)METADATA_METHOD_DEF << 24 | row : 0;
}

size_t sym_pdb_document_count(const struct sym_pdb *pdb)
{
	return portable_pdb_document_count(pdb->tables);
}

const char *sym_pdb_document_at(const struct sym_pdb *pdb, size_t index)
{
	return index < UINT32_MAX ? pdb_file_document(pdb, (uint32_t)index + 1) : NULL;
}

const char *sym_pdb_source_link(const struct sym_pdb *pdb, size_t *size_bytes_ret)
{
	struct metadata_blob text = portable_pdb_source_link(pdb->tables);

	*size_bytes_ret = text.size_bytes;
	return (const char *)text.data;
}
