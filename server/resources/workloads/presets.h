/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tables of members that are set if they are absent, for the files with the defaults of the
 * workload kinds. Pure. Thread: any.
 */
#include <stddef.h>

struct hf__json;

/* One member that is set if it is absent. Its parent must exist. */
struct hfd_preset {
        const char *parent; /* path of an object; with "[]" at the end: of a list of objects */
        const char *key;
        const char *value; /* JSON */
        /* Only if the parent's member `type` has this value; NULL = always. */
        const char *only_type;
};

#define HFD_N_PRESETS(table) (sizeof(table) / sizeof(table)[0])

/* All return 0 or -ENOMEM. */
int hfd_presets_set(struct hf__json *object, const struct hfd_preset *presets, size_t n);
/* Sets the presets of an object, and the defaults of the template of pods in its spec. Kubernetes
 * shows the status of such kinds even if it is empty. */
int hfd_presets_set_with_template(struct hf__json *object, const struct hfd_preset *presets,
                                  size_t n);
/* Copies a map of labels to `path` if nothing is there. labels may be NULL. */
int hfd_presets_copy_labels(struct hf__json *object, const char *path,
                            const struct hf__json *labels);
