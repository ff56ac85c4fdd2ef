/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificate requests, on top of strategies/certificate_request.c.
 *
 *      path         changes
 *      the object   metadata
 *      /approval    metadata, conditions; needs the verb `approve` on the signer
 *      /status      metadata, certificate, conditions except Approved and Denied; needs `sign` if
 *                   it changes the certificate or a condition
 *
 * Invariants: the user in spec is the one whom the server has authenticated, whatever the client
 * writes there. A request whose certificate would be of system:masters is never stored for the
 * signer that this server serves itself: any user who may approve could otherwise give away all
 * rights.
 *
 * Requests from inside the process have no requester, and may approve and sign for every signer:
 * that is how the controllers do it.
 */
#include "server/registry/write/checks/certificate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/time_format.h"
#include "server/auth/pki/pki_request.h"
#include "server/authorization/authorizer.h"
#include "server/registry/write/reply.h"
#include "server/resources/causes.h"

#define GROUP         "certificates.k8s.io"
#define PLURAL        "certificatesigningrequests"
#define CLIENT_SIGNER "kubernetes.io/kube-apiserver-client"
#define SIGNER_MAX    571 /* bytes of a signer's name: 253 + 1 + 63 + 1 + 253, as in Kubernetes */
/* The user name of requests from inside the process. kube-apiserver's own client has the same. */
#define SYSTEM_USER "system:apiserver"

static bool is_certificate_request(const struct hfd_write *w) {
        return strcmp(w->request->resource->plural, PLURAL) == 0 &&
               strcmp(w->request->resource->group, GROUP) == 0;
}

/* ---- members that the server sets ---- */

/* Replaces a member by a copy of that of `from`, or removes it. 0 or -ENOMEM. */
static int copy_member(struct hf__json *object, const char *path, const struct hf__json *from) {
        const struct hf__json *member = hf__json_path(from, path);

        if (member)
                return hf__json_set(object, path, hf__json_dup(member));
        hf__json_remove(object, path);
        return 0;
}

/* Adds the extra values, of which several may have the same key. 0 or -ENOMEM. */
static int set_extra(struct hf__json *spec, const struct hfd_requester *user) {
        struct hf__json *extra = hf__json_object();
        int r = user->n_extra > 0 ? hf__json_put(spec, "extra", extra) : 0;

        if (user->n_extra == 0)
                hf__json_free(extra);
        for (const char *at = user->extra; r == 0 && at < user->extra + user->n_extra;) {
                const char *key = at, *value = at + strlen(at) + 1;
                at = value + strlen(value) + 1;
                if (!hf__json_get(extra, key))
                        r = hf__json_put(extra, key, hf__json_array());
                if (r == 0)
                        r = hf__json_append_string(hf__json_get(extra, key), value);
        }
        return r;
}

/* Writes the user into spec; NULL = a request from inside the process. 0 or -ENOMEM. */
static int stamp_user(struct hf__json *object, const struct hfd_requester *user) {
        static const char *const parts[] = {"username", "uid", "groups", "extra"};
        static const char *const masters[] = {HFD_GROUP_MASTERS};
        struct hf__json *spec = hf__json_get(object, "spec");
        size_t n_groups = user ? user->subject.n_groups : 1;
        const char *const *groups = user ? user->subject.groups : masters;

        if (!hf__json_is_object(spec))
                return 0; /* validation refuses it */
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
                hf__json_drop(spec, parts[i]);
        int r = hf__json_put_string(spec, "username", user ? user->subject.name : SYSTEM_USER);
        if (r == 0 && user && user->uid[0])
                r = hf__json_put_string(spec, "uid", user->uid);
        if (r == 0 && n_groups > 0)
                r = hf__json_put(spec, "groups", hf__json_array());
        for (size_t i = 0; r == 0 && i < n_groups; i++)
                r = hf__json_append_string(hf__json_get(spec, "groups"), groups[i]);
        return r == 0 && user ? set_extra(spec, user) : r;
}

/* The next condition of a type at or after m; NULL = there is none. */
static struct hf__json *find_condition(struct hf__json *m, const char *type) {
        while (m && !hf__json_has_text(m, "type", type))
                m = hf__json_next(m);
        return m;
}

static struct hf__json *first_condition(const struct hf__json *object, const char *type) {
        return find_condition(hf__json_first(hf__json_path(object, "status.conditions")), type);
}

static size_t count_conditions(const struct hf__json *object, const char *type) {
        size_t n = 0;

        for (struct hf__json *m = first_condition(object, type); m;
             m = find_condition(hf__json_next(m), type))
                n++;
        return n;
}

/*
 * Puts back the conditions of this type, because a signer must not change the decision about the
 * approval, not even by leaving out members that it does not know. If the signer adds or removes
 * such a condition, nothing is put back here: validate_decision and the strategy refuse it. 0 or
 * -ENOMEM.
 */
