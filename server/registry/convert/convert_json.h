/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts one parsed object by the webhook of its kind. Admission needs this for webhooks and
 * policies whose rules name another version than the request does. Admission has parsed values,
 * whereas convert.h takes stored objects.
 * Limits, deadline and threads are those of convert.h.
 */
#include "server/admission/forms.h"
#include "server/registry/convert/convert.h"

struct hfd_convert_json {
        const struct hfd_resource *from, *to; /* references are taken */
        const char *path;                     /* "ns/name" or "name"; copied */
        const struct hf__json *source;        /* not changed; it is not used after the call */
        hf_nsec deadline;                     /* boot time */
        uint64_t owner;
        hfd_forms_converted *done;
        void *ctx;
};

/* Calls done once, perhaps before this returns. */
void hfd_convert_json(struct hfd_registry *registry, const struct hfd_convert_json *convert);
