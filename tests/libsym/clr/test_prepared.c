/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/clr/prepared.h"
#include "tests/support/clr_image.h"

/* A module with a table of prepared methods. */
static uint64_t add_r2r_module(struct clr_image *image, uint64_t info)
{
	uint64_t module = clr_image_room(image, 40);

	fake_memory_put_u64(&image->fake, module + 32, info);
	return module;
}

static uint64_t add_table(struct clr_image *image, uint32_t bucket_count, uint64_t *info_ret)
{
	uint64_t info = clr_image_room(image, 32);
	uint64_t buckets = clr_image_room(image, 64 * ((size_t)bucket_count + 1));

	fake_memory_put_u64(&image->fake, info + 24, buckets);
	fake_memory_put_u32(&image->fake, buckets, bucket_count);
	*info_ret = info;
	return buckets;
}

/* The runtime keeps a MethodDesc without its lowest bit, and has a flag of its own in the highest.
 */
static void put_entry(struct clr_image *image, uint64_t buckets, uint32_t bucket, uint32_t slot,
		      uint64_t key, uint64_t method)
{
	uint64_t at = buckets + 64 * (uint64_t)bucket + 8 * (uint64_t)slot;

	fake_memory_put_u64(&image->fake, at, key);
	fake_memory_put_u64(&image->fake, at + 32, method >> 1 | 1ull << 63);
}

static struct sym_error *read_prepared(struct clr_image *image, const uint64_t *modules,
				       size_t count, struct prepared *ret)
{
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&image->fake);
	struct code_section sections[4] = { 0 };
	const struct code_map map = { .sections = sections, .section_count = count };

	for (size_t i = 0; i < count; i++)
		sections[i].module = modules[i];
	return prepared_read(memory, &image->layout, &image->prepared, &map, ret);
}

Test(prepared, lists_entry_points_with_their_methods)
{
	struct clr_image image;
	struct prepared prepared;
	uint64_t buckets, info, module;

	clr_image_init(&image);
	buckets = add_table(&image, 3, &info);
	module = add_r2r_module(&image, info);
	put_entry(&image, buckets, 1, 0, 0x401000, 0x10001230);
	put_entry(&image, buckets, 3, 2, 0x402000, 0x10004560);
	put_entry(&image, buckets, 2, 0, 1, 0x10007890); /* deleted */
	cr_assert_null(read_prepared(&image, &module, 1, &prepared));
	cr_assert_eq(prepared.count, 2);
	cr_assert_eq(prepared.items[0].entry_address, 0x401000);
	cr_assert_eq(prepared.items[0].method_desc, 0x10001230);
	cr_assert_eq(prepared.items[1].entry_address, 0x402000);
	cr_assert_eq(prepared.items[1].method_desc, 0x10004560);
	prepared_deinit(&prepared);
	clr_image_deinit(&image);
}

Test(prepared, reads_the_table_that_components_share_once)
{
	struct clr_image image;
	struct prepared prepared;
	uint64_t buckets, composite, infos[2], modules[2];

	clr_image_init(&image);
	buckets = add_table(&image, 1, &composite);
	put_entry(&image, buckets, 1, 0, 0x401000, 0x10001230);
	for (unsigned int i = 0; i < 2; i++) {
		infos[i] = clr_image_room(&image, 32);
		fake_memory_put_u64(&image.fake, infos[i] + 8, composite);
		modules[i] = add_r2r_module(&image, infos[i]);
	}
	cr_assert_null(read_prepared(&image, modules, 2, &prepared));
	cr_assert_eq(prepared.count, 1);
	prepared_deinit(&prepared);
	clr_image_deinit(&image);
}

Test(prepared, takes_modules_without_a_table_as_such)
{
	struct clr_image image;
	struct prepared prepared;
	uint64_t modules[3], info;

	clr_image_init(&image);
	modules[0] = add_r2r_module(&image, 0);
	modules[1] = add_r2r_module(&image, clr_image_room(&image, 32));
	add_table(&image, 0, &info);
	modules[2] = add_r2r_module(&image, info);
	cr_assert_null(read_prepared(&image, modules, 3, &prepared));
	cr_assert_eq(prepared.count, 0);
	prepared_deinit(&prepared);
	clr_image_deinit(&image);
}

Test(prepared, leaves_out_tables_that_are_nowhere_or_without_an_end)
{
	static const uint64_t nowhere[] = { 8, 0xdead0000, 1ull << 62, UINT64_MAX - 7 };
	struct clr_image image;
	struct prepared prepared;
	uint64_t modules[4], info, buckets;

	clr_image_init(&image);
	for (unsigned int i = 0; i < 4; i++)
		modules[i] = add_r2r_module(&image, nowhere[i]);
	cr_assert_null(read_prepared(&image, modules, 4, &prepared));
	cr_assert_eq(prepared.count, 0);
	prepared_deinit(&prepared);
	cr_assert_null(read_prepared(&image, nowhere, 4, &prepared));
	cr_assert_eq(prepared.count, 0);
	prepared_deinit(&prepared);
	buckets = add_table(&image, 1, &info);
	put_entry(&image, buckets, 1, 0, 0x401000, 0x10001230);
	modules[0] = add_r2r_module(&image, info);
	fake_memory_put_u32(&image.fake, buckets, UINT32_MAX);
	cr_assert_null(read_prepared(&image, modules, 1, &prepared));
	cr_assert_eq(prepared.count, 0, "more buckets than there can be");
	prepared_deinit(&prepared);
	clr_image_deinit(&image);
}
