/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memo of a connection. A request uses a part of it only if nothing has changed on which that
 * part depends:
 *
 * - the path: method and path up to the last slash are the same, and the last segment is a plain
 *   name. Such a path differs from the remembered one in the name only, because
 *   hfd_request_memo_keep leaves out paths whose last segment can be more than a name.
 * - the flow: in addition, the index of FlowSchemas is the current one, and user and groups are the
 *   same. A match does not depend on the name of the object (flow_rule.c), unless that is a
 *   Namespace, whose name counts as the namespace: hfd_request_memo_keep leaves those out.
 *
 * Rights are not remembered: each request is authorized.
 *
 * Invariant: a memo has a reference to its index, so no other index can get that address. Therefore
 * the memo's index is the current one if both have the same address.
 */
#include "server/filters/request/request_memo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/flow/flow_control.h"

#define METHOD_MAX 8 /* bytes, with the NUL */
#define PREFIX_MAX 512

struct memo {
        /* The path that is known. */
        char method[METHOD_MAX];
        size_t n_prefix;
        struct hfd_request_info info; /* its strings are in text; its name has no meaning */
        struct hfd_request_labels labels;
        size_t n_text; /* bytes of the strings without the name */
        /* The flow of its requests; index NULL = not known. */
        struct hfd_flow_index *index;       /* owned reference */
        const struct hfd_flow_match *match; /* borrowed from the index */
        struct hfd_requester *user;         /* owned */
        char text[]; /* the strings, then the path with the last slash, without a NUL */
};

static void memo_free(void *ctx) {
        struct memo *memo = ctx;

        hfd_flow_index_unref(memo->index);
        free(memo->user);
        free(memo);
}

static struct memo *memo_of(struct hfd_http_request *request) {
        return hfd_http_request_connection_context(request);
}

/* ---- the path ---- */

/* The length of name, if it is one segment of ASCII that needs no decoding, is not too long and
 * does not begin with a dot. Otherwise 0: the parser decides what it is. */
static size_t plain_name(const char *name) {
        size_t n = strlen(name);
        unsigned bad = 0;

        if (n == 0 || n > HF_NAME_MAX || name[0] == '.')
                return 0;
        for (size_t i = 0; i < n; i++)
                bad |= (name[i] == '/') | (name[i] == '%') | ((unsigned char)name[i] >= 0x7f);
        return bad == 0 ? n : 0;
}

static bool knows_request(const struct memo *memo, const char *method, const char *path) {
        return strcmp(memo->method, method) == 0 &&
               strncmp(memo->text + memo->n_text, path, memo->n_prefix) == 0;
}

size_t hfd_request_memo_find(struct hfd_http_request *request, const char **ret_name) {
        const struct memo *memo = memo_of(request);
        const char *path = hfd_http_request_path(request);

        if (!memo || !knows_request(memo, hfd_http_request_method(request), path))
                return 0;
        size_t n = plain_name(path + memo->n_prefix);
        if (n == 0)
                return 0;
        *ret_name = path + memo->n_prefix;
        return memo->n_text + n + 1;
}

void hfd_request_memo_recall(struct hfd_http_request *request, const char *name,
                             struct hfd_request_info *info, struct hfd_request_labels *labels,
                             char *text) {
        const struct memo *memo = memo_of(request);
        const struct hfd_request_info *known = &memo->info;
        assert(memo && memo->n_text > 0);

        memcpy(text, memo->text, memo->n_text);
        (void)stpcpy(text + memo->n_text, name);
        *info = *known;
        info->group = text + (known->group - memo->text);
        info->version = text + (known->version - memo->text);
        info->resource = text + (known->resource - memo->text);
        info->subresource = text + (known->subresource - memo->text);
        info->ns = text + (known->ns - memo->text);
        info->name = text + memo->n_text;
        *labels = memo->labels;
}

/* The bytes of the path before the name. 0: the memo does not keep the path. */
static size_t prefix_of(const struct hfd_request_info *info, const char *path) {
        const char *slash = strrchr(path, '/');

        /* Left out: paths whose last segment is not the name; and Namespaces, because rules of
         * flows see the name of one as the namespace (hfd_request_attributes), so the match of
         * one is not that of another. */
        if (!slash || !info->valid_path || !info->is_resource || !info->verb[0] ||
            info->subresource[0] || strcmp(info->resource, "namespaces") == 0 ||
            strcmp(slash + 1, info->name) != 0 || plain_name(info->name) == 0)
                return 0;
        return (size_t)(slash + 1 - path);
}

void hfd_request_memo_keep(struct hfd_http_request *request, const struct hfd_request_info *info,
                           struct hfd_request_labels labels, const char *text) {
        const char *method = hfd_http_request_method(request);
        const char *path = hfd_http_request_path(request);
        size_t n_prefix = prefix_of(info, path), n_text = (size_t)(info->name - text);

        if (n_prefix == 0 || n_prefix > PREFIX_MAX || strlen(method) >= METHOD_MAX)
                return;
        struct memo *memo = malloc(sizeof *memo + n_text + n_prefix);
        if (!memo)
                return; /* out of memory: the next request is parsed again */
        *memo = (struct memo){.n_prefix = n_prefix,
                              .info = *info,
                              .labels = labels,
                              .n_text = n_text};
        (void)stpcpy(memo->method, method);
        memcpy(memo->text, text, n_text);
        memcpy(memo->text + n_text, path, n_prefix);
        memo->info.group = memo->text + (info->group - text);
        memo->info.version = memo->text + (info->version - text);
        memo->info.resource = memo->text + (info->resource - text);
        memo->info.subresource = memo->text + (info->subresource - text);
        memo->info.ns = memo->text + (info->ns - text);
        memo->info.name = "";
        hfd_http_request_set_connection_context(request, memo, memo_free);
}

/* ---- the flow ---- */

static bool is_same_user(const struct hfd_subject *a, const struct hfd_subject *b) {
        if (strcmp(a->name, b->name) != 0 || a->n_groups != b->n_groups)
                return false;
        for (size_t i = 0; i < a->n_groups; i++)
                if (strcmp(a->groups[i], b->groups[i]) != 0)
                        return false;
        return true;
}

/* The memo, if it knows the path of the request. NULL: there is no memo, or the path is another
 * one, such as that of a subresource or of the collection. */
static struct memo *memo_about(struct hfd_http_request *request) {
        struct memo *memo = memo_of(request);
        const char *name;

        return memo && hfd_request_memo_find(request, &name) > 0 ? memo : NULL;
}

const struct hfd_flow_match *hfd_request_memo_flow(struct hfd_http_request *request,
                                                   const struct hfd_flow_control *flow,
                                                   const struct hfd_subject *subject,
                                                   struct hfd_flow_index **ret_index) {
        const struct memo *memo = memo_about(request);

        if (!memo || !memo->index || !hfd_flow_control_has(flow, memo->index) ||
            !is_same_user(&memo->user->subject, subject))
                return NULL;
        *ret_index = hfd_flow_index_ref(memo->index);
        return memo->match;
}

void hfd_request_memo_keep_flow(struct hfd_http_request *request, const struct hfd_user *user,
                                struct hfd_flow_index *index, const struct hfd_flow_match *match) {
        struct memo *memo = memo_about(request);

        if (!memo)
                return;
        hfd_flow_index_unref(memo->index);
        free(memo->user);
        memo->user = hfd_requester_new(user);
        memo->index = memo->user ? hfd_flow_index_ref(index) : NULL;
        memo->match = match;
}
