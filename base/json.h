/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The doorway to cJSON, the only place that includes its header. A value is an opaque hf__json.
 *
 * Keys are case sensitive; of duplicate keys the first counts; nesting ends at HF__JSON_DEPTH_MAX,
 * for reading and printing recurse on threads with small stacks; numbers are doubles, which is
 * exact up to 2^53 (resourceVersions are strings). Thread: a tree belongs to one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__json;
struct hf__buf;
struct hf__strbuf;

#define HF__JSON_DEPTH_MAX 100

/* Whether n bytes are UTF-8 as RFC 3629 has it: no overlong forms, no surrogates. The parser itself
 * passes any bytes on. */
bool hf__utf8_valid(const char *data, size_t n);
/* How many bytes the character at the beginning of text has, which has n > 0 of them; 0 = it is
 * none. */
size_t hf__utf8_length(const char *text, size_t n);
/* data needs no NUL. Rejects trailing bytes other than white space. 0, -ENOMEM, HF_E_INVALID;
 * *reterr_offset where (may be NULL). */
int hf__json_parse(const char *data, size_t n, struct hf__json **ret_json, size_t *reterr_offset);
/* For what a client sends: readers differ in which of two equal keys counts. */
/* 0; HF_E_INVALID: an object in it has a key twice, *reterr_key (may be NULL) is the key, borrowed
 * from the tree; -ENOMEM. */
int hf__json_check_unique(const struct hf__json *json, const char **reterr_key);
struct hf__json *hf__json_free(struct hf__json *json); /* accepts NULL, returns NULL; a root only */
struct hf__json *
hf__json_dup(const struct hf__json *json); /* deep; NULL = out of memory or json is NULL */
bool hf__json_equal(const struct hf__json *a, const struct hf__json *b);
void hf__json_print(const struct hf__json *json,
                    struct hf__strbuf *out); /* compact; errors stick in out */
void hf__json_print_pretty(const struct hf__json *json, struct hf__strbuf *out);

/* Reading. All accept NULL and answer NULL, false, or the default. What they return is borrowed
 * from the tree. */
struct hf__json *hf__json_get(const struct hf__json *object, const char *key);
struct hf__json *hf__json_path(const struct hf__json *object,
                               const char *path); /* "metadata.labels": dots separate keys */
const char *hf__json_string(const struct hf__json *object,
                            const char *path); /* NULL unless a string is there */
bool hf__json_i64(const struct hf__json *object, const char *path,
                  int64_t *ret_value); /* false unless a whole number is there */
bool hf__json_bool(const struct hf__json *object, const char *path, bool otherwise);
bool hf__json_is_object(const struct hf__json *json);
bool hf__json_is_array(const struct hf__json *json);
bool hf__json_is_string(const struct hf__json *json);
bool hf__json_is_number(const struct hf__json *json);
bool hf__json_is_bool(const struct hf__json *json);
bool hf__json_is_null(const struct hf__json *json);
const char *hf__json_text(const struct hf__json *json); /* a string value itself */
double hf__json_number(const struct hf__json *json);
const char *hf__json_key(const struct hf__json *member); /* the key of an object's member */
struct hf__json *
hf__json_first(const struct hf__json *container); /* for (c = first(x); c; c = next(c)) */
struct hf__json *hf__json_next(const struct hf__json *member);
size_t hf__json_count(const struct hf__json *container);

/* Building. -ENOMEM or 0. set_* replace an existing member in its place; path's missing objects are
 * made. */
struct hf__json *hf__json_object(void);
struct hf__json *hf__json_array(void);
int hf__json_set_string(struct hf__json *object, const char *path, const char *value);
int hf__json_set_key(struct hf__json *object, const char *key,
                     const char *value); /* a string under one key, dots and all (labels) */
int hf__json_set_i64(struct hf__json *object, const char *path, int64_t value);
int hf__json_set_bool(struct hf__json *object, const char *path, bool value);
int hf__json_set(struct hf__json *object, const char *path,
                 struct hf__json *value); /* takes value, freed on failure */
int hf__json_append(struct hf__json *array,
                    struct hf__json *value); /* takes value, freed on failure */
int hf__json_append_string(struct hf__json *array, const char *value);
void hf__json_remove(struct hf__json *object, const char *path); /* nothing when absent */
/* The same with one key taken as it is: keys of labels and annotations contain dots. */
int hf__json_put(struct hf__json *object, const char *key,
                 struct hf__json *value); /* takes value, freed on failure */
int hf__json_put_string(struct hf__json *object, const char *key, const char *value);
void hf__json_drop(struct hf__json *object, const char *key); /* nothing when absent */

/* By place, without a search: member is one of container's, an object's or an array's. */
struct hf__json *hf__json_detach(struct hf__json *container,
                                 struct hf__json *member); /* out of it, a root now; the caller's */
int hf__json_replace(struct hf__json *container, struct hf__json *member,
                     struct hf__json *value); /* takes value, freed on failure */
int hf__json_insert(struct hf__json *array, struct hf__json *before,
                    struct hf__json *value); /* the same; before NULL = at the end */
/* A member whose key is known not to be there. Takes value, freed on failure. */
int hf__json_add(struct hf__json *object, const char *key, struct hf__json *value);
int hf__json_add_string(struct hf__json *object, const char *key, const char *value);
