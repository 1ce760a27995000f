/* SPDX-License-Identifier: MIT */
/* Short forms of names that real runtimes and compilers wrote. */
#include "libsym/format/dotnet/method_name.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static void expect_short(const char *name, const char *expected)
{
	char room[1024];
	size_t length = method_name_shorten(name, strlen(name), room, sizeof(room));

	cr_expect_str_eq(room, expected, "from %s", name);
	cr_expect(eq(sz, length, strlen(expected)));
}

Test(method_name, shortens_names_of_the_runtime)
{
	expect_short("instance class [System.Runtime]System.Collections.Generic.IEnumerable`1<!!0> "
		     "[System.Linq] System.Linq.Enumerable+<X>d__1`2[System.Int32,System.__Canon]"
		     "::MoveNext(int32,class [A]B)",
		     "System.Linq.Enumerable+<X>d__1`2[System.Int32,System.__Canon]::MoveNext");
	expect_short("void [test] PerfViewTierEventsTest::Main()", "PerfViewTierEventsTest::Main");
	expect_short("instance void [App] Ns.Outer+Inner::.ctor(string[],int32)",
		     "Ns.Outer+Inner::.ctor");
	expect_short("int32[0...,0...] [App] P::Grid(int32[0...,0...])", "P::Grid");
}

Test(method_name, drops_the_tier_after_the_parameters)
{
	expect_short("void [test] Ns.T::Main()[OptimizedTier1]", "Ns.T::Main");
	expect_short("void [test] Ns.T::Main(int32[])[QuickJitted]", "Ns.T::Main");
	expect_short("instance !0[] [A] N.G`1[System.__Canon]::Get(!0[])",
		     "N.G`1[System.__Canon]::Get");
}

Test(method_name, keeps_the_mark_of_a_precode)
{
	char room[16];

	expect_short("[precode] instance bool [App] Ns.T::Run(int32)", "[precode] Ns.T::Run");
	expect_short("[precode] ", "[precode] ");
	expect_short("[precode] stub of something", "[precode] stub of something");
	cr_expect(eq(sz, method_name_shorten("[precode] void [A] T::M()", 25, room, 5), 14));
	cr_expect_str_eq(room, "[pre");
	cr_expect(eq(sz, method_name_shorten("[precode] void [A] T::M()", 25, room, 13), 14));
	cr_expect_str_eq(room, "[precode] T:");
}

Test(method_name, finds_the_owner_after_function_pointers_and_modifiers)
{
	expect_short("method void *(class [A]B,int32) [Asm] O::M(method int32 *(string))", "O::M");
	expect_short("instance void modreq([System.Runtime]System.Runtime.CompilerServices."
		     "IsExternalInit) [App] R::set_X(int32)",
		     "R::set_X");
	expect_short("unmanaged cdecl int32 [App] O::Native(native int)", "O::Native");
}

Test(method_name, keeps_names_of_explicit_implementations_whole)
{
	expect_short("instance valuetype [System.Runtime]System.ValueTuple`2<!0,!1> [System.Linq] "
		     "System.Linq.Enumerable+<ZipIterator>d__242`2[System.__Canon,System.__Canon]::"
		     "System.Collections.Generic.IEnumerator<(TFirst,TSecond)>.get_Current()",
		     "System.Linq.Enumerable+<ZipIterator>d__242`2[System.__Canon,System.__Canon]::"
		     "System.Collections.Generic.IEnumerator<(TFirst,TSecond)>.get_Current");
	expect_short("instance void [App] Bar::Exo.IFoo<System.Int32,Exo.E>.M(int32)",
		     "Bar::Exo.IFoo<System.Int32,Exo.E>.M");
	expect_short("instance void [App] Foo+<Exo-IFoo<System-Int32\\,Exo-E>-M>d__0::MoveNext()",
		     "Foo+<Exo-IFoo<System-Int32\\,Exo-E>-M>d__0::MoveNext");
}

Test(method_name, shortens_dynamic_methods)
{
	expect_short("instance void [System.Private.CoreLib] dynamicClass::"
		     "IL_STUB_MulticastDelegate_Invoke(!0)[Optimized]",
		     "dynamicClass::IL_STUB_MulticastDelegate_Invoke");
}

Test(method_name, shortens_names_of_crossgen2)
{
	expect_short("System.Int32 Interop+Globalization::WindowsIdToIanaId(System.String, "
		     "System.IntPtr, System.Char*, System.Int32)",
		     "Interop+Globalization::WindowsIdToIanaId");
	expect_short("Interop::CheckIo(Interop+Error, System.String, System.Boolean)",
		     "Interop::CheckIo");
	expect_short("System.Collections.Generic.Dictionary`2[System.TypeCode, System.__Canon] "
		     "System.Linq.Enumerable::ToDictionary(System.Func`2[System.__Canon, "
		     "System.TypeCode])",
		     "System.Linq.Enumerable::ToDictionary");
	expect_short("Ns.Pair`2[System.Int32, System.__Canon]::Swap()",
		     "Ns.Pair`2[System.Int32, System.__Canon]::Swap");
	expect_short("System.Void (System.Int32, System.String) Ns.O::Get()", "Ns.O::Get");
}

Test(method_name, leaves_stubs_alone)
{
	expect_short("stub<1> AllocateTemporaryEntryPoints<PRECODE_FIXUP>",
		     "stub<1> AllocateTemporaryEntryPoints<PRECODE_FIXUP>");
	expect_short("stub ReportStubBlock<Unknown> ", "stub ReportStubBlock<Unknown> ");
}

Test(method_name, leaves_native_names_alone)
{
	static const char *const names[] = {
		"std::vector<int, std::allocator<int> >::push_back(int const&)",
		"Foo::bar(char const*, ...)",
		"Foo::bar(int) [clone .part.0]",
		"MethodTable::DoFullyLoad(Generics::RecursionGraph*, ClassLoadLevel)",
		"void Thread::Foo<int>(int)",
		"operator new[](unsigned long)",
		"operator new [] (unsigned long)",
		"core::ops::function::FnOnce::call_once",
		"_Z3foov",
		"__libc_start_main",
		"a [b] c",
		"a [b] ::(",
		"",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect_short(names[i], names[i]);
}

Test(method_name, leaves_incomplete_names_alone)
{
	static const char name[] = "instance void [App] Ns.T::Main(int32,class [A]B)";
	char room[128];

	/* Without the closing parenthesis there is no parameter list to drop. */
	for (size_t length = 0; length < sizeof(name) - 1; length++) {
		cr_expect(eq(sz, method_name_shorten(name, length, room, sizeof(room)), length));
		cr_expect(eq(int, memcmp(room, name, length), 0));
	}
}

Test(method_name, writes_no_more_than_the_room)
{
	static const char name[] = "void [A] Ns.T::Main()";
	char room[8] = "#######";

	cr_expect(eq(sz, method_name_shorten(name, strlen(name), room, 5), 10));
	cr_expect_str_eq(room, "Ns.T");
	cr_expect(eq(u8, room[5], '#'));
	cr_expect(eq(sz, method_name_shorten(name, strlen(name), NULL, 0), 10));
	cr_expect(eq(sz, method_name_shorten(name, strlen(name), room, 1), 10));
	cr_expect_str_eq(room, "");
}
