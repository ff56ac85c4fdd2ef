/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values: how they are made, the order of numbers and keys, look-up in maps.
 *
 * Invariants: keys are compared by their exact values, because their order must be total. An index
 * sorts keys, because a hash without a secret lets a client choose keys that collide.
 */
#include "cel/values/value.h"

#include <assert.h>
#include <math.h>
#include <string.h>

_Static_assert(sizeof(struct hf__cel_value) == 16, "a value is passed in registers");

struct hf__cel_value hf__cel_null(void) {
        return (struct hf__cel_value){.kind = HF__CEL_NULL};
}

struct hf__cel_value hf__cel_bool(bool value) {
        return (struct hf__cel_value){.kind = HF__CEL_BOOL, .as.boolean = value};
}

struct hf__cel_value hf__cel_int(int64_t value) {
        return (struct hf__cel_value){.kind = HF__CEL_INT, .as.i = value};
}

struct hf__cel_value hf__cel_uint(uint64_t value) {
        return (struct hf__cel_value){.kind = HF__CEL_UINT, .as.u = value};
}

struct hf__cel_value hf__cel_double(double value) {
        return (struct hf__cel_value){.kind = HF__CEL_DOUBLE, .as.d = value};
}

/* A value borrows its text. The text lives in the program, in the inputs or in the arena of the
 * run, and all of them live as long as the result. */
struct hf__cel_value hf__cel_string(const char *text, size_t n) {
        assert(n <= UINT32_MAX);
        return (struct hf__cel_value){.kind = HF__CEL_STRING, .n = (uint32_t)n, .as.text = text};
}

struct hf__cel_value hf__cel_bytes(const void *data, size_t n) {
        assert(n <= UINT32_MAX);
        return (struct hf__cel_value){.kind = HF__CEL_BYTES, .n = (uint32_t)n, .as.text = data};
}

struct hf__cel_value hf__cel_type_value(const struct hf__cel_type *type) {
        return (struct hf__cel_value){.kind = HF__CEL_TYPE, .as.type = type};
}

struct hf__cel_value hf__cel_list_value(const struct hf__cel_list *list) {
        return (struct hf__cel_value){.kind = HF__CEL_LIST, .as.list = list};
}

struct hf__cel_value hf__cel_map_value(const struct hf__cel_map *map) {
        return (struct hf__cel_value){.kind = map->type ? HF__CEL_OBJECT : HF__CEL_MAP,
                                      .as.map = map};
}

struct hf__cel_value hf__cel_opaque_value(const struct hf__cel_opaque *opaque) {
        return (struct hf__cel_value){.kind = HF__CEL_OPAQUE, .as.opaque = opaque};
}

struct hf__cel_value hf__cel_error_text(const char *message) {
        return (struct hf__cel_value){.kind = HF__CEL_ERROR, .as.text = message};
}

bool hf__cel_is_number(struct hf__cel_value value) {
        return value.kind == HF__CEL_INT || value.kind == HF__CEL_UINT ||
               value.kind == HF__CEL_DOUBLE;
}

static int compare_doubles(double a, double b) { return (a > b) - (a < b); }

/* exact: the whole part of d decides, then its fraction. Otherwise i is rounded to a double. cel-go
 * compares an int with a double after rounding, but looks keys of maps up exactly, and results must
 * agree with those of kube-apiserver. 2^63 is beyond every exact int, but the largest ints are
 * rounded to it. */
static int compare_int_double(int64_t i, double d, bool exact) {
        double whole;

        if (exact ? d >= 0x1p63 : d > 0x1p63)
                return -1;
        if (d < -0x1p63)
                return 1;
        if (!exact)
                return compare_doubles((double)i, d);
        whole = trunc(d);
        if (i != (int64_t)whole)
                return i < (int64_t)whole ? -1 : 1;
        return compare_doubles(whole, d);
}

static int compare_uint_double(uint64_t u, double d, bool exact) {
        double whole;

        if (exact ? d >= 0x1p64 : d > 0x1p64)
                return -1;
        if (d < 0)
                return 1;
        if (!exact)
                return compare_doubles((double)u, d);
        whole = trunc(d);
        if (u != (uint64_t)whole)
                return u < (uint64_t)whole ? -1 : 1;
        return compare_doubles(whole, d);
}

/* A conversion of either side to the other's type would change some values. */
static int compare_int_uint(int64_t i, uint64_t u) {
        if (i < 0)
                return -1;
        return ((uint64_t)i > u) - ((uint64_t)i < u);
}

static int compare_numbers(struct hf__cel_value a, struct hf__cel_value b, bool exact) {
        if (a.kind == HF__CEL_INT && b.kind == HF__CEL_INT)
                return (a.as.i > b.as.i) - (a.as.i < b.as.i);
        if (a.kind == HF__CEL_UINT && b.kind == HF__CEL_UINT)
                return (a.as.u > b.as.u) - (a.as.u < b.as.u);
        if (a.kind == HF__CEL_DOUBLE && b.kind == HF__CEL_DOUBLE)
                return compare_doubles(a.as.d, b.as.d);
        if (a.kind == HF__CEL_INT)
                return b.kind == HF__CEL_UINT ? compare_int_uint(a.as.i, b.as.u)
                                              : compare_int_double(a.as.i, b.as.d, exact);
        if (a.kind == HF__CEL_UINT && b.kind == HF__CEL_DOUBLE)
                return compare_uint_double(a.as.u, b.as.d, exact);
        return -compare_numbers(b, a, exact);
}

