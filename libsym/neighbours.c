/* SPDX-License-Identifier: MIT */
#include "libsym/neighbours.h"

#include <stdio.h>
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

static void neighbour_destroy(struct neighbour *neighbour)
{
	if (!neighbour)
		return;
	if (neighbour->managed)
		image_unuse_managed(neighbour->image);
	image_close(neighbour->image);
	bundled_assembly_close(neighbour->bundled);
	free(neighbour);
}

void neighbours_deinit(struct neighbours *neighbours)
{
	while (neighbours->found) {
		struct neighbour *next = neighbours->found->next;

		neighbour_destroy(neighbours->found);
		neighbours->found = next;
	}
	sym_error_destroy(neighbours->trouble);
	pthread_mutex_destroy(&neighbours->lock);
}

/* One search. What it could not see for want of memory or descriptors may be what is looked for. */
struct looking {
	const char *name;
	const uint8_t *mvid; /* NULL: any */
	struct sym_error *trouble;
};

/* Takes `error` over; NULL is accepted. */
static void note(struct looking *looking, struct sym_error *error)
{
	bool tells = error && !looking->trouble &&
		     (sym_error_code(error) == SYM_ERROR_NO_MEMORY || sym_error_is_shortage(error));

	if (tells)
		looking->trouble = error;
	else
		sym_error_destroy(error);
}

static bool is_asked_for(struct looking *looking, struct image *image)
{
	const char *own_name;
	const uint8_t *own_mvid;

	if (!image_identify(image)) {
		note(looking, &sym_error_no_memory);
		return false;
	}
	own_name = image_assembly_name(image);
	own_mvid = image_mvid(image);
	if (!own_name || strcasecmp(own_name, looking->name))
		return false;
	return !looking->mvid || (own_mvid && !memcmp(own_mvid, looking->mvid, 16));
}

/* NULL when there is none, or when several that are not the same would do. */
static struct image *choose(struct looking *looking, struct image *const *images, size_t count)
{
	struct image *found = NULL;

	for (size_t i = 0; i < count; i++) {
		struct image *image = images[i];

		if (!is_asked_for(looking, image))
			continue;
		if (found && (!image_mvid(found) || !image_mvid(image) ||
			      memcmp(image_mvid(found), image_mvid(image), 16)))
			return NULL;
		found = image;
	}
	return found;
}

static struct image *find_among_images(const struct neighbours *neighbours, struct looking *looking)
{
	const struct image_company *company = &neighbours->company;
	struct image **images AUTO_FREE = NULL, *found;
	size_t count = 0;

	if (company->list)
		note(looking, company->list(company->context, &images, &count));
	found = choose(looking, images, count);
	if (found)
		image_share(found);
	for (size_t i = 0; i < count; i++)
		image_close(images[i]);
	return found;
}

static struct image *open_in(const char *directory, struct looking *looking)
{
	struct image *image AUTO_IMAGE = NULL;
	char *path AUTO_FREE = NULL;
	int fd AUTO_CLOSE = -1;

	if (asprintf(&path, "%s/%s.dll", directory, looking->name) < 0) {
		path = NULL;
		note(looking, &sym_error_no_memory);
		return NULL;
	}
	fd = path_open_in_root(-1, path, PATH_REGULAR);
	if (fd >= 0)
		note(looking, image_open(fd, path, 0, SPARSE_FILE_TO_END, &image));
	else
		note(looking, sym_error_from_errno(-fd, path, "cannot open"));
	if (image)
		steal_fd(&fd);
	return image && is_asked_for(looking, image) ? STEAL(image) : NULL;
}

static struct image *open_beside(const struct neighbours *neighbours, struct looking *looking)
{
	char *const *further = neighbours->further_directories;
	struct image *image;

	if (!neighbours->directory || strchr(looking->name, '/'))
		return NULL;
	image = open_in(neighbours->directory, looking);
	for (; !image && further && *further; further++)
		image = open_in(*further, looking);
	return image;
}

/* NULL when the process is no bundle, or has none of that name, or another one. */
static struct bundled_assembly *open_in_bundle(const struct neighbours *neighbours,
					       struct looking *looking)
{
	AUTO_BUNDLED_ASSEMBLY struct bundled_assembly *assembly = NULL;
	const struct image_company *company = &neighbours->company;
	struct image *host AUTO_IMAGE =
		company->executable ? company->executable(company->context) : NULL;
	const uint8_t *mvid = looking->mvid;
	char *file_name AUTO_FREE = NULL;
	uint8_t own_mvid[16];

	if (asprintf(&file_name, "%s.dll", looking->name) < 0) {
		file_name = NULL;
		note(looking, &sym_error_no_memory);
	} else if (host) {
		note(looking, bundled_assembly_open(host, file_name, &assembly));
	}
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

static const struct metadata *metadata_of(const struct neighbour *neighbour)
{
	if (neighbour->managed)
		return neighbour->managed->metadata;
	return neighbour->bundled ? bundled_assembly_metadata(neighbour->bundled) : NULL;
}

static void fill(const struct neighbours *neighbours, struct looking *looking,
		 struct neighbour *neighbour)
{
	neighbour->image = find_among_images(neighbours, looking);
	if (!neighbour->image)
		neighbour->image = open_beside(neighbours, looking);
	if (!neighbour->image)
		neighbour->bundled = open_in_bundle(neighbours, looking);
	if (neighbour->image)
		note(looking, image_use_managed(neighbour->image, &neighbour->managed));
}

/* Not finding one is remembered too, unless it may be there. */
static struct neighbour *look_for(struct neighbours *neighbours, const char *name,
				  const uint8_t *mvid)
{
	size_t name_bytes = strlen(name) + 1;
	struct neighbour *neighbour = calloc(1, sizeof(*neighbour) + name_bytes);
	struct looking looking = { .name = name, .mvid = mvid };

	if (neighbour)
		fill(neighbours, &looking, neighbour);
	else
		note(&looking, &sym_error_no_memory);
	if (looking.trouble && (!neighbour || !metadata_of(neighbour))) {
		sym_error_destroy(neighbours->trouble);
		neighbours->trouble = looking.trouble;
		neighbour_destroy(neighbour);
		return NULL;
	}
	sym_error_destroy(looking.trouble);
	memcpy(neighbour->name, name, name_bytes);
	neighbour->has_mvid = mvid;
	if (mvid)
		memcpy(neighbour->mvid, mvid, sizeof(neighbour->mvid));
	neighbour->next = neighbours->found;
	neighbours->found = neighbour;
	neighbours->found_count++;
	return neighbour;
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

struct sym_error *neighbours_take_trouble(struct neighbours *neighbours)
{
	struct sym_error *trouble;

	pthread_mutex_lock(&neighbours->lock);
	trouble = STEAL(neighbours->trouble);
	pthread_mutex_unlock(&neighbours->lock);
	return trouble;
}

struct r2r_assemblies neighbours_as_assemblies(struct neighbours *neighbours)
{
	return (struct r2r_assemblies){ .context = neighbours, .find = find };
}
