/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema and the strategy of Secrets. The values of data are base64. The type must not change,
 * and most well-known types require certain keys or an annotation.
 *
 * Invariants: stringData exists in requests only. hfd_secret_normalize moves it into data, so it is
 * never stored or served. No cause shows a value of a Secret. What a rule decodes is wiped from
 * memory (require_json), except keys of JSON, and what the parser has read of a text that it then
 * refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/data/data_map.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

static const struct hfd_schema type_text = {.type = HFD_SCHEMA_TEXT,
                                            .definition = HFD_CORE "SecretType"};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        {"data", &hfd_schema_map_of_bytes,
         "The secret values, as base64. Each key is a valid file name.", .protobuf_tag = 2},
        {"immutable", &hfd_schema_boolean, "If true, data cannot be changed any more.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"stringData", &hfd_schema_map_of_texts,
         "Values as text. A write moves them into data; they are never returned.",
         .protobuf_tag = 4},
        {"type", &type_text, "What the secret is for. It cannot be changed.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_secret_schema = {HFD_STRUCT(HFD_CORE "Secret", fields),
                                             .description =
                                                     "Secret holds passwords, tokens and keys."};

/* Moves the entry `sent` of stringData into data. by_key: an index of data. 0 or -ENOMEM. */
static int merge_entry(struct hf__json *data, const struct hf__json_index *by_key,
                       const struct hf__json *sent) {
        struct hf__json_index_entry *entry = hf__json_index_find(by_key, hf__json_key(sent));
        struct hf__strbuf s = {0};
        int r;

        hf__base64_encode(&s, hf__json_text(sent), strlen(hf__json_text(sent)));
        r = s.error;
        if (r == 0 && entry)
                r = hf__json_set_text(entry->item, s.data ? s.data : "");
        else if (r == 0)
                r = hf__json_add_string(data, hf__json_key(sent), s.data ? s.data : "");
        hf__strbuf_done(&s);
        return r;
}

/*
 * Moves stringData into data, where it replaces values of the same key. Neither has a key twice, so
 * the index of data need not contain what is added. 0 or -ENOMEM.
 */
int hfd_secret_normalize(struct hf__json *object) {
        struct hf__json *sent = hf__json_get(object, "stringData");
        struct hf__json_index by_key;
        int r = 0;

        if (hf__json_count(sent) > 0 && !hf__json_get(object, "data"))
                r = hf__json_set(object, "data", hf__json_object());
        if (r != 0)
                return r;
        struct hf__json *data = hf__json_get(object, "data");
        r = hf__json_index_init(&by_key, data, NULL);
        for (struct hf__json *m = hf__json_first(sent); m && r == 0; m = hf__json_next(m))
                r = merge_entry(data, &by_key, m);
        hf__json_index_done(&by_key);
        if (r == 0)
                hf__json_drop(object, "stringData");
        return r;
}

/* An update without a type keeps the stored type. */
int hfd_secret_prepare(struct hf__json *object, const struct hf__json *old) {
        const char *type = hf__json_string(object, "type"),
                   *old_type = hf__json_string(old, "type");

        if (type && *type)
                return 0;
        return hf__json_set_string(object, "type", old_type && *old_type ? old_type : "Opaque");
}

static void require_key(const struct hf__json *object, const char *key, struct hfd_causes *causes) {
        char field[64];

        (void)snprintf(field, sizeof field, "data[%s]", key);
        if (!hf__json_get(hf__json_get(object, "data"), key))
                hfd_cause_required(causes, field, "");
}

HF__CLEANUP_DEFINE(wipe_json, struct hf__json *, hf__json_wipe_free)

/* The file of credentials must be a JSON object, or null, which Go reads as none. The message does
 * not show what is in it. */
