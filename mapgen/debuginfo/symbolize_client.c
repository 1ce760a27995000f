/* SPDX-License-Identifier: MIT */
/*
 * How positions become answers.
 *
 *   symbolize_client_add()     collects {IMAGE: {POSITION: null}} in `open`
 *   symbolize_client_ask()     moves it into requests of limited size (take_batch()), sends them
 *   take_answers()             puts what came into `answers`: {IMAGE: {POSITION: answer}}
 *
 * IMAGE is the text of a JSON object that names the module. What the server sends is checked for
 * its shape and its size.
 */
#include "mapgen/debuginfo/symbolize_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/debuginfo/libcurl_dlopen.h"
#include "mapgen/debuginfo/symbol_servers.h"

/* For all requests of a run together. */
static const int64_t most_wait_ms = 10000;
/* Time for the answer to arrive after the server's deadline. */
static const int64_t spare_ms = 500;
static const long connect_ms = 3000;
/* Limits of symsrv: 1024 modules, 100,000 addresses, 1 MB. */
static const size_t most_modules = 1000;
static const size_t most_positions = 20000;
static const size_t most_answer_bytes = (size_t)64 << 20;

enum {
	POSITION_BYTES = 24,
	IMAGE_BYTES = 512
};

struct symbolize_client {
	const struct curl_api *api;
	CURL *curl;
	char *request_url, *shown_url;
	json_t *open, *answers;
	char *problem; /* heap; NULL: none yet */
	int64_t waited_ms;
	bool wants_lines;
	bool has_given_up;
};

/* ---- images and positions --------------------------------------------------------- */

/* The module of a request without its addresses; "" when servers do not know such a file. */
static const char *image_text(const struct sym_identity *identity, const char *name,
			      char room[IMAGE_BYTES])
{
	char id[2 * sizeof(identity->id) + 1], key[24];
	json_t *module = NULL;

	room[0] = '\0';
	if (identity->kind == SYM_IDENTITY_ELF && identity->id_size_bytes) {
		hex_write_bytes(id, identity->id, identity->id_size_bytes);
		module = json_pack("{s:s}", "build_id", id);
	} else if (identity->kind == SYM_IDENTITY_PE) {
		snprintf(key, sizeof(key), "%08" PRIX32 "%" PRIx32, identity->timestamp,
			 identity->image_size_bytes);
		module = json_pack("{s:s, s:s}", "pe", name, "key", key);
	}
	if (module && json_dumpb(module, room, IMAGE_BYTES - 1, JSON_COMPACT) < IMAGE_BYTES)
		room[json_dumpb(module, NULL, 0, JSON_COMPACT)] = '\0';
	else
		room[0] = '\0';
	json_decref(module);
	return room;
}

static const char *position_text(uint64_t position, char room[POSITION_BYTES])
{
	snprintf(room, POSITION_BYTES, "%" PRIu64, position);
	return room;
}

/* The positions of an image, made if they are not there. */
static json_t *positions_of(json_t *images, const char *image)
{
	json_t *positions = json_object_get(images, image);

	if (!positions && !json_object_set_new(images, image, json_object()))
		positions = json_object_get(images, image);
	return positions;
}

void symbolize_client_add(struct symbolize_client *client, const struct sym_identity *identity,
			  const char *name, uint64_t position)
{
	char image[IMAGE_BYTES], text[POSITION_BYTES];

	if (!*image_text(identity, name, image) || position > INT64_MAX ||
	    json_object_get(json_object_get(client->answers, image), position_text(position, text)))
		return;
	json_object_set_new(positions_of(client->open, image), text, json_null());
}

const json_t *symbolize_client_answer(struct symbolize_client *client,
				      const struct sym_identity *identity, const char *name,
				      uint64_t position)
{
	char image[IMAGE_BYTES], text[POSITION_BYTES];
	const json_t *answer =
		json_object_get(json_object_get(client->answers, image_text(identity, name, image)),
				position_text(position, text));

	return json_is_object(answer) ? answer : NULL;
}

