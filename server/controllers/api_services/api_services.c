/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps an APIService for each group version that the server serves. There is one key for each
 * APIService. When a term begins, the missing ones are created; later the event of a deletion or a
 * change leads to a reconcile. An event of a definition enqueues the versions that it serves, and
 * all APIServices of its group, because it may no longer serve the version of one of them.
 *
 * Invariants:
 *
 *  - An APIService is written or deleted with the resourceVersion that the decision was computed
 *    from. If another client has changed it, the event of that change leads to another reconcile.
 *  - Whether definitions serve a version is decided by their informer's index when the key is
 *    reconciled. If a definition is deleted before the informer of APIServices knows its new
 *    APIService, the event of that APIService's creation enqueues the key once more.
 */
#include "server/controllers/api_services/api_services.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/controllers/api_services/api_service_core.h"
#include "server/controllers/base/defaults_pause.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/kinds/definition_index.h"

static const struct hf_resource api_services = {"apiregistration.k8s.io", "v1", "apiservices"};

/* Finds the group version whose APIService has that name. False: this server does not serve such a
 * group version. The strings of a custom version are in space. */
static bool find_version(const struct hfd_controller_context *context, const char *name,
                         char space[HFD_API_SERVICE_NAME_MAX],
                         struct hfd_api_version *ret_version) {
        char wanted[HFD_API_SERVICE_NAME_MAX];

        for (size_t i = 0; i < context->n_api_versions; i++) {
                hfd_api_service_name(&context->api_versions[i], wanted);
                if (strcmp(name, wanted) == 0) {
                        *ret_version = context->api_versions[i];
                        return true;
                }
        }
        return hfd_api_service_custom_version(name, space, ret_version) &&
               hfd_definition_serves(context->definitions->informer, ret_version->group,
                                     ret_version->version);
}

static int create_service(struct hf_term *term, const struct hfd_api_version *version) {
        struct hf__json *service = hfd_api_service_make(version);
        int r = service ? hfd_object_client_create(term, &api_services, NULL, service) : -ENOMEM;

        hf__json_free(service);
        return r == HF_E_EXISTS ? 0 : r;
}

/* Writes the spec if it differs; otherwise the status if that differs. The event of the first write
 * leads to the second one. version NULL: the server does not serve the version, so only the status
 * is written. */
static int update_service(struct hf_term *term, struct hf__json *service,
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

/* Deletes the APIService of a custom version that no definition has any more. */
static int delete_custom(struct hf_term *term, const struct hf__json *service) {
        const struct hfd_object_client_delete_options options = {
                .uid = hf__json_string(service, "metadata.uid"),
                .resource_version = hf__json_string(service, "metadata.resourceVersion"),
        };
        int r = hfd_object_client_delete(term, &api_services, NULL,
                                         hf__json_string(service, "metadata.name"), &options);

        return hfd_object_client_ignore_stale(r);
}

static int reconcile_service(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        const struct hfd_controller_context *context = ctx;
        char space[HFD_API_SERVICE_NAME_MAX];
        struct hfd_api_version version;
        bool served = find_version(context, key, space, &version);
        struct hf__json *service = NULL;
        int r = hfd_object_client_get_cached(context->api_services->informer, NULL, key, &service);

        if (r == HF_E_NOT_FOUND)
                return served ? create_service(term, &version) : 0;
        if (r == 0 && !served && hfd_api_service_is_custom(service))
                r = delete_custom(term, service);
        else if (r == 0)
                r = update_service(term, service, served ? &version : NULL);
        hf__json_free(service);
        return r;
}

/* ---- events of definitions ---- */

struct enqueue {
        struct hf_workqueue *queue;
        const char *group;
        int error;
};

static void enqueue_of_group(void *ctx, const char *ns, const char *name, const char *object,
                             size_t n) {
        struct enqueue *enqueue = ctx;
        const char *dot = strchr(name, '.');

        if (enqueue->error == 0 && dot && strcmp(dot + 1, enqueue->group) == 0)
                enqueue->error = hf_workqueue_add(enqueue->queue, name);
}

static int enqueue_versions(struct hf_workqueue *queue, const struct hf__json *versions,
                            const char *group) {
        char name[HFD_API_SERVICE_NAME_MAX];
        int r = 0;

        assert(queue && group);
        for (const struct hf__json *m = hf__json_first(versions); m && r == 0;
             m = hf__json_next(m)) {
                const char *version = hf__json_string(m, "name");
                /* No object can have a longer name than HF_NAME_MAX. */
                if (!version || !hf__json_bool(m, "served", false) ||
                    strlen(version) + strlen(group) >= HF_NAME_MAX)
                        continue;
                const struct hfd_api_version of = {.group = group, .version = version};
                hfd_api_service_name(&of, name);
                r = hf_workqueue_add(queue, name);
        }
        return r;
}

static int map_definition(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                          const char *ns, const char *name, const char *object, size_t n) {
        const struct hfd_controller_context *context = ctx;
        struct hf__json *definition = NULL;
        int r = hf__json_parse(object, n, &definition, NULL);
        const char *group = r == 0 ? hf__json_string(definition, "spec.group") : NULL;
        struct enqueue enqueue = {.queue = queue, .group = group};

        if (group) {
                hf_informer_each(context->api_services->informer, enqueue_of_group, &enqueue);
                r = enqueue.error;
        }
        if (r == 0 && group && type != HF_EVENT_DELETED)
                r = enqueue_versions(queue, hf__json_path(definition, "spec.versions"), group);
        hf__json_free(definition);
        return r;
}

/* Creates the missing APIServices of the built-in group versions. Asks the server for each: the
 * loop reconciles only the keys of events, and an object that does not exist causes none. */
static int create_missing_services(const struct hfd_controller_context *context,
                                   struct hf_term *term) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < context->n_api_versions; i++) {
                struct hf__json *service = NULL;
                char name[HFD_API_SERVICE_NAME_MAX];
                hfd_api_service_name(&context->api_versions[i], name);
                r = hfd_object_client_get(term, &api_services, NULL, name, &service);
                hf__json_free(service);
                if (r == HF_E_NOT_FOUND)
                        r = create_service(term, &context->api_versions[i]);
        }
        return r;
}

int hfd_api_services_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->api_services && context->api_services->informer);
        const struct hfd_reconcile_loop loop = {
                .name = HFD_API_SERVICES,
                .n_workers = 1,
                .reconcile = reconcile_service,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->api_services)},
                            {hfd_needed_informer(context->definitions), map_definition}},
        };
        hfd_defaults_pause(term, context->api_services->informer);
        int r = create_missing_services(context, term);

        return r != 0 ? r : hfd_reconcile_loop_run(&loop, term);
}
