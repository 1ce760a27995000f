/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/diagnostics/rundown_name.h"
#include "tests/support/metadata_builder.h"
#include "tests/support/nettrace_builder.h"

static const char provider[] = "Microsoft-Windows-DotNETRuntimeRundown";

static void put_signed_method(struct nettrace_builder *builder, uint64_t module, uint64_t start,
			      uint32_t size, uint32_t flags, const char *owner, const char *name,
			      const char *signature)
{
	struct buf payload;

	buf_init(&payload, 4096);
	put_u64(&payload, 0x1234);
	put_u64(&payload, module);
	put_u64(&payload, start);
	put_u32(&payload, size);
	put_u32(&payload, 0x06000001);
	put_u32(&payload, flags);
	put_utf16(&payload, owner);
	put_utf16(&payload, name);
	put_utf16(&payload, signature);
	put_event(builder, 1, payload.data, payload.size_bytes);
	buf_deinit(&payload);
}

static void put_method(struct nettrace_builder *builder, uint64_t module, uint64_t start,
		       uint32_t size, uint32_t flags, const char *owner, const char *name)
{
	put_signed_method(builder, module, start, size, flags, owner, name,
			  "instance void  (int,bool)");
}

static void put_method_of(struct nettrace_builder *builder, uint64_t start, const char *signature)
{
	put_signed_method(builder, 7, start, 16, RUNDOWN_JITTED, "Ns.T", "M", signature);
}

static void put_module(struct nettrace_builder *builder, uint32_t kind, uint64_t id,
		       const char *path)
{
	struct buf payload;

	buf_init(&payload, 4096);
	put_u64(&payload, id);
	put_u64(&payload, 1);
	if (kind == 2)
		put_u64(&payload, 2);
	put_u32(&payload, 0x28);
	put_u32(&payload, 0);
	put_utf16(&payload, path);
	put_event(builder, kind, payload.data, payload.size_bytes);
	buf_deinit(&payload);
}

static void begin(struct nettrace_builder *builder)
{
	nettrace_builder_init(builder);
	begin_block(builder, true);
	put_kind(builder, 1, provider, 144, 2);
	put_kind(builder, 2, provider, 152, 1);
	put_kind(builder, 3, provider, 154, 1);
	put_kind(builder, 4, provider, 146, 1);
	put_kind(builder, 5, "Microsoft-Windows-DotNETRuntime", 144, 2);
	end_block(builder, "MetadataBlock");
	begin_block(builder, true);
}

static void finish(struct nettrace_builder *builder, struct rundown *rundown)
{
	end_block(builder, "EventBlock");
	end_stream(builder);
	cr_assert_null(rundown_parse(builder->stream.data, builder->stream.size_bytes, rundown));
	nettrace_builder_deinit(builder);
}

Test(rundown, lists_methods_by_address_with_their_modules)
{
	struct nettrace_builder builder;
	struct rundown rundown;

	begin(&builder);
	put_method(&builder, 7, 0x2000, 16, RUNDOWN_JITTED | 4 << 7, "Ns.T`1[System.Int32]", "M");
	put_method(&builder, 8, 0x1000, 32, RUNDOWN_DYNAMIC, "dynamicClass", "IL_STUB");
	put_module(&builder, 2, 7, "/app/a.dll");
	put_module(&builder, 3, 8, "");
	put_event(&builder, 4, "", 0);
	finish(&builder, &rundown);
	cr_assert_eq(rundown.method_count, 2);
	cr_assert_eq(rundown.methods[0].start_address, 0x1000);
	cr_assert_str_eq(rundown.methods[0].name, "IL_STUB");
	cr_assert_str_eq(rundown.methods[1].owner, "Ns.T`1[System.Int32]");
	cr_assert_eq(rundown.methods[1].size_bytes, 16);
	cr_assert_str_eq(rundown_tier(rundown.methods[1].flags), "OptimizedTier1");
	cr_assert_eq(rundown.module_count, 2);
	cr_assert_eq(rundown.modules[0].id, 7);
	cr_assert_str_eq(rundown.modules[0].path, "/app/a.dll");
	cr_assert_eq(rundown.modules[1].id, 8);
	cr_assert_str_eq(rundown.modules[1].path, "");
	cr_assert(rundown.is_complete);
	rundown_deinit(&rundown);
}

