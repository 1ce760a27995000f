/* SPDX-License-Identifier: MIT */
/*
 * One row a group. The runtime's own groups become one provider: a session has each provider once,
 * with one level. .NET 10 sends only the events that are listed here; an older runtime sends all of
 * the keywords and the level.
 *
 * Keywords, levels and ids: dotnet/runtime src/coreclr/vm/ClrEtwAll.man.
 */
#include "mapgen/events/event_choice.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/error.h"
#include "mapgen/cli/message.h"

enum {
	GROUP_IDS = 12,
	GROUP_PROBES = 3,
	FIRST_WITH_SAMPLED_ALLOCATIONS = 10,
	FIRST_WITH_WAITS = 9,
};

static const char runtime_provider[] = "Microsoft-Windows-DotNETRuntime";

struct event_group {
	const char *name;
	int first_major, last_major; /* 0: any */
	bool is_default;
	uint64_t keywords;
	uint32_t level;
	uint32_t ids[GROUP_IDS];          /* 0 ends them */
	const char *probes[GROUP_PROBES]; /* NULL ends them */
	const char *provider;             /* NULL: the runtime's own */
	const char *arguments;
};

static const struct event_group groups[] = {
	/* Start, end, heap sizes, suspensions, reason, history. */
	{ .name = "gc",
	  .is_default = true,
	  .keywords = 0x1,
	  .level = 4,
	  .ids = { 1, 2, 3, 4, 7, 8, 9, 13, 14, 35, 204, 205 },
	  .probes = { "GCTriggered", "GCStart_V2" } },
	/* One of 100 KiB on average, at random. */
	{ .name = "alloc",
	  .first_major = FIRST_WITH_SAMPLED_ALLOCATIONS,
	  .is_default = true,
	  .keywords = 0x80000000000,
	  .level = 4,
	  .ids = { 303 },
	  .probes = { "AllocationSampled" } },
	/* Each 100 KiB; level 5 brings other events of the collector too. */
	{ .name = "alloc",
	  .last_major = FIRST_WITH_SAMPLED_ALLOCATIONS - 1,
	  .keywords = 0x1,
	  .level = 5,
	  .ids = { 10 },
	  .probes = { "GCAllocationTick_V4" } },
	{ .name = "exceptions",
	  .is_default = true,
	  .keywords = 0x8000,
	  .level = 2,
	  .ids = { 80 },
	  .probes = { "ExceptionThrown_V1" } },
	{ .name = "contention",
	  .is_default = true,
	  .keywords = 0x4000,
	  .level = 4,
	  .ids = { 81, 91 },
	  .probes = { "ContentionStart_V2" } },
	{ .name = "waits",
	  .first_major = FIRST_WITH_WAITS,
	  .keywords = 0x40000000000,
	  .level = 5,
	  .ids = { 301, 302 },
	  .probes = { "WaitHandleWaitStart" } },
	{ .name = "threadpool",
	  .is_default = true,
	  .keywords = 0x10000,
	  .level = 4,
	  .ids = { 50, 51, 54, 55, 57, 59 },
	  .probes = { "ThreadPoolWorkerThreadAdjustmentAdjustment" } },
	{ .name = "jit",
	  .keywords = 0x1000000010,
	  .level = 5,
	  .ids = { 143, 145, 280, 281, 282, 283, 284 },
	  .probes = { "MethodJittingStarted_V1" } },
	{ .name = "tasks",
	  .keywords = 0x83,
	  .level = 4,
	  .provider = "System.Threading.Tasks.TplEventSource" },
	{ .name = "counters",
	  .level = 4,
	  .provider = "System.Runtime",
	  .arguments = "EventCounterIntervalSec=1" },
};

enum {
	GROUPS = sizeof(groups) / sizeof(groups[0])
};

void event_choice_deinit(struct event_choice *choice)
{
	free(choice->text);
	*choice = (struct event_choice){ 0 };
}

static struct sym_event_provider *add_provider(struct event_choice *choice, const char *name)
{
	struct sym_event_provider *provider = choice->providers;

	for (size_t i = 0; i < choice->provider_count; i++, provider++)
		if (!strcmp(provider->name, name))
			return provider;
	if (choice->provider_count == EVENT_CHOICE_PROVIDERS)
		return NULL;
	choice->provider_count++;
	*provider = (struct sym_event_provider){ .name = name };
	return provider;
}

static bool has_id(const struct sym_event_provider *provider, uint32_t id)
{
	for (size_t i = 0; i < provider->id_count; i++)
		if (provider->ids[i] == id)
			return true;
	return false;
}

static void add_ids(struct event_choice *choice, struct sym_event_provider *provider,
		    const struct event_group *group)
{
	if (choice->takes_any_id)
		return;
	provider->ids = choice->ids;
	for (size_t i = 0; i < GROUP_IDS && group->ids[i]; i++)
		if (!has_id(provider, group->ids[i]))
			choice->ids[provider->id_count++] = group->ids[i];
}

static void add_probes(struct event_choice *choice, const struct event_group *group)
{
	for (size_t i = 0; i < GROUP_PROBES && group->probes[i]; i++) {
		bool is_there = false;

		for (size_t k = 0; k < choice->probe_count; k++)
			is_there |= choice->probes[k] == group->probes[i];
		if (!is_there)
			choice->probes[choice->probe_count++] = group->probes[i];
	}
}

