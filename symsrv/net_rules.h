/* SPDX-License-Identifier: MIT */
/*
 * Sets of IP networks in CIDR notation and which addresses lie in them. An IPv4
 * address written as IPv6 (::ffff:a.b.c.d, and NAT64's 64:ff9b::a.b.c.d) is the
 * IPv4 address.
 */
#ifndef SYMSRV_NET_RULES_H
#define SYMSRV_NET_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct net_rule {
	uint8_t address[16];      /* IPv4 as ::ffff:a.b.c.d */
	unsigned int prefix_bits; /* of 128 */
};

struct net_rules {
	struct net_rule *rules;
	size_t count;
};

/* "10.0.0.0/8", "fd00::/8", or one address. False when the text is none of them. */
bool net_rule_parse(const char *text, struct net_rule *ret);

/* 0 or -ENOMEM. */
int net_rules_add(struct net_rules *rules, const struct net_rule *rule);
void net_rules_deinit(struct net_rules *rules);

/* False for addresses that are neither IPv4 nor IPv6. */
bool net_rules_contain(const struct net_rules *rules, const struct sockaddr *address);

/*
 * Networks that are nobody's public service: this host, private, shared, link-local,
 * unique local, multicast, reserved. A redirect of a foreign server may not lead there.
 */
bool net_is_internal(const struct sockaddr *address);

/* As the two above, for the text of an address. */
bool net_address_from_text(const char *text, struct sockaddr_storage *ret);

#endif
