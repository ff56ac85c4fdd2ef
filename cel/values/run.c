/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory and the limits of an evaluation, and what is common to all functions: making lists and
 * maps, equality and order.
 *
 * Invariants: every byte that an evaluation keeps until its end is counted, and the count never
 * exceeds the limit. Equality counts each element that it visits, because lists can share their
 * parts: a few small ones may stand for a huge tree.
 */
#include "cel/values/run.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/utf8.h"

/* Levels that a comparison walks down; a deeper value fails the run, because the walk recurses. An
 * expression may put an object that is nested as deep as JSON allows into some lists of its own. */
#define EQUAL_DEPTH_MAX (HF__JSON_DEPTH_MAX + 100)
/* Entries from which a map gets an index. Fewer are searched faster one after another, and most
 * literal maps have only a few. */
#define INDEX_MIN 8
/* The overhead of a block in the arena, rounded up. */
#define BLOCK_BYTES 16
/* Steps, of cost or of work, after which the caller may look at the run: some 50 us. */
#define PAUSE_STEPS 4096

static void fail_by_limit(struct hf__cel_run *run, bool own) {
        run->failed = HF_E_TOO_LARGE;
        run->own_limit = own;
}

/* The first failure stays, as in hf__cel_reserve. */
struct hf__cel_value hf__cel_exceed(struct hf__cel_run *run, const char *text) {
        if (run->failed == 0) {
                fail_by_limit(run, true);
                run->exceeded = text;
        }
        return hf__cel_failure(run);
}

/* Each block counts BLOCK_BYTES more than were asked for. Otherwise many tiny values would use
 * more memory than the limit allows. The count never exceeds the limit: other code takes the
 * difference of the two for what is left (format.c). */
bool hf__cel_reserve(struct hf__cel_run *run, size_t n) {
        size_t left = run->bytes_limit - run->n_bytes;

        assert(run->n_bytes <= run->bytes_limit);
        if (run->shared_bytes && left > run->shared_bytes_limit - *run->shared_bytes)
                left = run->shared_bytes_limit - *run->shared_bytes;
        /* The first failure stays: it says why the evaluation ended. */
        if (run->failed == 0 && (left < BLOCK_BYTES || n > left - BLOCK_BYTES))
                fail_by_limit(run, true);
        if (run->failed != 0)
                return false;
        run->n_bytes += n + BLOCK_BYTES;
        if (run->shared_bytes)
                *run->shared_bytes += n + BLOCK_BYTES;
        return true;
}

void *hf__cel_alloc(struct hf__cel_run *run, size_t n) {
        void *block;

        if (!hf__cel_reserve(run, n))
                return NULL;
        block = hf__arena_alloc(run->arena, n);
        if (!block)
                run->failed = -ENOMEM;
        return block;
}

/* Kubernetes has one text for an exceeded cost. Work, which only this implementation counts, is
 * refused with the same text, because for the author of the expression both mean that it is too
 * expensive. */
struct hf__cel_value hf__cel_failure(const struct hf__cel_run *run) {
        assert(run->failed != 0);
        if (run->failed < 0)
                return hf__cel_error_text("out of memory");
        if (run->exceeded)
                return hf__cel_error_text(run->exceeded);
        if (run->failed == HF_E_TOO_LARGE && run->cost <= run->cost_limit &&
            run->work <= run->work_limit)
                return hf__cel_error_text("operation cancelled: memory limit exceeded");
        return hf__cel_error_text("operation cancelled: actual cost limit exceeded");
}

/* The text is copied into the run, because an error is a value, and may outlive the values that its
 * text shows. */
struct hf__cel_value hf__cel_errorf(struct hf__cel_run *run, const char *format, ...) {
        char text[512];
        va_list args;
        struct hf__cel_value copy;

        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        copy = hf__cel_copy_string(run, text, strlen(text));
        return hf__cel_is_error(copy) ? copy : hf__cel_error_text(copy.as.text);
}

/* The cost or work at which the caller looks at the run again. */
static uint64_t next_pause(const struct hf__cel_run *run, uint64_t used, uint64_t limit) {
        assert(used <= limit);
        return run->watch && limit - used > PAUSE_STEPS ? used + PAUSE_STEPS : limit;
}

