/* SPDX-License-Identifier: MIT */
/*
 * From the entries of a view to a tree in preorder.
 *
 *   1. Frames of the profile, and of the older one, get numbers in one table (map_frames()).
 *   2. Each function gets a rank: its place in the order of names (rank_frames()).
 *   3. Stacks are sorted by the ranks of their frames. Then each subtree is one piece of the list,
 *      and what a stack has beyond the one before it are new nodes (grow_tree()).
 *   4. Totals are added up from the end, and small nodes are joined (join_small()).
 *
 * A method that was compiled several times is one function; it is shown as the version with most
 * of the weight.
 */
#include "mapgen/view/flame_tree.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/view/frame_groups.h"
#include "mapgen/view/frame_text.h"

enum {
	SMALL_PART = 10000, /* of the whole */
	NAME_LIMIT = 1 << 20,
};

struct stack_item {
	size_t first; /* of `numbers` */
	uint32_t count;
	uint64_t weight, old_weight;
};

struct growing {
	struct frame_table *frames;
	uint32_t *numbers; /* frames of all items, outermost first */
	size_t number_count, number_capacity;
	struct stack_item *items;
	size_t item_count, item_capacity;
	uint32_t *ranks;    /* by frame */
	uint32_t *shown;    /* by rank: the frame that stands for the function */
	uint64_t *weights;  /* by frame */
	bool has_processes; /* several: each is a frame of its own */
	struct flame_tree tree;
};

bool flame_tree_is_time(const struct profile_event *event)
{
	return event->is_time && event->kind != PROFILE_CPU && event->kind != PROFILE_COUNTED;
}

static uint64_t weight_of(const struct profile_event *event, const struct selected *item)
{
	return event->kind == PROFILE_CPU ? item->count : item->weight;
}

void flame_tree_deinit(struct flame_tree *tree)
{
	free(tree->nodes);
	*tree = (struct flame_tree){ 0 };
}

/* ---- items ----------------------------------------------------------------------------------- */

static struct sym_error *add_number(struct growing *growing, uint32_t frame)
{
	if (!grow_items((void **)&growing->numbers, &growing->number_capacity,
			growing->number_count, sizeof(*growing->numbers)))
		return &sym_error_no_memory;
	growing->numbers[growing->number_count++] = frame;
	return NULL;
}

static struct sym_error *add_process(struct growing *growing, const struct profile *profile,
				     uint32_t thread)
{
	const struct thread_table *threads = &profile->threads;
	const struct profile_process *process =
		&threads->processes[threads->threads[thread].process];
	const struct profile_frame frame = { .name = *process->name ? process->name : "[process]",
					     .image = "",
					     .tier = "",
					     .reason = "",
					     .is_named = true };
	uint32_t number;
	struct sym_error *error = frame_table_add(growing->frames, &frame, &number);

	return error ? error : add_number(growing, number);
}

/* `map`: numbers of the profile's frames in the common table; FRAME_NONE: not asked for yet. */
static struct sym_error *add_item(struct growing *growing, const struct profile *profile,
				  uint32_t *map, const struct selected *selected,
				  const struct stack_item *weights)
{
	struct stack_item item = *weights;
	struct sym_error *error = NULL;

	item.first = growing->number_count;
	if (growing->has_processes)
		error = add_process(growing, profile, selected->thread);
	for (uint32_t i = 0; !error && i < selected->frame_count; i++) {
		uint32_t frame = selected->frames[i];

		if (map[frame] == FRAME_NONE)
			error = frame_table_add(growing->frames,
						frame_table_at(profile->frames, frame),
						&map[frame]);
		if (!error)
			error = add_number(growing, map[frame]);
	}
	if (error)
		return error;
	item.count = (uint32_t)(growing->number_count - item.first);
	if (!grow_items((void **)&growing->items, &growing->item_capacity, growing->item_count,
			sizeof(item)))
		return &sym_error_no_memory;
	growing->items[growing->item_count++] = item;
	return NULL;
}

static struct sym_error *add_view(struct growing *growing, const struct view *view, bool is_old)
{
	const struct profile_event *event = &view->profile->events[view->event];
	size_t count = frame_table_count(view->profile->frames);
	uint32_t *map AUTO_FREE = malloc((count + 1) * sizeof(*map));
	struct selection selection;
	struct sym_error *error;

	if (!map)
		return &sym_error_no_memory;
	memset(map, 0xff, (count + 1) * sizeof(*map));
	error = selection_make(view->profile, view->event, &view->selection, &selection);
	if (error)
		return error;
	for (size_t i = 0; !error && i < selection.count; i++) {
		uint64_t weight = weight_of(event, &selection.items[i]);
		const struct stack_item weights = { .weight = is_old ? 0 : weight,
						    .old_weight = is_old ? weight : 0 };

		error = add_item(growing, view->profile, map, &selection.items[i], &weights);
	}
	selection_deinit(&selection);
	return error;
}

