/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the address of a webhook that is given as a service. holdfastd has no cluster network, so
 * the flag --webhook-service-resolver lists the addresses:
 *
 *      NAMESPACE/NAME=HOST[:PORT]        one service
 *      NAMESPACE/NAME:PORT=HOST[:PORT]   one port of it
 *      *=HOST[:PORT]                     all others, for example an ingress that knows them by name
 *
 * The items are separated by commas. HOST may be a name, an IPv4 address or an IPv6 address in
 * brackets. If the item has no port after HOST, the service's port is used. The most precise item
 * is used: one with a port, then one without, then "*". A service for which there is no item is
 * reached as in a cluster, by its name NAME.NAMESPACE.svc, which the system's resolver looks up.
 * Wherever the service is reached, its certificate must be valid for that name, and the header Host
 * has that name.
 *
 * Immutable. Thread: any.
 */
#include <holdfast/error.h>

struct hfd_service_resolver;

/* Reads the flag's value; "" = no service is named. The caller frees *ret_resolver. 0, -ENOMEM, or
 * HF_E_INVALID: an item is malformed, or has the same text before its '=' as an earlier item; the
 * message shows the item. */
int hfd_service_resolver_new(const char *text, struct hfd_service_resolver **ret_resolver,
                             struct hf_status *reterr_status);
/* Accepts NULL, returns NULL. */
struct hfd_service_resolver *hfd_service_resolver_free(struct hfd_service_resolver *resolver);

/* The address for a call; both strings are owned. */
struct hfd_service_address {
        char *url;        /* "https://NAME.NAMESPACE.svc:443/path" */
        char *connect_to; /* "host:port"; NULL = the URL's */
};

/* resolver may be NULL: no service is named. path may be NULL or lack its first slash. The URL has
 * passed hfd_https_url_clean. The caller calls hfd_service_address_done. 0 or -ENOMEM. Never
 * blocks. */
int hfd_service_resolve(const struct hfd_service_resolver *resolver, const char *ns,
                        const char *name, unsigned port, const char *path,
                        struct hfd_service_address *ret_address);
void hfd_service_address_done(struct hfd_service_address *address);
