/* SPDX-License-Identifier: MIT */
#include "mapgen/stacktext/stack_scan.h"

bool stack_read_number(struct stack_span *span, struct stack_number *ret)
{
	struct stack_number number = { .start = span->at };
	const char *at = span->at;

	if (stack_left(span) > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
		number.prefixed = true;
		at += 2;
	}
	for (; at < span->end && number.digits <= 16; at++) {
		int value = hex_values[(unsigned char)*at];

		if (value < 0)
			break;
		number.lettered |= value > 9;
		number.value = number.value << 4 | (unsigned int)value;
		number.digits++;
	}
	if (!number.digits || number.digits > 16)
		return false;
	number.end = span->at = at;
	*ret = number;
	return true;
}

bool stack_read_either(struct stack_span *span, uint64_t *ret)
{
	struct stack_span start = *span;
	struct stack_number number;
	uint64_t value = 0;

	if (stack_read_number(&start, &number) && number.prefixed) {
		*span = start;
		*ret = number.value;
		return true;
	}
	for (start = *span; start.at < start.end && stack_is_digit(*start.at); start.at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*start.at - '0'), &value))
			return false;
	if (start.at == span->at)
		return false;
	*span = start;
	*ret = value;
	return true;
}

bool stack_read_id(struct stack_span *span, int32_t *ret)
{
	const char *at = span->at;
	int64_t value = 0;

	for (; at < span->end && stack_is_digit(*at) && value <= INT32_MAX; at++)
		value = value * 10 + (*at - '0');
	if (at == span->at || value > INT32_MAX || (at < span->end && stack_is_digit(*at)))
		return false;
	span->at = at;
	*ret = (int32_t)value;
	return true;
}

/*
 * User space ends at 2^47: addresses of libraries, heaps and position independent programs have 12
 * digits, and 16 where a tool pads them. Sums of nanoseconds may have 12 decimal digits too; the
 * mappings of the process decide whether such a number is the address of code with a name.
 */
bool stack_is_address(const struct stack_number *number)
{
	return number->prefixed || number->digits == 12 || number->digits == 16 ||
	       (number->digits > 8 && number->lettered);
}
