/* SPDX-License-Identifier: MIT */
#include "libsym/image/assembly_lookup.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/elf_builder.h"
#include "tests/support/image_file.h"
#include "tests/support/program.h"

/* Two compilations of one source: the same simple name, different MVIDs. */
static const char precompiled[] = "fixtures/recorded/opt/sample/sample.dll";
static const char il[] = "fixtures/prebuilt/sample.dll";

struct among {
	struct object_file **files;
	size_t count;
};

static struct sym_error *list(void *context, struct object_file ***ret, size_t *count_ret)
{
	const struct among *among = context;

	*ret = calloc(among->count + 1, sizeof(struct object_file *));
	cr_assert_not_null(*ret);
	for (size_t i = 0; i < among->count; i++)
		(*ret)[i] = object_file_share(among->files[i]);
	*count_ret = among->count;
	return NULL;
}

static const struct metadata *find(struct assembly_lookup *assembly_lookup, const char *name,
				   const uint8_t *mvid)
{
	struct r2r_assemblies assemblies = assembly_lookup_as_assemblies(assembly_lookup);

	return assemblies.find(assemblies.context, name, mvid);
}

static struct sym_error *list_without_memory(void *context, struct object_file ***ret,
					     size_t *count_ret)
{
	(void)context;
	*ret = NULL;
	*count_ret = 0;
	return &sym_error_no_memory;
}

Test(assembly_lookup, searches_again_after_a_lack_of_memory)
{
	struct object_file *object = image_file_open(precompiled);
	struct among among = { &object, 1 };
	struct assembly_lookup assembly_lookup;

	assembly_lookup_init(&assembly_lookup);
	assembly_lookup.company = (struct assembly_company){ &among, list_without_memory };
	cr_expect_null(find(&assembly_lookup, "sample", NULL));
	cr_expect_eq(assembly_lookup_take_trouble(&assembly_lookup), &sym_error_no_memory);
	cr_expect_null(assembly_lookup_take_trouble(&assembly_lookup));
	assembly_lookup.company.list = list;
	cr_expect_not_null(find(&assembly_lookup, "sample", NULL));
	cr_expect_null(find(&assembly_lookup, "other", NULL));
	cr_expect_null(assembly_lookup_take_trouble(&assembly_lookup));
	assembly_lookup_deinit(&assembly_lookup);
	object_file_close(object);
}

Test(assembly_lookup, finds_names_in_upper_and_lower_case)
{
	struct object_file *files[] = { image_file_open(il), image_file_open(precompiled) };
	struct among among = { files + 1, 1 };
	struct assembly_lookup assembly_lookup;
	const struct metadata *found;

	assembly_lookup_init(&assembly_lookup);
	assembly_lookup.company = (struct assembly_company){ &among, list };
	found = find(&assembly_lookup, "Sample", NULL);
	cr_assert_not_null(found);
	cr_expect_str_eq(metadata_assembly_name(found), "sample");
	cr_expect_eq(find(&assembly_lookup, "sample", NULL), found);
	cr_expect_null(find(&assembly_lookup, "other", NULL));
	assembly_lookup_deinit(&assembly_lookup);
	object_file_close(files[0]);
	object_file_close(files[1]);
}

Test(assembly_lookup, requires_the_requested_mvid)
{
	struct object_file *files[] = { image_file_open(il), image_file_open(precompiled) };
	struct among among = { files, 2 };
	static const uint8_t other_mvid[16] = { 1 };
	struct assembly_lookup assembly_lookup;
	uint8_t mvid[16];

	assembly_lookup_init(&assembly_lookup);
	assembly_lookup.company = (struct assembly_company){ &among, list };
	cr_assert(
		metadata_mvid(find(&assembly_lookup, "sample", object_file_mvid(files[1])), mvid));
	cr_expect_arr_eq(mvid, object_file_mvid(files[1]), 16);
	cr_assert(
		metadata_mvid(find(&assembly_lookup, "sample", object_file_mvid(files[0])), mvid));
	cr_expect_arr_eq(mvid, object_file_mvid(files[0]), 16);
	cr_expect_null(find(&assembly_lookup, "sample", other_mvid));
	assembly_lookup_deinit(&assembly_lookup);
	object_file_close(files[0]);
	object_file_close(files[1]);
}

/* Either of the two may be meant. */
Test(assembly_lookup, does_not_guess_between_two_that_differ)
{
	struct object_file *files[] = { image_file_open(il), image_file_open(precompiled) };
	struct among among = { files, 2 };
	struct assembly_lookup assembly_lookup;

	assembly_lookup_init(&assembly_lookup);
	assembly_lookup.company = (struct assembly_company){ &among, list };
	cr_expect_null(find(&assembly_lookup, "sample", NULL));
	assembly_lookup_deinit(&assembly_lookup);
	object_file_close(files[0]);
	object_file_close(files[1]);
}

Test(assembly_lookup, searches_only_beside_the_file)
{
	struct assembly_lookup assembly_lookup;
	char *scratch = scratch_create();
	char *inside = scratch_path(scratch, "inside");

	assembly_lookup_init(&assembly_lookup);
	assembly_lookup.directory = "fixtures/prebuilt";
	cr_expect_not_null(find(&assembly_lookup, "sample", NULL));
	assembly_lookup_deinit(&assembly_lookup);

	assembly_lookup_init(&assembly_lookup);
	assembly_lookup.directory = inside;
	cr_expect_null(find(&assembly_lookup, "sample", NULL));
	cr_expect_null(find(&assembly_lookup, "../sample", NULL));
	assembly_lookup_deinit(&assembly_lookup);
	free(inside);
	scratch_remove(scratch);
}

Test(assembly_lookup, skips_what_is_not_an_assembly)
{
	struct object_file *object = NULL;
	struct among among = { &object, 1 };
	struct assembly_lookup assembly_lookup;

	cr_assert_null(object_file_open(NULL, elf_builder_file("text", 4), "sample", 0,
					SPARSE_FILE_TO_END, &object));
	assembly_lookup_init(&assembly_lookup);
	assembly_lookup.company = (struct assembly_company){ &among, list };
	cr_expect_null(find(&assembly_lookup, "sample", NULL));
	assembly_lookup_deinit(&assembly_lookup);
	object_file_close(object);
}
