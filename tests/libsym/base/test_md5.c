/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/md5.h"

static void expect_digest(const char *text, const char *expected)
{
	uint8_t digest[MD5_BYTES];
	char hex[2 * MD5_BYTES + 1];

	md5(text, strlen(text), digest);
	hex_write_bytes(hex, digest, sizeof(digest));
	cr_expect_str_eq(hex, expected, "of \"%s\": %s", text, hex);
}

Test(md5, agrees_with_the_test_suite_of_rfc_1321)
{
	expect_digest("", "d41d8cd98f00b204e9800998ecf8427e");
	expect_digest("a", "0cc175b9c0f1b6a831c399e269772661");
	expect_digest("abc", "900150983cd24fb0d6963f7d28e17f72");
	expect_digest("message digest", "f96b697d7cb7938d525a2f31aaf161d0");
	expect_digest("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b");
	expect_digest("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		      "d174ab98d277d9f5a5611c2c9f419d9f");
	expect_digest("12345678901234567890123456789012345678901234567890123456789012345678901234"
		      "567890",
		      "57edf4a22be3c955ac49da2e2107b67a");
}

/* Around the place of the length in the last block; digests by md5sum of coreutils 9.1. */
Test(md5, finds_room_for_the_length_in_a_further_block)
{
	expect_digest("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		      "04364420e25c512fd958a70738aa8f72");
	expect_digest("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		      "668a72d5ba17f08e62dabcafad6db14b");
	expect_digest("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		      "c1bb4f81d892b2d57947682aeb252456");
}
