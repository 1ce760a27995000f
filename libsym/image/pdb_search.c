/* SPDX-License-Identifier: MIT */
/*
 * The candidates come in a fixed order: the module itself, its directory, the path that the
 * compiler wrote, the caller's directories, that of debug files, the caller's fetch function. The
 * first one that matches is used. The first one that exists and does not match is remembered as the
 * reason.
 */
#include "libsym/image/pdb_search.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/elf/debugfile.h"
#include "libsym/image/image.h"
#include "libsym/limits.h"

struct pdb_candidates {
	const struct pdb_search *search;
	const struct pe_debug *debug;
	const char *name; /* file name of the PDB */
	struct buf why;   /* the first mismatch */
	struct sym_pdb *found;
};

/* The compiler may have run on Windows. */
static const char *file_name_of(const char *path)
{
	const char *backslash = strrchr(path, '\\');

	return path_file_name(backslash ? backslash + 1 : path);
}

static bool is_plain_name(const char *name)
{
	return *name && strlen(name) <= NAME_MAX && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

/* Takes ownership of `pdb` and `error`, one of which is NULL. `path` is for the reason. */
static struct sym_error *consider(struct pdb_candidates *candidates, const char *path,
				  struct sym_pdb *pdb, struct sym_error *error)
{
	const char *mismatch = pdb ? pdb_file_mismatch(pdb, candidates->debug) : NULL;

	if (sym_error_is_no_memory(error))
		return error;
	if (pdb && !mismatch) {
		candidates->found = pdb;
		return NULL;
	}
	if (!candidates->why.size_bytes && mismatch)
		buf_printf(&candidates->why, "%s: %s", path, mismatch);
	else if (!candidates->why.size_bytes && sym_error_code(error) != SYM_ERROR_NOT_FOUND)
		buf_append_string(&candidates->why, sym_error_message(error));
	pdb_file_close(pdb);
	sym_error_destroy(error);
	return NULL;
}

static struct sym_error *try_path(struct pdb_candidates *candidates, const char *path, int root_fd)
{
	const struct pdb_search *search = candidates->search;
	const struct pdb_place place = {
		.path = path,
		.root_fd = root_fd,
		.rights = root_fd >= 0 ? search->roots.rights : NULL,
	};
	struct sym_pdb *pdb = NULL;
	struct sym_error *error;

	if (candidates->found)
		return NULL;
	error = pdb_file_open(search->budget, &place, &pdb);
	return consider(candidates, path, pdb, error);
}

static struct sym_error *try_text(struct pdb_candidates *candidates, struct buf *text, int root_fd)
{
	const char *path = buf_string(text);
	struct sym_error *error = NULL;

	/* A path that is too long cannot exist. */
	if (path)
		error = try_path(candidates, path, root_fd);
	else if (text->failure == BUF_NO_MEMORY)
		error = &sym_error_no_memory;
	buf_clear(text);
	return error;
}

/* Beside the module, or beside the file that contains it. */
static struct sym_error *try_beside(struct pdb_candidates *candidates, struct buf *text)
{
	const char *path = candidates->search->image_path;
	const char *inner = strstr(path, "!/");
	size_t length = inner ? (size_t)(inner - path) : strlen(path);

	while (length && path[length - 1] != '/')
		length--;
	buf_append(text, path, length);
	buf_append_string(text, candidates->name);
	return try_text(candidates, text, candidates->search->roots.fd);
}

/* DIR/NAME/KEY/NAME as symbol servers and their caches have it. symstore.exe writes upper case. */
static struct sym_error *try_key(struct pdb_candidates *candidates, const char *directory,
				 bool is_upper, const char *age, struct buf *text)
{
	const char *name = candidates->name;
	char guid[37];

	metadata_format_guid(candidates->debug->guid, guid);
	for (char *c = guid; is_upper && *c; c++)
		*c = (char)toupper((unsigned char)*c);
	buf_printf(text, "%s/%s/%.8s%.4s%.4s%.4s%.12s%s/%s", directory, name, guid, guid + 9,
		   guid + 14, guid + 19, guid + 24, age, name);
	return try_text(candidates, text, -1);
}

/* DIR/NAME, or below it as a directory. */
static struct sym_error *try_directory(struct pdb_candidates *candidates, const char *directory,
				       struct buf *text)
{
	const char *name = candidates->name;
	struct sym_error *error;

	buf_printf(text, "%s/%s", directory, name);
	error = try_text(candidates, text, -1);
	if (!error)
		error = try_key(candidates, directory, false, "FFFFFFFF", text);
	if (!error)
		error = try_key(candidates, directory, false, "ffffffff", text);
	return error ? error : try_key(candidates, directory, true, "FFFFFFFF", text);
}

static void order_guid(const uint8_t *bytes, uint8_t *ret)
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

	for (size_t i = 0; i < sizeof(order); i++)
		ret[i] = bytes[order[i]];
}