/* Called when the cost or the work has exceeded its pause. Fails the run if one has exceeded its
 * limit, or if the caller's `watch` says so; otherwise sets the next pauses. */
static void pause_run(struct hf__cel_run *run) {
        if (run->failed != 0)
                return;
        if (run->cost > run->cost_limit)
                fail_by_limit(run, false);
        else if (run->work > run->work_limit)
                fail_by_limit(run, true);
        else if (run->watch)
                run->failed = run->watch(run->watch_ctx, run->cost, run->work);
        if (run->failed != 0)
                return;
        run->cost_pause = next_pause(run, run->cost, run->cost_limit);
        run->work_pause = next_pause(run, run->work, run->work_limit);
}

/* The sum saturates, so that a huge charge cannot wrap around to a small one. A pause is never
 * beyond its limit. */
bool hf__cel_spend(struct hf__cel_run *run, uint64_t cost) {
        run->cost = cost > UINT64_MAX - run->cost ? UINT64_MAX : run->cost + cost;
        if (run->cost > run->cost_pause)
                pause_run(run);
        return run->failed == 0;
}

bool hf__cel_work(struct hf__cel_run *run, uint64_t steps) {
        run->work = steps > UINT64_MAX - run->work ? UINT64_MAX : run->work + steps;
        if (run->work > run->work_pause)
                pause_run(run);
        return run->failed == 0;
}

struct hf__cel_value hf__cel_new_list(struct hf__cel_run *run, size_t n,
                                      struct hf__cel_value **ret_items) {
        struct hf__cel_list *list = hf__cel_alloc(run, sizeof *list);
        struct hf__cel_value *items = hf__cel_alloc(run, n * sizeof *items);

        *ret_items = items;
        if (!list || !items)
                return hf__cel_failure(run);
        *list = (struct hf__cel_list){.n = n, .items = items};
        return hf__cel_list_value(list);
}

struct hf__cel_value hf__cel_sublist(struct hf__cel_run *run, const struct hf__cel_list *list,
                                     size_t first, size_t n) {
        struct hf__cel_list *part;
        struct hf__cel_value *items;
        struct hf__cel_value value;

        assert(first <= list->n && n <= list->n - first);
        /* A list with `items` shares its elements. Any other makes each element when it is read. */
        if (list->items) {
                part = hf__cel_alloc(run, sizeof *part);
                if (!part)
                        return hf__cel_failure(run);
                *part = (struct hf__cel_list){.n = n, .items = list->items + first};
                return hf__cel_list_value(part);
        }
        value = hf__cel_new_list(run, n, &items);
        for (size_t i = 0; !hf__cel_is_error(value) && i < n; i++)
                items[i] = hf__cel_list_at(list, first + i);
        return value;
}

/* The object shares the entries of the map. Only its type is new, and gives its value the kind
 * OBJECT. */
struct hf__cel_value hf__cel_object(struct hf__cel_run *run, const struct hf__cel_map *map,
                                    const struct hf__cel_type *type) {
        struct hf__cel_map *object = hf__cel_alloc(run, sizeof *object);

        if (!object)
                return hf__cel_failure(run);
        *object = *map;
        object->type = type;
        return hf__cel_map_value(object);
}

/* The types of keys are those of protobuf maps, so a double cannot be a key, although it can equal
 * an int. */
static bool is_key(struct hf__cel_value key) {
        return key.kind == HF__CEL_BOOL || key.kind == HF__CEL_INT || key.kind == HF__CEL_UINT ||
               key.kind == HF__CEL_STRING;
}

/* Whether comparing the key reads bytes. Keys of list elements may be BYTES. */
static bool is_text(struct hf__cel_value key) {
        return key.kind == HF__CEL_STRING || key.kind == HF__CEL_BYTES;
}

/* Copies the entries to *ret_entries. Of those with equal keys only the last remains, at the place
 * of the first. Returns how many remain. */
