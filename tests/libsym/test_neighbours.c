/* SPDX-License-Identifier: MIT */
#include "libsym/neighbours.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/elf_builder.h"
#include "tests/support/image_file.h"
#include "tests/support/program.h"

/* Two compilations of one source: the same simple name, other MVIDs. */
static const char precompiled[] = "fixtures/recorded/opt/sample/sample.dll";
static const char il[] = "fixtures/prebuilt/sample.dll";

struct among {
	struct image **images;
	size_t count;
};

static struct sym_error *list(void *context, struct image ***ret, size_t *count_ret)
{
	const struct among *among = context;

	*ret = calloc(among->count + 1, sizeof(struct image *));
	cr_assert_not_null(*ret);
	for (size_t i = 0; i < among->count; i++)
		(*ret)[i] = image_share(among->images[i]);
	*count_ret = among->count;
	return NULL;
}

static const struct metadata *find(struct neighbours *neighbours, const char *name,
				   const uint8_t *mvid)
{
	struct r2r_assemblies assemblies = neighbours_as_assemblies(neighbours);

	return assemblies.find(assemblies.context, name, mvid);
}

static struct sym_error *list_without_memory(void *context, struct image ***ret, size_t *count_ret)
{
	(void)context;
	*ret = NULL;
	*count_ret = 0;
	return &sym_error_no_memory;
}

Test(neighbours, are_looked_for_again_where_there_was_no_memory)
{
	struct image *image = image_file_open(precompiled);
	struct among among = { &image, 1 };
	struct neighbours neighbours;

	neighbours_init(&neighbours);
	neighbours.company = (struct image_company){ &among, list_without_memory };
	cr_expect_null(find(&neighbours, "sample", NULL));
	cr_expect_eq(neighbours_take_trouble(&neighbours), &sym_error_no_memory);
	cr_expect_null(neighbours_take_trouble(&neighbours));
	neighbours.company.list = list;
	cr_expect_not_null(find(&neighbours, "sample", NULL));
	cr_expect_null(find(&neighbours, "other", NULL));
	cr_expect_null(neighbours_take_trouble(&neighbours));
	neighbours_deinit(&neighbours);
	image_close(image);
}

Test(neighbours, are_found_by_name_in_any_case)
{
	struct image *images[] = { image_file_open(il), image_file_open(precompiled) };
	struct among among = { images + 1, 1 };
	struct neighbours neighbours;
	const struct metadata *found;

	neighbours_init(&neighbours);
	neighbours.company = (struct image_company){ &among, list };
	found = find(&neighbours, "Sample", NULL);
	cr_assert_not_null(found);
	cr_expect_str_eq(metadata_assembly_name(found), "sample");
	cr_expect_eq(find(&neighbours, "sample", NULL), found);
	cr_expect_null(find(&neighbours, "other", NULL));
	neighbours_deinit(&neighbours);
	image_close(images[0]);
	image_close(images[1]);
}

Test(neighbours, must_have_the_mvid_that_is_asked_for)
{
	struct image *images[] = { image_file_open(il), image_file_open(precompiled) };
	struct among among = { images, 2 };
	static const uint8_t nobody[16] = { 1 };
	struct neighbours neighbours;
	uint8_t mvid[16];

	neighbours_init(&neighbours);
	neighbours.company = (struct image_company){ &among, list };
	cr_assert(metadata_mvid(find(&neighbours, "sample", image_mvid(images[1])), mvid));
	cr_expect_arr_eq(mvid, image_mvid(images[1]), 16);
	cr_assert(metadata_mvid(find(&neighbours, "sample", image_mvid(images[0])), mvid));
	cr_expect_arr_eq(mvid, image_mvid(images[0]), 16);
	cr_expect_null(find(&neighbours, "sample", nobody));
	neighbours_deinit(&neighbours);
	image_close(images[0]);
	image_close(images[1]);
}

/* Which of the two was meant nobody can tell. */
Test(neighbours, are_not_guessed_between_two_that_differ)
{
	struct image *images[] = { image_file_open(il), image_file_open(precompiled) };
	struct among among = { images, 2 };
	struct neighbours neighbours;

	neighbours_init(&neighbours);
	neighbours.company = (struct image_company){ &among, list };
	cr_expect_null(find(&neighbours, "sample", NULL));
	neighbours_deinit(&neighbours);
	image_close(images[0]);
	image_close(images[1]);
}

Test(neighbours, are_looked_for_beside_the_file_and_nowhere_else)
{
	struct neighbours neighbours;
	char *scratch = scratch_create();
	char *inside = scratch_path(scratch, "inside");

	neighbours_init(&neighbours);
	neighbours.directory = "fixtures/prebuilt";
	cr_expect_not_null(find(&neighbours, "sample", NULL));
	neighbours_deinit(&neighbours);

	neighbours_init(&neighbours);
	neighbours.directory = inside;
	cr_expect_null(find(&neighbours, "sample", NULL));
	cr_expect_null(find(&neighbours, "../sample", NULL));
	neighbours_deinit(&neighbours);
	free(inside);
	scratch_remove(scratch);
}

Test(neighbours, go_on_when_one_is_no_assembly)
{
	struct image *image = NULL;
	struct among among = { &image, 1 };
	struct neighbours neighbours;

	cr_assert_null(
		image_open(elf_builder_file("text", 4), "sample", 0, SPARSE_FILE_TO_END, &image));
	neighbours_init(&neighbours);
	neighbours.company = (struct image_company){ &among, list };
	cr_expect_null(find(&neighbours, "sample", NULL));
	neighbours_deinit(&neighbours);
	image_close(image);
}
