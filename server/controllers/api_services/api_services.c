/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key for each APIService. When a term begins, those that are missing are created; later the
 * event of a deletion or a change leads to a reconcile.
 *
 * Invariant: an APIService is written with the resourceVersion that the change was computed from.
 * If another client has changed it, the event of that change leads to another reconcile.
 */
#include "server/controllers/api_services/api_services.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/controllers/controller_context.h"
#include "server/controllers/object_client.h"

static const struct hf_resource api_services = {"apiregistration.k8s.io", "v1", "apiservices"};

/* NULL: this server does not serve a group version of that name. */
static const struct hfd_api_version *find_version(const struct hfd_controller_context *context,
                                                  const char *name) {
        char wanted[HFD_API_SERVICE_NAME_MAX];

        for (size_t i = 0; i < context->n_api_versions; i++) {
                hfd_api_service_name(&context->api_versions[i], wanted);
                if (strcmp(name, wanted) == 0)
                        return &context->api_versions[i];
        }
        return NULL;
}

static int create(struct hf_term *term, const struct hfd_api_version *version) {
        struct hf__json *service = hfd_api_service_make(version);
        int r = service ? hfd_object_client_create(term, &api_services, NULL, service) : -ENOMEM;

        hf__json_free(service);
        return r == HF_E_EXISTS ? 0 : r;
}

/* Writes what differs: the spec, and otherwise the status. The event of the first write leads to
 * the second one. */
static int update(struct hf_term *term, struct hf__json *service,
                  const struct hfd_api_version *version) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        const char *name = hf__json_string(service, "metadata.name"), *part = NULL;
        char now[HF__MICROTIME_MAX];
        bool changed = false;
        int r = version ? hfd_api_service_restore(service, version, &changed) : 0;

        if (r == 0 && !changed) {
                part = "status";
                hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
                r = hfd_api_service_set_available(service, now, &changed);
        }
        if (r == 0 && changed)
                r = hfd_object_client_update(term, &api_services, NULL, name, part, service);
        return hfd_object_client_ignore_stale(r);
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        const struct hfd_controller_context *context = ctx;
        const struct hfd_api_version *version = find_version(context, key);
        struct hf__json *service = NULL;
        int r = hfd_object_client_get_cached(context->api_services->informer, NULL, key, &service);

        if (r == HF_E_NOT_FOUND)
                return version ? create(term, version) : 0;
        if (r == 0)
                r = update(term, service, version);
        hf__json_free(service);
        return r;
}

/* Creates what is missing. */
static int create_all(const struct hfd_controller_context *context, struct hf_term *term) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < context->n_api_versions; i++) {
                struct hf__json *service = NULL;
                char name[HFD_API_SERVICE_NAME_MAX];
                hfd_api_service_name(&context->api_versions[i], name);
                r = hfd_object_client_get(term, &api_services, NULL, name, &service);
                hf__json_free(service);
                if (r == HF_E_NOT_FOUND)
                        r = create(term, &context->api_versions[i]);
        }
        return r;
}

int hfd_api_services_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->api_services); /* controllers.c has created it */
        const struct hf_reconciler_source source = {.size = sizeof source,
                                                    .informer = context->api_services->informer};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_API_SERVICES,
                .sources = &source,
                .n_sources = 1,
                .reconcile = reconcile,
                .ctx = context,
        };
        int r = create_all(context, term);

        return r != 0 ? r : hf_reconciler_run(&reconciler, term);
}
