/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the fields that a schema does not have.
 *
 * Invariants, as in Kubernetes: a value for which the schema has no node loses every field of every
 * object in it. Below x-kubernetes-preserve-unknown-fields unknown fields stay, with all that is in
 * them, but the fields that have a schema are pruned by it. A field that has a schema, and an
 * element of a list, are never removed themselves, whatever their types. The recursion is as deep
 * as the JSON is nested.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/resources/custom/schema/compile/node.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/schema/common.h"
#include "server/schema/decode.h"
#include "server/schema/place.h"
#include "server/schema/strict.h"

/* The place of the walk in the schema. */
struct pruning {
        const struct hfd_custom_node *node; /* NULL = no schema */
        const struct hfd_place *place;
        bool preserve; /* unknown fields are kept */
};

static int prune_value(struct pruning at, struct hf__json *value, struct hfd_strict *strict);

static bool is_of_resources(const char *key) {
        return strcmp(key, "apiVersion") == 0 || strcmp(key, "kind") == 0 ||
               strcmp(key, "metadata") == 0;
}

/* Adds the lines of `inner`, whose paths are relative to place. In a line the path is in quotes
 * (strict.h), so the path of place is inserted after the first quote. A line without quotes does
 * not occur. */
static void add_lines(struct hfd_strict *strict, const struct hfd_strict *inner,
                      const struct hfd_place *place) {
        const char *line = inner->lines.data;

        while (line && *line && strict->n < HFD_STRICT_MAX) {
                size_t n = strcspn(line, "\n"), n_before = strcspn(line, "\"");
                if (n_before >= n)
                        return;
                hf__strbuf_puts(&strict->lines, strict->n > 0 ? "\n" : "");
                hf__strbuf_add(&strict->lines, line, n_before + 1);
                hfd_place_put_path(place, &strict->lines);
                hf__strbuf_putc(&strict->lines, '.');
                hf__strbuf_add(&strict->lines, line + n_before + 1, n - n_before - 1);
                strict->n++;
                line += line[n] ? n + 1 : n;
        }
        if (inner->lines.error != 0 && strict->lines.error == 0)
                strict->lines.error = inner->lines.error;
}

/* Brings the metadata of an embedded resource into the form of ObjectMeta. If the metadata or one
 * of its fields has a wrong type, all of it stays as it is, and validate refuses it. */
static int prune_metadata(struct hf__json *resource, struct hf__json *metadata,
                          const struct hfd_place *place, struct hfd_strict *strict) {
        struct hfd_strict inner = {0};
        char reason[256];

        if (!hf__json_is_object(metadata))
                return 0;
        struct hf__json *copy = hf__json_dup(metadata);
        if (!copy)
                return -ENOMEM;
        int r = hfd_schema_decode(&hfd_schema_object_meta, copy, strict ? &inner : NULL, reason,
                                  sizeof reason);
        if (r == 0) {
                r = hf__json_replace(resource, metadata, copy);
                copy = NULL;
                if (strict)
                        add_lines(strict, &inner, place);
        }
        hf__json_free(copy);
        hf__strbuf_done(&inner.lines);
        return r == HF_E_INVALID ? 0 : r;
}

static int prune_member(struct pruning at, struct hf__json *object, struct hf__json *member,
                        struct hfd_strict *strict) {
        const struct hfd_custom_node *node = at.node;
        const struct hfd_place place = {.up = at.place, .key = hf__json_key(member)};
        const struct hfd_custom_property *property = hfd_custom_property(node, place.key);
        const bool is_root = !at.place->up;
        struct pruning below = {.place = &place};

        if (node && (node->embedded || is_root) && is_of_resources(place.key)) {
                if (!is_root && strcmp(place.key, "metadata") == 0)
                        return prune_metadata(object, member, &place, strict);
                return 0;
        }
        if (property)
                below.node = property->node;
        else if (node && node->additional != HFD_CUSTOM_ADDITIONAL_NONE)
                below.node = node->values;
        else if (at.preserve)
                return 0;
        if (property || (node && node->additional != HFD_CUSTOM_ADDITIONAL_NONE)) {
                below.preserve = below.node && below.node->preserve;
                return prune_value(below, member, strict);
        }
        if (strict)
                hfd_strict_add(strict, "unknown", &place);
        hf__json_free(hf__json_detach(object, member));
        return 0;
}

static int prune_elements(struct pruning at, struct hf__json *list, struct hfd_strict *strict) {
        const struct hfd_custom_node *items = at.node ? at.node->items : NULL;
        size_t i = 0;
        int r = 0;

        /* Elements of a list that preserves unknown fields preserve them too. */
        if (at.preserve && !items)
                return 0;
        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m), i++) {
                const struct hfd_place place = {.up = at.place, .index = i};
                const struct pruning below = {.node = items,
                                              .place = &place,
                                              .preserve =
                                                      at.preserve || (items && items->preserve)};
                r = prune_value(below, m, strict);
        }
        return r;
}

static int prune_value(struct pruning at, struct hf__json *value, struct hfd_strict *strict) {
        struct hf__json *next;
        int r = 0;

        if (hf__json_is_array(value))
                return prune_elements(at, value, strict);
        if (!hf__json_is_object(value))
                return 0;
        for (struct hf__json *m = hf__json_first(value); m && r == 0; m = next) {
                next = hf__json_next(m);
                r = prune_member(at, value, m, strict);
        }
        return r;
}

int hfd_custom_schema_prune(const struct hfd_custom_schema *schema, struct hf__json *object,
                            struct hfd_strict *strict) {
        const struct hfd_place root = {0};
        const struct pruning at = {schema->root, &root, schema->root && schema->root->preserve};

        assert(object);
        return schema->root ? prune_value(at, object, strict) : 0;
}

int hfd_custom_prune_default(const struct hfd_custom_node *node, struct hf__json *value) {
        /* The place is a step below the root, because a default is never the object itself. */
        const struct hfd_place root = {0}, place = {.up = &root, .key = ""};
        const struct pruning at = {node, &place, node->preserve};

        return prune_value(at, value, NULL);
}