static int keep_decision(struct hf__json *object, const struct hf__json *old, const char *type) {
        struct hf__json *conditions = hf__json_path(object, "status.conditions");
        struct hf__json *mine = first_condition(object, type), *kept = first_condition(old, type);
        int r = 0;

        if (count_conditions(object, type) != count_conditions(old, type))
                return 0;
        while (r == 0 && mine && kept) {
                struct hf__json *next = find_condition(hf__json_next(mine), type);
                r = hf__json_replace(conditions, mine, hf__json_dup(kept));
                kept = find_condition(hf__json_next(kept), type);
                mine = next;
        }
        return r;
}

/* Returns the lastTransitionTime of the same condition with the same status in old; NULL = none. */
static const char *transition_time(const struct hf__json *condition, const struct hf__json *old) {
        const char *type = hf__json_string(condition, "type"),
                   *status = hf__json_string(condition, "status");

        for (struct hf__json *m = type && status ? first_condition(old, type) : NULL; m;
             m = find_condition(hf__json_next(m), type))
                if (hf__json_has_text(m, "status", status))
                        return hf__json_string(m, "lastTransitionTime");
        return NULL;
}

/* Sets the times that the client has left out. 0 or -ENOMEM. */
static int set_times(struct hf__json *object, const struct hf__json *old, const char *now) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_path(object, "status.conditions"));
             m && r == 0; m = hf__json_next(m)) {
                if (!hf__json_is_object(m))
                        continue;
                if (!hf__json_string(m, "lastUpdateTime"))
                        r = hf__json_put_string(m, "lastUpdateTime", now);
                if (r == 0 && !hf__json_string(m, "lastTransitionTime")) {
                        const char *since = transition_time(m, old);
                        r = hf__json_put_string(m, "lastTransitionTime", since ? since : now);
                }
        }
        return r;
}

static int prepare_update(struct hfd_write *w, const struct hf__json *old) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);
        char now[HF__MICROTIME_MAX];
        int r = copy_member(w->object, "spec", old);

        if (r != 0 || w->request->subresource == HFD_SUB_NONE)
                return r;
        if (w->request->subresource == HFD_SUB_APPROVAL) {
                r = copy_member(w->object, "status.certificate", old);
        } else {
                r = keep_decision(w->object, old, "Approved");
                if (r == 0)
                        r = keep_decision(w->object, old, "Denied");
        }
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        return r == 0 ? set_times(w->object, old, now) : r;
}

int hfd_write_certificate_prepare(struct hfd_write *w, const struct hf__json *old) {
        if (!is_certificate_request(w))
                return 0;
        if (old)
                return prepare_update(w, old);
        int r = stamp_user(w->object, w->request->requester);
        return r == 0 ? hf__json_set(w->object, "status", hf__json_object()) : r;
}

/* ---- validation ---- */

/* Decodes the base64 of a member. *ret_pem: the PEM text, which the caller frees; NULL: the member
 * is missing or not base64, or memory ran out. 0 or -ENOMEM. */
static int decode_member(const struct hf__json *object, const char *path, char **ret_pem,
                         size_t *ret_n) {
        const char *text = hf__json_string(object, path);

        *ret_pem = NULL;
        *ret_n = 0;
        int r = text ? hf__base64_decode(text, strlen(text), ret_pem, ret_n) : 0;
        return r == -ENOMEM ? r : 0;
}

/* Calls fault_of for the decoded member, and returns its result. NULL: out of memory. */
static const char *fault_of_member(const struct hf__json *object, const char *path,
                                   const char *(*fault_of)(const char *pem, size_t n)) {
        size_t n;
        char *pem;
        int r = decode_member(object, path, &pem, &n);
        const char *text = pem ? pem : "", *fault = r == 0 ? fault_of(text, n) : NULL;

        free(pem);
        return fault;
}

static void validate_request(const struct hf__json *object, struct hfd_causes *causes) {
        const char *fault = fault_of_member(object, "spec.request", hfd_pki_request_fault);

        if (fault && !*fault &&
            strcmp(hf__json_string_or_empty(object, "spec.signerName"), CLIENT_SIGNER) == 0)
                fault = fault_of_member(object, "spec.request", hfd_pki_request_subject_fault);
        if (!fault)
                hfd_causes_no_memory(causes);
        else if (*fault)
                hfd_cause_invalid_text(causes, "spec.request",
                                       hf__json_string_or_empty(object, "spec.request"), fault);
}

