/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list verb collects the objects that the selectors match, and renders them as one body. The
 * head of read.c lists which state a list may show. Two of its cases are handled here: all pages of
 * a list show the state of its first page, and a client may ask for exactly one revision. If the
 * store no longer has the state of the first page, the client gets a token for the current state.
 *
 *      cacher  if it has the required state: walks through a snapshot
 *      store   otherwise: creates objects from the stored values at one revision
 *
 * A small list is made at once. Otherwise the current thread only takes the snapshot, or copies the
 * store's reply, because other requests may need this thread (the store's, or an HTTP worker):
 *
 *      a whole list  becomes a body that is made while the client reads (list_body.h)
 *      a page        is collected on the pool of threads, in steps; a large one becomes such a body
 *
 * A whole list is collected like a page if it comes from the store, if a webhook converts it, or if
 * the caller takes no such body, like the loopback client.
 *
 * list_page.c selects the objects of a page. Invariant: nothing here runs under the cacher's lock.
 */
#include "server/registry/list/list.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/stored_value.h"
#include "server/cacher/watch/snapshot.h"
#include "server/pool/work_pool.h"
#include "server/registry/convert/convert.h"
#include "server/registry/list/continue_token.h"
#include "server/registry/list/list_body.h"
#include "server/registry/list/list_page.h"
#include "server/registry/list/rendering.h"
#include "server/registry/list/stored_page.h"
#include "server/resources/forms/conversion.h"

/* Bytes of a response that is made at once; a list_body needs no limit. */
#define LIST_MAX_BYTES (512u << 20)
/* Bytes of the stored objects of a list that a webhook converts. */
#define CONVERTED_MAX_BYTES ((size_t)64 << 20)
/* A list of at most this size is made on the current thread, in about 20 us. */
#define INLINE_OBJECTS 32
#define INLINE_BYTES   ((size_t)128 << 10)
/* Objects that one step examines: a millisecond if selectors parse them. */
#define STEP_OBJECTS 256

/* ---- the response ---- */

struct hf__buf *hfd_list_render(struct hfd_registry *registry, const struct hfd_request *request,
                                struct hfd_object *const *objects, size_t n, const char *meta) {
        struct hf__strbuf s = {.max = LIST_MAX_BYTES};
        int64_t now_s = hfd_rendering_now(registry);

        hfd_rendering_put_head(&s, request, meta);
        for (size_t i = 0; i < n && s.error == 0; i++) {
                if (i > 0)
                        hf__strbuf_putc(&s, ',');
                if (!hfd_rendering_put_item(&s, request, objects[i], now_s) && s.error == 0)
                        s.error = -ENOMEM;
        }
        hf__strbuf_puts(&s, "]}");
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}

/* Appends the members of the list's metadata. A failure sets meta->error. */
static void append_metadata(struct hf__strbuf *meta, const struct hfd_list_page *page) {
        hf__strbuf_printf(meta, "\"resourceVersion\":\"%" PRIu64 "\"", page->revision);
        if (!page->more)
                return;
        hf__strbuf_puts(meta, ",\"continue\":\"");
        hfd_continue_token_append(meta, page->revision, page->last);
        hf__strbuf_putc(meta, '"');
        if (page->has_remaining)
                hf__strbuf_printf(meta, ",\"remainingItemCount\":%zu", page->n_remaining);
}

/* Ends the read with a body that is made while the client reads. Consumes rendering; NULL = out of
 * memory. */
static void finish_with_body(struct hfd_read *read, const struct hf__strbuf *meta,
                             struct hfd_rendering *rendering) {
        struct hfd_request *request = read->request;
        struct hfd_response response = {0};

        if (meta->error)
                rendering = hfd_rendering_unref(rendering);
        if (rendering &&
            hfd_list_body_new(request, meta->data, rendering, &request->list_body) == 0)
                response.code = 200;
        else
                hfd_response_no_memory(&response);
        hfd_read_finish(read, &response);
}

