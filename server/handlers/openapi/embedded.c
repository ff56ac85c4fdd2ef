/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes embedded resources as kube-apiserver does. The descriptions of their apiVersion and
 * kind differ from those of a kind, and both members are required.
 *
 * Invariant: the recursion is as deep as the schema is nested, which the JSON parser limits.
 */
#include "server/handlers/openapi/embedded.h"

#include <errno.h>
#include <stddef.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/schema/common.h"

static const char api_version_text[] =
        "apiVersion defines the versioned schema of this representation of an object. More "
        "info: " HFD_CONVENTIONS "#resources";
static const char kind_text[] = "kind is a string value representing the type of this object. In "
                                "CamelCase. More info: " HFD_CONVENTIONS "#types-kinds";

static bool has_flag(const struct hf__json *schema, const char *flag) {
        return hf__json_is_true(hf__json_get(schema, flag));
}

/* Puts {description, type: string} under the key. */
static int put_text(struct hf__json *properties, const char *key, const char *description) {
        struct hf__json *text = hf__json_object();

        if (!text)
                return -ENOMEM;
        int r = hf__json_put_string(text, "description", description);
        if (r == 0)
                r = hf__json_put_string(text, "type", "string");
        if (r != 0) {
                hf__json_free(text);
                return r;
        }
        return hf__json_put(properties, key, text);
}

/* Puts a reference to ObjectMeta. In v3 nothing may stand beside a $ref. */
static int put_metadata(struct hf__json *properties, bool v2) {
        static const char text[] = "{\"description\":\"" HFD_STANDARD_METADATA "\",";
        static const char *const references[] =
                {"\"allOf\":[{\"$ref\":\"#/components/schemas/" HFD_META "ObjectMeta\"}]}",
                 "\"$ref\":\"#/definitions/" HFD_META "ObjectMeta\"}"};
        struct hf__strbuf s = {0};
        struct hf__json *metadata = NULL;

        hf__strbuf_puts(&s, text);
        hf__strbuf_puts(&s, references[v2]);
        int r = s.error;
        if (r == 0)
                r = hf__json_parse(s.data, s.n, &metadata, NULL);
        hf__strbuf_done(&s);
        return r == 0 ? hf__json_put(properties, "metadata", metadata) : r;
}

/* Finds the member of schema. If it is missing or null, makes it. NULL = out of memory. */
static struct hf__json *find_or_make(struct hf__json *schema, const char *key,
                                     struct hf__json *(*make)(void)) {
        struct hf__json *member = hf__json_get(schema, key);

        if (member && !hf__json_is_null(member))
                return member;
        member = make();
        if (!member || hf__json_put(schema, key, member) != 0)
                return NULL;
        return hf__json_get(schema, key);
}

/* Puts apiVersion, kind and metadata in place of those that the CustomResourceDefinition has, as
 * Kubernetes does, and requires the first two. */
static int publish_schema(struct hf__json *schema, bool v2) {
        static const char *const names[] = {"kind", "apiVersion"};
        struct hf__json *properties = find_or_make(schema, "properties", hf__json_object),
                        *required = find_or_make(schema, "required", hf__json_array);

        if (!properties || !required)
                return -ENOMEM;
        int r = put_text(properties, "apiVersion", api_version_text);
        if (r == 0)
                r = put_text(properties, "kind", kind_text);
        if (r == 0)
                r = put_metadata(properties, v2);
        for (size_t i = 0; r == 0 && i < sizeof names / sizeof names[0]; i++)
                if (!hf__json_has_element(required, names[i]))
                        r = hf__json_append_string(required, names[i]);
        return r;
}

int hfd_openapi_publish_embedded(struct hf__json *props, bool v2) {
        int r = 0;

        if (!hf__json_is_object(props))
                return 0;
        for (struct hf__json *m = hf__json_first(hf__json_get(props, "properties")); m && r == 0;
             m = hf__json_next(m))
                r = hfd_openapi_publish_embedded(m, v2);
        if (r == 0)
                r = hfd_openapi_publish_embedded(hf__json_get(props, "items"), v2);
        if (r == 0)
                r = hfd_openapi_publish_embedded(hf__json_get(props, "additionalProperties"), v2);
        /* The schemas inside have been changed already, so what is added here is not walked. */
        if (r != 0 || !has_flag(props, "x-kubernetes-embedded-resource") ||
            (v2 && has_flag(props, "x-kubernetes-preserve-unknown-fields")))
                return r;
        return publish_schema(props, v2);
}
