/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issues a token in these steps, each of which may end with a failure as the response:
 *
 *      parse -> get the account -> check the request -> get the Secret, if one is named -> issue
 *
 * Their order is that of kube-apiserver, because a client sees the first failure only. The token is
 * signed on the pool of threads: with a long RSA key that takes many milliseconds.
 *
 * Invariants: a job, which owns the parsed request, belongs to one thread at a time. It ends with
 * exactly one response, and is freed then.
 */
#include "server/handlers/reviews/token_request.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "client/json_span.h"
#include "server/handlers/reviews/review.h"
#include "server/jwt/jwt.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/large_work.h"
#include "server/registry/base/request.h"
#include "server/registry/registry.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/strategies.h"
#include "server/service_accounts/service_accounts.h"

/* How long tokens are valid; the limits are those of Kubernetes. */
#define SECONDS_DEFAULT 3600
#define SECONDS_MIN     600
#define SECONDS_MAX     (INT64_C(1) << 32)

/* A request for a token, from hfd_token_request_serve until end_job, or until take_uid passes on
 * the failure of a read. */
struct job {
        struct hfd_request get; /* first member: done casts it back */
        struct hfd_token_request request;
        struct hfd_work_task task; /* signs */
        struct hf__json *object;   /* owned; the TokenRequest */
        char ns[HF_NAME_MAX + 1], account[HF_NAME_MAX + 1];
        char account_uid[64], secret_uid[64]; /* "" = not read yet, or no Secret is named */
};

/* Ends the job. Takes ownership of response. */
static void end_job(struct job *job, struct hfd_response *response) {
        job->request.done(job->request.ctx, response);
        hfd_response_done(response);
        hf__json_free(job->object);
        free(job);
}

static void end_job_no_memory(struct job *job) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        end_job(job, &response);
}

/* ---- issuing ---- */

static int64_t wanted_seconds(const struct job *job) {
        int64_t seconds = SECONDS_DEFAULT;

        (void)hf__json_integer(hf__json_path(job->object, "spec.expirationSeconds"), &seconds);
        return seconds;
}

/* Sets the metadata, the lifetime and the status. 0 or -ENOMEM. */
static int complete_request(struct job *job, const char *token, int64_t now, int64_t seconds) {
        char created[HF__MICROTIME_MAX], expires[HF__MICROTIME_MAX];

        hf__time_format(now, created);
        hf__time_format(now + seconds, expires);
        int r = hf__json_set_string(job->object, "metadata.name", job->account);
        if (r == 0)
                r = hf__json_set_string(job->object, "metadata.namespace", job->ns);
        if (r == 0)
                r = hf__json_set_string(job->object, "metadata.creationTimestamp", created);
        if (r == 0)
                r = hf__json_set_i64(job->object, "spec.expirationSeconds", seconds);
        if (r == 0)
                r = hf__json_set_string(job->object, "status.token", token);
        if (r == 0)
                r = hf__json_set_string(job->object, "status.expirationTimestamp", expires);
        return r;
}

/* Sets the audiences to those of this server, if the client names none. 0 or -ENOMEM. */
static int complete_audiences(struct job *job) {
        const struct hf__json *own = hfd_service_accounts_audiences(job->request.accounts);

        if (hf__json_first(hf__json_path(job->object, "spec.audiences")))
                return 0;
        return hf__json_set(job->object, "spec.audiences", hf__json_dup(own));
}

/* The audiences that the client names are part of the token, so they can make it longer than
 * HFD_JWT_MAX. The response names them as the cause. */
static void refuse_length(struct job *job) {
        struct hfd_response response = {0};
        struct hfd_causes causes;
        char detail[64];

        hfd_causes_init(&causes);
        (void)snprintf(detail, sizeof detail, "the token may not be more than %d bytes",
                       HFD_JWT_MAX);
        hfd_cause_too_long(&causes, "spec.audiences", detail);
        hfd_response_invalid(&response, hfd_resource_token_request(), "", &causes);
        end_job(job, &response);
}

/* Thread: one of the pool. The times in the claims and in the status come from one reading of the
 * clock, so that the client's idea of the expiry is the token's. */
