/* SPDX-License-Identifier: MIT */
#include "libsym/format/linux/mapping_name.h"

#include <criterion/criterion.h>
#include <string.h>

static enum mapping_name_kind kind_of(const char *name)
{
	return mapping_name_kind(name, strlen(name));
}

/* Names from /proc/PID/maps of Linux 6.1 and from MMAP2 records of perf 6.1. */
Test(mapping_name, knows_memory_that_may_hold_jitted_code)
{
	cr_expect_eq(kind_of(""), MAPPING_NAME_MEMORY);
	cr_expect_eq(kind_of("//anon"), MAPPING_NAME_MEMORY);
	cr_expect_eq(kind_of("[anon:v8]"), MAPPING_NAME_MEMORY);
	cr_expect_eq(kind_of("[heap]"), MAPPING_NAME_MEMORY);
	cr_expect_eq(kind_of("/dev/zero (deleted)"), MAPPING_NAME_MEMORY);
	cr_expect_eq(kind_of("/SYSV00000000 (deleted)"), MAPPING_NAME_MEMORY);
	cr_expect_eq(kind_of("/anon_hugepage (deleted)"), MAPPING_NAME_MEMORY);
	cr_expect_eq(kind_of("/memfd:doublemapper (deleted)"), MAPPING_NAME_MEMORY_FILE);
}

Test(mapping_name, knows_what_holds_none)
{
	cr_expect_eq(kind_of("[vdso]"), MAPPING_NAME_KERNEL);
	cr_expect_eq(kind_of("[stack]"), MAPPING_NAME_KERNEL);
	cr_expect_eq(kind_of("[vsyscall]"), MAPPING_NAME_KERNEL);
	cr_expect_eq(kind_of("/usr/lib/libc.so.6"), MAPPING_NAME_FILE);
	cr_expect_eq(kind_of("/memfd"), MAPPING_NAME_FILE);
}

Test(mapping_name, reads_no_byte_behind_the_name)
{
	cr_expect_eq(mapping_name_kind("//anonymous", 3), MAPPING_NAME_FILE);
	cr_expect_eq(mapping_name_kind("[heap]", 0), MAPPING_NAME_MEMORY);
}

Test(mapping_name, knows_code_that_is_mapped_twice)
{
	cr_expect(mapping_name_is_doublemapper("/memfd:doublemapper"));
	cr_expect(mapping_name_is_doublemapper("/memfd:doublemapper (deleted)"));
	cr_expect_not(mapping_name_is_doublemapper("/memfd:libfoo (deleted)"));
	cr_expect_not(mapping_name_is_doublemapper(""));
}
