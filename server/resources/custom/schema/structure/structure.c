/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths, causes and look-ups for the rules of structural schemas (structure.h).
 *
 * Invariant: looking up every member of one object in another one does not take quadratic time,
 * because clients choose the size of the objects: a large object gets an index when it is first
 * searched, and keeps it until hfd_structure_done.
 */
#include "server/resources/custom/schema/structure/structure.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/custom/schema/check/check_report.h"

#define FEW 16 /* members that are looked up without an index */

/* ---- paths ---- */

struct hfd_structure_path hfd_step(const struct hfd_structure_path *up, const char *child) {
        return (struct hfd_structure_path){.up = up, .child = child};
}

struct hfd_structure_path hfd_step_key(const struct hfd_structure_path *up, const char *child,
                                       const char *key) {
        return (struct hfd_structure_path){.up = up, .child = child, .key = key};
}

struct hfd_structure_path hfd_step_index(const struct hfd_structure_path *up, const char *child,
                                         size_t index) {
        return (struct hfd_structure_path){.up = up,
                                           .child = child,
                                           .index = index,
                                           .has_index = true};
}

/* Appends the whole path. An error stays in the buffer. */
static void put_path(const struct hfd_structure_path *path, struct hf__strbuf *out) {
        if (path->up) {
                put_path(path->up, out);
                hf__strbuf_putc(out, '.');
        }
        hf__strbuf_puts(out, path->child);
        if (path->key)
                hf__strbuf_printf(out, "[%s]", path->key);
        if (path->has_index)
                hf__strbuf_printf(out, "[%zu]", path->index);
}

void hfd_structure_path_print(const struct hfd_structure_path *path, const char *child,
                              char text[HFD_STRUCTURE_PATH_MAX]) {
        struct hf__strbuf out = {0};

        put_path(path, &out);
        (void)snprintf(text, HFD_STRUCTURE_PATH_MAX, "%s%s%s", out.data ? out.data : "",
                       child ? "." : "", child ? child : "");
        hf__strbuf_done(&out);
}

/* ---- causes ---- */

void hfd_structure_forbid(struct hfd_structure *structure, const struct hfd_structure_path *path,
                          const char *child, const char *detail) {
        char field[HFD_STRUCTURE_PATH_MAX];

        hfd_structure_path_print(path, child, field);
        hfd_cause_forbidden(structure->causes, field, detail);
}

void hfd_structure_require(struct hfd_structure *structure, const struct hfd_structure_path *path,
                           const char *child, const char *detail) {
        char field[HFD_STRUCTURE_PATH_MAX];

        hfd_structure_path_print(path, child, field);
        hfd_cause_required(structure->causes, field, detail);
}

void hfd_structure_refuse(struct hfd_structure *structure, const struct hfd_structure_path *path,
                          const char *child, const struct hf__json *value, const char *detail) {
        char field[HFD_STRUCTURE_PATH_MAX], text[HFD_REPORT_VALUE_MAX];

        if (structure->causes->n == HFD_CAUSES_MAX)
                return; /* the value may be large, and it is printed as a whole */
        hfd_structure_path_print(path, child, field);
        hfd_check_report_value(value, text);
        hfd_cause_invalid(structure->causes, field, text, detail);
}

void hfd_structure_refuse_text(struct hfd_structure *structure,
                               const struct hfd_structure_path *path, const char *child,
                               const char *value, const char *detail) {
        char field[HFD_STRUCTURE_PATH_MAX];

        hfd_structure_path_print(path, child, field);
        hfd_cause_invalid_text(structure->causes, field, value ? value : "", detail);
}

/* ---- members ---- */

/* A node of the tree of indices. */
struct indexed {
        const struct hf__json *object; /* borrowed */
        struct hf__json_index index;
};

/* For <search.h>: by the addresses of the objects, whose order does not matter. */
static int compare_indexed(const void *a, const void *b) {
        const struct indexed *x = a, *y = b;

        if (x->object == y->object)
                return 0;
        return x->object < y->object ? -1 : 1;
}

void hfd_structure_init(struct hfd_structure *structure, struct hfd_causes *causes) {
        *structure = (struct hfd_structure){.causes = causes};
}

void hfd_structure_done(struct hfd_structure *structure) {
        while (structure->indices) {
                struct indexed *indexed = *(struct indexed **)structure->indices;
                (void)tdelete(indexed, &structure->indices, compare_indexed);
                hf__json_index_done(&indexed->index);
                free(indexed);
        }
        hfd_structure_patterns_done(structure);
}

/* The index of object, which is made when it is first needed. NULL: out of memory. */
static const struct hf__json_index *find_index(struct hfd_structure *structure,
                                               const struct hf__json *object) {
        const struct indexed wanted = {.object = object};
        void *found = tfind(&wanted, &structure->indices, compare_indexed);
        struct indexed *indexed;

        if (found)
                return &(*(struct indexed **)found)->index;
        indexed = calloc(1, sizeof *indexed);
        if (!indexed)
                return NULL;
        indexed->object = object;
        if (hf__json_index_init(&indexed->index, object, NULL) == 0 &&
            tsearch(indexed, &structure->indices, compare_indexed))
                return &indexed->index;
        hf__json_index_done(&indexed->index);
        free(indexed);
        return NULL;
}

const struct hf__json *hfd_structure_member(struct hfd_structure *structure,
                                            const struct hf__json *object, const char *key) {
        const struct hf__json *m = hf__json_first(object);
        const struct hf__json_index *index = NULL;
        size_t n = 0;

        for (; m && n < FEW; m = hf__json_next(m), n++)
                if (strcmp(hf__json_key(m), key) == 0)
                        return m;
        if (!m)
                return NULL;
        index = find_index(structure, object);
        if (!index)
                return hf__json_get(object, key); /* slower, but it needs no memory */
        const struct hf__json_index_entry *entry = hf__json_index_find(index, key);
        return entry ? entry->item : NULL;
}

const char *hfd_structure_text(const struct hf__json *props, const char *key) {
        const char *text = hf__json_text(hf__json_get(props, key));

        return text ? text : "";
}

bool hfd_structure_flag(const struct hf__json *props, const char *key) {
        return hf__json_is_true(hf__json_get(props, key));
}

bool hfd_structure_has(const struct hf__json *props, const char *key) {
        const struct hf__json *value = hf__json_get(props, key);

        return value && !hf__json_is_null(value);
}

bool hfd_structure_is_filled(const struct hf__json *props, const char *key) {
        return hf__json_first(hf__json_get(props, key)) != NULL;
}

bool hfd_structure_is_zero(const struct hf__json *value) {
        return hf__json_is_null(value) || (hf__json_is_bool(value) && !hf__json_is_true(value)) ||
               (hf__json_is_string(value) && !*hf__json_text(value)) ||
               ((hf__json_is_object(value) || hf__json_is_array(value)) && !hf__json_first(value));
}