static void issue_token(struct job *job) {
        struct hfd_response response = {0};
        struct hf__strbuf token = {.secret = true}; /* its memory is wiped */
        int64_t now = hfd_service_accounts_now(job->request.accounts),
                seconds = wanted_seconds(job);
        bool bound = job->secret_uid[0] != '\0';
        const struct hfd_account_claims claims =
                {.ns = job->ns,
                 .account = job->account,
                 .account_uid = job->account_uid,
                 .secret = bound ? hf__json_string_or_empty(job->object, "spec.boundObjectRef.name")
                                 : NULL,
                 .secret_uid = bound ? job->secret_uid : NULL,
                 .issued = now,
                 .expires = now + seconds,
                 .audiences = hf__json_path(job->object, "spec.audiences")};
        int r = hfd_service_accounts_issue(job->request.accounts, &claims, &token);

        if (r == HF_E_TOO_LARGE) {
                hf__strbuf_done(&token);
                refuse_length(job);
                return;
        }
        if (r == 0)
                r = complete_request(job, token.data, now, seconds);
        hf__strbuf_done(&token);
        if (r == 0)
                hfd_response_ok(&response, 201,
                                hfd_review_print(hfd_resource_token_request(), job->object));
        else
                hfd_response_status(&response, r, 500, "InternalError",
                                    "Internal error occurred: the token cannot be issued", NULL);
        end_job(job, &response);
}

static enum hfd_work_result issue_step(struct hfd_work_task *task) {
        issue_token((struct job *)((char *)task - offsetof(struct job, task)));
        return HFD_WORK_DONE;
}

static void issue_on_pool(struct job *job) {
        struct hfd_response response = {0};

        job->task = (struct hfd_work_task){.step = issue_step, .owner = job->request.owner};
        int r = hfd_large_work_submit(job->request.registry, &job->task, true);
        if (r == 0)
                return;
        hfd_large_work_refuse(r, &response);
        end_job(job, &response);
}

/* ---- the objects ---- */

/* Reads an object of the request's namespace. done is called once, perhaps before this returns, and
 * may free the job. */
static void get_object(struct job *job, const char *plural, const char *name,
                       void (*done)(struct hfd_request *, const struct hfd_response *)) {
        job->get = (struct hfd_request){.verb = HFD_GET,
                                        .resource = hfd_resource_find("", "v1", plural),
                                        .deadline = job->request.deadline,
                                        .done = done};
        assert(strlen(name) < sizeof job->get.name);
        (void)stpcpy(job->get.ns, job->ns);
        (void)stpcpy(job->get.name, name);
        hfd_registry_serve(job->request.registry, &job->get);
}

/* Takes the uid from an object that was read. Nothing else of the object is needed, so its text is
 * searched and not parsed: a Secret may have 1 MiB. The span of a text includes its two quotes.
 * False: the job has ended with a failure, because the read has failed, or the object has no uid or
 * one that does not fit. */
static bool take_uid(struct job *job, const struct hfd_response *response, char uid[64]) {
        struct hf__span text = {0};
        bool ok = response->status.error == 0 && response->body;

        if (ok)
                text = (struct hf__span){response->body->data, response->body->n};
        if (ok && hf__span_member(text, "metadata", &text) && hf__span_member(text, "uid", &text) &&
            text.n > 2 && text.n - 2 < 64) {
                (void)snprintf(uid, 64, "%.*s", (int)(text.n - 2), text.data + 1);
                return true;
        }
        if (ok) {
                end_job_no_memory(job); /* only another program stores such an object: 500 */
                return false;
        }
        job->request.done(job->request.ctx, response);
        hf__json_free(job->object);
        free(job);
        return false;
}

/* A Secret that was deleted and created again has another uid, and is not the one that the client
 * means. */
static void on_secret(struct hfd_request *get, const struct hfd_response *got) {
        struct job *job = (struct job *)get;
        /* kube-apiserver's conflict has the kind in place of the resource here. */
        const struct hfd_resource secret = {.plural = "Secret", .group = ""};
        const char *wanted = hf__json_string_or_empty(job->object, "spec.boundObjectRef.uid");
        struct hfd_response response = {0};
        char why[256];

        if (!take_uid(job, got, job->secret_uid))
                return;
        if (!wanted[0] || strcmp(wanted, job->secret_uid) == 0) {
                issue_on_pool(job);
                return;
        }
        (void)snprintf(why, sizeof why,
                       "the UID in the bound object reference (%.100s) does not match the UID in "
                       "record. The object might have been deleted and then recreated",
                       wanted);
        hfd_response_conflict(&response, &secret,
                              hf__json_string_or_empty(job->object, "spec.boundObjectRef.name"),
                              why);
        end_job(job, &response);
}

