/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-side apply with the functions of server/apply/.
 *
 * Invariants: the configuration is never changed by an attempt that updates an object, because the
 * next one applies it to a newer version. (A create uses it up.) A conflict with other managers on
 * an old version may not exist on the newest one, so the response is a conflict only if the current
 * version is fresh.
 */
#include "server/registry/write/patches/apply.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/apply/apply.h"
#include "server/registry/write/admit.h"
#include "server/registry/write/apply_body.h"
#include "server/registry/write/body.h"
#include "server/registry/write/reply.h"
#include "server/resources/validation/manager_names.h"
#include "server/schema/zero.h"

/* A struct hfd_writer, and the strings that it borrows. */
struct writer {
        struct hfd_writer writer;
        char manager[HFD_FIELD_MANAGER_MAX + 1];
        char api_version[HFD_API_VERSION_MAX];
        char now[HF__MICROTIME_MAX];
};

/* The name of a manager that did not give one: the User-Agent up to the first `/`. */
static void name_by_agent(const char *agent, char name[HFD_FIELD_MANAGER_MAX + 1]) {
        size_t n = 0;

        for (; *agent && *agent != '/' && n < HFD_FIELD_MANAGER_MAX; agent++)
                if ((unsigned char)*agent >= ' ' && (unsigned char)*agent < 0x7f)
                        name[n++] = *agent;
        name[n] = '\0';
}

static void init_writer(const struct hfd_write *w, struct writer *ret_writer) {
        const struct hfd_request *request = w->request;
        const struct hf_clock *clock = hf_host_clock(w->registry->host);

        if (!request->options.field_manager)
                name_by_agent(request->agent ? request->agent : "holdfastd", ret_writer->manager);
        hfd_resource_api_version(request->resource, ret_writer->api_version);
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, ret_writer->now);
        ret_writer->writer =
                (struct hfd_writer){.manager = request->options.field_manager
                                                       ? request->options.field_manager
                                                       : ret_writer->manager,
                                    .subresource = hfd_subresource_name(request->subresource),
                                    .api_version = ret_writer->api_version,
                                    .now = ret_writer->now};
}

/* ---- failures ---- */

/* Adds the causes, which it consumes, to the Status in the response. If memory runs out, they are
 * missing there. */
static void add_causes(struct hfd_response *response, struct hf__json *causes) {
        struct hf__json *status = NULL;
        struct hf__strbuf out = {0};
        struct hf__buf *body;

        if (!response->body ||
            hf__json_parse(response->body->data, response->body->n, &status, NULL) != 0) {
                hf__json_free(causes);
                return;
        }
        if (hf__json_set(status, "details.causes", causes) == 0)
                hf__json_print(status, &out);
        hf__strbuf_putc(&out, '\n');
        body = out.n > 1 ? hf__strbuf_to_buf(&out) : NULL;
        if (body) {
                hf__buf_unref(response->body);
                response->body = body;
        }
        hf__strbuf_done(&out);
        hf__json_free(status);
}

static void reply_failed(struct hfd_write *w, int r, struct hfd_apply_failure *failure) {
        struct hfd_response response = {0};

        if (r == -ENOMEM) {
                hfd_write_reply_no_memory(w);
                return;
        }
        if (w->current && !w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        if (r == HF_E_CONFLICT) {
                hfd_response_status(&response, HF_E_CONFLICT, 409, "Conflict",
                                    failure->message.data, NULL);
                add_causes(&response, failure->causes);
                failure->causes = NULL;
        } else {
                hfd_response_status(&response, HF_E_INVALID, 422, "Invalid", failure->message.data,
                                    NULL);
        }
        hfd_write_reply(w, &response);
}

/* ---- apply ---- */

bool hfd_write_apply(struct hfd_write *w, const struct hf__json *old) {
        const struct hf__json *config = old ? w->body : w->object;
        HF__CLEANUP(hfd_apply_failure_done) struct hfd_apply_failure failure = {0};
        struct hfd_response response = {0};
        struct hf__json *object = NULL;
        struct writer writer;

        assert(config);
        init_writer(w, &writer);
        int r = hfd_apply(w->request->resource->schema, old, config, &writer.writer,
                          w->request->options.force, &object, &failure);
        if (r != 0) {
                reply_failed(w, r, &failure);
                return false;
        }
        hf__json_free(w->object);
        w->object = object;
        if (!hfd_write_apply_body_is_strict(w, &response)) {
                hfd_write_reply(w, &response);
                return false;
        }
        if (hfd_write_body_accept(w, w->object, &response))
                return true;
        if (!old || w->fresh) {
                hfd_write_reply(w, &response);
        } else {
                hfd_response_done(&response);
                hfd_write_refetch(w);
        }
        return false;
}

/* Whether two lists of managers are equal apart from the times. */
static bool same_managers(const struct hf__json *a, const struct hf__json *b) {
        const struct hf__json *x = hf__json_first(a), *y = hf__json_first(b);
        static const char *const keys[] = {"manager",     "operation",  "apiVersion",
                                           "subresource", "fieldsType", "fieldsV1"};

        for (; x && y; x = hf__json_next(x), y = hf__json_next(y))
                for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                        const struct hf__json *one = hf__json_get(x, keys[i]),
                                              *other = hf__json_get(y, keys[i]);
                        if (!one != !other || (one && !hf__json_equal(one, other)))
                                return false;
                }
        return !x && !y;
}

