/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: bytes as base64, stringData written into data, one type for ever, and what the
 * well-known types must have. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/meta.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"

#define SECRET_MAX  (1u << 20)
#define ENTRIES_MAX 10000 /* where stringData is merged into data: each is looked for */

/* stringData, which is only ever sent, wins over data. 0 or -ENOMEM. */
static int take_string_data(struct hf__json *object) {
        struct hf__json *sent = hf__json_get(object, "stringData");
        int r = 0;

        if (hf__json_count(sent) && !hf__json_get(object, "data"))
                r = hf__json_set(object, "data", hf__json_object());
        struct hf__json *data = hf__json_get(object, "data");
        for (struct hf__json *m = hf__json_first(sent); m && r == 0; m = hf__json_next(m)) {
                struct hf__strbuf s = {0};
                hf__base64_encode(&s, hf__json_text(m), strlen(hf__json_text(m)));
                r = s.error ? s.error
                            : hf__json_put_string(data, hf__json_key(m), s.data ? s.data : "");
                hf__strbuf_done(&s);
        }
        if (r == 0)
                hf__json_drop(object, "stringData");
        return r;
}

bool hfd_secret_decode(struct hf__json *object, char *reason, size_t max_reason) {
        const struct hf__json *type = hf__json_get(object, "type");
        size_t at;

        if (!hfd_part_is_map(object, "data", "Secret", reason, max_reason) ||
            !hfd_part_is_map(object, "stringData", "Secret", reason, max_reason))
                return false;
        if (type && !hf__json_is_null(type) && !hf__json_is_string(type)) {
                (void)snprintf(reason, max_reason,
                               "json: cannot unmarshal into Go struct field Secret.type of type "
                               "v1.SecretType");
                return false;
        }
        for (struct hf__json *m = hf__json_first(hf__json_get(object, "data")); m;
             m = hf__json_next(m))
                if (!hf__base64_check(hf__json_text(m), &at)) {
                        (void)snprintf(reason, max_reason, "illegal base64 data at input byte %zu",
                                       at);
                        return false;
                }
        if (hf__json_get(object, "stringData") &&
            hf__json_count(hf__json_get(object, "stringData")) +
                            hf__json_count(hf__json_get(object, "data")) >
                    ENTRIES_MAX) {
                (void)snprintf(reason, max_reason, "data and stringData have more than %d entries",
                               ENTRIES_MAX);
                return false;
        }
        if (!take_string_data(object))
                return true;
        (void)snprintf(reason, max_reason, "out of memory");
        return false;
}

int hfd_secret_prepare(struct hf__json *object, const struct hf__json *old) {
        const char *type = hf__json_string(object, "type"), *was = hf__json_string(old, "type");

        return type && *type ? 0 : hf__json_set_string(object, "type", was ? was : "Opaque");
}

static void require_data(const struct hf__json *object, const char *key,
                         struct hfd_causes *causes) {
        char field[64];

        (void)snprintf(field, sizeof field, "data[%s]", key);
        if (!hf__json_get(hf__json_get(object, "data"), key))
                hfd_cause_required(causes, field, "");
}

static void validate_type(const struct hf__json *object, const char *type,
                          struct hfd_causes *causes) {
        static const struct {
                const char *type, *keys[2];
        } needs[] = {{"kubernetes.io/dockercfg", {".dockercfg"}},
                     {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}},
                     {"kubernetes.io/ssh-auth", {"ssh-privatekey"}},
                     {"kubernetes.io/tls", {"tls.crt", "tls.key"}}};
        const struct hf__json *data = hf__json_get(object, "data");

        for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
                for (size_t k = 0; strcmp(type, needs[i].type) == 0 && k < 2 && needs[i].keys[k];
                     k++)
                        require_data(object, needs[i].keys[k], causes);
        if (strcmp(type, "kubernetes.io/basic-auth") == 0 && !hf__json_get(data, "username") &&
            !hf__json_get(data, "password")) {
                require_data(object, "username", causes);
                require_data(object, "password", causes);
        }
        const char *account =
                hf__json_text(hf__json_get(hf__json_path(object, "metadata.annotations"),
                                           "kubernetes.io/service-account.name"));
        if (strcmp(type, "kubernetes.io/service-account-token") == 0 && (!account || !*account))
                hfd_cause_required(causes,
                                   "metadata.annotations[kubernetes.io/service-account.name]", "");
}

void hfd_secret_validate(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes) {
        static const char *const parts[] = {"data"};
        const char *type = hf__json_string(object, "type"), *was = hf__json_string(old, "type");
        size_t total = 0, n;

        hfd_validate_data_keys(object, "data", causes);
        for (struct hf__json *m = hf__json_first(hf__json_get(object, "data")); m;
             m = hf__json_next(m))
                if (hf__base64_check(hf__json_text(m), &n))
                        total += n;
        if (total > SECRET_MAX)
                hfd_cause_too_long(causes, "data", "must have at most 1048576 bytes");
        if (was && strcmp(was, type) != 0) {
                char quoted[300];
                hfd_quote(type, quoted, sizeof quoted);
                hfd_cause_invalid(causes, "type", quoted, "field is immutable");
        }
        validate_type(object, type, causes);
        hfd_validate_immutable(object, old, parts, 1, causes);
}
