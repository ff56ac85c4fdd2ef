/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CertificateSigningRequests: a client requests a certificate, a user approves it, a signer signs
 * it. registry/write/checks/certificate.c has the rules that depend on the user, on the path of the
 * request and on X.509.
 *
 * Invariant: the conditions Approved, Denied and Failed are never removed, and Approved and Denied
 * exclude each other. Signers and certificate-cleaner, the controller that deletes old requests,
 * rely on both.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/signer_names.h"
#include "server/schema/common.h"

#define CERTIFICATES     "io.k8s.api.certificates.v1."
#define SECONDS_MIN      600
#define LEGACY_SIGNER    "kubernetes.io/legacy-unknown"
#define CONDITIONS_FIELD "status.conditions"
#define CONDITIONS_MAX   100 /* each is compared with all others */

/* ---- the schema ---- */

/* The user is a part of the spec, so that the user who approves the request, and the signer, can
 * read who has asked. */
static const struct hfd_schema_field spec_fields[] = {
        {"expirationSeconds", &hfd_schema_int32,
         "How long the certificate is to be valid. Signers may choose another time.",
         .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"extra", HFD_MAP_OF_LISTS(CERTIFICATES "ExtraValue"),
         "Further values of the user. The server sets them.", .protobuf_tag = 6},
        {"groups", &hfd_schema_list_of_texts, "The groups of the user. The server sets them.",
         .protobuf_tag = 4},
        {"request", &hfd_schema_bytes,
         "A certificate request (PKCS #10) in PEM form, as base64. It cannot be changed.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"signerName", &hfd_schema_text,
         "Who is to sign: a domain and a path, such as kubernetes.io/kube-apiserver-client.",
         .protobuf_tag = 7, .flags = HFD_FIELD_REQUIRED},
        {"uid", &hfd_schema_text, "The uid of the user. The server sets it.", .protobuf_tag = 3},
        {"usages", HFD_LIST_OF(HFD_NAMED_TEXT(CERTIFICATES "KeyUsage")),
         "What the key of the certificate may be used for, such as client auth.",
         .protobuf_tag = 5},
        {"username", &hfd_schema_text, "The user who asks. The server sets it.", .protobuf_tag = 2},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(CERTIFICATES
                                                         "CertificateSigningRequestSpec",
                                                         spec_fields),
                                              .description = "The request. It cannot be changed."};

