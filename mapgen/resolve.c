/* SPDX-License-Identifier: MIT */
/*
 * The command resolve: names for addresses of a process, or for positions in
 * an image. Every question gets one line, in the order asked: a name, or the
 * reason why there is none. Needs neither generate nor merge.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/code_mark.h"
#include "mapgen/command.h"
#include "mapgen/json_output.h"
#include "mapgen/message.h"
#include "mapgen/renewal.h"
#include "mapgen/resolve_fetch.h"
#include "mapgen/resolve_input.h"
#include "mapgen/resolve_output.h"
#include "mapgen/seconds.h"
#include "mapgen/target.h"

/* Files that are named without a process and kept open; beyond that the oldest is closed. */
enum {
	OPEN_FILES = 16
};

struct open_file {
	char *path;
	struct sym_image *image; /* NULL: `reason` says why */
	char *reason;
};

struct resolution {
	const struct options *options;
	struct sym_snapshot *snapshot; /* NULL: files only */
	struct question *questions;    /* the operands */
	struct sym_resolver *resolver;
	struct resolve_fetch *fetch; /* NULL: nothing is fetched */
	double cost_s;               /* of the snapshot, and of the first questions to it */
	double next_s;               /* when there may be another; 0: it was asked nothing yet */
	struct code_mark mark;       /* of when it was taken */
	struct renewal renewal;      /* since */
	struct renewal_purse purse;
	struct sym_result *result;
	struct open_file files[OPEN_FILES];
	size_t next_file;
	struct answer_printer printer;
	size_t good, bad;
	size_t stripped; /* answers of functions that only lack the name, in images without any */
	bool told;       /* names came from the runtime, and how was said where it must be */
	bool broken;     /* said already; stop */
};

/* A snapshot is worth its price: what it cost times this passes before the next. */
static const double patience = 5;

static const char not_a_question[] = "not an address and not IMAGE+0xN";

/* ---- answers ------------------------------------------------------------ */

/* An answer lends its image for reading only. NULL when it is of neither. */
static struct sym_image *own_image(const struct resolution *resolution,
				   const struct sym_image *image)
{
	struct sym_image *own = NULL;

	for (size_t i = 0; i < OPEN_FILES; i++)
		if (resolution->files[i].image == image)
			return resolution->files[i].image;
	for (size_t i = 0; resolution->snapshot && own != image; i++) {
		own = sym_snapshot_image_at(resolution->snapshot, i);
		if (!own)
			break;
	}
	return own;
}

/* Of an image that has a symbol table, or a debug file, no other names are to be had. */
static bool lacks_symbols(const struct resolution *resolution, const struct sym_image *image)
{
	struct sym_image *own = image ? own_image(resolution, image) : NULL;

	return own && !sym_image_symbol_file(own);
}

static void show_answer(struct resolution *resolution, const struct question *question,
			const struct sym_answer *answer)
{
	resolution->good++;
	resolution->stripped +=
		answer->status == SYM_UNNAMED && lacks_symbols(resolution, answer->image);
	answer_printer_print(&resolution->printer, question, answer);
	resolution->broken |= json_output_has_failed();
}

static void show_bad(struct resolution *resolution, const struct question *question,
		     const char *reason)
{
	resolution->bad++;
	answer_printer_print_bad(&resolution->printer, question, reason);
	resolution->broken |= json_output_has_failed();
}

/* ---- images that are named ---------------------------------------------- */

/* By file name or path; perf and the kernel write " (deleted)" behind it. */
static bool is_named(const char *path, const struct question *question)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_bytes = sizeof(deleted) - 1;
	size_t length = question->image_bytes;
	const char *name;

	if (length > deleted_bytes &&
	    !memcmp(question->image + length - deleted_bytes, deleted, deleted_bytes))
		length -= deleted_bytes;
	name = memchr(question->image, '/', length) ? path : path_file_name(path);
	return strlen(name) == length && !memcmp(name, question->image, length);
}

