/* SPDX-License-Identifier: MIT */
/*
 * Which file has which key.
 *
 * A scan walks the directories, reads the identity of each new or changed file, and builds a new
 * table from key text to entries, the best file first. The table then replaces the old one under
 * the lock. Requests look a key up, copy the entry, and open the file without the lock. The opened
 * file must still have the version (device, inode, size, times) of the entry, or its identity is
 * read again.
 *
 * Some files have no identity of their own: those beside a libcoreclr.so are added with its build-
 * id at the end of a scan (add_companions()).
 */
#include "symsrv/lookup/file_index.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/base/path.h"
#include "symsrv/key/key.h"
#include "symsrv/upstream/image_note.h"
#include "symsrv/util/log.h"

struct version {
	uint64_t size_bytes;
	struct timespec modified;
	ino_t inode;
	dev_t device;
};

/* One file that has a key. */
struct entry {
	UT_hash_handle hh;
	struct entry *other; /* the next best file for this key; not in the table */
	char *path;
	size_t root_bytes; /* of the path: the directory of --index */
	struct version version;
	uint32_t contents; /* enum sym_content */
	char text[];
};

enum {
	MOST_FILES = 8 /* most files for a key */
};

struct file_index {
	pthread_mutex_t lock;
	struct entry *entries;
	uint64_t files, files_seen;
	/* Directories of the options that could be read, and directories below them that had files
	 * with keys and later could not be read; used by the scanner. */
	struct text_list known;
	atomic_bool is_scanned;
	atomic_bool has_lost; /* one of them cannot be read now */
	atomic_bool was_moved;
	unsigned int awaited; /* number of the scan that makes it complete */
	atomic_uint changes;
};

struct file_index *file_index_create(bool is_empty)
{
	struct file_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	pthread_mutex_init(&index->lock, NULL);
	index->is_scanned = is_empty;
	return index;
}

unsigned int file_index_await(struct file_index *index)
{
	unsigned int number;

	pthread_mutex_lock(&index->lock);
	index->is_scanned = false;
	number = ++index->awaited;
	pthread_mutex_unlock(&index->lock);
	return number;
}

bool file_index_is_scanned(const struct file_index *index)
{
	return index->is_scanned;
}

bool file_index_is_whole(const struct file_index *index)
{
	return index->is_scanned && !index->has_lost;
}

bool file_index_was_moved(const struct file_index *index)
{
	return index->was_moved;
}

unsigned int file_index_changes(const struct file_index *index)
{
	return index->changes;
}

/* Beside the other files for its key. */
static void entry_destroy(struct entry *entry)
{
	struct entry *other;

	for (; entry; entry = other) {
		other = entry->other;
		free(entry->path);
		free(entry);
	}
}

static void file_index_clear(struct entry **entries)
{
	HASH_DESTROY(*entries, entry_destroy);
}

void file_index_destroy(struct file_index *index)
{
	if (!index)
		return;
	file_index_clear(&index->entries);
	text_list_deinit(&index->known);
	pthread_mutex_destroy(&index->lock);
	free(index);
}

/* ---- scanning ---- */

struct scan {
	struct entry *entries;
	uint64_t files, files_seen;
	struct text_list unread; /* directories below those of the options that could not be read */
	struct runtime *runtimes;
	size_t root_bytes; /* see struct entry */
};

/* The path of a directory of --index may contain links. A link inside may be another user's. */
static int open_below(const char *path, size_t root_bytes)
{
	char *root AUTO_FREE = strndup(path, root_bytes);
	int fd AUTO_CLOSE = -1;

	if (!root)
		return -ENOMEM;
	if (!path[root_bytes])
		return path_open_in_root(-1, path, PATH_REGULAR);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno
		      : path_open_in_root(fd, path + root_bytes, PATH_REGULAR | PATH_NO_SYMLINKS);
}

static struct version version_of(const struct stat *status)
{
	return (struct version){ (uint64_t)status->st_size, status->st_mtim, status->st_ino,
				 status->st_dev };
}

static bool is_same_version(const struct version *left, const struct version *right)
{
	return left->size_bytes == right->size_bytes && left->inode == right->inode &&
	       left->device == right->device && left->modified.tv_sec == right->modified.tv_sec &&
	       left->modified.tv_nsec == right->modified.tv_nsec;
}

/* A debug file is a better answer to "debuginfo" than a program that is not stripped. */
static bool is_better(const struct entry *entry, const struct entry *old)
{
	uint32_t debug = SYM_CONTENT_DEBUG_INFO;

	return (entry->contents & debug) > (old->contents & debug);
}

/* Behind those that are equally good; false: there are enough. */
static bool add_other(struct entry *first, struct entry *entry)
{
	struct entry *before = first;

	for (unsigned int i = 1; before->other && !is_better(entry, before->other); i++) {
		if (i == MOST_FILES)
			return false;
		before = before->other;
	}
	entry->other = before->other;
	before->other = entry;
	return true;
}

