/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cJSON item behind an hf__json: both names mean the same memory. Only base/json*.c include
 * this header, so that the rest of the project does not depend on cJSON. Pure. Thread: as json.h.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct hf__json;

/* Drops the const, because most of cJSON's functions take no const items. A function that takes a
 * const hf__json still only reads it. */
static inline cJSON *hf__json_item(const struct hf__json *json) {
        return (cJSON *)(void *)(uintptr_t)json;
}
static inline struct hf__json *hf__json_of(cJSON *item) { return (struct hf__json *)(void *)item; }

/* The length of the first key of a path. */
static inline size_t hf__json_key_length(const char *path) {
        return (size_t)(strchrnul(path, '.') - path);
}
/* The member whose key is the n bytes at key. NULL: there is none, or `object` is another type. */
cJSON *hf__json_find_member(const cJSON *object, const char *key, size_t n);

/* Whether c is of a type. Inline and without a call of cJSON, because a write does this check a
 * thousand times. */
static inline bool hf__json_item_is(const cJSON *c, int type) {
        return c && (c->type & 0xff) == type;
}