/* Ends the read with a body to which the page's objects move. */
static void finish_page_with_body(struct hfd_read *read, struct hfd_list_page *page,
                                  const struct hf__strbuf *meta) {
        const struct hfd_rendering_spec spec = {.request = read->request};
        struct hfd_rendering *rendering = NULL;

        (void)hfd_rendering_of_array(read->registry->renderings, &spec, page->objects, page->n,
                                     &rendering);
        finish_with_body(read, meta, rendering);
}

/* Responds 500: the last value that was examined cannot be decrypted. */
static void finish_sealed(struct hfd_read *read, struct hfd_list_page *page) {
        char key[HFD_KEY_MAX];
        const char *why = page->sealed;

        if (hfd_object_key(read->registry->prefix, read->request->resource, page->last, key) != 0)
                *key = 0; /* impossible: the store has returned it */
        hfd_list_page_done(page);
        hfd_read_finish_sealed(read, key, why);
}

/*
 * Whether a page is sent in pieces that are made while the client reads (list_body.h). In JSON only
 * the number of objects counts. In protobuf also their size does, because a response that is made
 * at once needs many times that much memory.
 */
static bool is_large_page(const struct hfd_request *request, const struct hfd_list_page *page) {
        size_t bytes = 0;

        for (size_t i = 0; request->protobuf && i < page->n && bytes <= INLINE_BYTES; i++)
                bytes += hfd_object_size(page->objects[i]);
        return page->n > INLINE_OBJECTS || bytes > INLINE_BYTES;
}

/* Ends the read. No webhook has to convert the objects any more, unless page->failed is set. */
static void respond_with_page(struct hfd_read *read, struct hfd_list_page *page) {
        struct hfd_request *request = read->request;
        struct hfd_response response = {0};
        struct hf__strbuf meta = {0};

        append_metadata(&meta, page);
        if (!page->failed && request->takes_list_body && is_large_page(request, page)) {
                finish_page_with_body(read, page, &meta);
                hf__strbuf_done(&meta);
                return;
        }
        if (page->failed || meta.error)
                hfd_response_no_memory(&response);
        else
                hfd_response_ok(&response, 200,
                                hfd_list_render(read->registry, request, page->objects, page->n,
                                                meta.data));
        hf__strbuf_done(&meta);
        hfd_list_page_done(page);
        hfd_read_finish(read, &response);
}

/* ---- conversion by a webhook ---- */

/* A page whose objects a webhook converts. */
struct converted_page {
        struct hfd_read *read;
        struct hfd_list_page page;
};

static void on_converted(void *ctx, const struct hfd_response *failure) {
        struct converted_page *converted = ctx;
        struct hfd_read *read = converted->read;
        struct hfd_list_page page = converted->page;

        free(converted);
        if (!failure) {
                respond_with_page(read, &page);
                return;
        }
        struct hfd_response response = *failure;
        hf__buf_ref(response.body);
        hfd_list_page_done(&page);
        hfd_read_finish(read, &response);
}

/* A converted list is in memory as a whole. */
static bool is_too_large(const struct hfd_list_page *page) {
        size_t bytes = 0;

        for (size_t i = 0; i < page->n; i++)
                bytes += hfd_object_size(page->objects[i]);
        return bytes > CONVERTED_MAX_BYTES;
}

static void refuse_too_large(struct hfd_read *read, struct hfd_list_page *page) {
        struct hfd_response response = {0};

        hfd_list_page_done(page);
        hfd_response_status(&response, HF_E_TOO_LARGE, 413, "RequestEntityTooLarge",
                            "a webhook converts the objects of this list, which is too large for "
                            "one response: use a limit",
                            NULL);
        hfd_read_finish(read, &response);
}

static void respond_converted(struct hfd_read *read, struct hfd_list_page *page) {
        struct hfd_request *request = read->request;
        struct converted_page *converted = malloc(sizeof *converted);

        if (!converted) {
                page->failed = true;
                respond_with_page(read, page);
                return;
        }
        *converted = (struct converted_page){.read = read, .page = *page};
        const struct hfd_convert convert = {.row = request->resource,
                                            .objects = converted->page.objects,
                                            .n = converted->page.n,
                                            .deadline = request->deadline,
                                            .owner = request->owner,
                                            .done = on_converted,
                                            .ctx = converted};
        if (hfd_convert_start(read->registry, &convert))
                on_converted(converted, NULL);
}

