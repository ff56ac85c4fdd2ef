/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list verb collects objects, applies the selectors, and renders the rest as one body. read.c
 * describes which state a list may see, except for two cases, which are handled here: all pages of
 * a list show the state of its first page, and a client may ask for exactly one revision.
 *
 *      cacher  if it has the required state: takes references to its objects
 *      store   otherwise: creates objects from the stored values at one revision
 *
 * Invariant: under the cacher's lock, objects are only collected. Selectors are applied after the
 * lock was released, because they may have to parse the objects. Rendering comes last.
 */
#include "server/registry/list.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/cacher/store_request.h"
#include "server/registry/table.h"

#define LIST_MAX_BYTES (512u << 20)
#define CONTINUE_END   "\\u0000\"}"
#define TOKEN_MAX      2048

/* ---- the page: the collected objects ---- */

struct page {
        struct hfd_read *read;       /* borrowed */
        struct hfd_object **objects; /* owned, with their references; in the order of paths */
        size_t n, space;
        uint64_t limit;    /* of selected objects; 0 = no limit */
        uint64_t revision; /* of the list */
        bool from_store;
        bool more;          /* there are objects beyond the limit */
        size_t n_remaining; /* collected objects beyond the limit */
        bool failed;        /* out of memory */
};

static void page_deinit(struct page *page) {
        for (size_t i = 0; i < page->n; i++)
                hfd_object_unref(page->objects[i]);
        free(page->objects);
}

/*
 * Appends object with a new reference. False: out of memory, and page->failed is set. May run under
 * the cacher's lock.
 */
static bool page_add(struct page *page, struct hfd_object *object) {
        if (page->n == page->space) {
                size_t space = page->space ? page->space * 2 : 32;
                struct hfd_object **more = realloc(page->objects, space * sizeof *more);
                if (!more) {
                        page->failed = true;
                        return false;
                }
                page->objects = more;
                page->space = space;
        }
        page->objects[page->n++] = hfd_object_ref(object);
        return true;
}

static bool selectors_match(const struct hfd_request *request, struct hfd_object *object) {
        return hfd_selector_matches(&request->options.labels, object) &&
               hfd_selector_matches(&request->options.fields, object);
}

/* Drops the objects that the selectors do not match, and those beyond the limit. */
static void page_select(struct page *page) {
        const struct hfd_request *request = page->read->request;
        size_t n = 0;

        for (size_t i = 0; i < page->n; i++) {
                struct hfd_object *object = page->objects[i];
                if (page->limit && n == page->limit) {
                        page->more = true;
                        page->n_remaining += page->n - i;
                        for (; i < page->n; i++)
                                hfd_object_unref(page->objects[i]);
                        break;
                }
                if (selectors_match(request, object))
                        page->objects[n++] = object;
                else
                        hfd_object_unref(object);
        }
        assert(!page->limit || n <= page->limit);
        page->n = n;
}

/* ---- continue tokens ---- */

/*
 * Appends a continue token in Kubernetes' format: the next page begins after path, at revision. The
 * token is unpadded base64url of {"v":"meta.k8s.io/v1","rv":N,"start":"path\0"}.
 */
static void append_continue_token(struct hf__strbuf *out, uint64_t revision, const char *path) {
        struct hf__strbuf json = {0};

        hf__strbuf_printf(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%" PRId64 ",\"start\":",
                          (int64_t)revision);
        hf__strbuf_json(&json, path, strlen(path));
        if (!json.error)
                json.n--; /* drop the closing quote, which CONTINUE_END contains */
        hf__strbuf_puts(&json, CONTINUE_END);
        if (!json.error)
                hf__base64url_encode(out, json.data, json.n);
        hf__strbuf_done(&json);
}

