/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Merges an applied configuration into an object. Thread: owner only. */
struct hf__json;
struct hfd_schema;
struct hf__arena;

/*
 * Gives object the values in config; values that config does not mention stay. Lists of
 * the types map and set are merged element by element: the order is that of config, and elements
 * that config does not have stay near their neighbours. If an element of the object's list has no
 * step (shape.h), config's list replaces the list. hfd_owned_by_applier must have accepted
 * config. 0 or -ENOMEM; after a failure object may be changed in part.
 */
int hfd_merge(struct hf__arena *scratch, const struct hfd_schema *schema, struct hf__json *object,
              const struct hf__json *config);
