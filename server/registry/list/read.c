/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The get verb, and the wait at the start of most reads. The resourceVersion determines which state
 * a read returns:
 *
 *      not given         includes every write acknowledged before: the cacher, once it has reached
 *                        the store's current revision (consistent_read.c), else the store
 *      "0"               any state: the cacher as it is
 *      N                 not older than N: the cacher, once it has reached N; 504 after 3 s
 *      not given, in the get of an elector    as the first case, but always from the store
 *
 * While the cache is not filled, the first three cases read the store, too; if the store itself has
 * not reached N, the response is 504. While the cache contains the history of a store that was
 * replaced, the first two cases read the store, and the third one gets 504 at once. list.c handles
 * more cases:
 *
 *      N, Exact          exactly the state of N: the cacher if it knows that state, else the store
 *      N, with a limit   likewise, unless there is a resourceVersionMatch
 *      continue          the state of the first page, likewise
 *      continue, with the token that a 410 response contains    as the first case
 *
 * Invariant: a read never returns an older state than this table allows. In doubt it waits, reads
 * from the store, or fails.
 */
#include "server/registry/list/read.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/stored_value.h"
#include "server/registry/convert/convert.h"
#include "server/registry/list/table.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/stored_object.h"
#include "server/storage/sealed.h"

#define NOT_OLDER_WAIT (3 * HF_NSEC_PER_SEC)

/* ---- the response ---- */

void hfd_read_finish(struct hfd_read *read, struct hfd_response *response) {
        struct hfd_request *request = read->request;

        assert(response->code != 0);
        if (!read->is_borrowed)
                free(read); /* a borrowed read lies in the memory of the request, which done may
                               free */
        request->done(request, response);
        hfd_response_done(response);
}

void hfd_read_finish_store_error(struct hfd_read *read, int error, const struct hf_status *status) {
        struct hfd_response response = {0};

        assert(error != 0);
        if (error == HF_E_INVALID && read->at) {
                /* The store has not reached the revision yet, but the client may try again. */
                read->wait.revision = read->at;
                hfd_read_finish_too_large(read, hfd_cacher_revision(read->registry->cacher));
                return;
        }
        /* Unlike a write, a read that timed out has no effects, so the client may simply retry. */
        if (error == HF_E_TIMEOUT)
                hfd_response_status(&response, HF_E_TIMEOUT, 504, "Timeout",
                                    "Timeout: request did not complete within the allotted time",
                                    NULL);
        else
                hfd_response_store_error(&response, error, status);
        hfd_read_finish(read, &response);
}

void hfd_read_finish_sealed(struct hfd_read *read, const char *key, const char *why) {
        struct hfd_response response = {0};

        hfd_response_sealed(&response, key, why);
        hfd_read_finish(read, &response);
}

void hfd_read_finish_too_large(struct hfd_read *read, uint64_t current) {
        struct hfd_response response = {0};
        char message[128];
        const struct hfd_details details = {.cause_reason = "ResourceVersionTooLarge",
                                            .cause_text = "Too large resource version",
                                            .retry_after_s = 1};

        (void)snprintf(message, sizeof message,
                       "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64,
                       read->wait.revision, current);
        hfd_response_status(&response, HF_E_TIMEOUT, 504, "Timeout", message, &details);
        hfd_read_finish(read, &response);
}

/* ---- start ---- */

/* Clears everything but the texts of the status, which are large: they become "". */
static void clear_read(struct hfd_read *read) {
        const size_t begin = offsetof(struct hfd_consistent_read, status),
                     end = begin + sizeof read->wait.status;
        struct hf_status *status = &read->wait.status;

        memset(read, 0, begin);
        status->error = status->http_code = 0;
        status->retry_after_s = 0;
        status->reason[0] = status->message[0] = '\0';
        memset((char *)read + end, 0, sizeof *read - end);
}

struct hfd_read *hfd_read_new(struct hfd_registry *registry, struct hfd_request *request,
                              size_t n_ranges, void (*ready)(struct hfd_consistent_read *wait)) {
        bool is_borrowed = n_ranges == 0 && request->read_space;
        struct hfd_read *read = request->read_space;

        assert(request->resource && request->done);
        /* Not calloc: before glibc 2.41 it does not use the thread's cache of freed blocks. */
        if (!is_borrowed)
                read = malloc(sizeof *read + n_ranges * sizeof read->range[0]);
        if (!read) {
                struct hfd_response response = {0};
                hfd_response_no_memory(&response);
                request->done(request, &response);
                hfd_response_done(&response);
                return NULL;
        }
        clear_read(read);
        read->wait.ready = ready;
        read->wait.deadline = request->deadline;
        read->registry = registry;
        read->request = request;
        read->is_borrowed = is_borrowed;
        read->wait.pass = is_borrowed ? request->pass_reads : NULL;
        read->wait.thread = request->thread;
        for (size_t i = 0; i < n_ranges; i++)
                read->range[i] = (struct hfd_read_range){0};
        return read;
}

void hfd_read_start(struct hfd_read *read) {
        const struct hfd_options *o = &read->request->options;

        assert(!read->at);
        if (!o->has_revision) {
                hfd_consistent_read_start(read->registry->cacher, &read->wait);
                return;
        }
        read->too_large_if_late = o->revision > 0;
        hfd_consistent_read_after(read->registry->cacher, &read->wait, o->revision, NOT_OLDER_WAIT);
}

