/* SPDX-License-Identifier: MIT */
/* The whole way from the descriptor to names, also while the process changes during the reading. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "libsym/clr/jit_reader.h"
#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/clr_image.h"

static const uint8_t run_signature[] = { 0x20, 1, 0x01, 0x08 };
static const uint8_t first_signature[] = { 0x00, 1, 0x01, 0x08 };
static const uint8_t second_signature[] = { 0x00, 1, 0x0e, 0x1c };
static const char run_name[] = "instance void [App] Ns.Plain::Run(int32)";
static const char first_name[] = "void [App] dynamicClass::First(int32)";
static const char second_name[] = "string [App] dynamicClass::Second(object)";

struct fixture {
	struct clr_image image;
	uint64_t module, plain, nameless;
	uint64_t run, run_code;         /* an ordinary method */
	uint64_t dynamic, dynamic_code; /* one that can be recycled */
	uint64_t second, second_code;   /* another one, which appears later */
	size_t at_call;                 /* when the event happens */
};

static void build(struct fixture *fixture)
{
	struct metadata_builder builder;
	struct clr_image *image = &fixture->image;

	*fixture = (struct fixture){ 0 };
	clr_image_init(image);
	metadata_builder_init(&builder);
	add_assembly(&builder, "App");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "Plain");
	add_method(&builder, "Run", run_signature, sizeof(run_signature));
	fixture->module = clr_image_add_module(image, &builder, CLR_MODULE_MAPPED);
	metadata_builder_deinit(&builder);
	fixture->plain = clr_image_add_type(image, fixture->module, 2);
	fixture->nameless = clr_image_add_type(image, fixture->module, 0);
	fixture->run = clr_image_add_method(image, fixture->plain, 1, CLR_CLASS_ORDINARY, 0);
	fixture->run_code = clr_image_add_code(image, CLR_HEAP_ORDINARY, fixture->run, 2);
	fixture->dynamic = clr_image_add_method(image, fixture->nameless, 0, CLR_CLASS_DYNAMIC, 0);
	clr_image_set_stored(image, fixture->dynamic, "First", first_signature, 4);
	fixture->dynamic_code =
		clr_image_add_code(image, CLR_HEAP_COLLECTIBLE, fixture->dynamic, 1);
}

static struct jit_reader *open_reader(struct fixture *fixture)
{
	struct jit_reader *reader = NULL;
	struct sym_error *error = jit_reader_open(fake_memory_open(&fixture->image.fake),
						  fixture->image.base, &reader);

	cr_assert_null(error, "%s", error ? sym_error_message(error) : "");
	return reader;
}

static struct jit_reading *read_once(struct jit_reader *reader, uint32_t flags)
{
	struct jit_reading *reading = NULL;
	struct sym_error *error = jit_reader_read(reader, flags, &reading);

	cr_assert_null(error, "%s", error ? sym_error_message(error) : "");
	return reading;
}

/* NULL when there is no name. */
static const struct jit_symbol *find(const struct jit_reading *reading, uint64_t start)
{
	for (size_t i = 0; i < reading->symbol_count; i++)
		if (reading->symbols[i].start_address == start)
			return &reading->symbols[i];
	return NULL;
}

static void assert_named(const struct jit_reading *reading, uint64_t start, uint64_t size_bytes,
			 const char *name)
{
	const struct jit_symbol *symbol = find(reading, start);

	cr_assert_not_null(symbol, "%s is not there", name);
	cr_assert_str_eq(symbol->name, name);
	cr_assert_eq(symbol->name_bytes, strlen(name));
	cr_assert_eq(symbol->size_bytes, size_bytes);
}

Test(jit_reader, names_methods_with_their_extent_and_stubs_by_kind)
{
	struct fixture fixture;
	AUTO_JIT_READER struct jit_reader *reader = NULL;
	AUTO_JIT_READING struct jit_reading *reading = NULL;
	uint64_t stub;

	build(&fixture);
	stub = clr_image_add_stub(&fixture.image, CLR_HEAP_ORDINARY, 7);
	reader = open_reader(&fixture);
	reading = read_once(reader, JIT_READ_STUBS);
	assert_named(reading, fixture.run_code, 64, run_name);
	assert_named(reading, fixture.dynamic_code, 32, first_name);
	cr_assert_str_eq(find(reading, stub)->name, "<VSD_ResolveStub>");
	cr_assert_eq(find(reading, stub)->kind, SYM_SYMBOL_STUB);
	cr_assert_eq(reading->method_count, 2);
	cr_assert_eq(reading->unnamed_count, 0);
	cr_assert_eq(reading->heap_count, 2);
	clr_image_deinit(&fixture.image);
}

