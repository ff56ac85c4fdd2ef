/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields in which two versions of an object differ. Thread: owner only. */
#include "server/apply/sets/fields.h"

struct hf__json;
struct hfd_schema;

/* Three sets without a common path. They borrow texts from both versions and the schema. */
struct hfd_changes {
        const struct hfd_fields *added;
        const struct hfd_fields *modified;
        const struct hfd_fields *removed;
};

/*
 * Compares two objects; NULL counts as an object without members. metadata.managedFields is left
 * out. A list with an element that has no step (shape.h) is compared as one value. When memory is
 * exhausted, scratch->failed is set.
 */
struct hfd_changes hfd_compare(struct hf__arena *scratch, const struct hfd_schema *schema,
                               const struct hf__json *old, const struct hf__json *new);