/* Ends the read: passes the objects to read->on_objects, or sends a response. */
static void finish_page(struct hfd_read *read, struct hfd_list_page *page) {
        struct hfd_request *request = read->request;
        hfd_list_objects_fn on_objects = read->on_objects;

        if (page->sealed) {
                finish_sealed(read, page);
        } else if (on_objects && !page->failed) {
                free(read); /* the read of a list is never borrowed (hfd_read_new) */
                on_objects(request, page->objects, page->n, page->revision);
        } else if (page->failed || page->n == 0 || !hfd_read_needs_version(request)) {
                respond_with_page(read, page);
        } else if (is_too_large(page)) {
                refuse_too_large(read, page);
        } else {
                respond_converted(read, page);
        }
}

/*
 * Responds 410: the state of the first page is compacted. The token in the response lets the client
 * continue with the current state.
 */
static void finish_expired(struct hfd_read *read) {
        struct hfd_response response = {0};
        struct hf__strbuf token = {0};

        hfd_continue_token_append(&token, HFD_CONTINUE_CURRENT, read->range->start);
        const struct hfd_details details = {.continue_token = token.error ? NULL : token.data};
        hfd_response_status(&response, HF_E_GONE, 410, "Expired",
                            "The provided continue parameter is too old to display a "
                            "consistent list result. You can start a new list "
                            "without the continue parameter, or use the continue token in "
                            "this response to retrieve the remainder of the "
                            "results. Continuing with the provided token results in an "
                            "inconsistent list - objects that were created, "
                            "modified, or deleted between the time the first chunk was "
                            "returned and now may show up in the list.",
                            &details);
        hf__strbuf_done(&token);
        hfd_read_finish(read, &response);
}

/* ---- from the store ---- */

static void finish_stored_page(struct hfd_read *read, struct hfd_list_page *page) {
        if (page)
                finish_page(read, page);
        else
                hfd_read_finish_store_error(read, HF_E_CANCELED, NULL);
}

/* Whether objects may be made of the values on the store's thread. */
static bool is_small_reply(const struct hfd_store_reply *reply) {
        size_t bytes = 0;

        if (reply->n_kvs > INLINE_OBJECTS)
                return false;
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (reply->kvs[i].value)
                        bytes += reply->kvs[i].value->n;
        return bytes <= INLINE_BYTES;
}

static void on_store_list(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_read *read = ctx;
        struct hfd_list_page page = {0};

        if (reply->error == HF_E_GONE && read->request->options.continue_token) {
                finish_expired(read);
                return;
        }
        if (reply->error) {
                hfd_read_finish_store_error(read, reply->error, &reply->status);
                return;
        }
        if (read->too_large_if_late && reply->revision < read->wait.revision) {
                hfd_read_finish_too_large(read, reply->revision);
                return;
        }
        if (is_small_reply(reply)) {
                hfd_list_page_from_store(&page, read, reply);
                finish_page(read, &page);
                return;
        }
        int r = hfd_stored_page_start(read, reply, finish_stored_page);
        if (r != 0)
                hfd_read_finish_store_error(read, r, NULL);
}

