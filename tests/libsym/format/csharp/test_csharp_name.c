/* SPDX-License-Identifier: MIT */
/* Names as in C#. Expectations are what the source says from which Roslyn made these names. */
#include "libsym/format/csharp/csharp_name.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/format/csharp/csharp_type.h"

static void expect_form(const char *name, uint32_t flags, const char *expected)
{
	char room[1024];
	size_t length = csharp_name(name, strlen(name), flags, room, sizeof(room));

	cr_expect_str_eq(room, expected, "from %s: %s", name, room);
	cr_expect(eq(sz, length, strlen(expected)));
}

static void expect_csharp(const char *name, const char *expected)
{
	expect_form(name, 0, expected);
}

Test(csharp_name, writes_methods_with_their_parameters)
{
	expect_csharp("int32 [Store.Core] Contoso.Store::TopByTag(string)",
		      "Contoso.Store.TopByTag(string)");
	expect_csharp("instance void [App] N.Outer+Inner::Run()", "N.Outer.Inner.Run()");
	expect_csharp("instance void [App] T::.ctor(class [B]N.C,valuetype [B]N.S)",
		      "new T(N.C, N.S)");
	expect_csharp("void [App] T::.cctor()", "static T()");
	expect_csharp("[precode] instance bool [App] Ns.T::Run(int32)", "[precode] Ns.T.Run(int)");
	expect_csharp("void [App] Ns.T::Main(int32[])[QuickJitted]", "Ns.T.Main(int[])");
}

Test(csharp_name, writes_keywords_for_types)
{
	expect_csharp("void [A] T::M(int8,uint8,int16,uint16,int32,uint32,int64,uint64)",
		      "T.M(sbyte, byte, short, ushort, int, uint, long, ulong)");
	expect_csharp("void [A] T::M(float32,float64,bool,char,string,object)",
		      "T.M(float, double, bool, char, string, object)");
	expect_csharp("void [A] T::M(native int,native uint,valuetype [R]System.Decimal,void*)",
		      "T.M(nint, nuint, decimal, void*)");
	expect_csharp("void [A] T::M(int32&,string[][0...,0...],int32*[])",
		      "T.M(ref int, string[,][], int*[])");
	expect_csharp("void [A] T::M(valuetype [R]System.Nullable`1<int32>,"
		      "valuetype [R]System.ValueTuple`2<int32,class [R]N.G`1<string>>)",
		      "T.M(int?, (int, N.G<string>))");
	expect_csharp("void [A] T::M(method int32 *(string),method void *())",
		      "T.M(delegate*<string, int>, delegate*<void>)");
}

Test(csharp_name, writes_arguments_of_generic_types)
{
	expect_csharp("instance void [C] N.Dictionary`2[System.String,System.Int32]::Add(!0,!1)",
		      "N.Dictionary<string, int>.Add(string, int)");
	expect_csharp("instance bool [C] N.D`2+E`1[System.Int32,N.C,System.Byte[]]::M(!2,!0)",
		      "N.D<int, N.C>.E<byte[]>.M(byte[], int)");
	expect_csharp("instance valuetype [C]N.List`1/Enumerator<!0> "
		      "[C] N.List`1[System.Int32]::Get(valuetype [C]N.List`1/Enumerator<!0>)",
		      "N.List<int>.Get(N.List<int>.Enumerator)");
	expect_csharp("void [A] T::M(!!0)", "T.M(M0)");
	expect_csharp("instance void [C] N.List`1::Add(!0)", "N.List<>.Add(T0)");
}

Test(csharp_name, writes_properties_events_and_operators)
{
	expect_csharp("instance string [A] T::get_Name()", "T.Name.get");
	expect_csharp("instance void [A] T::set_Name(string)", "T.Name.set");
	expect_csharp("instance void modreq([R]System.Runtime.CompilerServices.IsExternalInit) "
		      "[A] T::set_Name(string)",
		      "T.Name.init");
	expect_csharp("instance char [A] T::get_Item(int32,string)", "T.this[int, string].get");
	expect_csharp("instance void [A] T::set_Item(int32,string)", "T.this[int].set");
	expect_csharp("instance void [A] T::add_Done(class [R]System.Action)", "T.Done.add");
	expect_csharp("valuetype [A]M [A] M::op_Addition(valuetype [A]M,int32)",
		      "M.operator +(M, int)");
	expect_csharp("int32 [A] M::op_CheckedExplicit(valuetype [A]M)",
		      "M.explicit operator checked int(M)");
	expect_csharp("int32 [A] M::op_Implicit(valuetype [A]M)", "M.implicit operator int(M)");
}

