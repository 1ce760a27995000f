/* SPDX-License-Identifier: MIT */
/*
 * What the processor has beyond what every one of its kind has. The C library knows already;
 * libgcc asks the processor in every program that wants to know, which takes a tenth of a
 * millisecond in a virtual machine.
 */
#ifndef LIBSYM_BASE_PROCESSOR_H
#define LIBSYM_BASE_PROCESSOR_H

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/platform/x86.h>) /* glibc 2.33 */
#include <sys/platform/x86.h>
#define PROCESSOR_HAS(FEATURE, name) (CPU_FEATURE_ACTIVE(FEATURE) != 0)
#endif
#endif

#if defined(__x86_64__) && !defined(PROCESSOR_HAS)
#define PROCESSOR_HAS(FEATURE, name) (__builtin_cpu_supports(name) != 0)
#endif

#if defined(__x86_64__)
static inline _Bool processor_counts_bits(void)
{
	return PROCESSOR_HAS(POPCNT, "popcnt");
}

static inline _Bool processor_has_avx2(void)
{
	return PROCESSOR_HAS(AVX2, "avx2");
}

static inline _Bool processor_has_bmi1(void)
{
	return PROCESSOR_HAS(BMI1, "bmi");
}

static inline _Bool processor_has_bmi2(void)
{
	return PROCESSOR_HAS(BMI2, "bmi2");
}
#endif

#endif
