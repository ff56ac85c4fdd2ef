/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of spec.conversion. A webhook is stored, but not called.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/definition/definition_rules.h"
#include "server/resources/strategies/definition/webhook_url.h"
#include "server/resources/validation/names.h"

#define PATH        "spec.conversion."
#define CLIENT_PATH PATH "webhookClientConfig"
#define FORM        "; desired format: https://host[/path]"

/* ---- the URL ---- */

/* The same for a part of the URL. */
static void refuse_part(const struct hfd_url_part *part, const char *detail,
                        struct hfd_causes *causes) {
        char text[300];

        (void)snprintf(text, sizeof text, "%.*s", (int)(part->n < 299 ? part->n : 299),
                       part->at ? part->at : "");
        hfd_cause_invalid_text(causes, CLIENT_PATH ".url", text, detail);
}

static void check_url(const char *text, struct hfd_causes *causes) {
        char error[HFD_URL_ERROR_MAX], detail[HFD_URL_ERROR_MAX + 100];
        struct hfd_url url;

        if (!hfd_url_parse(text, &url, error)) {
                (void)snprintf(detail, sizeof detail, "url must be a valid URL: %s" FORM, error);
                hfd_cause_required(causes, CLIENT_PATH ".url", detail);
                return;
        }
        if (url.scheme.n != 5 || strncasecmp(url.scheme.at, "https", 5) != 0)
                refuse_part(&url.scheme, "'https' is the only allowed URL scheme" FORM, causes);
        if (url.host.n == 0)
                refuse_part(&url.host, "host must be specified" FORM, causes);
        if (url.has_user)
                refuse_part(&url.user, "user information is not permitted in the URL", causes);
        if (url.fragment.n > 0)
                refuse_part(&url.fragment, "fragments are not permitted in the URL", causes);
        if (url.query.n > 0)
                refuse_part(&url.query, "query parameters are not permitted in the URL", causes);
}

/* ---- the service ---- */

static void refuse_path(const char *path, size_t segment, const char *why,
                        struct hfd_causes *causes) {
        char detail[500];

        (void)snprintf(detail, sizeof detail, "segment[%zu]%s%s", segment, *why == ' ' ? "" : ": ",
                       why);
        hfd_cause_invalid_text(causes, CLIENT_PATH ".service.path", path, detail);
}

/* The segments of the path are DNS subdomains; a slash at the end counts as nothing. */
static void check_service_path(const char *path, struct hfd_causes *causes) {
        size_t n_path = strlen(path), at = 1, i = 0;

        if (!*path || strcmp(path, "/") == 0)
                return;
        if (strcmp(path, "//") == 0) {
                refuse_path(path, 0, " may not be empty", causes);
                return;
        }
        if (*path != '/')
                hfd_cause_invalid_text(causes, CLIENT_PATH ".service.path", path,
                                       "must start with a '/'");
        if (path[n_path - 1] == '/' && n_path > 1)
                n_path--;
        for (; at <= n_path && causes->n < HFD_CAUSES_MAX; i++) {
                const char *slash = memchr(path + at, '/', n_path - at);
                size_t n = slash ? (size_t)(slash - path) - at : n_path - at;
                char segment[HFD_DNS_SUBDOMAIN_MAX + 2];
                (void)snprintf(segment, sizeof segment, "%.*s",
                               (int)(n < sizeof segment ? n : sizeof segment - 1), path + at);
                if (n == 0)
                        refuse_path(path, i, " may not be empty", causes);
                else if (n > HFD_DNS_SUBDOMAIN_MAX)
                        refuse_path(path, i, "must be no more than 253 bytes", causes);
                else if (!hfd_is_dns_subdomain(segment))
                        refuse_path(path, i, hfd_dns_subdomain_rule, causes);
                at += n + 1;
        }
}

static void check_service(const struct hf__json *service, struct hfd_causes *causes) {
        char value[32];
        int64_t port = 0;

        /* Kubernetes mixes up the two names here, and clients see its messages. */
        if (!*hfd_definition_text(service, "namespace"))
                hfd_cause_required(causes, CLIENT_PATH ".service.name", "");
        if (!*hfd_definition_text(service, "name"))
                hfd_cause_required(causes, CLIENT_PATH ".service.namespace", "");
        (void)hf__json_i64(service, "port", &port);
        (void)snprintf(value, sizeof value, "%lld", (long long)port);
        if (port < 1 || port > 65535)
                hfd_cause_invalid(causes, CLIENT_PATH ".service.port", value,
                                  "port is not valid: must be between 1 and 65535, inclusive");
        check_service_path(hfd_definition_text(service, "path"), causes);
}

/* ---- the webhook ---- */

