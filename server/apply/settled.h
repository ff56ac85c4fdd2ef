/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the text of metadata.managedFields without parsing it, if the list is settled: it has the
 * form in which managers.h writes it, without escapes, and at most HFD_SETTLED_MAX managers; every
 * manager has a time; every set has fields, consists of names only, and is at most
 * HFD_SETTLED_DEPTH deep; and the schema divides every value below which a set has fields. Such a
 * list is valid, and neither its order nor any set changes unless a write changes who owns a field,
 * or a time. The list of the Lease of a leader, for example, is settled. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/apply/managers.h"

struct hf__arena;
struct hfd_schema;

#define HFD_SETTLED_MAX   8  /* managers; so few are never joined (ancient_changes.h) */
#define HFD_SETTLED_DEPTH 16 /* of a set */

/* An entry of a set. The entries below it, of all levels, are the next n_below of the array. */
struct hfd_settled_name {
        const char *key; /* "f:NAME", or "." = the value itself */
        size_t n_below;
};

/* All that it points to is memory of scratch. */
struct hfd_settled {
        size_t n;
        struct hfd_manager managers[HFD_SETTLED_MAX]; /* without sets and entries */
        size_t times[HFD_SETTLED_MAX];                /* where the text has the time of a manager */
        /* Of each manager, the root of its set: it has the key "", and entries below it. */
        struct hfd_settled_name *sets[HFD_SETTLED_MAX];
};

/* text: of n bytes. False: the list is not settled, or memory is exhausted. Takes time in
 * proportion to n. */
bool hfd_settled_read(struct hf__arena *scratch, const struct hfd_schema *schema, const char *text,
                      size_t n, struct hfd_settled *ret_settled);
/* Whether manager i may follow the managers before it: it is none of them, and it comes after them
 * in the order of the list. */
bool hfd_settled_follows(const struct hfd_settled *settled, size_t i);
/* The entry for a path in the set of a manager; NULL = there is none. */
const struct hfd_settled_name *hfd_settled_find(const struct hfd_settled *settled, size_t i,
                                                const char *const *path, size_t n_path);
