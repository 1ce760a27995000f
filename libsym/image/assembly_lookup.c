/* SPDX-License-Identifier: MIT */
/*
 * How an assembly is found.
 *
 * The places are tried in this order: images of the process, directories (the image's own, then the
 * further ones), the bundle that the process runs.
 * Each result, also a failed one, is kept in a list, because names of one image refer to the same
 * few assemblies.
 * A failure for lack of memory or descriptors is not kept.
 */
#include "libsym/image/assembly_lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/image/bundled_assembly.h"
#include "libsym/limits.h"

enum {
	/*
	 * Number of names that are looked up. The largest composite image seen has 172 components.
	 * Bounds the work for a hostile one.
	 */
	MAX_NEIGHBOURS = 4096
};

struct found_assembly {
	struct found_assembly *next;
	struct object_file *object;
	const struct object_managed *managed; /* in use */
	struct bundled_assembly *bundled;     /* neither: searched and not found */
	bool has_mvid;
	uint8_t mvid[16]; /* as requested */
	char name[];      /* as requested */
};

void assembly_lookup_init(struct assembly_lookup *assembly_lookup)
{
	*assembly_lookup = (struct assembly_lookup){ 0 };
	pthread_mutex_init(&assembly_lookup->lock, NULL);
}

static void found_assembly_destroy(struct found_assembly *found_assembly)
{
	if (!found_assembly)
		return;
	if (found_assembly->managed)
		object_file_unuse_managed(found_assembly->object);
	object_file_close(found_assembly->object);
	bundled_assembly_close(found_assembly->bundled);
	free(found_assembly);
}

void assembly_lookup_deinit(struct assembly_lookup *assembly_lookup)
{
	while (assembly_lookup->found) {
		struct found_assembly *next = assembly_lookup->found->next;

		found_assembly_destroy(assembly_lookup->found);
		assembly_lookup->found = next;
	}
	sym_error_destroy(assembly_lookup->trouble);
	pthread_mutex_destroy(&assembly_lookup->lock);
}

/*
 * One search. What could not be read, for lack of memory or descriptors, may be the wanted
 * assembly.
 */
struct looking {
	const char *name;
	const uint8_t *mvid; /* NULL: any */
	struct sym_error *trouble;
};

/* Records an error and takes ownership. NULL is accepted. */
static void assembly_lookup_record_error(struct looking *looking, struct sym_error *error)
{
	bool tells = error && !looking->trouble &&
		     (sym_error_is_no_memory(error) || sym_error_is_shortage(error));

	if (tells)
		looking->trouble = error;
	else
		sym_error_destroy(error);
}

static bool is_asked_for(struct looking *looking, struct object_file *object)
{
	const char *own_name;
	const uint8_t *own_mvid;

	if (!object_file_identify(object)) {
		assembly_lookup_record_error(looking, &sym_error_no_memory);
		return false;
	}
	own_name = object_file_assembly_name(object);
	own_mvid = object_file_mvid(object);
	if (!own_name || strcasecmp(own_name, looking->name))
		return false;
	return !looking->mvid || (own_mvid && !memcmp(own_mvid, looking->mvid, 16));
}

/* NULL when there is none, or when several different ones match. */
static struct object_file *assembly_lookup_choose(struct looking *looking,
						  struct object_file *const *files, size_t count)
{
	struct object_file *found = NULL;

	for (size_t i = 0; i < count; i++) {
		struct object_file *object = files[i];

		if (!is_asked_for(looking, object))
			continue;
		if (found && (!object_file_mvid(found) || !object_file_mvid(object) ||
			      memcmp(object_file_mvid(found), object_file_mvid(object), 16)))
			return NULL;
		found = object;
	}
	return found;
}

static struct object_file *find_among_images(const struct assembly_lookup *assembly_lookup,
					     struct looking *looking)
{
	const struct assembly_company *company = &assembly_lookup->company;
	struct object_file **files AUTO_FREE = NULL, *found;
	size_t count = 0;

	if (company->list)
		assembly_lookup_record_error(looking,
					     company->list(company->context, &files, &count));
	found = assembly_lookup_choose(looking, files, count);
	if (found)
		object_file_share(found);
	for (size_t i = 0; i < count; i++)
		object_file_close(files[i]);
	return found;
}

static struct object_file *open_in(struct budget *budget, const char *directory,
				   struct looking *looking)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	char *path AUTO_FREE = NULL;
	int fd AUTO_CLOSE = -1;

	if (asprintf(&path, "%s/%s.dll", directory, looking->name) < 0) {
		path = NULL;
		assembly_lookup_record_error(looking, &sym_error_no_memory);
		return NULL;
	}
	fd = foreign_file_open(-1, path, 0, NULL, NULL);
	if (fd >= 0)
		assembly_lookup_record_error(
			looking, object_file_open(budget_account_of_file(budget, fd), fd, path, 0,
						  SPARSE_FILE_TO_END, &object));
	else
		assembly_lookup_record_error(looking,
					     sym_error_from_errno(-fd, path, "cannot open"));
	if (object)
		steal_fd(&fd);
	return object && is_asked_for(looking, object) ? STEAL(object) : NULL;
}

static struct object_file *open_beside(const struct assembly_lookup *assembly_lookup,
				       struct looking *looking)
{
	char *const *further = assembly_lookup->further_directories;
	struct object_file *object;

	if (!assembly_lookup->directory || strchr(looking->name, '/'))
		return NULL;
	object = open_in(assembly_lookup->budget, assembly_lookup->directory, looking);
	for (; !object && further && *further; further++)
		object = open_in(assembly_lookup->budget, *further, looking);
	return object;
}

