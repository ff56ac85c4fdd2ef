/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lists of strings inside a JSON object that are used as sets: finalizers, initializers. path is
 * the path of the list, as for hf__json_path ("metadata.finalizers"). An absent list is empty.
 * hf__json_add_element adds to such a list. Pure.
 */
#include <stdbool.h>

struct hf__json;

/* Whether the list has an entry equal to text. */
bool hfd_string_list_has(const struct hf__json *object, const char *path, const char *text);

/* Removes all entries equal to text, and the whole list if no entry remains. 0, or -ENOMEM: object
 * is unchanged. */
int hfd_string_list_remove(struct hf__json *object, const char *path, const char *text);
