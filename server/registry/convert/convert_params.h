/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts the params of a policy by the webhook of their kind, for admission. Each request that
 * the policy concerns reads the params, and they seldom change. So conversions that watches or
 * other requests have made are used again (shared_table.h). Limits, deadline and threads are those
 * of convert.h.
 */
#include "server/admission/object_forms.h"
#include "server/registry/convert/convert.h"

struct hfd_convert_params {
        const struct hfd_resource *to;
        struct hfd_object *const *sources; /* borrowed until done */
        size_t n;
        hf_nsec deadline; /* boot time */
        uint64_t owner;
        hfd_objects_converted *done;
        void *ctx;
};

/* Calls done once, perhaps before this returns. For struct hfd_admission.convert_objects: deadline
 * and owner are those of the request that is admitted. */
void hfd_convert_params(struct hfd_registry *registry, const struct hfd_convert_params *convert);
