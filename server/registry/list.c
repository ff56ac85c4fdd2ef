/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list verb collects objects, applies the selectors, and renders the rest as one body. read.c
 * describes which state a list may see, except for two cases, which are handled here: all pages of
 * a list show the state of its first page, and a client may ask for exactly one revision.
 *
 *      cacher  while it knows the required state: takes a snapshot of it
 *      store   otherwise: creates objects from the stored values at one revision
 *
 * list_page.c selects the objects of a page. Invariant: nothing here runs under the cacher's lock.
 */
#include "server/registry/list.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/cacher/snapshot.h"
#include "server/cacher/store_request.h"
#include "server/registry/continue_token.h"
#include "server/registry/list_page.h"
#include "server/registry/table.h"

#define LIST_MAX_BYTES (512u << 20)

/* ---- the response ---- */

struct hf__buf *hfd_list_render(struct hfd_registry *registry, const struct hfd_request *request,
                                struct hfd_object *const *objects, size_t n, const char *meta) {
        struct hf__strbuf s = {.max = LIST_MAX_BYTES};
        char version[128];

        hfd_resource_api_version(request->resource, version);
        if (request->format == HFD_AS_TABLE)
                return hfd_table_render(registry, request, objects, n, meta);
        if (request->format == HFD_AS_PARTIAL)
                hf__strbuf_printf(&s,
                                  "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta."
                                  "k8s.io/v1\",\"metadata\":{%s},\"items\":[",
                                  meta);
        else
                hf__strbuf_printf(&s,
                                  "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{%s},"
                                  "\"items\":[",
                                  request->resource->kind, version, meta);
        for (size_t i = 0; i < n; i++) {
                if (i)
                        hf__strbuf_putc(&s, ',');
                struct hf__buf *partial = request->format == HFD_AS_PARTIAL
                                                  ? hfd_table_render_partial(objects[i])
                                                  : NULL;
                const struct hf__buf *bytes = partial ? partial : objects[i]->bytes;
                hf__strbuf_add(&s, bytes->data, bytes->n);
                hf__buf_unref(partial);
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

/* Ends the read: passes the objects to read->on_objects, or sends a response. */
static void finish_page(struct hfd_read *read, struct hfd_list_page *page) {
        struct hfd_request *request = read->request;
        hfd_list_objects_fn on_objects = read->on_objects;
        struct hfd_response response = {0};
        struct hf__strbuf meta = {0};

        if (on_objects && !page->failed) {
                free(read);
                on_objects(request, page->objects, page->n, page->revision);
                return;
        }
        append_metadata(&meta, page);
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

/*
 * Responds 410: the state of the first page is compacted. The token in the response lets the client
 * continue with the current state.
 */
static void finish_expired(struct hfd_read *read) {
        struct hfd_response response = {0};
        struct hf__strbuf token = {0};

        hfd_continue_token_append(&token, HFD_CONTINUE_CURRENT, read->start);
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

/* Writes the prefix of the listed paths: the namespace, or "" for all. */
static void scope_prefix(const struct hfd_read *read, char prefix[HF_NAME_MAX + 2]) {
        if (read->request->resource->namespaced && *read->request->ns)
                (void)snprintf(prefix, HF_NAME_MAX + 2, "%s/", read->request->ns);
        else
                *prefix = '\0';
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
        hfd_list_page_from_store(&page, read, reply);
        finish_page(read, &page);
}

static void list_from_store(struct hfd_read *read) {
        struct hfd_registry *registry = read->registry;
        const struct hfd_options *o = &read->request->options;
        char prefix[HF_NAME_MAX + 2], key[HFD_KEY_MAX], start[HFD_KEY_MAX];
        size_t limit = 0;
        int r;

        scope_prefix(read, prefix);
        r = hfd_object_key(registry->prefix, read->request->resource, prefix, key);
        if (r == 0 && *read->start)
                r = hfd_object_key(registry->prefix, read->request->resource, read->start, start);
        /* The lowest possible key after the last one: no key contains a byte below 0x01. */
        if (r == 0 && *read->start && strlen(start) + 1 < sizeof start)
                strcat(start, "\x01");
        /*
         * With selectors all objects are read, because the limit counts only those that match.
         * Otherwise one object more than the limit is read, which shows whether more follow.
         */
        if (o->limit && !o->labels.n && !o->fields.n)
                limit = (size_t)o->limit + 1;
        if (r == 0)
                r = hfd_store_request_list(registry->cacher, key, *read->start ? start : NULL,
                                           read->at, limit, read->request->deadline, on_store_list,
                                           read);
        if (r != 0)
                hfd_read_finish_store_error(read, r, NULL);
}

/* ---- from the cacher ---- */

/* Lists from the cacher if it has the required state, otherwise from the store. */
static void list_from_cacher(struct hfd_read *read) {
        struct hfd_cacher *cacher = read->registry->cacher;
        struct hfd_list_page page = {0};
        char prefix[HF_NAME_MAX + 2];
        struct hfd_snapshot snapshot;

        if (!hfd_cacher_snapshot(cacher, read->request->resource, read->at, &snapshot)) {
                list_from_store(read);
                return;
        }
        scope_prefix(read, prefix);
        hfd_list_page_from_snapshot(&page, read, &snapshot, prefix);
        if (page.more)
                hfd_cacher_keep_snapshot(cacher, read->request->resource, &snapshot);
        hfd_snapshot_done(&snapshot);
        finish_page(read, &page);
}

/* ---- start ---- */

static void on_list_ready(struct hfd_consistent_read *wait) {
        struct hfd_read *read = (struct hfd_read *)wait;

        if (wait->outcome == 0)
                list_from_cacher(read);
        else if (wait->outcome != HF_E_TIMEOUT)
                hfd_read_finish_store_error(read, wait->outcome, &wait->status);
        else if (read->too_large_if_late && hfd_cacher_synced(read->registry->cacher))
                hfd_read_finish_too_large(read);
        else
                list_from_store(read);
}

void hfd_list(struct hfd_registry *registry, struct hfd_request *request) {
        hfd_list_objects(registry, request, NULL);
}

/* Lists a page after the first one. */
static void continue_list(struct hfd_read *read) {
        const char *token = read->request->options.continue_token;
        struct hfd_response response = {0};

        if (!hfd_continue_token_parse(token, &read->at, read->start, sizeof read->start)) {
                hfd_response_bad_request(&response, "continue key is not valid: %.100s", token);
                hfd_read_finish(read, &response);
        } else if (read->at) {
                list_from_cacher(read);
        } else {
                hfd_consistent_read_start(read->registry->cacher, &read->wait);
        }
}

void hfd_list_objects(struct hfd_registry *registry, struct hfd_request *request,
                      hfd_list_objects_fn on_objects) {
        struct hfd_read *read = hfd_read_new(registry, request, on_list_ready);
        const struct hfd_options *o = &request->options;

        if (!read)
                return;
        read->on_objects = on_objects;
        if (o->continue_token) {
                continue_list(read);
        } else if (o->match == HFD_MATCH_EXACT ||
                   (o->limit && o->revision && o->match == HFD_MATCH_UNSET)) {
                /* As in Kubernetes: with a limit, a revision without a match means Exact. */
                read->at = o->revision;
                list_from_cacher(read);
        } else {
                hfd_read_start(read);
        }
}
