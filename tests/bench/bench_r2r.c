/* SPDX-License-Identifier: MIT */
/*
 * Reads all managed images of the given directories and files, names every method, and prints
 * counts and costs. Without arguments it prints figures for the frameworks of this machine.
 *
 * --dump=runtime, --dump=crossgen2  print rows of a relative map, for scripts that compare them
 * with those of other tools
 * --dump=cold                       crossgen2's dialect, with cold parts
 * --with=PATH                       adds files whose metadata may be needed
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "libsym/base/path.h"
#include "libsym/format/dotnet/r2r.h"
#include "libsym/format/dotnet/r2r_debug.h"
#include "libsym/libsym.h"
#include "tests/bench/bench.h"

#include <fcntl.h>

struct totals {
	size_t files, images, methods, undecodable, ownerless, unnamed, failed, bytes, name_bytes;
	size_t debug_infos, bad_debug_infos, map_entries;
	size_t fragile, thunk_lines, thunk_images; /* images with at least one line of thunks */
	const char *dump;                          /* NULL: none */
	size_t largest;                            /* methods of the image that has the most */
	char largest_path[4096];
};

struct opened {
	struct buf file;
	struct pe pe;
	struct metadata *metadata;
};

/* Files of --with=PATH: kept open for their metadata. */
#define MAX_REFERENCES 2048
static struct opened *references[MAX_REFERENCES];
static size_t reference_count;

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void release(struct opened *one)
{
	metadata_close(one->metadata);
	buf_deinit(&one->file);
	one->metadata = NULL;
}

static bool open_image(const char *path, struct opened *one)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct sym_error *error;
	struct stat status;
	const uint8_t *bytes;

	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
		return false;
	buf_clear(&one->file);
	if (!buf_reserve(&one->file, (size_t)status.st_size + 1) ||
	    path_read_at(fd, one->file.data, (size_t)status.st_size, 0))
		return false;
	one->file.size_bytes = (size_t)status.st_size;
	error = pe_parse(&one->pe, one->file.data, one->file.size_bytes, PE_LAYOUT_FILE);
	if (!error && one->pe.metadata.rva) {
		bytes = pe_bytes(&one->pe, one->pe.metadata.rva, one->pe.metadata.size_bytes);
		if (bytes)
			error = metadata_open(bytes, one->pe.metadata.size_bytes, &one->metadata);
	}
	if (error)
		fprintf(stderr, "%s: %s\n", path, sym_error_message(error));
	sym_error_destroy(error);
	return !error;
}

static const struct metadata *find(void *context, const char *name, const uint8_t *mvid)
{
	(void)context;
	for (size_t i = 0; i < reference_count; i++) {
		const struct metadata *metadata = references[i]->metadata;
		uint8_t own[16];

		if (!metadata || strcasecmp(metadata_assembly_name(metadata), name))
			continue;
		if (!mvid || (metadata_mvid(metadata, own) && !memcmp(own, mvid, 16)))
			return metadata;
	}
	return NULL;
}

static void print_row(const struct totals *totals, const struct r2r_range *range,
		      const struct buf *name)
{
	const char *format = !strcmp(totals->dump, "runtime") ? "%08x %x " : "%08X %02X ";

	printf(format, range->rva, range->size_bytes);
	fwrite(name->data, 1, name->size_bytes, stdout);
	fputs(range->kind == R2R_COLD ? " [cold]\n" : "\n", stdout);
}

static void name_all(const struct r2r *r2r, struct totals *totals)
{
	enum r2r_dialect dialect = totals->dump && strcmp(totals->dump, "runtime")
					   ? R2R_NAME_CROSSGEN2
					   : R2R_NAME_RUNTIME;
	const struct r2r_range *ranges;
	struct buf name;
	size_t count;

	buf_init(&name, 1 << 20);
	ranges = r2r_ranges(r2r, &count);
	for (size_t i = 0; i < count; i++) {
		const char *why;

		if (ranges[i].kind == R2R_STUB ||
		    (ranges[i].kind == R2R_COLD && totals->dump && strcmp(totals->dump, "cold")))
			continue;
		buf_clear(&name);
		if (!r2r_name(r2r, ranges[i].entry, dialect, &name, &why)) {
			if (totals->unnamed++ < 20)
				fprintf(stderr, "rva %x: %s\n", ranges[i].rva, why);
			continue;
		}
		totals->name_bytes += name.size_bytes;
		if (totals->dump)
			print_row(totals, &ranges[i], &name);
	}
	buf_deinit(&name);
}

