/* SPDX-License-Identifier: MIT */
#include "symsrv/lookup/object_list.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symsrv/key/route.h"

const char object_list_no_memory[] = "out of memory";

static const char *parse_object(const json_t *item, struct listed_object *ret)
{
	const char *path = json_string_value(item);
	struct route route;

	if (!path)
		return "an object is not given by its path";
	ret->room = malloc(route_room_bytes(strlen(path)));
	if (!ret->room)
		return object_list_no_memory;
	route_parse(path, ret->room, &route);
	if (route.section || !route_is_of_object(route.kind))
		return "a path is not that of an object";
	ret->key = route.key;
	return NULL;
}

static const char *parse_list(const json_t *root, struct object_list *ret)
{
	const json_t *list = json_object_get(root, "objects");
	size_t count = json_array_size(list);
	const char *problem = NULL;

	if (!json_is_array(list))
		return "no list of objects";
	if (count > OBJECT_LIST_MAX)
		return "more than 10000 objects";
	ret->items = calloc(count + 1, sizeof(*ret->items));
	if (!ret->items)
		return object_list_no_memory;
	while (!problem && ret->count < count) {
		problem = parse_object(json_array_get(list, ret->count), &ret->items[ret->count]);
		ret->count++;
	}
	return problem;
}

const char *object_list_parse(const char *text, size_t size_bytes, struct object_list *ret)
{
	json_t *root =
		size_bytes ? json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *problem;

	*ret = (struct object_list){ 0 };
	problem = json_is_object(root) ? parse_list(root, ret) : "not a JSON object";
	json_decref(root);
	return problem;
}

void object_list_deinit(struct object_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].room);
	free(list->items);
	*list = (struct object_list){ 0 };
}

bool object_list_is_here(const struct holdings *holdings, const struct key *key)
{
	struct store_record record;
	char text[KEY_TEXT_BYTES];
	int failure, fd;

	key_text(key, text);
	if (file_index_has(holdings->index, text))
		return true;
	failure = store_find_quickly(holdings->store, text, 0, &fd, &record);
	if (!failure) {
		store_record_deinit(&record);
		close(fd);
	}
	/* -EAGAIN: its checksum was not compared yet. */
	return !failure || failure == -EAGAIN;
}

char *object_list_have(const struct object_list *list, const struct holdings *holdings)
{
	json_t *have = json_array(), *root;
	char *text;

	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(
			have, json_boolean(object_list_is_here(holdings, &list->items[i].key)));
	root = json_pack("{s:o}", "have", have);
	text = root && json_array_size(have) == list->count ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}
