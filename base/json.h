/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON values. A value is an opaque hf__json. In the library and the server only base/json*.c use
 * cJSON, through base/json_item.h, so that cJSON can be replaced.
 *
 * Keys are case sensitive. If several members have the same key, the first one is used. The parser
 * limits nesting to HF__JSON_DEPTH_MAX, because functions that visit a whole value are recursive,
 * and each thread has a stack for that many levels. Numbers without fraction and exponent are exact
 * if they fit into an int64_t; other numbers are doubles. Thread: a tree belongs to one thread at a
 * time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct hf__json;
struct hf__strbuf;

/*
 * How deep a parsed value may be nested. cJSON parses no deeper either.
 *
 * A function that visits a value recurses once for each level, and a level may take
 * HF__JSON_LEVEL_STACK bytes of the stack, summed over the functions that call each other in turn.
 * hf__thread_start gives each thread HF__JSON_STACK bytes for that, besides the stack size that the
 * host has set. tests/lib/check-stack compares the programs with this bound;
 * tests/integration/test_nesting.py sends the deepest values through all paths of the server.
 */
#define HF__JSON_DEPTH_MAX   1000
#define HF__JSON_LEVELS_MAX  1003 /* with an envelope, see base/json_envelope.h */
#define HF__JSON_LEVEL_STACK 1024
#define HF__JSON_STACK       ((size_t)HF__JSON_LEVELS_MAX * HF__JSON_LEVEL_STACK)

/* ---- whole values ---- */

/*
 * Parses n bytes, which need no NUL at the end. Only white space may follow the value. A NUL
 * character in a string is refused, whether raw or written as \u0000. Strings are not checked to be
 * UTF-8; see hf__utf8_valid (base/utf8.h). 0, -ENOMEM, HF_E_INVALID with the offset of the error
 * (reterr_offset may be NULL), or HF_E_TOO_LARGE with the offset of a number that is beyond the
 * range of a double or longer than 63 characters. The caller owns the value.
 */
int hf__json_parse(const char *data, size_t n, struct hf__json **ret_json, size_t *reterr_offset);
/* An upper bound of the number of values that a text has. A value takes some 100 bytes of memory
 * when it is parsed, and may take two bytes of text. */
size_t hf__json_count_values(const char *data, size_t n);
/*
 * Refuses objects in which a key occurs twice, because programs differ in which of the two members
 * they use. Call it for values that a client has sent. 0, -ENOMEM, or HF_E_INVALID with the key,
 * borrowed from the tree (reterr_key may be NULL).
 */
int hf__json_check_unique(const struct hf__json *json, const char **reterr_key);
/* Frees a root and all values below it. Accepts NULL, returns NULL. */
struct hf__json *hf__json_free(struct hf__json *json);
HF__CLEANUP_DEFINE(hf__json_cleanup, struct hf__json *, hf__json_free)
/* The same for a root with secrets: overwrites all string values, but not the keys, before it frees
 * them. */
struct hf__json *hf__json_wipe_free(struct hf__json *json);
/* A deep copy. NULL: out of memory, or json is NULL. */
struct hf__json *hf__json_dup(const struct hf__json *json);
/* Whether a and b are equal. The order of an object's members does not matter. NULL equals NULL.
 * Takes time in proportion to the size of the smaller value. If members are in a different order,
 * it sorts them: that takes n log n, and if memory is exhausted, the result is false. */
bool hf__json_equal(const struct hf__json *a, const struct hf__json *b);
/* The same for callers that must know why: 0, or -ENOMEM with the result false. */
int hf__json_are_equal(const struct hf__json *a, const struct hf__json *b, bool *ret_equal);
/* Whether the caller knows already if a and b, two objects or two arrays, are equal. */
typedef bool hf__json_knows(const void *ctx, const struct hf__json *a, const struct hf__json *b,
                            bool *ret_equal);
/* The same for a caller that has compared parts of a and b before: `knows` is asked about each two
 * containers before they are compared, also about a and b themselves. */
int hf__json_are_equal_knowing(const struct hf__json *a, const struct hf__json *b,
                               hf__json_knows *knows, const void *ctx, bool *ret_equal);
/* Prints on one line, without spaces. An error is kept in out->error. Prints nothing for NULL. */
void hf__json_print(const struct hf__json *json, struct hf__strbuf *out);
/* Prints on several lines, indented by two spaces. */
void hf__json_print_pretty(const struct hf__json *json, struct hf__strbuf *out);

/* ---- reading ----
 * Every function accepts NULL and values of other types, and then returns NULL, false, 0 or the
 * default. The returned value is borrowed from the tree. In a path dots separate keys
 * ("metadata.labels"). */

struct hf__json *hf__json_get(const struct hf__json *object, const char *key);
struct hf__json *hf__json_path(const struct hf__json *object, const char *path);
const char *hf__json_string(const struct hf__json *object, const char *path);
/* The same, but "" instead of NULL. */
const char *hf__json_string_or_empty(const struct hf__json *object, const char *path);
/* Whether the path leads to the string `text`. */
bool hf__json_has_text(const struct hf__json *object, const char *path, const char *text);
/* false, and *ret_value is unchanged, unless the path leads to a whole number that fits. */
bool hf__json_i64(const struct hf__json *object, const char *path, int64_t *ret_value);
/* The same for a value that is itself a number. */
bool hf__json_integer(const struct hf__json *json, int64_t *ret_value);
bool hf__json_bool(const struct hf__json *object, const char *path, bool otherwise);