Test(csharp_name, keeps_methods_that_only_look_like_accessors)
{
	expect_csharp("instance void [A] T::get_Nothing()", "T.get_Nothing()");
	expect_csharp("instance int32 [A] T::set_Name(string)", "T.set_Name(string)");
	expect_csharp("instance void [A] T::set_Name()", "T.set_Name()");
	expect_csharp("instance int32 [A] T::get_Of(int32)", "T.get_Of(int)");
	expect_csharp("int32 [A] T::op_Unknown(int32)", "T.op_Unknown(int)");
}

Test(csharp_name, names_async_methods_and_iterators)
{
	expect_csharp("instance void [A] N.Store+<SlowAsync>d__5::MoveNext()",
		      "async N.Store.SlowAsync");
	expect_csharp("instance bool [A] N.Store+<Each>d__5`1[System.Int32]::MoveNext()",
		      "iterator N.Store.Each<int>");
	expect_csharp("instance bool [A] N.S`1+<Each>d__5`1[N.C,System.Int32]::MoveNext()",
		      "iterator N.S<N.C>.Each<int>");
	expect_csharp("instance void [A] T+<M>d__5::<>m__Finally1()", "finally in T.M");
	expect_csharp("instance void [A] T+<M>d__5::System.IDisposable.Dispose()",
		      "System.IDisposable.Dispose() of T.M");
	expect_csharp("instance bool [A] F+<Exo-IFoo<System-Int32\\,Exo-E>-M>d__0::MoveNext()",
		      "iterator F.Exo.IFoo<int, Exo.E>.M");
	expect_csharp("instance void [A] Program+<<Main>$>d__0::MoveNext()", "async Program.Main");
	expect_csharp("instance void [A] T+<>c+<<M>b__8_0>d::MoveNext()", "async lambda in T.M");
	expect_csharp("instance void [A] T+<<M>g__Sum|8_0>d::MoveNext()", "async local Sum in T.M");
}

Test(csharp_name, names_lambdas_and_local_functions)
{
	expect_csharp("instance void [A] Program+<>c__DisplayClass0_0::<Main>b__3(int32)",
		      "lambda(int) in Program.Main");
	expect_csharp("instance void [A] T+<>c::<M>b__7_1()", "lambda() in T.M");
	expect_csharp("instance void [A] T+<>c__7`1[System.Int32]::<M>b__7_0()", "lambda() in T.M");
	expect_csharp("int32 [A] T::<M>g__Add|0_1(int32,valuetype T/<>c__DisplayClass0_0&)",
		      "local Add(int) in T.M");
	expect_csharp("void [A] T+<>c::<.ctor>b__1_0()", "lambda() in new T");
	expect_csharp("string [A] T+<>c::<get_Name>b__1_0()", "lambda() in T.Name.get");
	expect_csharp("void [A] Program::<<Main>$>g__Add|0_1()", "local Add() in Program.Main");
}

Test(csharp_name, names_what_has_no_name_in_the_source)
{
	expect_csharp("void [A] Program::<Main>$(string[])", "Program.Main(string[])");
	expect_csharp("int32 [A] Program::<Main>(string[])", "entry point Program.Main(string[])");
	expect_csharp("instance class [A]R [A] R::<Clone>$()", "R.with()");
	expect_csharp("void [A] N.<Program>F0123456789ABCDEF0123456789ABCDEF__Tool::Run()",
		      "N.Tool.Run()");
	expect_csharp("void [A] E+<G>$0123456789ABCDEF::Half(int32)", "E.Half(int)");
	expect_csharp("void [x] dynamicClass::lambda_method3(object)", "lambda_method3(object)");
}

Test(csharp_name, keeps_what_it_does_not_know)
{
	expect_csharp("instance void [A] T::<>n__0(bool)", "T.<>n__0(bool)");
	expect_csharp("void [A] <PrivateImplementationDetails>::Throw()",
		      "<PrivateImplementationDetails>.Throw()");
	expect_csharp("instance void [A] T+<>c::.ctor()", "new T.<>c()");
	expect_csharp("instance void [A] T+<M>d__5::.ctor(int32)", "new T.<M>d__5(int)");
	expect_csharp("std::vector<int>::push_back(int const&)",
		      "std::vector<int>::push_back(int const&)");
	expect_csharp("stub<1> AllocateTemporaryEntryPoints",
		      "stub<1> AllocateTemporaryEntryPoints");
	expect_csharp("", "");
}

