/* SPDX-License-Identifier: MIT */
#include "mapgen/debuginfo/source_link.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	MOST_TEXT_BYTES = 1 << 20,
	MOST_URL_BYTES = 1 << 13,
};

/* One member of "documents". */
struct rule {
	char *path; /* without its asterisk */
	char *url;
	size_t path_bytes;
	size_t before_bytes; /* of the URL, before its asterisk */
	bool is_prefix;
};

struct source_link {
	size_t count;
	struct rule rules[]; /* the longest path first */
};

void source_link_destroy(struct source_link *link)
{
	if (!link)
		return;
	for (size_t i = 0; i < link->count; i++) {
		free(link->rules[i].path);
		free(link->rules[i].url);
	}
	free(link);
}

/* ---- reading ------------------------------------------------------------ */

static bool is_safe_url(const char *url)
{
	if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
		return false;
	if (strlen(url) > MOST_URL_BYTES)
		return false;
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || strchr("\"'<>\\`", *c))
			return false;
	return true;
}

static struct sym_error *refuse(const char *why)
{
	return sym_error_create(SYM_ERROR_FORMAT, "the Source Link text of the PDB %s", why);
}

/* Number of asterisks, and the place of the first one. */
static size_t count_asterisks(const char *text, size_t *first_ret)
{
	size_t count = 0;

	*first_ret = strcspn(text, "*");
	for (const char *c = text; *c; c++)
		count += *c == '*';
	return count;
}

static struct sym_error *add_rule(struct source_link *link, const char *path, const json_t *value)
{
	struct rule *rule = &link->rules[link->count];
	const char *url = json_string_value(value);
	size_t path_asterisk, url_asterisk, path_count, url_count;

	if (!url || !is_safe_url(url))
		return refuse("has a URL that is not http(s), or has bytes that URLs have not");
	path_count = count_asterisks(path, &path_asterisk);
	url_count = count_asterisks(url, &url_asterisk);
	if (path_count > 1 || (path_count && path[path_asterisk + 1]) || url_count != path_count)
		return refuse("has an asterisk in the wrong place");
	rule->path = strndup(path, path_asterisk);
	rule->url = strdup(url);
	rule->path_bytes = path_asterisk;
	rule->before_bytes = url_asterisk;
	rule->is_prefix = path_count != 0;
	link->count++;
	return rule->path && rule->url ? NULL : &sym_error_no_memory;
}

static int compare_rules(const void *left, const void *right)
{
	const struct rule *a = left, *b = right;

	if (a->path_bytes != b->path_bytes)
		return a->path_bytes > b->path_bytes ? -1 : 1;
	if (a->is_prefix != b->is_prefix)
		return a->is_prefix ? 1 : -1;
	return strcmp(a->path, b->path);
}

static struct sym_error *read_documents(json_t *documents, struct source_link **ret)
{
	struct source_link *link AUTO_SOURCE_LINK = NULL;
	struct sym_error *error = NULL;
	const char *path;
	json_t *value;

	if (!json_is_object(documents))
		return refuse("has no object \"documents\"");
	link = calloc(1, sizeof(*link) + json_object_size(documents) * sizeof(link->rules[0]));
	if (!link)
		return &sym_error_no_memory;
	json_object_foreach(documents, path, value)
	{
		error = add_rule(link, path, value);
		if (error)
			return error;
	}
	if (link->count)
		qsort(link->rules, link->count, sizeof(link->rules[0]), compare_rules);
	*ret = STEAL(link);
	return NULL;
}

struct sym_error *source_link_parse(const char *text, size_t size_bytes, struct source_link **ret)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct sym_error *error;
	json_error_t where;
	json_t *root;

	if (size_bytes > MOST_TEXT_BYTES)
		return sym_error_create(SYM_ERROR_LIMIT, "the Source Link text is too long");
	/* The compiler copies the file of the build as it is. */
	if (size_bytes >= 3 && !memcmp(text, mark, 3)) {
		text += 3;
		size_bytes -= 3;
	}
	root = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &where);
	if (!root && json_error_code(&where) == json_error_out_of_memory)
		return &sym_error_no_memory;
	if (!root)
		return refuse("is not JSON");
	error = read_documents(json_object_get(root, "documents"), ret);
	json_decref(root);
	return error;
}

/* ---- looking up ---------------------------------------------------------- */

/* The rest of a path as part of a URL: '\\' of Windows is '/', and all but letters, digits and
 * "-_.~/" is escaped. */
static void append_escaped(struct buf *buf, const char *path)
{
	for (const char *c = path; *c; c++) {
		unsigned char byte = (unsigned char)*c;
		bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
				(byte >= '0' && byte <= '9') || strchr("-_.~/", byte);

		if (byte == '\\')
			buf_append_char(buf, '/');
		else if (is_plain)
			buf_append_char(buf, (char)byte);
		else
			buf_printf(buf, "%%%02X", byte);
	}
}

static bool fits(const struct rule *rule, const char *file)
{
	if (!rule->is_prefix)
		return !strcasecmp(rule->path, file);
	return !strncasecmp(rule->path, file, rule->path_bytes);
}

bool source_link_write_url(const struct source_link *link, const char *file, struct buf *buf)
{
	for (size_t i = 0; i < link->count; i++) {
		const struct rule *rule = &link->rules[i];

		if (!fits(rule, file))
			continue;
		buf_append(buf, rule->url, rule->before_bytes);
		if (rule->is_prefix) {
			append_escaped(buf, file + rule->path_bytes);
			buf_append_string(buf, rule->url + rule->before_bytes + 1);
		}
		return true;
	}
	return false;
}