bool hf__json_is_object(const struct hf__json *json);
bool hf__json_is_array(const struct hf__json *json);
bool hf__json_is_string(const struct hf__json *json);
bool hf__json_is_number(const struct hf__json *json);
bool hf__json_is_bool(const struct hf__json *json);
bool hf__json_is_null(const struct hf__json *json);

const char *hf__json_text(const struct hf__json *json); /* the value of a string */
/* The same, but "" instead of NULL. */
const char *hf__json_text_or_empty(const struct hf__json *json);
/* Whether an array has the string `text` as an element. */
bool hf__json_has_element(const struct hf__json *array, const char *text);
/* The first element of the array whose member `key` (a path) is the string `text`; NULL: none. */
struct hf__json *hf__json_element_with(const struct hf__json *array, const char *key,
                                       const char *text);
double hf__json_number(const struct hf__json *json); /* the value of a number */
bool hf__json_is_true(const struct hf__json *json);  /* the value of a boolean */
/* The key of an object's member; "" for an element of an array and for a root, so that code that
 * expects an object need not check what a client has sent. But a member that was detached or
 * copied keeps its key. NULL for NULL. */
const char *hf__json_key(const struct hf__json *member);
/* for (m = hf__json_first(x); m; m = hf__json_next(m)), for objects and arrays */
struct hf__json *hf__json_first(const struct hf__json *container);
struct hf__json *hf__json_next(const struct hf__json *member);
size_t hf__json_count(const struct hf__json *container); /* takes linear time */

/* ---- building ----
 * 0, -ENOMEM, or -EINVAL when the container has another type. hf__json_add, hf__json_insert (unless
 * `before` is NULL) and hf__json_set_text assert the type instead; hf__json_detach and
 * hf__json_replace do not check it. A function with a parameter `struct hf__json *value` owns the
 * value from the call on: if the function fails, it frees the value. A NULL value counts as out of
 * memory, so that the result of a constructor can be passed on unchecked. */

struct hf__json *hf__json_object(void); /* NULL = out of memory */
struct hf__json *hf__json_array(void);  /* NULL = out of memory */

/* Set the member at a path. An existing member is replaced at its position. Missing objects along
 * the path are created; after -ENOMEM some of them may remain, empty. */
int hf__json_set(struct hf__json *object, const char *path, struct hf__json *value);
int hf__json_set_string(struct hf__json *object, const char *path, const char *value);
int hf__json_set_i64(struct hf__json *object, const char *path, int64_t value);
int hf__json_set_bool(struct hf__json *object, const char *path, bool value);
/* Removes and frees the member at a path, if there is one. */
void hf__json_remove(struct hf__json *object, const char *path);

/* Set (put) or remove (drop) the member with a single key, in which dots have no meaning. Keys of
 * labels and annotations contain dots. */
int hf__json_put(struct hf__json *object, const char *key, struct hf__json *value);
int hf__json_put_string(struct hf__json *object, const char *key, const char *value);
void hf__json_drop(struct hf__json *object, const char *key);

/* Add a member without checking for an existing one. The object must not have the key yet. A NULL
 * object counts as out of memory. */
int hf__json_add(struct hf__json *object, const char *key, struct hf__json *value);
int hf__json_add_string(struct hf__json *object, const char *key, const char *value);

int hf__json_append(struct hf__json *array, struct hf__json *value);
int hf__json_append_string(struct hf__json *array, const char *value);
/* Finds the first element of the array at `path` whose member `key` (a path: dots separate keys) is
 * the string `text`. If there is none, appends an empty object, in which the caller sets that
 * member. Creates the array if it is missing or null. 0, -ENOMEM, or -EINVAL: the path leads to
 * another value than an array, or through a value that is not an object. */
int hf__json_find_or_append(struct hf__json *object, const char *path, const char *key,
                            const char *text, struct hf__json **ret_element);
/* Inserts value before the item `before`; NULL = at the end. */
int hf__json_insert(struct hf__json *array, struct hf__json *before, struct hf__json *value);

/* Appends the string `text` to the array at `path` unless the array has it. If the path leads to no
 * array, creates one there, in place of any other value. 0, -ENOMEM, or -EINVAL: the path leads
 * through a value that is not an object. */
int hf__json_add_element(struct hf__json *object, const char *path, const char *text);

/* The next three functions change a member of an object or an array without a search by key. */
/* Removes member from container. The member is then a root that the caller owns. */
struct hf__json *hf__json_detach(struct hf__json *container, struct hf__json *member);
/* Changes the value of a string. */
int hf__json_set_text(struct hf__json *string, const char *text);
/* Puts value in the place of member, and frees member. */
int hf__json_replace(struct hf__json *container, struct hf__json *member, struct hf__json *value);

/* ---- parts that stay text ----
 * A raw value is a text that is printed as it is, for a part of a value that is only passed on. For
 * all other functions it is a value of no type; hf__json_equal compares the texts. */

/* Makes a raw value of a string or of null. text is a JSON value on one line, without spaces. 0 or
 * -ENOMEM. */
int hf__json_set_raw(struct hf__json *json, const char *text, size_t n);
/* The text of a raw value, borrowed from the tree; NULL: json is not a raw value. */
const char *hf__json_raw(const struct hf__json *json);
/* If the path leads to a raw value, parses it in its place. 0, or an error of hf__json_parse. */
int hf__json_expand(struct hf__json *object, const char *path);
