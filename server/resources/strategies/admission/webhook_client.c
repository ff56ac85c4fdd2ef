/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates the address of a webhook: a URL or a service.
 *
 * Invariant: only https without a user is accepted, so objects never leave the server in plain text
 * and no password is stored in a configuration that many may read. The texts are those of
 * kube-apiserver.
 */
#include "server/resources/strategies/admission/webhook_client.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/rule_path.h"
#include "server/resources/strategies/admission/webhook_url.h"
#include "server/resources/validation/names.h"

#define FORM "; desired format: https://host[/path]"

/* ---- the URL ---- */

/* "Invalid value" with a part of the URL. The copy of the part, which ends with a NUL, is cut to
 * 299 bytes: a cause shows fewer. */
static void refuse_part(const struct hfd_url_part *part, const char *field, const char *detail,
                        struct hfd_causes *causes) {
        char text[300];

        (void)snprintf(text, sizeof text, "%.*s", (int)(part->n < 299 ? part->n : 299),
                       part->at ? part->at : "");
        hfd_cause_invalid_text(causes, field, text, detail);
}

void hfd_webhook_url_validate(const char *text, const char *field, struct hfd_causes *causes) {
        char error[HFD_URL_ERROR_MAX], detail[HFD_URL_ERROR_MAX + 100];
        struct hfd_url url;

        if (!hfd_url_parse(text, &url, error)) {
                (void)snprintf(detail, sizeof detail, "url must be a valid URL: %s" FORM, error);
                hfd_cause_required(causes, field, detail);
                return;
        }
        if (url.scheme.n != 5 || strncasecmp(url.scheme.at, "https", 5) != 0)
                refuse_part(&url.scheme, field, "'https' is the only allowed URL scheme" FORM,
                            causes);
        if (url.host.n == 0)
                refuse_part(&url.host, field, "host must be specified" FORM, causes);
        if (url.has_user)
                refuse_part(&url.user, field, "user information is not permitted in the URL",
                            causes);
        if (url.fragment.n > 0)
                refuse_part(&url.fragment, field, "fragments are not permitted in the URL", causes);
        if (url.query.n > 0)
                refuse_part(&url.query, field, "query parameters are not permitted in the URL",
                            causes);
}

/* ---- the service ---- */

/* "Invalid value" for a segment of the path. why: a rule, which follows a colon; or, if it begins
 * with a space, the rest of a sentence. */
static void refuse_path(const char *path, const char *field, size_t segment, const char *why,
                        struct hfd_causes *causes) {
        char detail[500];

        (void)snprintf(detail, sizeof detail, "segment[%zu]%s%s", segment, *why == ' ' ? "" : ": ",
                       why);
        hfd_cause_invalid_text(causes, field, path, detail);
}

/* The segments of the path are DNS subdomains; a slash at the end begins no segment. A path may
 * have many segments, so the loop ends when the causes are full. */
static void check_path(const char *path, const char *field, struct hfd_causes *causes) {
        size_t n_path = strlen(path), at = 1, i = 0;

        if (!*path || strcmp(path, "/") == 0)
                return;
        if (strcmp(path, "//") == 0) {
                refuse_path(path, field, 0, " may not be empty", causes);
                return;
        }
        if (*path != '/')
                hfd_cause_invalid_text(causes, field, path, "must start with a '/'");
        if (path[n_path - 1] == '/' && n_path > 1)
                n_path--;
        for (; at <= n_path && causes->n < HFD_CAUSES_MAX; i++) {
                const char *slash = memchr(path + at, '/', n_path - at);
                size_t n = slash ? (size_t)(slash - path) - at : n_path - at;
                if (n == 0)
                        refuse_path(path, field, i, " may not be empty", causes);
                if (n > HFD_DNS_SUBDOMAIN_MAX)
                        refuse_path(path, field, i, hfd_dns_subdomain_length_rule, causes);
                if (n > 0 && !hfd_has_subdomain_form(path + at, n))
                        refuse_path(path, field, i, hfd_dns_subdomain_rule, causes);
                at += n + 1;
        }
}

void hfd_webhook_service_validate(const struct hf__json *service, const char *field,
                                  struct hfd_causes *causes) {
        char value[32], path[HFD_RULE_PATH_MAX];
        int64_t port = 0;

        /* kube-apiserver confuses the two paths here, and clients see its messages. */
        if (!*hf__json_string_or_empty(service, "namespace"))
                hfd_cause_required(causes, hfd_rule_path(path, field, "name"), "");
        if (!*hf__json_string_or_empty(service, "name"))
                hfd_cause_required(causes, hfd_rule_path(path, field, "namespace"), "");
        (void)hf__json_i64(service, "port", &port);
        (void)snprintf(value, sizeof value, "%lld", (long long)port);
        if (port < 1 || port > 65535)
                hfd_cause_invalid(causes, hfd_rule_path(path, field, "port"), value,
                                  "port is not valid: must be between 1 and 65535, inclusive");
        check_path(hf__json_string_or_empty(service, "path"), hfd_rule_path(path, field, "path"),
                   causes);
}
