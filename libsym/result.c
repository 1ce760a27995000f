/* SPDX-License-Identifier: MIT */
#include "libsym/result.h"

#include <stdlib.h>

struct sym_error *sym_result_create(struct sym_result **ret)
{
	struct sym_result *result = calloc(1, sizeof(*result));

	if (!result)
		return &sym_error_no_memory;
	*ret = result;
	return NULL;
}

void sym_result_destroy(struct sym_result *result)
{
	if (!result)
		return;
	free(result->answers);
	free(result);
}

size_t sym_result_count(const struct sym_result *result)
{
	return result->count;
}

const struct sym_answer *sym_result_at(const struct sym_result *result, size_t index)
{
	return index < result->count ? &result->answers[index] : NULL;
}

struct sym_error *result_prepare(struct sym_result *result, const uint64_t *positions, size_t count)
{
	if (count > result->capacity) {
		struct sym_answer *answers = reallocarray(result->answers, count, sizeof(*answers));

		if (!answers)
			return &sym_error_no_memory;
		result->answers = answers;
		result->capacity = count;
	}
	result->count = count;
	for (size_t i = 0; i < count; i++)
		result->answers[i] = (struct sym_answer){ .address = positions[i],
							  .image_path = "",
							  .image_position = UINT64_MAX };
	return NULL;
}
