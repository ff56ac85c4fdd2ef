/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the webhook of a definition, see webhook_config.h. The validation of the definition has
 * checked the members, but not whether caBundle contains certificates. If it does not, the call of
 * the webhook fails. A stored definition may be one that validation would refuse: what is wrong
 * with its webhook shows in the call, too.
 *
 * Invariant: a caBundle that cannot be decoded is a failure, never an absent one. Otherwise the
 * system's CAs would be trusted instead of the one that the definition names.
 */
#include "server/resources/custom/webhook_config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/resources/custom/custom_kind.h"

#define DEFAULT_PORT 443

/* As in Kubernetes, a caBundle of white space alone counts as absent. False: the text cannot be
 * decoded, or memory has run out. */
static bool read_bundle(const char *text, char **ret_pem) {
        char *data = NULL;
        size_t n = 0;

        *ret_pem = NULL;
        if (!text || !*text)
                return true;
        if (hf__base64_decode(text, strlen(text), &data, &n) != 0)
                return false;
        if (strspn(data, " \t\r\n") < n)
                *ret_pem = strndup(data, n);
        bool good = *ret_pem || strspn(data, " \t\r\n") >= n;
        free(data);
        return good;
}

bool hfd_webhook_config_read(const struct hfd_custom_kind *kind,
                             struct hfd_webhook_config *ret_config) {
        const struct hf__json *webhook = hf__json_path(kind->spec, "conversion.webhook"),
                              *client = hf__json_get(webhook, "clientConfig"),
                              *service = hf__json_get(client, "service");
        int64_t port = DEFAULT_PORT;

        assert(kind->spec);
        *ret_config = (struct hfd_webhook_config){.url = hf__json_string(client, "url")};
        (void)hf__json_i64(service, "port", &port);
        ret_config->service_ns = hf__json_string(service, "namespace");
        ret_config->service_name = hf__json_string(service, "name");
        ret_config->service_path = hf__json_string(service, "path");
        ret_config->service_port = (unsigned)port;
        ret_config->takes_v1 =
                hf__json_has_element(hf__json_get(webhook, "conversionReviewVersions"), "v1");
        if (!ret_config->url && (!ret_config->service_ns || !ret_config->service_name))
                return false;
        return read_bundle(hf__json_string(client, "caBundle"), &ret_config->ca_pem);
}