static void file_index_add(struct scan *scan, const char *text, const char *path,
			   const struct stat *status, uint32_t contents)
{
	size_t length = strlen(text);
	struct entry *entry = calloc(1, sizeof(*entry) + length + 1), *old;

	if (!entry)
		return;
	memcpy(entry->text, text, length + 1);
	entry->path = strdup(path);
	entry->root_bytes = scan->root_bytes;
	entry->version = version_of(status);
	entry->contents = contents;
	HASH_FIND_STR(scan->entries, text, old);
	if (!entry->path || (old && !is_better(entry, old))) {
		if (!entry->path || !add_other(old, entry))
			entry_destroy(entry);
		return;
	}
	if (old)
		HASH_DEL(scan->entries, old);
	entry->other = old;
	HASH_ADD_KEYPTR(hh, scan->entries, entry->text, length, entry);
	if (!hash_added(entry))
		entry_destroy(entry);
}

void file_keys_read(int fd, const char *file_name, struct file_keys *ret)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	struct sym_error *error;
	bool can_be_named;

	ret->count = 0;
	if (strlen(file_name) >= sizeof(ret->name))
		return;
	error = sym_identity_read(fd, UINT64_MAX, &identity);
	if (error) {
		sym_error_destroy(error);
		return;
	}
	can_be_named = key_lower_name(file_name, ret->name);
	ret->contents = identity.contents;
	ret->count = keys_of_identity(&identity, ret->name, ret->keys);
	/* No path of a request contains such a byte. */
	if (ret->count && ret->keys[0].name && !can_be_named)
		ret->count = 0;
	if (!ret->count || ret->keys[0].kind != KEY_PE)
		return;
	ret->count += image_note_read_map(fd, identity.file_size_bytes, ret->map_name,
					  &ret->keys[ret->count]);
	ret->count += image_note_read_pdb(fd, identity.file_size_bytes, &ret->keys[ret->count]);
}

/*
 * A file that a debugger asks for by the build-id of its libcoreclr.so (SSQP, ELF-buildid-coreclr).
 * The file itself does not contain that id, but all files of a runtime are in one directory.
 */
static const char runtime_name[] = "libcoreclr.so";
static const char *const companion_names[] = { "libmscordaccore.so", "libmscordbi.so", "libsos.so",
					       "mscordaccore.dll", "mscordbi.dll" };

struct runtime {
	struct runtime *next;
	struct key key;
	size_t root_bytes;
	char directory[]; /* with its slash */
};

static void note_runtime(struct scan *scan, const struct key *key, const char *path)
{
	size_t length = (size_t)(path_file_name(path) - path);
	struct runtime *runtime = calloc(1, sizeof(*runtime) + length + 1);

	if (!runtime)
		return;
	*runtime = (struct runtime){ scan->runtimes, *key, scan->root_bytes };
	memcpy(runtime->directory, path, length);
	scan->runtimes = runtime;
}

static void add_companion(struct scan *scan, const struct runtime *runtime, const char *name)
{
	struct key key = runtime->key;
	char *path AUTO_FREE = NULL;
	char text[KEY_TEXT_BYTES];
	struct file_keys found;
	struct stat status;
	int fd AUTO_CLOSE = -1;

	if (asprintf(&path, "%s%s", runtime->directory, name) < 0) {
		path = NULL;
		return;
	}
	fd = open_below(path, runtime->root_bytes);
	if (fd < 0 || fstat(fd, &status))
		return;
	file_keys_read(fd, name, &found);
	if (!found.count || (found.keys[0].kind != KEY_EXECUTABLE && found.keys[0].kind != KEY_PE))
		return;
	key.kind = KEY_CLR;
	key.name = key.spelling = name;
	key_text(&key, text);
	scan->root_bytes = runtime->root_bytes;
	file_index_add(scan, text, path, &status, found.contents);
}

/* At the end of a scan: adds the files that lie beside a libcoreclr.so. */
static void add_companions(struct scan *scan)
{
	struct runtime *runtime;

	while ((runtime = scan->runtimes)) {
		for (size_t i = 0; i < sizeof(companion_names) / sizeof(*companion_names); i++)
			add_companion(scan, runtime, companion_names[i]);
		scan->runtimes = runtime->next;
		free(runtime);
	}
}

