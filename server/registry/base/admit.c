/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the attributes and the options by which admission knows a request, and decides whether
 * admission is asked at all.
 *
 * Invariants: a client's write always has a requester, so it is never taken for one of the server's
 * own. Until the configuration of admission is known, no write of a client is accepted,
 * except writes of Leases: a policy that is not known yet might refuse it. The server's own writes
 * go on, and so do those of Leases, because elections and controllers must not wait for clients'
 * configuration. Admission is still asked about them, except those of the elector and of the
 * bootstrap: plug-ins in C have no configuration and are loaded before the server serves, so no
 * other write escapes them. A plug-in whose configuration is not known yet wants nothing.
 */
#include "server/registry/base/admit.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/rows/resource_table.h"

enum hfd_admit hfd_admit_request(const struct hfd_registry *registry,
                                 const struct hfd_request *request, struct hfd_response *response) {
        struct hfd_admission_chain *chain = registry->admission;

        if (!chain || request->skips_admission)
                return HFD_ADMIT_SKIP;
        /* Acquire: then this thread also sees the configuration that was read before
         * (admission_feed.c). */
        if (atomic_load_explicit(&chain->ready, memory_order_acquire) || request->in_process ||
            request->resource->term_record)
                return HFD_ADMIT_ASK;
        const struct hf_status status = {.error = HF_E_UNAVAILABLE,
                                         .retry_after_s = 1,
                                         .message = "the configuration of admission is not yet "
                                                    "known"};
        hfd_response_store_error(response, HF_E_UNAVAILABLE, &status);
        return HFD_ADMIT_REFUSE;
}

void hfd_admit_extend_deadline(struct hfd_request *request) {
        if (request->longest_deadline > request->deadline)
                request->deadline = request->longest_deadline;
}

struct hfd_admission_attributes hfd_admit_attributes(const struct hfd_request *request,
                                                     enum hfd_admission_operation operation,
                                                     const char *name, const struct hf__json *old) {
        const struct hfd_resource *of = request->part_of ? request->part_of : request->resource;
        /* As in Kubernetes, a Namespace is in the namespace with its own name. */
        bool is_namespace = !of->namespaced && hfd_resource_same(of, hfd_resource_namespaces());

        assert(request->requester || request->in_process);
        return (struct hfd_admission_attributes){.operation = operation,
                                                 .resource = of,
                                                 .kind = request->resource,
                                                 .subresource =
                                                         hfd_subresource_name(request->subresource),
                                                 .ns = is_namespace ? name : request->ns,
                                                 .name = name,
                                                 .old = old,
                                                 .dry_run = request->options.dry_run,
                                                 .user = request->requester,
                                                 .authorizer = request->authorizer,
                                                 .departure = request->departure,
                                                 .deadline = request->deadline};
}

/* ---- the options ---- */

/* Adds the options of a delete that came in the query, unless there is a body (has_body): then
 * `options` is a copy of it, and hfd_delete_options_read has put its propagationPolicy and
 * orphanDependents in `o` in place of those of the query. 0 or -ENOMEM. */
static int add_policy(struct hf__json *options, const struct hfd_options *o, bool has_body) {
        static const char *const policies[] = {[HFD_PROPAGATE_ORPHAN] = "Orphan",
                                               [HFD_PROPAGATE_BACKGROUND] = "Background",
                                               [HFD_PROPAGATE_FOREGROUND] = "Foreground"};
        int r = 0;

        if (o->propagation != HFD_PROPAGATE_UNSET && !hf__json_get(options, "propagationPolicy"))
                r = hf__json_add_string(options, "propagationPolicy", policies[o->propagation]);
        if (r == 0 && o->has_orphan && !hf__json_get(options, "orphanDependents"))
                r = hf__json_set_bool(options, "orphanDependents", o->orphan);
        if (r == 0 && o->has_grace_period && !has_body)
                r = hf__json_set_i64(options, "gracePeriodSeconds", o->grace_period_s);
        return r;
}

/* Adds the options of a create or update. fieldValidation is left out if it is "Warn", the default.
 * 0 or -ENOMEM. */
static int add_field_options(struct hf__json *options, const struct hfd_options *o) {
        int r = 0;

        if (o->field_manager)
                r = hf__json_put_string(options, "fieldManager", o->field_manager);
        if (r == 0 && o->field_validation == HFD_FIELDS_STRICT)
                r = hf__json_put_string(options, "fieldValidation", "Strict");
        if (r == 0 && o->field_validation == HFD_FIELDS_IGNORE)
                r = hf__json_put_string(options, "fieldValidation", "Ignore");
        return r;
}

/* Sets kind and apiVersion of the options, which the body of a delete may lack. 0 or -ENOMEM. */
static int put_type(struct hf__json *options, const char *kind) {
        int r = hf__json_put_string(options, "kind", kind);

        return r == 0 ? hf__json_put_string(options, "apiVersion", "meta.k8s.io/v1") : r;
}

struct hf__json *hfd_admit_options(const struct hfd_request *request,
                                   enum hfd_admission_operation operation,
                                   const struct hf__json *body) {
        const struct hfd_options *o = &request->options;
        bool is_delete = operation == HFD_ADMIT_DELETE;
        const char *kind = operation == HFD_ADMIT_CREATE ? "CreateOptions" : "UpdateOptions";
        struct hf__json *options = is_delete && body ? hf__json_dup(body) : hf__json_object();
        int r = options ? 0 : -ENOMEM;

        if (is_delete)
                kind = "DeleteOptions";
        if (r == 0)
                r = put_type(options, kind);
        if (r == 0 && o->dry_run && !hf__json_get(options, "dryRun")) {
                r = hf__json_add(options, "dryRun", hf__json_array());
                if (r == 0)
                        r = hf__json_append_string(hf__json_get(options, "dryRun"), "All");
        }
        if (r == 0)
                r = is_delete ? add_policy(options, o, body != NULL)
                              : add_field_options(options, o);
        return r == 0 ? options : hf__json_free(options);
}