/* Two different files of one name: neither is meant more than the other. */
static struct sym_image *mapped_image(const struct resolution *resolution,
				      const struct question *question, const char **reason_ret)
{
	size_t count = sym_snapshot_image_count(resolution->snapshot);
	struct sym_image *found = NULL;

	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(resolution->snapshot, i);

		if (!is_named(sym_image_path(image), question))
			continue;
		if (found && strcmp(sym_image_path(found), sym_image_path(image)) != 0) {
			*reason_ret = "several mapped files have this name; give the path";
			return NULL;
		}
		found = found ? found : image;
	}
	*reason_ret = found ? NULL : "no image of this name is mapped";
	return found;
}

static void close_file(struct open_file *file)
{
	free(file->path);
	free(file->reason);
	sym_image_close(file->image);
	*file = (struct open_file){ 0 };
}

static struct sym_image *opened_file(struct resolution *resolution, const struct question *question,
				     const char **reason_ret)
{
	struct open_file *file = &resolution->files[resolution->next_file];
	struct sym_error *error;

	for (size_t i = 0; i < OPEN_FILES; i++) {
		const char *path = resolution->files[i].path;

		if (path && strlen(path) == question->image_bytes &&
		    !memcmp(path, question->image, question->image_bytes)) {
			*reason_ret = resolution->files[i].reason;
			return resolution->files[i].image;
		}
	}
	resolution->next_file = (resolution->next_file + 1) % OPEN_FILES;
	close_file(file);
	file->path = strndup(question->image, question->image_bytes);
	*reason_ret = "out of memory";
	if (!file->path)
		return NULL;
	error = sym_image_open(file->path, &file->image);
	if (!error)
		error = sym_image_look_in(file->image, resolution->options->debug_dirs.items);
	if (!error && resolution->fetch)
		error = sym_image_fetch_with(file->image, resolve_fetch_file, resolution->fetch);
	if (error) {
		file->reason = message_format("%s", sym_error_message(error));
		sym_error_destroy(error);
	}
	*reason_ret = file->reason ? file->reason : "out of memory";
	return file->image;
}

static struct sym_image *image_of(struct resolution *resolution, const struct question *question,
				  const char **reason_ret)
{
	return resolution->snapshot ? mapped_image(resolution, question, reason_ret)
				    : opened_file(resolution, question, reason_ret);
}

/*
 * Where an offset of a mapped file that is no image is executed: perf shows jitted code as
 * offsets into /memfd:doublemapper. False when it is executed nowhere.
 */
static bool executed_at(const struct resolution *resolution, const struct question *question,
			uint64_t *address_ret)
{
	size_t count = resolution->snapshot ? sym_snapshot_mapping_count(resolution->snapshot) : 0;

	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping =
			sym_snapshot_mapping_at(resolution->snapshot, i);
		uint64_t size_bytes = mapping->end_address - mapping->start_address;

		if (!(mapping->protection & SYM_EXECUTE) || !*mapping->path ||
		    question->value < mapping->offset ||
		    question->value - mapping->offset >= size_bytes ||
		    !is_named(mapping->path, question))
			continue;
		*address_ret = mapping->start_address + (question->value - mapping->offset);
		return true;
	}
	return false;
}

/* ---- batches ------------------------------------------------------------ */

static bool has_unknown_code(const struct sym_result *result)
{
	for (size_t i = 0; i < sym_result_count(result); i++) {
		enum sym_status status = sym_result_at(result, i)->status;

		if (status == SYM_UNMAPPED || status == SYM_NO_MATCH || status == SYM_NO_SYMBOLS)
			return true;
	}
	return false;
}

static struct sym_snapshot_opts snapshot_opts(const struct resolution *resolution)
{
	const struct options *options = resolution->options;

	return (struct sym_snapshot_opts){
		.size = sizeof(struct sym_snapshot_opts),
		.root = options->root,
		.jit = (uint32_t)options->jit,
		.fetch = resolution->fetch ? resolve_fetch_file : NULL,
		.fetch_context = resolution->fetch,
		.debug_dirs = options->debug_dirs.items,
	};
}

