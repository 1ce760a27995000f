/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "symsrv/http/http_text.h"

Test(http_text, finds_a_coding_that_is_accepted)
{
	cr_expect(http_accepts("zstd", "zstd"));
	cr_expect(http_accepts("deflate, gzip, br, zstd", "zstd"));
	cr_expect(http_accepts("gzip;q=0.5 , ZSTD ; q=0.001", "zstd"));
	cr_expect(!http_accepts("", "zstd"));
	cr_expect(!http_accepts("*", "zstd"));
	cr_expect(!http_accepts("zstdx, xzstd", "zstd"));
	cr_expect(!http_accepts("gzip, zstd;q=0", "zstd"));
	cr_expect(!http_accepts("zstd; q=0.000, gzip", "zstd"));
	cr_expect(!http_accepts(",,; ;", "zstd"));
}