static void scan_file(struct scan *scan, const char *path)
{
	int fd AUTO_CLOSE = open_below(path, scan->root_bytes);
	char text[KEY_TEXT_BYTES];
	struct file_keys found;
	struct stat status;

	scan->files_seen++;
	if (fd < 0 || fstat(fd, &status))
		return;
	file_keys_read(fd, path_file_name(path), &found);
	scan->files += found.count > 0;
	for (size_t i = 0; i < found.count; i++) {
		key_text(&found.keys[i], text);
		file_index_add(scan, text, path, &status, found.contents);
		if (found.keys[i].kind == KEY_EXECUTABLE &&
		    !strcmp(path_file_name(path), runtime_name))
			note_runtime(scan, &found.keys[i], path);
	}
}

/* False: the directory itself cannot be read, so its content is unknown. */
static bool scan_directory(struct scan *scan, char *directory, const bool *stop)
{
	char *roots[] = { directory, NULL };
	/* The directory of --index may be a link; links in it are not followed. */
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	bool is_there = true;
	FTSENT *file;

	if (!walk) {
		log_message(LOG_LEVEL_ERROR, "--index %s: %s", directory, strerror(errno));
		return false;
	}
	scan->root_bytes = strlen(directory);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED) && (file = fts_read(walk))) {
		if (file->fts_info == FTS_F || file->fts_info == FTS_NSOK)
			scan_file(scan, file->fts_accpath);
		if (file->fts_info != FTS_DNR && file->fts_info != FTS_ERR &&
		    ((file->fts_info != FTS_NS && file->fts_info != FTS_SLNONE) || file->fts_level))
			continue;
		log_message(LOG_LEVEL_WARNING, "--index %s: %s: %s", directory, file->fts_path,
			    strerror(file->fts_errno));
		is_there &= file->fts_level > 0;
		if (file->fts_level > 0)
			text_list_add(&scan->unread, file->fts_path);
	}
	fts_close(walk);
	return is_there;
}

/* Whether it was seen before; without memory it is forgotten. */
static bool note_known(struct file_index *index, const char *directory, bool is_there)
{
	return text_list_has(&index->known, directory) ||
	       (is_there && text_list_add(&index->known, directory));
}

/* Whether there was a file with a key below that directory at the last scan. Only the scanner uses
 * the paths, so the lock, which others wait for, is not needed. */
static bool had_files(const struct file_index *index, const char *directory)
{
	size_t length = strlen(directory);
	struct entry *entry, *next, *other;

	HASH_ITER(hh, index->entries, entry, next)
	for (other = entry; other; other = other->other)
		if (!strncmp(other->path, directory, length) && other->path[length] == '/')
			return true;
	return false;
}

/* Others (lost+found) had no files with keys. */
static bool has_lost_below(struct file_index *index, const struct text_list *unread)
{
	bool has_lost = false;

	for (size_t i = 0; i < unread->count; i++)
		has_lost |= text_list_has(&index->known, unread->texts[i]) ||
			    (had_files(index, unread->texts[i]) &&
			     text_list_add(&index->known, unread->texts[i]));
	return has_lost;
}

/* Lock held: whether one of `entries` is new, or is another file for its key. */
static bool has_news(const struct file_index *index, struct entry *entries)
{
	struct entry *entry, *next, *old;

	HASH_ITER(hh, entries, entry, next)
	{
		HASH_FIND_STR(index->entries, entry->text, old);
		if (!old || !is_same_version(&entry->version, &old->version) ||
		    strcmp(entry->path, old->path) != 0)
			return true;
	}
	return false;
}

bool file_index_scan(struct file_index *index, const struct text_list *directories,
		     unsigned int number, const bool *stop)
{
	struct scan scan = { 0 };
	struct entry *old;
	bool is_news, has_lost = false;
	size_t i;

	index->was_moved = false;
	for (i = 0; i < directories->count; i++) {
		bool is_there = scan_directory(&scan, directories->texts[i], stop);

		has_lost |= note_known(index, directories->texts[i], is_there) && !is_there;
	}
	add_companions(&scan);
	if (__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		file_index_clear(&scan.entries);
		text_list_deinit(&scan.unread);
		return false;
	}
	has_lost |= has_lost_below(index, &scan.unread);
	pthread_mutex_lock(&index->lock);
	is_news = has_news(index, scan.entries);
	old = index->entries;
	index->entries = scan.entries;
	index->files = scan.files;
	index->files_seen = scan.files_seen;
	/* The number changes first: a thread that sees the new files also sees the new number. */
	index->changes += is_news;
	index->has_lost = has_lost;
	index->is_scanned |= number == index->awaited;
	index->was_moved |= has_lost;
	pthread_mutex_unlock(&index->lock);
	file_index_clear(&old);
	text_list_deinit(&scan.unread);
	return is_news;
}

/* ---- use ---- */

/* Copies the entry of the file with this number, for use outside of the lock. */
static int copy_entry(struct file_index *index, const char *text, unsigned int number,
		      struct entry *copy)
{
	struct entry *entry;
	int failure = -ENOENT;