static void fill_reference(const struct pe_debug *debug, struct sym_pdb_reference *ret)
{
	*ret = (struct sym_pdb_reference){
		.path = debug->path,
		.name = file_name_of(debug->path),
		.checksum = debug->checksum,
		.checksum_algorithm = debug->algorithm,
		.checksum_size_bytes = (uint32_t)debug->checksum_bytes,
		.age = debug->age,
		.stamp = debug->stamp,
		.is_portable = debug->is_portable,
		.is_embedded = debug->packed != NULL,
	};
	order_guid(debug->guid, ret->guid);
}

static struct sym_error *try_fetch(struct pdb_candidates *candidates)
{
	const struct pdb_search *search = candidates->search;
	struct sym_pdb_reference reference;
	struct sym_fetch_request request = {
		.kind = SYM_FETCH_PDB,
		.image_path = search->image_path,
		.pdb = &reference,
	};
	struct sym_error *error = NULL;
	char *path = NULL;
	int failure;

	if (candidates->found || !search->fetch)
		return NULL;
	fill_reference(candidates->debug, &reference);
	failure = search->fetch(search->fetch_context, &request, &path);
	if (!failure && path)
		error = try_path(candidates, path, -1);
	else if (failure && !candidates->why.size_bytes)
		buf_printf(&candidates->why, "its PDB could not be fetched: %s", strerror(failure));
	free(path);
	return error;
}

static struct sym_error *try_embedded(struct pdb_candidates *candidates)
{
	struct sym_pdb *pdb = NULL;
	struct sym_error *error;

	if (!candidates->debug->packed)
		return NULL;
	error = pdb_file_open_embedded(candidates->search->account, candidates->debug, &pdb);
	return consider(candidates, "embedded PDB", pdb, error);
}

static struct sym_error *try_all(struct pdb_candidates *candidates)
{
	const struct pdb_search *search = candidates->search;
	struct sym_error *error = try_embedded(candidates);
	struct buf text;

	if (error || candidates->found || !is_plain_name(candidates->name))
		return error;
	buf_init(&text, PATH_MAX);
	error = try_beside(candidates, &text);
	if (!error && candidates->debug->path[0] == '/')
		error = try_path(candidates, candidates->debug->path, search->roots.fd);
	for (const char *const *dir = search->roots.dirs; !error && dir && *dir; dir++)
		error = try_directory(candidates, *dir, &text);
	if (!error)
		error = try_directory(candidates, DEBUGFILE_DIRECTORY, &text);
	buf_deinit(&text);
	return error ? error : try_fetch(candidates);
}

struct sym_error *pdb_search_find(const struct pdb_search *search, const struct pe_debug *debug,
				  struct sym_pdb **ret, char **reason_ret)
{
	struct pdb_candidates candidates = {
		.search = search,
		.debug = debug,
		.name = file_name_of(debug->path),
	};
	struct sym_error *error = NULL;

	*reason_ret = NULL;
	buf_init(&candidates.why, LIMIT_NAME_BYTES);
	if (!debug->has_pdb)
		buf_append_string(&candidates.why, "the module names no PDB");
	else if (!debug->is_portable)
		buf_append_string(&candidates.why, "its PDB is a Windows PDB, which has no "
						   "lines that libsym reads");
	else
		error = try_all(&candidates);
	if (!error && !candidates.found) {
		if (!candidates.why.size_bytes)
			buf_printf(&candidates.why, "no PDB: %s is not on this machine",
				   candidates.name);
		*reason_ret = buf_steal(&candidates.why, NULL);
	}
	buf_deinit(&candidates.why);
	*ret = candidates.found;
	return error;
}

/* ---- of an image ------------------------------------------------------------------------ */

/* The PDB that an image names. */
struct image_reference {
	bool has_pdb;
	char *path, *algorithm;
	uint8_t *checksum;
	struct sym_pdb_reference reference;
};

/* The result of a search. */
struct image_pdb {
	struct sym_pdb *pdb; /* NULL: none */
	char *reason;        /* NULL: there is one, or out of memory */
};

static void reference_destroy(void *made)
{
	struct image_reference *reference = made;

	if (!reference)
		return;
	free(reference->path);
	free(reference->algorithm);
	free(reference->checksum);
	free(reference);
}

static void image_pdb_destroy(void *made)
{
	struct image_pdb *pdb = made;

	if (!pdb)
		return;
	pdb_file_close(pdb->pdb);
	free(pdb->reason);
	free(pdb);
}

static struct sym_error *copy_reference(void *context, const struct pe_debug *debug)
{
	struct image_reference *ret = context;
	struct pe_debug copy = *debug;

