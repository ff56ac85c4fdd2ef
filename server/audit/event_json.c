/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints events. The fields have the order of kube-apiserver, and the same fields are left out when
 * they are empty, because tools that were made for its log read the lines.
 *
 * Invariant: for RequestReceived only the immutable members of the record are read, because the
 * others may change meanwhile. When another event is printed, they change no more (record.h).
 */
#include "server/audit/event_json.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/audit/record.h"
#include "server/auth/user_extra.h"

/* ---- texts ---- */

static void put_text(struct hf__strbuf *out, const char *text) {
        hf__strbuf_json(out, text, strlen(text));
}

/* Adds a member with a comma in front of it, unless the value is empty or NULL. */
static void put_member(struct hf__strbuf *out, const char *key, const char *value) {
        if (!value || !value[0])
                return;
        hf__strbuf_printf(out, ",\"%s\":", key);
        put_text(out, value);
}

static void put_time(struct hf__strbuf *out, const char *key, int64_t usec) {
        char text[HF__MICROTIME_MAX];

        hf__microtime_format(usec, text);
        hf__strbuf_printf(out, ",\"%s\":\"%s\"", key, text);
}

/* Removes the comma at `at`, which is in front of the first member or element. */
static void drop_comma(struct hf__strbuf *out, size_t at) {
        if (out->error != 0 || out->n <= at || out->data[at] != ',')
                return;
        memmove(out->data + at, out->data + at + 1, out->n - at);
        out->n--;
}

/* ---- users ---- */

/* Prints a user; user NULL: {}. */
static void put_user(struct hf__strbuf *out, const char *key, const struct hfd_requester *user) {
        hf__strbuf_printf(out, ",\"%s\":{", key);
        size_t begin = out->n;
        if (user) {
                put_member(out, "username", user->subject.name);
                put_member(out, "uid", user->uid);
                for (size_t i = 0; i < user->subject.n_groups; i++) {
                        hf__strbuf_puts(out, i == 0 ? ",\"groups\":[" : ",");
                        put_text(out, user->subject.groups[i]);
                }
                hf__strbuf_puts(out, user->subject.n_groups > 0 ? "]" : "");
                if (user->n_extra > 0) {
                        hf__strbuf_puts(out, ",\"extra\":");
                        hfd_user_put_extra(out, user, HFD_EXTRA_JSON);
                }
        }
        drop_comma(out, begin);
        hf__strbuf_putc(out, '}');
}

/* ---- objects ---- */

/* The body as JSON, which the caller frees. NULL: there is none, or it cannot be parsed. */
static struct hf__json *parse_body(const struct hfd_audit_body *body) {
        struct hf__strbuf joined = {0};
        struct hf__json *json = NULL;

        if (body->n == 1) {
                (void)hf__json_parse(body->pieces[0]->data, body->pieces[0]->n, &json, NULL);
                return json;
        }
        for (size_t i = 0; i < body->n; i++)
                hf__strbuf_add(&joined, body->pieces[i]->data, body->pieces[i]->n);
        if (joined.error == 0 && joined.data)
                (void)hf__json_parse(joined.data, joined.n, &json, NULL);
        hf__strbuf_done(&joined);
        return json;
}

static void drop_managed_fields(struct hf__json *object) {
        hf__json_remove(object, "metadata.managedFields");
        for (struct hf__json *e = hf__json_first(hf__json_get(object, "items")); e;
             e = hf__json_next(e))
                hf__json_remove(e, "metadata.managedFields");
        for (struct hf__json *e = hf__json_first(hf__json_get(object, "rows")); e;
             e = hf__json_next(e))
                hf__json_remove(e, "object.metadata.managedFields");
}

/* Removes each "token" from each member with this key. The key and "token" may occur more than
 * once, because this is the body as the client sent it, and any of the tokens may have counted. */