/* The metadata has two types. The second one owns the only method. */
Test(jit_reader, reports_that_methods_may_have_been_added)
{
	static const struct {
		uint32_t flags, type, method;
		bool may_be_added;
	} cases[] = {
		{ 0, 1, 1, false }, /* of another type */
		{ 8, 1, 1, true },  /* EditAndContinue */
		{ 0, 2, 2, true },  { 0, 3, 1, true }, { 0, 3, 2, true },
	};

	for (size_t n = 0; n < sizeof(cases) / sizeof(*cases); n++) {
		struct fixture fixture;
		AUTO_JIT_READER struct jit_reader *reader = NULL;
		AUTO_JIT_READING struct jit_reading *reading = NULL;
		uint64_t type, added, code;

		build(&fixture);
		fake_memory_put_u32(&fixture.image.fake, fixture.module + CLR_MODULE_FLAGS,
				    CLR_MODULE_OPTIMIZED | cases[n].flags);
		type = clr_image_add_type(&fixture.image, fixture.module, cases[n].type);
		added = clr_image_add_method(&fixture.image, type, cases[n].method,
					     CLR_CLASS_ORDINARY, 0);
		code = clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, added, 1);
		/* One of many. More of them would mean that the contract does not apply. */
		for (int i = 0; i < 30; i++)
			clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, fixture.run, 1);
		reader = open_reader(&fixture);
		reading = read_once(reader, 0);
		cr_expect_null(find(reading, code));
		cr_expect_eq(reading->unnamed_count, 1);
		cr_expect_eq(reading->unnamed_dynamic_count, 0);
		cr_expect_eq(reading->is_editable, cases[n].may_be_added, "case %zu", n);
		clr_image_deinit(&fixture.image);
	}
}

Test(jit_reader, returns_only_changes)
{
	struct fixture fixture;
	AUTO_JIT_READER struct jit_reader *reader = NULL;
	struct jit_reading *reading;
	uint64_t code;

	build(&fixture);
	reader = open_reader(&fixture);
	jit_reading_destroy(read_once(reader, 0));
	cr_assert_null(read_once(reader, 0));
	code = clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, fixture.run, 1);
	reading = read_once(reader, 0);
	assert_named(reading, code, 32, run_name);
	assert_named(reading, fixture.run_code, 64, run_name);
	jit_reading_destroy(reading);
	clr_image_free_code(&fixture.image, CLR_HEAP_COLLECTIBLE, fixture.dynamic_code);
	reading = read_once(reader, 0);
	cr_assert_null(find(reading, fixture.dynamic_code));
	cr_assert_eq(reading->method_count, 2);
	jit_reading_destroy(reading);
	clr_image_deinit(&fixture.image);
}

Test(jit_reader, does_not_read_settled_code_again)
{
	struct fixture fixture;
	AUTO_JIT_READER struct jit_reader *reader = NULL;

	build(&fixture);
	clr_image_free_code(&fixture.image, CLR_HEAP_COLLECTIBLE, fixture.dynamic_code);
	reader = open_reader(&fixture);
	jit_reading_destroy(read_once(reader, 0));
	cr_assert_null(read_once(reader, 0)); /* now it is settled */
	/* Settled code is not read again, so its MethodDesc may be invalid. */
	fake_memory_put_u64(&fixture.image.fake, fixture.run_code - 8, 0xdead0000);
	cr_assert_null(read_once(reader, 0));
	clr_image_deinit(&fixture.image);
}

/* ---- while it changes ------------------------------------------------------------- */

enum {
	NEW_VERSIONS = 0x60000000 /* memory that appears later */
};

static void map_versions(struct fake_memory *fake, void *context)
{
	const struct fixture *fixture = context;

	if (fake->calls == fixture->at_call)
		fake_memory_add(fake, NEW_VERSIONS, 4096);
}

/*
 * A method that is being compiled again: its versions are in memory that is only now allocated. Its
 * name needs no second look, so without a third one it would never have a tier.
 */
