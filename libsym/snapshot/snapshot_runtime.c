/* SPDX-License-Identifier: MIT */
/* Gives the readers of a runtime (clr/) the images and the assembly metadata of a snapshot. */
#include "libsym/snapshot/snapshot_runtime.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"
#include "libsym/base/path.h"
#include "libsym/image/bundled_assembly.h"
#include "libsym/snapshot/core_memory.h"

const struct sym_mapping *snapshot_runtime_mapping(const struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;
	const struct runtime_info *runtime = snapshot_runtime(snapshot);

	if (!runtime || !runtime->shape || runtime->mapping_index >= space->mapping_count)
		return NULL;
	for (size_t i = runtime->mapping_index; i < space->mapping_count; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];
		struct sym_image *image = NULL;

		if (strcmp(mapping->path, space->mappings[runtime->mapping_index].path) != 0)
			continue;
		sym_error_destroy(snapshot_image_of(snapshot, i, &image));
		if (image && snapshot->lines[i].placed && image->object &&
		    image->object->kind == SYM_IMAGE_ELF)
			return mapping;
	}
	return NULL;
}

struct object_file *snapshot_executable(const struct sym_snapshot *snapshot)
{
	const char *executable = snapshot->process->executable;

	for (size_t i = 0; executable && i < snapshot->image_count; i++) {
		struct sym_image *image = snapshot->images[i];

		if (image->object && image->object->kind == SYM_IMAGE_ELF &&
		    !strcmp(image->path, executable))
			return image_trouble(image) ? NULL : image->object;
	}
	return NULL;
}

/* ---- assemblies ---------------------------------------------------------------- */

/*
 * An assembly that was looked up. A rundown orders methods by address, and so returns to each
 * assembly often.
 */
struct asked_assembly {
	UT_hash_handle hh;
	const struct metadata *metadata;  /* NULL: not available */
	struct bundled_assembly *bundled; /* NULL: it is an image */
	char path[];
};

/* Assemblies whose metadata is in use for one rundown. */
struct assemblies {
	const struct sym_snapshot *snapshot;
	const struct object_managed **managed; /* one for each image; NULL: not in use */
	struct asked_assembly *asked;
};

/*
 * The assemblies of a bundle have paths that do not exist. Then the name decides, if only one has
 * it. An assembly loaded from an array of bytes has no path, only a name, which other files may
 * have.
 */
static size_t find_image(const struct sym_snapshot *snapshot, const char *path)
{
	const char *name = path_file_name(path);
	size_t stem_bytes = strlen(name), count = 0, found = SIZE_MAX;

	for (size_t i = 0; i < snapshot->image_count; i++)
		if (snapshot->images[i]->object && !strcmp(snapshot->images[i]->path, path))
			return i;
	if (name == path || stem_bytes <= 4)
		return SIZE_MAX;
	stem_bytes -= 4; /* .dll */
	for (size_t i = 0; i < snapshot->image_count; i++) {
		struct object_file *object = snapshot->images[i]->object;
		const char *assembly = object && object->kind != SYM_IMAGE_ELF
					       ? object_file_assembly_name(object)
					       : NULL;

		if (!assembly || strncmp(assembly, name, stem_bytes) != 0 || assembly[stem_bytes])
			continue;
		found = i;
		count++;
	}
	return count == 1 ? found : SIZE_MAX;
}

/* Finds an assembly without code inside a single-file application, which is not an image. */
static void find_bundled(const struct assemblies *assemblies, struct asked_assembly *asked)
{
	struct object_file *host = snapshot_executable(assemblies->snapshot);
	const char *name = path_file_name(asked->path);

	if (!host || name == asked->path)
		return;
	sym_error_destroy(bundled_assembly_open(host, name, &asked->bundled));
	if (asked->bundled)
		asked->metadata = bundled_assembly_metadata(asked->bundled);
}

static void find_managed(const struct assemblies *assemblies, size_t index,
			 struct asked_assembly *asked)
{
	struct sym_image *image = assemblies->snapshot->images[index];
	const struct object_managed **managed = &assemblies->managed[index];
	struct sym_error *error = NULL;

	if (image_trouble(image))
		return;
	if (!*managed)
		error = object_file_use_managed(image->object, managed);
	if (error)
		*managed = NULL;
	else
		asked->metadata = (*managed)->metadata;
	sym_error_destroy(error);
}

