/* SPDX-License-Identifier: MIT */
/* Records that no test of a higher layer isolates. perf's jitdump-specification.txt has their
 * fields. */
#include "libsym/format/perf/jitdump.h"

#include <criterion/criterion.h>

#include "tests/support/byte_writer.h"

static struct buf bytes;

static void put_head(uint32_t id, uint32_t size_bytes)
{
	buf_init(&bytes, 1 << 12);
	put_u32(&bytes, id);
	put_u32(&bytes, size_bytes);
	put_u64(&bytes, 12345);
	put_u32(&bytes, 4711);
	put_u32(&bytes, 4712);
}

static struct jitdump_record read_move(uint64_t old_address, uint64_t new_address,
				       uint64_t size_bytes)
{
	struct jitdump_record record;

	put_head(JITDUMP_MOVE, 64);
	put_u64(&bytes, 7);
	put_u64(&bytes, old_address);
	put_u64(&bytes, new_address);
	put_u64(&bytes, size_bytes);
	put_u64(&bytes, 1);
	cr_assert_eq(jitdump_record_read(bytes.data, bytes.size_bytes, false, &record),
		     JITDUMP_GOOD);
	buf_deinit(&bytes);
	return record;
}

Test(jitdump, reads_both_addresses_of_a_move)
{
	struct jitdump_record record = read_move(0x1000, 0x5000, 0x200);

	cr_expect_eq(record.pid, 4711);
	cr_expect_eq(record.timestamp, 12345);
	cr_expect_eq(record.old_address, 0x1000);
	cr_expect_eq(record.code_address, 0x5000);
	cr_expect_eq(record.code_size_bytes, 0x200);
}

Test(jitdump, rejects_a_move_beyond_the_address_space)
{
	cr_expect_eq(read_move(UINT64_MAX - 0xff, 0x5000, 0x100).code_size_bytes, 0);
	cr_expect_eq(read_move(UINT64_MAX - 0xff, 0x5000, 0xff).code_size_bytes, 0xff);
	cr_expect_eq(read_move(0x5000, UINT64_MAX - 0xff, 0x101).code_size_bytes, 0);
}
