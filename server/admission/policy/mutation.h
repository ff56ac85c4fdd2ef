/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The changes of MutatingAdmissionPolicies. Pure. Thread: owner only. */
#include <stdbool.h>

#include "cel/value.h"

struct hf__json;
struct hf__strbuf;
struct hfd_resource;

/*
 * Applies what an expression has made to the object, which is changed or replaced. apply: an
 * Object, merged as by server-side apply with the schema of the kind; else a list of JSONPatch, of
 * which a test that fails leaves the object as it is. 0; -ENOMEM; or HF_E_INVALID: reterr_message
 * says why, in Kubernetes' words where they are known.
 */
int hfd_mutation_apply(const struct hfd_resource *kind, bool apply, struct hf__cel_value value,
                       struct hf__json **object, struct hf__strbuf *reterr_message);