Test(jit_reader, finds_the_tier_once_it_is_readable)
{
	size_t seen[4] = { 0 };

	for (size_t at_call = 1; at_call < 80; at_call++) {
		struct fixture fixture;
		struct jit_reader *reader;
		struct jit_reading *reading;
		size_t readings = 0;
		bool known = false;

		build(&fixture);
		fixture.at_call = at_call;
		fixture.image.fake.before_read = map_versions;
		fixture.image.fake.context = &fixture;
		fake_memory_put_u64(&fixture.image.fake, fixture.run + 8, NEW_VERSIONS);
		reader = open_reader(&fixture);
		while (!known) {
			/* The reading during which it appeared must have found it. */
			cr_assert(!readings || fixture.image.fake.calls < at_call,
				  "mapped at read %zu", at_call);
			reading = read_once(reader, JIT_READ_UNCHANGED);
			assert_named(reading, fixture.run_code, 64, run_name);
			known = find(reading, fixture.run_code)->tier;
			jit_reading_destroy(reading);
			seen[readings++ < 3 ? readings : 3]++;
		}
		jit_reader_close(reader);
		clr_image_deinit(&fixture.image);
	}
	cr_assert(seen[1] && seen[2] && seen[3], "%zu, %zu, %zu", seen[1], seen[2], seen[3]);
}

/* The name has another text at each look. */
static void rename_always(struct fake_memory *fake, void *context)
{
	struct fixture *fixture = context;
	uint64_t name;
	char digit = (char)('0' + fake->calls % 10);

	memcpy(&name, fake_memory_at(fake, fixture->dynamic + 40, 8), 8);
	fake_memory_put(fake, name, &digit, 1);
}

Test(jit_reader, does_not_name_what_differs_at_the_second_look)
{
	struct fixture fixture;
	AUTO_JIT_READER struct jit_reader *reader = NULL;
	AUTO_JIT_READING struct jit_reading *reading = NULL;

	build(&fixture);
	fixture.image.fake.before_read = rename_always;
	fixture.image.fake.context = &fixture;
	reader = open_reader(&fixture);
	reading = read_once(reader, 0);
	cr_assert_null(find(reading, fixture.dynamic_code));
	cr_assert_eq(reading->unnamed_count, 1);
	cr_assert_eq(reading->unnamed_dynamic_count, 1);
	assert_named(reading, fixture.run_code, 64, run_name);
	clr_image_deinit(&fixture.image);
}

/* The first method's memory becomes the second's, piece by piece, one for each read. */
static void recycle_slowly(struct fake_memory *fake, void *context)
{
	struct fixture *fixture = context;
	uint64_t fields[] = { 40, 24, 32 };
	uint64_t value;

	for (size_t i = 0; i < 3; i++) {
		if (fake->calls < fixture->at_call + i)
			return;
		memcpy(&value, fake_memory_at(fake, fixture->second + fields[i], 8), 8);
		fake_memory_put_u64(fake, fixture->dynamic + fields[i], value);
	}
}

Test(jit_reader, never_mixes_two_methods_at_one_place)
{
	size_t firsts = 0, seconds = 0, unnamed = 0;

	for (size_t at_call = 1; at_call < 80; at_call++) {
		struct fixture fixture;
		struct jit_reader *reader;
		struct jit_reading *reading;
		const struct jit_symbol *symbol;

		build(&fixture);
		fixture.at_call = at_call;
		fixture.second = clr_image_add_method(&fixture.image, fixture.nameless, 0,
						      CLR_CLASS_DYNAMIC, 0);
		/* Far from the first, so that it needs another read. */
		clr_image_room(&fixture.image, 8192);
		clr_image_set_stored(&fixture.image, fixture.second, "Second", second_signature, 4);
		fixture.image.fake.before_read = recycle_slowly;
		fixture.image.fake.context = &fixture;
		reader = open_reader(&fixture);
		reading = read_once(reader, 0);
		symbol = find(reading, fixture.dynamic_code);
		if (symbol)
			cr_assert(!strcmp(symbol->name, first_name) ||
					  !strcmp(symbol->name, second_name),
				  "recycled at read %zu: %s", at_call, symbol->name);
		firsts += symbol && !strcmp(symbol->name, first_name);
		seconds += symbol && !strcmp(symbol->name, second_name);
		unnamed += !symbol;
		jit_reading_destroy(reading);
		jit_reader_close(reader);
		clr_image_deinit(&fixture.image);
	}
	cr_assert(firsts && seconds && unnamed, "%zu, %zu, %zu: one of them never happened", firsts,
		  seconds, unnamed);
}

static void free_dynamic(struct fake_memory *fake, void *context)
{
	struct fixture *fixture = context;

	if (fake->calls < fixture->at_call)
		return;
	clr_image_free_code(&fixture->image, CLR_HEAP_COLLECTIBLE, fixture->dynamic_code);
	fake_memory_put_u64(fake, fixture->dynamic_code - 8, 0x5555555555555555);
	memset(fake_memory_at(fake, fixture->dynamic, 48), 0x55, 48);
}

