/* SPDX-License-Identifier: MIT */
/* Calls as the assembler writes them, and bytes that are no call. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "mapgen/live/call_site.h"

#define ENDS(...)                                                                                  \
	call_may_end((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

#if defined(__x86_64__)
Test(call_site, knows_calls)
{
	cr_expect(ENDS(0xe8, 1, 2, 3, 4), "call rel32");
	cr_expect(ENDS(0xff, 0xd0), "call *%%rax");
	cr_expect(ENDS(0x41, 0xff, 0xd3), "call *%%r11");
	cr_expect(ENDS(0xff, 0x10), "call *(%%rax)");
	cr_expect(ENDS(0xff, 0x50, 0x18), "call *0x18(%%rax)");
	cr_expect(ENDS(0xff, 0x90, 1, 2, 0, 0), "call *0x201(%%rax)");
	cr_expect(ENDS(0xff, 0x15, 1, 2, 3, 4), "call *0x4030201(%%rip)");
	cr_expect(ENDS(0xff, 0x14, 0xc8), "call *(%%rax,%%rcx,8)");
	cr_expect(ENDS(0xff, 0x54, 0x24, 0x10), "call *0x10(%%rsp)");
	cr_expect(ENDS(0xff, 0x94, 0x24, 1, 2, 0, 0), "call *0x201(%%rsp)");
	cr_expect(ENDS(0xff, 0x14, 0x25, 1, 2, 3, 4), "call *0x4030201");
}

Test(call_site, knows_what_is_none)
{
	cr_expect_not(ENDS(0, 0, 0, 0, 0, 0, 0), "data");
	cr_expect_not(ENDS(0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90), "padding");
	cr_expect_not(ENDS(0xe9, 1, 2, 3, 4), "jmp rel32");
	cr_expect_not(ENDS(0xff, 0xe0), "jmp *%%rax");
	cr_expect_not(ENDS(0xff, 0x25, 1, 2, 3, 4), "jmp *0x4030201(%%rip)");
	cr_expect_not(ENDS(0x5d, 0xc3), "pop; ret");
	cr_expect_not(ENDS(0xff, 0x14), "half of a call");
	cr_expect_not(ENDS(0xff, 0x50), "half of a call");
	cr_expect_not(ENDS(0xe8, 1, 2, 3), "half of a call");
	cr_expect_not(call_may_end(NULL, 0));
}

Test(call_site, knows_where_a_signal_handler_returns_to)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x90 };

	cr_expect(is_signal_return(code, sizeof(code)));
	cr_expect_not(is_signal_return(code, 8), "a part of it");
	cr_expect_not(is_signal_return(code + 1, 9));
	cr_expect(signal_return_at(getpid(), (uintptr_t)code));
	cr_expect_not(signal_return_at(getpid(), (uintptr_t)code + 1));
	cr_expect_not(signal_return_at(getpid(), 7), "what cannot be read is none");
}
#elif defined(__aarch64__)
Test(call_site, knows_calls_and_what_is_none)
{
	cr_expect(ENDS(1, 2, 3, 0x94), "bl");
	cr_expect(ENDS(1, 2, 3, 0x97), "bl backwards");
	cr_expect(ENDS(0, 0, 0x3f, 0xd6), "blr x0");
	cr_expect(ENDS(0x1f, 0x08, 0x3f, 0xd6), "blraaz x0");
	cr_expect_not(ENDS(0, 0, 0x1f, 0xd6), "br x0");
	cr_expect_not(ENDS(1, 2, 3, 0x14), "b");
	cr_expect_not(ENDS(0xc0, 0x03, 0x5f, 0xd6), "ret");
	cr_expect_not(ENDS(0, 0, 0, 0), "data");
	cr_expect_not(ENDS(0x3f, 0xd6), "half of an instruction");
}

Test(call_site, knows_where_a_signal_handler_returns_to)
{
	static const uint8_t code[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0 };

	cr_expect(signal_return_at(getpid(), (uintptr_t)code));
	cr_expect_not(signal_return_at(getpid(), (uintptr_t)code + 1));
}
#endif

/* Four of these are `bl` on ARM64; one begins a call on x86-64. */
#ifdef __aarch64__
#define CALL_BYTE 0x97
#else
#define CALL_BYTE 0xe8
#endif
static uint8_t code[16];

Test(call_site, looks_into_a_process)
{
	cr_expect_not(call_may_end_at(getpid(), (uintptr_t)&code[16]));
	memset(code, CALL_BYTE, sizeof(code));
	cr_expect(call_may_end_at(getpid(), (uintptr_t)&code[16]));
	cr_expect(call_may_end_at(getpid(), 7), "what cannot be read may be one");
}
