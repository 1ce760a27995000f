/* SPDX-License-Identifier: MIT */
/* Decides on the answer of an upstream: take the object, try the next path of the lane, or end it.
 */
#ifndef SYMSRV_UPSTREAM_LANE_RESULT_H
#define SYMSRV_UPSTREAM_LANE_RESULT_H

#include "symsrv/upstream/flight.h"

enum lane_result {
	LANE_GOES_ON, /* with its next path */
	LANE_ENDS,
	LANE_GOT, /* the object is in the store */
};

/* Verifies and publishes what arrived, or counts the failure. *stored_ret: with LANE_GOT the
 * arrival, which the caller abandons when all waiters have opened the object. */
enum lane_result lane_judge(struct lane *lane, struct store_incoming **stored_ret);

#endif