	ret->has_pdb = debug->has_pdb;
	ret->path = strdup(debug->path);
	if (debug->algorithm) {
		ret->algorithm = strdup(debug->algorithm);
		ret->checksum = malloc(debug->checksum_bytes + 1);
	}
	if (!ret->path || (debug->algorithm && (!ret->algorithm || !ret->checksum)))
		return &sym_error_no_memory;
	if (debug->algorithm)
		memcpy(ret->checksum, debug->checksum, debug->checksum_bytes);
	copy.path = ret->path;
	copy.algorithm = ret->algorithm;
	copy.checksum = ret->checksum;
	fill_reference(&copy, &ret->reference);
	return NULL;
}

struct pdb_search image_pdb_search(const struct sym_image *image)
{
	struct budget_account *account = object_file_account(image->object);

	return (struct pdb_search){
		.image_path = image->path,
		.roots = image->roots,
		.fetch = image->debug_fetch.fetch,
		.fetch_context = image->debug_fetch.context,
		.account = account,
		.budget = account ? account->budget : NULL,
	};
}

struct searching {
	const struct sym_image *image;
	struct image_pdb *made;
};

static struct sym_error *search_now(void *context, const struct pe_debug *debug)
{
	const struct searching *searching = context;
	const struct pdb_search search = image_pdb_search(searching->image);

	return pdb_search_find(&search, debug, &searching->made->pdb, &searching->made->reason);
}

/* A file that cannot be read names no PDB. Only out of memory is tried again. */
static void *make_reference(const void *context)
{
	const struct sym_image *image = context;
	struct budget_account *span AUTO_BUDGET_SPAN =
		budget_span(object_file_account(image->object));
	struct image_reference *made = calloc(1, sizeof(*made));
	struct sym_error *error = &sym_error_no_memory;

	if (made)
		error = object_file_use_debug(image->object, copy_reference, made);
	if (sym_error_is_no_memory(error)) {
		reference_destroy(made);
		made = NULL;
	}
	sym_error_destroy(error);
	return made;
}

static void *make_search(const void *context)
{
	const struct sym_image *image = context;
	struct budget_account *span AUTO_BUDGET_SPAN =
		budget_span(object_file_account(image->object));
	struct image_pdb *made = calloc(1, sizeof(*made));
	struct searching searching = { image, made };
	struct sym_error *error = &sym_error_no_memory;

	if (made)
		error = object_file_use_debug(image->object, search_now, &searching);
	if (sym_error_is_no_memory(error)) {
		image_pdb_destroy(made);
		made = NULL;
	} else if (error) {
		made->reason = strdup(sym_error_message(error));
	}
	sym_error_destroy(error);
	return made;
}

static bool has_no_pdb(const struct sym_image *image)
{
	return !image->object || image_trouble(image) || image->object->kind < SYM_IMAGE_IL ||
	       image->object->kind > SYM_IMAGE_NGEN;
}

const struct sym_pdb *image_pdb_file(struct sym_image *image, const char **reason_ret)
{
	const struct image_trouble *trouble = image_trouble(image);
	const struct image_pdb *pdb = NULL;

	*reason_ret = NULL;
	if (!has_no_pdb(image))
		pdb = lazy_get(&image->pdb, make_search, image_pdb_destroy, image);
	if (pdb && pdb->pdb)
		return pdb->pdb;
	if (pdb && pdb->reason)
		*reason_ret = pdb->reason;
	else if (trouble)
		*reason_ret = trouble->text;
	else
		*reason_ret = has_no_pdb(image) ? "not a .NET assembly" : "out of memory";
	return NULL;
}

/* ---- public functions ------------------------------------------------------------------- */

const struct sym_pdb_reference *sym_image_pdb_reference(struct sym_image *image)
{
	const struct image_reference *made = NULL;

	if (!has_no_pdb(image))
		made = lazy_get(&image->pdb_reference, make_reference, reference_destroy, image);
	return made && made->has_pdb ? &made->reference : NULL;
}

const struct sym_pdb *sym_image_pdb(struct sym_image *image, const char **reason_ret)
{
	const char *reason;

	return image_pdb_file(image, reason_ret ? reason_ret : &reason);
}

int sym_pdb_matches(const struct sym_pdb *pdb, const struct sym_pdb_reference *reference)
{
	struct pe_debug debug = {
		.has_pdb = true,
		.is_portable = reference->is_portable,
		.stamp = reference->stamp,
		.algorithm = reference->checksum_algorithm,
		.checksum = reference->checksum,
		.checksum_bytes = reference->checksum_size_bytes,
	};

	order_guid(reference->guid, debug.guid);
	return reference->is_portable && !pdb_file_mismatch(pdb, &debug);
}