static bool has_several_processes(const struct view *view)
{
	const struct profile *profile = view->profile;
	uint32_t first = UINT32_MAX;

	for (size_t i = 0; i < profile->entry_count; i++) {
		uint32_t process;

		if (profile->entries[i].event != view->event)
			continue;
		process = profile->threads.threads[profile->entries[i].thread].process;
		if (first != UINT32_MAX && first != process)
			return true;
		first = process;
	}
	return false;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct named_frame {
	char *name;
	uint32_t frame, group;
};

static int compare_names(const void *left, const void *right)
{
	const struct named_frame *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	if (order)
		return order;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return (a->frame > b->frame) - (a->frame < b->frame);
}

static struct sym_error *name_frames(const struct frame_table *frames, const uint32_t *groups,
				     struct named_frame *named, size_t count)
{
	struct buf text;

	buf_init(&text, NAME_LIMIT);
	for (size_t i = 0; i < count; i++) {
		buf_clear(&text);
		frame_text_short(&text, frame_table_at(frames, (uint32_t)i));
		named[i] = (struct named_frame){ strdup(buf_string(&text) ?: ""), (uint32_t)i,
						 groups[i] };
		if (!named[i].name) {
			buf_deinit(&text);
			return &sym_error_no_memory;
		}
	}
	buf_deinit(&text);
	return NULL;
}

/* Equal functions have equal ranks; the heaviest version of one is shown. */
static void rank_named(struct growing *growing, const struct named_frame *named, size_t count)
{
	uint32_t rank = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t frame = named[i].frame;

		rank += i && named[i].group != named[i - 1].group;
		growing->ranks[frame] = rank;
		if (!i || named[i].group != named[i - 1].group ||
		    growing->weights[frame] > growing->weights[growing->shown[rank]])
			growing->shown[rank] = frame;
	}
}

static struct sym_error *rank_frames(struct growing *growing)
{
	size_t count = frame_table_count(growing->frames);
	struct named_frame *named AUTO_FREE = calloc(count + 1, sizeof(*named));
	uint32_t *groups AUTO_FREE = frame_groups_make(growing->frames);
	struct sym_error *error;

	growing->ranks = calloc(count + 1, sizeof(*growing->ranks));
	growing->shown = calloc(count + 1, sizeof(*growing->shown));
	growing->weights = calloc(count + 1, sizeof(*growing->weights));
	if (!named || !groups || !growing->ranks || !growing->shown || !growing->weights)
		return &sym_error_no_memory;
	for (size_t i = 0; i < growing->item_count; i++)
		for (uint32_t j = 0; j < growing->items[i].count; j++)
			growing->weights[growing->numbers[growing->items[i].first + j]] +=
				growing->items[i].weight + growing->items[i].old_weight;
	error = name_frames(growing->frames, groups, named, count);
	if (!error && count)
		qsort(named, count, sizeof(*named), compare_names);
	if (!error)
		rank_named(growing, named, count);
	for (size_t i = 0; i < count; i++)
		free(named[i].name);
	return error;
}

static int compare_items(const void *left, const void *right, void *context)
{
	const struct stack_item *a = left, *b = right;
	const uint32_t *ranks = context; /* of all numbers */
	uint32_t count = a->count < b->count ? a->count : b->count;

	for (uint32_t i = 0; i < count; i++)
		if (ranks[a->first + i] != ranks[b->first + i])
			return ranks[a->first + i] < ranks[b->first + i] ? -1 : 1;
	return (a->count > b->count) - (a->count < b->count);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct sym_error *add_node(struct flame_tree *tree, uint32_t depth, uint32_t frame)
{
	if (!grow_items((void **)&tree->nodes, &tree->capacity, tree->count, sizeof(*tree->nodes)))
		return &sym_error_no_memory;
	tree->nodes[tree->count++] = (struct flame_node){ .depth = depth, .frame = frame };
	if (depth > tree->deepest)
		tree->deepest = depth;
	return NULL;
}

/* `numbers` are ranks by now, and items are sorted. */
static struct sym_error *grow_tree(struct growing *growing)
{
	const struct stack_item *before = NULL;
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < growing->item_count; i++) {
		const struct stack_item *item = &growing->items[i];
		const uint32_t *ranks = growing->numbers + item->first;
		uint32_t same = 0;

		while (before && same < item->count && same < before->count &&
		       ranks[same] == growing->numbers[before->first + same])
			same++;
		for (uint32_t j = same; !error && j < item->count; j++)
			error = add_node(&growing->tree, j + 1, growing->shown[ranks[j]]);
		if (error)
			break;
		/* Equal stacks follow each other, and the shorter one comes first: the node of this
		 * stack's innermost frame is the last one that was made. */
		growing->tree.nodes[growing->tree.count - 1].self += item->weight;
		growing->tree.nodes[growing->tree.count - 1].old_self += item->old_weight;
		before = item;
	}
	return error;
}

static struct sym_error *add_up(struct flame_tree *tree)
{
	uint32_t *path AUTO_FREE = calloc((size_t)tree->deepest + 2, sizeof(*path));
	uint32_t *parents AUTO_FREE = calloc(tree->count + 1, sizeof(*parents));