void symbolize_client_add_code(struct symbolize_client *client, const struct sym_identity *identity,
			       uint64_t start, uint64_t size_bytes)
{
	symbolize_client_add(client, identity, "", start);
	if (size_bytes > 1)
		symbolize_client_add(client, identity, "", start + size_bytes - 1);
}

const char *symbolize_client_name_of_code(struct symbolize_client *client,
					  const struct sym_identity *identity, uint64_t start,
					  uint64_t size_bytes)
{
	const json_t *first = symbolize_client_answer(client, identity, "", start), *last;
	const char *name = json_string_value(json_object_get(first, "function")), *last_name;

	if (!name || size_bytes <= 1)
		return name;
	last = symbolize_client_answer(client, identity, "", start + size_bytes - 1);
	last_name = json_string_value(json_object_get(last, "function"));
	/* A symbol without a size has no name for its last byte. */
	return !last_name || !strcmp(name, last_name) ? name : NULL;
}

/* ---- one request ------------------------------------------------------------------ */

static void set_problem(struct symbolize_client *client, const char *what)
{
	if (!client->problem)
		client->problem = message_format("%s: %s", client->shown_url, what);
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	return buf_append(context, bytes, size * count) ? size * count : 0;
}

/* The status, or 0 with *reason_ret. */
static long post(struct symbolize_client *client, const char *body, int64_t left_ms,
		 struct buf *answer, const char **reason_ret)
{
	const struct curl_api *api = client->api;
	struct curl_slist type = { (char[]){ "Content-Type: application/json" }, NULL };
	CURL *curl = client->curl;
	long status = 0;
	CURLcode code;

	api->easy_reset(curl);
	api->easy_setopt(curl, CURLOPT_URL, client->request_url);
	api->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	api->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	api->easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
	api->easy_setopt(curl, CURLOPT_USERAGENT, "dotnet-mapgen");
	api->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	api->easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
	api->easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)left_ms);
	api->easy_setopt(curl, CURLOPT_HTTPHEADER, &type);
	api->easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	api->easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
	api->easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	api->easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	code = api->easy_perform(curl);
	api->easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK)
		return status;
	*reason_ret = api->easy_strerror(code);
	return 0;
}

/* ---- batches ---------------------------------------------------------------------- */

/* Moves a part of `open` into a list of modules. */
static json_t *take_batch(struct symbolize_client *client)
{
	json_t *modules = json_array(), *positions;
	size_t left = most_positions;
	const char *image, *text;
	void *next, *next_image;

	json_object_foreach_safe(client->open, next_image, image, positions)
	{
		json_t *module = json_loads(image, 0, NULL), *addresses = json_array(), *null;

		json_object_foreach_safe(positions, next, text, null)
		{
			if (!left)
				break;
			left--;
			json_array_append_new(addresses, json_integer(strtoll(text, NULL, 10)));
			json_object_del(positions, text);
		}
		json_object_set_new(module, "addresses", addresses);
		json_array_append_new(modules, module);
		if (!json_object_size(positions))
			json_object_del(client->open, image);
		if (!left || json_array_size(modules) == most_modules)
			break;
	}
	return modules;
}

/* False when the answer has not the shape of the request. */
static bool take_answers(struct symbolize_client *client, const json_t *modules,
			 const json_t *answered)
{
	bool is_good = json_array_size(answered) == json_array_size(modules);

	for (size_t i = 0; is_good && i < json_array_size(modules); i++) {
		json_t *module = json_array_get(modules, i);
		json_t *addresses = json_incref(json_object_get(module, "addresses"));
		const json_t *results = json_object_get(json_array_get(answered, i), "results");
		const json_t *problem = json_object_get(json_array_get(answered, i), "problem");
		char *image AUTO_FREE = NULL, text[POSITION_BYTES];
		size_t count = json_array_size(addresses);

		json_object_del(module, "addresses");
		image = json_dumps(module, JSON_COMPACT);
		is_good = image && json_array_size(results) == count;
		for (size_t k = 0; is_good && k < count; k++)
			json_object_set(positions_of(client->answers, image),
					position_text((uint64_t)json_integer_value(
							      json_array_get(addresses, k)),
						      text),
					json_array_get(results, k));
		if (json_is_string(problem))
			set_problem(client, json_string_value(problem));
		json_decref(addresses);
	}
	return is_good;
}