/* The debug information of all methods: each map must be whole, and inside its method. */
static void read_debug_information(const struct r2r *r2r, struct totals *totals)
{
	const struct r2r_range *ranges;
	size_t count;

	ranges = r2r_ranges(r2r, &count);
	for (size_t i = 0; i < count; i++) {
		struct il_map_entry entry = { 0 };
		struct debug_info info;
		struct il_map map;
		bool is_found;

		if (ranges[i].kind != R2R_METHOD)
			continue;
		is_found = r2r_debug_find(r2r, ranges[i].entry, &info);
		totals->bad_debug_infos += info.failure != NULL;
		if (!is_found)
			continue;
		totals->debug_infos++;
		map = il_map_begin(info.bounds, info.bounds_bytes, info.form);
		while (il_map_next(&map, &entry))
			totals->map_entries++;
		totals->bad_debug_infos +=
			map.failure || entry.native_offset > ranges[i].size_bytes;
	}
}

static void count_thunks(const struct r2r *r2r, struct totals *totals)
{
	const struct r2r_range *ranges;
	size_t count, lines = 0;

	ranges = r2r_ranges(r2r, &count);
	for (size_t i = 0; i < count; i++)
		lines += ranges[i].kind == R2R_STUB;
	totals->thunk_lines += lines;
	totals->thunk_images += lines > 0;
}

static void read_image(const char *path, const struct opened *one, struct totals *totals)
{
	const struct r2r_assemblies assemblies = { NULL, find };
	enum r2r_flavour flavour = r2r_flavour(&one->pe);
	struct r2r *r2r = NULL;
	struct sym_error *error;

	totals->fragile += flavour == R2R_NGEN;
	if (flavour == R2R_NONE || flavour == R2R_NGEN)
		return;
	error = r2r_open(&one->pe, one->metadata, &assemblies, &r2r);
	if (error) {
		fprintf(stderr, "%s: %s\n", path, sym_error_message(error));
		sym_error_destroy(error);
		totals->failed++;
		return;
	}
	totals->images++;
	totals->bytes += one->file.size_bytes;
	totals->methods += r2r_method_count(r2r);
	totals->undecodable += r2r_undecodable_count(r2r);
	totals->ownerless += r2r_ownerless_count(r2r);
	if (r2r_undecodable_count(r2r) || r2r_ownerless_count(r2r))
		fprintf(stderr, "%s: %zu undecodable, %zu ownerless\n", path,
			r2r_undecodable_count(r2r), r2r_ownerless_count(r2r));
	if (r2r_method_count(r2r) > totals->largest) {
		totals->largest = r2r_method_count(r2r);
		snprintf(totals->largest_path, sizeof(totals->largest_path), "%s", path);
	}
	count_thunks(r2r, totals);
	if (!totals->dump)
		read_debug_information(r2r, totals);
	name_all(r2r, totals);
	r2r_close(r2r);
}

static void keep_reference(const char *path)
{
	struct opened *one;

	if (reference_count == MAX_REFERENCES)
		return;
	one = calloc(1, sizeof(*one));
	if (!one)
		return;
	buf_init(&one->file, (size_t)1 << 30);
	if (open_image(path, one)) {
		references[reference_count++] = one;
		return;
	}
	release(one);
	free(one);
}

static void read_file(const char *path, struct totals *totals, struct opened *shared)
{
	if (!totals) {
		keep_reference(path);
		return;
	}
	totals->files++;
	if (open_image(path, shared))
		read_image(path, shared, totals);
	metadata_close(shared->metadata);
	shared->metadata = NULL;
}

/* If `totals` is NULL, each file becomes a reference. */
static void read_path(const char *path, struct totals *totals, struct opened *shared)
{
	GUARDED(dir) DIR *dir = NULL;
	struct dirent *entry;
	struct stat status;

	if (stat(path, &status))
		return;
	if (!S_ISDIR(status.st_mode)) {
		read_file(path, totals, shared);
		return;
	}
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');
		AUTO_FREE char *child = NULL;

		if (entry->d_name[0] == '.')
			continue;
		if (entry->d_type != DT_DIR &&
		    (!dot || (strcasecmp(dot, ".dll") && strcasecmp(dot, ".exe"))))
			continue;
		if (asprintf(&child, "%s/%s", path, entry->d_name) < 0)
			return;
		read_path(child, totals, shared);
	}
}

static void print_totals(const struct totals *totals, double seconds)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("r2r files=%zu images=%zu methods=%zu undecodable=%zu ownerless=%zu "
	       "unnamed=%zu debug_infos=%zu bad_debug_infos=%zu map_entries=%zu failed=%zu "
	       "fragile=%zu thunk_lines=%zu thunk_images=%zu MB=%zu "
	       "name_MB=%zu cpu_s=%.3f peak_MB=%ld\n",
	       totals->files, totals->images, totals->methods, totals->undecodable,
	       totals->ownerless, totals->unnamed, totals->debug_infos, totals->bad_debug_infos,
	       totals->map_entries, totals->failed, totals->fragile, totals->thunk_lines,
	       totals->thunk_images, totals->bytes >> 20, totals->name_bytes >> 20, seconds,
	       usage.ru_maxrss >> 10);
}