	if (!path || !parents)
		return &sym_error_no_memory;
	for (size_t i = 0; i < tree->count; i++) {
		uint32_t depth = tree->nodes[i].depth;

		path[depth] = (uint32_t)i;
		parents[i] = depth ? path[depth - 1] : 0;
	}
	for (size_t i = tree->count; i-- > 0;) {
		struct flame_node *node = &tree->nodes[i];

		node->total += node->self;
		node->old_total += node->old_self;
		if (node->depth) {
			tree->nodes[parents[i]].total += node->total;
			tree->nodes[parents[i]].old_total += node->old_total;
		}
	}
	return NULL;
}

/* Small children of one parent become one node behind the others. */
struct joining {
	struct flame_tree *from, *to;
	struct flame_node *small; /* by depth of the children */
	uint32_t frame;
};

static struct sym_error *close_levels(struct joining *joining, uint32_t open, uint32_t depth)
{
	struct sym_error *error = NULL;

	for (uint32_t level = open + 1; !error && level > depth; level--) {
		struct flame_node *small = &joining->small[level];

		if (!small->total && !small->old_total)
			continue;
		error = add_node(joining->to, level, joining->frame);
		if (error)
			break;
		small->depth = level;
		small->frame = joining->frame;
		small->self = small->total;
		small->old_self = small->old_total;
		joining->to->nodes[joining->to->count - 1] = *small;
		*small = (struct flame_node){ 0 };
	}
	return error;
}

static bool is_below(uint64_t part, uint64_t whole)
{
	return !part || part < whole / SMALL_PART;
}

static struct sym_error *join_nodes(struct joining *joining)
{
	const struct flame_tree *from = joining->from;
	const struct flame_node *root = &from->nodes[0];
	struct sym_error *error = NULL;
	uint32_t open = 0;

	for (size_t i = 0; !error && i < from->count; i++) {
		const struct flame_node *node = &from->nodes[i];
		bool is_small = i && is_below(node->total, root->total) &&
				is_below(node->old_total, root->old_total);

		error = close_levels(joining, open, node->depth);
		open = node->depth;
		if (error || !is_small) {
			error = error ? error : add_node(joining->to, node->depth, node->frame);
			if (!error)
				joining->to->nodes[joining->to->count - 1] = *node;
			continue;
		}
		joining->small[node->depth].total += node->total;
		joining->small[node->depth].old_total += node->old_total;
		open = node->depth - 1;
		while (i + 1 < from->count && from->nodes[i + 1].depth > node->depth)
			i++;
	}
	return error ? error : close_levels(joining, open, 0);
}

static struct sym_error *join_small(struct growing *growing)
{
	const struct profile_frame joined = {
		.name = "(smaller ones)", .image = "", .tier = "", .reason = "", .is_named = true
	};
	struct flame_node *small AUTO_FREE =
		calloc((size_t)growing->tree.deepest + 3, sizeof(*small));
	struct flame_tree tree = { .is_time = growing->tree.is_time,
				   .is_bytes = growing->tree.is_bytes };
	struct joining joining = { &growing->tree, &tree, small, 0 };
	struct sym_error *error = small ? NULL : &sym_error_no_memory;

	if (!error)
		error = frame_table_add(growing->frames, &joined, &joining.frame);
	if (!error)
		error = join_nodes(&joining);
	if (error) {
		flame_tree_deinit(&tree);
		return error;
	}
	flame_tree_deinit(&growing->tree);
	growing->tree = tree;
	return NULL;
}

static struct sym_error *make_tree(struct growing *growing, const struct view *view,
				   const struct view *older, bool joins_small)
{
	const struct profile_frame all = {
		.name = "all", .image = "", .tier = "", .reason = "", .is_named = true
	};
	struct sym_error *error;
	uint32_t root;

	error = frame_table_add(growing->frames, &all, &root);
	if (!error)
		error = add_node(&growing->tree, 0, root);
	if (!error)
		error = add_view(growing, view, false);
	if (!error && older && older->event != UINT32_MAX)
		error = add_view(growing, older, true);
	if (!error)
		error = rank_frames(growing);
	if (error)
		return error;
	for (size_t i = 0; i < growing->number_count; i++)
		growing->numbers[i] = growing->ranks[growing->numbers[i]];
	if (growing->item_count)
		qsort_r(growing->items, growing->item_count, sizeof(*growing->items), compare_items,
			growing->numbers);
	error = grow_tree(growing);
	if (!error)
		error = add_up(&growing->tree);
	if (!error && joins_small)
		error = join_small(growing);
	return error;
}

struct sym_error *flame_tree_make(struct frame_table *frames, const struct view *view,
				  const struct view *older, bool joins_small,
				  struct flame_tree *ret)
{
	struct growing growing = { .frames = frames, .has_processes = has_several_processes(view) };
	struct sym_error *error;

	growing.tree.is_time = flame_tree_is_time(&view->profile->events[view->event]);
	growing.tree.is_bytes = view->profile->events[view->event].unit == PROFILE_UNIT_BYTES;
	error = make_tree(&growing, view, older, joins_small);
	free(growing.numbers);
	free(growing.items);
	free(growing.ranks);
	free(growing.shown);
	free(growing.weights);
	if (error)
		flame_tree_deinit(&growing.tree);
	else
		*ret = growing.tree;
	return error;
}
