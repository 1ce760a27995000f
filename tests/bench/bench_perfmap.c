/* SPDX-License-Identifier: MIT */
/*
 * Perf maps: reading, indexing and look-ups, against a loop that only reads the file and finds
 * newlines, against `wc -l` (a process that does so), and against libbcc if it is installed. Every
 * figure is the best of several rounds in which ours and the peer alternate. Times are CPU times,
 * on which other load has little effect.
 */
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/format/perf/perfmap.h"
#include "libsym/index/index.h"
#include "libsym/perf/perfmap_source.h"
#include "tests/bench/bcc_calls.h"
#include "tests/bench/bench.h"

enum {
	ROUNDS = 5,
	HEAPS = 4,
	LOOKUPS = 1000000
};

/* The order of addresses in a generated map. */
enum order {
	ORDER_ASCENDING,
	ORDER_RUNTIME, /* a few code heaps, alternating, each growing upwards, as a JIT compiles */
	ORDER_RANDOM
};

struct map {
	struct buf text;
	char path[64]; /* where libbcc searches for a map of this process */
	size_t lines;
	uint64_t *starts; /* ascending by line */
};

/* ---- a map like a runtime's --------------------------------------------------- */

static size_t write_name(char *room, size_t room_bytes, size_t number)
{
	static const char *const returns[] = { "void", "instance void", "int32", "instance bool",
					       "class [System.Runtime]System.String" };
	static const char *const tiers[] = { "QuickJitted", "OptimizedTier1", "InstrumentedTier" };

	/* 80 to 90 bytes on average, like names in real processes. */
	return (size_t)snprintf(
		room, room_bytes, "%s [Shop.Orders] Shop.Orders.Type%zu::Method%zu(%s)[%s]",
		returns[number % 5], number / 12, number,
		number % 3 ? "int32" : "class [System.Runtime]System.Object", tiers[number % 3]);
}

static void set_starts(struct map *map, enum order order)
{
	uint64_t heaps[HEAPS];

	for (size_t i = 0; i < HEAPS; i++)
		heaps[i] = 0x1000000000 + i * 0x400000000;
	for (size_t i = 0; i < map->lines; i++) {
		size_t heap = order == ORDER_RUNTIME ? noise() % HEAPS : 0;

		map->starts[i] = heaps[heap];
		heaps[heap] += 64 + noise() % 8 * 32;
	}
	for (size_t i = map->lines; order == ORDER_RANDOM && i > 1; i--) {
		size_t other = noise() % i;
		uint64_t start = map->starts[other];

		map->starts[other] = map->starts[i - 1];
		map->starts[i - 1] = start;
	}
}

