/* SPDX-License-Identifier: MIT */
/*
 * IP networks in CIDR notation, and whether an address is in one. An IPv4 address written as IPv6
 * (::ffff:a.b.c.d, and NAT64's 64:ff9b::a.b.c.d) counts as the IPv4 address.
 */
#ifndef SYMSRV_UPSTREAM_CIDR_RULES_H
#define SYMSRV_UPSTREAM_CIDR_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "symsrv/util/settings.h"

struct cidr_rule {
	uint8_t address[16];      /* IPv4 as ::ffff:a.b.c.d */
	unsigned int prefix_bits; /* of 128 */
};

/* "10.0.0.0/8", "fd00::/8", or one address. False for other texts. */
bool cidr_rule_parse(const char *text, struct cidr_rule *ret);

/* Whether one of the texts is a network with this address. Returns false for addresses that are
 * neither IPv4 nor IPv6. */
bool cidr_rules_contain(const struct text_list *rules, const struct sockaddr *address);

/*
 * Networks that are not public: this host, private, shared, link-local, unique local, multicast,
 * reserved. A redirect of a foreign server must not lead there.
 */
bool net_is_internal(const struct sockaddr *address);

/* cidr_set_contains() and cidr_is_internal() for the text of an address. */
bool net_address_from_text(const char *text, struct sockaddr_storage *ret);

#endif
