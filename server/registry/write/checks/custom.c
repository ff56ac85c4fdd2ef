/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of custom resources. Invariant: rules are checked last and with the causes so far, because
 * they may rely on what the schema requires.
 */
#include "server/registry/write/checks/custom.h"

#include <errno.h>

#include "server/registry/scale.h"
#include "server/registry/write/reply.h"
#include "server/registry/write/write.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/schema/custom_schema.h"

bool hfd_write_custom_refuse_create(struct hfd_write *w) {
        const struct hfd_custom_version *version = w->request->resource->custom;
        struct hfd_response response = {0};

        if (!version || w->request->verb != HFD_CREATE || !atomic_load(&version->kind->terminating))
                return false;
        hfd_response_status(&response, HF_E_INVALID, 405, "MethodNotAllowed",
                            "create not allowed while custom resource definition is terminating",
                            NULL);
        hfd_write_reply(w, &response);
        return true;
}

bool hfd_write_custom_prepare(struct hfd_write *w) {
        const struct hfd_custom_version *version = w->request->resource->custom;
        struct hfd_response response = {0};

        if (!version)
                return true;
        int r = hfd_custom_schema_default(version->schema, w->object);
        if (r == 0)
                return true;
        if (r == HF_E_TOO_LARGE)
                hfd_response_status(&response, r, 413, "RequestEntityTooLarge",
                                    "Request entity too large: the defaults add too many values",
                                    NULL);
        else
                hfd_response_no_memory(&response);
        hfd_write_reply(w, &response);
        return false;
}

int hfd_write_custom_validate(struct hfd_write *w, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const struct hfd_custom_version *version = w->request->resource->custom;

        if (!version)
                return 0;
        hfd_custom_schema_validate(version->schema, w->object, old, causes);
        hfd_scale_validate_object(version, w->object, causes);
        return version->rules ? hfd_custom_rules_check(version->rules, w->object, old, causes) : 0;
}