static size_t without_repeated(struct hf__cel_run *run, const struct hf__cel_entry *entries,
                               size_t n, struct hf__cel_entry **ret_entries) {
        struct hf__cel_entry *kept = hf__cel_alloc(run, n * sizeof *kept);
        size_t n_kept = 0;

        *ret_entries = kept;
        for (size_t i = 0; kept && i < n; i++) {
                const struct hf__cel_value key = entries[i].key;
                uint64_t step = 1 + (is_text(key) ? key.n / 16 : 0);
                size_t k = 0;

                while (k < n_kept && hf__cel_key_compare(kept[k].key, key) != 0)
                        k++;
                /* This search is quadratic. It is rare, because it needs equal keys, and its steps
                 * count, also the bytes that are compared. */
                if (!hf__cel_work(run, k * step))
                        return 0;
                kept[k] = entries[i];
                n_kept += k == n_kept ? 1 : 0;
        }
        return n_kept;
}

/* The work of sorting the keys: a step for each key, and one for each 32 bytes that are compared. A
 * key takes part in about log n comparisons, and each reads at most its bytes. */
static uint64_t sorting_work(const struct hf__cel_entry *entries, size_t n) {
        uint64_t bytes = 0;
        uint64_t rounds = 1;

        for (size_t i = 0; i < n; i++)
                if (is_text(entries[i].key))
                        bytes += entries[i].key.n;
        for (size_t left = n; left > 1; left /= 2)
                rounds++;
        return n + bytes / 32 * rounds;
}

/* An entry whose key another one has too. NULL: there is none. Without an order, the keys are
 * compared in pairs: of at most 7 entries, 21 times. */
static const struct hf__cel_entry *find_repeated(const struct hf__cel_entry *entries, size_t n,
                                                 const uint32_t *order) {
        for (size_t i = 1; i < n; i++) {
                if (order &&
                    hf__cel_key_compare(entries[order[i - 1]].key, entries[order[i]].key) == 0)
                        return &entries[order[i]];
                for (size_t k = 0; !order && k < i; k++)
                        if (hf__cel_key_compare(entries[i].key, entries[k].key) == 0)
                                return &entries[i];
        }
        return NULL;
}

/* The map of entries with any keys that can be compared. NULL: the run has failed, or a key is
 * repeated and ret_repeated is not NULL; then *ret_repeated is an entry with that key. */
static const struct hf__cel_map *index_entries(struct hf__cel_run *run,
                                               const struct hf__cel_entry *entries, size_t n,
                                               const struct hf__cel_entry **ret_repeated) {
        struct hf__cel_map *map = hf__cel_alloc(run, sizeof *map);
        struct hf__cel_entry *kept = NULL;
        uint32_t *order = NULL;
        const struct hf__cel_entry *repeated = NULL;

        if (n >= INDEX_MIN)
                order = hf__cel_alloc(run, n * sizeof *order);
        if (!map || (n >= INDEX_MIN && !order) || !hf__cel_work(run, sorting_work(entries, n)))
                return NULL;
        if (!order || hf__cel_map_index(entries, n, order))
                repeated = find_repeated(entries, n, order);
        if (repeated && ret_repeated) {
                *ret_repeated = repeated;
                return NULL;
        }
        if (repeated) {
                n = without_repeated(run, entries, n, &kept);
                if (run->failed != 0)
                        return NULL;
                if (order)
                        hf__cel_map_index(kept, n, order);
        }
        *map = (struct hf__cel_map){.n = n, .entries = kept ? kept : entries, .order = order};
        return map;
}

struct hf__cel_value hf__cel_new_map(struct hf__cel_run *run, const struct hf__cel_entry *entries,
                                     size_t n) {
        const struct hf__cel_map *map;

        for (size_t i = 0; i < n; i++)
                if (!is_key(entries[i].key))
                        return hf__cel_error_text("unsupported key type");
        map = index_entries(run, entries, n, NULL);
        return map ? hf__cel_map_value(map) : hf__cel_failure(run);
}

struct hf__cel_value hf__cel_join_maps(struct hf__cel_run *run, const struct hf__cel_entry *entries,
                                       size_t n) {
        const struct hf__cel_entry *repeated = NULL;
        const struct hf__cel_map *map = index_entries(run, entries, n, &repeated);
        struct hf__cel_value key;

        if (map)
                return hf__cel_map_value(map);
        if (!repeated)
                return hf__cel_failure(run);
        key = repeated->key;
        switch (key.kind) {
        case HF__CEL_STRING:
                return hf__cel_errorf(run, "insert failed: key %.*s already exists",
                                      (int)(key.n > 200 ? 200 : key.n), key.as.text);
        case HF__CEL_INT:
                return hf__cel_errorf(run, "insert failed: key %lld already exists",
                                      (long long)key.as.i);
        case HF__CEL_UINT:
                return hf__cel_errorf(run, "insert failed: key %llu already exists",
                                      (unsigned long long)key.as.u);
        default:
                return hf__cel_errorf(run, "insert failed: key %s already exists",
                                      key.as.boolean ? "true" : "false");
        }
}

