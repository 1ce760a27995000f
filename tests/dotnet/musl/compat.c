/* SPDX-License-Identifier: MIT */
/*
 * Functions that the C++ runtime of a system with glibc needs and musl does not have. Preloaded, so
 * that a runtime for musl finds them. For tests only.
 */
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

char __libc_single_threaded;

struct cpu_model {
	unsigned int vendor, type, subtype, features;
} __cpu_model;

int __cpu_indicator_init(void)
{
	return 0;
}

unsigned int arc4random(void)
{
	unsigned int value = 0;

	getrandom(&value, sizeof(value), 0);
	return value;
}

/* ---- which object an address of code is in, for the unwinder ------------------------ */

struct dl_find_object {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *eh_frame_header;
	unsigned long long reserved[7];
};

struct search {
	ElfW(Addr) address;
	struct dl_find_object *ret;
};

static int look_at(struct dl_phdr_info *object, size_t size, void *context)
{
	const struct search *search = context;
	ElfW(Addr) low = (ElfW(Addr)) - 1, high = 0;
	void *header = NULL;
	int inside = 0;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		ElfW(Addr) start = object->dlpi_addr + segment->p_vaddr;
		ElfW(Addr) end = start + segment->p_memsz;

		if (segment->p_type == PT_GNU_EH_FRAME)
			header = (void *)start;
		if (segment->p_type != PT_LOAD)
			continue;
		inside |= search->address >= start && search->address < end;
		low = start < low ? start : low;
		high = end > high ? end : high;
	}
	if (!inside || !header)
		return 0;
	*search->ret = (struct dl_find_object){ .start = (void *)low, .end = (void *)high };
	search->ret->eh_frame_header = header;
	return 1;
}

int _dl_find_object(void *address, struct dl_find_object *ret)
{
	struct search search = { (ElfW(Addr))address, ret };

	return dl_iterate_phdr(look_at, &search) ? 0 : -1;
}

/* ---- destructors of a thread --------------------------------------------------------- */

struct ending {
	void (*run)(void *object);
	void *object;
	struct ending *next;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t endings;

static void run_all(void *first)
{
	for (struct ending *ending = first, *next; ending; ending = next) {
		next = ending->next;
		ending->run(ending->object);
		free(ending);
	}
}

static void make_key(void)
{
	pthread_key_create(&endings, run_all);
}

int __cxa_thread_atexit_impl(void (*run)(void *object), void *object, void *library)
{
	struct ending *ending = malloc(sizeof(*ending));

	(void)library;
	if (!ending)
		return -1;
	pthread_once(&once, make_key);
	*ending = (struct ending){ run, object, pthread_getspecific(endings) };
	return pthread_setspecific(endings, ending);
}