/* Sets read->at and read->start. False: append_continue_token cannot have created this token. */
static bool parse_continue_token(struct hfd_read *read, const char *token) {
        char json[HF__BASE64URL_DECODED_MAX(TOKEN_MAX) + 1];
        size_t n, n_token = strlen(token);
        int64_t revision;
        struct hf__json *tree = NULL;

        if (n_token > TOKEN_MAX || !hf__base64url_decode(token, n_token, json, &n))
                return false;
        json[n] = '\0';
        /*
         * Cut off the escaped NUL after the path before parsing. Otherwise a NUL anywhere in the
         * path would go unnoticed, because the parsed string would end there.
         */
        size_t n_end = sizeof CONTINUE_END - 1;
        if (n < n_end || memcmp(json + n - n_end, CONTINUE_END, n_end) != 0)
                return false;
        memcpy(json + n - n_end, "\"}", 3);
        if (hf__json_parse(json, strlen(json), &tree, NULL))
                return false;
        const char *start = hf__json_string(tree, "start"), *version = hf__json_string(tree, "v");
        bool good = version && strcmp(version, "meta.k8s.io/v1") == 0 &&
                    hf__json_i64(tree, "rv", &revision) && start &&
                    strlen(start) < sizeof read->start && !strstr(start, "..") && *start != '/';
        if (good) {
                (void)snprintf(read->start, sizeof read->start, "%s", start);
                /* -1: the first page's state is compacted, so continue with the current state. */
                read->at = revision > 0 ? (uint64_t)revision : 0;
        }
        hf__json_free(tree);
        return good;
}

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
static void append_metadata(struct hf__strbuf *meta, const struct page *page) {
        const struct hfd_options *o = &page->read->request->options;

        hf__strbuf_printf(meta, "\"resourceVersion\":\"%" PRIu64 "\"", page->revision);
        if (!page->more || !page->n)
                return;
        hf__strbuf_puts(meta, ",\"continue\":\"");
        append_continue_token(meta, page->revision, page->objects[page->n - 1]->path);
        hf__strbuf_putc(meta, '"');
        /* As in Kubernetes: with selectors, the number of remaining matches is not known. */
        if (!page->from_store && !o->labels.n && !o->fields.n)
                hf__strbuf_printf(meta, ",\"remainingItemCount\":%zu", page->n_remaining);
}

/* Ends the read: passes the objects to read->on_objects, or sends a response. */
static void finish_page(struct page *page) {
        struct hfd_read *read = page->read;
        struct hfd_request *request = read->request;
        hfd_list_objects_fn on_objects = read->on_objects;
        struct hfd_response response = {0};
        struct hf__strbuf meta = {0};

        page_select(page);
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
        page_deinit(page);
        hfd_read_finish(read, &response);
}

/*
 * Responds 410: the state of the first page is compacted. The token in the response lets the client
 * continue with the current state.
 */
static void finish_expired(struct hfd_read *read) {
        struct hfd_response response = {0};
        struct hf__strbuf token = {0};

        append_continue_token(&token, (uint64_t)-1, read->start); /* -1: parse_continue_token */
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
        struct page page = {.read = read,
                            .revision = read->at ? read->at : reply->revision,
                            .limit = read->request->options.limit,
                            .from_store = true,
                            .more = reply->more};

        if (reply->error == HF_E_GONE && read->request->options.continue_token) {
                finish_expired(read);
                return;
        }
        if (reply->error) {
                hfd_read_finish_store_error(read, reply->error, &reply->status);
                return;
        }
        for (size_t i = 0; i < reply->n_kvs && !page.failed; i++) {
                const char *path;
                const struct hfd_resource *resource =
                        hfd_object_key_parse(read->registry->prefix, reply->kvs[i].key, &path);
                if (resource != read->request->resource || !reply->kvs[i].value)
                        continue;
                struct hfd_object *object =
                        hfd_object_new(resource, path, reply->kvs[i].mod_revision,
                                       reply->kvs[i].value);
                if (object)
                        page_add(&page, object);
                hfd_object_unref(object);
        }
        finish_page(&page);
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

static bool collect_object(void *ctx, struct hfd_object *object) { return page_add(ctx, object); }

/* Lists from the cacher if it has the required state, otherwise from the store. */
static void list_from_cacher(struct hfd_read *read) {
        struct page page = {.read = read, .limit = read->request->options.limit};
        char prefix[HF_NAME_MAX + 2];

        scope_prefix(read, prefix);
        if (hfd_cacher_list(read->registry->cacher, read->request->resource, read->at, prefix,
                            read->start, collect_object, &page, &page.revision))
                finish_page(&page);
        else
                list_from_store(read);
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

        if (!parse_continue_token(read, token)) {
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
