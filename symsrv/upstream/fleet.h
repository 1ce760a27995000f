/* SPDX-License-Identifier: MIT */
/*
 * Which server of a fleet asks the upstreams for an object: rendezvous hashing. Each server
 * computes a number from the URL of each server and the identity of the object; the one with the
 * greatest number is the owner. All servers with the same list agree, and when one leaves, only its
 * objects get another owner.
 */
#ifndef SYMSRV_UPSTREAM_FLEET_H
#define SYMSRV_UPSTREAM_FLEET_H

#include "symsrv/upstream/upstream_set.h"

/* The peer that is to be asked as number `index` (0, 1, ...), or NULL: this server is next. All
 * kinds of object with one identity have one owner, because some are made from others. */
struct upstream *fleet_owner(const struct upstream_set *set, const struct key *key, size_t index);

#endif
