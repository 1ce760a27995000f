/* SPDX-License-Identifier: MIT */
/*
 * Signatures in the three styles. Expected texts are those of real maps (crossgen v1 3.1.3,
 * crossgen2 10.0, a live runtime), shortened to made-up types.
 */
#include "libsym/format/dotnet/signature.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "tests/support/metadata_builder.h"

struct sample {
	struct buf bytes;
	struct metadata *metadata;
};

/* TypeRef 1 [A]N.C, 2 [A]N.C/In, 3 [A]N.G`1, 4 [A]Is.Mod; TypeDef 1 <Module>, 2 O, 3 O/I, 4
 * "X,Y+Z". */
static void open_sample(struct sample *sample)
{
	static const uint8_t mvid[16];
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	add_module(&builder, "S", mvid);
	add_assembly(&builder, "S");
	add_assembly_ref(&builder, "A");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "N", "C");
	add_type_ref(&builder, SCOPE_TYPE_REF, 1, "", "In");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "N", "G`1");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Is", "Mod");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "", "O");
	add_type_def(&builder, "", "I");
	add_type_def(&builder, "", "X,Y+Z");
	add_nested(&builder, 3, 2);
	add_type_spec(&builder, "\x1d\x08", 2);
	buf_init(&sample->bytes, 1 << 16);
	build_metadata(&builder, &sample->bytes);
	metadata_builder_deinit(&builder);
	cr_assert(eq(ptr,
		     metadata_open(sample->bytes.data, sample->bytes.size_bytes, &sample->metadata),
		     NULL));
}

static void close_sample(struct sample *sample)
{
	metadata_close(sample->metadata);
	buf_deinit(&sample->bytes);
}

/* The type at `signature` in a style; *why_ret is the reason of a failure. */
static const char *type_text(const struct sample *sample, struct buf *out,
			     enum signature_style style, const char *signature, size_t size_bytes,
			     const char **why_ret)
{
	struct signature_scope scope = { sample->metadata, sample->metadata };
	struct reader reader = reader_over(signature, size_bytes);
	struct signature_writer writer;

	buf_clear(out);
	signature_writer_init(&writer, out, style);
	signature_write_type(&writer, &reader, scope);
	*why_ret = writer.why;
	if (!writer.why)
		cr_expect(eq(sz, reader.position, size_bytes));
	return buf_string(out);
}

struct expectation {
	const char *signature;
	size_t size_bytes;
	const char *runtime, *type_string, *crossgen2;
};

#define BYTES(literal) literal, sizeof(literal) - 1

static const struct expectation expectations[] = {
	{ BYTES("\x08"), "int32", "System.Int32", "System.Int32" },
	{ BYTES("\x18"), "native int", "System.IntPtr", "System.IntPtr" },
	{ BYTES("\x16"), "typedref", "System.TypedReference", "System.TypedReference" },
	{ BYTES("\x0f\x01"), "void*", "System.Void*", "System.Void*" },
	{ BYTES("\x10\x1d\x0e"), "string[]&", "System.String[]&", "System.String[]&" },
	{ BYTES("\x1d\x0f\x08"), "int32*[]", "System.Int32*[]", "System.Int32*[]" },
	{ BYTES("\x12\x05"), "class [A]N.C", "N.C", "N.C" },
	{ BYTES("\x11\x09"), "valuetype [A]N.C/In", "N.C+In", "N.C+In" },
	{ BYTES("\x12\x0c"), "class O/I", "O+I", "O+I" },
	{ BYTES("\x12\x10"), "class X,Y+Z", "X\\,Y\\+Z", "X,Y+Z" },
	{ BYTES("\x15\x12\x0d\x02\x08\x1c"), "class [A]N.G`1<int32,object>",
	  "N.G`1[System.Int32,System.Object]", "N.G`1[System.Int32, System.Object]" },
	{ BYTES("\x15\x12\x0d\x01\x15\x12\x0d\x01\x3e"),
	  "class [A]N.G`1<class [A]N.G`1<System.__Canon>>", "N.G`1[N.G`1[System.__Canon]]",
	  "N.G`1[N.G`1[System.__Canon]]" },
	{ BYTES("\x13\x00"), "!0", "!0", "!0" },
	{ BYTES("\x1e\x81\x00"), "!!256", "!!256", "!!256" },
	{ BYTES("\x3b\x02"), "!2", "!2", "!2" },
	/* C#'s int[,]: rank 2, no sizes, lower bounds 0 and 0. */
	{ BYTES("\x14\x08\x02\x00\x02\x00\x00"), "int32[0...,0...]", "System.Int32[,]",
	  "System.Int32[,]" },
	{ BYTES("\x14\x08\x01\x00\x00"), "int32[...]", "System.Int32[*]", "System.Int32[*]" },
	{ BYTES("\x14\x08\x03\x00\x00"), "int32[,,]", "System.Int32[,,]", "System.Int32[,,]" },
	{ BYTES("\x14\x08\x02\x02\x04\x05\x02\x00\x02"), "int32[4,1...5]", "System.Int32[,]",
	  "System.Int32[,]" },
	/* Lower bound -1 in one byte: 0x7f. */
	{ BYTES("\x14\x08\x01\x00\x01\x7f"), "int32[-1...]", "System.Int32[*]", "System.Int32[*]" },
	{ BYTES("\x1f\x11\x08"), "int32 modreq([A]Is.Mod)", "System.Int32", "System.Int32" },
	{ BYTES("\x20\x11\x10\x08"), "int32& modopt([A]Is.Mod)", "System.Int32&", "System.Int32&" },
	{ BYTES("\x45\x1c"), "object pinned", "System.Object", "System.Object" },
	{ BYTES("\x1b\x00\x02\x01\x08\x0e"), "method void *(int32,string)", "(fnptr)",
	  "System.Void (System.Int32, System.String)" },
	{ BYTES("\x1b\x09\x00\x08"), "method unmanaged int32 *()", "(fnptr)", "System.Int32 ()" },
	{ BYTES("\x1b\x05\x02\x01\x08\x41\x0e"), "method vararg void *(int32,...,string)",
	  "(fnptr)", "System.Void (System.Int32, ..., System.String)" },
	{ BYTES("\x12\x06"), "class int32[]", "System.Int32[]", "System.Int32[]" }, /* TypeSpec */
};

