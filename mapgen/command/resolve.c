/* SPDX-License-Identifier: MIT */
/*
 * The command resolve: names for addresses of a process, or for positions in an image. Each
 * question gets one line, in the order asked: a name, or the reason why there is none. Needs
 * neither generate nor merge.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/run_budget.h"
#include "mapgen/cli/target.h"
#include "mapgen/command/resolve_fetch.h"
#include "mapgen/command/resolve_input.h"
#include "mapgen/command/resolve_output.h"
#include "mapgen/debuginfo/symbolized_answer.h"
#include "mapgen/debuginfo/symbols_fetch.h"

/* Files that stay open when they are named without a process; beyond that the oldest is closed. */
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
	struct sym_live *live;                 /* NULL: files only */
	struct question *questions;            /* the operands */
	struct symbols_fetcher *fetch;         /* NULL: nothing is fetched */
	struct symbolized_answers *symbolized; /* NULL: no server is asked for names */
	bool is_collecting; /* nothing is printed: what the server is to be asked is collected */
	struct sym_result *result;
	struct open_file files[OPEN_FILES];
	size_t next_file;
	struct answer_printer printer;
	size_t good, bad;
	size_t unread; /* answers without a name because memory ran out, in libelf and libdw too */
	size_t lost;   /* answers that may have lines but got none */
	size_t stripped;       /* answers inside functions whose name is unknown, in images without
				  symbols */
	char *stripped_reason; /* the reason of the first of them; NULL: none */
	bool told;             /* the message that the runtime was asked was printed */
	bool followed;         /* the message that the runtime keeps reporting was printed */
	bool broken;           /* an error was printed; stop */
};

static const char not_a_question[] = "not an address and not IMAGE+0xN";

/* ---- answers ------------------------------------------------------------ */

/* An answer lends its image for reading only. NULL when the answer has no image. */
static struct sym_image *own_image(const struct resolution *resolution,
				   const struct sym_image *image)
{
	struct sym_image *own = NULL;

	for (size_t i = 0; i < OPEN_FILES; i++)
		if (resolution->files[i].image == image)
			return resolution->files[i].image;
	for (size_t i = 0; resolution->live && own != image; i++) {
		own = sym_snapshot_image_at(sym_live_snapshot(resolution->live), i);
		if (!own)
			break;
	}
	return own;
}

static void count_stripped(struct resolution *resolution, const struct sym_answer *answer)
{
	/* An image with a symbol table or a debug file can get no other names. */
	if (answer->status != SYM_BOUNDS_ONLY || !answer->image ||
	    sym_image_symbol_file(answer->image))
		return;
	resolution->stripped++;
	if (answer->reason && !resolution->stripped_reason)
		resolution->stripped_reason =
			message_format("%s: %s", answer->image_path, answer->reason);
}

static void show_answer(struct resolution *resolution, const struct question *question,
			const struct sym_answer *answer)
{
	struct sym_image *image = answer->image && resolution->symbolized
					  ? own_image(resolution, answer->image)
					  : NULL;
	struct sym_answer room;

	if (resolution->is_collecting) {
		symbolized_answers_note(resolution->symbolized, image, answer);
		return;
	}
	if (resolution->symbolized)
		answer = symbolized_answers_complete(resolution->symbolized, image, answer, &room);
	resolution->good++;
	resolution->unread += answer->status == SYM_UNREADABLE && answer->reason &&
			      strstr(answer->reason, "out of memory");
	resolution->lost += answer->lost != 0;
	count_stripped(resolution, answer);
	answer_printer_print(&resolution->printer, question, answer);
	resolution->broken |= json_output_has_failed();
}

static void show_bad(struct resolution *resolution, const struct question *question,
		     const char *reason)
{
	if (resolution->is_collecting)
		return;
	resolution->bad++;
	answer_printer_print_bad(&resolution->printer, question, reason);
	resolution->broken |= json_output_has_failed();
}

/* ---- images that are named ---------------------------------------------- */

/* By file name or path; perf and the kernel append " (deleted)". */
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

/* Two different files have this name, so it is ambiguous. */
static struct sym_image *mapped_image(const struct resolution *resolution,
				      const struct question *question, const char **reason_ret)
{
	struct sym_snapshot *snapshot = sym_live_snapshot(resolution->live);
	size_t count = sym_snapshot_image_count(snapshot);
	struct sym_image *found = NULL;

	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);

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
	const struct sym_image_opts opts = { .size = sizeof(opts),
					     .budget = resolution->options->budget };
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
	error = sym_image_open_with(file->path, &opts, &file->image);
	if (!error)
		error = sym_image_set_debug_dirs(file->image,
						 resolution->options->debug_dirs.items);
	if (!error)
		error = sym_image_fork_for_dwarf(file->image);
	if (!error && resolution->fetch)
		error = sym_image_set_fetch(file->image, resolve_fetch_file, resolution->fetch);
	if (error) {
		file->reason = message_format("%s", sym_error_message(error));
		sym_error_destroy(error);
	}
	*reason_ret = file->reason ? file->reason : "out of memory";
	return file->image;
}

