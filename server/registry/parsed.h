/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parsed JSON of versions that were written last. Who updates an object often updates it again:
 * a leader renews its Lease every few seconds. The next update then takes the tree from here, and
 * need not parse what is stored.
 *
 * Memory is bounded: at most 256 versions are kept, and only of small objects; together they have
 * less than 4 MiB, and those of 100 Leases half a MiB. An update takes the tree out, so it has one
 * owner at a time. Thread: any. Holds no lock while it frees a tree.
 */
#include <stddef.h>

#define HFD_PARSED_BYTES_MAX 2048 /* of the stored form of an object whose tree is kept */

struct hf__json;
struct hfd_object;
struct hfd_parsed;

/* 0 or -errno. */
int hfd_parsed_new(struct hfd_parsed **ret_parsed);
/* Accepts NULL; returns NULL. */
struct hfd_parsed *hfd_parsed_free(struct hfd_parsed *parsed);

/*
 * Keeps the tree of a version, and owns it from now on. It has the same members as the parsed bytes
 * of object, without metadata.resourceVersion, perhaps in another order.
 */
void hfd_parsed_keep(struct hfd_parsed *parsed, struct hfd_object *object, struct hf__json *json);
/* Takes out the tree of a version with the same bytes. The caller owns it. NULL = it is not kept.
 */
struct hf__json *hfd_parsed_take(struct hfd_parsed *parsed, const struct hfd_object *object);