Test(signature, writes_types_in_three_styles)
{
	struct sample sample;
	const char *why;
	struct buf out;

	open_sample(&sample);
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
		const struct expectation *one = &expectations[i];
		const char *text;

		text = type_text(&sample, &out, SIGNATURE_RUNTIME, one->signature, one->size_bytes,
				 &why);
		cr_expect_str_eq(text, one->runtime);
		text = type_text(&sample, &out, SIGNATURE_TYPE_STRING, one->signature,
				 one->size_bytes, &why);
		cr_expect_str_eq(text, one->type_string);
		text = type_text(&sample, &out, SIGNATURE_CROSSGEN2, one->signature,
				 one->size_bytes, &why);
		cr_expect_str_eq(text, one->crossgen2);
	}
	buf_deinit(&out);
	close_sample(&sample);
}

Test(signature, skips_exactly_what_it_writes)
{
	for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
		struct reader reader =
			reader_over(expectations[i].signature, expectations[i].size_bytes);
		struct signature_budget budget = signature_budget_full();

		signature_skip_type(&reader, &budget);
		cr_expect(reader_ok(&reader), "%zu", i);
		cr_expect(eq(sz, reader.position, expectations[i].size_bytes));
	}
}

Test(signature, reads_signed_integers_of_every_length)
{
	static const struct {
		const char *bytes;
		size_t size_bytes;
		int32_t value;
	} cases[] = {
		/* ECMA-335 II.23.2's own examples. */
		{ "\x06", 1, 3 },
		{ "\x7b", 1, -3 },
		{ "\x80\x80", 2, 64 },
		{ "\x01", 1, -64 },
		{ "\xc0\x00\x40\x00", 4, 8192 },
		{ "\x80\x01", 2, -8192 },
		{ "\xdf\xff\xff\xfe", 4, 268435455 },
		{ "\xc0\x00\x00\x01", 4, -268435456 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reader reader = reader_over(cases[i].bytes, cases[i].size_bytes);

		cr_expect(eq(i32, signature_signed(&reader), cases[i].value));
		cr_expect(reader_ok(&reader));
	}
}

Test(signature, replaces_parameters_by_arguments_only_in_the_crossgen2_style)
{
	static const char signature[] = "\x15\x12\x0d\x02\x13\x00\x1e\x01";
	struct signature_arguments types, methods;
	struct signature_writer writer;
	struct sample sample;
	struct reader reader;
	struct buf out;

	open_sample(&sample);
	buf_init(&out, 1 << 20);
	types.scope = (struct signature_scope){ sample.metadata, sample.metadata };
	types.count = 1;
	/* An argument that is itself a parameter is not looked up again, which would never end. */
	types.types = reader_over("\x1d\x08\x1e\x01", 4);
	types.positions[0] = 0;
	types.positions[1] = 2;
	methods = types;
	methods.count = 2;
	signature_writer_init(&writer, &out, SIGNATURE_CROSSGEN2);
	writer.type_arguments = &types;
	writer.method_arguments = &methods;
	reader = reader_over(signature, sizeof(signature) - 1);
	signature_write_type(&writer, &reader, types.scope);
	cr_expect(eq(ptr, (void *)writer.why, NULL));
	cr_expect_str_eq(buf_string(&out), "N.G`1[System.Int32[], !!1]");
	buf_deinit(&out);
	close_sample(&sample);
}

static void expect_failure(const struct sample *sample, const char *signature, size_t size_bytes)
{
	const char *why;
	struct buf out;

	buf_init(&out, 1 << 20);
	type_text(sample, &out, SIGNATURE_RUNTIME, signature, size_bytes, &why);
	cr_expect(why != NULL);
	buf_deinit(&out);
}

Test(signature, rejects_malformed_types)
{
	static const struct {
		const char *bytes;
		size_t size_bytes;
	} cases[] = {
		{ "", 0 },
		{ BYTES("\x00") },
		{ BYTES("\x17") },
		{ BYTES("\x21") },
		{ BYTES("\xff") },
		{ BYTES("\x12") },
		{ BYTES("\x12\x07") },                     /* tag 3 */
		{ BYTES("\x12\x00") },                     /* rid 0 */
		{ BYTES("\x12\xc0\x01\x00\x00") },         /* rid far away */
		{ BYTES("\x14\x08\x00") },                 /* rank 0 */
		{ BYTES("\x14\x08\x21\x00\x00") },         /* rank 33 */
		{ BYTES("\x14\x08\x01\xdf\xff\xff\xff") }, /* endless sizes */
		{ BYTES("\x15\x12\x0d\xdf\xff\xff\xff\x08") },
		{ BYTES("\x1b\x06\x00\x01") }, /* no such calling convention */
		{ BYTES("\x3f\x01\x12\x05") }, /* another module, without a callback */
		{ BYTES("\x1d") },
	};
	struct sample sample;

	open_sample(&sample);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_failure(&sample, cases[i].bytes, cases[i].size_bytes);
	close_sample(&sample);
}

/* LIMIT_SIGNATURE_DEPTH as a constant expression. The last of so many types is the innermost. */
enum {
	DEEPEST = 64
};

/* `depth` times the bytes that open a level, one int32, `depth` times the bytes that close it.
 * Nothing else is wrong with it. */
static char *nest(const char *open, size_t open_bytes, const char *close, size_t close_bytes,
		  size_t depth, size_t *size_bytes_ret)
{
	size_t size_bytes = depth * (open_bytes + close_bytes) + 1;
	char *bytes = malloc(size_bytes), *at = bytes;

	cr_assert_not_null(bytes);
	for (size_t i = 0; i < depth; i++, at += open_bytes)
		memcpy(at, open, open_bytes);
	*at++ = 0x08;
	for (size_t i = 0; i < depth; i++, at += close_bytes)
		memcpy(at, close, close_bytes);
	*size_bytes_ret = size_bytes;
	return bytes;
}

static void expect_reason(const char *why, bool good)
{
	cr_expect_str_eq(why ? why : "none", good ? "none" : "signature past the limits");
}

static void expect_depth(const struct sample *sample, const char *signature, size_t size_bytes,
			 bool good)
{
	struct reader reader = reader_over(signature, size_bytes);
	struct signature_budget budget = signature_budget_full();

	signature_skip_type(&reader, &budget);
	expect_reason(reader.failure, good);
	for (int style = SIGNATURE_RUNTIME; style <= SIGNATURE_CROSSGEN2; style++) {
		const char *why;
		struct buf out;

		buf_init(&out, 1 << 20);
		type_text(sample, &out, style, signature, size_bytes, &why);
		expect_reason(why, good);
		buf_deinit(&out);
	}
}

Test(signature, is_rejected_100000_levels_deep)
{
	static const struct {
		const char *open;
		size_t open_bytes;
		const char *close;
		size_t close_bytes;
	} levels[] = {
		{ BYTES("\x1d"), BYTES("") },             /* T[] */
		{ BYTES("\x0f"), BYTES("") },             /* T* */
		{ BYTES("\x10"), BYTES("") },             /* T& */
		{ BYTES("\x45"), BYTES("") },             /* pinned */
		{ BYTES("\x1f\x11"), BYTES("") },         /* modreq */
		{ BYTES("\x20\x11"), BYTES("") },         /* modopt */
		{ BYTES("\x15\x12\x0d\x01"), BYTES("") }, /* G<T> */
		{ BYTES("\x15"), BYTES("\x00") },         /* T<>: the instantiated type is nested */
		{ BYTES("\x14"), BYTES("\x01\x00\x00") }, /* T[...] */
		{ BYTES("\x1b\x00\x00"), BYTES("") },     /* method T *() */
		{ BYTES("\x1b\x00\x01\x01"), BYTES("") }, /* method void *(T) */
		{ BYTES("\x3c"), BYTES("") },             /* native array */
		{ BYTES("\x3d"), BYTES("") },             /* native value type */
	};
	struct sample sample;

	open_sample(&sample);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		static const size_t depths[] = { 10, DEEPEST - 1, DEEPEST, 100000 };

		for (size_t j = 0; j < sizeof(depths) / sizeof(depths[0]); j++) {
			size_t size_bytes;
			char *bytes = nest(levels[i].open, levels[i].open_bytes, levels[i].close,
					   levels[i].close_bytes, depths[j], &size_bytes);

			expect_depth(&sample, bytes, size_bytes, depths[j] < DEEPEST);
			free(bytes);
		}
	}
	close_sample(&sample);
}

