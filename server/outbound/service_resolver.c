/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps and searches the table of services (service_resolver.h).
 *
 * Invariants: the most precise item counts: one with a port, then one without, then "*". No key
 * occurs twice. The table does not change after it has been made, so threads need no lock.
 */
#include "server/outbound/service_resolver.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/outbound/https_url.h"

struct service {
        char *key;    /* owned: "namespace/name", "namespace/name:port" or "*" */
        char *target; /* owned: "host:port", or "host:" for the service's port */
};

struct hfd_service_resolver {
        size_t n;
        struct service services[];
};

struct hfd_service_resolver *hfd_service_resolver_free(struct hfd_service_resolver *resolver) {
        for (size_t i = 0; resolver && i < resolver->n; i++) {
                free(resolver->services[i].key);
                free(resolver->services[i].target);
        }
        free(resolver);
        return NULL;
}

/* A linear search: an administrator writes the table by hand, and after each search comes a call
 * over the network, which costs far more. */
static const struct service *find_service(const struct hfd_service_resolver *resolver,
                                          const char *key) {
        for (size_t i = 0; i < resolver->n; i++)
                if (strcmp(resolver->services[i].key, key) == 0)
                        return &resolver->services[i];
        return NULL;
}

/* Whether n bytes are "*" or "namespace/name" with or without ":port". The port has no zeros in
 * front, because keys are compared as texts. */
static bool is_key(const char *key, size_t n) {
        const char *slash = memchr(key, '/', n);
        char name[HFD_HTTPS_HOST_MAX], port[6];

        if (n == 1 && key[0] == '*')
                return true;
        return slash && slash > key && slash[1] != '[' &&
               strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-") == (size_t)(slash - key) &&
               hfd_host_port_parse(slash + 1, n - (size_t)(slash + 1 - key), name, port) &&
               port[0] != '0';
}

/* Whether the target of n bytes has a port. A colon in brackets belongs to an IPv6 address. */
static bool has_port(const char *target, size_t n) {
        const char *colon = memrchr(target, ':', n);

        return colon && !memchr(colon, ']', n - (size_t)(colon - target));
}

/* Adds the item of n bytes. 0, HF_E_INVALID or -ENOMEM. */
static int add_item(struct hfd_service_resolver *resolver, const char *item, size_t n) {
        const char *equals = memchr(item, '=', n);
        char host[HFD_HTTPS_HOST_MAX], port[6];

        if (!equals || !is_key(item, (size_t)(equals - item)))
                return HF_E_INVALID;
        const char *target = equals + 1;
        size_t n_target = n - (size_t)(target - item);
        if (!hfd_host_port_parse(target, n_target, host, port))
                return HF_E_INVALID;
        struct service service = {.key = strndup(item, (size_t)(equals - item))};
        if (!service.key)
                return -ENOMEM;
        /* Of two addresses for one service, one would be ignored without a word. */
        bool twice = find_service(resolver, service.key) != NULL;
        if (twice || asprintf(&service.target, has_port(target, n_target) ? "%.*s" : "%.*s:",
                              (int)n_target, target) < 0) {
                free(service.key);
                return twice ? HF_E_INVALID : -ENOMEM;
        }
        assert(service.key && service.target);
        resolver->services[resolver->n++] = service;
        return 0;
}

int hfd_service_resolver_new(const char *text, struct hfd_service_resolver **ret_resolver,
                             struct hf_status *reterr_status) {
        size_t n_items = 1;

        for (const char *at = text; *at; at++)
                n_items += *at == ',';
        struct hfd_service_resolver *resolver =
                calloc(1, sizeof *resolver + n_items * sizeof(struct service));
        if (!resolver)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        while (*text) {
                size_t n = strcspn(text, ",");
                int r = n > 0 ? add_item(resolver, text, n) : 0;
                if (r != 0) {
                        hfd_service_resolver_free(resolver);
                        return hf_fail(reterr_status, r,
                                       "\"%.*s\" is not NAMESPACE/NAME[:PORT]=HOST[:PORT] or "
                                       "*=HOST[:PORT], or names a service again",
                                       (int)(n < 200 ? n : 200), text);
                }
                text += n;
                text += *text == ',';
        }
        *ret_resolver = resolver;
        return 0;
}

/* The item for a service; NULL = none. */
static const struct service *match_service(const struct hfd_service_resolver *resolver,
                                           const char *ns, const char *name, unsigned port) {
        char key[1024];

        (void)snprintf(key, sizeof key, "%s/%s:%u", ns, name, port);
        const struct service *service = find_service(resolver, key);
        if (!service) {
                (void)snprintf(key, sizeof key, "%s/%s", ns, name);
                service = find_service(resolver, key);
        }
        return service ? service : find_service(resolver, "*");
}

/* The URL has the name that the service has in a cluster, also if another address is connected to:
 * its certificate is for that name, and so is the header Host. */
int hfd_service_resolve(const struct hfd_service_resolver *resolver, const char *ns,
                        const char *name, unsigned port, const char *path,
                        struct hfd_service_address *ret_address) {
        const struct service *service = resolver ? match_service(resolver, ns, name, port) : NULL;
        char *url = NULL;

        *ret_address = (struct hfd_service_address){0};
        if (asprintf(&url, "https://%s.%s.svc:%u/%s", name, ns, port, path ? path : "") < 0)
                return -ENOMEM;
        int r = hfd_https_url_clean(url, &ret_address->url);
        free(url);
        if (r != 0)
                return r;
        if (!service)
                return 0;
        bool takes_port = service->target[strlen(service->target) - 1] == ':';
        int n = takes_port ? asprintf(&ret_address->connect_to, "%s%u", service->target, port)
                           : asprintf(&ret_address->connect_to, "%s", service->target);
        if (n < 0) {
                ret_address->connect_to = NULL;
                hfd_service_address_done(ret_address);
                return -ENOMEM;
        }
        return 0;
}

void hfd_service_address_done(struct hfd_service_address *address) {
        free(address->url);
        free(address->connect_to);
        *address = (struct hfd_service_address){0};
}