static bool is_nan(struct hf__cel_value value) {
        return value.kind == HF__CEL_DOUBLE && isnan(value.as.d);
}

/* Makes a map from the key of each element, which keys->key returns, to the place of the element.
 * Of elements with the same key the last counts; if `first`, the first. A NaN has no place in the
 * order of keys and equals none, so it is left out. An error: an element has no valid key, or the
 * run has failed. */
static struct hf__cel_value by_key(struct hf__cel_run *run, const struct hf__cel_list *keys,
                                   const struct hf__cel_list *list, bool first) {
        struct hf__cel_entry *entries = hf__cel_alloc(run, list->n * sizeof *entries);
        const struct hf__cel_map *map;
        size_t n = 0;

        /* If several entries have the same key, the last one counts, so for the first element the
         * list is walked in reverse order. */
        for (size_t k = 0; entries && k < list->n; k++) {
                size_t i = first ? list->n - 1 - k : k;
                struct hf__cel_value key = keys->key(run, keys, hf__cel_list_at(list, i));

                if (hf__cel_is_error(key))
                        return key;
                if (!is_nan(key))
                        entries[n++] = (struct hf__cel_entry){key, hf__cel_int((int64_t)i)};
        }
        map = entries ? index_entries(run, entries, n, NULL) : NULL;
        return map ? hf__cel_map_value(map) : hf__cel_failure(run);
}

/* Lists of the types set and map (x-kubernetes-list-type) are joined by key, as Kubernetes merges
 * them: a map takes the element of b in the place of that of a, a set keeps that of a. New elements
 * follow in the order of b; a NaN is always new. */
struct hf__cel_value hf__cel_union(struct hf__cel_run *run, const struct hf__cel_list *a,
                                   const struct hf__cel_list *b) {
        struct hf__cel_value in_a = by_key(run, a, a, false);
        struct hf__cel_value in_b = hf__cel_is_error(in_a) ? in_a : by_key(run, a, b, true);
        struct hf__cel_list *list = hf__cel_alloc(run, sizeof *list);
        struct hf__cel_value *items = hf__cel_alloc(run, (a->n + b->n) * sizeof *items);
        size_t n = a->n;

        if (hf__cel_is_error(in_b))
                return in_b;
        if (!list || !items)
                return hf__cel_failure(run);
        for (size_t i = 0; i < a->n; i++)
                items[i] = hf__cel_list_at(a, i);
        for (size_t i = 0; i < b->n; i++) {
                struct hf__cel_value element = hf__cel_list_at(b, i);
                struct hf__cel_value key = a->key(run, a, element);
                struct hf__cel_value place;

                if (hf__cel_is_error(key))
                        return key;
                if (hf__cel_map_find(in_a.as.map, key, &place)) {
                        if (a->replaces)
                                items[place.as.i] = element;
                } else if (a->replaces || is_nan(key) ||
                           (hf__cel_map_find(in_b.as.map, key, &place) &&
                            (size_t)place.as.i == i)) {
                        items[n++] = element;
                }
        }
        *list = (struct hf__cel_list){.n = n,
                                      .items = items,
                                      .key = a->key,
                                      .replaces = a->replaces,
                                      .data = a->data};
        return hf__cel_list_value(list);
}

struct hf__cel_value hf__cel_copy_string(struct hf__cel_run *run, const char *text, size_t n) {
        char *copy;

        /* Here a step of work stands for 16 bytes that are copied. */
        if (!hf__cel_work(run, n / 16))
                return hf__cel_failure(run);
        copy = hf__cel_alloc(run, n + 1);
        if (!copy)
                return hf__cel_failure(run);
        if (n > 0)
                memcpy(copy, text, n);
        copy[n] = 0;
        return hf__cel_string(copy, n);
}

