/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes CEL values from JSON, for a whole object at once: an evaluation then only reads them. Once
 * arena->failed is set, the functions here may return any value. The caller of hfd_rule_value
 * checks arena->failed once, at the end.
 *
 * Invariants: an object has its fields under their escaped names, or under their own if they cannot
 * be escaped; a declared field with a reserved name is there under both. A field that is null is
 * absent, as in Kubernetes. A field without a declaration is there as well, so that comparisons see
 * it; the checker lets no expression name it. Only a closed object (declared.h) leaves it out.
 * Lists that are sets or maps (x-kubernetes-list-type) compare without regard to order, for which
 * they have a function that makes the key of an element.
 */
#include "server/resources/custom/rules/values/rule_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "cel/values/run.h"
#include "cel/values/timestamp.h"
#include "server/resources/custom/rules/values/declared.h"
#include "server/resources/custom/rules/values/rule_name.h"

#define INDEX_MIN 8 /* maps with fewer entries are searched one by one, without an index */

static struct hf__cel_value convert_json(struct hf__arena *arena,
                                         const struct hfd_declared *declared,
                                         const struct hf__json *json);

/* Go's name for the type of a JSON value, which kube-apiserver's errors show. */
static const char *type_name(const struct hf__json *json) {
        int64_t whole;

        if (hf__json_is_object(json))
                return "map[string]interface {}";
        if (hf__json_is_array(json))
                return "[]interface {}";
        if (hf__json_is_string(json))
                return "string";
        if (hf__json_is_bool(json))
                return "bool";
        if (hf__json_integer(json, &whole))
                return "int64";
        return hf__json_is_number(json) ? "float64" : "<nil>";
}

/* An error value with the text `what`, and after it at most 200 bytes of `detail`. */
static struct hf__cel_value error_value(struct hf__arena *arena, const char *what,
                                        const char *detail) {
        char text[400];
        char *copy;

        snprintf(text, sizeof text, "%s%.200s", what, detail);
        copy = hf__arena_text(arena, text, strlen(text));
        return hf__cel_error_text(copy ? copy : "out of memory");
}

static struct hf__cel_value text_value(const struct hf__json *json) {
        const char *text = hf__json_text(json);

        return hf__cel_string(text, strlen(text));
}

/* ---- the keys of the elements of lists that are sets or maps ---- */

/* The key of a scalar is the scalar itself, if CEL can look it up, else a text for it. Null becomes
 * bytes, which no element of a set of texts equals. */
static struct hf__cel_value scalar_key(struct hf__cel_run *run, struct hf__cel_value value) {
        char text[64];

        switch (value.kind) {
        case HF__CEL_BOOL:
        case HF__CEL_INT:
        case HF__CEL_DOUBLE:
        case HF__CEL_STRING:
        case HF__CEL_BYTES: return value;
        case HF__CEL_NULL: return hf__cel_bytes("null", 4);
        case HF__CEL_TIMESTAMP:
        case HF__CEL_DURATION:
                snprintf(text, sizeof text, "%lld.%u", (long long)value.as.i, value.n);
                return hf__cel_copy_string(run, text, strlen(text));
        case HF__CEL_ERROR: return value;
        default:
                return hf__cel_error_text(
                        "listSet operations are only supported on lists of scalar values");
        }
}

/* hf__cel_list.key of a set. */
static struct hf__cel_value key_of_set(struct hf__cel_run *run, const struct hf__cel_list *list,
                                       struct hf__cel_value element) {
        return scalar_key(run, element);
}

/* The value that an element has for one of the keys of its list. An absent one counts as null. */
static struct hf__cel_value member_of(struct hf__cel_value element, const char *key) {
        struct hf__cel_value value = hf__cel_null();

        if (element.kind == HF__CEL_MAP &&
            hf__cel_map_find(element.as.map, hf__cel_string(key, strlen(key)), &value))
                return value;
        return hf__cel_null();
}

/* hf__cel_list.key of a map. One key stands for itself. Several become one text, in which each has
 * its kind, and a text its length, so that no two combinations of keys have the same text. */