void hfd_read_continue(struct hfd_read *read, void (*from_cacher)(struct hfd_read *read),
                       void (*from_store)(struct hfd_read *read)) {
        const struct hfd_consistent_read *wait = &read->wait;

        if (wait->outcome == 0)
                from_cacher(read);
        else if (wait->outcome != HF_E_TIMEOUT)
                hfd_read_finish_store_error(read, wait->outcome, &wait->status);
        else if (read->too_large_if_late && hfd_cacher_synced(read->registry->cacher))
                hfd_read_finish_too_large(read, hfd_cacher_revision(read->registry->cacher));
        else
                from_store(read);
}

/* ---- get ---- */

/* The bytes of the object in the version of the resource. NULL = out of memory, or the bytes are
 * malformed. */
static struct hf__buf *get_bytes(const struct hfd_resource *resource, struct hfd_object *object) {
        struct hfd_object *converted = hfd_conversion_object(resource, object);
        struct hf__buf *bytes = converted ? hf__buf_ref(converted->bytes) : NULL;

        hfd_object_unref(converted);
        return bytes;
}

/* Consumes the reference to object, which no webhook has to convert any more; NULL: there is no
 * such object. */
static void respond_with_object(struct hfd_read *read, struct hfd_object *object) {
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
                hfd_response_ok(&response, 200, get_bytes(request->resource, object));
        }
        hfd_object_unref(object);
        hfd_read_finish(read, &response);
}

static void on_converted(void *ctx, const struct hfd_response *failure) {
        struct hfd_read *read = ctx;
        struct hfd_object *object = read->object;

        read->object = NULL;
        if (!failure) {
                respond_with_object(read, object);
                return;
        }
        struct hfd_response response = *failure;
        hf__buf_ref(response.body);
        hfd_object_unref(object);
        hfd_read_finish(read, &response);
}

/* Consumes the reference to object; NULL: there is no such object. */
static void finish_get(struct hfd_read *read, struct hfd_object *object) {
        const struct hfd_request *request = read->request;

        read->object = object;
        if (object && hfd_read_needs_version(request)) {
                const struct hfd_convert convert = {.row = request->resource,
                                                    .objects = &read->object,
                                                    .n = 1,
                                                    .deadline = request->deadline,
                                                    .owner = request->owner,
                                                    .done = on_converted,
                                                    .ctx = read};
                if (!hfd_convert_start(read->registry, &convert))
                        return; /* on_converted responds */
        }
        object = read->object;
        read->object = NULL;
        respond_with_object(read, object);
}

static void on_store_get(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_read *read = ctx;
        const struct hfd_request *request = read->request;
        struct hfd_object *object = NULL;
        char path[HFD_PATH_MAX];

        if (reply->error) {
                hfd_read_finish_store_error(read, reply->error, &reply->status);
                return;
        }
        if (read->too_large_if_late && reply->revision < read->wait.revision) {
                hfd_read_finish_too_large(read, reply->revision);
                return;
        }
        if (reply->n_kvs && hfd_kv_sealed(&reply->kvs[0])) {
                hfd_read_finish_sealed(read, reply->kvs[0].key, hfd_kv_sealed(&reply->kvs[0]));
                return;
        }
        if (reply->n_kvs && reply->kvs[0].value) {
                hfd_object_path(request->resource, request->ns, request->name, path);
                object = hfd_stored_object_new(hfd_resource_stored(request->resource), path,
                                               &reply->kvs[0]);
                /* A value that is not a valid object is 404, as if the cacher were read. If it is
                 * valid, memory has run out. */
                if (!object && hfd_object_check(hfd_resource_stored(request->resource),
                                                reply->kvs[0].value) != HF_E_INVALID) {
                        hfd_read_finish_store_error(read, -ENOMEM, NULL);
                        return;
                }
        }
        finish_get(read, object);
}

static void get_from_store(struct hfd_read *read) {
        const struct hfd_request *request = read->request;
        struct hfd_registry *registry = read->registry;
        char path[HFD_PATH_MAX], key[HFD_KEY_MAX];
        int r;

        hfd_object_path(request->resource, request->ns, request->name, path);
        r = hfd_object_key(registry->prefix, request->resource, path, key);
        if (r == 0)
                r = hfd_store_request_get(registry->cacher, key, request->resource->term_record,
                                          request->deadline, on_store_get, read);
        if (r != 0)
                hfd_read_finish_store_error(read, r, NULL);
}

/* The cacher has the required state. */
static void get_from_cacher(struct hfd_read *read) {
        const struct hfd_request *request = read->request;
        struct hfd_sealed_value sealed;
        char path[HFD_PATH_MAX];
        bool is_sealed;

        hfd_object_path(request->resource, request->ns, request->name, path);
        struct hfd_object *object =
                hfd_stored_value_get(read->registry->cacher, hfd_resource_stored(request->resource),
                                     path, &is_sealed, &sealed);
        if (is_sealed)
                hfd_read_finish_sealed(read, sealed.key, sealed.why);
        else
                finish_get(read, object);
}

static void on_get_ready(struct hfd_consistent_read *wait) {
        hfd_read_continue((struct hfd_read *)wait, get_from_cacher, get_from_store);
}

void hfd_read_get(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_read *read = hfd_read_new(registry, request, 0, on_get_ready);

        if (!read)
                return;
        if (request->from_store && !request->options.has_revision)
                get_from_store(read);
        else
                hfd_read_start(read);
}