static int compare_starts(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void write_file(struct map *map)
{
	int fd AUTO_CLOSE = -1;

	snprintf(map->path, sizeof(map->path), "/tmp/perf-%d.map", (int)getpid());
	fd = open(map->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || path_write_all(fd, map->text.data, map->text.size_bytes))
		abort();
}

static void make_map(struct map *map, size_t lines, enum order order)
{
	char name[512];

	*map = (struct map){ .lines = lines };
	buf_init(&map->text, SIZE_MAX);
	map->starts = malloc(lines * sizeof(*map->starts));
	set_starts(map, order);
	for (size_t i = 0; i < lines; i++) {
		size_t bytes = write_name(name, sizeof(name), i);

		perfmap_write_line(&map->text, map->starts[i], 48, name, bytes, NULL);
	}
	qsort(map->starts, lines, sizeof(*map->starts), compare_starts);
	write_file(map);
}

static void free_map(struct map *map)
{
	unlink(map->path);
	buf_deinit(&map->text);
	free(map->starts);
}

/* ---- measurements ------------------------------------------------------------------ */

static size_t count_newlines(const struct map *map)
{
	const char *next = map->text.data, *end = next + map->text.size_bytes;
	size_t count = 0;

	while ((next = memchr(next, '\n', (size_t)(end - next)))) {
		next++;
		count++;
	}
	return count;
}

/* Counts newlines while reading the file from the page cache, for a program that does not have the
 * text in memory. */
static size_t count_newlines_of_file(const struct map *map)
{
	static char room[1 << 20];
	int fd AUTO_CLOSE = open(map->path, O_RDONLY | O_CLOEXEC);
	size_t count = 0;
	ssize_t got;

	while ((got = read(fd, room, sizeof(room))) > 0) {
		const char *next = room, *end = room + got;

		while ((next = memchr(next, '\n', (size_t)(end - next)))) {
			next++;
			count++;
		}
	}
	return count;
}

static uint64_t parse(const struct map *map)
{
	struct perfmap_parser parser;
	struct perfmap_line line;
	uint64_t sum = 0;

	perfmap_parser_init(&parser, map->text.data, map->text.size_bytes);
	while (perfmap_parser_next(&parser, &line))
		sum += line.start_address + line.name_bytes;
	return sum;
}

/* Reads the file, which is in the page cache, again. */
static struct perfmap_source *load(const struct map *map)
{
	int fd AUTO_CLOSE = open(map->path, O_RDONLY | O_CLOEXEC);
	const struct perfmap_input input = { .fd = fd, .path = map->path };
	struct perfmap_source *source = NULL;

	if (perfmap_source_open(&input, 1, 0, &source))
		abort();
	return source;
}

struct times {
	double file_newlines, parse, load, wc;
};

/* CPU time of a program without output; 0 if it cannot be run. Does not use fork(): after it, the
 * first write to each page of this process would fault during the next load. */
static double run_program(const char *const *arguments)
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	int status, failed;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0))
		abort();
	failed =
		posix_spawnp(&pid, arguments[0], &actions, NULL, (char *const *)arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failed || wait4(pid, &status, 0, &usage) < 0 || status)
		return 0;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void time_round(const struct map *map, struct times *times)
{
	const char *const wc[] = { "wc", "-l", map->path, NULL };
	double begin = seconds(), end;
	struct perfmap_source *source;
	volatile uint64_t kept;

	kept = count_newlines_of_file(map);
	end = seconds();
	least(&times->file_newlines, end - begin);
	begin = seconds();
	kept = parse(map);
	end = seconds();
	least(&times->parse, end - begin);
	begin = seconds();
	source = load(map);
	end = seconds();
	least(&times->load, end - begin);
	perfmap_source_close(source);
	(void)kept;
	least(&times->wc, run_program(wc));
}

/* ---- look-ups ---------------------------------------------------------------------------- */

static uint64_t *random_positions(const struct map *map)
{
	uint64_t *positions = malloc(LOOKUPS * sizeof(*positions));

	for (size_t i = 0; i < LOOKUPS; i++)
		positions[i] = map->starts[noise() % map->lines] + noise() % 48;
	return positions;
}

static double time_finds(const struct perfmap_source *source, const uint64_t *positions)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = seconds();
		struct source_match match;

		for (size_t i = 0; i < LOOKUPS; i++)
			if (perfmap_source_find(source, positions[i], &match) != SOURCE_HIT)
				abort();
		least(&best, seconds() - begin);
	}
	return best / LOOKUPS * 1e9;
}

/* ---- libbcc --------------------------------------------------------------------------------- */

static int count_symbol(const char *name, uint64_t start, uint64_t length, void *context)
{
	(void)name, (void)start, (void)length;
	++*(size_t *)context;
	return 0;
}

static void against_bcc(const struct map *map, const struct times *times, double find)
{
	uint64_t *positions = random_positions(map);
	double each = 0, loaded = 0, hot = 0, begin;
	struct bcc_symbol symbol;
	struct bcc_calls bcc;
	size_t count = 0;

	if (!bcc_calls_open(&bcc, bcc_library)) {
		puts("perfmap_bcc: libbcc.so.0 is not installed");
		free(positions);
		return;
	}
	for (int round = 0; round < 3; round++) {
		void *cache;

		begin = seconds();
		bcc.each(map->path, count_symbol, &count);
		least(&each, seconds() - begin);
		begin = seconds();
		cache = bcc.cache_new(getpid(), NULL);
		bcc.resolve(cache, positions[0], &symbol);
		least(&loaded, seconds() - begin);
		begin = seconds();
		for (size_t i = 0; i < LOOKUPS / 10; i++)
			bcc.resolve(cache, positions[i], &symbol);
		least(&hot, seconds() - begin);
		bcc.cache_free(cache, getpid());
	}
	figure("perfmap_parse_vs_bcc", times->parse / (double)map->lines * 1e9,
	       each / (double)map->lines * 1e9, (struct bench_goal){ .most_ratio = 0.1 }, "ns");
	figure("perfmap_load_vs_bcc", times->load / (double)map->lines * 1e9,
	       loaded / (double)map->lines * 1e9, (struct bench_goal){ .most_ratio = 0.2 }, "ns");
	figure("perfmap_find_vs_bcc", find, hot / (LOOKUPS / 10) * 1e9,
	       (struct bench_goal){ .most_ratio = 0.1 }, "ns");
	free(positions);
}