int hf__cel_number_compare(struct hf__cel_value a, struct hf__cel_value b) {
        return compare_numbers(a, b, false);
}

/* Without `items` or `entries`, an element or entry is made when it is read: the variables of a
 * policy are not evaluated before. */
struct hf__cel_value hf__cel_list_at(const struct hf__cel_list *list, size_t i) {
        assert(i < list->n);
        return list->items ? list->items[i] : list->at(list, i);
}

struct hf__cel_entry hf__cel_map_at(const struct hf__cel_map *map, size_t i) {
        assert(i < map->n);
        return map->entries ? map->entries[i] : map->at(map, i);
}

/* Keys of different types are never equal, apart from numbers. */
static int key_rank(struct hf__cel_value key) {
        if (key.kind == HF__CEL_BOOL)
                return 0;
        return hf__cel_is_number(key) ? 1 : 2;
}

int hf__cel_key_compare(struct hf__cel_value a, struct hf__cel_value b) {
        int rank_a = key_rank(a);
        int rank_b = key_rank(b);
        int r;

        if (rank_a != rank_b)
                return rank_a - rank_b;
        if (rank_a == 0)
                return (int)a.as.boolean - (int)b.as.boolean;
        if (rank_a == 1)
                return compare_numbers(a, b, true);
        /* Texts: a shorter one is first, which is quicker than the order of their bytes. */
        if (a.n != b.n)
                return a.n < b.n ? -1 : 1;
        r = a.n > 0 ? memcmp(a.as.text, b.as.text, a.n) : 0;
        return r != 0 ? r : (int)a.kind - (int)b.kind;
}

/* A map without an index is small: one that an expression has made has fewer than INDEX_MIN entries
 * (run.c). So nothing charges the comparison with each of them. */
bool hf__cel_map_find(const struct hf__cel_map *map, struct hf__cel_value key,
                      struct hf__cel_value *ret_value) {
        size_t low = 0;
        size_t high = map->n;

        /* NaN equals nothing. The comparison of keys must be total, so it would take NaN for equal
         * to something. */
        if (key.kind == HF__CEL_DOUBLE && isnan(key.as.d))
                return false;
        if (!map->entries)
                return map->n > 0 && map->find(map, key, ret_value);
        for (size_t i = 0; !map->order && i < map->n; i++)
                if (hf__cel_key_compare(key, map->entries[i].key) == 0) {
                        *ret_value = map->entries[i].value;
                        return true;
                }
        while (map->order && low < high) {
                size_t middle = low + (high - low) / 2;
                const struct hf__cel_entry *entry = &map->entries[map->order[middle]];
                int r = hf__cel_key_compare(key, entry->key);

                if (r == 0) {
                        *ret_value = entry->value;
                        return true;
                }
                if (r < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return false;
}

/* Moves the entry at `at` down in a heap of n, the largest key on top. */
static void sift_down(const struct hf__cel_entry *entries, uint32_t *heap, size_t at, size_t n) {
        for (;;) {
                size_t child = 2 * at + 1;
                uint32_t moved = heap[at];

                if (child >= n)
                        return;
                if (child + 1 < n &&
                    hf__cel_key_compare(entries[heap[child]].key, entries[heap[child + 1]].key) < 0)
                        child++;
                if (hf__cel_key_compare(entries[moved].key, entries[heap[child]].key) >= 0)
                        return;
                heap[at] = heap[child];
                heap[child] = moved;
                at = child;
        }
}

/* A heap sort: qsort takes no context in C11, and glibc's may allocate. */
bool hf__cel_map_index(const struct hf__cel_entry *entries, size_t n, uint32_t *order) {
        bool equal = false;

        for (size_t i = 0; i < n; i++)
                order[i] = (uint32_t)i;
        for (size_t i = n / 2; i-- > 0;)
                sift_down(entries, order, i, n);
        for (size_t last = n; last-- > 1;) {
                uint32_t largest = order[0];

                order[0] = order[last];
                order[last] = largest;
                sift_down(entries, order, 0, last);
        }
        for (size_t i = 1; i < n; i++)
                equal = equal ||
                        hf__cel_key_compare(entries[order[i - 1]].key, entries[order[i]].key) == 0;
        return equal;
}

const struct hf__cel_type *hf__cel_value_type(struct hf__cel_value value) {
        if (value.kind == HF__CEL_OPAQUE)
                return value.as.opaque->type;
        if (value.kind == HF__CEL_OBJECT)
                return value.as.map->type;
        return hf__cel_type_of((enum hf__cel_kind)value.kind);
}
