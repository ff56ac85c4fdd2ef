/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lists of strings inside a JSON object, used as sets: finalizers, initializers. path names the
 * list as hf__json_path does ("metadata.finalizers"); a list that is absent is empty. Pure.
 */
#include <stdbool.h>

struct hf__json;

bool hfd_string_list_has(const struct hf__json *object, const char *path, const char *text);

/* Appends text unless the list has it; creates the list if it is absent. 0, -ENOMEM. */
int hfd_string_list_add(struct hf__json *object, const char *path, const char *text);

/* Removes all entries equal to text. A list that becomes empty is removed as a whole. 0, -ENOMEM:
 * unchanged. */
int hfd_string_list_remove(struct hf__json *object, const char *path, const char *text);