static void take_answer(struct symbolize_client *client, const json_t *modules,
			const struct buf *answer)
{
	json_t *root = json_loadb(answer->data ?: "", answer->size_bytes, 0, NULL);

	if (!take_answers(client, modules, json_object_get(root, "modules")))
		set_problem(client, "its answer is malformed");
	else if (!json_is_true(json_object_get(root, "complete")))
		set_problem(client, "it could not look for everything in time");
	json_decref(root);
}

/* False: nothing more is to be asked. */
static bool ask_batch(struct symbolize_client *client)
{
	int64_t left_ms = most_wait_ms - client->waited_ms;
	double begun_s = monotonic_seconds();
	json_t *modules = take_batch(client);
	json_t *root = json_pack(
		"{s:O, s:b, s:I}", "modules", modules, "lines", client->wants_lines, "deadline_ms",
		(json_int_t)(left_ms > 2 * spare_ms ? left_ms - spare_ms : spare_ms));
	char *body AUTO_FREE = json_dumps(root, JSON_COMPACT);
	const char *reason = "out of memory";
	struct buf answer;
	long status = 0;

	buf_init(&answer, most_answer_bytes);
	if (left_ms <= 0)
		reason = "the time for its answers is used up";
	else if (body)
		status = post(client, body, left_ms, &answer, &reason);
	client->waited_ms += (int64_t)((monotonic_seconds() - begun_s) * 1000);
	if (status == 200) {
		take_answer(client, modules, &answer);
	} else {
		char *text AUTO_FREE = message_format("status %ld", status);

		set_problem(client, status ? text : reason);
	}
	buf_deinit(&answer);
	json_decref(modules);
	json_decref(root);
	return status == 200;
}

void symbolize_client_ask(struct symbolize_client *client)
{
	while (!client->has_given_up && json_object_size(client->open))
		client->has_given_up = !ask_batch(client);
	json_object_clear(client->open);
}

/* ---- life ------------------------------------------------------------------------- */

bool symbolize_client_takes(const char *url)
{
	return !strncasecmp(url, "http://", 7) || !strncasecmp(url, "https://", 8);
}

static bool symbolize_client_init(struct symbolize_client *client, const char *url)
{
	size_t length = strlen(url);

	while (length && url[length - 1] == '/')
		length--;
	client->request_url = message_format("%.*s/v1/resolve", (int)length, url);
	client->shown_url = symbol_server_without_password(url);
	client->open = json_object();
	client->answers = json_object();
	client->curl = client->api->easy_init();
	return client->curl && client->request_url && client->shown_url && client->open &&
	       client->answers;
}

struct symbolize_client *symbolize_client_create(const char *url, bool wants_lines)
{
	const char *reason = "out of memory";
	const struct curl_api *api = curl_api_get(&reason);
	struct symbolize_client *client = api ? calloc(1, sizeof(*client)) : NULL;

	if (client) {
		client->api = api;
		client->wants_lines = wants_lines;
		if (symbolize_client_init(client, url))
			return client;
		symbolize_client_destroy(client);
	}
	message("cannot ask %s: %s", api ? "a server" : "without libcurl (Debian: libcurl4)",
		reason);
	return NULL;
}

void symbolize_client_destroy(struct symbolize_client *client)
{
	if (!client)
		return;
	if (client->curl)
		client->api->easy_cleanup(client->curl);
	json_decref(client->open);
	json_decref(client->answers);
	free(client->request_url);
	free(client->shown_url);
	free(client->problem);
	free(client);
}

const char *symbolize_client_problem(const struct symbolize_client *client)
{
	return client->problem;
}

const char *symbolize_client_url(const struct symbolize_client *client)
{
	return client->shown_url;
}