Test(csharp_name, leaves_out_what_is_not_wanted)
{
	static const char name[] =
		"instance void [C] N.Dictionary`2[System.String,N.C]::Add(!0,!1)";

	expect_form(name, CSHARP_NO_NAMESPACES, "Dictionary<string, C>.Add(string, C)");
	expect_form(name, CSHARP_NO_TYPE_ARGUMENTS, "N.Dictionary.Add(string, N.C)");
	expect_form(name, CSHARP_NO_PARAMETERS, "N.Dictionary<string, N.C>.Add");
	expect_form(name, CSHARP_NO_NAMESPACES | CSHARP_NO_TYPE_ARGUMENTS | CSHARP_NO_PARAMETERS,
		    "Dictionary.Add");
}

Test(csharp_name, writes_crossgen2_names_alike)
{
	expect_csharp("System.Int32 N.T::M(System.String, N.G`1[System.Byte], System.Int32&)",
		      "N.T.M(string, N.G<byte>, ref int)");
	expect_csharp("N.Store+<SlowAsync>d__5::MoveNext()", "async N.Store.SlowAsync");
	expect_csharp("System.Boolean N.Store+<Each>d__5::MoveNext()", "iterator N.Store.Each");
}

Test(csharp_name, takes_names_without_a_signature_where_they_are_managed)
{
	expect_csharp("N.T::M", "N.T::M");
	expect_form("N.T::M", CSHARP_IS_MANAGED, "N.T.M");
	expect_form("T+<M>d__5::MoveNext", CSHARP_IS_MANAGED, "T.M");
	expect_form("T::get_Name", CSHARP_IS_MANAGED, "T.Name.get");
	expect_form("malloc", CSHARP_IS_MANAGED, "malloc");
}

Test(csharp_name, leaves_malformed_names_alone)
{
	static const char *const names[] = {
		"void [A] T::M(int32,)(",       "void [A] T::M(!)",      "void [A] T::M(!x)",
		"void [A] T[System.Int32::M()", "void [A] T::M([B])",    "void [A] T::M(method )",
		"void [A] T::M(method *())",    "void [A] +::M(class )", "void [A] T::()",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		expect_csharp(names[i], names[i]);
}

Test(csharp_name, bounds_what_a_name_can_cost)
{
	char room[16];
	struct buf name;

	buf_init(&name, 1 << 16);
	buf_append_string(&name, "void [A] T::M(");
	for (int i = 0; i < 400; i++)
		buf_append_string(&name, "G<");
	buf_append_string(&name, ")");
	expect_csharp(buf_string(&name), buf_string(&name));
	buf_clear(&name);
	buf_append_string(&name, "void [A] T`1[");
	for (int i = 0; i < 30000; i++)
		buf_append_char(&name, 'N');
	buf_append_string(&name, "]::M(");
	for (int i = 0; i < 2000; i++)
		buf_append_string(&name, "!0,");
	buf_append_string(&name, "!0)");
	cr_expect(eq(sz, csharp_name(name.data, name.size_bytes, 0, room, sizeof(room)),
		     name.size_bytes));
	buf_deinit(&name);
}

Test(csharp_name, writes_no_more_than_the_room)
{
	static const char name[] = "void [A] Ns.T::Main()";
	char room[8] = "#######";

	cr_expect(eq(sz, csharp_name(name, strlen(name), 0, room, 5), 11));
	cr_expect_str_eq(room, "Ns.T");
	cr_expect(eq(u8, room[5], '#'));
	cr_expect(eq(sz, csharp_name(name, strlen(name), 0, NULL, 0), 11));
	cr_expect(eq(sz, csharp_name(name, strlen(name), 0, room, 1), 11));
	cr_expect_str_eq(room, "");
}

/* The runtime prints addresses of types in signatures of dynamic methods. */
Test(csharp_name, leaves_addresses_of_types_out)
{
	const char *lambda =
		"System.Threading.Tasks.Task /* MT: 0x7fc761746da8 */ [Anonymously Hosted "
		"DynamicMethods Assembly] dynamicClass::lambda_method4("
		"System.Runtime.CompilerServices.Closure /* MT: 0x7fc7652c2e20 */,object,"
		"Microsoft.AspNetCore.Http.HttpContext /* MT: 0x7fc763e5efa0 */)";

	expect_form(lambda, CSHARP_NO_NAMESPACES, "lambda_method4(Closure, object, HttpContext)");
	expect_form(lambda, CSHARP_NO_PARAMETERS, "lambda_method4");
	expect_csharp("void [A] T::M(N.C /* MT: 0x1", "void [A] T::M(N.C /* MT: 0x1");
}
