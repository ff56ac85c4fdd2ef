/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sources of projected volumes: trust anchors of the cluster (clusterTrustBundle), which are
 * chosen by their name or by their signer, and a key with a certificate for the pod
 * (podCertificate). projected_validation.c has the rules of their paths.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/validation/signer_names.h"

#define ANNOTATIONS_MAX        (256 * 1024) /* bytes */
#define SECONDS_MIN            3600
#define SECONDS_MAX            (91 * 24 * 3600)
#define KUBERNETES_SECONDS_MAX (24 * 3600)

static const struct hfd_internal_member of_bundle[] = {{"Name", "name"},
                                                       {"SignerName", "signerName"},
                                                       {"LabelSelector", "labelSelector"},
                                                       {"Optional", "optional"},
                                                       {"Path", "path", .is_text = true},
                                                       {0}};

/* ---- trust anchors ---- */

static void refuse_name(const char *name, const char *field, const char *why,
                        struct hfd_causes *causes) {
        char detail[760];

        (void)snprintf(detail, sizeof detail, "not a valid clustertrustbundlename: %s", why);
        hfd_cause_invalid_text(causes, field, name, detail);
}

/* A bundle of the signer "DOMAIN/PATH" has the name "DOMAIN:PATH:NAME"; a bundle without a signer
 * has a name without colons. So a slash before the last colon is wrong: it should be a colon. */
static void validate_bundle_name(const char *name, const char *field, struct hfd_causes *causes) {
        const char *colon = strrchr(name, ':'), *own = colon ? colon + 1 : name;
        const char *slash = strchr(name, '/');
        struct hf__strbuf why = {0};

        if (colon == name) {
                refuse_name(name, field,
                            "ClusterTrustBundle without signer name must not have \":\" in its "
                            "name",
                            causes);
        } else if (slash && slash < own) {
                size_t n = (size_t)(colon - name);
                hf__strbuf_puts(&why, "ClusterTrustBundle for signerName ");
                for (size_t i = 0; i < n; i++)
                        hf__strbuf_putc(&why, name[i] == ':' ? '/' : name[i]);
                hf__strbuf_puts(&why, " must be named with prefix ");
                for (size_t i = 0; i <= n; i++)
                        hf__strbuf_putc(&why, name[i] == '/' ? ':' : name[i]);
                refuse_name(name, field, hfd_causes_check(causes, why.error) ? why.data : "",
                            causes);
        } else {
                if (strlen(own) > HFD_DNS_SUBDOMAIN_MAX)
                        refuse_name(name, field, hfd_dns_subdomain_length_rule, causes);
                if (!hfd_has_subdomain_form(own, strlen(own)))
                        refuse_name(name, field, hfd_dns_subdomain_rule, causes);
        }
        hf__strbuf_done(&why);
}

static void refuse_selector(const struct hf__json *selector, const char *field,
                            struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        hf__json_print(selector, &shown);
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, shown.error) ? shown.data : "",
                          "labelSelector must be unset if name is specified");
        hf__strbuf_done(&shown);
}

void hfd_trust_bundle_validate(const struct hf__json *source, const char *field,
                               struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(source, "labelSelector");
        bool has_name = hf__json_get(source, "name"),
             has_signer = hf__json_get(source, "signerName");
        const char *name = hfd_text_of(source, "name"), *signer = hfd_text_of(source, "signerName");
        char of_name[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_name, field, has_name ? "name" : "signerName");
        hfd_field_path(path, field, "labelSelector");
        if (has_name && has_signer) {
                hfd_internal_refuse(source, of_bundle, field,
                                    "only one of name and signerName may be used", causes);
        } else if (has_name) {
                if (!*name)
                        hfd_cause_required(causes, of_name, "must be a valid object name");
                validate_bundle_name(name, of_name, causes);
                if (selector)
                        refuse_selector(selector, path, causes);
        } else if (has_signer) {
                if (!*signer)
                        hfd_cause_required(causes, of_name, "must be a valid signer name");
                hfd_signer_name_validate(signer, of_name, causes);
                hfd_match_selector_validate(selector, path, causes);
        } else {
                hfd_cause_required(causes, field, "either name or signerName must be specified");
        }
}

/* ---- certificates ---- */

/* Keys need a prefix, and capitals in them count as lower case. A key that is too long for the copy
 * is too long for a key, so it is refused as it is. */
static void validate_annotation_key(const char *key, const char *field, struct hfd_causes *causes) {
        char lower[HFD_DNS_SUBDOMAIN_MAX + HFD_LABEL_VALUE_MAX + 2];
        size_t n = strlen(key), n_causes = causes->n;

        if (n == 0) {
                hfd_cause_required(causes, field, "");
                return;
        }
        for (size_t i = 0; i <= n && n < sizeof lower; i++)
                lower[i] = key[i] >= 'A' && key[i] <= 'Z' ? (char)(key[i] + ('a' - 'A')) : key[i];
        if (n < sizeof lower)
                key = lower;
        hfd_qualified_name_validate(key, field, causes);
        if (causes->n == n_causes && !strchr(key, '/'))
                hfd_cause_invalid_text(causes, field, key,
                                       "must be a domain-prefixed key (such as \"acme.io/foo\")");
}

static void validate_annotations(const struct hf__json *annotations, const char *field,
                                 struct hfd_causes *causes) {
        size_t total = 0;

        for (const struct hf__json *m = hf__json_first(annotations); m; m = hf__json_next(m)) {
                validate_annotation_key(hf__json_key(m), field, causes);
                total += strlen(hf__json_key(m)) + strlen(hf__json_text_or_empty(m));
        }
        if (total > ANNOTATIONS_MAX)
                hfd_cause_too_long(causes, field, "may not be more than 262144 bytes");
}

/* The signers of Kubernetes itself sign for a day at most. */
static void validate_seconds(const struct hf__json *source, const char *field,
                             struct hfd_causes *causes) {
        bool of_kubernetes = hfd_is_kubernetes_signer(hfd_text_of(source, "signerName"));

        hfd_require_range(source, field, "maxExpirationSeconds", SECONDS_MIN, INT64_MAX,
                          "if provided, maxExpirationSeconds must be >= 3600", causes);
        if (of_kubernetes)
                hfd_require_range(source, field, "maxExpirationSeconds", INT64_MIN,
                                  KUBERNETES_SECONDS_MAX,
                                  "if provided, maxExpirationSeconds must be <= 86400", causes);
        else
                hfd_require_range(source, field, "maxExpirationSeconds", INT64_MIN, SECONDS_MAX,
                                  "if provided, maxExpirationSeconds must be <= 7862400", causes);
}

void hfd_pod_certificate_validate(const struct hf__json *source, const char *field,
                                  struct hfd_causes *causes) {
        static const char *const types[] = {"RSA3072",   "RSA4096", "ECDSAP256", "ECDSAP384",
                                            "ECDSAP521", "ED25519", NULL};
        char path[HFD_FIELD_PATH_MAX];

        hfd_signer_name_validate(hfd_text_of(source, "signerName"),
                                 hfd_field_path(path, field, "signerName"), causes);
        validate_annotations(hf__json_get(source, "userAnnotations"),
                             hfd_field_path(path, field, "userAnnotations"), causes);
        hfd_refuse_others(hfd_text_of(source, "keyType"), hfd_field_path(path, field, "keyType"),
                          types, causes);
        validate_seconds(source, field, causes);
}
