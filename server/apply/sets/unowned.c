/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the fields that no manager owns. They are those that Kubernetes strips from every
 * set. The server decides on their values, or they identify the object, so a conflict about them
 * makes no sense.
 *
 * Invariant: the set and the tests of single fields agree, because both are made from the same
 * names.
 */
#include "server/apply/sets/unowned.h"

#include <string.h>

#include "base/arena.h"

static const char *const unowned_at_top[] = {"apiVersion", "kind", "metadata"};
static const char *const in_metadata[] =
        {"clusterName",     "creationTimestamp", "generation", "managedFields", "name", "namespace",
         "resourceVersion", "selfLink",          "uid"};

#define N_UNOWNED_AT_TOP (sizeof unowned_at_top / sizeof unowned_at_top[0])
#define N_IN_METADATA    (sizeof in_metadata / sizeof in_metadata[0])

static bool has_name(const char *const *names, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

bool hfd_unowned_has(const char *const *keys, size_t n) {
        if (n == 1)
                return has_name(unowned_at_top, N_UNOWNED_AT_TOP, keys[0]);
        return n == 2 && strcmp(keys[0], "metadata") == 0 &&
               has_name(in_metadata, N_IN_METADATA, keys[1]);
}

const struct hfd_fields *hfd_unowned_fields(struct hf__arena *scratch) {
        struct hfd_fields_builder builder = {.scratch = scratch};
        const struct hfd_fields *metadata;

        for (size_t i = 0; i < N_IN_METADATA; i++)
                hfd_fields_add(&builder,
                               &(struct hfd_step){.kind = HFD_STEP_FIELD, .name = in_metadata[i]},
                               true, NULL);
        metadata = hfd_fields_close(&builder, 0);
        /* Only the name "metadata" begins with 'm'. The set made above is below it. */
        for (size_t i = 0; i < N_UNOWNED_AT_TOP; i++)
                hfd_fields_add(&builder,
                               &(struct hfd_step){.kind = HFD_STEP_FIELD,
                                                  .name = unowned_at_top[i]},
                               true, unowned_at_top[i][0] == 'm' ? metadata : NULL);
        return hfd_fields_close(&builder, 0);
}

bool hfd_unowned_may_have(const struct hfd_fields *fields) {
        for (size_t i = 0; fields && i < N_UNOWNED_AT_TOP; i++)
                if (hfd_fields_find(fields, &(struct hfd_step){.kind = HFD_STEP_FIELD,
                                                               .name = unowned_at_top[i]}))
                        return true;
        return false;
}
