/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The changes of MutatingAdmissionPolicies. Pure. Thread: owner only. */
#include <stdbool.h>

#include "cel/values/value.h"

struct hf__json;
struct hf__strbuf;
struct hfd_resource;

/*
 * Applies the result of an expression to the object, which is changed or replaced. apply: the
 * result is an Object, which is merged as by server-side apply with the schema of the kind.
 * Otherwise it is a list of JSONPatch; if a test in it fails, the object stays as it is. 0;
 * -ENOMEM; or HF_E_INVALID: reterr_message says why, in Kubernetes' words where they are known.
 */
int hfd_mutation_apply(const struct hfd_resource *kind, bool apply, struct hf__cel_value value,
                       struct hf__json **object, struct hf__strbuf *reterr_message);
