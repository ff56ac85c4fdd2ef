/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Presets: tables of members that are set if they are absent. presets.c, group_presets.c and
 * service_fields.c have those of the workload kinds.
 *
 * The order of a table counts: a member can only be set in a parent that exists, so a row that
 * makes the parent comes before it. Pure. Thread: the one that owns the object.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

/* One member that is set if it is absent and its parent exists. */
struct hfd_preset {
        /* The path of an object, at most 79 bytes. "": the object itself. With "[]" at the end: of
         * a list, and the member is set in each of its elements. */
        const char *parent;
        const char *key;
        const char *value; /* JSON */
        /* Only if the parent's member `type` has this value; NULL = always. */
        const char *only_type;
        /* "" counts as absent, because the member is no pointer in Kubernetes' Go type. */
        bool empty_is_absent;
};

#define HFD_N_PRESETS(table) (sizeof(table) / sizeof(table)[0])

/* These functions return 0 or -ENOMEM; -EINVAL only if a value has a wrong type, as values in the
 * store may have. After an error the object may be changed in part. */

/* Sets the n presets in the order of the table. A preset whose parent is absent, no object, or not
 * of only_type is skipped. */
int hfd_presets_set(struct hf__json *object, const struct hfd_preset *presets, size_t n);
/* Adds an empty spec and status if they are absent, because Kubernetes shows the status of such
 * kinds even if it is empty. Then it sets the defaults of the pod template in spec.template, and
 * the presets. */
int hfd_presets_set_with_template(struct hf__json *object, const struct hfd_preset *presets,
                                  size_t n);
/* Copies a map of labels to `path` if nothing is there. labels NULL: there is nothing to copy. */
int hfd_presets_copy_labels(struct hf__json *object, const char *path,
                            const struct hf__json *labels);