/* Without metadata, names are shorter. */
static const struct metadata *find_metadata(void *context, const char *path)
{
	struct assemblies *assemblies = context;
	size_t path_bytes = strlen(path), found;
	struct asked_assembly *asked;

	HASH_FIND(hh, assemblies->asked, path, path_bytes, asked);
	if (asked)
		return asked->metadata;
	asked = calloc(1, sizeof(*asked) + path_bytes + 1);
	if (!asked)
		return NULL;
	memcpy(asked->path, path, path_bytes + 1);
	HASH_ADD_KEYPTR(hh, assemblies->asked, asked->path, path_bytes, asked);
	if (!hash_added(asked)) {
		free(asked);
		return NULL;
	}
	found = find_image(assemblies->snapshot, path);
	if (found == SIZE_MAX)
		find_bundled(assemblies, asked);
	else
		find_managed(assemblies, found, asked);
	return asked->metadata;
}

static void asked_assembly_destroy(struct asked_assembly *asked)
{
	bundled_assembly_close(asked->bundled);
	free(asked);
}

/* Runs `use` with the assemblies of the snapshot. */
static struct sym_error *use_assemblies(const struct sym_snapshot *snapshot, clr_assemblies_fn *use,
					void *context)
{
	struct assemblies assemblies = { .snapshot = snapshot };
	const struct runtime_assemblies access = { .context = &assemblies, .find = find_metadata };
	struct sym_error *error = snapshot_open_all(snapshot);

	if (error)
		return error;
	assemblies.managed = calloc(snapshot->image_count + 1, sizeof(*assemblies.managed));
	if (!assemblies.managed)
		return &sym_error_no_memory;
	error = use(context, &access);
	for (size_t i = 0; i < snapshot->image_count; i++)
		if (assemblies.managed[i])
			object_file_unuse_managed(snapshot->images[i]->object);
	free(assemblies.managed);
	HASH_DESTROY(assemblies.asked, asked_assembly_destroy);
	return error;
}

static struct sym_error *image_by_path(const struct sym_snapshot *snapshot, const char *path,
				       struct sym_image **image_ret,
				       struct bundled_assembly **bundled_ret)
{
	const char *name = path_file_name(path);
	struct object_file *host;
	struct sym_error *error = snapshot_open_all(snapshot);
	size_t found = error ? SIZE_MAX : find_image(snapshot, path);

	*image_ret = NULL;
	*bundled_ret = NULL;
	if (error)
		return error;
	if (found != SIZE_MAX) {
		*image_ret = snapshot->images[found];
		return NULL;
	}
	host = snapshot_executable(snapshot);
	if (host && name != path)
		error = bundled_assembly_open(host, name, bundled_ret);
	return sym_error_only_no_memory(error);
}

/* ---- what clr/ is given ---------------------------------------------------------- */

static struct sym_error *image_of(const struct sym_snapshot *snapshot, size_t line,
				  struct sym_image **ret)
{
	return snapshot_image_of(snapshot, line, ret);
}

static const struct clr_target_ops target_ops = {
	.runtime = snapshot_runtime,
	.runtime_mapping = snapshot_runtime_mapping,
	.image_of = image_of,
	.image_by_path = image_by_path,
	.open_core = core_memory_open,
	.use_assemblies = use_assemblies,
};

struct clr_target snapshot_clr_target(const struct sym_snapshot *snapshot)
{
	return (struct clr_target){
		.process = snapshot->process,
		.space = snapshot->space,
		.jit = snapshot->jit,
		.snapshot = snapshot,
		.ops = &target_ops,
	};
}

struct sym_error *snapshot_live_code(const struct sym_snapshot *snapshot,
				     const struct jitted_code **ret)
{
	const struct clr_target target = snapshot_clr_target(snapshot);

	return jitted_code_get(&target, &snapshot->ground->jitted_code, ret);
}

struct sym_error *sym_snapshot_jit(struct sym_snapshot *snapshot, const struct sym_jit_info **ret)
{
	const struct jitted_code *code;
	struct sym_error *error = snapshot_live_code(snapshot, &code);

	if (!error)
		*ret = &code->info;
	return error;
}
