/* SPDX-License-Identifier: MIT */
/* From jitted code to its module, and to the PDB of the module. */
#include "libsym/clr/jitted_lines.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/clr/diagnostics/diagnostics_address.h"
#include "libsym/clr/diagnostics/rundown_lines.h"
#include "libsym/clr/jit_debug.h"

void jitted_lines_init(struct jitted_lines *lines)
{
	*lines = (struct jitted_lines){ 0 };
	pthread_mutex_init(&lines->lock, NULL);
}

void jitted_lines_deinit(struct jitted_lines *lines)
{
	jitted_modules_deinit(&lines->modules);
	inlined_lines_deinit(&lines->inlined);
	jit_debug_close(lines->debug);
	rundown_lines_close(lines->rundown);
	free(lines->failure);
	pthread_mutex_destroy(&lines->lock);
}

/* ---- by the memory of the runtime ----------------------------------------------------- */

struct contract_reading {
	struct jitted_place *places;
	struct jit_debug_body *bodies;
	struct il_answer {
		enum il_quality quality;
		uint32_t il_offset;
	} * answers;
	struct inlined_chain *chains; /* one for each place */
	bool no_memory;
};

static void take_information(void *context, struct jit_debug_body *body,
			     const struct debug_info *info)
{
	struct contract_reading *reading = context;
	size_t i = (size_t)(body - reading->bodies);
	const struct jitted_place *place = &reading->places[i];
	struct il_answer *answer = &reading->answers[i];

	answer->quality = il_map_find(il_map_begin(info->bounds, info->bounds_bytes, info->form),
				      place->offset_bytes, &answer->il_offset);
	if (place->wants_inlined && !reading->no_memory && answer->quality != IL_NONE)
		reading->no_memory =
			inlined_lines_take(info, body->method_desc, place->offset_bytes,
					   &reading->chains[i]) != NULL;
}

static struct sym_error *finish_place(struct jitted_lines *lines, const struct clr_target *target,
				      const struct jit_debug_body *body,
				      const struct il_answer *answer, struct jitted_place *place)
{
	struct managed_line *line = &place->line;
	struct jitted_module *module;
	struct sym_error *error;

	*line = managed_line_none(body->failure);
	if (!body->rid || (body->failure && !body->place.base))
		return NULL;
	error = jitted_modules_get(&lines->modules, jit_debug_memory(lines->debug), target,
				   body->module, &body->place, &module);
	if (error)
		return error;
	jitted_module_name(module, line, body->rid);
	if (body->failure)
		return NULL;
	if (module->place.is_editable) {
		line->reason = "hot reload may have changed the method";
		return NULL;
	}
	managed_line_set_il(line, answer->quality, answer->il_offset, 0);
	jitted_module_read_line(module, line);
	return NULL;
}

/* NULL when out of memory. */
static struct jit_debug_body *make_bodies(const struct jitted_place *places, size_t count)
{
	struct jit_debug_body *bodies = calloc(count, sizeof(*bodies));

	for (size_t i = 0; bodies && i < count; i++) {
		bodies[i].start_address = places[i].start_address;
		bodies[i].size_bytes = places[i].size_bytes;
	}
	return bodies;
}

/* The memory belonged to this process only if the process is still the same. */
static struct sym_error *read_bodies(struct jitted_lines *lines, const struct clr_target *target,
				     struct jit_debug_body *bodies, size_t count,
				     jit_debug_visit *visit, void *context)
{
	struct sym_error *error = jit_debug_read(lines->debug, bodies, count, visit, context);

	return error ? error : process_check(target->process);
}

/* A failure costs the inlined methods only, unless memory is short. */
static struct sym_error *find_inlined(struct jitted_lines *lines, const struct clr_target *target,
				      const struct contract_reading *reading, size_t count)
{
	const struct inlined_target inlined_target = {
		.memory = jit_debug_memory(lines->debug),
		.layout = jit_debug_layout(lines->debug),
		.target = target,
		.modules = &lines->modules,
	};
	struct sym_error *error =
		inlined_lines_read(&lines->inlined, &inlined_target, reading->chains, count);

	if (!error)
		error = process_check(target->process);
	for (size_t i = 0; !error && i < count; i++)
		error = inlined_lines_answer(&lines->inlined, &inlined_target, &reading->chains[i],
					     &reading->places[i].line, &reading->places[i].inlined);
	if (!error || sym_error_is_no_memory(error))
		return error;
	sym_error_destroy(error);
	for (size_t i = 0; i < count; i++)
		if (reading->chains[i].count && !reading->places[i].inlined.items)
			reading->places[i].inlined.reason = "its inlined methods cannot be read";
	return NULL;
}

static void free_chains(struct inlined_chain *chains, size_t count)
{
	for (size_t i = 0; chains && i < count; i++)
		free(chains[i].frames);
	free(chains);
}