static void drop_tokens_in(struct hf__json *object, const char *key) {
        for (struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m)) {
                if (strcmp(hf__json_key(m), key) != 0 || !hf__json_is_object(m))
                        continue;
                for (struct hf__json *inner = hf__json_first(m), *next; inner; inner = next) {
                        next = hf__json_next(inner);
                        if (strcmp(hf__json_key(inner), "token") == 0)
                                hf__json_free(hf__json_detach(m, inner));
                }
        }
}

/* Removes the token that a TokenReview asks about, or that a TokenRequest has got: a reader of the
 * log could use it. */
static void drop_tokens(const struct hfd_audit_record *record, struct hf__json *object) {
        bool review = strcmp(record->resource, "tokenreviews") == 0;

        if ((!review && strcmp(record->subresource, "token") != 0) || !hf__json_is_object(object))
                return;
        drop_tokens_in(object, "spec");
        drop_tokens_in(object, "status");
}

static void put_object(struct hf__strbuf *out, const struct hfd_audit_record *record,
                       const char *key, struct hf__json *object) {
        if (!object)
                return;
        drop_tokens(record, object);
        if (record->decision.omit_managed_fields && hf__json_is_object(object))
                drop_managed_fields(object);
        hf__strbuf_printf(out, ",\"%s\":", key);
        hf__json_print(object, out);
}

/* ---- parts of an event ---- */

/* As in kube-apiserver, the object of the request gives the values that the path does not have. */
static void put_object_ref(struct hf__strbuf *out, const struct hfd_audit_record *record,
                           const struct hf__json *object) {
        const char *name =
                record->name[0] ? record->name : hf__json_string(object, "metadata.name");
        const char *ns = record->ns[0] ? record->ns : hf__json_string(object, "metadata.namespace");

        if (!record->is_resource)
                return;
        hf__strbuf_puts(out, ",\"objectRef\":{");
        size_t begin = out->n;
        put_member(out, "resource", record->resource);
        put_member(out, "namespace", ns);
        put_member(out, "name", name);
        put_member(out, "uid", hf__json_string(object, "metadata.uid"));
        put_member(out, "apiGroup", record->group);
        put_member(out, "apiVersion", record->version);
        put_member(out, "resourceVersion", hf__json_string(object, "metadata.resourceVersion"));
        put_member(out, "subresource", record->subresource);
        drop_comma(out, begin);
        hf__strbuf_putc(out, '}');
}

/* Whether the request was refused because its sender could not be authenticated. kube-apiserver
 * logs such a request before it makes the response, so the event has the attempts instead of the
 * response. The code is compared because a request without a user may also have failed for another
 * reason, such as a lack of memory. */
static bool has_failed_attempts(const struct hfd_audit_record *record, int code) {
        return record->attempts[0] && code == 401;
}

/* body: of the response. If it is a Status, its fields are copied. */
static void put_status(struct hf__strbuf *out, const struct hfd_audit_record *record, int code,
                       const struct hf__json *body) {
        const struct hf__json *details = NULL;

        hf__strbuf_puts(out, ",\"responseStatus\":{\"metadata\":{}");
        if (has_failed_attempts(record, code)) {
                put_member(out, "message", record->attempts);
        } else if (code == 0) {
                /* The client has closed the connection early. The words are kube-apiserver's. */
                put_member(out, "status", "Success");
                put_member(out, "message", "Connection closed early");
                code = 200;
        } else if (hf__json_has_text(body, "kind", "Status")) {
                put_member(out, "status", hf__json_string(body, "status"));
                put_member(out, "message", hf__json_string(body, "message"));
                put_member(out, "reason", hf__json_string(body, "reason"));
                details = hf__json_get(body, "details");
        }
        if (hf__json_is_object(details)) {
                hf__strbuf_puts(out, ",\"details\":");
                hf__json_print(details, out);
        }
        hf__strbuf_printf(out, ",\"code\":%d}", code);
}

/* The prefix of the annotations that hold the patches of webhooks. */
#define PATCH_KEYS "patch.webhook.admission.k8s.io/"