/* Whether a bundle of CA certificates is PEM. Its certificates are not read, because nothing uses
 * them. */
static bool is_pem(const char *base64) {
        char *data = NULL;
        size_t n = 0;
        bool found = false;

        if (hf__base64_decode(base64, strlen(base64), &data, &n) == 0)
                found = n > 0 && memmem(data, n, "-----BEGIN ", 11) != NULL;
        free(data);
        return found;
}

static bool is_known_review_version(const char *name) {
        return strcmp(name, "v1") == 0 || strcmp(name, "v1beta1") == 0;
}

static bool has_known_review_version(const struct hf__json *versions) {
        for (const struct hf__json *m = hf__json_first(versions); m; m = hf__json_next(m))
                if (is_known_review_version(hf__json_text(m)))
                        return true;
        return false;
}

/* Whether an element before m has the same text. */
static bool occurs_before(const struct hf__json *list, const struct hf__json *m) {
        for (const struct hf__json *e = hf__json_first(list); e && e != m; e = hf__json_next(e))
                if (strcmp(hf__json_text(e), hf__json_text(m)) == 0)
                        return true;
        return false;
}

/* must_know: one of the versions must be one that kube-apiserver knows. */
static void check_review_versions(const struct hf__json *versions, bool must_know,
                                  struct hfd_causes *causes) {
        static const char path[] = PATH "conversionReviewVersions";
        char field[HFD_DEFINITION_PATH_MAX], list[300];
        size_t i = 0;

        if (!hf__json_first(versions)) {
                hfd_cause_required(causes, path, "");
                return;
        }
        /* A good list has two elements that differ, and few more: 64 are enough to see a mistake.
         */
        for (const struct hf__json *m = hf__json_first(versions); m && i < 64;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_text(m);
                (void)snprintf(field, sizeof field, "%s[%zu]", path, i);
                if (occurs_before(versions, m))
                        hfd_cause_invalid_text(causes, field, name, "duplicate version");
                else
                        hfd_definition_check_label(name, field, name, "", causes);
        }
        if (!must_know || has_known_review_version(versions))
                return;
        hfd_quote_list(versions, list, sizeof list);
        hfd_cause_invalid(causes, path, list, "must include at least one of v1, v1beta1");
}

static void check_client(const struct hf__json *client, const struct hf__json *old,
                         bool established, struct hfd_causes *causes) {
        const struct hf__json *service = hf__json_get(client, "service");
        const char *url = hf__json_string(client, "url"),
                   *bundle = hfd_definition_text(client, "caBundle"),
                   *old_bundle = hfd_definition_text(old, "webhook.clientConfig.caBundle");
        bool may_be_bad = !established || (*old_bundle && !is_pem(old_bundle));

        if (!client) {
                hfd_cause_required(causes, CLIENT_PATH, "required when strategy is set to Webhook");
                return;
        }
        if ((url != NULL) == (service != NULL))
                hfd_cause_required(causes, CLIENT_PATH,
                                   "exactly one of url or service is required");
        else if (url)
                check_url(url, causes);
        else
                check_service(service, causes);
        if (*bundle && !may_be_bad && !is_pem(bundle))
                hfd_cause_invalid_text(causes, CLIENT_PATH ".caBundle", bundle,
                                       "unable to load root certificates: unable to parse bytes as "
                                       "PEM block");
}

void hfd_definition_check_conversion(const struct hf__json *conversion, const struct hf__json *old,
                                     bool established, struct hfd_causes *causes) {
        const char *strategy = hfd_definition_text(conversion, "strategy");
        const struct hf__json *client = hf__json_path(conversion, "webhook.clientConfig"),
                              *versions =
                                      hf__json_path(conversion, "webhook.conversionReviewVersions"),
                              *old_versions =
                                      hf__json_path(old, "webhook.conversionReviewVersions");

        if (!*strategy)
                hfd_cause_required(causes, PATH "strategy", "");
        else if (strcmp(strategy, "None") != 0 && strcmp(strategy, "Webhook") != 0)
                hfd_cause_unsupported_text(causes, PATH "strategy", strategy,
                                           "\"None\", \"Webhook\"");
        if (strcmp(strategy, "Webhook") == 0) {
                check_client(client, old, established, causes);
                check_review_versions(versions,
                                      !hf__json_first(old_versions) ||
                                              has_known_review_version(old_versions),
                                      causes);
                return;
        }
        if (client)
                hfd_cause_forbidden(causes, CLIENT_PATH,
                                    "should not be set when strategy is not set to Webhook");
        if (hf__json_first(versions))
                hfd_cause_forbidden(causes, PATH "conversionReviewVersions",
                                    "should not be set when strategy is not set to Webhook");
}
