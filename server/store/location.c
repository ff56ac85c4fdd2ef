/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and opens locations of stores. URLs are parsed here to find mistakes, and again by the
 * store.
 *
 * Invariant: a location that was parsed has either a file or URLs, never both. A message never
 * shows a password.
 */
#include "server/store/location.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/redact.h"
#include "server/storage/grpc/endpoint.h"
#include "server/storage/sqlite/store.h"
#include "server/store/configured_store.h"

/* The part of text after the scheme. NULL: text has another scheme, or nothing after it. */
static const char *text_after(const char *text, const char *scheme) {
        size_t n = strlen(scheme);

        return strncmp(text, scheme, n) == 0 && text[n] ? text + n : NULL;
}

/* Splits the URLs at commas. */
static int split_urls(const char *urls, struct hfd_location *location,
                      struct hf_status *reterr_status) {
        char shown[201];
        size_t n_urls = 0;

        /* A password may have a comma. So a list with a user is refused as a whole: the message
         * about one item could show a part of the password. */
        if (strchr(urls, '@'))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "etcd endpoint %s: must be <scheme>://<host>:<port> and nothing "
                               "more",
                               hf__redact(urls, shown, sizeof shown));
        for (const char *at = urls; *at;) {
                struct hfd_grpc_endpoint endpoint;
                size_t n = strcspn(at, ",");

                if (n == 0 || n_urls == HFD_MAX_ETCD_SERVERS || (at[n] == ',' && !at[n + 1]))
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "\"%s\" is not a comma separated list of 1 to %d URLs",
                                       hf__redact(urls, shown, sizeof shown), HFD_MAX_ETCD_SERVERS);
                location->endpoints[n_urls] = strndup(at, n);
                if (!location->endpoints[n_urls++])
                        return hf_fail(reterr_status, -ENOMEM, "out of memory");
                int r = hfd_grpc_endpoint_parse(location->endpoints[n_urls - 1], &endpoint,
                                                reterr_status);
                if (r != 0)
                        return r;
                at += n + (at[n] == ',');
        }
        return 0;
}

int hfd_location_parse(const char *name, const char *text, struct hfd_location *ret_location,
                       struct hf_status *reterr_status) {
        const char *urls = text_after(text, "etcd:");

        *ret_location = (struct hfd_location){.text = text, .file = text_after(text, "sqlite:")};
        if (!urls && (!ret_location->file || strstr(text, "://"))) {
                char shown[201];

                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s: \"%s\" is neither sqlite:FILE nor etcd:URL[,URL]", name,
                               hf__redact(text, shown, sizeof shown));
        }
        int r = urls ? split_urls(urls, ret_location, reterr_status) : 0;
        if (r != 0)
                hfd_location_deinit(ret_location);
        return r;
}

void hfd_location_deinit(struct hfd_location *location) {
        for (size_t i = 0; i < HFD_MAX_ETCD_SERVERS; i++)
                free(location->endpoints[i]);
        *location = (struct hfd_location){0};
}

int hfd_location_open(const struct hfd_location *location, const struct hf_host *host,
                      const struct hfd_config *config, bool create, struct hfd_store **ret_store,
                      struct hf_status *reterr_status) {
        assert((location->file != NULL) != (location->endpoints[0] != NULL)); /* it was parsed */
        if (location->file)
                return hfd_sqlite_store_new(host, location->file, create, ret_store, reterr_status);
        return hfd_configured_etcd_new(host, config, (const char *const *)location->endpoints,
                                       ret_store, reterr_status);
}