/* NULL when the process is not a bundle, or the bundle has no such assembly. */
static struct bundled_assembly *open_in_bundle(const struct assembly_lookup *assembly_lookup,
					       struct looking *looking)
{
	AUTO_BUNDLED_ASSEMBLY struct bundled_assembly *assembly = NULL;
	const struct assembly_company *company = &assembly_lookup->company;
	struct object_file *host AUTO_OBJECT_FILE =
		company->executable ? company->executable(company->context) : NULL;
	const uint8_t *mvid = looking->mvid;
	char *file_name AUTO_FREE = NULL;
	uint8_t own_mvid[16];

	if (asprintf(&file_name, "%s.dll", looking->name) < 0) {
		file_name = NULL;
		assembly_lookup_record_error(looking, &sym_error_no_memory);
	} else if (host) {
		assembly_lookup_record_error(looking,
					     bundled_assembly_open(host, file_name, &assembly));
	}
	if (!assembly || (mvid && (!metadata_mvid(bundled_assembly_metadata(assembly), own_mvid) ||
				   memcmp(own_mvid, mvid, sizeof(own_mvid)) != 0)))
		return NULL;
	return STEAL(assembly);
}

static struct found_assembly *find_known(const struct assembly_lookup *assembly_lookup,
					 const char *name, const uint8_t *mvid)
{
	for (struct found_assembly *known = assembly_lookup->found; known; known = known->next)
		if (known->has_mvid == !!mvid && !strcasecmp(known->name, name) &&
		    (!mvid || !memcmp(known->mvid, mvid, sizeof(known->mvid))))
			return known;
	return NULL;
}

static const struct metadata *metadata_of(const struct found_assembly *found_assembly)
{
	if (found_assembly->managed)
		return found_assembly->managed->metadata;
	return found_assembly->bundled ? bundled_assembly_metadata(found_assembly->bundled) : NULL;
}

static void assembly_lookup_search(const struct assembly_lookup *assembly_lookup,
				   struct looking *looking, struct found_assembly *found_assembly)
{
	found_assembly->object = find_among_images(assembly_lookup, looking);
	if (!found_assembly->object)
		found_assembly->object = open_beside(assembly_lookup, looking);
	if (!found_assembly->object)
		found_assembly->bundled = open_in_bundle(assembly_lookup, looking);
	if (found_assembly->object)
		assembly_lookup_record_error(
			looking,
			object_file_use_managed(found_assembly->object, &found_assembly->managed));
}

/* A failed search is remembered, unless an error may have hidden the assembly. */
static struct found_assembly *look_for(struct assembly_lookup *assembly_lookup, const char *name,
				       const uint8_t *mvid)
{
	size_t name_bytes = strlen(name) + 1;
	struct found_assembly *found_assembly = calloc(1, sizeof(*found_assembly) + name_bytes);
	struct looking looking = { .name = name, .mvid = mvid };

	if (found_assembly)
		assembly_lookup_search(assembly_lookup, &looking, found_assembly);
	else
		assembly_lookup_record_error(&looking, &sym_error_no_memory);
	if (looking.trouble && (!found_assembly || !metadata_of(found_assembly))) {
		sym_error_destroy(assembly_lookup->trouble);
		assembly_lookup->trouble = looking.trouble;
		found_assembly_destroy(found_assembly);
		return NULL;
	}
	sym_error_destroy(looking.trouble);
	memcpy(found_assembly->name, name, name_bytes);
	found_assembly->has_mvid = mvid;
	if (mvid)
		memcpy(found_assembly->mvid, mvid, sizeof(found_assembly->mvid));
	found_assembly->next = assembly_lookup->found;
	assembly_lookup->found = found_assembly;
	assembly_lookup->found_count++;
	return found_assembly;
}

static const struct metadata *assembly_lookup_find(void *context, const char *simple_name,
						   const uint8_t *mvid)
{
	struct assembly_lookup *assembly_lookup = context;
	const struct found_assembly *found_assembly;

	pthread_mutex_lock(&assembly_lookup->lock);
	found_assembly = find_known(assembly_lookup, simple_name, mvid);
	if (!found_assembly && assembly_lookup->found_count < MAX_NEIGHBOURS)
		found_assembly = look_for(assembly_lookup, simple_name, mvid);
	pthread_mutex_unlock(&assembly_lookup->lock);
	return found_assembly ? metadata_of(found_assembly) : NULL;
}

const struct pe *assembly_lookup_pe(struct assembly_lookup *assembly_lookup,
				    const struct metadata *metadata, const char **path_ret)
{
	const struct found_assembly *found;
	const struct pe *pe = NULL;

	pthread_mutex_lock(&assembly_lookup->lock);
	for (found = assembly_lookup->found; found && metadata_of(found) != metadata;)
		found = found->next;
	if (found && found->managed)
		pe = &found->managed->pe;
	else if (found && found->bundled)
		pe = bundled_assembly_pe(found->bundled);
	*path_ret = found && found->object ? found->object->path : NULL;
	pthread_mutex_unlock(&assembly_lookup->lock);
	return pe;
}

struct sym_error *assembly_lookup_take_trouble(struct assembly_lookup *assembly_lookup)
{
	struct sym_error *trouble;

	pthread_mutex_lock(&assembly_lookup->lock);
	trouble = STEAL(assembly_lookup->trouble);
	pthread_mutex_unlock(&assembly_lookup->lock);
	return trouble;
}

struct r2r_assemblies assembly_lookup_as_assemblies(struct assembly_lookup *assembly_lookup)
{
	return (struct r2r_assemblies){ .context = assembly_lookup, .find = assembly_lookup_find };
}
