/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The directives that a strategic merge patch contains; strategic_patch.c describes them. Pure.
 * Thread: any. */
#include <stdbool.h>

struct hf__json;

#define HFD_DIRECTIVE      "$patch"
#define HFD_RETAIN_KEYS    "$retainKeys"
#define HFD_SET_ORDER      "$setElementOrder/"
#define HFD_DELETE_SCALARS "$deleteFromPrimitiveList/"

/* Returns the value of $patch in an object; NULL = the object has no such directive, or it is not a
 * string. */
const char *hfd_directive_get(const struct hf__json *object);
/* Whether the value is an object with $patch, of whatever value. */
bool hfd_directive_marks(const struct hf__json *value);
/* Returns the rest of text after prefix; NULL = text does not begin with prefix. */
const char *hfd_directive_skip(const char *text, const char *prefix);
/*
 * Copies a value of the patch that is not merged into one of the document. Omits all directives,
 * members and elements that have the directive $patch, and nulls in objects. NULL = out of memory.
 * The caller frees the copy.
 */
struct hf__json *hfd_directives_copy_without(const struct hf__json *json);