static struct sym_error *find_by_contract(struct jitted_lines *lines,
					  const struct clr_target *target,
					  struct jitted_place *places, size_t count)
{
	struct jit_debug_body *bodies AUTO_FREE = make_bodies(places, count);
	struct il_answer *answers AUTO_FREE = calloc(count, sizeof(*answers));
	struct contract_reading reading = { places, bodies, answers };
	struct sym_error *error = NULL;

	reading.chains = calloc(count, sizeof(*reading.chains));
	if (!bodies || !answers || !reading.chains)
		error = &sym_error_no_memory;
	if (!error)
		error = read_bodies(lines, target, bodies, count, take_information, &reading);
	if (!error && reading.no_memory)
		error = &sym_error_no_memory;
	for (size_t i = 0; !error && i < count; i++)
		error = finish_place(lines, target, &bodies[i], &answers[i], &places[i]);
	if (!error)
		error = find_inlined(lines, target, &reading, count);
	free_chains(reading.chains, count);
	return error;
}

/* ---- by a rundown ---------------------------------------------------------------------- */

/* Code at the same place may be of another method by now. */
static bool is_of_name(const struct rundown_map *map, const char *name)
{
	size_t name_bytes = strlen(map->name);

	for (const char *at = name; at && *map->name; at = strstr(at + 1, map->name))
		if (!strncmp(at, map->name, name_bytes) && at - name >= 2 && at[-1] == ':')
			return true;
	return false;
}

static struct sym_error *take_map(struct jitted_lines *lines, const struct clr_target *target,
				  const struct rundown_map *map, struct jitted_place *place)
{
	struct managed_line *line = &place->line;
	struct jitted_module *module;
	enum il_quality quality;
	uint32_t il_offset = 0;
	struct sym_error *error;

	*line = managed_line_none("a dynamic method, which has no source lines");
	if (!(map->token & 0xffffff) || !map->module_path || !*map->module_path)
		return NULL;
	error = jitted_modules_get_by_path(&lines->modules, target, map->module_path, &module);
	if (error)
		return error;
	jitted_module_name(module, line, map->token & 0xffffff);
	quality = il_entries_find(map->entries, map->count, place->offset_bytes, &il_offset);
	managed_line_set_il(line, quality, il_offset, 0);
	jitted_module_read_line(module, line);
	return NULL;
}

static struct sym_error *request_maps(struct jitted_lines *lines, const struct clr_target *target)
{
	struct rundown_lines *fresh AUTO_RUNDOWN_LINES = NULL;
	char *directory AUTO_FREE = NULL;
	struct diagnostics_place place;
	struct sym_error *error = diagnostics_address_directory(target->process, &directory);

	if (error)
		return error;
	place = diagnostics_address_of(target->process, directory);
	error = rundown_lines_ask(&place, &fresh);
	if (!error)
		error = process_check(target->process);
	if (error)
		return error;
	rundown_lines_close(lines->rundown);
	lines->rundown = STEAL(fresh);
	return NULL;
}

/* A runtime that does not answer is not asked more often than one that does. */
static struct sym_error *ask_for_maps(struct jitted_lines *lines, const struct clr_target *target)
{
	static const int64_t first_ms = 5000;
	struct sym_error *error = request_maps(lines, target);

	lines->rundown_after_ms = lines->rundown_after_ms ? 2 * lines->rundown_after_ms : first_ms;
	lines->rundown_due_ms = diagnostics_now_ms() + lines->rundown_after_ms;
	return error;
}

/* Returns false if some method is unknown. */
static bool has_all_maps(const struct jitted_lines *lines, const struct jitted_place *places,
			 size_t count)
{
	struct rundown_map map;

	for (size_t i = 0; i < count; i++)
		if (!rundown_lines_find(lines->rundown, places[i].start_address,
					places[i].size_bytes, &map))
			return false;
	return true;
}

/* If the runtime does not answer, the old maps stay. */
static void update_maps(struct jitted_lines *lines, const struct clr_target *target,
			const struct jitted_place *places, size_t count)
{
	if (!has_all_maps(lines, places, count) && diagnostics_now_ms() >= lines->rundown_due_ms)
		sym_error_destroy(ask_for_maps(lines, target));
}

static bool find_map(const struct jitted_lines *lines, const struct jitted_place *place,
		     struct rundown_map *ret)
{
	return rundown_lines_find(lines->rundown, place->start_address, place->size_bytes, ret) &&
	       is_of_name(ret, place->name);
}

static struct sym_error *find_by_rundown(struct jitted_lines *lines,
					 const struct clr_target *target,
					 struct jitted_place *places, size_t count)
{
	struct sym_error *error = NULL;

