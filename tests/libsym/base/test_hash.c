/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"
#include "tests/support/alloc_fail.h"

struct word {
	char text[16];
	int number;
	UT_hash_handle hh;
};

static struct word *find(struct word *words, const char *text)
{
	struct word *found;

	HASH_FIND(hh, words, text, strlen(text), found);
	return found;
}

static void remove_all(struct word **words)
{
	struct word *word, *next;

	HASH_ITER(hh, *words, word, next)
	{
		HASH_DEL(*words, word);
		free(word);
	}
}

static bool add(struct word **words, const char *text, int number)
{
	struct word *word = calloc(1, sizeof(*word));

	if (!word)
		return false;
	snprintf(word->text, sizeof(word->text), "%s", text);
	word->number = number;
	HASH_ADD_KEYPTR(hh, *words, word->text, strlen(word->text), word);
	if (hash_added(word))
		return true;
	free(word);
	return false;
}

Test(hash, finds_added_items)
{
	struct word *words = NULL;

	cr_assert(add(&words, "one", 1));
	cr_assert(add(&words, "two", 2));
	cr_assert_not_null(find(words, "two"));
	cr_expect_eq(find(words, "two")->number, 2);
	cr_expect_null(find(words, "three"));
	remove_all(&words);
}

static bool add_many(void *context)
{
	struct word *words = NULL;
	bool complete = true;
	char text[16];

	(void)context;
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "word%d", i);
		if (add(&words, text, i))
			cr_expect(find(words, text));
		else
			complete = false;
	}
	/* At most one insert failed, and the table is intact without it. */
	cr_expect_geq(HASH_COUNT(words), 999);
	remove_all(&words);
	return complete;
}

Test(hash, undoes_an_insert_without_memory)
{
	size_t runs = alloc_fail_each(add_many, NULL);

	cr_expect_gt(runs, 1000);
}
