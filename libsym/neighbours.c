/* SPDX-License-Identifier: MIT */
#include "libsym/neighbours.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/path.h"
#include "libsym/bundled_assembly.h"
#include "libsym/limits.h"

enum {
	/* Names that are looked for. The largest composite seen has 172 components; a hostile one
	 * may not make us look forever. */
	MAX_NEIGHBOURS = 4096
};

struct neighbour {
	struct neighbour *next;
	struct image *image;
	const struct image_managed *managed; /* in use */
	struct bundled_assembly *bundled;    /* neither: looked for and not found */
	bool has_mvid;
	uint8_t mvid[16]; /* as asked */
	char name[];      /* as asked */
};

void neighbours_init(struct neighbours *neighbours)
{
	*neighbours = (struct neighbours){ 0 };
	pthread_mutex_init(&neighbours->lock, NULL);
}

void neighbours_deinit(struct neighbours *neighbours)
{
	while (neighbours->found) {
		struct neighbour *next = neighbours->found->next;

		if (neighbours->found->managed)
			image_unuse_managed(neighbours->found->image);
		image_close(neighbours->found->image);
		bundled_assembly_close(neighbours->found->bundled);
		free(neighbours->found);
		neighbours->found = next;
	}
	pthread_mutex_destroy(&neighbours->lock);
}

static bool is_asked_for(struct image *image, const char *name, const uint8_t *mvid)
{
	const char *own_name = image_assembly_name(image);
	const uint8_t *own_mvid = image_mvid(image);

	if (!own_name || strcasecmp(own_name, name))
		return false;
	return !mvid || (own_mvid && !memcmp(own_mvid, mvid, 16));
}

/* NULL when there is none, or when several that are not the same would do. */
static struct image *choose(struct image *const *images, size_t count, const char *name,
			    const uint8_t *mvid)
{
	struct image *found = NULL;

	for (size_t i = 0; i < count; i++) {
		struct image *image = images[i];

		if (!is_asked_for(image, name, mvid))
			continue;
		if (found && (!image_mvid(found) || !image_mvid(image) ||
			      memcmp(image_mvid(found), image_mvid(image), 16)))
			return NULL;
		found = image;
	}
	return found;
}

static struct image *find_among_images(const struct neighbours *neighbours, const char *name,
				       const uint8_t *mvid)
{
	const struct image_company *company = &neighbours->company;
	size_t count = 0;
	struct image **images AUTO_FREE =
		company->list ? company->list(company->context, &count) : NULL;
	struct image *found = images ? choose(images, count, name, mvid) : NULL;

	if (found)
		image_share(found);
	for (size_t i = 0; images && i < count; i++)
		image_close(images[i]);
	return found;
}

static struct image *open_in(const char *directory, const char *name, const uint8_t *mvid)
{
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error = NULL;
	struct buf path;
	int fd AUTO_CLOSE = -1;

	buf_init(&path, LIMIT_NAME_BYTES);
	buf_printf(&path, "%s/%s.dll", directory, name);
	if (buf_string(&path))
		fd = path_open_in_root(-1, path.data, PATH_REGULAR);
	if (fd >= 0)
		error = image_open(fd, path.data, 0, SPARSE_FILE_TO_END, &image);
	if (image)
		steal_fd(&fd);
	sym_error_destroy(error);
	buf_deinit(&path);
	return image && is_asked_for(image, name, mvid) ? STEAL(image) : NULL;
}

static struct image *open_beside(const struct neighbours *neighbours, const char *name,
				 const uint8_t *mvid)
{
	char *const *further = neighbours->further_directories;
	struct image *image;

	if (!neighbours->directory || strchr(name, '/'))
		return NULL;
	image = open_in(neighbours->directory, name, mvid);
	for (; !image && further && *further; further++)
		image = open_in(*further, name, mvid);
	return image;
}

/* NULL when the process is no bundle, or has none of that name, or another one. */
static struct bundled_assembly *open_in_bundle(const struct neighbours *neighbours,
					       const char *name, const uint8_t *mvid)
{
	AUTO_BUNDLED_ASSEMBLY struct bundled_assembly *assembly = NULL;
	const struct image_company *company = &neighbours->company;
	struct image *host AUTO_IMAGE =
		company->executable ? company->executable(company->context) : NULL;
	struct sym_error *error = NULL;
	uint8_t own_mvid[16];
	struct buf file_name;

	buf_init(&file_name, LIMIT_NAME_BYTES);
	buf_printf(&file_name, "%s.dll", name);
	if (host && buf_string(&file_name))
		error = bundled_assembly_open(host, file_name.data, &assembly);
	sym_error_destroy(error);
	buf_deinit(&file_name);
	if (!assembly || (mvid && (!metadata_mvid(bundled_assembly_metadata(assembly), own_mvid) ||
				   memcmp(own_mvid, mvid, sizeof(own_mvid)) != 0)))
		return NULL;
	return STEAL(assembly);
}

static struct neighbour *find_known(const struct neighbours *neighbours, const char *name,
				    const uint8_t *mvid)
{
	for (struct neighbour *known = neighbours->found; known; known = known->next)
		if (known->has_mvid == !!mvid && !strcasecmp(known->name, name) &&
		    (!mvid || !memcmp(known->mvid, mvid, sizeof(known->mvid))))
			return known;
	return NULL;
}

/* Not finding one is remembered too. */
static struct neighbour *look_for(struct neighbours *neighbours, const char *name,
				  const uint8_t *mvid)
{
	size_t name_bytes = strlen(name) + 1;
	struct neighbour *neighbour = calloc(1, sizeof(*neighbour) + name_bytes);
	struct sym_error *error;

	if (!neighbour)
		return NULL;
	memcpy(neighbour->name, name, name_bytes);
	neighbour->has_mvid = mvid;
	if (mvid)
		memcpy(neighbour->mvid, mvid, sizeof(neighbour->mvid));
	neighbour->image = find_among_images(neighbours, name, mvid);
	if (!neighbour->image)
		neighbour->image = open_beside(neighbours, name, mvid);
	if (!neighbour->image)
		neighbour->bundled = open_in_bundle(neighbours, name, mvid);
	if (neighbour->image) {
		error = image_use_managed(neighbour->image, &neighbour->managed);
		sym_error_destroy(error);
	}
	neighbour->next = neighbours->found;
	neighbours->found = neighbour;
	neighbours->found_count++;
	return neighbour;
}

static const struct metadata *metadata_of(const struct neighbour *neighbour)
{
	if (neighbour->managed)
		return neighbour->managed->metadata;
	return neighbour->bundled ? bundled_assembly_metadata(neighbour->bundled) : NULL;
}

static const struct metadata *find(void *context, const char *simple_name, const uint8_t *mvid)
{
	struct neighbours *neighbours = context;
	const struct neighbour *neighbour;

	pthread_mutex_lock(&neighbours->lock);
	neighbour = find_known(neighbours, simple_name, mvid);
	if (!neighbour && neighbours->found_count < MAX_NEIGHBOURS)
		neighbour = look_for(neighbours, simple_name, mvid);
	pthread_mutex_unlock(&neighbours->lock);
	return neighbour ? metadata_of(neighbour) : NULL;
}

struct r2r_assemblies neighbours_as_assemblies(struct neighbours *neighbours)
{
	return (struct r2r_assemblies){ .context = neighbours, .find = find };
}