/* Reads the object that the token shall be bound to. */
static void bind_token(struct job *job) {
        const char *version =
                           hf__json_string_or_empty(job->object, "spec.boundObjectRef.apiVersion"),
                   *kind = hf__json_string_or_empty(job->object, "spec.boundObjectRef.kind"),
                   *name = hf__json_string_or_empty(job->object, "spec.boundObjectRef.name");
        const char *slash = strchr(version, '/');
        struct hfd_response response = {0};

        if (!slash && strcmp(kind, "Secret") == 0 && strlen(name) <= HF_NAME_MAX && *name) {
                get_object(job, "secrets", name, on_secret);
                return;
        }
        if (!slash && strcmp(kind, "Secret") == 0)
                hfd_response_not_found(&response, hfd_resource_find("", "v1", "secrets"), name);
        else
                hfd_response_bad_request(&response,
                                         "cannot bind token to object of type %.*s/%.100s, "
                                         "Kind=%.100s",
                                         slash ? (int)(slash - version) : 0, version,
                                         slash ? slash + 1 : version, kind);
        end_job(job, &response);
}

/* ---- the request ---- */

static void check_seconds(const struct job *job, struct hfd_causes *causes) {
        int64_t seconds = wanted_seconds(job);
        char text[32];

        (void)snprintf(text, sizeof text, "%" PRId64, seconds);
        if (seconds < SECONDS_MIN)
                hfd_cause_invalid(causes, "spec.expirationSeconds", text,
                                  "may not specify a duration less than 10 minutes");
        if (seconds > SECONDS_MAX)
                hfd_cause_invalid(causes, "spec.expirationSeconds", text,
                                  "may not specify a duration larger than 2^32 seconds");
}

/* The account has been read. Only now the spec is checked: a client that names no existing account
 * gets 404, even if values of the spec are out of range. */
static void on_account(struct hfd_request *get, const struct hfd_response *got) {
        struct job *job = (struct job *)get;
        struct hfd_response response = {0};
        struct hfd_causes causes;

        if (!take_uid(job, got, job->account_uid))
                return;
        hfd_causes_init(&causes);
        check_seconds(job, &causes);
        if (causes.n > 0) {
                hfd_response_invalid(&response, hfd_resource_token_request(), "", &causes);
                end_job(job, &response);
        } else if (complete_audiences(job) != 0) {
                end_job_no_memory(job);
        } else if (hf__json_is_object(hf__json_path(job->object, "spec.boundObjectRef"))) {
                bind_token(job);
        } else {
                issue_on_pool(job);
        }
}

/* ---- the start ---- */

/* A name or a namespace in the body must be that of the path. False: response is the failure. */
static bool check_names(const struct job *job, struct hfd_response *response) {
        const char *name = hf__json_string_or_empty(job->object, "metadata.name"),
                   *ns = hf__json_string_or_empty(job->object, "metadata.namespace");
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        if (*ns && strcmp(ns, job->ns) != 0) {
                hfd_response_bad_request(response,
                                         "the namespace of the provided object does not match the "
                                         "namespace sent on the request");
                return false;
        }
        if (!*name || strcmp(name, job->account) == 0)
                return true;
        hfd_cause_invalid_text(&causes, "metadata.name", name,
                               "must match the service account name if specified");
        hfd_response_invalid(response, hfd_resource_token_request(), job->account, &causes);
        return false;
}

void hfd_token_request_serve(const struct hfd_token_request *request, const void *body,
                             size_t n_body) {
        struct hfd_response response = {0};
        struct job *job = calloc(1, sizeof *job);

        if (!job || !request->accounts) {
                free(job);
                hfd_response_no_memory(&response);
                request->done(request->ctx, &response);
                hfd_response_done(&response);
                return;
        }
        job->request = *request;
        assert(strlen(request->ns) <= HF_NAME_MAX && strlen(request->account) <= HF_NAME_MAX);
        (void)stpcpy(job->ns, request->ns);
        (void)stpcpy(job->account, request->account);
        job->object = hfd_review_parse(hfd_resource_token_request(), body, n_body, &response);
        if (job->object)
                hf__json_drop(job->object, "status");
        if (!job->object || !check_names(job, &response))
                end_job(job, &response);
        else
                get_object(job, "serviceaccounts", job->account, on_account);
}
