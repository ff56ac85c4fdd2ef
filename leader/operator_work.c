/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the requests of an operator about the object that it works on.
 *
 * Invariants: every request is sent with the term's client, so a process that no longer leads
 * writes nothing. Every function that waits for a request does so with the term's abort token: a
 * drain lets the current work finish, and an abort ends it at once.
 */
#include "leader/operator_work.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/finalizer.h>
#include <holdfast/owned.h>

#include "base/json.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"

#define MESSAGE_MAX 1024 /* bytes of an Event's message, as in hf_recorder_event */

static const struct hf__sized sized_condition = HF__SIZED(struct hf_condition, reason);

const char *hf_operator_object(const struct hf_operator_work *work, size_t *ret_n) {
        if (ret_n)
                *ret_n = work->n;
        return work->object;
}

const char *hf_operator_ns(const struct hf_operator_work *work) { return work->ns; }
const char *hf_operator_name(const struct hf_operator_work *work) { return work->name; }
struct hf_term *hf_operator_term(const struct hf_operator_work *work) {
        return work->term;
}

const struct hf_status *hf_operator_status(const struct hf_operator_work *work) {
        return &work->status;
}

/* A request about an object in the namespace of the work's object. Everything is borrowed. */
static struct hf_request request_for(const struct hf_operator_work *work,
                                     struct hf_resource resource, const char *name,
                                     const char *body) {
        return (struct hf_request){.size = sizeof(struct hf_request),
                                   .resource = resource,
                                   .ns = work->ns[0] ? work->ns : NULL,
                                   .name = name,
                                   .body = body,
                                   .n_body = body ? strlen(body) : 0};
}

int hf_operator_upsert(struct hf_operator_work *work, struct hf_resource resource, const char *name,
                       const char *body) {
        struct hf_request request = request_for(work, resource, name, body);

        return hf_owned_upsert(hf_term_client(work->term), &request, work->object, work->n,
                               hf_term_abort(work->term), NULL, &work->status);
}

static const char *group_of(const struct hf_resource *resource) {
        return resource->group ? resource->group : "";
}

static bool is_same(const struct hf_resource *a, const struct hf_resource *b) {
        return strcmp(group_of(a), group_of(b)) == 0 && strcmp(a->version, b->version) == 0 &&
               strcmp(a->plural, b->plural) == 0;
}

/* Whether the collection of the object is one of the owned collections, and no informer of it has
 * the object. An operator may own a collection twice, with different selectors; then one informer
 * has objects that another one lacks. */
static bool is_absent(const struct hf_operator_work *work, const struct hf_resource *resource,
                      const char *name) {
        const struct hf_operator *op = work->op;
        bool is_watched = false;

        for (size_t i = 0; i < op->config.n_owned; i++) {
                char *object = NULL;

                if (!is_same(&op->owned[i].resource, resource))
                        continue;
                int r = hf_informer_get(op->informers[i], work->ns, name, &object, NULL);
                free(object);
                /* An error proves nothing, so the request is sent. */
                if (r != HF_E_NOT_FOUND)
                        return false;
                is_watched = true;
        }
        return is_watched;
}

int hf_operator_delete(struct hf_operator_work *work, struct hf_resource resource,
                       const char *name) {
        struct hf_request request = request_for(work, resource, name, NULL);

        if (is_absent(work, &resource, name))
                return 0;
        return hf_owned_delete(hf_term_client(work->term), &request, work->object, work->n,
                               hf_term_abort(work->term), &work->status);
}

/* Prints the body after its name is set, and its namespace unless the work has none, so that the
 * body cannot name another object than the caller does. 0, -ENOMEM, or HF_E_INVALID. */
static int print_named(const struct hf_operator_work *work, const char *name, const char *body,
                       struct hf__strbuf *text) {
        struct hf__json *object = NULL;
        int r = hf__json_parse(body, strlen(body), &object, NULL);

        if (r == 0)
                r = hf__json_set_string(object, "metadata.name", name);
        if (r == 0 && work->ns[0])
                r = hf__json_set_string(object, "metadata.namespace", work->ns);
        if (r == 0) {
                hf__json_print(object, text);
                r = text->error;
        }
        hf__json_free(object);
        return r == -EINVAL || r == HF_E_TOO_LARGE ? HF_E_INVALID : r;
}