static void list_from_store(struct hfd_read *read) {
        struct hfd_registry *registry = read->registry;
        const struct hfd_options *o = &read->request->options;
        const struct hfd_read_range *range = read->range;
        char key[HFD_KEY_MAX], start[HFD_KEY_MAX];
        size_t limit = 0;
        int r = hfd_object_key(registry->prefix, read->request->resource, range->scope.prefix, key);
        if (r == 0 && *range->start)
                r = hfd_object_key(registry->prefix, read->request->resource, range->start, start);
        if (r == 0 && *range->start)
                hfd_key_after(start, start);
        /* The start may lie before the scope: the first page may have had a wider one. */
        bool is_behind = r == 0 && *range->start && strcmp(start, key) > 0;
        /*
         * With selectors all objects are read, because the limit counts only those that match.
         * Otherwise one object more than the limit is read, which shows whether more follow. The
         * key of a single object sorts before all others that begin with it.
         */
        if (range->scope.exact)
                limit = 1;
        else if (o->limit && !o->labels.n && !o->fields.n)
                limit = (size_t)o->limit + 1;
        if (r == 0)
                r = hfd_store_request_list(registry->cacher, key, is_behind ? start : NULL,
                                           read->at, limit, read->request->deadline, on_store_list,
                                           read);
        if (r != 0)
                hfd_read_finish_store_error(read, r, NULL);
}

/* ---- from the cacher ---- */

/* A walk through a snapshot: at once if the list is small, otherwise in steps on the pool. */
struct walk {
        struct hfd_work_task task; /* first member: step casts it back to the walk */
        struct hfd_read *read;
        struct hfd_list_page page;
        struct hfd_snapshot snapshot; /* owned */
};

static void finish_walk(struct walk *walk) {
        struct hfd_read *read = walk->read;
        struct hfd_list_page page = walk->page;

        if (page.more) /* the next pages show the same state */
                hfd_snapshot_keep(read->registry->cacher,
                                  hfd_resource_stored(read->request->resource), &walk->snapshot);
        hfd_snapshot_done(&walk->snapshot);
        free(walk);
        finish_page(read, &page);
}

/* The client has left, or the server stops. */
static void cancel_walk(struct walk *walk) {
        struct hfd_read *read = walk->read;

        hfd_list_page_done(&walk->page);
        hfd_snapshot_done(&walk->snapshot);
        free(walk);
        hfd_read_finish_store_error(read, HF_E_CANCELED, NULL);
}

static enum hfd_work_result walk_step(struct hfd_work_task *task) {
        struct walk *walk = (struct walk *)task;
        const struct hfd_read *read = walk->read;
        const atomic_bool *abandoned = read->request->abandoned;

        if (hfd_work_is_cancelled(read->registry->work, task) ||
            (abandoned && atomic_load_explicit(abandoned, memory_order_relaxed)))
                cancel_walk(walk);
        else if (!hfd_list_page_walk(&walk->page, read, &walk->snapshot, STEP_OBJECTS))
                return HFD_WORK_MORE;
        else
                finish_walk(walk);
        return HFD_WORK_DONE;
}

/* Whether the objects are so few, and so small, that they are listed on the current thread. */
static bool is_small(const struct walk *walk) {
        struct hfd_object_iter iter;
        const struct hfd_object *object;
        size_t n = 0, bytes = 0;

        hfd_object_iter_init(&iter, &walk->snapshot.objects, &walk->read->range->scope,
                             walk->read->range->start);
        while (n <= INLINE_OBJECTS && bytes <= INLINE_BYTES &&
               (object = hfd_object_iter_next(&iter)) != NULL) {
                n++;
                bytes += hfd_object_size(object);
        }
        return n <= INLINE_OBJECTS && bytes <= INLINE_BYTES;
}

/* A whole list needs no walk: its body renders the snapshot while the client reads it, and shares
 * the rendering with other requests for the same list. */
static void finish_whole_list(struct walk *walk) {
        struct hfd_read *read = walk->read;
        const struct hfd_options *options = &read->request->options;
        const struct hfd_rendering_spec spec = {.request = read->request,
                                                .labels = &options->labels,
                                                .fields = &options->fields};
        struct hfd_rendering *rendering = NULL;
        struct hf__strbuf meta = {0};

        walk->page.revision = walk->snapshot.revision;
        append_metadata(&meta, &walk->page);
        (void)hfd_rendering_get(read->registry->renderings, &spec, &walk->snapshot, &rendering);
        free(walk);
        finish_with_body(read, &meta, rendering);
        hf__strbuf_done(&meta);
}

