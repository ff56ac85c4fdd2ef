/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list: collected under the cache's mutex by reference, selected and rendered after it was
 * released. Which state a list may see is told in read.c.
 */
#include "server/registry/list.h"

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

struct page {
        struct hfd_object **objects; /* owned references */
        size_t n, space, n_bytes;
        size_t n_left; /* selected by place, but beyond the limit */
        uint64_t limit;
        uint64_t revision;
        bool failed, more, from_store;
        struct hfd_read *read;
};

static void page_done(struct page *page) {
        for (size_t i = 0; i < page->n; i++)
                hfd_object_unref(page->objects[i]);
        free(page->objects);
}

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
        page->n_bytes += object->bytes->n + 1;
        page->objects[page->n++] = hfd_object_ref(object);
        return true;
}

static bool selectors_match(const struct hfd_request *request, struct hfd_object *object) {
        return hfd_selector_matches(&request->options.labels, object) &&
               hfd_selector_matches(&request->options.fields, object);
}

/* Drops what the selectors do not take and what is beyond the limit. Not under mu: selectors may
 * parse. */
static void page_select(struct page *page) {
        const struct hfd_request *request = page->read->request;
        size_t n = 0;

        for (size_t i = 0; i < page->n; i++) {
                struct hfd_object *object = page->objects[i];
                if (page->limit && n == page->limit) {
                        page->more = true;
                        page->n_left += page->n - i;
                        for (; i < page->n; i++)
                                hfd_object_unref(page->objects[i]);
                        break;
                }
                if (selectors_match(request, object)) {
                        page->objects[n++] = object;
                } else {
                        page->n_bytes -= object->bytes->n + 1;
                        hfd_object_unref(object);
                }
        }
        page->n = n;
}

/* The token of apiserver.md 3.6: unpadded base64url of
 * {"v":"meta.k8s.io/v1","rv":N,"start":"path\0"}. */
static void continue_token(struct hf__strbuf *out, uint64_t revision, const char *path) {
        struct hf__strbuf json = {0};

        hf__strbuf_printf(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%" PRId64 ",\"start\":",
                          (int64_t)revision);
        hf__strbuf_json(&json, path, strlen(path));
        if (!json.error)
                json.n--; /* the quote again */
        hf__strbuf_puts(&json, CONTINUE_END);
        if (!json.error)
                hf__base64url_encode(out, json.data, json.n);
        hf__strbuf_done(&json);
}

/* Fills read->at and read->start; false when it is none of our tokens. */
static bool read_continue(struct hfd_read *read, const char *token) {
        char json[HF__BASE64URL_DECODED_MAX(TOKEN_MAX) + 1];
        size_t n, n_token = strlen(token);
        int64_t revision;
        struct hf__json *tree = NULL;

        if (n_token > TOKEN_MAX || !hf__base64url_decode(token, n_token, json, &n))
                return false;
        json[n] = '\0';
        /* The start's NUL is written as an escape, which no C string can hold: it is cut off before
         * parsing. */
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
                read->at = revision > 0 ? (uint64_t)revision
                                        : 0; /* -1: go on with whatever is there now */
        }
        hf__json_free(tree);
        return good;
}

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

static void answer_page(struct page *page) {
        struct hfd_read *read = page->read;
        struct hfd_response response = {0};
        struct hf__strbuf meta = {0};
        const struct hfd_options *o = &read->request->options;

        page_select(page);
        if (read->take && !page->failed) {
                struct hfd_request *request = read->request;
                hfd_list_fn take = read->take;
                free(read);
                take(request, page->objects, page->n, page->revision);
                return;
        }
        hf__strbuf_printf(&meta, "\"resourceVersion\":\"%" PRIu64 "\"", page->revision);
        if (page->more && page->n) {
                hf__strbuf_puts(&meta, ",\"continue\":\"");
                continue_token(&meta, page->revision, page->objects[page->n - 1]->path);
                hf__strbuf_putc(&meta, '"');
                if (!page->from_store && !o->labels.n && !o->fields.n)
                        hf__strbuf_printf(&meta, ",\"remainingItemCount\":%zu", page->n_left);
        }
        if (page->failed || meta.error)
                hfd_response_no_memory(&response);
        else
                hfd_response_ok(&response, 200,
                                hfd_list_render(read->registry, read->request, page->objects,
                                                page->n, meta.data));
        hf__strbuf_done(&meta);
        page_done(page);
        hfd_read_finish(read, &response);
}