	pthread_mutex_lock(&index->lock);
	HASH_FIND_STR(index->entries, text, entry);
	while (entry && number--)
		entry = entry->other;
	if (entry) {
		*copy = *entry;
		copy->path = strdup(entry->path);
		failure = copy->path ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&index->lock);
	return failure;
}

/* A program may still be writing the file. */
static const time_t settled_s = 2;

/* A file that was copied again or touched is usually unchanged. */
static bool is_still(int fd, const char *path, const char *text)
{
	char its_text[KEY_TEXT_BYTES];
	struct file_keys found;

	file_keys_read(fd, path_file_name(path), &found);
	for (size_t i = 0; i < found.count; i++) {
		key_text(&found.keys[i], its_text);
		if (!strcmp(its_text, text))
			return true;
	}
	return false;
}

static void note_version(struct file_index *index, const char *text, const char *path,
			 const struct stat *status)
{
	struct entry *entry;

	pthread_mutex_lock(&index->lock);
	HASH_FIND_STR(index->entries, text, entry);
	while (entry && strcmp(entry->path, path))
		entry = entry->other;
	if (entry)
		entry->version = version_of(status);
	pthread_mutex_unlock(&index->lock);
}

/* -ENOENT: it does not exist any more. */
static int open_entry(struct file_index *index, const char *text, struct entry copy,
		      struct index_file *ret)
{
	const char *path = copy.path;
	int fd AUTO_CLOSE = -1;
	struct version version;
	struct stat status;

	fd = open_below(path, copy.root_bytes);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status))
		return -errno;
	version = version_of(&status);
	if (!is_same_version(&copy.version, &version)) {
		if (!is_still(fd, path, text))
			return -ESTALE;
		if (time(NULL) - status.st_ctim.tv_sec < settled_s)
			return -EBUSY;
		note_version(index, text, path, &status);
	}
	ret->size_bytes = version.size_bytes;
	ret->modified = version.modified;
	ret->contents = copy.contents;
	snprintf(ret->version, sizeof(ret->version), "%llx-%llx-%llx-%llx",
		 (unsigned long long)version.device, (unsigned long long)version.inode,
		 (unsigned long long)version.size_bytes,
		 (unsigned long long)version.modified.tv_sec * 1000000000 +
			 (unsigned long long)version.modified.tv_nsec);
	snprintf(ret->name, sizeof(ret->name), "%s", path_file_name(path));
	ret->fd = steal_fd(&fd);
	return 0;
}

void file_index_open_each(struct file_index *index, const char *text,
			  bool (*visit)(void *context, const struct index_file *file),
			  void *context)
{
	bool goes_on = true;

	for (unsigned int i = 0; goes_on && i <= MOST_FILES; i++) {
		struct index_file file;
		struct entry copy = { 0 };

		goes_on = copy_entry(index, text, i, &copy) != -ENOENT;
		if (copy.path && !open_entry(index, text, copy, &file)) {
			goes_on = visit(context, &file);
			close(file.fd);
		}
		free(copy.path);
	}
}

int file_index_open(struct file_index *index, const char *text, struct index_file *ret)
{
	int failure = -ENOENT;

	for (unsigned int i = 0; i < MOST_FILES; i++) {
		struct entry copy = { 0 };
		int its_failure = copy_entry(index, text, i, &copy);

		if (its_failure == -ENOENT)
			break;
		if (!its_failure)
			its_failure = open_entry(index, text, copy, ret);
		free(copy.path);
		if (!its_failure) {
			ret->is_second_best = i > 0;
			return 0;
		}
		failure = its_failure == -ENOENT ? -ESTALE : its_failure;
		index->was_moved |= failure == -ESTALE;
	}
	return failure;
}

bool file_index_has(struct file_index *index, const char *text)
{
	struct entry *entry;

	pthread_mutex_lock(&index->lock);
	HASH_FIND_STR(index->entries, text, entry);
	pthread_mutex_unlock(&index->lock);
	return entry != NULL;
}

void file_index_each(struct file_index *index,
		     bool (*visit)(void *context, const char *text, const char *path),
		     void *context)
{
	struct entry *first, *next, *entry;
	bool goes_on = true;

	pthread_mutex_lock(&index->lock);
	HASH_ITER(hh, index->entries, first, next)
	{
		for (entry = first; entry && goes_on; entry = entry->other)
			goes_on = visit(context, entry->text, entry->path);
		if (!goes_on)
			break;
	}
	pthread_mutex_unlock(&index->lock);
}

void file_index_counts(struct file_index *index, struct index_counts *ret)
{
	pthread_mutex_lock(&index->lock);
	*ret = (struct index_counts){ .keys = HASH_COUNT(index->entries),
				      .files = index->files,
				      .files_seen = index->files_seen,
				      .is_scanned = index->is_scanned };
	pthread_mutex_unlock(&index->lock);
}