/*
 * Whether the limit is ignored. With resourceVersion "0" it is, as in Kubernetes' cache: the first
 * list of an informer has that and a limit, and expects all objects in one response, without a
 * token. A list that a webhook converts keeps its limit, because it is in memory as a whole. A list
 * from the store keeps its limit, too.
 */
static bool ignores_limit(const struct hfd_request *request) {
        const struct hfd_options *o = &request->options;

        return o->has_revision && !o->revision && !o->continue_token &&
               !hfd_read_needs_version(request);
}

/*
 * Lists from the cacher if it has the required state, otherwise from the store. Other requests may
 * need this thread, so only a small list is made here.
 */
static void list_from_cacher(struct hfd_read *read) {
        struct hfd_request *request = read->request;
        struct walk *walk = calloc(1, sizeof *walk);
        struct hfd_sealed_value sealed;

        if (!walk) {
                hfd_read_finish_store_error(read, -ENOMEM, NULL);
                return;
        }
        walk->task = (struct hfd_work_task){.step = walk_step, .owner = request->owner};
        walk->read = read;
        if (!hfd_snapshot_take(read->registry->cacher, hfd_resource_stored(request->resource),
                               read->at, &walk->snapshot)) {
                free(walk);
                list_from_store(read);
                return;
        }
        if (!read->on_objects && ignores_limit(request))
                request->options.limit = 0;
        if (hfd_stored_value_find_sealed(&walk->snapshot.unreadable, read->registry->prefix,
                                         request->resource, &read->range->scope, &sealed)) {
                hfd_snapshot_done(&walk->snapshot);
                free(walk);
                hfd_read_finish_sealed(read, sealed.key, sealed.why);
        } else if (is_small(walk)) {
                bool complete = hfd_list_page_walk(&walk->page, read, &walk->snapshot, SIZE_MAX);
                assert(complete);
                (void)complete;
                finish_walk(walk);
        } else if (request->takes_list_body && !request->options.limit && !read->on_objects &&
                   !*read->range->start && !hfd_read_needs_version(request)) {
                finish_whole_list(walk);
        } else if (!hfd_work_submit(read->registry->work, &walk->task)) {
                cancel_walk(walk);
        }
}

/* ---- start ---- */

static void on_list_ready(struct hfd_consistent_read *wait) {
        hfd_read_continue((struct hfd_read *)wait, list_from_cacher, list_from_store);
}

void hfd_list(struct hfd_registry *registry, struct hfd_request *request) {
        hfd_list_objects(registry, request, NULL);
}

/* Lists a page after the first one. */
static void continue_list(struct hfd_read *read) {
        const char *token = read->request->options.continue_token;
        struct hfd_response response = {0};

        if (!hfd_continue_token_parse(token, &read->at, read->range->start,
                                      sizeof read->range->start)) {
                hfd_response_bad_request(&response,
                                         "invalid continue token: continue key is not "
                                         "valid: %.100s",
                                         token);
                hfd_read_finish(read, &response);
        } else if (read->at) {
                list_from_cacher(read);
        } else {
                hfd_consistent_read_start(read->registry->cacher, &read->wait);
        }
}

void hfd_list_objects(struct hfd_registry *registry, struct hfd_request *request,
                      hfd_list_objects_fn on_objects) {
        struct hfd_read *read = hfd_read_new(registry, request, 1, on_list_ready);
        const struct hfd_options *o = &request->options;

        if (!read)
                return;
        read->on_objects = on_objects;
        hfd_object_scope(request->resource, hfd_selector_namespace(&o->fields, request->ns),
                         hfd_selector_name(&o->fields), &read->range->scope);
        if (o->continue_token) {
                continue_list(read);
        } else if (o->match == HFD_MATCH_EXACT ||
                   (o->limit && o->revision && o->match == HFD_MATCH_UNSET)) {
                /* As in Kubernetes: with a limit, a resourceVersion other than "0" and without a
                 * resourceVersionMatch means Exact. */
                read->at = o->revision;
                list_from_cacher(read);
        } else {
                hfd_read_start(read);
        }
}