static const struct hfd_schema_field condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, "When the status last changed.",
         .protobuf_tag = 5},
        {"lastUpdateTime", &hfd_schema_time, "When the condition was last written.",
         .protobuf_tag = 4},
        {"message", &hfd_schema_text, "Details for a human reader.", .protobuf_tag = 3},
        {"reason", &hfd_schema_text, "Why, in one word.", .protobuf_tag = 2},
        {"status", HFD_NAMED_TEXT(HFD_CORE "ConditionStatus"), "True, False or Unknown.",
         .protobuf_tag = 6, .flags = HFD_FIELD_REQUIRED},
        {"type", HFD_NAMED_TEXT(CERTIFICATES "RequestConditionType"),
         "Approved, Denied, Failed, or a word of a signer.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema condition_schema =
        {HFD_STRUCT(CERTIFICATES "CertificateSigningRequestCondition", condition_fields),
         .description = "What has been decided about a request."};
static const char *const by_type[] = {"type", NULL};

static const struct hfd_schema_field status_fields[] = {
        {"certificate", &hfd_schema_bytes,
         "The certificate and those of its CAs in PEM form, as base64.", .protobuf_tag = 2},
        {"conditions",
         HFD_LIST_OF(&condition_schema, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         "What has been decided.", .protobuf_tag = 1},
};
static const struct hfd_schema status_schema = {HFD_STRUCT(CERTIFICATES
                                                           "CertificateSigningRequestStatus",
                                                           status_fields),
                                                .description = "What became of the request."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(NULL),
        {"spec", &spec_schema, "The request.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"status", &status_schema, "What became of it.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_certificate_request_schema =
        {HFD_STRUCT(CERTIFICATES "CertificateSigningRequest", fields),
         .description = "CertificateSigningRequest asks a signer for a certificate."};

/* ---- the spec ---- */

/* Counts each known usage, so that repeated ones are found in linear time. `supported` has the
 * names of `known` as kube-apiserver prints them; the two lists change together. */
static void validate_usages(const struct hf__json *object, struct hfd_causes *causes) {
        static const char *const known[] = {"any",
                                            "cert sign",
                                            "client auth",
                                            "code signing",
                                            "content commitment",
                                            "crl sign",
                                            "data encipherment",
                                            "decipher only",
                                            "digital signature",
                                            "email protection",
                                            "encipher only",
                                            "ipsec end system",
                                            "ipsec tunnel",
                                            "ipsec user",
                                            "key agreement",
                                            "key encipherment",
                                            "microsoft sgc",
                                            "netscape sgc",
                                            "ocsp signing",
                                            "s/mime",
                                            "server auth",
                                            "signing",
                                            "timestamping"};
        static const char supported[] =
                "\"any\", \"cert sign\", \"client auth\", \"code signing\", "
                "\"content commitment\", \"crl sign\", \"data encipherment\", \"decipher only\", "
                "\"digital signature\", \"email protection\", \"encipher only\", "
                "\"ipsec end system\", \"ipsec tunnel\", \"ipsec user\", \"key agreement\", "
                "\"key encipherment\", \"microsoft sgc\", \"netscape sgc\", \"ocsp signing\", "
                "\"s/mime\", \"server auth\", \"signing\", \"timestamping\"";
        const size_t n_known = sizeof known / sizeof known[0];
        const struct hf__json *usages = hf__json_path(object, "spec.usages");
        size_t n_seen[sizeof known / sizeof known[0]] = {0}, i = 0;
        char field[64];

        if (hf__json_count(usages) == 0)
                hfd_cause_required(causes, "spec.usages", "");
        for (const struct hf__json *m = hf__json_first(usages); m; m = hf__json_next(m), i++) {
                const char *usage = hf__json_is_string(m) ? hf__json_text(m) : "";
                size_t k = 0;
                while (k < n_known && strcmp(usage, known[k]) != 0)
                        k++;
                (void)snprintf(field, sizeof field, "spec.usages[%zu]", i);
                if (k == n_known)
                        hfd_cause_unsupported_text(causes, field, usage, supported);
                else if (n_seen[k]++ > 0)
                        hfd_cause_duplicate_text(causes, field, usage);
        }
}

static void validate_signer(const struct hf__json *object, struct hfd_causes *causes) {
        static const char field[] = "spec.signerName";
        const char *signer = hf__json_string_or_empty(object, field);

        if (strcmp(signer, LEGACY_SIGNER) == 0)
                hfd_cause_invalid_text(causes, field, signer,
                                       "the legacy signerName is not allowed via this API version");
        else
                hfd_signer_name_validate(signer, field, causes);
}

/* The least expirationSeconds is that of kube-apiserver. The clocks of machines may differ by
 * minutes, so a certificate that is valid for less time could be of no use to its client. */
static void validate_seconds(const struct hf__json *object, struct hfd_causes *causes) {
        int64_t seconds;
        char text[32];

        if (!hf__json_i64(object, "spec.expirationSeconds", &seconds) || seconds >= SECONDS_MIN)
                return;
        (void)snprintf(text, sizeof text, "%lld", (long long)seconds);
        hfd_cause_invalid(causes, "spec.expirationSeconds", text,
                          "may not specify a duration less than 600 seconds (10 minutes)");
}

/* ---- the status ---- */

/* The conditions that are never removed, and whose status is always True. */
static const char *const lasting[] = {"Approved", "Denied", "Failed"};

static bool is_type(const struct hf__json *condition, const char *type) {
        return hf__json_has_text(condition, "type", type);
}

/* How many conditions of the type there are. As in kube-apiserver, an update has removed one if it
 * leaves fewer of its type (validate_removal). */
static size_t count_conditions(const struct hf__json *object, const char *type) {
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, CONDITIONS_FIELD)); m;
             m = hf__json_next(m))
                n += is_type(m, type);
        return n;
}

/* Approved, Denied and Failed must be "True": a request without the condition Approved is not
 * approved, so a condition with "False" would say nothing more. Conditions of other types, which
 * signers choose, may also be "False" or "Unknown". */
static void validate_condition_status(const struct hf__json *condition, const char *field,
                                      struct hfd_causes *causes) {
        const char *status = hf__json_string(condition, "status");
        bool is_true = status && strcmp(status, "True") == 0, only_true = false;

        for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++)
                only_true = only_true || is_type(condition, lasting[i]);
        if (!status || !*status)
                hfd_cause_required(causes, field, "");
        else if (!is_true &&
                 (only_true || (strcmp(status, "False") != 0 && strcmp(status, "Unknown") != 0)))
                hfd_cause_unsupported_text(causes, field, status,
                                           only_true ? "\"True\""
                                                     : "\"False\", \"True\", \"Unknown\"");
}

static void validate_conditions(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *conditions = hf__json_path(object, CONDITIONS_FIELD);
        const char *first = NULL; /* the first of Approved and Denied */
        char field[80];
        size_t i = 0;

        if (hf__json_count(conditions) > CONDITIONS_MAX) {
                hfd_cause_too_long(causes, CONDITIONS_FIELD, "may not have more than 100 items");
                return;
        }
        for (const struct hf__json *m = hf__json_first(conditions); m; m = hf__json_next(m), i++) {
                const char *type = hf__json_string(m, "type");
                (void)snprintf(field, sizeof field, CONDITIONS_FIELD "[%zu].type", i);
                if (!type || !*type)
                        hfd_cause_required(causes, field, "");
                for (const struct hf__json *k = hf__json_first(conditions); k != m && type;
                     k = hf__json_next(k))
                        if (is_type(k, type)) {
                                hfd_cause_duplicate_text(causes, field, type);
                                break;
                        }
                (void)snprintf(field, sizeof field, CONDITIONS_FIELD "[%zu].status", i);
                validate_condition_status(m, field, causes);
                if (!is_type(m, "Approved") && !is_type(m, "Denied"))
                        continue;
                if (first && strcmp(first, type) != 0)
                        hfd_cause_invalid_text(causes, CONDITIONS_FIELD, type,
                                               "Approved and Denied conditions are mutually "
                                               "exclusive");
                first = first ? first : type;
        }
}

/* A signer may have acted on a condition before it was removed, so the removal would hide why a
 * certificate exists. */
static void validate_removal(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        char why[80];

        for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
                if (count_conditions(object, lasting[i]) >= count_conditions(old, lasting[i]))
                        continue;
                (void)snprintf(why, sizeof why, "updates may not remove a condition of type \"%s\"",
                               lasting[i]);
                hfd_cause_forbidden(causes, CONDITIONS_FIELD, why);
        }
}

void hfd_certificate_request_validate(const struct hf__json *object, const struct hf__json *old,
                                      struct hfd_causes *causes) {
        /* An update keeps the old spec (registry/write/checks/certificate.c), so only a create
         * checks it. */
        if (!old) {
                validate_usages(object, causes);
                validate_signer(object, causes);
                validate_seconds(object, causes);
                return;
        }
        validate_conditions(object, causes);
        validate_removal(object, old, causes);
}