static void place_of(const struct hfd_read *read, char prefix[HF_NAME_MAX + 2]) {
        if (read->request->resource->namespaced && *read->request->ns)
                (void)snprintf(prefix, HF_NAME_MAX + 2, "%s/", read->request->ns);
        else
                *prefix = '\0';
}

static bool collect(void *ctx, struct hfd_object *object) { return page_add(ctx, object); }

static void on_store_list(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_read *read = ctx;
        struct page page = {.read = read,
                            .revision = read->at ? read->at : reply->revision,
                            .limit = read->request->options.limit,
                            .from_store = true,
                            .more = reply->more};

        if (reply->error == HF_E_GONE && read->request->options.continue_token) {
                struct hfd_response response = {0};
                struct hf__strbuf token = {0};
                continue_token(&token, (uint64_t)-1, read->start);
                const struct hfd_details details = {.continue_token =
                                                            token.error ? NULL : token.data};
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
        answer_page(&page);
}

/* Straight from the store. With selectors a limit is applied after selecting, so all is read. */
static void list_store(struct hfd_read *read) {
        struct hfd_registry *registry = read->registry;
        char prefix[HF_NAME_MAX + 2], key[HFD_KEY_MAX], start[HFD_KEY_MAX];
        int r;

        place_of(read, prefix);
        r = hfd_object_key(registry->prefix, read->request->resource, prefix, key);
        if (r == 0 && *read->start)
                r = hfd_object_key(registry->prefix, read->request->resource, read->start, start);
        if (r == 0 && *read->start && strlen(start) + 1 < sizeof start)
                strcat(start, "\x01");
        bool selects = read->request->options.labels.n || read->request->options.fields.n;
        size_t limit = read->request->options.limit && !selects
                               ? (size_t)read->request->options.limit + 1
                               : 0;
        if (r == 0)
                r = hfd_store_request_list(registry->cacher, key, *read->start ? start : NULL,
                                           read->at, limit, read->request->deadline, on_store_list,
                                           read);
        if (r != 0)
                hfd_read_finish_store_error(read, r, NULL);
}

/* From the cache; false when the cache is not where the read must be. */
static bool list_cache(struct hfd_read *read) {
        struct page page = {.read = read, .limit = read->request->options.limit};
        char prefix[HF_NAME_MAX + 2];

        place_of(read, prefix);
        bool there = hfd_cacher_list(read->registry->cacher, read->request->resource, read->at,
                                     prefix, read->start, collect, &page, &page.revision);
        if (there)
                answer_page(&page);
        return there;
}

static void on_list_ready(struct hfd_consistent_read *reader) {
        struct hfd_read *read = (struct hfd_read *)reader;

        if (reader->outcome == HF_E_TIMEOUT) {
                if (read->too_large_if_late && hfd_cacher_synced(read->registry->cacher))
                        hfd_read_finish_too_large(read);
                else
                        list_store(read);
        } else if (reader->outcome) {
                hfd_read_finish_store_error(read, reader->outcome, &reader->status);
        } else if (!list_cache(read)) {
                list_store(read);
        }
}

void hfd_list(struct hfd_registry *registry, struct hfd_request *request) {
        hfd_list_for(registry, request, NULL);
}

void hfd_list_for(struct hfd_registry *registry, struct hfd_request *request, hfd_list_fn take) {
        struct hfd_read *read = hfd_read_new(registry, request, on_list_ready);
        const struct hfd_options *o = &request->options;
        struct hfd_response response = {0};

        if (!read)
                return;
        read->take = take;
        if (o->continue_token) {
                if (!read_continue(read, o->continue_token)) {
                        hfd_response_bad_request(&response, "continue key is not valid: %.100s",
                                                 o->continue_token);
                        hfd_read_finish(read, &response);
                        return;
                }
                if (!read->at)
                        hfd_consistent_read_start(registry->cacher, &read->wait);
                else if (!list_cache(read))
                        list_store(read);
                return;
        }
        if (o->match == HFD_MATCH_EXACT ||
            (o->limit && o->revision && o->match == HFD_MATCH_UNSET)) {
                read->at = o->revision;
                if (!list_cache(read))
                        list_store(read);
                return;
        }
        hfd_read_start(read);
}
