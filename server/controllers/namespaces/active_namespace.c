/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces to which objects may be added.
 *
 * Invariant: a refused create counts as done only if the object exists, or if the namespace
 * explains the refusal. Any other refusal, for example by a quota, is an error, so that the queue
 * tries again and the log shows it.
 */
#include "server/controllers/namespaces/active_namespace.h"

#include <assert.h>

#include "base/json.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"

static const struct hf_resource namespaces = {"", "v1", "namespaces"};

static bool is_active(const struct hf__json *ns) {
        return !hf__json_string(ns, "metadata.deletionTimestamp") &&
               !hf__json_has_text(ns, "status.phase", "Terminating");
}

int hfd_active_namespace(const struct hfd_controller_context *context, const char *name,
                         bool *ret_active) {
        struct hf__json *ns;
        assert(context->namespaces && ret_active);
        int r = hfd_object_client_get_cached(context->namespaces->informer, NULL, name, &ns);

        *ret_active = r == 0 && is_active(ns);
        if (r == 0)
                hf__json_free(ns);
        return r == HF_E_NOT_FOUND ? 0 : r;
}

int hfd_active_namespace_created(struct hf_term *term, const char *name, int r) {
        struct hf__json *ns;

        /* HF_E_NOT_FOUND: the namespace does not exist any more. */
        if (r == HF_E_EXISTS || r == HF_E_NOT_FOUND)
                return 0;
        if (r != HF_E_FORBIDDEN)
                return r;
        int found = hfd_object_client_get(term, &namespaces, NULL, name, &ns);
        if (found == HF_E_NOT_FOUND)
                return 0;
        if (found == 0) {
                if (!is_active(ns))
                        r = 0;
                hf__json_free(ns);
        }
        return r;
}
