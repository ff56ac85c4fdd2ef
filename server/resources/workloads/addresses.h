/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * IP addresses and ranges of them (CIDR) in objects. Go's parsers of the first years of Kubernetes
 * accept more forms than those of today, and programs disagree about what these forms mean; so
 * kube-apiserver 1.36 refuses them in new objects. The functions here that take causes add one for
 * a mistake, and all but hfd_address_refuse_special refuse these forms, too. field: the path of the
 * text. Pure. Thread: any.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/causes.h"

/* A range of addresses. */
struct hfd_cidr {
        int family;                /* AF_INET or AF_INET6 */
        unsigned bits;             /* length of the prefix */
        unsigned char address[16]; /* in network order; IPv4: the first four bytes */
};

/* Also accepts the forms that programs understand differently. False: the text is no CIDR. */
bool hfd_cidr_parse(const char *text, struct hfd_cidr *ret_cidr);
/* Adds a cause for a text that is no CIDR, has one of those forms, or has bits after the prefix.
 * Returns what hfd_cidr_parse does, so the result can be true although there is a cause. */
bool hfd_cidr_validate(const char *text, const char *field, struct hfd_cidr *ret_cidr,
                       struct hfd_causes *causes);
/* The same, and an IPv6 address has its shortest form, in lower case (RFC 5952). */
bool hfd_cidr_validate_canonical(const char *text, const char *field, struct hfd_cidr *ret_cidr,
                                 struct hfd_causes *causes);

/* Parses an address alone, also in the forms that programs understand differently. As in Go, an
 * IPv4 address becomes the IPv6 address that has it within (::ffff:10.0.0.1). False: the text is no
 * address. */
bool hfd_address_parse(const char *text, struct in6_addr *ret_address);
/* An address alone, in the canonical form (pod_validation.h has hfd_address_validate). */
void hfd_address_validate_canonical(const char *text, const char *field, struct hfd_causes *causes);
/* Whether it is an IPv6 address. As in Go, one that stands for an IPv4 address (::ffff:10.0.0.1) is
 * none. */
bool hfd_address_is_ipv6(const char *text);
/* Refuses a text that is no address, and an address that no endpoint can have: traffic to it would
 * stay on the node or on its link. The text may also have a form that another rule refuses, because
 * programs understand it differently: 127.0.0.01. */
void hfd_address_refuse_special(const char *text, const char *field, struct hfd_causes *causes);
