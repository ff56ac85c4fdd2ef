/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that controllers send.
 *
 * Invariant: every request uses hf_term_client and the term's abort token. A request through
 * another client could be applied after the term has ended. A request without the token could delay
 * the end of the term.
 */
#include "server/controllers/base/object_client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

/* The informer keeps each object as text, because a parsed object needs several times the memory.
 * So each look-up parses the object. */
int hfd_object_client_get_cached(struct hf_informer *informer, const char *ns, const char *name,
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

/* Sends a request, and parses the response. The status of a failure is dropped: the error code
 * tells the callers enough, and the reconcile loop logs that code when it tries the key again. */
static int receive_object(struct hf_term *term, const struct hf_request *request,
                          struct hf__json **ret_json) {
        struct hf_status status;
        char *text = NULL;
        size_t n = 0;
        int r = hf_client_do(hf_term_client(term), request, hf_term_abort(term), &text, &n,
                             &status);

        if (r == 0)
                r = hf__json_parse(text, n, ret_json, NULL);
        free(text);
        return r;
}

int hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                          const char *name, struct hf__json **ret_object) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_GET,
                                           .resource = *resource,
                                           .ns = ns,
                                           .name = name};

        return receive_object(term, &request, ret_object);
}

int hfd_object_client_list(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                           const char *query, struct hf__json **ret_list) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = *resource,
                                           .ns = ns,
                                           .query = query};

        return receive_object(term, &request, ret_list);
}

/* The response is not read: the informer delivers the new version of the object. */
static int send_object(struct hf_term *term, struct hf_request *request,
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

int hfd_object_client_create(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const struct hf__json *object) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_CREATE,
                                     .resource = *resource,
                                     .ns = ns};
        return send_object(term, &request, object);
}

int hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const char *name, const char *subresource,
                             const struct hf__json *object) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_UPDATE,
                                     .resource = *resource,
                                     .ns = ns,
                                     .name = name,
                                     .subresource = subresource};

        assert(name && *name); /* without a name the path would be that of the collection */
        return send_object(term, &request, object);
}

/* "add" replaces a member that exists, whereas "replace" would fail for one that does not. The
 * pointer is a constant of the caller, so it needs no escapes. */
static void print_change(const char *pointer, const struct hf__json *value,
                         struct hf__strbuf *out) {
        hf__strbuf_printf(out, "{\"op\":\"add\",\"path\":\"%s\",\"value\":", pointer);
        hf__json_print(value, out);
        hf__strbuf_putc(out, '}');
}

/* A patch that sets the resourceVersion is refused if the object has another one. That makes it as
 * safe as an update: the change was computed from one version, and applies to that version only. */
int hfd_object_client_patch(struct hf_term *term, const struct hf_resource *resource,
                            const char *name, const char *subresource, const char *revision,
                            const struct hfd_object_client_change *changes, size_t n_changes,
                            struct hf__json **ret_object) {
        struct hf__strbuf body = {0};

        hf__strbuf_puts(&body,
                        "[{\"op\":\"add\",\"path\":\"/metadata/resourceVersion\",\"value\":");
        hf__strbuf_json(&body, revision, strlen(revision));
        hf__strbuf_putc(&body, '}');
        for (size_t i = 0; i < n_changes; i++) {
                if (!changes[i].value)
                        continue;
                hf__strbuf_putc(&body, ',');
                print_change(changes[i].pointer, changes[i].value, &body);
        }
        hf__strbuf_putc(&body, ']');
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_PATCH,
                                           .patch = HF_PATCH_JSON,
                                           .resource = *resource,
                                           .name = name,
                                           .subresource = subresource,
                                           .body = body.data,
                                           .n_body = body.n};
        int r = body.error != 0 ? body.error : receive_object(term, &request, ret_object);
        hf__strbuf_done(&body);
        return r;
}

/*
 * The preconditions protect a newer object of the same name: the server refuses the delete if its
 * uid or resourceVersion is different. Values come from the server, so they are escaped; the policy
 * is a constant.
 */
static void print_delete_options(const struct hfd_object_client_delete_options *options,
                                 struct hf__strbuf *out) {
        hf__strbuf_puts(out, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"");
        if (options->policy)
                hf__strbuf_printf(out, ",\"propagationPolicy\":\"%s\"", options->policy);
        if (options->uid || options->resource_version) {
                const char *comma = "";
                hf__strbuf_puts(out, ",\"preconditions\":{");
                if (options->uid) {
                        hf__strbuf_puts(out, "\"uid\":");
                        hf__strbuf_json(out, options->uid, strlen(options->uid));
                        comma = ",";
                }
                if (options->resource_version) {
                        hf__strbuf_printf(out, "%s\"resourceVersion\":", comma);
                        hf__strbuf_json(out, options->resource_version,
                                        strlen(options->resource_version));
                }
                hf__strbuf_putc(out, '}');
        }
        hf__strbuf_putc(out, '}');
}

int hfd_object_client_delete(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const char *name,
                             const struct hfd_object_client_delete_options *options) {
        struct hf__strbuf body = {0};
        struct hf_status status;

        print_delete_options(options, &body);
        int r = body.error;
        if (r == 0) {
                struct hf_request request = {.size = sizeof request,
                                             .verb = HF_VERB_DELETE,
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

int hfd_object_client_ignore_stale(int r) {
        return r == HF_E_CONFLICT || r == HF_E_NOT_FOUND ? 0 : r;
}
