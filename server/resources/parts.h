/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Type checks for the parts of an object, used by strategies and validation. A part is one member
 * of an object. `kind` is the name of the Go type that Kubernetes' messages show ("NamespaceSpec").
 * Pure. Thread: any.
 *
 * A part that is null counts as absent, and the functions that get its object and key remove it:
 * clients may send null to clear a field. object may be NULL: then all its parts are absent.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

/* Returns the part, borrowed from object; NULL = absent. Removes a part that is null. */
struct hf__json *hfd_part_get(struct hf__json *object, const char *key);

/* Writes Kubernetes' message for a part that is not of the type. Always returns false. */
bool hfd_part_wrong_type(const char *kind, const char *key, const char *type, char *reason,
                         size_t max_reason);

/* True: the part is absent or an object. False: it is not, and reason is the message. */
bool hfd_part_is_object(struct hf__json *object, const char *key, const char *kind, char *reason,
                        size_t max_reason);
/* The same for an array of objects (of_objects) or of strings. */
bool hfd_part_is_array(struct hf__json *object, const char *key, bool of_objects, const char *kind,
                       char *reason, size_t max_reason);
/* The same for an object whose members are all strings. */
bool hfd_part_is_map(struct hf__json *object, const char *key, const char *kind, char *reason,
                     size_t max_reason);

/* Whether an array has this string as an element. list may be NULL. */
bool hfd_part_list_has(const struct hf__json *list, const char *text);