/* The number of calls of a reading when nothing is freed. */
static size_t count_calls(void)
{
	struct fixture fixture;
	struct jit_reader *reader;
	size_t calls;

	build(&fixture);
	reader = open_reader(&fixture);
	jit_reading_destroy(read_once(reader, 0));
	calls = fixture.image.fake.calls;
	jit_reader_close(reader);
	clr_image_deinit(&fixture.image);
	return calls;
}

/*
 * If it is freed between the two looks, it is gone. Only if it is freed during its last two calls
 * in the second look is it code without a name.
 */
Test(jit_reader, survives_a_method_freed_at_any_moment)
{
	size_t calls = count_calls(), gone = 0;

	for (size_t at_call = 1; at_call <= calls; at_call++) {
		struct fixture fixture;
		struct jit_reader *reader;
		struct jit_reading *reading;

		build(&fixture);
		fixture.at_call = at_call;
		fixture.image.fake.before_read = free_dynamic;
		fixture.image.fake.context = &fixture;
		reader = open_reader(&fixture);
		reading = read_once(reader, 0);
		assert_named(reading, fixture.run_code, 64, run_name);
		cr_assert_null(find(reading, fixture.dynamic_code), "named, and freed at call %zu",
			       at_call);
		gone += !reading->unnamed_count;
		jit_reading_destroy(reading);
		jit_reader_close(reader);
		clr_image_deinit(&fixture.image);
	}
	cr_assert_geq(gone + 2, calls, "%zu of %zu", gone, calls);
}

/* ---- the process ends, or becomes another program ---------------------------------------- */

static void end_process(struct fake_memory *fake, void *context)
{
	struct fixture *fixture = context;

	if (fake->calls >= fixture->at_call)
		fake->fail_with = ESRCH;
}

/* Another program is there now: nothing that was mapped is. */
static void exec_process(struct fake_memory *fake, void *context)
{
	struct fixture *fixture = context;

	if (fake->calls >= fixture->at_call)
		for (size_t i = 0; i < fake->region_count; i++)
			fake->regions[i].address |= 1ull << 50;
}

/* How many readings failed. None may return a wrong name. */
static size_t count_failures(void (*event)(struct fake_memory *fake, void *context))
{
	size_t failures = 0;

	for (size_t at_call = 1; at_call < 60; at_call++) {
		struct fixture fixture;
		struct jit_reader *reader = NULL;
		struct jit_reading *reading = NULL;
		struct remote_memory *memory;
		struct sym_error *error;

		build(&fixture);
		fixture.at_call = at_call;
		fixture.image.fake.before_read = event;
		fixture.image.fake.context = &fixture;
		memory = fake_memory_open(&fixture.image.fake);
		error = jit_reader_open(memory, fixture.image.base, &reader);
		if (error)
			remote_memory_close(memory);
		else
			error = jit_reader_read(reader, 0, &reading);
		failures += error != NULL;
		for (size_t i = 0; reading && i < reading->symbol_count; i++)
			assert_named(reading, reading->symbols[i].start_address,
				     reading->symbols[i].size_bytes,
				     reading->symbols[i].start_address == fixture.run_code
					     ? run_name
					     : first_name);
		sym_error_destroy(error);
		jit_reading_destroy(reading);
		jit_reader_close(reader);
		clr_image_deinit(&fixture.image);
	}
	return failures;
}

Test(jit_reader, reports_a_process_that_ends_at_any_moment)
{
	cr_assert_geq(count_failures(end_process), 10);
}

Test(jit_reader, survives_exec_at_any_moment)
{
	cr_assert_geq(count_failures(exec_process), 1);
}

/* ---- contradictions ---------------------------------------------------------------- */

Test(jit_reader, rejects_a_reading_with_many_contradictions)
{
	struct fixture fixture;
	AUTO_JIT_READER struct jit_reader *reader = NULL;
	struct jit_reading *reading = NULL;
	struct sym_error *error;

	build(&fixture);
	for (unsigned int i = 0; i < 18; i++)
		clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, fixture.run, 1);
	clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, fixture.nameless, 1);
	reader = open_reader(&fixture);
	reading = read_once(reader, 0);
	cr_assert_eq(reading->unnamed_count, 1, "one of twenty is borne");
	jit_reading_destroy(reading);
	clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, fixture.nameless, 1);
	error = jit_reader_read(reader, 0, &reading);
	cr_assert(error && sym_error_code(error) == SYM_ERROR_UNSUPPORTED);
	cr_assert(strstr(sym_error_message(error), "none is believed"));
	sym_error_destroy(error);
	clr_image_deinit(&fixture.image);
}

