/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program: makes one call of the C library fail, once.
 *
 * A place is a function of the C library and the innermost CALLERS return addresses in the object
 * under test. A place is identified by its hash, not by the number of the call: it has the same
 * hash in the next run, however many threads and retries there are.
 *
 * FAIL_OBJECT  end of the path of the object under test: the program or one of its libraries
 * FAIL_LOG     file that gets a line for each place when it is first reached: function, hash,
 * addresses in the object from the innermost on, and "failed" at the one that fails FAIL_PLACE hash
 * of the place whose first call fails
 *
 * The wrappers take and pass six words. That covers all these functions, variadic ones too, by the
 * calling conventions of x86-64 and ARM64. So the headers that declare them are not included.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unwind.h>

enum {
	CALLERS = 4,
	DEEPEST = 24,    /* frames examined, including those of the C library */
	SLOTS = 1 << 16, /* of the set of places */
	STREAM_ERROR = 0x20,
	OPEN_APPEND = 02001 | 0100 | 02000000, /* O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC */
};

char *getenv(const char *name);
int vasprintf(char **text, const char *format, va_list values);
int snprintf(char *room, size_t bytes, const char *format, ...);
int strcmp(const char *a, const char *b);
size_t strlen(const char *text);
unsigned long long strtoull(const char *text, char **end, int base);
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static uintptr_t object_begin, object_end;
static const char *log_path;
static uint64_t place_to_fail;
static _Atomic uint64_t places[SLOTS];
static atomic_bool has_failed;
static __thread bool inside;

static long kernel(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#endif
}

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

static int take_object(struct dl_phdr_info *object, size_t bytes, void *wanted)
{
	char program[4096] = "";
	const char *path = object->dlpi_name;

	(void)bytes;
	if (!*path) {
		kernel(SYS_readlinkat, -100, (long)"/proc/self/exe", (long)program,
		       sizeof(program) - 1, 0, 0);
		path = program;
	}
	if (!ends_in(path, wanted))
		return 0;
	object_begin = object->dlpi_addr;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t end = object->dlpi_addr + part->p_vaddr + part->p_memsz;

		if (part->p_type == PT_LOAD && end > object_end)
			object_end = end;
	}
	return 1;
}

__attribute__((constructor)) static void begin(void)
{
	const char *place = getenv("FAIL_PLACE"), *object = getenv("FAIL_OBJECT");

	log_path = getenv("FAIL_LOG");
	place_to_fail = place ? strtoull(place, NULL, 16) : 0;
	if (object && (log_path || place_to_fail))
		dl_iterate_phdr(take_object, (void *)object);
}

struct callers {
	int deep, count;
	uintptr_t addresses[CALLERS];
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
	struct callers *callers = argument;
	uintptr_t address = _Unwind_GetIP(context);

	if (address >= object_begin && address < object_end)
		callers->addresses[callers->count++] = address - object_begin;
	return callers->count == CALLERS || ++callers->deep == DEEPEST ? _URC_END_OF_STACK
								       : _URC_NO_REASON;
}

static uint64_t hash_of(const char *function, const struct callers *callers)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *function; function++)
		hash = (hash ^ (uint8_t)*function) * 0x100000001b3;
	for (int i = 0; i < callers->count; i++)
		hash = (hash ^ callers->addresses[i]) * 0x9e3779b97f4a7c15, hash ^= hash >> 29;
	return hash | 1;
}

/* Returns true if it was not in the set. */
static bool is_new(uint64_t hash)
{
	for (size_t slot = hash % SLOTS, tried = 0; tried < SLOTS; slot = (slot + 1) % SLOTS) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&places[slot], &found, hash))
			return true;
		if (found == hash)
			return false;
		tried++;
	}
	return false;
}

static void log_place(const char *function, uint64_t hash, const struct callers *callers,
		      bool fails)
{
	char line[256];
	int length = snprintf(line, sizeof(line), "%s %llx", function, (unsigned long long)hash);
	long fd;

	for (int i = 0; i < callers->count; i++)
		length += snprintf(line + length, sizeof(line) - length, " %llx",
				   (unsigned long long)callers->addresses[i]);
	length += snprintf(line + length, sizeof(line) - length, fails ? " failed\n" : "\n");
	fd = kernel(SYS_openat, -100, (long)log_path, OPEN_APPEND, 0600, 0, 0);
	if (fd < 0)
		return;
	kernel(SYS_write, fd, (long)line, length, 0, 0, 0);
	kernel(SYS_close, fd, 0, 0, 0, 0, 0);
}

