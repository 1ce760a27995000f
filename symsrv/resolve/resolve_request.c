/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/resolve_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "symsrv/key/debuginfod.h"
#include "symsrv/key/ssqp.h"

const char resolve_request_no_memory[] = "out of memory";
const char resolve_request_too_many[] = "more than 100000 addresses";
static const json_int_t longest_deadline_ms = 600000;

static const char *parse_build_id(const char *text, struct key *key)
{
	char path[2 * KEY_MAX_ID + 16];
	const char *section;

	if (strlen(text) > (size_t)2 * KEY_MAX_ID)
		return "a build-id is too long";
	snprintf(path, sizeof(path), "%s/symtab", text);
	return debuginfod_parse(path, key, &section) ? NULL : "a build-id is not lower-case hex";
}

static const char malformed[] = "the name or key of a file is malformed";

/* A file with a key of SSQP. */
static const char *parse_ssqp(const char *name, const char *id, struct resolve_asked *module)
{
	char *path;

	if (!*name || strchr(name, '/') || strlen(name) > 255 || strlen(id) > 40)
		return malformed;
	if (asprintf(&path, "%s/%s/%s", name, id, name) < 0)
		return resolve_request_no_memory;
	module->spelling = path;
	module->name = malloc(strlen(path) + 1);
	if (!module->name)
		return resolve_request_no_memory;
	return ssqp_parse(module->spelling, module->name, &module->key) ? NULL : malformed;
}

static const char *parse_named(const char *name, const char *id, enum key_kind kind,
			       struct resolve_asked *module)
{
	const char *problem = parse_ssqp(name, id, module);

	return problem || module->key.kind == kind ? problem : malformed;
}

/* The image of a PDB. Images of one build have one GUID, whatever the age of the PDB is. */
static const char *parse_pdb(const char *name, const char *id, struct resolve_asked *module)
{
	const char *problem = parse_ssqp(name, id, module);

	if (problem)
		return problem;
	if (module->key.kind != KEY_PDB && module->key.kind != KEY_PORTABLE_PDB)
		return malformed;
	module->key.kind = KEY_IMAGE_OF_PDB;
	module->key.name = module->key.spelling = NULL;
	return NULL;
}

const char *resolve_request_parse_file(const json_t *wanted, struct resolve_asked *ret)
{
	const char *build_id = json_string_value(json_object_get(wanted, "build_id"));
	const char *name = json_string_value(json_object_get(wanted, "pdb"));
	const char *id = json_string_value(json_object_get(wanted, "key"));
	const char *problem = "neither build_id nor pdb and key";

	*ret = (struct resolve_asked){ 0 };
	if (build_id)
		problem = parse_build_id(build_id, &ret->key);
	else if (name && id)
		problem = parse_named(name, id, KEY_PORTABLE_PDB, ret);
	if (build_id && !problem)
		ret->key.kind = KEY_DEBUGINFO;
	return problem;
}

static const char *parse_addresses(const json_t *list, struct resolve_asked *module)
{
	size_t count = json_array_size(list);

	module->addresses = calloc(count + 1, sizeof(*module->addresses));
	if (!module->addresses)
		return resolve_request_no_memory;
	for (size_t i = 0; i < count; i++) {
		const json_t *number = json_array_get(list, i);

		if (!json_is_integer(number) || json_integer_value(number) < 0)
			return "an address is not a number from 0 on";
		module->addresses[i] = (uint64_t)json_integer_value(number);
	}
	module->address_count = count;
	return NULL;
}

static const char *parse_module(const json_t *item, struct resolve_asked *module)
{
	const char *build_id = json_string_value(json_object_get(item, "build_id"));
	const char *name = json_string_value(json_object_get(item, "pe"));
	const char *pdb = json_string_value(json_object_get(item, "pdb"));
	const char *id = json_string_value(json_object_get(item, "key"));
	const json_t *addresses = json_object_get(item, "addresses");
	const char *problem;

	if (!json_is_object(item) || !json_is_array(addresses))
		return "a module is no object with addresses";
	if (!build_id && !((name || pdb) && id))
		return "a module has neither build_id nor pe and key nor pdb and key";
	problem = build_id ? parse_build_id(build_id, &module->key)
		  : name   ? parse_named(name, id, KEY_PE, module)
			   : parse_pdb(pdb, id, module);
	return problem ? problem : parse_addresses(addresses, module);
}

static const char *parse_modules(const json_t *root, struct resolve_request *ret)
{
	const json_t *list = json_object_get(root, "modules");
	const json_t *deadline = json_object_get(root, "deadline_ms");
	const json_t *lines = json_object_get(root, "lines");
	size_t count = json_array_size(list), address_count = 0;

	if (!json_is_array(list))
		return "no list of modules";
	if (count > RESOLVE_MAX_MODULES)
		return "more than 1024 modules";
	if (deadline && (!json_is_integer(deadline) || json_integer_value(deadline) <= 0 ||
			 json_integer_value(deadline) > longest_deadline_ms))
		return "deadline_ms is not a number from 1 to 600000";
	if (lines && !json_is_boolean(lines))
		return "lines is neither true nor false";
	ret->wants_lines = json_is_true(lines);
	ret->deadline_ms = json_integer_value(deadline);
	ret->modules = calloc(count + 1, sizeof(*ret->modules));
	if (!ret->modules)
		return resolve_request_no_memory;
	for (; ret->module_count < count; ret->module_count++) {
		struct resolve_asked *module = &ret->modules[ret->module_count];
		const char *problem = parse_module(json_array_get(list, ret->module_count), module);

		address_count += module->address_count;
		if (!problem && address_count > RESOLVE_MAX_ADDRESSES)
			problem = resolve_request_too_many;
		if (problem) {
			ret->module_count++;
			return problem;
		}
	}
	return NULL;
}

const char *resolve_request_no_object(const json_error_t *error)
{
	return json_error_code(error) == json_error_numeric_overflow
		       ? "a number is beyond 9223372036854775807"
		       : "not a JSON object";
}

const char *resolve_request_parse(const char *text, size_t size_bytes, struct resolve_request *ret)
{
	json_error_t error = { 0 };
	json_t *root = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &error);
	const char *problem;

	*ret = (struct resolve_request){ 0 };
	problem =
		json_is_object(root) ? parse_modules(root, ret) : resolve_request_no_object(&error);
	json_decref(root);
	return problem;
}

void resolve_asked_deinit(struct resolve_asked *asked)
{
	free(asked->name);
	free(asked->spelling);
	free(asked->addresses);
	*asked = (struct resolve_asked){ 0 };
}

void resolve_request_deinit(struct resolve_request *request)
{
	for (size_t i = 0; i < request->module_count; i++)
		resolve_asked_deinit(&request->modules[i]);
	free(request->modules);
	*request = (struct resolve_request){ 0 };
}