/* A profiler adds methods that no image has. If most methods are such, something else is wrong. */
Test(jit_reader, accepts_added_methods_among_more_others)
{
	struct fixture fixture;
	AUTO_JIT_READER struct jit_reader *reader = NULL;
	struct jit_reading *reading = NULL;
	struct sym_error *error;
	uint64_t added;

	build(&fixture);
	added = clr_image_add_method(&fixture.image,
				     clr_image_add_type(&fixture.image, fixture.module, 3), 2,
				     CLR_CLASS_ORDINARY, 0);
	for (unsigned int i = 0; i < 8; i++) {
		clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, fixture.run, 1);
		clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, added, 1);
	}
	reader = open_reader(&fixture);
	reading = read_once(reader, 0);
	cr_assert_geq(reading->method_count, 8);
	cr_assert_eq(reading->unnamed_count, 8);
	jit_reading_destroy(reading);
	for (unsigned int i = 0; i < 8; i++)
		clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, added, 1);
	error = jit_reader_read(reader, 0, &reading);
	cr_assert(error && sym_error_code(error) == SYM_ERROR_UNSUPPORTED);
	sym_error_destroy(error);
	clr_image_deinit(&fixture.image);
}

/* Replaces number `index` of the contract's text by one of as many digits; false past the last. */
static bool replace_number(struct fixture *fixture, size_t index, char digit)
{
	char *text = fake_memory_at(&fixture->image.fake, fixture->image.base + CLR_ELF_TEXT,
				    CLR_ELF_BYTES - CLR_ELF_TEXT);

	for (size_t i = 1; text[i]; i++) {
		bool is_number = isdigit((unsigned char)text[i]) && text[i - 1] == ':';

		if (is_number && !index--) {
			while (isdigit((unsigned char)text[i]))
				text[i++] = digit;
			return true;
		}
	}
	return false;
}

Test(jit_reader, gives_no_wrong_name_with_invalid_offsets)
{
	static const char digits[] = { '9', '7', '1' };
	size_t numbers = 0;

	for (size_t index = 0;; index++) {
		bool is_there = false;

		for (size_t i = 0; i < sizeof(digits); i++) {
			struct fixture fixture;
			struct jit_reader *reader = NULL;
			struct jit_reading *reading = NULL;
			struct remote_memory *memory;
			struct sym_error *error;

			build(&fixture);
			is_there = replace_number(&fixture, index, digits[i]);
			memory = fake_memory_open(&fixture.image.fake);
			error = jit_reader_open(memory, fixture.image.base, &reader);
			if (error)
				remote_memory_close(memory);
			else
				error = jit_reader_read(reader, 0, &reading);
			if (reading && find(reading, fixture.run_code))
				assert_named(reading, fixture.run_code,
					     find(reading, fixture.run_code)->size_bytes, run_name);
			sym_error_destroy(error);
			jit_reading_destroy(reading);
			jit_reader_close(reader);
			clr_image_deinit(&fixture.image);
		}
		if (!is_there)
			break;
		numbers++;
	}
	cr_assert_gt(numbers, 80);
}

/* ---- out of memory --------------------------------------------------------------------- */

/* One reading of settled and of new code; false when it fails. */
static bool reads_with_failure(size_t allocations, bool *failed_ret)
{
	struct fixture fixture;
	AUTO_JIT_READER struct jit_reader *reader = NULL;
	struct jit_reading *reading = NULL;
	struct sym_error *error;
	uint64_t code;

	build(&fixture);
	reader = open_reader(&fixture);
	jit_reading_destroy(read_once(reader, 0));
	jit_reading_destroy(read_once(reader, 0));
	code = clr_image_add_code(&fixture.image, CLR_HEAP_ORDINARY, fixture.run, 1);
	alloc_fail_after(allocations);
	error = jit_reader_read(reader, 0, &reading);
	*failed_ret = alloc_fail_stop();
	if (error) {
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
		sym_error_destroy(error);
		reading = read_once(reader, 0);
	}
	cr_assert_not_null(reading);
	assert_named(reading, code, 32, run_name);
	assert_named(reading, fixture.run_code, 64, run_name);
	jit_reading_destroy(reading);
	clr_image_deinit(&fixture.image);
	return !error;
}

Test(jit_reader, reads_everything_after_a_lack_of_memory)
{
	size_t allocations = 0, failures = 0;
	bool failed = true;

	for (; failed; allocations++)
		failures += !reads_with_failure(allocations, &failed);
	cr_assert_gt(failures, 5);
}