static struct sym_error *open_snapshot(const struct resolution *resolution,
				       struct sym_snapshot **ret)
{
	const struct options *options = resolution->options;
	struct sym_snapshot_opts opts = snapshot_opts(resolution);

	return options->core ? sym_snapshot_open_core(options->core, &opts, ret)
			     : sym_snapshot_open(options->pid, &opts, ret);
}

/* True when there is a new snapshot; when that fails (the process has ended, say) the old one
 * serves on. */
static bool look_again(struct resolution *resolution)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_resolver *resolver = NULL;
	double begin_s = seconds_now();
	struct sym_error *error;

	resolution->next_s = begin_s + 1;
	code_mark_set(&resolution->mark, resolution->options->pid);
	error = open_snapshot(resolution, &snapshot);
	if (!error && target_is_same(snapshot, resolution->snapshot))
		error = sym_resolver_create(snapshot, &resolver);
	sym_error_destroy(error);
	if (!resolver)
		return false;
	sym_resolver_destroy(resolution->resolver);
	sym_snapshot_close(resolution->snapshot);
	resolution->resolver = resolver;
	resolution->snapshot = STEAL(snapshot);
	resolution->cost_s = seconds_now() - begin_s;
	resolution->next_s = 0;
	return true;
}

/* What a snapshot costs is known when it has been asked: a runtime that does not answer keeps one
 * waiting. */
static struct sym_error *ask(struct resolution *resolution, const uint64_t *addresses, size_t count)
{
	double begin_s = seconds_now(), wait_s;
	struct sym_error *error =
		sym_resolver_resolve(resolution->resolver, addresses, count, resolution->result);

	if (resolution->next_s)
		return error;
	resolution->cost_s += seconds_now() - begin_s;
	wait_s = patience * resolution->cost_s;
	code_mark_wait(&resolution->mark, wait_s);
	renewal_begin(&resolution->renewal, resolution->cost_s);
	resolution->next_s = seconds_now() + (wait_s > 1 ? wait_s : 1);
	return error;
}

static bool goes_on(const struct resolution *resolution)
{
	return !resolution->options->root && !resolution->options->core;
}

static bool renew(struct resolution *resolution, bool is_missed)
{
	return renewal_take(&resolution->renewal, &resolution->purse, resolution->resolver,
			    resolution->told ? resolution->snapshot : NULL, is_missed);
}

/* Where other code lies by now, what was there before has a name, which is wrong. */
static void take_up_changes(struct resolution *resolution)
{
	if (!goes_on(resolution))
		return;
	if (code_mark_changed(&resolution->mark, resolution->options->pid))
		look_again(resolution);
	else if (resolution->next_s)
		renew(resolution, false);
}

/* For answers without names. All of it is looked at once a second at most. */
static bool refresh(struct resolution *resolution)
{
	if (!goes_on(resolution))
		return false;
	return renew(resolution, true) ||
	       (!renewal_serves(&resolution->renewal) && seconds_now() >= resolution->next_s &&
		look_again(resolution));
}

static void say_asked(struct resolution *resolution)
{
	for (size_t i = 0; !resolution->told && i < sym_result_count(resolution->result); i++) {
		if (sym_result_at(resolution->result, i)->source != SYM_SOURCE_RUNTIME)
			continue;
		resolution->told = true;
		target_say_asked(resolution->snapshot);
	}
}

static struct sym_error *resolve_batch(struct resolution *resolution, const uint64_t *addresses,
				       size_t count)
{
	struct sym_error *error;

	take_up_changes(resolution);
	error = ask(resolution, addresses, count);
	if (!error && has_unknown_code(resolution->result) && refresh(resolution))
		error = ask(resolution, addresses, count);
	if (!error)
		say_asked(resolution);
	return error;
}

