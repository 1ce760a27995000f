/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "mapgen/view/frame_text.h"

static void expect_short(const char *name, enum frame_kind kind, const char *expected)
{
	const struct profile_frame frame = {
		.name = name, .image = "", .tier = "", .reason = "", .kind = kind, .is_named = true
	};
	struct buf text;

	buf_init(&text, 1 << 16);
	frame_text_short(&text, &frame);
	cr_expect(eq(str, (char *)buf_string(&text), (char *)expected), "%s", name);
	buf_deinit(&text);
}

Test(frame_text, leaves_namespaces_and_signatures_out)
{
	expect_short("int32 [Store.Core] Contoso.Store::TopByTag(string)", FRAME_KIND_JITTED,
		     "Store.TopByTag");
	expect_short(
		"instance void [System.Private.CoreLib] System.Threading.Thread::StartCallback()",
		FRAME_KIND_PRECOMPILED, "Thread.StartCallback");
	expect_short("instance void [a] Top::.ctor()", FRAME_KIND_JITTED, "new Top");
}

Test(frame_text, leaves_type_arguments_out)
{
	expect_short("instance void [System.Private.CoreLib] "
		     "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]::"
		     "Add(!0,!1)",
		     FRAME_KIND_PRECOMPILED, "Dictionary.Add");
}

Test(frame_text, names_nested_types)
{
	expect_short("instance int32 [a] N.Outer+Inner::Run()", FRAME_KIND_JITTED,
		     "Outer.Inner.Run");
}

Test(frame_text, gives_async_methods_and_lambdas_the_name_of_their_source)
{
	expect_short("instance void [Store.Web] Contoso.Web.Store+<SlowAsync>d__5::MoveNext()",
		     FRAME_KIND_JITTED, "async Store.SlowAsync");
	expect_short("instance void [Store.Web] "
		     "Contoso.Web.Program+<>c__DisplayClass0_0::<Main>b__3()",
		     FRAME_KIND_JITTED, "lambda in Program.Main");
	expect_short("int32 [Store.Web] Contoso.Web.Program::<Main>g__Add|0_1(int32)",
		     FRAME_KIND_JITTED, "local Add in Program.Main");
}

Test(frame_text, names_frames_in_each_form)
{
	static const char name[] = "instance void [a] N.List`1[System.Int32]::Add(!0)";
	const struct profile_frame frame = { .name = name,
					     .image = "",
					     .tier = "",
					     .reason = "",
					     .kind = FRAME_KIND_JITTED,
					     .is_named = true };
	struct buf text;

	buf_init(&text, 1 << 16);
	frame_text_append(&text, &frame, FRAME_NAMES_CSHARP);
	buf_append_char(&text, ' ');
	frame_text_append(&text, &frame, FRAME_NAMES_SHORT);
	buf_append_char(&text, ' ');
	frame_text_append(&text, &frame, FRAME_NAMES_FULL);
	cr_expect(eq(str, (char *)buf_string(&text),
		     (char *)"List<int>.Add(int) List.Add "
			     "instance void [a] N.List`1[System.Int32]::Add(!0)"));
	buf_deinit(&text);
}

Test(frame_text, takes_the_short_form_where_the_other_does_not_fit)
{
	const struct profile_frame frame = { .name = "void [a] N.T::M(int32)",
					     .image = "",
					     .tier = "",
					     .reason = "",
					     .kind = FRAME_KIND_JITTED,
					     .is_named = true };
	struct buf text;

	buf_init(&text, 1 << 16);
	frame_text_fit(&text, &frame, FRAME_NAMES_CSHARP, 8);
	buf_append_char(&text, ' ');
	frame_text_fit(&text, &frame, FRAME_NAMES_CSHARP, 7);
	buf_append_char(&text, ' ');
	frame_text_fit(&text, &frame, FRAME_NAMES_FULL, 7);
	cr_expect(
		eq(str, (char *)buf_string(&text), (char *)"T.M(int) T.M void [a] N.T::M(int32)"));
	buf_deinit(&text);
}

Test(frame_text, leaves_parameters_of_native_functions_out)
{
	expect_short("SVR::gc_heap::mark_object_simple(unsigned char**)", FRAME_KIND_RUNTIME,
		     "SVR::gc_heap::mark_object_simple");
	expect_short("(anonymous namespace)::work(int)", FRAME_KIND_NATIVE,
		     "(anonymous namespace)::work");
	expect_short("std::function<void ()>::operator()() const", FRAME_KIND_NATIVE,
		     "std::function<void ()>::operator()");
	expect_short("main", FRAME_KIND_NATIVE, "main");
}

Test(frame_text, keeps_malformed_names_within_their_bounds)
{
	static const char *const names[] = { "",    "::",      "a::",         "::b",
					     "[",   "x [",     "<>::<>",      "+::+",
					     "<a",  "N.T[::M", "T+<M>d__1::", "....::....",
					     "((((" };
	struct buf text;

	buf_init(&text, 1 << 16);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (int kind = 0; kind < FRAME_KINDS; kind++) {
			const struct profile_frame frame = { .name = names[i],
							     .image = "",
							     .tier = "",
							     .reason = "",
							     .kind = (enum frame_kind)kind,
							     .is_named = true };

			buf_clear(&text);
			frame_text_short(&text, &frame);
			cr_expect(text.size_bytes < 64);
		}
	buf_deinit(&text);
}

Test(frame_text, shows_the_image_of_a_frame_without_a_name)
{
	const struct profile_frame frame = { .name = FRAME_NAME_UNKNOWN,
					     .image = "/lib/libfoo.so",
					     .tier = "",
					     .reason = "stripped" };
	struct buf text;

	buf_init(&text, 1 << 16);
	frame_text_short(&text, &frame);
	cr_expect(eq(str, (char *)buf_string(&text), (char *)"[unknown] in libfoo.so"));
	buf_deinit(&text);
}

static bool is_framework(const char *name, enum frame_kind kind)
{
	const struct profile_frame frame = { .name = name, .kind = kind, .is_named = true };

	return frame_text_is_framework(&frame);
}

Test(frame_text, distinguishes_the_program_from_what_comes_with_dotnet)
{
	cr_expect(not(is_framework("int32 [app] Store::Find()", FRAME_KIND_JITTED)));
	cr_expect(is_framework("void [System.Private.CoreLib] System.GC::Collect()",
			       FRAME_KIND_PRECOMPILED));
	cr_expect(is_framework("instance void [Microsoft.Extensions.Logging] "
			       "dynamicClass::IL_STUB_InstantiatingStub(string)",
			       FRAME_KIND_JITTED));
	cr_expect(not(is_framework("object [Anonymously Hosted DynamicMethods Assembly] "
				   "dynamicClass::lambda_method1(object)",
				   FRAME_KIND_JITTED)));
	cr_expect(is_framework("malloc", FRAME_KIND_NATIVE));
}
