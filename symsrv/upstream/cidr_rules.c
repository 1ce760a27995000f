/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/cidr_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t nat64_prefix[12] = { 0x00, 0x64, 0xff, 0x9b };

static void map_ipv4(uint8_t address[16], const void *ipv4)
{
	memcpy(address, mapped_prefix, sizeof(mapped_prefix));
	memcpy(address + 12, ipv4, 4);
}

static bool parse_address(const char *text, uint8_t address[16], bool *is_ipv4)
{
	struct in_addr ipv4;

	*is_ipv4 = inet_pton(AF_INET, text, &ipv4) == 1;
	if (*is_ipv4)
		map_ipv4(address, &ipv4);
	return *is_ipv4 || inet_pton(AF_INET6, text, address) == 1;
}

bool cidr_rule_parse(const char *text, struct cidr_rule *ret)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	char address[INET6_ADDRSTRLEN];
	unsigned int most, bits;
	bool is_ipv4;

	if (length >= sizeof(address))
		return false;
	memcpy(address, text, length);
	address[length] = 0;
	if (!parse_address(address, ret->address, &is_ipv4))
		return false;
	most = bits = is_ipv4 ? 32 : 128;
	if (slash) {
		char *end;

		if (slash[1] < '0' || slash[1] > '9')
			return false;
		bits = (unsigned int)strtoul(slash + 1, &end, 10);
		if (*end || bits > most)
			return false;
	}
	ret->prefix_bits = 128 - most + bits;
	return true;
}

static bool rule_contains(const char *text, const uint8_t address[16])
{
	unsigned int whole, rest;
	struct cidr_rule rule;

	if (!cidr_rule_parse(text, &rule))
		return false;
	whole = rule.prefix_bits / 8;
	rest = rule.prefix_bits % 8;
	if (memcmp(rule.address, address, whole) != 0)
		return false;
	return !rest || !((rule.address[whole] ^ address[whole]) >> (8 - rest));
}

static bool bytes_of(const struct sockaddr *address, uint8_t ret[16])
{
	if (address->sa_family == AF_INET) {
		map_ipv4(ret, &((const struct sockaddr_in *)address)->sin_addr);
		return true;
	}
	if (address->sa_family != AF_INET6)
		return false;
	memcpy(ret, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	if (!memcmp(ret, nat64_prefix, sizeof(nat64_prefix)))
		memcpy(ret, mapped_prefix, sizeof(mapped_prefix));
	return true;
}

bool cidr_rules_contain(const struct text_list *rules, const struct sockaddr *address)
{
	uint8_t bytes[16];
	size_t i;

	if (!bytes_of(address, bytes))
		return false;
	for (i = 0; i < rules->count; i++)
		if (rule_contains(rules->texts[i], bytes))
			return true;
	return false;
}

bool net_is_internal(const struct sockaddr *address)
{
	static const char *const networks[] = {
		"0.0.0.0/8",
		"10.0.0.0/8",
		"100.64.0.0/10",
		"127.0.0.0/8",
		"169.254.0.0/16",
		"172.16.0.0/12",
		"192.0.0.0/24",
		"192.0.2.0/24",
		"192.168.0.0/16",
		"198.18.0.0/15",
		"198.51.100.0/24",
		"203.0.113.0/24",
		"224.0.0.0/3",
		"::/127",
		"fc00::/7",
		"fe80::/10",
		"ff00::/8",
		"2001:db8::/32",
		"fec0::/10",
		"100::/64",
		/* They contain addresses of IPv4 that were not checked. */
		"64:ff9b:1::/48",
		"2001::/32",
		"2002::/16",
	};
	uint8_t bytes[16];
	size_t i;

	if (!bytes_of(address, bytes))
		return true;
	for (i = 0; i < sizeof(networks) / sizeof(*networks); i++)
		if (rule_contains(networks[i], bytes))
			return true;
	return false;
}

bool net_address_from_text(const char *text, struct sockaddr_storage *ret)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, text, &ipv4->sin_addr) == 1) {
		ret->ss_family = AF_INET;
		return true;
	}
	ret->ss_family = AF_INET6;
	return inet_pton(AF_INET6, text, &ipv6->sin6_addr) == 1;
}
