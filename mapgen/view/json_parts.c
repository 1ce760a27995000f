/* SPDX-License-Identifier: MIT */
#include "mapgen/view/json_parts.h"

#include "mapgen/cli/json_output.h"

static json_t *causes(const struct quality_cause *items, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, json_pack("{s:o, s:o, s:s, s:I}", "image",
						       json_output_text(items[i].image), "reason",
						       json_output_text(items[i].reason), "kind",
						       frame_kind_text(items[i].kind), "count",
						       (json_int_t)items[i].count));
	return array;
}

static json_t *frame_counts(const struct stack_quality *quality)
{
	json_t *value = json_object();

	for (int kind = 0; kind < FRAME_KINDS; kind++)
		json_object_set_new(value, frame_kind_text((enum frame_kind)kind),
				    json_pack("{s:I, s:I}", "frames",
					      (json_int_t)quality->frames[kind], "named",
					      (json_int_t)quality->named_frames[kind]));
	return value;
}

json_t *json_parts_quality(const struct stack_quality *quality)
{
	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "stacks", (json_int_t)quality->samples,
			 "whole_stacks", (json_int_t)quality->whole_samples, "guessed_stacks",
			 (json_int_t)quality->guessed_samples, "cut",
			 causes(quality->cut, quality->cut_count), "kinds", frame_counts(quality),
			 "unnamed", causes(quality->unnamed, quality->unnamed_count));
}

json_t *json_parts_losses(const struct profile *profile)
{
	const struct profile_losses *losses = &profile->losses;

	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
		"lost_records", (json_int_t)losses->lost_records, "lost_samples",
		(json_int_t)losses->lost_samples, "throttled", (json_int_t)losses->throttled,
		"unknown_processes", (json_int_t)losses->unknown_processes, "waits_without_stack",
		(json_int_t)losses->waits_without_stack, "waits_without_end",
		(json_int_t)losses->waits_without_end, "unreadable_switches",
		(json_int_t)losses->unreadable_switches, "early_waits",
		(json_int_t)losses->early_waits, "early_wait_ns", (json_int_t)losses->early_wait_ns,
		"bad_records", (json_int_t)losses->bad_records, "bad_name_lines",
		(json_int_t)losses->bad_name_lines, "places_without_line",
		(json_int_t)losses->places_without_line, "line_reason",
		json_output_text(losses->line_reason), "data_ends_early",
		json_output_text(losses->cut));
}