/* ---- figures ----------------------------------------------------------------------------------
 */

/* Bytes per symbol, excluding names. */
static void memory_figure(const struct map *map)
{
	struct mallinfo2 before = mallinfo2(), after;
	struct perfmap_source *source = load(map);
	size_t bytes;

	after = mallinfo2();
	bytes = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
	for (size_t i = 0; i < perfmap_source_count(source); i++) {
		struct sym_symbol symbol;

		perfmap_source_at(source, i, &symbol);
		bytes -= strlen(symbol.name) + 1;
	}
	figure("perfmap_memory_a_symbol", (double)bytes / (double)map->lines, 0,
	       (struct bench_goal){ .most = 24 }, "B");
	perfmap_source_close(source);
}

/* Each reads the file, including the second peer. */
static void load_figures(const char *order, const struct times *times, double each)
{
	char title[64];

	snprintf(title, sizeof(title), "perfmap_load%s_vs_newlines_of_file", order);
	figure(title, times->load * each, times->file_newlines * each,
	       (struct bench_goal){ .floor = times->file_newlines * each }, "ns");
}

static void order_figures(const char *name, enum order order)
{
	struct times times = { 0 };
	struct map map;
	double each;

	make_map(&map, 1000000, order);
	each = 1e9 / (double)map.lines;
	for (int round = 0; round < ROUNDS; round++)
		time_round(&map, &times);
	load_figures(name, &times, each);
	free_map(&map);
}

/* Reads an existing map, for example of a real process. */
static void read_map(struct map *map, const char *path)
{
	struct perfmap_parser parser;
	struct perfmap_line line;
	struct stat status;
	int fd AUTO_CLOSE = open(path, O_RDONLY | O_CLOEXEC);
	int length = snprintf(map->path, sizeof(map->path), "%s", path);

	if (fd < 0 || fstat(fd, &status) || length >= (int)sizeof(map->path))
		abort();
	buf_init(&map->text, SIZE_MAX);
	if (pread(fd, buf_reserve(&map->text, (size_t)status.st_size), (size_t)status.st_size, 0) !=
	    status.st_size)
		abort();
	map->text.size_bytes = (size_t)status.st_size;
	map->starts = malloc(count_newlines(map) * sizeof(*map->starts));
	perfmap_parser_init(&parser, map->text.data, map->text.size_bytes);
	while (perfmap_parser_next(&parser, &line))
		map->starts[map->lines++] = line.start_address;
}

static void file_figures(const char *name, const char *path)
{
	struct times times = { 0 };
	struct map map = { 0 };
	char title[64];

	read_map(&map, path);
	for (int round = 0; round < ROUNDS; round++)
		time_round(&map, &times);
	snprintf(title, sizeof(title), "_%s", name);
	load_figures(title, &times, 1e9 / (double)map.lines);
	buf_deinit(&map.text);
	free(map.starts);
}

static void main_figures(void)
{
	struct times times = { 0 };
	struct perfmap_source *source;
	uint64_t *positions;
	struct map map;
	double find, each;

	make_map(&map, 1000000, ORDER_RUNTIME);
	each = 1e9 / (double)map.lines;
	for (int round = 0; round < ROUNDS; round++)
		time_round(&map, &times);
	figure("perfmap_parse_vs_wc", times.parse * each, times.wc * each, (struct bench_goal){ 0 },
	       "ns");
	load_figures("", &times, each);
	figure("perfmap_load_vs_wc", times.load * each, times.wc * each, (struct bench_goal){ 0 },
	       "ns");
	memory_figure(&map);
	source = load(&map);
	positions = random_positions(&map);
	find = time_finds(source, positions);
	against_bcc(&map, &times, find);
	free(positions);
	perfmap_source_close(source);
	free_map(&map);
}

/* bench_perfmap [NAME MAP]: figures of that map only. */
int main(int argc, char **argv)
{
	if (argc == 3) {
		file_figures(argv[1], argv[2]);
		return 0;
	}
	/* Uses fresh memory in every round. Otherwise the first round would pay for all. */
	main_figures();
	order_figures("_ascending", ORDER_ASCENDING);
	order_figures("_random", ORDER_RANDOM);
	return 0;
}