Test(signature, bounds_the_number_of_types)
{
	static char wide[3 * 16384 + 8] = "\x15\x12\x0d\xc0\x00\x40\x00";
	struct signature_budget budget = signature_budget_full();
	struct reader reader = reader_over(wide, sizeof(wide));
	struct sample sample;

	memset(wide + 7, 0x08, sizeof(wide) - 7);
	open_sample(&sample);
	expect_failure(&sample, wide, sizeof(wide));
	signature_skip_type(&reader, &budget);
	cr_expect(not(reader_ok(&reader)));
	close_sample(&sample);
}

Test(signature, bounds_a_type_specification_that_contains_itself)
{
	static const uint8_t mvid[16];
	struct metadata_builder builder;
	struct sample sample;

	metadata_builder_init(&builder);
	add_module(&builder, "S", mvid);
	add_type_spec(&builder, "\x12\x06", 2);
	buf_init(&sample.bytes, 1 << 16);
	build_metadata(&builder, &sample.bytes);
	metadata_builder_deinit(&builder);
	cr_assert(eq(ptr,
		     metadata_open(sample.bytes.data, sample.bytes.size_bytes, &sample.metadata),
		     NULL));
	expect_failure(&sample, "\x12\x06", 2);
	close_sample(&sample);
}

Test(signature, bounds_classes_and_scopes_that_enclose_each_other)
{
	static const uint8_t mvid[16];
	struct metadata_builder builder;
	struct sample sample;

	metadata_builder_init(&builder);
	add_module(&builder, "S", mvid);
	add_type_ref(&builder, SCOPE_TYPE_REF, 2, "", "A");
	add_type_ref(&builder, SCOPE_TYPE_REF, 1, "", "B");
	add_type_def(&builder, "", "C");
	add_type_def(&builder, "", "D");
	add_nested(&builder, 1, 2);
	add_nested(&builder, 2, 1);
	buf_init(&sample.bytes, 1 << 16);
	build_metadata(&builder, &sample.bytes);
	metadata_builder_deinit(&builder);
	cr_assert(eq(ptr,
		     metadata_open(sample.bytes.data, sample.bytes.size_bytes, &sample.metadata),
		     NULL));
	expect_failure(&sample, "\x12\x05", 2);
	expect_failure(&sample, "\x12\x04", 2);
	close_sample(&sample);
}

Test(signature, bounds_the_bytes_of_a_name)
{
	static const uint8_t mvid[16];
	struct metadata_builder builder;
	static char name[40000];
	struct sample sample;

	memset(name, 'n', sizeof(name) - 1);
	metadata_builder_init(&builder);
	add_module(&builder, "S", mvid);
	add_type_def(&builder, "", name);
	buf_init(&sample.bytes, 1 << 20);
	build_metadata(&builder, &sample.bytes);
	metadata_builder_deinit(&builder);
	cr_assert(eq(ptr,
		     metadata_open(sample.bytes.data, sample.bytes.size_bytes, &sample.metadata),
		     NULL));
	/* Two names of 40,000 bytes exceed the limit of a name. */
	cr_assert(LIMIT_NAME_BYTES < 80000);
	expect_failure(&sample, "\x15\x12\x04\x01\x12\x04", 6);
	close_sample(&sample);
}
