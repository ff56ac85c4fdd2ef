/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A record is what the audit log knows about one request. Events are made of it, one for each
 * stage.
 *
 * The record is made from the head of a request, if the policy's level for it is not None. The
 * request and the events that wait in the queue share the record. Its texts do not change. The
 * impersonated user and the decision of authorization are added after the event RequestReceived is
 * queued, which does not contain them, and before any other event is queued. Only a write has
 * annotations, and a write has two events: RequestReceived, which does not contain the annotations,
 * and the last one, before which they are added. So the thread that writes the events needs no lock
 * for a record.
 *
 * The threads that serve the request collect the bodies of request and response under a lock. The
 * last event takes the bodies over. Bodies, annotations, and events that wait count against a
 * budget (struct hfd_audit_budget), so a slow disk cannot exhaust the memory. The record itself
 * does not count while the request is in progress: it has little but texts of the request's head
 * and of the user, and both have limits of their own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/audit/audit_policy.h"
#include "server/auth/user.h"

/* The bytes that all bodies, annotations and events together may hold. Thread: any. */
struct hfd_audit_budget {
        size_t max;
        atomic_size_t held;
};
/* False: there is no room. */
bool hfd_audit_budget_take(struct hfd_audit_budget *budget, size_t n);
void hfd_audit_budget_give(struct hfd_audit_budget *budget, size_t n);

#define HFD_AUDIT_BODY_MAX   ((size_t)3 << 20) /* bytes of a body in an event */
#define HFD_AUDIT_PIECES_MAX 1024              /* pieces of a body in an event */

/* A body in JSON, even if YAML or protobuf was sent, in one or several pieces. {0} = there is
 * none. */
struct hfd_audit_body {
        struct hf__buf **pieces; /* owned array of owned references */
        size_t n, n_bytes;
        bool truncated; /* it could not be kept, and is left out */
};

struct hfd_audit_record {
        atomic_int refs;
        struct hfd_audit_budget *budget; /* borrowed */
        size_t n_bytes;                  /* what each event of the record takes from the budget */
        /* Immutable after new. The texts are in `text`, and "" if they do not apply. */
        struct hfd_audit_decision decision;
        int64_t received_at;        /* microseconds since 1970 UTC */
        struct hfd_requester *user; /* owned; the sender; NULL = not authenticated */
        const char *id, *uri, *verb, *agent;
        const char *source_ips; /* a JSON array */
        const char *attempts;   /* how the sender has tried to authenticate, in vain */
        bool is_resource;
        const char *group, *version, *resource, *subresource, *ns, *name;
        /* Set before any event but RequestReceived is queued. */
        struct hfd_requester *impersonated; /* owned; NULL = nobody */
        /* The verb that allows the impersonation (hfd_impersonation_constraint); static. "" = the
         * verb is "impersonate"; NULL = nobody is impersonated. */
        const char *constraint;
        bool decided, allowed; /* by authorization */
        char *reason;          /* owned; of the decision; NULL = "" */
        /* Guarded by mu. */
        pthread_mutex_t mu;
        bool complete; /* the last event has taken the bodies, and later pieces are dropped */
        struct hfd_audit_body request, response;
        /* owned; of admission: keys, each followed by a value, all with their NULs; NULL = none.
         * Written once, before the record is complete. The thread that writes the last event reads
         * them without the lock. */
        struct hf__buf *annotations;
        char text[];
};

/* The head of a request; all of it is borrowed. */
struct hfd_audit_head {
        struct hfd_audit_decision decision;
        int64_t received_at;
        const struct hfd_user *user; /* NULL = not authenticated */
        const char *id, *path, *query, *agent, *source_ips;
        const char *attempts; /* "" unless user is NULL */
        const char *version;
        const struct hfd_attributes *attributes;
};

/* Makes a record. The caller owns the reference; the budget is borrowed, and outlives the record. 0
 * or -errno. */
int hfd_audit_record_new(struct hfd_audit_budget *budget, const struct hfd_audit_head *head,
                         struct hfd_audit_record **ret_record);
struct hfd_audit_record *hfd_audit_record_ref(struct hfd_audit_record *record);
/* Accepts NULL, returns NULL. */
struct hfd_audit_record *hfd_audit_record_unref(struct hfd_audit_record *record);

/* Keeps a copy of the body of the request, at the first call. Never fails: a body that cannot be
 * kept is left out of the event, which then says so. Thread: any. */
void hfd_audit_record_request(struct hfd_audit_record *record, const char *data, size_t n);
/* Keeps a copy of annotations, at the first call. Never fails: if the memory or the budget is used
 * up, the annotations are left out. Thread: any. */
void hfd_audit_record_annotate(struct hfd_audit_record *record, const char *texts, size_t n);
/* Keeps a reference to the next piece of the response's body. NULL: the body cannot be kept. Never
 * fails, as hfd_audit_record_request. Thread: any. */
void hfd_audit_record_response(struct hfd_audit_record *record, struct hf__buf *piece);

/* A stage of a request. */
struct hfd_audit_event {
        struct hfd_audit_event *next;    /* in the queue */
        struct hfd_audit_record *record; /* owned reference */
        enum hfd_audit_stage stage;
        int64_t at; /* microseconds since 1970 UTC */
        int code;   /* of the response; 0 = none was sent */
        struct hfd_audit_body request, response;
};

/* Makes an event. complete: the event takes over the bodies, and the record keeps no others. code:
 * of the response; 0 = there is none. NULL: out of memory, or the budget is used up. */
struct hfd_audit_event *hfd_audit_event_new(struct hfd_audit_record *record,
                                            enum hfd_audit_stage stage, int64_t at, int code,
                                            bool complete);
/* Accepts NULL, returns NULL. */
struct hfd_audit_event *hfd_audit_event_free(struct hfd_audit_event *event);
