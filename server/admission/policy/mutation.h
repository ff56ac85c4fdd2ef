/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The changes of MutatingAdmissionPolicies. Pure. Thread: owner only. */
#include <stdbool.h>

#include "cel/values/value.h"
#include "server/admission/expressions/value_json.h"
#include "server/patch/patch.h"

struct hf__json;
struct hf__strbuf;
struct hfd_resource;

/* What all mutations of one request together may still make and do. Besides, each single mutation
 * has the limits HFD_VALUE_ROOM and HFD_PATCH_STEPS_MAX. */
struct hfd_mutation_room {
        struct hfd_value_room values;
        size_t steps; /* of JSON patches */
};

/* The room at the beginning of a request: only four times what a single mutation may use, although
 * a policy may have thousands of mutations. */
#define HFD_MUTATION_ROOM                                                                          \
        ((struct hfd_mutation_room){.values = {.parts = 4 * HFD_VALUE_ROOM.parts,                  \
                                               .bytes = 4 * HFD_VALUE_ROOM.bytes},                 \
                                    .steps = 4 * HFD_PATCH_STEPS_MAX})

/*
 * Applies value, the result of an expression, to *object. apply: value is an Object, which is
 * merged as by server-side apply with the schema of the kind. Otherwise value is a list of
 * JSONPatch. On success *object is freed and replaced by a changed copy. After a failure, and if a
 * test in the list fails (which returns 0), *object stays as it is. What the work takes is
 * subtracted from *room, also after a failure.
 *
 * 0; -ENOMEM; HF_E_INVALID; or HF_E_TOO_MANY: a limit is exceeded that Kubernetes does not have.
 * After the last two reterr_message says why, in Kubernetes' words where they are known.
 */
int hfd_mutation_apply(const struct hfd_resource *kind, bool apply, struct hf__cel_value value,
                       struct hfd_mutation_room *room, struct hf__json **object,
                       struct hf__strbuf *reterr_message);