/*
 * Where an offset of a mapped file without symbols is executed: perf prints jitted code as offsets
 * into /memfd:doublemapper. False when it is executed nowhere.
 */
static bool executed_at(const struct resolution *resolution, const struct question *question,
			uint64_t *address_ret)
{
	const struct sym_snapshot *snapshot =
		resolution->live ? sym_live_snapshot(resolution->live) : NULL;
	size_t count = snapshot ? sym_snapshot_mapping_count(snapshot) : 0;

	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);
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

static void say_followed(struct resolution *resolution)
{
	if (resolution->followed || !sym_live_has_session(resolution->live))
		return;
	resolution->followed = true;
	target_say_followed(sym_live_snapshot(resolution->live));
}

static void say_asked(struct resolution *resolution)
{
	for (size_t i = 0; !resolution->told && i < sym_result_count(resolution->result); i++) {
		if (sym_result_at(resolution->result, i)->source != SYM_SOURCE_RUNTIME)
			continue;
		resolution->told = true;
		target_say_asked(sym_live_snapshot(resolution->live));
	}
	if (resolution->told)
		say_followed(resolution);
}

/* Consecutive addresses are one batch of the library. */
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
	run_budget_step_if_due(resolution->options);
	error = sym_live_resolve(resolution->live, addresses, NULL, count, resolution->result);
	if (error) {
		message_error(error);
		resolution->broken = true;
		return;
	}
	say_asked(resolution);
	for (size_t i = 0; i < count; i++)
		show_answer(resolution, &questions[i], sym_result_at(resolution->result, i));
}