static struct hf__cel_value key_of_map(struct hf__cel_run *run, const struct hf__cel_list *list,
                                       struct hf__cel_value element) {
        const struct hfd_declared *declared = list->data;
        struct hf__strbuf text = {0};
        struct hf__cel_value key;

        if (declared->n_keys == 1)
                return scalar_key(run, member_of(element, declared->keys[0]));
        for (size_t i = 0; i < declared->n_keys; i++) {
                key = scalar_key(run, member_of(element, declared->keys[i]));
                if (key.kind == HF__CEL_ERROR) {
                        hf__strbuf_done(&text);
                        return key;
                }
                hf__strbuf_printf(&text, "%u:%u:", key.kind, key.n);
                if (key.kind == HF__CEL_STRING || key.kind == HF__CEL_BYTES)
                        hf__strbuf_add(&text, key.as.text, key.n);
                else if (key.kind == HF__CEL_DOUBLE)
                        hf__strbuf_printf(&text, "%.17g", key.as.d);
                else if (key.kind == HF__CEL_BOOL)
                        hf__strbuf_puts(&text, key.as.boolean ? "true" : "false");
                else
                        hf__strbuf_printf(&text, "%lld", (long long)key.as.i);
        }
        hf__strbuf_puts(&text, ""); /* without keys, data would be NULL */
        if (text.error != 0)
                run->failed = -ENOMEM;
        key = text.error == 0 ? hf__cel_copy_string(run, text.data, text.n) : hf__cel_failure(run);
        hf__strbuf_done(&text);
        return key;
}

/* ---- lists and maps ---- */

/* declared NULL: the elements may have any type. */
static struct hf__cel_value convert_list(struct hf__arena *arena,
                                         const struct hfd_declared *declared,
                                         const struct hf__json *json) {
        struct hf__cel_list *list = hf__arena_alloc(arena, sizeof *list);
        struct hf__cel_value *items = hf__arena_alloc(arena, hf__json_count(json) * sizeof *items);
        size_t n = 0;

        if (!list || !items)
                return hf__cel_null();
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                items[n++] = convert_json(arena, declared ? declared->element : NULL, m);
        *list = (struct hf__cel_list){.n = n, .items = items};
        if (declared && (declared->set || declared->keys)) {
                list->key = declared->set ? key_of_set : key_of_map;
                list->replaces = !declared->set;
                list->data = declared;
        }
        return hf__cel_list_value(list);
}

/* A map of n entries. It points to them, so they must be in the arena. */
static struct hf__cel_value new_map(struct hf__arena *arena, struct hf__cel_entry *entries,
                                    size_t n) {
        struct hf__cel_map *map = hf__arena_alloc(arena, sizeof *map);
        uint32_t *order = NULL;

        if (n >= INDEX_MIN)
                order = hf__arena_alloc(arena, n * sizeof *order);
        if (!map || (n >= INDEX_MIN && !order))
                return hf__cel_null();
        if (order)
                hf__cel_map_index(entries, n, order);
        *map = (struct hf__cel_map){.n = n, .entries = entries, .order = order};
        return hf__cel_map_value(map);
}

/* element: the declaration of the values; NULL: they may have any type. */
static struct hf__cel_value convert_map(struct hf__arena *arena, const struct hfd_declared *element,
                                        const struct hf__json *json) {
        struct hf__cel_entry *entries =
                hf__arena_alloc(arena, hf__json_count(json) * sizeof *entries);
        size_t n = 0;

        if (!entries)
                return hf__cel_null();
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);

                entries[n].key = hf__cel_string(key, strlen(key));
                entries[n++].value = convert_json(arena, element, m);
        }
        return new_map(arena, entries, n);
}

/* There is room for two entries for each member: one with a reserved name has two names. */
static struct hf__cel_value convert_object(struct hf__arena *arena,
                                           const struct hfd_declared *object,
                                           const struct hf__json *json) {
        struct hf__cel_entry *entries =
                hf__arena_alloc(arena, 2 * hf__json_count(json) * sizeof *entries);
        size_t n = 0;

        if (!entries)
                return hf__cel_null();
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m)) {
                const char *name = hf__json_key(m);
                const struct hfd_declared_field *field = hfd_declared_field(object, name);
                const char *escaped = field ? field->escaped : hfd_rule_name(arena, name);
                struct hf__cel_value value;

                if (hf__json_is_null(m) || (!field && object->closed))
                        continue;
                value = convert_json(arena, field ? field->declared : NULL, m);
                /* A name that cannot be escaped stays as it is. It is not the escaped form of
                 * another name, so it hides no field. */
                escaped = escaped ? escaped : name;
                entries[n++] =
                        (struct hf__cel_entry){hf__cel_string(escaped, strlen(escaped)), value};
                if (field && field->reserved)
                        entries[n++] =
                                (struct hf__cel_entry){hf__cel_string(name, strlen(name)), value};
        }
        return new_map(arena, entries, n);
}

/* ---- texts ---- */

static struct hf__cel_value convert_bytes(struct hf__arena *arena, const char *text) {
        char *data;
        char *copy;
        size_t n;
        int r = hf__base64_decode(text, strlen(text), &data, &n);

        if (r == -ENOMEM) {
                arena->failed = true;
                return hf__cel_null();
        }
        if (r != 0)
                return error_value(arena, "Invalid byte formatted string ", text);
        copy = hf__arena_text(arena, data, n);
        free(data);
        return copy ? hf__cel_bytes(copy, n) : hf__cel_null();
}

