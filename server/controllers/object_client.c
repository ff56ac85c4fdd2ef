/* SPDX-License-Identifier: Apache-2.0 */
#include "server/controllers/object_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

/* ---- lists of strings ---- */

static bool is_text(const struct hf__json *value, const char *text) {
        return hf__json_is_string(value) && strcmp(hf__json_text(value), text) == 0;
}

bool hfd_list_has(const struct hf__json *object, const char *path, const char *text) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, path)); m;
             m = hf__json_next(m))
                if (is_text(m, text))
                        return true;
        return false;
}

int hfd_list_add(struct hf__json *object, const char *path, const char *text) {
        if (hfd_list_has(object, path, text))
                return 0;
        struct hf__json *list = hf__json_path(object, path);
        if (!hf__json_is_array(list)) {
                int r = hf__json_set(object, path, hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, path);
        }
        return hf__json_append_string(list, text);
}

int hfd_list_drop(struct hf__json *object, const char *path, const char *text) {
        struct hf__json *kept = hf__json_array();
        int r = kept ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, path)); r == 0 && m;
             m = hf__json_next(m))
                if (!is_text(m, text))
                        r = hf__json_append(kept, hf__json_dup(m));
        if (r == 0 && hf__json_count(kept) > 0)
                return hf__json_set(object, path, kept);
        if (r == 0)
                hf__json_remove(object, path);
        hf__json_free(kept);
        return r;
}

/* ---- calls ---- */

int hfd_object_cached(struct hf_informer *informer, const char *ns, const char *name,
                      struct hf__json **ret_object) {
        char *text;
        size_t n;
        int r = hf_informer_get(informer, ns, name, &text, &n);

        if (r != 0)
                return r;
        r = hf__json_parse(text, n, ret_object, NULL);
        free(text);
        return r;
}

int hfd_object_read(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                    const char *name, struct hf__json **ret_object) {
        struct hf_request request = {.verb = HF_VERB_GET,
                                     .resource = *resource,
                                     .ns = ns,
                                     .name = name};
        struct hf_status status;
        char *text = NULL;
        size_t n = 0;
        int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), &text, &n,
                             &status);

        if (r == 0)
                r = hf__json_parse(text, n, ret_object, NULL);
        free(text);
        return r;
}

static int write_object(struct hf_term *term, struct hf_request *request,
                        const struct hf__json *object) {
        struct hf__strbuf body = {0};
        struct hf_status status;

        hf__json_print(object, &body);
        int r = body.error;
        if (r == 0) {
                request->body = body.data;
                request->n_body = body.n;
                r = hf_client_do(hf_term_client(term), request, hf_term_abort(term), NULL, NULL,
                                 &status);
        }
        hf__strbuf_done(&body);
        return r;
}

int hfd_object_create(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                      const struct hf__json *object) {
        struct hf_request request = {.verb = HF_VERB_CREATE, .resource = *resource, .ns = ns};
        return write_object(term, &request, object);
}

int hfd_object_update(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                      const char *name, const char *subresource, const struct hf__json *object) {
        struct hf_request request = {.verb = HF_VERB_UPDATE,
                                     .resource = *resource,
                                     .ns = ns,
                                     .name = name,
                                     .subresource = subresource};
        return write_object(term, &request, object);
}

static void delete_options(const struct hfd_delete *what, struct hf__strbuf *out) {
        hf__strbuf_puts(out, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"");
        if (what->policy)
                hf__strbuf_printf(out, ",\"propagationPolicy\":\"%s\"", what->policy);
        if (what->uid || what->resource_version) {
                const char *comma = "";
                hf__strbuf_puts(out, ",\"preconditions\":{");
                if (what->uid) {
                        hf__strbuf_puts(out, "\"uid\":");
                        hf__strbuf_json(out, what->uid, strlen(what->uid));
                        comma = ",";
                }
                if (what->resource_version) {
                        hf__strbuf_printf(out, "%s\"resourceVersion\":", comma);
                        hf__strbuf_json(out, what->resource_version,
                                        strlen(what->resource_version));
                }
                hf__strbuf_putc(out, '}');
        }
        hf__strbuf_putc(out, '}');
}

int hfd_object_delete(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                      const char *name, const struct hfd_delete *what) {
        struct hf__strbuf body = {0};
        struct hf_status status;

        delete_options(what, &body);
        int r = body.error;
        if (r == 0) {
                struct hf_request request = {.verb = HF_VERB_DELETE,
                                             .resource = *resource,
                                             .ns = ns,
                                             .name = name,
                                             .body = body.data,
                                             .n_body = body.n};
                r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                                 &status);
        }
        hf__strbuf_done(&body);
        return r;
}