/* ---- looking up ------------------------------------------------------------------------ */

enum {
	ROUNDS = 5,
	LOOKUPS = 200000
};

/* The cost for a user of the library, including all names. */
static void resolve_figure(const char *path, const uint64_t *positions)
{
	struct sym_result *result = NULL;
	struct sym_image *image = NULL;
	struct sym_error *error = sym_image_open(path, &image);
	double ours = 0;

	if (!error)
		error = sym_result_create(&result);
	for (int round = -1; round < ROUNDS && !error; round++) {
		double begin = seconds();

		for (size_t i = 0; i < LOOKUPS && !error; i++)
			error = sym_image_resolve(image, SYM_POSITION_RVA, &positions[i], 1,
						  result);
		if (round >= 0)
			least(&ours, seconds() - begin);
	}
	if (error)
		fprintf(stderr, "%s: %s\n", path, sym_error_message(error));
	else
		figure("r2r_resolve_single", ours / LOOKUPS * 1e9, 0, (struct bench_goal){ 0 },
		       "ns");
	sym_error_destroy(error);
	sym_result_destroy(result);
	sym_image_close(image);
}

/* Random addresses in the image with the most methods. */
static void look_up_figures(const char *path, struct opened *shared)
{
	uint64_t *positions AUTO_FREE = malloc(LOOKUPS * sizeof(*positions));
	const struct r2r_assemblies assemblies = { NULL, find };
	const struct r2r_range *ranges;
	struct sym_error *error = NULL;
	struct r2r *r2r AUTO_R2R = NULL;
	size_t count;

	if (!positions || !open_image(path, shared))
		return;
	error = r2r_open(&shared->pe, shared->metadata, &assemblies, &r2r);
	sym_error_destroy(error);
	if (!r2r)
		return;
	ranges = r2r_ranges(r2r, &count);
	for (size_t i = 0; i < LOOKUPS; i++) {
		const struct r2r_range *range = &ranges[noise() % count];

		positions[i] = range->rva + noise() % range->size_bytes;
	}
	printf("r2r: %s with %zu ranges\n", path, count);
	resolve_figure(path, positions);
	metadata_close(shared->metadata);
	shared->metadata = NULL;
}

/* The frameworks of this machine, for `make bench`: one figure per line. */
static int print_figures(struct opened *shared)
{
	static const char *const roots[] = { "/usr/share/dotnet/shared", "/usr/lib/dotnet/shared" };
	const char *root = getenv("DOTNET_ROOT");
	struct totals totals = { 0 };
	double start = cpu_seconds(), seconds;
	struct rusage usage;
	char path[4096];

	if (root) {
		snprintf(path, sizeof(path), "%s/shared", root);
		read_path(path, &totals, shared);
	}
	for (size_t i = 0; i < 2 && !totals.images; i++)
		read_path(roots[i], &totals, shared);
	if (!totals.images)
		return 0;
	seconds = cpu_seconds() - start;
	getrusage(RUSAGE_SELF, &usage);
	printf("r2r_name_all_methods_cpu ours=%.3fs peer=none ratio=none goal=0.4s images=%zu "
	       "methods=%zu %s\n",
	       seconds, totals.images, totals.methods, seconds <= 0.4 ? "ok" : "short");
	printf("r2r_memory ours=%ldMB peer=none ratio=none goal=60MB %s\n", usage.ru_maxrss >> 10,
	       usage.ru_maxrss >> 10 <= 60 ? "ok" : "short");
	printf("r2r_undecodable ours=%zu peer=none ratio=none goal=0 %s\n",
	       totals.undecodable + totals.ownerless + totals.unnamed,
	       totals.undecodable + totals.ownerless + totals.unnamed ? "short" : "ok");
	look_up_figures(totals.largest_path, shared);
	return 0;
}

int main(int argc, char **argv)
{
	struct totals totals = { 0 };
	struct opened shared = { 0 };
	double start;

	buf_init(&shared.file, (size_t)1 << 30);
	if (argc == 1) {
		int status = print_figures(&shared);

		release(&shared);
		return status;
	}
	start = cpu_seconds();
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--dump=", 7))
			totals.dump = argv[i] + 7;
		else if (!strncmp(argv[i], "--with=", 7))
			read_path(argv[i] + 7, NULL, &shared);
		else
			read_path(argv[i], &totals, &shared);
	}
	if (!totals.dump)
		print_totals(&totals, cpu_seconds() - start);
	release(&shared);
	for (size_t i = 0; i < reference_count; i++) {
		release(references[i]);
		free(references[i]);
	}
	return totals.failed || totals.unnamed ? 1 : 0;
}