struct hf__cel_value hf__cel_optional_of(struct hf__cel_run *run, struct hf__cel_value value) {
        struct hf__cel_value *held;

        if (hf__cel_is_error(value))
                return value;
        /* A value has 16 bytes and no room for another one, so an optional points to what it holds.
         */
        held = hf__cel_alloc(run, sizeof *held);
        if (!held)
                return hf__cel_failure(run);
        *held = value;
        return (struct hf__cel_value){.kind = HF__CEL_OPTIONAL, .as.optional = held};
}

struct hf__cel_value hf__cel_optional_none(void) {
        return (struct hf__cel_value){.kind = HF__CEL_OPTIONAL, .as.optional = NULL};
}

static bool values_equal(struct hf__cel_run *run, struct hf__cel_value a, struct hf__cel_value b,
                         unsigned depth);

/* Compares lists of the same length, of which a has keys. As in Kubernetes, each element of b must
 * be in a; so a = [1, 2] equals b = [1, 1], if b is a plain list. */
static bool sets_equal(struct hf__cel_run *run, const struct hf__cel_list *a,
                       const struct hf__cel_list *b, unsigned depth) {
        struct hf__cel_value in_a = by_key(run, a, a, false);

        if (hf__cel_is_error(in_a))
                return false;
        for (size_t i = 0; i < b->n; i++) {
                struct hf__cel_value element = hf__cel_list_at(b, i);
                struct hf__cel_value key = a->key(run, a, element);
                struct hf__cel_value place;

                /* A look-up may compare the whole key, and keys are chosen by clients. */
                if (hf__cel_is_error(key) || !hf__cel_work(run, 1 + key.n / 16) ||
                    !hf__cel_map_find(in_a.as.map, key, &place) ||
                    !values_equal(run, hf__cel_list_at(a, (size_t)place.as.i), element, depth))
                        return false;
        }
        return true;
}

/* In Kubernetes the order does not count if the left list has keys, even if the right one is a
 * plain list. */
static bool lists_equal(struct hf__cel_run *run, const struct hf__cel_list *a,
                        const struct hf__cel_list *b, unsigned depth) {
        if (a->n != b->n)
                return false;
        if (a->key)
                return sets_equal(run, a, b, depth);
        for (size_t i = 0; i < a->n; i++)
                if (!values_equal(run, hf__cel_list_at(a, i), hf__cel_list_at(b, i), depth))
                        return false;
        return true;
}

static bool maps_equal(struct hf__cel_run *run, const struct hf__cel_map *a,
                       const struct hf__cel_map *b, unsigned depth) {
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++) {
                struct hf__cel_entry entry = hf__cel_map_at(a, i);
                struct hf__cel_value other;

                /* A look-up may compare the whole key, and keys are chosen by clients. */
                if (entry.key.kind == HF__CEL_STRING && !hf__cel_work(run, entry.key.n / 16))
                        return false;
                if (!hf__cel_map_find(b, entry.key, &other) ||
                    !values_equal(run, entry.value, other, depth))
                        return false;
        }
        return true;
}

static bool texts_equal(struct hf__cel_run *run, struct hf__cel_value a, struct hf__cel_value b) {
        return a.n == b.n && hf__cel_work(run, a.n / 16) &&
               (a.n == 0 || memcmp(a.as.text, b.as.text, a.n) == 0);
}

/* The text of an opaque value is as long as a client has made it, so it counts as work. */
static bool opaques_equal(struct hf__cel_run *run, const struct hf__cel_opaque *a,
                          const struct hf__cel_opaque *b) {
        return strcmp(a->type->name, b->type->name) == 0 &&
               hf__cel_work(run, (a->n_text + b->n_text) / 8) && a->equal(a, b);
}