/* An apply may turn out to change nothing after the defaults were set. Then puts back the times of
 * the managers, so that nothing is written. 0 or -ENOMEM. */
static int keep_times(struct hf__json *object, struct hf__json *old) {
        static const char key[] = "managedFields";
        struct hf__json *meta = hf__json_get(object, "metadata"),
                        *old_meta = hf__json_get(old, "metadata"), *list = hf__json_get(meta, key),
                        *old_list = hf__json_get(old_meta, key);

        if (!list || !old_list || !same_managers(list, old_list))
                return 0;
        list = hf__json_detach(meta, list);
        old_list = hf__json_detach(old_meta, old_list);
        bool same = hf__json_equal(object, old);
        int r = hf__json_put(old_meta, key, old_list);
        if (r == 0 && same) {
                hf__json_free(list);
                list = hf__json_dup(hf__json_get(old_meta, key));
        }
        if (r != 0 || !list) {
                hf__json_free(list);
                return -ENOMEM;
        }
        return hf__json_put(meta, key, list);
}

/*
 * Records who owns the fields of a new object. If the kind has the subresource status, nobody owns
 * the status. Unless the kind is a custom resource, nobody owns the fields that an object of its Go
 * type has even if nothing is set. 0 or -ENOMEM.
 */
static int track_new(struct hfd_write *w, struct writer *writer) {
        const struct hfd_resource *resource = w->request->resource;
        struct hf__json *zero = NULL, *status = NULL;

        if (!resource->custom) {
                zero = hfd_schema_zero(resource->schema);
                if (!zero)
                        return -ENOMEM;
        }
        if (resource->subresources & HFD_SUB_STATUS)
                status = hf__json_get(w->object, "status");
        if (status)
                status = hf__json_detach(w->object, status);
        writer->writer.zero = zero;
        int r = hfd_ownership_update(resource->schema, NULL, w->object, &writer->writer, false,
                                     &w->changed);
        hf__json_free(zero);
        if (!status)
                return r;
        int added = hf__json_put(w->object, "status", status);
        return r == 0 ? added : r;
}

int hfd_write_apply_track(struct hfd_write *w, struct hf__json *old) {
        struct writer writer;

        w->changed = false;
        if (w->request->subresource == HFD_SUB_BINDING)
                return 0; /* nobody owns what a Binding sets, as in Kubernetes */
        if (w->request->verb == HFD_PATCH && w->request->patch == HFD_PATCH_APPLY)
                return old ? keep_times(w->object, old) : 0;
        /* As in Kubernetes, an object that had no owners gets none until it is applied or a client
         * sends managers. */
        if (old && !hf__json_path(old, "metadata.managedFields") &&
            !hf__json_path(w->object, "metadata.managedFields"))
                return 0;
        init_writer(w, &writer);
        if (!old)
                return track_new(w, &writer);
        /* If admission is asked, webhooks get the old object with its managers. */
        return hfd_ownership_update(w->request->resource->schema, old, w->object, &writer.writer,
                                    !hfd_write_admit_wants(w), &w->changed);
}