static void require_json(const struct hf__json *data, const char *key, struct hfd_causes *causes) {
        const char *text = hf__json_text(hf__json_get(data, key));
        HF__CLEANUP(wipe_json) struct hf__json *json = NULL;
        char *bytes = NULL, field[64], why[64] = "it is no JSON object";
        size_t n = 0, offset = 0;

        if (!text)
                return;
        int r = hf__base64_decode(text, strlen(text), &bytes, &n);
        if (r == 0) {
                r = hf__json_parse(bytes, n, &json, &offset);
                explicit_bzero(bytes, n);
                free(bytes);
        }
        if (r == -ENOMEM)
                hfd_causes_no_memory(causes);
        if (r == -ENOMEM || (r == 0 && (hf__json_is_object(json) || hf__json_is_null(json))))
                return;
        (void)snprintf(field, sizeof field, "data[%s]", key);
        if (r != 0)
                (void)snprintf(why, sizeof why, "it is not JSON, at byte %zu", offset);
        hfd_cause_invalid_text(causes, field, "<secret contents redacted>", why);
}

/* Only the well-known types are checked. Other types may have any keys. */
static void validate_type(const struct hf__json *object, const char *type,
                          struct hfd_causes *causes) {
        static const struct {
                const char *type, *keys[2];
        } needs[] = {{"kubernetes.io/dockercfg", {".dockercfg"}},
                     {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}},
                     {"kubernetes.io/ssh-auth", {"ssh-privatekey"}},
                     {"kubernetes.io/tls", {"tls.crt", "tls.key"}}};
        const struct hf__json *data = hf__json_get(object, "data");

        for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
                if (strcmp(type, needs[i].type) != 0)
                        continue;
                for (size_t k = 0; k < 2 && needs[i].keys[k]; k++)
                        require_key(object, needs[i].keys[k], causes);
        }
        /* As in Kubernetes, only this key may not be empty. */
        const char *key = hf__json_text(hf__json_get(data, "ssh-privatekey"));
        if (strcmp(type, "kubernetes.io/ssh-auth") == 0 && key && !*key)
                hfd_cause_required(causes, "data[ssh-privatekey]", "");
        /* One of the two keys is enough. If both are missing, Kubernetes reports both. */
        if (strcmp(type, "kubernetes.io/basic-auth") == 0 && !hf__json_get(data, "username") &&
            !hf__json_get(data, "password")) {
                require_key(object, "username", causes);
                require_key(object, "password", causes);
        }
        const char *account =
                hf__json_text(hf__json_get(hf__json_path(object, "metadata.annotations"),
                                           "kubernetes.io/service-account.name"));
        if (strcmp(type, "kubernetes.io/service-account-token") == 0 && (!account || !*account))
                hfd_cause_required(causes,
                                   "metadata.annotations[kubernetes.io/service-account.name]", "");
}

/* Bytes of all values, decoded. */
static size_t count_data_bytes(const struct hf__json *object) {
        size_t total = 0, n;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, "data")); m;
             m = hf__json_next(m))
                if (hf__base64_check(hf__json_text(m), &n))
                        total += n;
        return total;
}

void hfd_secret_validate(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes) {
        static const char *const files[][2] = {{"kubernetes.io/dockercfg", ".dockercfg"},
                                               {"kubernetes.io/dockerconfigjson",
                                                ".dockerconfigjson"}};
        static const struct hfd_data_part parts[] = {{"data", true}};
        const char *type = hf__json_string(object, "type"),
                   *old_type = hf__json_string(old, "type");

        hfd_data_map_validate_keys(object, "data", causes);
        if (count_data_bytes(object) > HFD_DATA_MAP_MAX)
                hfd_cause_too_long(causes, "data", "may not be more than 1048576 bytes");
        if (old_type && strcmp(old_type, type) != 0)
                hfd_cause_invalid_text(causes, "type", type, "field is immutable");
        validate_type(object, type, causes);
        /* Data that an update does not change is not checked: it may have been stored before
         * this rule existed. */
        for (size_t i = 0; i < 2; i++)
                if (strcmp(type, files[i][0]) == 0 &&
                    (!old || !hfd_causes_equal(causes, hf__json_get(object, "data"),
                                               hf__json_get(old, "data"))))
                        require_json(hf__json_get(object, "data"), files[i][1], causes);
        hfd_data_map_validate_immutable(object, old, parts, 1, causes);
}
