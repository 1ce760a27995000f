/* SPDX-License-Identifier: MIT */
/*
 * How kernel addresses are answered.
 *
 *   1. the kernel's own text, read once when the kernel was opened
 *   2. modules, BPF programs and trampolines: a list that modules_update() keeps current
 *
 * modules_update() compares a digest of what is loaded (kernel_changes.h). It reads kallsyms again
 * when the digest has changed, after a second, or after a refresh.
 * Names from a replaced list may be in use, so answers have copies that live as long as the kernel.
 */
#include "libsym/resolver/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/text_set.h"
#include "libsym/resolver/kernel_changes.h"
#include "libsym/source/kernel_source.h"
#include "libsym/symbols/result.h"

enum {
	MOST_READS = 4
};

/* Longest use of a list without a sign of change: some changes leave no sign. */
static const uint64_t most_age_ns = 1000000000;

/* Modules and programs of a running kernel. With the lock. */
struct kernel_modules {
	pthread_mutex_t lock;
	int fd; /* of kallsyms */
	bool is_old;
	bool has_digest;
	uint64_t digest;
	uint64_t read_ns;
	struct kernel_source *source; /* NULL: as read when the kernel was opened */
	struct text_set
		handed; /* names and modules in answers, which stay when the source is replaced */
};

struct sym_kernel {
	struct kernel_source *source;
	struct kernel_modules *modules; /* NULL: a recorded kernel */
};

static void modules_close(struct kernel_modules *modules)
{
	if (!modules)
		return;
	pthread_mutex_destroy(&modules->lock);
	close(modules->fd);
	kernel_source_close(modules->source);
	text_set_deinit(&modules->handed);
	free(modules);
}

void sym_kernel_close(struct sym_kernel *kernel)
{
	if (!kernel)
		return;
	modules_close(kernel->modules);
	kernel_source_close(kernel->source);
	free(kernel);
}

uint64_t kernel_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Takes ownership of `fd`, also on failure. */
static struct sym_error *modules_open(int fd, struct kernel_modules **ret)
{
	struct kernel_modules *modules = calloc(1, sizeof(*modules));

	if (!modules) {
		close(fd);
		return &sym_error_no_memory;
	}
	pthread_mutex_init(&modules->lock, NULL);
	modules->fd = fd;
	modules->read_ns = kernel_clock_ns();
	modules->has_digest = kernel_changes_digest(&modules->digest);
	*ret = modules;
	return NULL;
}

static bool is_running(int fd)
{
	struct statfs file_system;

	return !fstatfs(fd, &file_system) && file_system.f_type == PROC_SUPER_MAGIC;
}

/*
 * The digest is made before the list is read. A program gets its id before its line, so one that is
 * loaded in between changes the next digest.
 */
struct sym_error *kernel_open_at(int directory, const char *name, struct sym_kernel **ret)
{
	int fd AUTO_CLOSE = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct sym_kernel *kernel AUTO_KERNEL = calloc(1, sizeof(*kernel));
	struct sym_error *error = NULL;
	int list;

	if (!kernel)
		return &sym_error_no_memory;
	if (fd < 0)
		return sym_error_from_errno(errno, name, "cannot open");
	list = fd;
	if (is_running(fd)) {
		fd = -1;
		error = modules_open(list, &kernel->modules);
	}
	if (!error)
		error = kernel_source_open(list, name, KERNEL_ALL, &kernel->source);
	if (error)
		return error;
	*ret = STEAL(kernel);
	return NULL;
}

struct sym_error *sym_kernel_open(const char *root, struct sym_kernel **ret)
{
	int directory AUTO_CLOSE = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return sym_error_from_errno(errno, root, "cannot open");
	/* Without a root, messages have the path that users know. */
	return kernel_open_at(directory, root ? "proc/kallsyms" : "/proc/kallsyms", ret);
}

const char *sym_kernel_problem(const struct sym_kernel *kernel)
{
	return kernel_source_trouble(kernel->source);
}

/* ---- what comes and goes ------------------------------------------------------------- */

void kernel_refresh(struct sym_kernel *kernel)
{
	if (!kernel || !kernel->modules)
		return;
	pthread_mutex_lock(&kernel->modules->lock);
	kernel->modules->is_old = true;
	pthread_mutex_unlock(&kernel->modules->lock);
}

bool kernel_answer_stays(const struct sym_answer *answer)
{
	return answer->image_path == kernel_source_own;
}

/* Reads the lines of modules and programs at once. */
static struct sym_error *read_list(struct kernel_modules *modules)
{
	struct kernel_source *fresh;
	struct sym_error *error;

	error = kernel_source_open(modules->fd, "kallsyms", KERNEL_MODULES, &fresh);
	if (error)
		return error;
	kernel_source_close(modules->source);
	modules->source = fresh;
	return NULL;
}

static bool is_up_to_date(const struct kernel_modules *modules, uint64_t begin_ns, bool has_digest,
			  uint64_t digest)
{
	if (modules->is_old)
		return false;
	if (!has_digest || !modules->has_digest)
		return begin_ns <= modules->read_ns;
	return digest == modules->digest && kernel_clock_ns() - modules->read_ns <= most_age_ns;
}

