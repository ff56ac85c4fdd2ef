/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what a request asks for: a method, a path and a query, each ended by a NUL. A segment that
 * is accepted may become part of a key of the store, so it must not look like a separator or climb.
 * A walk over the values of a parameter must advance with each value, stay within the query, and
 * agree with the lookup of the first value.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "server/filters/request/query.h"
#include "server/filters/request/request_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_segment(const char *text, size_t max) {
        assert(strlen(text) <= max);
        assert(!strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0);
        for (const char *c = text; *c; c++)
                assert((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void check_info(const struct hfd_request_info *info) {
        assert(info->verb && info->group && info->version && info->resource && info->ns &&
               info->name && info->subresource);
        check_segment(info->group, HF_NAME_MAX);
        check_segment(info->version, HFD_LABEL_MAX);
        check_segment(info->resource, HFD_LABEL_MAX);
        check_segment(info->ns, HF_NAME_MAX);
        check_segment(info->name, HF_NAME_MAX);
        assert(strlen(info->subresource) <= HF_NAME_MAX);
        if (info->is_resource)
                assert(info->valid_path && *info->version && *info->resource);
        else
                assert(!*info->resource && !*info->ns && !*info->name);
        assert(info->watch == (strcmp(info->verb, "watch") == 0) || !info->is_resource);
}

static void check_query(const char *query) {
        static const char *const keys[] = {"watch", "limit",         "exclude", "a",
                                           "",      "fieldSelector", "timeout", "resourceVersion"};
        char value[256], name[HF_NAME_MAX + 1];

        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                const char *cursor = query, *before;
                size_t found = 0;
                int first = HF_E_NOT_FOUND, r;

                do {
                        before = cursor;
                        r = hfd_query_next(&cursor, keys[i], value, sizeof value);
                        assert(r == 0 || r == HF_E_INVALID || r == HF_E_NOT_FOUND);
                        assert(r == HF_E_NOT_FOUND || cursor > before);
                        assert(cursor <= query + strlen(query));
                        assert(r != 0 || strlen(value) < sizeof value);
                        if (r != HF_E_NOT_FOUND && found++ == 0)
                                first = r;
                } while (r != HF_E_NOT_FOUND);
                assert(hfd_query_get(query, keys[i], value, sizeof value) == first);
                assert(found > 0 || !hfd_query_bool(query, keys[i]));
        }
        if (hfd_query_selected_name(query, name))
                assert(*name && strlen(name) <= HF_NAME_MAX);
}

/* The HTTP parsers refuse these characters. */
static bool is_target(const char *text) {
        for (; *text; text++)
                if ((unsigned char)*text <= 0x20 || *text == 0x7f)
                        return false;
        return true;
}

/* The strings are copied to a block of just their size, so that a sanitizer sees a byte too
 * many. */
static void try_path(const char *method, const char *text, const char *query) {
        struct hfd_request_path path;
        struct hfd_request_info info;
        int r = hfd_request_path_parse(text, &path);

        assert(r == 0 || r == HF_E_INVALID);
        assert(r == 0 || !path.is_resource);
        char *copy = malloc(hfd_request_info_text_size(&path));
        if (!copy)
                return;
        hfd_request_info_init(&info, method, &path, r == 0, query, copy);
        check_info(&info);
        free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        char *text = malloc(n + 3);
        const char *parts[3];

        if (!text)
                return 0;
        if (n > 0)
                memcpy(text, data, n);
        memset(text + n, 0, 3);
        parts[0] = text;
        for (int i = 1; i < 3; i++) {
                size_t used = (size_t)(parts[i - 1] - text) + strlen(parts[i - 1]);
                parts[i] = used < n ? text + used + 1 : text + n;
        }
        if (parts[1][0] == '/' && is_target(parts[1]) && is_target(parts[2])) {
                try_path(parts[0], parts[1], parts[2]);
                check_query(parts[2]);
        }
        free(text);
        return 0;
}
