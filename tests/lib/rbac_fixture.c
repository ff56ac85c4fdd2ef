/* SPDX-License-Identifier: Apache-2.0 */
/* See rbac_fixture.h. */
#undef NDEBUG
#include "rbac_fixture.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct hf__json *rbac_fixture_json(const char *text) {
        char *copy = strdup(text);
        struct hf__json *json = NULL;

        assert(copy);
        for (char *at = copy; *at; at++)
                if (*at == '\'')
                        *at = '"';
        assert(hf__json_parse(copy, strlen(copy), &json, NULL) == 0);
        free(copy);
        return json;
}

struct hfd_rbac_index *rbac_fixture_index(const struct rbac_object *objects, size_t n) {
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();

        assert(builder);
        for (size_t i = 0; i < n; i++) {
                struct hf__json *json = rbac_fixture_json(objects[i].json);
                assert(hfd_rbac_builder_add(builder, objects[i].kind, objects[i].ns,
                                            objects[i].name, json) == 0);
                hf__json_free(json);
        }
        struct hfd_rbac_index *index = hfd_rbac_builder_finish(builder);
        assert(index);
        return index;
}

const struct hfd_subject *rbac_fixture_subject(const char *text) {
        static char copy[512];
        static const char *groups[32];
        static struct hfd_subject subject;
        size_t n = 0;

        assert(strlen(text) < sizeof copy);
        strcpy(copy, text);
        for (char *at = strchr(copy, ','); at; at = strchr(at, ',')) {
                *at++ = '\0';
                groups[n++] = at;
        }
        subject = (struct hfd_subject){.name = copy, .groups = groups, .n_groups = n};
        return &subject;
}