static void validate_certificate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        static const char field[] = "status.certificate";
        const char *text = hf__json_string_or_empty(object, field),
                   *before = hf__json_string_or_empty(old, field);

        if (strcmp(text, before) == 0)
                return;
        const char *fault = *text ? fault_of_member(object, field, hfd_pki_certificates_fault) : "";
        if (!fault)
                hfd_causes_no_memory(causes);
        else if (*fault)
                hfd_cause_invalid_text(causes, field, "<certificate data>", fault);
        if (*before)
                hfd_cause_forbidden(causes, field,
                                    "updates may not modify existing certificate content");
}

/* Refuses a new condition of this type: only a request to /approval may add it. */
static void validate_decision(const struct hf__json *object, const struct hf__json *old,
                              const char *type, struct hfd_causes *causes) {
        char why[80];

        if (count_conditions(object, type) <= count_conditions(old, type))
                return;
        (void)snprintf(why, sizeof why, "updates may not add a condition of type \"%s\"", type);
        hfd_cause_forbidden(causes, "status.conditions", why);
}

void hfd_write_certificate_validate(struct hfd_write *w, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        if (!is_certificate_request(w))
                return;
        if (!old) {
                validate_request(w->object, causes);
                return;
        }
        validate_certificate(w->object, old, causes);
        if (w->request->subresource != HFD_SUB_STATUS)
                return;
        validate_decision(w->object, old, "Approved", causes);
        validate_decision(w->object, old, "Denied", causes);
}

/* ---- rights ---- */

static bool may_use(const struct hfd_request *request, const char *verb, const char *name) {
        const struct hfd_attributes attributes = {.verb = verb,
                                                  .group = GROUP,
                                                  .resource = "signers",
                                                  .subresource = "",
                                                  .ns = "",
                                                  .name = name,
                                                  .path = "",
                                                  .is_resource = true};

        return hfd_authorizer_allows(request->authorizer, &request->requester->subject, &attributes,
                                     NULL);
}

/* The right to all signers of a domain names the domain, a slash and a star. */
static bool may_use_signer(const struct hfd_request *request, const char *verb,
                           const char *signer) {
        char any[SIGNER_MAX + 3]; /* the slash, the star and the NUL */

        (void)snprintf(any, sizeof any, "%.*s/*", (int)strcspn(signer, "/"), signer);
        return !request->requester || may_use(request, verb, signer) || may_use(request, verb, any);
}

/* Whether the write changes the certificate or the conditions: 0, 1 or -ENOMEM. */
static int changes_result(const struct hf__json *object, const struct hf__json *old) {
        static const char *const parts[] = {"status.certificate", "status.conditions"};
        bool equal = true;
        int r = 0;

        for (size_t i = 0; r == 0 && equal && i < sizeof parts / sizeof parts[0]; i++)
                r = hf__json_are_equal(hf__json_path(object, parts[i]),
                                       hf__json_path(old, parts[i]), &equal);
        return r != 0 ? r : !equal;
}

/* Whether the request asks the signer of this server for a certificate of system:masters: 0, 1
 * (also if spec.request is missing or not base64) or -ENOMEM. A text that is no certificate request
 * is 0 here, and the validation refuses it. */
static int asks_for_masters(const struct hf__json *object, const char *signer) {
        size_t n;
        char *pem;

        if (strcmp(signer, CLIENT_SIGNER) != 0)
                return 0;
        int r = decode_member(object, "spec.request", &pem, &n);
        if (r == 0)
                r = pem ? hfd_pki_request_in(pem, n, HFD_GROUP_MASTERS) : 1;
        free(pem);
        return r;
}

bool hfd_write_may_certify(struct hfd_write *w, const struct hf__json *old) {
        const struct hfd_request *request = w->request;
        char why[SIGNER_MAX + 80] = "";

        if (!is_certificate_request(w))
                return true;
        const char *signer = hf__json_string_or_empty(w->object, "spec.signerName");
        int asks = old ? 0 : asks_for_masters(w->object, signer);
        int changes =
                old && request->subresource == HFD_SUB_STATUS ? changes_result(w->object, old) : 0;
        if (asks < 0 || changes < 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        if (asks > 0)
                (void)snprintf(why, sizeof why,
                               "use of " CLIENT_SIGNER " signer with " HFD_GROUP_MASTERS
                               " group is not allowed");
        else if (old && request->subresource == HFD_SUB_APPROVAL &&
                 !may_use_signer(request, "approve", signer))
                (void)snprintf(why, sizeof why,
                               "user not permitted to approve requests with signerName \"%s\"",
                               signer);
        else if (changes > 0 && !may_use_signer(request, "sign", signer))
                (void)snprintf(why, sizeof why,
                               "user not permitted to sign requests with signerName \"%s\"",
                               signer);
        if (!*why)
                return true;
        if (old && !w->fresh) {
                hfd_write_refetch(w);
                return false;
        }
        hfd_write_reply_forbidden(w, why);
        return false;
}