/*
 * Reads the list if it may have changed. With the lock.
 * /proc/kallsyms counts lines: if one disappears during the reading, the next one is skipped. So a
 * list is kept only if nothing has changed since it began; otherwise it serves this call only.
 */
static struct sym_error *modules_update(struct kernel_modules *modules, uint64_t begin_ns)
{
	uint64_t digest = 0;
	bool has_digest = kernel_changes_digest(&digest);

	if (is_up_to_date(modules, begin_ns, has_digest, digest))
		return NULL;
	modules->is_old = true;
	for (int i = 0; i < MOST_READS && modules->is_old; i++) {
		struct sym_error *error;

		modules->digest = digest;
		modules->has_digest = has_digest;
		modules->read_ns = kernel_clock_ns();
		error = read_list(modules);
		if (error)
			return error;
		has_digest = kernel_changes_digest(&digest);
		modules->is_old = has_digest && digest != modules->digest;
	}
	return NULL;
}

/* Interns a text in memory that lives as long as the kernel. */
static struct sym_error *keep_text(struct kernel_modules *modules, const char **text)
{
	*text = text_set_add(&modules->handed, *text, strlen(*text));
	return *text ? NULL : &sym_error_no_memory;
}

/* Searches the current list. Without a newer list *found and *match stay as of the opening. */
static struct sym_error *find_now(struct kernel_modules *modules, uint64_t begin_ns,
				  uint64_t address, bool *found, struct source_match *match,
				  const char **module)
{
	struct sym_error *error = modules_update(modules, begin_ns);

	if (error || !modules->source)
		return error;
	*found = kernel_source_find(modules->source, address, match, module);
	if (!*found)
		return NULL;
	error = keep_text(modules, &match->name);
	return error ? error : keep_text(modules, module);
}

/* ---- answers ------------------------------------------------------------------------- */

static bool kernel_find_symbol(const struct sym_kernel *kernel, uint64_t begin_ns,
			       struct sym_answer *answer, struct source_match *match)
{
	const char *module = kernel_source_own;
	bool found = kernel_source_find(kernel->source, answer->address, match, &module);
	struct sym_error *error = NULL;

	if (kernel->modules && !(found && module == kernel_source_own)) {
		pthread_mutex_lock(&kernel->modules->lock);
		error = find_now(kernel->modules, begin_ns, answer->address, &found, match,
				 &module);
		pthread_mutex_unlock(&kernel->modules->lock);
	}
	if (!error && found) {
		answer->image_path = module;
		return true;
	}
	answer->status = error ? SYM_UNREADABLE : SYM_NO_MATCH;
	if (error)
		answer->reason = "code of the kernel that comes and goes: kallsyms cannot be read "
				 "again";
	sym_error_destroy(error);
	return false;
}

void kernel_answer(const struct sym_kernel *kernel, uint64_t begin_ns, struct sym_answer *answer)
{
	const char *trouble = kernel_source_trouble(kernel->source);
	struct source_match match;

	answer->image_path = kernel_source_own;
	if (trouble) {
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = trouble;
		return;
	}
	if (!kernel_find_symbol(kernel, begin_ns, answer, &match))
		return;
	answer->status = SYM_RESOLVED;
	answer->source = SYM_SOURCE_KERNEL;
	answer->name = match.name;
	answer->kind = match.kind;
	answer->offset_bytes = answer->address - match.start;
	answer->size_bytes = match.size_bytes;
}

struct sym_error *sym_kernel_resolve(const struct sym_kernel *kernel, const uint64_t *addresses,
				     size_t count, struct sym_result *result)
{
	struct sym_error *error = result_prepare(result, addresses, count);
	uint64_t begin_ns = kernel_clock_ns();

	for (size_t i = 0; !error && i < count; i++)
		kernel_answer(kernel, begin_ns, &result->slots[i]);
	return error;
}

static void add_symbols(struct symbols_builder *builder, const struct kernel_source *source,
			bool has_modules)
{
	for (size_t i = 0; i < kernel_source_count(source); i++) {
		struct sym_symbol symbol;

		if (kernel_source_at(source, i, &symbol) || has_modules)
			symbols_builder_add(builder, &symbol, symbol.name, strlen(symbol.name));
	}
}

struct sym_error *sym_kernel_symbols(const struct sym_kernel *kernel, struct sym_symbols **ret)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct kernel_modules *modules = kernel->modules;
	struct sym_error *error = NULL;

	if (modules) {
		pthread_mutex_lock(&modules->lock);
		error = modules_update(modules, UINT64_MAX);
	}
	if (!error)
		add_symbols(&builder, kernel->source, !modules || !modules->source);
	if (!error && modules && modules->source)
		add_symbols(&builder, modules->source, true);
	if (modules)
		pthread_mutex_unlock(&modules->lock);
	return error ? error : symbols_freeze(&builder, ret);
}
