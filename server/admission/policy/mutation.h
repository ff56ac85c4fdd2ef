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

/* What the mutations of a request may still make and do. Each of them has the limits of
 * HFD_VALUE_ROOM and HFD_PATCH_STEPS_MAX, too. */
struct hfd_mutation_room {
        struct hfd_value_room values;
        size_t steps; /* of JSON patches */
};

/* For the mutations of one request: four times what one may use. A policy may have thousands. */
#define HFD_MUTATION_ROOM                                                                          \
        ((struct hfd_mutation_room){.values = {.parts = 4 * HFD_VALUE_ROOM.parts,                  \
                                               .bytes = 4 * HFD_VALUE_ROOM.bytes},                 \
                                    .steps = 4 * HFD_PATCH_STEPS_MAX})

/*
 * Applies the result of an expression to the object, which is changed or replaced. apply: the
 * result is an Object, which is merged as by server-side apply with the schema of the kind.
 * Otherwise it is a list of JSONPatch; if a test in it fails, the object stays as it is. What that
 * takes is taken from the room, also after a failure. 0; -ENOMEM; HF_E_INVALID; or HF_E_TOO_MANY: a
 * limit is exceeded that Kubernetes does not have. After the last two reterr_message says why, in
 * Kubernetes' words where they are known.
 */
int hfd_mutation_apply(const struct hfd_resource *kind, bool apply, struct hf__cel_value value,
                       struct hfd_mutation_room *room, struct hf__json **object,
                       struct hf__strbuf *reterr_message);