/* Once the run has failed, the result must not be used. */
static bool values_equal(struct hf__cel_run *run, struct hf__cel_value a, struct hf__cel_value b,
                         unsigned depth) {
        if (depth > EQUAL_DEPTH_MAX)
                run->work = run->work_limit; /* the next line then fails the run */
        if (!hf__cel_work(run, 1))
                return false;
        if (hf__cel_is_number(a) && hf__cel_is_number(b)) {
                if (is_nan(a) || is_nan(b))
                        return false;
                return hf__cel_number_compare(a, b) == 0;
        }
        /* Numbers of different types can be equal (above). Any other values of different types are
         * unequal, which is no error, unlike in hf__cel_order. */
        if (a.kind != b.kind)
                return false;
        switch (a.kind) {
        case HF__CEL_NULL: return true;
        case HF__CEL_BOOL: return a.as.boolean == b.as.boolean;
        case HF__CEL_STRING:
        case HF__CEL_BYTES: return texts_equal(run, a, b);
        /* as.i has the seconds, and n the nanoseconds. */
        case HF__CEL_TIMESTAMP: return a.as.i == b.as.i && a.n == b.n;
        case HF__CEL_DURATION: return a.as.i == b.as.i;
        case HF__CEL_LIST: return lists_equal(run, a.as.list, b.as.list, depth + 1);
        case HF__CEL_MAP:
        case HF__CEL_OBJECT: return maps_equal(run, a.as.map, b.as.map, depth + 1);
        case HF__CEL_OPTIONAL:
                if (!a.as.optional || !b.as.optional)
                        return a.as.optional == b.as.optional;
                return values_equal(run, *a.as.optional, *b.as.optional, depth + 1);
        case HF__CEL_TYPE:
                return strcmp(hf__cel_type_name(a.as.type), hf__cel_type_name(b.as.type)) == 0;
        case HF__CEL_OPAQUE: return opaques_equal(run, a.as.opaque, b.as.opaque);
        default: return false;
        }
}

struct hf__cel_value hf__cel_equal(struct hf__cel_run *run, struct hf__cel_value a,
                                   struct hf__cel_value b) {
        bool same = values_equal(run, a, b, 0);

        return run->failed != 0 ? hf__cel_failure(run) : hf__cel_bool(same);
}

static int compare_bytes(struct hf__cel_value a, struct hf__cel_value b) {
        uint32_t n = a.n < b.n ? a.n : b.n;
        int r = n > 0 ? memcmp(a.as.text, b.as.text, n) : 0;

        if (r != 0)
                return r;
        return (a.n > b.n) - (a.n < b.n);
}

/* Numbers of all types have one order, as the language definition demands, but a NaN has no place
 * in it. Other values have an order only if their types are the same. Values without an order are
 * an error here, but not for ==. */
bool hf__cel_order(struct hf__cel_run *run, struct hf__cel_value a, struct hf__cel_value b,
                   int *ret_order, struct hf__cel_value *ret_error) {
        *ret_error = hf__cel_error_text("no such overload");
        if (hf__cel_is_number(a) && hf__cel_is_number(b)) {
                *ret_error = hf__cel_error_text("NaN values cannot be ordered");
                if (is_nan(a) || is_nan(b))
                        return false;
                *ret_order = hf__cel_number_compare(a, b);
                return true;
        }
        if (a.kind != b.kind)
                return false;
        switch (a.kind) {
        case HF__CEL_BOOL: *ret_order = (int)a.as.boolean - (int)b.as.boolean; return true;
        case HF__CEL_STRING:
        case HF__CEL_BYTES:
                /* A run that has failed compares nothing more: a sort still goes on to the end of
                 * its pass. */
                *ret_order = hf__cel_work(run, a.n / 16) ? compare_bytes(a, b) : 0;
                return true;
        case HF__CEL_TIMESTAMP:
        case HF__CEL_DURATION:
                *ret_order = (a.as.i > b.as.i) - (a.as.i < b.as.i);
                if (*ret_order == 0)
                        *ret_order = (a.n > b.n) - (a.n < b.n);
                return true;
        default: return false;
        }
}

/* The size that costs depend on. Kubernetes counts the characters of texts, so they must be read.
 */
uint64_t hf__cel_size(struct hf__cel_run *run, struct hf__cel_value value) {
        switch (value.kind) {
        case HF__CEL_STRING:
                return hf__cel_work(run, value.n / 32) ? hf__utf8_count(value.as.text, value.n) : 0;
        case HF__CEL_BYTES: return value.n;
        case HF__CEL_LIST: return value.as.list->n;
        case HF__CEL_MAP:
        case HF__CEL_OBJECT: return value.as.map->n;
        case HF__CEL_OPTIONAL: return value.as.optional ? hf__cel_size(run, *value.as.optional) : 1;
        default: return 1;
        }
}
