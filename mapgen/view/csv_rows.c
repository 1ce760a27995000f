/* SPDX-License-Identifier: MIT */
/* RFC 4180, with newlines of Unix. */
#include "mapgen/view/csv_rows.h"

#include <string.h>

static void put_text(const char *text, FILE *to)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, to);
		return;
	}
	fputc('"', to);
	for (const char *c = text; *c; c++) {
		if (*c == '"')
			fputc('"', to);
		fputc(*c, to);
	}
	fputc('"', to);
}

static void put_value(const json_t *value, FILE *to)
{
	if (json_is_string(value))
		put_text(json_string_value(value), to);
	else if (json_is_integer(value))
		fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		fprintf(to, "%.9g", json_real_value(value));
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "1" : "0", to);
}

void csv_rows_write(const json_t *rows, FILE *to)
{
	const char *key, *separator = "";
	const json_t *row;
	json_t *value;
	size_t index;

	json_object_foreach((json_t *)json_array_get(rows, 0), key, value)
	{
		fprintf(to, "%s%s", separator, key);
		separator = ",";
	}
	if (json_array_size(rows))
		fputc('\n', to);
	json_array_foreach(rows, index, row)
	{
		separator = "";
		json_object_foreach((json_t *)row, key, value)
		{
			fputs(separator, to);
			put_value(value, to);
			separator = ",";
		}
		fputc('\n', to);
	}
}
