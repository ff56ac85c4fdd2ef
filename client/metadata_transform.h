/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The transform of informers that keep metadata only (metadata_only). Thread: any.
 */
#include <stddef.h>

struct hf__buf;

/*
 * Reduces a JSON object of n bytes to apiVersion, kind and metadata without managedFields. The
 * caller gets a reference to *ret_object. 0, -ENOMEM, or -EPROTO: the text is not an object.
 */
int hf__metadata_transform(const char *object, size_t n, struct hf__buf **ret_object);
