/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the server's own FlowSchemas and PriorityLevelConfigurations, and the condition Dangling.
 * There is one key for each object, "PLURAL/NAME", and one for all FlowSchemas, because creating or
 * deleting a level changes the condition of each schema that refers to it. When a term begins, the
 * missing objects are created; later the event of a deletion leads to a reconcile.
 *
 * Invariant: an object is written with the resourceVersion that the change was computed from. If
 * another client has changed it, the event of that change leads to another reconcile.
 */
#include "server/controllers/flow/flow_controller.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/controllers/base/defaults_pause.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/flow/flow_core.h"

#define GROUP       "flowcontrol.apiserver.k8s.io"
#define SCHEMAS     "flowschemas"
#define LEVELS      "prioritylevelconfigurations"
#define ALL_SCHEMAS "all"
#define KEY_MAX     320 /* bytes: a plural, a slash, a name of up to HF_NAME_MAX bytes, the NUL */

static const struct hf_resource schemas = {GROUP, "v1", SCHEMAS}, levels = {GROUP, "v1", LEVELS};

static bool is_of_levels(const char *plural) { return strcmp(plural, LEVELS) == 0; }

/* The index of the default object with this name; n = there is none. */
static size_t find_default(const struct hfd_flow_defaults *defaults, bool of_levels,
                           const char *name) {
        size_t i = 0;

        for (; i < defaults->n; i++) {
                const struct hfd_flow_default found = defaults->get(i);
                if (is_of_levels(found.plural) == of_levels && strcmp(found.name, name) == 0)
                        break;
        }
        return i;
}

/* ---- writes ---- */

static int create_default(struct hf_term *term, const struct hfd_flow_defaults *defaults,
                          size_t i) {
        const struct hf_resource *resource =
                is_of_levels(defaults->get(i).plural) ? &levels : &schemas;
        struct hf__json *object = defaults->make(i);
        int r = object ? hfd_object_client_create(term, resource, NULL, object) : -ENOMEM;

        hf__json_free(object);
        return r == HF_E_EXISTS ? 0 : r;
}

/* Brings one of the server's own objects up to date, or deletes an object that an earlier version
 * of the server has left behind. */
static int keep_default(struct hf_term *term, const struct hfd_flow_defaults *defaults,
                        bool of_levels, struct hf__json *object, bool *ret_written) {
        const struct hf_resource *resource = of_levels ? &levels : &schemas;
        const char *name = hf__json_string(object, "metadata.name");
        size_t i = find_default(defaults, of_levels, name);
        const struct hfd_object_client_delete_options options =
                {.uid = hf__json_string(object, "metadata.uid"),
                 .resource_version = hf__json_string(object, "metadata.resourceVersion")};

        if (i == defaults->n) {
                *ret_written = hfd_flow_is_leftover(object);
                return *ret_written ? hfd_object_client_delete(term, resource, NULL, name, &options)
                                    : 0;
        }
        struct hf__json *wanted = defaults->make(i);
        int r = wanted ? hfd_flow_revise(object, wanted, defaults->get(i).mandatory, ret_written)
                       : -ENOMEM;
        hf__json_free(wanted);
        return r == 0 && *ret_written
                       ? hfd_object_client_update(term, resource, NULL, name, NULL, object)
                       : r;
}

static int set_condition(struct hf_term *term, const struct hfd_controller_context *context,
                         struct hf__json *schema) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        const char *name = hf__json_string(schema, "metadata.name"),
                   *level = hf__json_string(schema, "spec.priorityLevelConfiguration.name");
        struct hf__json *found = NULL;
        char now[HF__MICROTIME_MAX];
        bool changed = false;
        int r = hfd_object_client_get_cached(context->priority_levels->informer, NULL,
                                             level ? level : "", &found);

        if (r != 0 && r != HF_E_NOT_FOUND)
                return r;
        hf__json_free(found);
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        r = hfd_flow_set_dangling(schema, r == 0, now, &changed);
        return r == 0 && changed
                       ? hfd_object_client_update(term, &schemas, NULL, name, "status", schema)
                       : r;
}