static bool add_group(struct event_choice *choice, const struct event_group *group)
{
	struct sym_event_provider *provider =
		add_provider(choice, group->provider ? group->provider : runtime_provider);

	if (!provider)
		return false;
	provider->keywords |= group->keywords;
	if (provider->level < group->level)
		provider->level = group->level;
	if (group->provider) {
		provider->arguments = group->arguments;
		choice->has_sources = true;
	} else {
		add_ids(choice, provider, group);
		add_probes(choice, group);
	}
	return true;
}

/* Is there a group of this name, of any version? */
static bool is_group(const char *name)
{
	for (size_t i = 0; i < GROUPS; i++)
		if (!strcmp(groups[i].name, name))
			return true;
	return !strcmp(name, EVENT_CHOICE_DEFAULT);
}

static bool add_groups(struct event_choice *choice, const char *name, int major)
{
	bool is_default = !strcmp(name, EVENT_CHOICE_DEFAULT), is_good = true, is_there = false;

	for (size_t i = 0; i < GROUPS; i++) {
		const struct event_group *group = &groups[i];

		if ((is_default ? group->is_default : !strcmp(group->name, name)) &&
		    major >= group->first_major &&
		    (!group->last_major || major <= group->last_major)) {
			is_good = add_group(choice, group) && is_good;
			is_there = true;
		}
	}
	if (!is_there)
		choice->missing = name;
	return is_good;
}

static bool read_number(char *text, int base, uint64_t *ret)
{
	char *end;

	if (!*text)
		return true;
	*ret = strtoull(text, &end, base);
	return !*end && *text != '-';
}

/* NAME:KEYWORDS:LEVEL:ARGUMENTS; what is left out is all keywords, level 4, none. */
static const char *add_source(struct event_choice *choice, char *item)
{
	char *name = strsep(&item, ":"), *keywords = strsep(&item, ":"),
	     *level = strsep(&item, ":");
	struct sym_event_provider *provider = add_provider(choice, name);
	uint64_t bits = UINT64_MAX, number = 4;

	if (!provider)
		return "has too many providers";
	if ((keywords && !read_number(keywords, 16, &bits)) ||
	    (level && !read_number(level, 10, &number)) || number > 5)
		return "has a provider that is not NAME:KEYWORDS:LEVEL:ARGUMENTS, as "
		       "My-Source:0x3:5";
	provider->keywords |= bits;
	if (provider->level < number)
		provider->level = (uint32_t)number;
	if (item && *item)
		provider->arguments = item;
	if (strcmp(name, runtime_provider) != 0) {
		choice->has_sources = true;
		return NULL;
	}
	/* Here the caller's list counts, not ours. */
	provider->ids = NULL;
	provider->id_count = 0;
	choice->takes_any_id = true;
	return NULL;
}

/* Ends the first item at its comma; NULL where the text has no more. Quotes hold commas together.
 */
static char *next_item(char **rest)
{
	char *item = *rest;
	bool is_quoted = false;

	if (!item)
		return NULL;
	for (char *at = item; *at; at++) {
		is_quoted ^= *at == '"';
		if (*at == ',' && !is_quoted) {
			*at = '\0';
			*rest = at + 1;
			return item;
		}
	}
	*rest = NULL;
	return item;
}

static const char *read_items(struct event_choice *choice, int major)
{
	char *rest = choice->text, *item;
	const char *problem = NULL;

	while (!problem && (item = next_item(&rest))) {
		if (!*item || *item == ':')
			return "has an empty name";
		/* Names of event sources have a capital letter, a dash or a dot. */
		if (is_group(item))
			problem = add_groups(choice, item, major) ? NULL : "has too many providers";
		else if (item[strspn(item, "abcdefghijklmnopqrstuvwxyz")])
			problem = add_source(choice, item);
		else
			problem = "has a group that does not exist; there are gc, alloc, "
				  "exceptions, contention, waits, threadpool, jit, tasks, counters";
	}
	return problem;
}

static const char *read_text(const char *text, int major, struct event_choice *ret)
{
	*ret = (struct event_choice){ .text = strdup(text) };
	return ret->text ? read_items(ret, major ? major : 8) : NULL;
}

const char *event_choice_problem(const char *text)
{
	struct event_choice choice;
	const char *problem = read_text(text, 0, &choice);

	event_choice_deinit(&choice);
	return problem;
}

struct sym_error *event_choice_read(const char *text, int major, struct event_choice *ret)
{
	const char *problem = read_text(text, major, ret);
	struct sym_error *error = NULL;

	if (!ret->text)
		return &sym_error_no_memory;
	if (problem)
		error = sym_error_create(SYM_ERROR_ARGUMENT, "--events %s", problem);
	else if (!ret->provider_count)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED, ".NET %d has no such events",
					 major);
	if (error)
		event_choice_deinit(ret);
	return error;
}

struct sym_error *event_choice_for(const struct sym_process_info *info, const char *text,
				   struct event_choice *ret)
{
	struct sym_error *error;

	if (!info)
		return &sym_error_no_memory;
	if (!info->runtime_version)
		return sym_error_create(SYM_ERROR_NOT_FOUND,
					"process %d has no .NET runtime, and so no events",
					info->pid);
	error = event_choice_read(text, (int)strtol(info->runtime_version, NULL, 10), ret);
	if (!error && ret->missing)
		message("process %d: .NET %s has no events of the group %s", info->pid,
			info->runtime_version, ret->missing);
	return error;
}
