/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The object of a built-in kind in which nothing is set, as Go writes it: with the structs that are
 * not pointers, and with the zeros of fields without omitempty (HFD_FIELD_REQUIRED or
 * HFD_FIELD_KEEPS_EMPTY). One difference: a list or a map is empty where Go writes null. Kubernetes
 * compares a new object with it to find out which fields its creator owns. Pure. Thread: any.
 */

struct hf__json;
struct hfd_schema;

/* schema: a STRUCT. The caller owns the result. NULL = out of memory. */
struct hf__json *hfd_schema_zero(const struct hfd_schema *schema);