/* ---- reconciling ---- */

/* Updates the object if it differs, and otherwise the condition of a FlowSchema. The event of the
 * first write leads to the second one. */
static int reconcile_object(struct hf_term *term, const struct hfd_controller_context *context,
                            bool of_levels, const char *name) {
        const struct hfd_flow_defaults *defaults = &context->flow_defaults;
        struct hf_informer *informer =
                of_levels ? context->priority_levels->informer : context->flow_schemas->informer;
        struct hf__json *object = NULL;
        bool written = false;
        int r = hfd_object_client_get_cached(informer, NULL, name, &object);

        if (r == HF_E_NOT_FOUND) {
                size_t i = find_default(defaults, of_levels, name);
                return i < defaults->n ? create_default(term, defaults, i) : 0;
        }
        if (r == 0)
                r = keep_default(term, defaults, of_levels, object, &written);
        if (r == 0 && !of_levels && !written)
                r = set_condition(term, context, object);
        hf__json_free(object);
        return hfd_object_client_ignore_stale(r);
}

/* Appends the name and its NUL. */
static void add_name(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct hf__strbuf *names = ctx;

        hf__strbuf_puts(names, name);
        hf__strbuf_putc(names, '\0');
}

static int reconcile_schemas(struct hf_term *term, const struct hfd_controller_context *context) {
        struct hf__strbuf names = {0};
        int r;

        hf_informer_each(context->flow_schemas->informer, add_name, &names);
        r = names.error;
        for (size_t at = 0; r == 0 && at < names.n; at += strlen(names.data + at) + 1)
                r = reconcile_object(term, context, false, names.data + at);
        hf__strbuf_done(&names);
        return r;
}

static int reconcile_flow(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        const char *slash = strchr(key, '/');

        /* sizeof LEVELS counts the slash in place of the NUL. */
        return slash ? reconcile_object(term, ctx, strncmp(key, LEVELS "/", sizeof LEVELS) == 0,
                                        slash + 1)
                     : reconcile_schemas(term, ctx);
}

static int map_schema(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                      const char *ns, const char *name, const char *object, size_t n) {
        char key[KEY_MAX];

        (void)snprintf(key, sizeof key, SCHEMAS "/%s", name);
        return hf_workqueue_add(queue, key);
}

static int map_level(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                     const char *name, const char *object, size_t n) {
        char key[KEY_MAX];

        (void)snprintf(key, sizeof key, LEVELS "/%s", name);
        int r = hf_workqueue_add(queue, key);
        return r != 0 || type == HF_EVENT_MODIFIED ? r : hf_workqueue_add(queue, ALL_SCHEMAS);
}

/* Creates the default objects that are missing. Asks the server for each: the loop reconciles only
 * the keys of events, and an object that does not exist causes none. */
static int create_missing_defaults(struct hf_term *term, const struct hfd_flow_defaults *defaults) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < defaults->n; i++) {
                const struct hfd_flow_default wanted = defaults->get(i);
                struct hf__json *found = NULL;
                r = hfd_object_client_get(term, is_of_levels(wanted.plural) ? &levels : &schemas,
                                          NULL, wanted.name, &found);
                hf__json_free(found);
                if (r == HF_E_NOT_FOUND)
                        r = create_default(term, defaults, i);
        }
        return r;
}

int hfd_flow_controller_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->flow_schemas && context->priority_levels); /* controllers.c set them */
        const struct hf_reconciler_source sources[] = {{.size = sizeof sources[0],
                                                        .informer =
                                                                context->priority_levels->informer,
                                                        .map = map_level},
                                                       {.size = sizeof sources[0],
                                                        .informer = context->flow_schemas->informer,
                                                        .map = map_schema}};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_FLOW_CONTROLLER,
                .sources = sources,
                .n_sources = sizeof sources / sizeof sources[0],
                .reconcile = reconcile_flow,
                .ctx = context,
        };
        hfd_defaults_pause(term, context->flow_schemas->informer);
        int r = create_missing_defaults(term, &context->flow_defaults);

        return r != 0 ? r : hf_reconciler_run(&reconciler, term);
}