/* kind: an enum hfd_declared_kind of a text. */
static struct hf__cel_value convert_text(struct hf__arena *arena, uint8_t kind, const char *text) {
        struct hf__cel_value value = hf__cel_null();
        int64_t nanoseconds;
        char time[40];

        switch (kind) {
        case HFD_DECLARED_DURATION:
                if (!hf__cel_duration_parse(text, strlen(text), &nanoseconds))
                        return error_value(arena, "Invalid duration ", text);
                return hf__cel_duration(nanoseconds);
        /* A date is the timestamp of its midnight, in UTC. */
        case HFD_DECLARED_DATE:
                snprintf(time, sizeof time, "%.20sT00:00:00Z", text);
                if (!hf__cel_timestamp_parse(time, strlen(time), &value))
                        return error_value(arena, "Invalid date formatted string ", text);
                return value;
        case HFD_DECLARED_DATE_TIME:
                if (!hf__cel_timestamp_parse(text, strlen(text), &value))
                        return error_value(arena, "Invalid date-time formatted string ", text);
                return value;
        case HFD_DECLARED_BYTES: return convert_bytes(arena, text);
        default: return hf__cel_string(text, strlen(text));
        }
}

/* ---- values of any type ---- */

static struct hf__cel_value convert_number(const struct hf__json *json) {
        int64_t whole;

        return hf__json_integer(json, &whole) ? hf__cel_int(whole)
                                              : hf__cel_double(hf__json_number(json));
}

/* A value without a declaration: its type is that of the JSON. */
static struct hf__cel_value convert_untyped_value(struct hf__arena *arena,
                                                  const struct hf__json *json) {
        if (hf__json_is_object(json))
                return convert_map(arena, NULL, json);
        if (hf__json_is_array(json))
                return convert_list(arena, NULL, json);
        if (hf__json_is_string(json))
                return text_value(json);
        if (hf__json_is_bool(json))
                return hf__cel_bool(hf__json_is_true(json));
        return hf__json_is_number(json) ? convert_number(json) : hf__cel_null();
}

static struct hf__cel_value convert_scalar(struct hf__arena *arena,
                                           const struct hfd_declared *declared,
                                           const struct hf__json *json) {
        int64_t whole;

        switch (declared->kind) {
        case HFD_DECLARED_INT_OR_STRING:
                if (hf__json_is_string(json))
                        return text_value(json);
                if (hf__json_integer(json, &whole))
                        return hf__cel_int(whole);
                return hf__cel_error_text("invalid data, expected XIntOrString value to be either "
                                          "a string or integer");
        case HFD_DECLARED_BOOL:
                if (hf__json_is_bool(json))
                        return hf__cel_bool(hf__json_is_true(json));
                return error_value(arena, "invalid data, expected bool, got ", type_name(json));
        case HFD_DECLARED_DOUBLE:
                if (hf__json_is_number(json))
                        return hf__cel_double(hf__json_number(json));
                return error_value(arena, "invalid data, expected float, got ", type_name(json));
        case HFD_DECLARED_INT:
                if (hf__json_integer(json, &whole))
                        return hf__cel_int(whole);
                return error_value(arena, "invalid data, expected int, got ", type_name(json));
        default:
                if (hf__json_is_string(json))
                        return convert_text(arena, declared->kind, hf__json_text(json));
                return error_value(arena, "invalid data, expected string, got ", type_name(json));
        }
}

static struct hf__cel_value convert_json(struct hf__arena *arena,
                                         const struct hfd_declared *declared,
                                         const struct hf__json *json) {
        if (arena->failed)
                return hf__cel_null();
        if (!declared)
                return convert_untyped_value(arena, json);
        if (hf__json_is_null(json))
                return declared->nullable ? hf__cel_null()
                                          : hf__cel_error_text("invalid data, got null for schema "
                                                               "with nullable=false");
        switch (declared->kind) {
        case HFD_DECLARED_LIST:
                if (hf__json_is_array(json))
                        return convert_list(arena, declared, json);
                return hf__cel_error_text("invalid data, expected an array for the provided schema "
                                          "with type=array");
        case HFD_DECLARED_MAP:
        case HFD_DECLARED_OBJECT:
                if (!hf__json_is_object(json))
                        return hf__cel_error_text("invalid data, expected a map for the provided "
                                                  "schema with type=object");
                return declared->kind == HFD_DECLARED_MAP
                               ? convert_map(arena, declared->element, json)
                               : convert_object(arena, declared, json);
        default: return convert_scalar(arena, declared, json);
        }
}

struct hf__cel_value hfd_rule_value(struct hf__arena *arena, const struct hfd_declared *declared,
                                    const struct hf__json *json) {
        return convert_json(arena, declared, json);
}