Test(rundown, records_the_task_type_that_a_method_returns)
{
	struct nettrace_builder builder;
	struct rundown rundown;

	begin(&builder);
	put_method_of(&builder, 0x1000, "class System.Threading.Tasks.Task  (int32)");
	put_method_of(&builder, 0x2000,
		      "instance generic required_modifier "
		      "System.Threading.Tasks.Task void  ()");
	put_method_of(&builder, 0x3000, "");
	finish(&builder, &rundown);
	cr_assert_eq(rundown.method_count, 3);
	cr_expect_eq(rundown.methods[0].returned.tasks, 1);
	cr_expect_not(rundown.methods[0].returned.is_modified);
	cr_expect(rundown.methods[1].returned.is_modified);
	cr_expect(rundown.methods[1].returned.is_known);
	cr_expect_not(rundown.methods[2].returned.is_known);
	cr_expect_str_eq(rundown.methods[2].name, "M");
	rundown_deinit(&rundown);
}

Test(rundown, keeps_the_first_of_repeated_rows)
{
	struct nettrace_builder builder;
	struct rundown rundown;

	begin(&builder);
	for (uint64_t module = 0; module < 15; module++)
		put_method(&builder, module, 0x1000, 16, RUNDOWN_JITTED, "Ns.T", "M");
	put_module(&builder, 2, 7, "/app/a.dll");
	put_module(&builder, 3, 7, "/app/a.dll");
	finish(&builder, &rundown);
	cr_assert_eq(rundown.method_count, 1);
	cr_assert_eq(rundown.module_count, 1);
	rundown_deinit(&rundown);
}

Test(rundown, leaves_out_empty_cold_truncated_and_foreign_events)
{
	struct nettrace_builder builder;
	struct rundown rundown;

	begin(&builder);
	put_method(&builder, 7, 0x1000, 0, RUNDOWN_JITTED, "Ns.T", "Empty");
	put_method(&builder, 7, 0x2000, 16, RUNDOWN_JITTED | 1u << 28, "Ns.T", "Cold");
	put_method(&builder, 7, UINT64_MAX - 4, 16, RUNDOWN_JITTED, "Ns.T", "Beyond");
	put_event(&builder, 1, "torn", 4);
	put_event(&builder, 2, "torn", 4);
	put_event(&builder, 5, "torn", 4);
	finish(&builder, &rundown);
	cr_assert_eq(rundown.method_count, 0);
	cr_assert_eq(rundown.module_count, 0);
	cr_assert_not(rundown.is_complete);
	rundown_deinit(&rundown);
}

/* ---- names ------------------------------------------------------------------ */

/* class Ns.Outer { class Inner<T> { instance int32 M(!0, native int); static ValueTask<string[]>
 * Lines(int32) } } in assembly A */
static struct metadata *make_metadata(struct buf *bytes)
{
	static const uint8_t signature[] = { 0x20, 2, 0x08, 0x13, 0, 0x18 };
	static const uint8_t lines[] = { 0x00, 1, 0x15, 0x11, 0x05, 1, 0x1d, 0x0e, 0x08 };
	struct metadata_builder builder;
	struct metadata *metadata;
	uint8_t mvid[16] = { 1 };
	uint32_t outer, inner;

	metadata_builder_init(&builder);
	add_module(&builder, "A.dll", mvid);
	add_assembly(&builder, "A");
	add_assembly_ref(&builder, "R");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "System.Threading.Tasks", "ValueTask`1");
	outer = add_type_def(&builder, "Ns", "Outer");
	inner = add_type_def(&builder, "", "Inner`1");
	add_method(&builder, "M", signature, sizeof(signature));
	add_method(&builder, "Lines", lines, sizeof(lines));
	add_nested(&builder, inner, outer);
	buf_init(bytes, 1 << 16);
	build_metadata(&builder, bytes);
	metadata_builder_deinit(&builder);
	cr_assert_null(metadata_open(bytes->data, bytes->size_bytes, &metadata));
	return metadata;
}