static void answer_position(struct resolution *resolution, const struct question *question)
{
	enum sym_position_kind kind =
		resolution->options->rva ? SYM_POSITION_RVA : SYM_POSITION_OFFSET;
	const char *reason;
	struct sym_image *image = resolution->live ? mapped_image(resolution, question, &reason)
						   : opened_file(resolution, question, &reason);
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

/* Returns false if the question names another build of the image. */
static bool is_its_build(const struct question *question, const struct sym_image *image)
{
	const char *mvid = sym_image_mvid(image);

	return !question->mvid || (mvid && !strncasecmp(question->mvid, mvid, MVID_TEXT));
}

/* Answers with the source line of a method token and IL offset that an earlier run printed. */
static void answer_il(struct resolution *resolution, const struct question *question)
{
	const char *reason;
	struct sym_image *image = resolution->live ? mapped_image(resolution, question, &reason)
						   : opened_file(resolution, question, &reason);
	const struct sym_pdb *pdb = image ? sym_image_pdb(image, &reason) : NULL;
	struct sym_source_line line;

	if (resolution->is_collecting)
		return;
	if (!pdb) {
		show_bad(resolution, question, reason);
	} else if (!is_its_build(question, image)) {
		show_bad(resolution, question, "the image is of another build than the MVID");
	} else if (!sym_pdb_find_line(pdb, question->token, (uint32_t)question->value, &line)) {
		show_bad(resolution, question, "the PDB has no line for this place");
	} else {
		resolution->good++;
		answer_printer_print_line(&resolution->printer, question, pdb, &line);
		resolution->broken |= json_output_has_failed();
	}
}

static void answer_questions(struct resolution *resolution, const struct question *questions,
			     size_t count)
{
	size_t end;

	for (size_t i = 0; i < count && !resolution->broken; i = end) {
		const struct question *question = &questions[i];

		end = i + 1;
		if (question->malformed) {
			show_bad(resolution, question, not_a_question);
		} else if (question->token) {
			answer_il(resolution, question);
		} else if (question->image) {
			answer_position(resolution, question);
		} else if (!resolution->live) {
			show_bad(resolution, question, "an address needs a PID");
		} else {
			while (end < count && !questions[end].malformed && !questions[end].image)
				end++;
			answer_addresses(resolution, question, end - i);
		}
	}
}

/* A server is asked once for all of them. */
static bool resolve_answer(void *context, const struct question *questions, size_t count)
{
	struct resolution *resolution = context;

	if (resolution->symbolized) {
		resolution->is_collecting = true;
		answer_questions(resolution, questions, count);
		resolution->is_collecting = false;
		symbolized_answers_ask(resolution->symbolized);
	}
	answer_questions(resolution, questions, count);
	return !fflush(stdout) && !resolution->broken;
}

/* ---- the command -------------------------------------------------------- */

static struct sym_error *open_process(struct resolution *resolution)
{
	const struct options *options = resolution->options;
	const struct sym_snapshot_opts snapshot = {
		.size = sizeof(snapshot),
		.flags = SYM_SNAPSHOT_FORK_FOR_DWARF,
		.root = options->root,
		.jit = (uint32_t)options->jit,
		.fetch = resolution->fetch ? resolve_fetch_file : NULL,
		.fetch_context = resolution->fetch,
		.debug_dirs = options->debug_dirs.items,
		.budget = options->budget,
	};
	const struct sym_live_opts opts = {
		.size = sizeof(opts),
		.flags = SYM_LIVE_SAME_PROCESS,
		.wait_ms = TARGET_WAIT_MS,
		.snapshot = &snapshot,
		.core = options->core,
	};

	return sym_live_open(options->pid, &opts, &resolution->live);
}

static bool resolve_begin(struct resolution *resolution)
{
	const struct options *options = resolution->options;
	bool lines = options->lines || options->inlines || options->urls;
	uint32_t want = (lines ? SYM_FIELD_LINES : 0) | (options->inlines ? SYM_FIELD_INLINED : 0) |
			(options->json ? SYM_FIELD_COMPONENT : 0) |
			(options->return_addresses ? SYM_FIELD_RETURN_ADDRESSES : 0);
	struct sym_error *error = sym_result_create(&resolution->result);

	if (!error)
		error = sym_result_set_fields(resolution->result, want);
	if (!error && options->urls)
		error = source_urls_create(&resolution->printer.urls);
	if (options->fetch) {
		resolution->fetch = symbols_fetcher_create(options, NULL);
		if (!resolution->fetch) {
			sym_error_destroy(error);
			return false;
		}
	}
	if (options->symbolize_at) {
		resolution->symbolized = symbolized_answers_create(options->symbolize_at, want);
		if (!resolution->symbolized) {
			sym_error_destroy(error);
			return false;
		}
	}
	if (!error && (options->pid || options->core))
		error = open_process(resolution);
	return message_error(error);
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

/* Printed once, at the end: the names are missing on this machine only. */
static void say_who_has_names(const struct resolution *resolution)
{
	int pid = resolution->options->pid;

	if (!resolution->stripped || resolution->broken || resolution->fetch ||
	    resolution->symbolized)
		return;
	fflush(stdout);
	if (resolution->stripped_reason)
		message("%s", resolution->stripped_reason);
	if (pid)
		message("%zu of %zu answers lie in stripped native images; for their names: "
			"dotnet-mapgen fetch-symbols %d",
			resolution->stripped, resolution->good, pid);
	else
		message("%zu of %zu answers lie in stripped native images; for their names: "
			"dotnet-mapgen fetch-symbols PID of a process that maps them",
			resolution->stripped, resolution->good);
}

static void say_lost(const struct resolution *resolution)
{
	if (!resolution->lost)
		return;
	fflush(stdout);
	message("%zu of %zu answers have no lines or inlined functions: reading debug information "
		"ran out of memory or crashed",
		resolution->lost, resolution->good);
}

static int resolve_all(struct resolution *resolution)
{
	bool is_partly;
	int failure = 0;

	if (!parse_operands(resolution) || !resolve_begin(resolution))
		return EXIT_FAILED;
	if (resolution->options->operand_count)
		resolve_answer(resolution, resolution->questions,
			       resolution->options->operand_count);
	else
		failure = questions_read(STDIN_FILENO, resolve_answer, resolution);
	answer_printer_end(&resolution->printer);
	if (failure)
		message("cannot read standard input: %s", strerror(failure));
	say_who_has_names(resolution);
	say_lost(resolution);
	is_partly = resolution->symbolized && symbolized_answers_say(resolution->symbolized);
	is_partly |= resolution->unread || resolution->lost;
	if (failure || resolution->broken)
		return EXIT_FAILED;
	if (!resolution->bad)
		return is_partly ? EXIT_PARTLY : EXIT_DONE;
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
	if (!options->fetch && (options->servers.count || options->debug_tree)) {
		message("--server and --debug-tree go with --fetch");
		return EXIT_USAGE;
	}
	if (options->symbolize_at && !symbolize_client_takes(options->symbolize_at)) {
		message("--symbolize-at: '%s' is not http://... or https://...",
			options->symbolize_at);
		return EXIT_USAGE;
	}
	exit_code = resolve_all(&resolution);
	for (size_t i = 0; i < OPEN_FILES; i++)
		close_file(&resolution.files[i]);
	sym_live_close(resolution.live);
	sym_result_destroy(resolution.result);
	symbolized_answers_destroy(resolution.symbolized);
	symbols_fetcher_destroy(resolution.fetch);
	answer_printer_deinit(&resolution.printer);
	free(resolution.stripped_reason);
	free(resolution.questions);
	return exit_code;
}
