/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes server-side apply. An object, a configuration and an updated object follow each other,
 * separated by NULs. The object has any managedFields. The results must be valid trees that the
 * parser accepts, and an apply that is repeated must change nothing.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "server/apply/apply.h"
#include "server/schema/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const by_name[] = {"k", "n", NULL};
static const struct hfd_schema_field item_fields[] = {
        {"k", &hfd_schema_text, .key_default = "d"},
        {"m", &hfd_schema_map_of_texts},
        {"n", &hfd_schema_int32},
        {"v", &hfd_schema_any},
};
static const struct hfd_schema item = {HFD_STRUCT("v1.Item", item_fields)};
static const struct hfd_schema_field fields[] = {
        {"a", &hfd_schema_list_of_texts},
        {"data", &hfd_schema_map_of_texts},
        {"l", HFD_LIST_OF(&item, .list_type = HFD_LIST_MAP, .list_keys = by_name)},
        HFD_FIELD_METADATA,
        {"s", HFD_LIST_OF(&hfd_schema_text, .list_type = HFD_LIST_SET)},
        {"w", &hfd_schema_any},
};
static const struct hfd_schema kind = {HFD_STRUCT("v1.Kind", fields)};
static const struct hfd_writer writer = {"kubectl", "", "v1", "2026-01-01T00:00:00Z"};

/* Parses the text before the next NUL, which *at passes. NULL: the server would not read it as an
 * object. */
static struct hf__json *parse(const char **at, const char *end) {
        const char *to = memchr(*at, 0, (size_t)(end - *at)), *from = *at;
        struct hf__json *json = NULL;

        to = to ? to : end;
        *at = to < end ? to + 1 : end;
        if (!hf__utf8_valid(from, (size_t)(to - from)) ||
            hf__json_parse(from, (size_t)(to - from), &json, NULL) != 0)
                return NULL;
        if (!hf__json_is_object(json) || hf__json_check_unique(json, NULL) != 0)
                return hf__json_free(json);
        return json;
}

static void check(const struct hf__json *object) {
        struct hf__strbuf s = {0};
        struct hf__json *again = NULL;

        hf__json_print(object, &s);
        assert(!s.error && hf__json_parse(s.data, s.n, &again, NULL) == 0);
        assert(hf__json_equal(object, again));
        hf__json_free(again);
        hf__strbuf_done(&s);
}

/* Whether a client applies the annotation of `kubectl apply`, which no client does. The server then
 * writes it anew, so that the same configuration once more is a change of it. */
static bool has_last_applied(const struct hf__json *config) {
        return hf__json_get(hf__json_path(config, "metadata.annotations"),
                            "kubectl.kubernetes.io/last-applied-configuration") != NULL;
}

/* The same configuration once more changes nothing. The exception is an object without managed
 * fields, whose apply records "before-first-apply" as the owner of what is there. */
static void apply_again(const struct hf__json *object, const struct hf__json *config) {
        bool owned = hf__json_path(object, "metadata.managedFields") != NULL;
        struct hfd_apply_failure failure = {0};
        struct hf__json *again = NULL;

        int r = hfd_apply(&kind, object, config, &writer, false, &again, &failure);
        assert(r == 0);
        if (owned)
                assert(hf__json_equal(object, again));
        else if (hf__json_path(again, "metadata.managedFields"))
                apply_again(again, config);
        hfd_apply_failure_done(&failure);
        hf__json_free(again);
}

/* Applies config to live twice. */
static void apply(const struct hf__json *live, const struct hf__json *config, bool force) {
        struct hfd_apply_failure failure = {0};
        struct hf__json *object = NULL;

        int r = hfd_apply(&kind, live, config, &writer, force, &object, &failure);
        assert(r == 0 || failure.message.n > 0);
        assert(r == 0 || r == HF_E_INVALID || (r == HF_E_CONFLICT && !force));
        hfd_apply_failure_done(&failure);
        if (r != 0)
                return;
        check(object);
        if (!has_last_applied(config))
                apply_again(object, config);
        hf__json_free(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const char *at = (const char *)data, *end = at + n;
        struct hf__json *live = parse(&at, end), *config = parse(&at, end),
                        *updated = parse(&at, end);

        if (config)
                hf__json_remove(config, "metadata.managedFields");
        if (config && hf__json_is_object(hf__json_get(config, "metadata")) && live &&
            hf__json_is_object(hf__json_get(live, "metadata"))) {
                apply(NULL, config, false);
                apply(live, config, false);
                apply(live, config, true);
        }
        if (updated && hf__json_is_object(hf__json_get(updated, "metadata"))) {
                assert(hfd_ownership_update(&kind, live, updated, &writer, false, &(bool){false}) ==
                       0);
                check(updated);
        }
        hf__json_free(live);
        hf__json_free(config);
        hf__json_free(updated);
        return 0;
}