/* Addresses side by side are one batch of the library. */
static void answer_addresses(struct resolution *resolution, const struct question *questions,
			     size_t count)
{
	uint64_t *addresses AUTO_FREE = calloc(count, sizeof(*addresses));
	struct sym_error *error;

	if (!addresses) {
		message("out of memory");
		resolution->broken = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		addresses[i] = questions[i].value;
	error = resolve_batch(resolution, addresses, count);
	if (error) {
		target_say(error);
		resolution->broken = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		show_answer(resolution, &questions[i], sym_result_at(resolution->result, i));
}

static void answer_position(struct resolution *resolution, const struct question *question)
{
	enum sym_position_kind kind =
		resolution->options->rva ? SYM_POSITION_RVA : SYM_POSITION_OFFSET;
	const char *reason;
	struct sym_image *image = image_of(resolution, question, &reason);
	struct sym_error *error;
	uint64_t address;

	if (!image && !resolution->options->rva && executed_at(resolution, question, &address)) {
		struct question moved = *question;

		moved.value = address;
		answer_addresses(resolution, &moved, 1);
		return;
	}
	if (!image) {
		show_bad(resolution, question, reason);
		return;
	}
	error = sym_image_resolve(image, kind, &question->value, 1, resolution->result);
	if (error) {
		show_bad(resolution, question, sym_error_message(error));
		sym_error_destroy(error);
		return;
	}
	show_answer(resolution, question, sym_result_at(resolution->result, 0));
}

static bool is_address(const struct question *question)
{
	return !question->malformed && !question->image;
}

static bool answer(void *context, const struct question *questions, size_t count)
{
	struct resolution *resolution = context;
	size_t end;

	for (size_t i = 0; i < count && !resolution->broken; i = end) {
		const struct question *question = &questions[i];

		end = i + 1;
		if (question->malformed) {
			show_bad(resolution, question, not_a_question);
		} else if (question->image) {
			answer_position(resolution, question);
		} else if (!resolution->snapshot) {
			show_bad(resolution, question, "an address needs a PID");
		} else {
			while (end < count && is_address(&questions[end]))
				end++;
			answer_addresses(resolution, question, end - i);
		}
	}
	return !fflush(stdout) && !resolution->broken;
}

/* ---- the command -------------------------------------------------------- */

/* Answers that a whole snapshot would not have otherwise: sym_snapshot_open_near(). */
static bool all_in_elf_images(const struct sym_result *result)
{
	for (size_t i = 0; i < sym_result_count(result); i++) {
		const struct sym_image *image = sym_result_at(result, i)->image;

		if (!image || sym_image_kind(image) != SYM_IMAGE_ELF)
			return false;
	}
	return true;
}

/*
 * Native code needs nothing else of the process: where it is all that is asked for, the rest is not
 * looked at, which in a process of 200 images takes longer. Else it is as if nobody had tried; so
 * no server is asked.
 */
static struct sym_error *open_near(struct resolution *resolution)
{
	struct sym_snapshot_opts opts = snapshot_opts(resolution);
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_resolver *resolver GUARDED(resolver) = NULL;
	size_t count = resolution->options->operand_count;
	uint64_t *addresses AUTO_FREE = calloc(count + 1, sizeof(*addresses));
	struct sym_error *error = NULL;

	for (size_t i = 0; addresses && i < count; i++) {
		if (!is_address(&resolution->questions[i]))
			return NULL;
		addresses[i] = resolution->questions[i].value;
	}
	if (addresses && count)
		error = sym_snapshot_open_near(resolution->options->pid, &opts, addresses, count,
					       &snapshot);
	if (error || !snapshot)
		return error;
	error = sym_resolver_create(snapshot, &resolver);
	if (!error)
		error = sym_resolver_resolve(resolver, addresses, count, resolution->result);
	if (!error && all_in_elf_images(resolution->result)) {
		resolution->snapshot = STEAL(snapshot);
		resolution->resolver = STEAL(resolver);
	}
	return error;
}

static struct sym_error *open_process(struct resolution *resolution)
{
	const struct options *options = resolution->options;
	struct sym_error *error = NULL;
	double begin_s = seconds_now();

	if (goes_on(resolution) && !options->operand_count)
		code_mark_set(&resolution->mark, options->pid);
	if (!options->core && !options->root && !resolution->fetch)
		error = open_near(resolution);
	if (error || resolution->snapshot)
		return error;
	error = open_snapshot(resolution, &resolution->snapshot);
	if (!error)
		error = sym_resolver_create(resolution->snapshot, &resolution->resolver);
	resolution->cost_s = seconds_now() - begin_s;
	return error;
}

static bool begin(struct resolution *resolution)
{
	const struct options *options = resolution->options;
	uint32_t want = (options->lines || options->inlines ? SYM_WANT_LINES : 0) |
			(options->inlines ? SYM_WANT_INLINED : 0) |
			(options->json ? SYM_WANT_COMPONENT : 0);
	struct sym_error *error = sym_result_create(&resolution->result);

	if (!error)
		error = sym_result_want(resolution->result, want);
	if (options->fetch) {
		resolution->fetch = resolve_fetch_create(options);
		if (!resolution->fetch) {
			sym_error_destroy(error);
			return false;
		}
	}
	if (!error && (options->pid || options->core))
		error = open_process(resolution);
	if (error)
		target_say(error);
	return !error;
}

static bool parse_operands(struct resolution *resolution)
{
	const struct options *options = resolution->options;

	resolution->questions = calloc(options->operand_count + 1, sizeof(*resolution->questions));
	if (!resolution->questions) {
		message("out of memory");
		return false;
	}
	for (size_t i = 0; i < options->operand_count; i++)
		resolution->questions[i] = question_parse(options->operands[i]);
	return true;
}

/* Once, at the end: the names are missing on this machine only. */
static void say_who_has_names(const struct resolution *resolution)
{
	int pid = resolution->options->pid;

	if (!resolution->stripped || resolution->broken || resolution->fetch)
		return;
	fflush(stdout);
	if (pid)
		message("%zu of %zu answers lie in stripped native images; dotnet-mapgen symbols "
			"%d "
			"brings their names",
			resolution->stripped, resolution->good, pid);
	else
		message("%zu of %zu answers lie in stripped native images; dotnet-mapgen symbols "
			"PID "
			"of a process that has them mapped brings their names",
			resolution->stripped, resolution->good);
}

static int resolve(struct resolution *resolution)
{
	int failure = 0;

	if (!parse_operands(resolution) || !begin(resolution))
		return EXIT_FAILED;
	if (resolution->options->operand_count)
		answer(resolution, resolution->questions, resolution->options->operand_count);
	else
		failure = questions_read(STDIN_FILENO, answer, resolution);
	answer_printer_end(&resolution->printer);
	if (failure)
		message("cannot read standard input: %s", strerror(failure));
	say_who_has_names(resolution);
	if (failure || resolution->broken)
		return EXIT_FAILED;
	if (!resolution->bad)
		return EXIT_DONE;
	return resolution->good ? EXIT_PARTLY : EXIT_FAILED;
}

int resolve_run(const struct options *options)
{
	struct resolution resolution = { .options = options, .printer = { .options = options } };
	int exit_code;

	if (options->core && options->pid) {
		message("--core does not go with a PID");
		return EXIT_USAGE;
	}
	if (!options->pid && !options->core && !options->operand_count) {
		message("resolve needs a PID or FILE+0xN; see dotnet-mapgen resolve --help");
		return EXIT_USAGE;
	}
	if (!options->fetch && (options->servers.count || options->store)) {
		message("--server and --store go with --fetch");
		return EXIT_USAGE;
	}
	exit_code = resolve(&resolution);
	for (size_t i = 0; i < OPEN_FILES; i++)
		close_file(&resolution.files[i]);
	sym_resolver_destroy(resolution.resolver);
	sym_snapshot_close(resolution.snapshot);
	sym_result_destroy(resolution.result);
	resolve_fetch_destroy(resolution.fetch);
	answer_printer_deinit(&resolution.printer);
	free(resolution.questions);
	return exit_code;
}
