/* SPDX-License-Identifier: MIT */
#include "libsym/base/md5.h"

#include <string.h>

enum {
	BLOCK_BYTES = 64,
	LENGTH_AT = 56, /* in the last block: how many bits there were */
	STEPS = 64
};

/* RFC 1321 section 3.4: floor(2^32 * |sin(i + 1)|). */
static const uint32_t sines[STEPS] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

static const uint8_t shifts[4][4] = {
	{ 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
};

static uint32_t word_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static void put_word(uint8_t *bytes, uint32_t word)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(word >> 8 * i);
}

static void take_block(uint32_t state[4], const uint8_t *block)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

	for (unsigned int i = 0; i < STEPS; i++) {
		unsigned int round = i / 16, shift = shifts[round][i % 4], word;
		uint32_t mixed, turned;

		if (round == 0) {
			mixed = (b & c) | (~b & d);
			word = i;
		} else if (round == 1) {
			mixed = (d & b) | (~d & c);
			word = 5 * i + 1;
		} else if (round == 2) {
			mixed = b ^ c ^ d;
			word = 3 * i + 5;
		} else {
			mixed = c ^ (b | ~d);
			word = 7 * i;
		}
		mixed += a + sines[i] + word_at(block + 4 * (word % 16));
		turned = mixed << shift | mixed >> (32 - shift);
		a = d;
		d = c;
		c = b;
		b += turned;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

void md5(const void *bytes, size_t count, uint8_t digest_ret[MD5_BYTES])
{
	uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	uint8_t tail[2 * BLOCK_BYTES] = { 0 };
	const uint8_t *next = bytes;
	uint64_t bits = (uint64_t)count * 8;
	size_t left = count, tail_bytes;

	for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES, next += BLOCK_BYTES)
		take_block(state, next);
	if (left)
		memcpy(tail, next, left);
	tail[left] = 0x80;
	tail_bytes = left < LENGTH_AT ? BLOCK_BYTES : 2 * BLOCK_BYTES;
	put_word(tail + tail_bytes - 8, (uint32_t)bits);
	put_word(tail + tail_bytes - 4, (uint32_t)(bits >> 32));
	for (size_t at = 0; at < tail_bytes; at += BLOCK_BYTES)
		take_block(state, tail + at);
	for (int i = 0; i < 4; i++)
		put_word(digest_ret + 4 * i, state[i]);
}