static bool fails(const char *function, int error)
{
	struct callers callers = { 0 };
	int before = errno;
	bool is_it = false;
	uint64_t hash;

	if (!object_end || inside || (place_to_fail && has_failed))
		return false;
	inside = true;
	_Unwind_Backtrace(take_frame, &callers);
	if (callers.count) {
		hash = hash_of(function, &callers);
		is_it = hash == place_to_fail && !atomic_exchange(&has_failed, true);
		if (log_path && (is_it || (!place_to_fail && is_new(hash))))
			log_place(function, hash, &callers, is_it);
	}
	inside = false;
	errno = is_it ? error : before;
	return is_it;
}

#define NEXT(name)                                                                                 \
	static long (*next)(long, long, long, long, long, long);                                   \
	if (!next)                                                                                 \
	next = (long (*)(long, long, long, long, long, long))dlsym(RTLD_NEXT, #name)

#define PARAMETERS long a, long b, long c, long d, long e, long f

/* Returns -1 or NULL, with an error code. */
#define CALL(name, failure, error)                                                                 \
	long name(PARAMETERS)                                                                      \
	{                                                                                          \
		NEXT(name);                                                                        \
		return fails(#name, error) ? failure : next(a, b, c, d, e, f);                     \
	}

/* Performs the call, and still returns failure. */
#define ENDING(name, failure, error)                                                               \
	long name(PARAMETERS)                                                                      \
	{                                                                                          \
		long done;                                                                         \
		NEXT(name);                                                                        \
		done = next(a, b, c, d, e, f);                                                     \
		return fails(#name, error) ? failure : done;                                       \
	}

/* For streams: the failure is stored in the stream, as by the C library. */
#define STREAM(name, stream, failure)                                                              \
	long name(PARAMETERS)                                                                      \
	{                                                                                          \
		NEXT(name);                                                                        \
		if (!fails(#name, EIO))                                                            \
			return next(a, b, c, d, e, f);                                             \
		if (stream)                                                                        \
			*(int *)(stream) |= STREAM_ERROR;                                          \
		return failure;                                                                    \
	}

void *malloc(size_t bytes)
{
	return fails("malloc", ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails("calloc", ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return fails("realloc", ENOMEM) ? NULL : __libc_realloc(memory, bytes);
}

void *reallocarray(void *memory, size_t count, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(count, bytes, &all) || fails("reallocarray", ENOMEM)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(memory, all);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return fails("aligned_alloc", ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	if (fails("posix_memalign", ENOMEM))
		return ENOMEM;
	*memory = __libc_memalign(alignment, bytes);
	return *memory ? 0 : ENOMEM;
}

int asprintf(char **text, const char *format, ...)
{
	va_list values;
	int length;

	if (fails("asprintf", ENOMEM))
		return -1;
	va_start(values, format);
	inside = true; /* the same call, not another one */
	length = vasprintf(text, format, values);
	inside = false;
	va_end(values);
	return length;
}

void *dlopen(const char *path, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	return fails("dlopen", ENOMEM) ? NULL : next(path, mode);
}

/* The compiler calls this with _FORTIFY_SOURCE. */
int __asprintf_chk(char **text, int flag, const char *format, ...)
{
	va_list values;
	int length;

	(void)flag;
	if (fails("__asprintf_chk", ENOMEM))
		return -1;
	va_start(values, format);
	inside = true;
	length = vasprintf(text, format, values);
	inside = false;
	va_end(values);
	return length;
}

long syscall(long number, long a, long b, long c, long d, long e, long f)
{
	char name[32];
	long result;

	snprintf(name, sizeof(name), "syscall%ld", number);
	result = fails(name, EIO) ? -EIO : kernel(number, a, b, c, d, e, f);
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

CALL(strdup, 0, ENOMEM)
CALL(strndup, 0, ENOMEM)
CALL(open, -1, EMFILE)
CALL(open64, -1, EMFILE)
CALL(__open64_2, -1, EMFILE)
CALL(__realpath_chk, 0, EIO)
CALL(openat, -1, EMFILE)
CALL(openat64, -1, EMFILE)
CALL(fopen, 0, EMFILE)
CALL(fopen64, 0, EMFILE)
CALL(fdopen, 0, ENOMEM)
CALL(opendir, 0, EMFILE)
CALL(fdopendir, 0, ENOMEM)
CALL(readdir, 0, EIO)
CALL(readdir64, 0, EIO)
CALL(getdents64, -1, EIO)
CALL(fts64_open, 0, ENOMEM)
CALL(fts64_read, 0, EIO)
CALL(read, -1, EIO)
CALL(pread, -1, EIO)
CALL(pread64, -1, EIO)
CALL(write, -1, ENOSPC)
CALL(pwrite, -1, ENOSPC)
CALL(pwrite64, -1, ENOSPC)
CALL(lseek, -1, EIO)
CALL(lseek64, -1, EIO)
CALL(fstat, -1, EIO)
CALL(fstat64, -1, EIO)
CALL(stat, -1, EIO)
CALL(stat64, -1, EIO)
CALL(lstat, -1, EIO)
CALL(lstat64, -1, EIO)
CALL(fstatat, -1, EIO)
CALL(fstatat64, -1, EIO)
CALL(statx, -1, EIO)
CALL(statfs64, -1, EIO)
CALL(fstatfs64, -1, EIO)
CALL(fstatvfs64, -1, EIO)
CALL(access, -1, EIO)
CALL(faccessat, -1, EIO)
CALL(readlink, -1, EIO)
CALL(readlinkat, -1, EIO)
CALL(realpath, 0, EIO)
CALL(mkdir, -1, ENOSPC)
CALL(mkdirat, -1, ENOSPC)
CALL(mkdtemp, 0, ENOSPC)
CALL(rename, -1, EIO)
CALL(renameat, -1, EIO)
CALL(renameat2, -1, EIO)
CALL(linkat, -1, EIO)
CALL(symlink, -1, ENOSPC)
CALL(symlinkat, -1, ENOSPC)
CALL(unlink, -1, EIO)
CALL(unlinkat, -1, EIO)
CALL(rmdir, -1, EIO)
CALL(fchmod, -1, EPERM)
CALL(fchown, -1, EPERM)
CALL(fsync, -1, EIO)
CALL(fdatasync, -1, EIO)
CALL(ftruncate, -1, EIO)
CALL(ftruncate64, -1, EIO)
CALL(flock, -1, ENOLCK)
CALL(fcntl, -1, EMFILE)
CALL(fcntl64, -1, EMFILE)
CALL(dup, -1, EMFILE)
CALL(dup3, -1, EMFILE)
CALL(pipe2, -1, EMFILE)
CALL(memfd_create, -1, EMFILE)
CALL(eventfd, -1, EMFILE)
CALL(signalfd, -1, EMFILE)
CALL(ioctl, -1, EIO)
CALL(mmap, -1, ENOMEM)
CALL(mmap64, -1, ENOMEM)
CALL(mprotect, -1, ENOMEM)
CALL(madvise, -1, ENOMEM)
CALL(socket, -1, EMFILE)
CALL(connect, -1, ECONNREFUSED)
CALL(bind, -1, EADDRINUSE)
CALL(listen, -1, EADDRINUSE)
CALL(accept4, -1, EMFILE)
CALL(getsockopt, -1, ENOBUFS)
CALL(setsockopt, -1, ENOBUFS)
CALL(send, -1, ECONNRESET)
CALL(sendmsg, -1, ECONNRESET)
CALL(recv, -1, ECONNRESET)
CALL(recvmsg, -1, ECONNRESET)
CALL(shutdown, -1, ENOTCONN)
CALL(poll, -1, ENOMEM)
CALL(ppoll, -1, ENOMEM)
CALL(process_vm_readv, -1, EPERM)
CALL(ptrace, -1, EPERM)
CALL(kill, -1, EPERM)
CALL(fork, -1, EAGAIN)
CALL(setsid, -1, EPERM)
CALL(getrandom, -1, EIO)
CALL(getrlimit64, -1, EIO)
CALL(setrlimit64, -1, EPERM)
CALL(prctl, -1, EPERM)
CALL(getpwuid, 0, EIO)
CALL(execv, -1, ENOMEM)
CALL(execvp, -1, ENOMEM)
CALL(pthread_create, EAGAIN, EAGAIN)
CALL(posix_spawn, EAGAIN, EAGAIN)
CALL(posix_spawnp, EAGAIN, EAGAIN)
CALL(setenv, -1, ENOMEM)
ENDING(close, -1, EIO)
ENDING(closedir, -1, EIO)
ENDING(munmap, -1, ENOMEM)
ENDING(fclose, -1, EIO)
STREAM(fread, d, 0)
STREAM(fgetc, a, -1)
STREAM(__getdelim, d, -1)
STREAM(fwrite, d, 0)
STREAM(fputs, b, -1)
STREAM(fflush, a, -1)
