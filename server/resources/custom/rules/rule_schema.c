/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through the parts of a schema.
 *
 * Invariant: the order is that of Kubernetes: values, properties, items.
 */
#include "server/resources/custom/rules/rule_schema.h"

#include "base/json.h"
#include "base/strbuf.h"

/* This function returns the schema of additionalProperties, the next one that of items. NULL: there
 * is none; or it is true, false or a list, in which no rule can stand. */
static const struct hf__json *schema_of_values(const struct hf__json *props) {
        const struct hf__json *part = hf__json_get(props, "additionalProperties");

        return hf__json_is_object(part) ? part : NULL;
}

static const struct hf__json *schema_of_items(const struct hf__json *props) {
        const struct hf__json *part = hf__json_get(props, "items");

        return hf__json_is_object(part) ? part : NULL;
}

const struct hf__json *hfd_rule_schema_first(const struct hf__json *props) {
        const struct hf__json *part = schema_of_values(props);

        if (!part)
                part = hf__json_first(hf__json_get(props, "properties"));
        return part ? part : schema_of_items(props);
}

const struct hf__json *hfd_rule_schema_next(const struct hf__json *props,
                                            const struct hf__json *part) {
        const struct hf__json *next;

        if (part == schema_of_items(props))
                return NULL;
        if (part == schema_of_values(props))
                next = hf__json_first(hf__json_get(props, "properties"));
        else
                next = hf__json_next(part);
        return next ? next : schema_of_items(props);
}

void hfd_rule_path_enter(struct hf__strbuf *path, const struct hf__json *props,
                         const struct hf__json *part) {
        if (part == schema_of_items(props)) {
                hf__strbuf_puts(path, ".items");
        } else if (part == schema_of_values(props)) {
                hf__strbuf_puts(path, ".additionalProperties");
        } else {
                hf__strbuf_puts(path, ".properties[");
                hf__strbuf_puts(path, hf__json_key(part));
                hf__strbuf_putc(path, ']');
        }
}

void hfd_rule_path_cut(struct hf__strbuf *path, size_t n) {
        if (path->data && n <= path->n) {
                path->n = n;
                path->data[n] = 0;
        }
}