int hf_operator_merge(struct hf_operator_work *work, struct hf_resource resource, const char *name,
                      const char *body) {
        struct hf__strbuf text = {0};
        int r = print_named(work, name, body, &text);

        if (r == 0) {
                struct hf_request request = request_for(work, resource, name, text.data);

                r = hf_upsert(hf_term_client(work->term), &request, hf_term_abort(work->term), NULL,
                              NULL, &work->status);
        } else {
                (void)hf_fail(&work->status, r, "%s: %s", name, hf_strerror(r));
        }
        hf__strbuf_done(&text);
        return r;
}

/* Prints the object after the members of `status` are set in its status. Also finds its generation,
 * if it has one. */
static int print_with_status(const struct hf_operator_work *work, const char *status,
                             struct hf__strbuf *text, int64_t *ret_generation) {
        struct hf__json *object = NULL;
        struct hf__json *members = NULL;
        int r = hf__json_parse(work->object, work->n, &object, NULL);

        if (r == 0 && status)
                r = hf__json_parse(status, strlen(status), &members, NULL);
        if (r == 0 && status && !hf__json_is_object(members))
                r = HF_E_INVALID;
        if (r == 0 && !hf__json_is_object(hf__json_get(object, "status")))
                r = hf__json_put(object, "status", hf__json_object());
        for (struct hf__json *m = hf__json_first(members); r == 0 && m; m = hf__json_next(m))
                r = hf__json_put(hf__json_get(object, "status"), hf__json_key(m), hf__json_dup(m));
        if (r == 0) {
                hf__json_print(object, text);
                r = text->error;
        }
        (void)hf__json_i64(object, "metadata.generation", ret_generation);
        hf__json_free(members);
        hf__json_free(object);
        return r == HF_E_TOO_LARGE ? HF_E_INVALID : r;
}

/* hf_upsert compares before it writes. Without that, each status would cause an event, which leads
 * to the next reconcile, and so on without an end. */
int hf_operator_report(struct hf_operator_work *work, const char *status,
                       const struct hf_condition *given) {
        struct hf_condition condition;
        struct hf__strbuf text = {0};
        int64_t generation = 0;
        char *body = NULL;

        if (hf__sized_copy(&sized_condition, &condition, given, &work->status) != 0)
                return -EINVAL;
        int r = print_with_status(work, status, &text, &generation);
        if (condition.observed_generation == 0)
                condition.observed_generation = generation;
        condition.size = sizeof condition;
        if (r == 0)
                r = hf_condition_set(work->op->host, text.data, text.n, &condition, &body, NULL);
        hf__strbuf_done(&text);
        if (r != 0)
                return hf_fail(&work->status, r, "cannot make the status of %s: %s", work->name,
                               hf_strerror(r));
        struct hf_request request = request_for(work, work->op->config.resource, work->name, body);
        request.subresource = "status";
        r = hf_upsert(hf_term_client(work->term), &request, hf_term_abort(work->term), NULL, NULL,
                      &work->status);
        free(body);
        return r;
}

/* The recorder takes a format, too, but no va_list, so the message is made here. It is cut after
 * MESSAGE_MAX bytes, as the recorder would do. */
void hf_operator_event(struct hf_operator_work *work, enum hf_recorder_type type,
                       const char *reason, const char *format, ...) {
        char message[MESSAGE_MAX + 1];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(message, sizeof message, format, args);
        va_end(args);
        hf_recorder_event(work->recorder, work->object, work->n, type, reason, "%s", message);
}

/* An update and no upsert: the resourceVersion in the body makes sure that no change is lost. */
int hf__operator_put_finalizer(struct hf_operator_work *work, bool present) {
        char *body = NULL;
        int r = hf_finalizer_set(work->object, work->n, work->op->config.finalizer, present, &body,
                                 NULL);

        if (r != 0)
                return r;
        struct hf_request request = request_for(work, work->op->config.resource, work->name, body);
        request.verb = HF_VERB_UPDATE;
        r = hf_client_do(hf_term_client(work->term), &request, hf_term_abort(work->term), NULL,
                         NULL, &work->status);
        free(body);
        return r;
}