static void assert_name(const struct rundown_method *method, const char *expected)
{
	struct buf bytes, name;
	struct metadata *metadata = make_metadata(&bytes);

	buf_init(&name, 1 << 17);
	cr_assert(rundown_write_name(method, metadata, &name));
	cr_assert_str_eq(buf_string(&name), expected);
	buf_deinit(&name);
	metadata_close(metadata);
	buf_deinit(&bytes);
}

static const struct rundown_method good = {
	.token = 0x06000001,
	.flags = RUNDOWN_JITTED,
	.owner = "Ns.Outer+Inner`1[System.Int32]",
	.name = "M",
};

Test(rundown_name, uses_the_signature_in_metadata)
{
	assert_name(&good, "instance int32 [A] Ns.Outer+Inner`1[System.Int32]::M(!0,native int)");
}

/*
 * Async methods have two bodies with one token. In .NET 10 the return type of the second is
 * modified by the task type of the first; in .NET 11 it is the type inside the task.
 */
Test(rundown_name, recognises_async_methods_by_their_reported_return_type)
{
	static const struct {
		const char *signature, *expected;
	} cases[] = {
		{ "value class System.Threading.Tasks.ValueTask`1<class System.String[]>  (int32)",
		  "valuetype [R]System.Threading.Tasks.ValueTask`1<string[]> [A] "
		  "Ns.Outer+Inner`1[System.Int32]::Lines(int32)" },
		{ "required_modifier System.Threading.Tasks.ValueTask`1 class System.String[]  "
		  "(int32)",
		  "string[] modreq([R]System.Threading.Tasks.ValueTask`1) [A] "
		  "Ns.Outer+Inner`1[System.Int32]::Lines(int32)" },
		{ "class System.String[]  (int32)",
		  "string[] [A] Ns.Outer+Inner`1[System.Int32]::Lines(int32)" },
		{ "class System.Threading.Tasks.Task`1<int32>  (int32)",
		  "Ns.Outer+Inner`1[System.Int32]::Lines" },
	};
	struct rundown_method method = good;

	method.token = 0x06000002;
	method.name = "Lines";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		method.returned = runtime_async_read_text(cases[i].signature);
		assert_name(&method, cases[i].expected);
	}
}

Test(rundown_name, ignores_metadata_with_other_names)
{
	struct rundown_method other = good;

	other.name = "N";
	assert_name(&other, "Ns.Outer+Inner`1[System.Int32]::N");
	other = good;
	other.owner = "Ns.Outer+Inner`12";
	assert_name(&other, "Ns.Outer+Inner`12::M");
	other = good;
	other.token = 0x06000003;
	assert_name(&other, "Ns.Outer+Inner`1[System.Int32]::M");
	other = good;
	other.token = 0x0a000001;
	assert_name(&other, "Ns.Outer+Inner`1[System.Int32]::M");
	other = good;
	other.flags = RUNDOWN_DYNAMIC;
	assert_name(&other, "Ns.Outer+Inner`1[System.Int32]::M");
}

Test(rundown_name, works_without_metadata)
{
	struct buf name;

	buf_init(&name, 1 << 17);
	cr_assert(rundown_write_name(&good, NULL, &name));
	cr_assert_str_eq(buf_string(&name), "Ns.Outer+Inner`1[System.Int32]::M");
	buf_deinit(&name);
}

/* Cut at the limit, two of them would have one name. */
Test(rundown_name, rejects_a_name_above_the_limit)
{
	char *owner = malloc(70001);
	struct rundown_method method = good;
	struct buf name;

	memset(owner, 'a', 70000);
	owner[70000] = '\0';
	method.owner = owner;
	buf_init(&name, 1 << 17);
	cr_expect_not(rundown_write_name(&method, NULL, &name));
	cr_expect_eq(name.failure, BUF_OK);
	buf_deinit(&name);
	free(owner);
}
