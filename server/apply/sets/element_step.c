/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the steps of the elements of lists. The messages are those of Kubernetes, because users
 * search for them. Kubernetes has none for a key that is no scalar, or for too many omitted keys.
 *
 * Invariants, for lists of type map: if an element omits a key, its step has the key's default. If
 * the key has no default, the step does not have the key, so elements with and without it are
 * different. A step has at least one key. Its keys are sorted by name, as list_keys are.
 */
#include "server/apply/sets/element_step.h"

#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/apply/sets/step.h"
#include "server/schema/schema.h"

#define FEW_KEYS 32 /* if list_keys has more names, they are looked up through an index */
/* An element may omit at most this many keys that have a default. Otherwise a list of empty
 * elements could need memory for the product of its length and the number of keys. Stored objects
 * have their defaults, so this limits only the configuration of an apply. Kubernetes has no such
 * limit, and so no message for it. */
#define OMITTED_MAX FEW_KEYS

/* An element, its list and its position there, and what gets the reason of a failure. */
struct subject {
        const struct hfd_schema *list;
        const struct hf__json *element;
        size_t position;
        struct hf__strbuf *reason; /* may be NULL */
};

/* Writes why the element has no step. */
static int refuse(const struct subject *s, const char *why) {
        if (s->reason)
                hf__strbuf_printf(s->reason, "element %zu: %s", s->position, why);
        return HF_E_INVALID;
}

/* ---- lists of type map ---- */

static int refuse_without_keys(const struct subject *s) {
        const char *const *keys = s->list->list_keys;

        (void)refuse(s, "associative list with keys has an element that omits all key fields [");
        for (size_t i = 0; s->reason && keys[i]; i++)
                hf__strbuf_printf(s->reason, "%s\"%s\"", i > 0 ? " " : "", keys[i]);
        if (s->reason)
                hf__strbuf_puts(s->reason,
                                "] (and doesn't have default values for any key fields)");
        return HF_E_INVALID;
}

/* Gets the value of a key that an element omits. False: the key has no default. A field with
 * HFD_FIELD_MERGE has none, because it has a merge_key in place of key_default. */
static bool default_of(const struct hfd_schema *list, const char *key,
                       struct hfd_scalar *ret_value) {
        const struct hfd_schema_field *field =
                list->items->type == HFD_SCHEMA_STRUCT ? hfd_schema_field(list->items, key) : NULL;

        if (!field || (field->flags & HFD_FIELD_MERGE) != 0)
                return false;
        if ((field->flags & HFD_FIELD_KEY_VALUE) != 0)
                return hfd_scalar_of(field->key_value, ret_value);
        if (!field->key_default)
                return false;
        *ret_value = (struct hfd_scalar){HFD_SCALAR_TEXT, {.text = field->key_default}};
        return true;
}

static bool has_few_keys(const struct hfd_schema *list) {
        size_t n = 0;

        while (n <= FEW_KEYS && list->list_keys[n])
                n++;
        return n <= FEW_KEYS;
}

static const struct hf__json *find_member(const struct hf__json_index *index, const char *key) {
        const struct hf__json_index_entry *entry = hf__json_index_find(index, key);

        return entry ? entry->item : NULL;
}

/* Collects the keys of an element into the array `keys`. few: list_keys has at most FEW_KEYS names,
 * and the array has room for FEW_KEYS. Otherwise the array has room for one per member of the
 * element, and OMITTED_MAX more; and an index finds the members, so that the time is not in
 * proportion to names times members. 0, -ENOMEM or HF_E_INVALID. */
static int collect_keys(const struct subject *s, bool few, struct hfd_step_key *keys,
                        unsigned *ret_n) {
        const char *const *names = s->list->list_keys;
        struct hf__json_index index;
        unsigned n = 0, n_omitted = 0;
        int r = few ? 0 : hf__json_index_init(&index, s->element, NULL);

        for (size_t i = 0; r == 0 && names[i]; i++) {
                const struct hf__json *value =
                        few ? hf__json_get(s->element, names[i]) : find_member(&index, names[i]);
                struct hfd_step_key key = {.name = names[i]};
                const bool otherwise = !value && default_of(s->list, names[i], &key.value);
                if (i > 0 && strcmp(names[i], names[i - 1]) == 0)
                        continue; /* only a malformed definition names a key twice */
                if (value && !hfd_scalar_of(value, &key.value))
                        r = refuse(s, "associative list has a key that is no scalar");
                else if (otherwise && n_omitted++ == OMITTED_MAX)
                        r = refuse(s, "associative list with keys has an element that omits too "
                                      "many key fields");
                if (r == 0 && (value || otherwise))
                        keys[n++] = key;
        }
        if (!few)
                hf__json_index_done(&index);
        *ret_n = n;
        return r;
}

static int step_of_object(struct hf__arena *scratch, const struct subject *s,
                          struct hfd_step *ret_step) {
        struct hfd_step_key found[FEW_KEYS], *keys = found;
        const bool few = has_few_keys(s->list);
        unsigned n = 0;

        if (!hf__json_is_object(s->element))
                return refuse(s, hf__json_is_null(s->element)
                                         ? "associative list with keys may not have a null element"
                                         : "associative list with keys may not have non-map "
                                           "elements");
        if (!few)
                keys = hf__arena_alloc(scratch,
                                       (hf__json_count(s->element) + OMITTED_MAX) * sizeof *keys);
        int r = keys ? collect_keys(s, few, keys, &n) : -ENOMEM;
        if (r == 0 && n == 0)
                r = refuse_without_keys(s);
        if (r == 0 && few) {
                keys = hf__arena_alloc(scratch, n * sizeof *keys);
                if (keys)
                        memcpy(keys, found, n * sizeof *keys);
                else
                        r = -ENOMEM;
        }
        if (r == -ENOMEM)
                scratch->failed = true; /* an index that fails does not set it */
        if (r == 0)
                *ret_step = (struct hfd_step){.kind = HFD_STEP_KEY, .n_keys = n, .keys = keys};
        return r;
}

/* ---- lists of type set ---- */

static int step_of_value(struct hf__arena *scratch, const struct subject *s,
                         struct hfd_step *ret_step) {
        struct hfd_scalar *value;

        if (hf__json_is_object(s->element))
                return refuse(s, "associative list without keys has an element that's a map type");
        if (hf__json_is_array(s->element))
                return refuse(s, "not supported: associative list with lists as elements");
        if (hf__json_is_null(s->element))
                return refuse(s, "associative list without keys has an element that's an explicit "
                                 "null");
        value = hf__arena_alloc(scratch, sizeof *value);
        if (!value)
                return -ENOMEM;
        (void)hfd_scalar_of(s->element, value);
        *ret_step = (struct hfd_step){.kind = HFD_STEP_VALUE, .value = value};
        return 0;
}

int hfd_element_step(struct hf__arena *scratch, const struct hfd_schema *list,
                     const struct hf__json *element, size_t position, struct hfd_step *ret_step,
                     struct hf__strbuf *reason) {
        const struct subject s = {list, element, position, reason};

        return list->list_type == HFD_LIST_MAP ? step_of_object(scratch, &s, ret_step)
                                               : step_of_value(scratch, &s, ret_step);
}