static void put_annotations(struct hf__strbuf *out, const struct hfd_audit_event *event) {
        const struct hfd_audit_record *record = event->record;
        bool truncated =
                (event->request.truncated && record->decision.level >= HFD_AUDIT_REQUEST) ||
                (event->response.truncated && record->decision.level >= HFD_AUDIT_REQUEST_RESPONSE);

        const struct hf__buf *added = record->annotations;

        if (!record->decided && !truncated && !added)
                return;
        hf__strbuf_puts(out, ",\"annotations\":{");
        size_t begin = out->n;
        put_member(out, "audit.k8s.io/truncated", truncated ? "true" : "");
        if (record->decided) {
                put_member(out, "authorization.k8s.io/decision",
                           record->allowed ? "allow" : "forbid");
                hf__strbuf_puts(out, ",\"authorization.k8s.io/reason\":");
                put_text(out, record->reason ? record->reason : "");
        }
        for (size_t i = 0; added && i < added->n;) {
                const char *key = added->data + i, *value = key + strlen(key) + 1;
                i += strlen(key) + strlen(value) + 2;
                /* A patch may contain secrets, so it is left out where the policy leaves out
                 * bodies. */
                if (strncmp(key, PATCH_KEYS, strlen(PATCH_KEYS)) == 0 &&
                    record->decision.level < HFD_AUDIT_REQUEST)
                        continue;
                hf__strbuf_putc(out, ',');
                put_text(out, key);
                hf__strbuf_putc(out, ':');
                put_text(out, value);
        }
        drop_comma(out, begin);
        hf__strbuf_putc(out, '}');
}

static void put_head(struct hf__strbuf *out, const struct hfd_audit_event *event) {
        const struct hfd_audit_record *record = event->record;

        hf__strbuf_puts(out, "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"");
        put_member(out, "level", hfd_audit_level_name(record->decision.level));
        put_member(out, "auditID", record->id);
        put_member(out, "stage", hfd_audit_stage_name(event->stage));
        put_member(out, "requestURI", record->uri);
        hf__strbuf_puts(out, ",\"verb\":");
        put_text(out, record->verb);
        put_user(out, "user", record->user);
}

/* ---- the event ---- */

void hfd_audit_event_print(const struct hfd_audit_event *event, struct hf__strbuf *out) {
        const struct hfd_audit_record *record = event->record;
        bool has_response = event->stage != HFD_AUDIT_REQUEST_RECEIVED;
        struct hf__json *request = parse_body(&event->request),
                        *response = parse_body(&event->response);
        assert(record && event->stage != HFD_AUDIT_PANIC);

        put_head(out, event);
        if (has_response && record->impersonated)
                put_user(out, "impersonatedUser", record->impersonated);
        if (has_response && record->constraint && record->constraint[0])
                hf__strbuf_printf(out,
                                  ",\"authenticationMetadata\":{\"impersonationConstraint\":\"%"
                                  "s\"}",
                                  record->constraint);
        if (record->source_ips[0])
                hf__strbuf_printf(out, ",\"sourceIPs\":%s", record->source_ips);
        put_member(out, "userAgent", record->agent);
        /* As in kube-apiserver, the body of a patch adds nothing to the reference. */
        put_object_ref(out, record, strcmp(record->verb, "patch") == 0 ? NULL : request);
        if (has_response)
                put_status(out, record, event->code, response);
        if (record->is_resource && record->decision.level >= HFD_AUDIT_REQUEST)
                put_object(out, record, "requestObject", request);
        if (record->is_resource && !has_failed_attempts(record, event->code) &&
            record->decision.level >= HFD_AUDIT_REQUEST_RESPONSE)
                put_object(out, record, "responseObject", response);
        put_time(out, "requestReceivedTimestamp", record->received_at);
        put_time(out, "stageTimestamp", event->at);
        if (has_response)
                put_annotations(out, event);
        hf__strbuf_puts(out, "}\n");
        hf__json_free(request);
        hf__json_free(response);
}
