/* SPDX-License-Identifier: Apache-2.0 */
/*
 * get and list. Which state a read may see is decided first (apiserver.md 3.6):
 *
 *      resourceVersion unset      consistent: probe, then the cache (consistent_read.c), else the
 * store "0"                        the cache as it is N, NotOlderThan            the cache once it
 * has passed N; 504 when it has not within 3 s N, Exact (or with a limit) the store at that
 * revision continue                   the store at the token's revision, or the cache while it is
 * still exactly there
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/store_request.h"
#include "server/registry/read.h"
#include "server/registry/table.h"

#define NOT_OLDER_WAIT (3 * HF_NSEC_PER_SEC)

void hfd_read_finish(struct hfd_read *read, struct hfd_response *response) {
        struct hfd_request *request = read->request;

        free(read);
        request->done(request, response);
        hfd_response_done(response);
}

void hfd_read_finish_store_error(struct hfd_read *read, int error, const struct hf_status *status) {
        struct hfd_response response = {0};

        if (error == HF_E_INVALID && read->at) { /* the store has not reached it: not its failure,
                                                    nor the client's for ever */
                read->wait.revision = read->at;
                hfd_read_finish_too_large(read);
                return;
        }
        if (error == HF_E_TIMEOUT) /* a read that was not answered was not answered: no doubt about
                                      what was done */
                hfd_response_status(&response, HF_E_TIMEOUT, 504, "Timeout",
                                    "Timeout: request did not complete within the allotted time",
                                    NULL);
        else
                hfd_response_store_error(&response, error, status);
        hfd_read_finish(read, &response);
}

void hfd_read_finish_too_large(struct hfd_read *read) {
        struct hfd_response response = {0};
        char message[128];
        const struct hfd_details details = {.cause_reason = "ResourceVersionTooLarge",
                                            .cause_text = "Too large resource version",
                                            .retry_after_s = 1};

        uint64_t current = hfd_cacher_revision(read->registry->cacher);
        (void)snprintf(message, sizeof message,
                       "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64,
                       read->wait.revision, current);
        hfd_response_status(&response, HF_E_TIMEOUT, 504, "Timeout", message, &details);
        hfd_read_finish(read, &response);
}

/* ---- get ---- */

static void answer_object(struct hfd_read *read, struct hfd_object *object) {
        struct hfd_response response = {0};
        const struct hfd_request *request = read->request;
        char meta[64];

        if (!object) {
                hfd_response_not_found(&response, request->resource, request->name);
        } else if (request->format == HFD_AS_TABLE) {
                (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"",
                               object->revision);
                hfd_response_ok(&response, 200,
                                hfd_table_render(read->registry, request, &object, 1, meta));
        } else if (request->format == HFD_AS_PARTIAL) {
                hfd_response_ok(&response, 200, hfd_table_render_partial(object));
        } else {
                hfd_response_ok(&response, 200, hf__buf_ref(object->bytes));
        }
        hfd_object_unref(object);
        hfd_read_finish(read, &response);
}

static void on_store_get(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_read *read = ctx;
        char path[HFD_PATH_MAX];
        struct hfd_object *object = NULL;

        if (reply->error) {
                hfd_read_finish_store_error(read, reply->error, &reply->status);
                return;
        }
        hfd_object_path(read->request->resource, read->request->ns, read->request->name, path);
        if (reply->n_kvs && reply->kvs[0].value) {
                object = hfd_object_new(read->request->resource, path, reply->kvs[0].mod_revision,
                                        reply->kvs[0].value);
                if (!object) {
                        hfd_read_finish_store_error(read, -ENOMEM, NULL);
                        return;
                }
        }
        answer_object(read, object);
}

static void on_get_ready(struct hfd_consistent_read *reader) {
        struct hfd_read *read = (struct hfd_read *)reader;
        struct hfd_registry *registry = read->registry;
        char path[HFD_PATH_MAX], key[HFD_KEY_MAX];
        struct hfd_object *object = NULL;

        hfd_object_path(read->request->resource, read->request->ns, read->request->name, path);
        if (!reader->outcome) {
                object = hfd_cacher_get(registry->cacher, read->request->resource, path);
                answer_object(read, object);
        } else if (reader->outcome != HF_E_TIMEOUT) {
                hfd_read_finish_store_error(read, reader->outcome, &reader->status);
        } else if (read->too_large_if_late && hfd_cacher_synced(registry->cacher)) {
                hfd_read_finish_too_large(read);
        } else {
                int r = hfd_object_key(registry->prefix, read->request->resource, path, key);
                if (r == 0)
                        r = hfd_store_request_get(registry->cacher, key, read->request->deadline,
                                                  on_store_get, read);
                if (r != 0)
                        hfd_read_finish_store_error(read, r, NULL);
        }
}

struct hfd_read *hfd_read_new(struct hfd_registry *registry, struct hfd_request *request,
                              void (*ready)(struct hfd_consistent_read *reader)) {
        struct hfd_read *read = calloc(1, sizeof *read);
        struct hfd_response response = {0};

        if (!read) {
                hfd_response_no_memory(&response);
                request->done(request, &response);
                hfd_response_done(&response);
                return NULL;
        }
        read->registry = registry;
        read->request = request;
        read->wait.ready = ready;
        read->wait.deadline = request->deadline;
        return read;
}

/* Goes on when the state that the options ask for is there. */
void hfd_read_start(struct hfd_read *read) {
        const struct hfd_options *o = &read->request->options;

        if (!o->has_revision) {
                hfd_consistent_read_start(read->registry->cacher, &read->wait);
                return;
        }
        read->too_large_if_late = o->revision > 0;
        hfd_consistent_read_after(read->registry->cacher, &read->wait, o->revision, NOT_OLDER_WAIT);
}

void hfd_read_get(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_read *read = hfd_read_new(registry, request, on_get_ready);

        if (read)
                hfd_read_start(read);
}
