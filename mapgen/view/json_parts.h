/* SPDX-License-Identifier: MIT */
/* Parts of JSON that report and check have in common. */
#ifndef MAPGEN_VIEW_JSON_PARTS_H
#define MAPGEN_VIEW_JSON_PARTS_H

#include <jansson.h>

#include "mapgen/profile/profile.h"
#include "mapgen/profile/stack_quality.h"

json_t *json_parts_quality(const struct stack_quality *quality);
json_t *json_parts_losses(const struct profile *profile);

#endif