	update_maps(lines, target, places, count);
	for (size_t i = 0; !error && i < count; i++) {
		struct rundown_map map;

		places[i].line = managed_line_none("the runtime reported no IL map for this code");
		if (find_map(lines, &places[i], &map))
			error = take_map(lines, target, &map, &places[i]);
	}
	return error;
}

/* ---- the choice ------------------------------------------------------------------------ */

static struct sym_error *open_debug(struct jitted_lines *lines, const struct clr_target *target)
{
	struct remote_memory *memory AUTO_REMOTE_MEMORY = NULL;
	const struct sym_mapping *mapping = clr_target_runtime_mapping(target);
	struct sym_error *error = NULL;

	if (!mapping)
		return sym_error_create(SYM_ERROR_NOT_FOUND,
					"the runtime's own file is not mapped");
	error = clr_target_open_memory(target, &memory);
	if (!error)
		error = jit_debug_open(memory, mapping->start_address - mapping->offset,
				       &lines->debug);
	if (!error)
		memory = NULL; /* owned by the reader now */
	return error;
}

/* Only a lack of memory is an error. */
static struct sym_error *open_once(struct jitted_lines *lines, const struct clr_target *target,
				   enum sym_jit_method way)
{
	struct sym_error *error;

	if (lines->was_tried)
		return NULL;
	if (way == SYM_JIT_CONTRACT)
		error = open_debug(lines, target);
	else if (way == SYM_JIT_RUNDOWN)
		error = ask_for_maps(lines, target);
	else
		error = sym_error_create(SYM_ERROR_UNSUPPORTED, "the runtime was not asked");
	if (sym_error_is_no_memory(error))
		return error;
	lines->was_tried = true;
	if (error)
		lines->failure = strdup(sym_error_message(error));
	sym_error_destroy(error);
	return NULL;
}

static void give_reason(struct jitted_place *places, size_t count, const char *reason)
{
	for (size_t i = 0; i < count; i++)
		places[i].line = managed_line_none(reason);
}

static struct sym_error *find_locked(struct jitted_lines *lines, const struct clr_target *target,
				     enum sym_jit_method way, struct jitted_place *places,
				     size_t count)
{
	struct sym_error *error = open_once(lines, target, way);

	if (error)
		return error;
	if (!lines->debug && !lines->rundown) {
		give_reason(places, count, lines->failure ? lines->failure : "out of memory");
		return NULL;
	}
	error = lines->debug ? find_by_contract(lines, target, places, count)
			     : find_by_rundown(lines, target, places, count);
	if (!error || sym_error_is_no_memory(error))
		return error;
	sym_error_destroy(error);
	give_reason(places, count, "the debug information of the runtime could not be read");
	return NULL;
}

struct sym_error *jitted_lines_find(struct jitted_lines *lines, const struct clr_target *target,
				    enum sym_jit_method way, struct jitted_place *places,
				    size_t count)
{
	struct sym_error *error;

	pthread_mutex_lock(&lines->lock);
	error = find_locked(lines, target, way, places, count);
	pthread_mutex_unlock(&lines->lock);
	return error;
}

/* ---- rows -------------------------------------------------------------------------------- */

static void append_rows_of_body(void *context, struct jit_debug_body *body,
				const struct debug_info *info)
{
	il_map_append_rows(il_map_begin(info->bounds, info->bounds_bytes, info->form),
			   (struct il_code){ body->start_address, body->size_bytes }, context);
}

static struct sym_error *append_by_contract(struct jitted_lines *lines,
					    const struct clr_target *target,
					    const struct jitted_place *methods, size_t count,
					    struct buf *ret)
{
	struct jit_debug_body *bodies AUTO_FREE = make_bodies(methods, count);

	if (!bodies)
		return &sym_error_no_memory;
	return read_bodies(lines, target, bodies, count, append_rows_of_body, ret);
}

static void append_by_rundown(struct jitted_lines *lines, const struct clr_target *target,
			      const struct jitted_place *methods, size_t count, struct buf *ret)
{
	struct rundown_map map;

	update_maps(lines, target, methods, count);
	for (size_t i = 0; i < count; i++)
		if (find_map(lines, &methods[i], &map))
			il_entries_append_rows(
				map.entries, map.count,
				(struct il_code){ methods[i].start_address, methods[i].size_bytes },
				ret);
}

struct sym_error *jitted_lines_append_rows(struct jitted_lines *lines,
					   const struct clr_target *target, enum sym_jit_method way,
					   const struct jitted_place *methods, size_t count,
					   struct buf *ret)
{
	struct sym_error *error;

	pthread_mutex_lock(&lines->lock);
	error = open_once(lines, target, way);
	if (!error && lines->debug)
		error = append_by_contract(lines, target, methods, count, ret);
	else if (!error && lines->rundown)
		append_by_rundown(lines, target, methods, count, ret);
	pthread_mutex_unlock(&lines->lock);
	return sym_error_only_no_memory(error);
}
