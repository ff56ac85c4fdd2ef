/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes the AdmissionReview that is sent to a webhook, and decodes the one that comes back.
 *
 * Invariants: the type of each member that a webhook sends is checked before the member is read. A
 * response and its patch must be valid UTF-8; of members with the same key only the last one is
 * kept, as in the bodies of clients. A webhook is trusted to decide, but not to be correct: without
 * these checks its mistakes would get into objects and responses. The messages are those of
 * kube-apiserver, apart from the details of JSON errors.
 */
#include "server/admission/webhooks/admission_review.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_envelope.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "server/auth/user_extra.h"
#include "server/schema/strict.h"

#define SYSTEM_USER  "system:apiserver" /* the user of the server's own requests */
#define PATCH_LEVELS 2                  /* around a value of a patch: the list, and the operation */

/* ---- the request ---- */

static void put_text(struct hf__strbuf *out, const char *key, const char *text) {
        hf__strbuf_printf(out, "\"%s\":", key);
        hf__strbuf_json(out, text, strlen(text));
}

/* Appends a group, a version, and a kind or resource: `what` is the name of that member. */
static void put_row(struct hf__strbuf *out, const char *key, const struct hfd_resource *row,
                    const char *what, const char *value) {
        hf__strbuf_printf(out, ",\"%s\":{", key);
        put_text(out, "group", row->group);
        hf__strbuf_putc(out, ',');
        put_text(out, "version", row->version);
        hf__strbuf_putc(out, ',');
        put_text(out, what, value);
        hf__strbuf_putc(out, '}');
}

/* Appends a member that Go's struct omits if it is empty. */
static void put_optional(struct hf__strbuf *out, const char *key, const char *text) {
        if (!*text)
                return;
        hf__strbuf_putc(out, ',');
        put_text(out, key, text);
}

/* Appends a member that is null if there is no object, as in Go, where omitempty has no effect on a
 * struct such as RawExtension. */
static void put_json(struct hf__strbuf *out, const char *key, const struct hf__json *json) {
        hf__strbuf_printf(out, ",\"%s\":", key);
        if (json)
                hf__json_print(json, out);
        else
                hf__strbuf_puts(out, "null");
}

/* user NULL: the request is one of the server's own. */
static void put_user(struct hf__strbuf *out, const struct hfd_requester *user) {
        static const char *const masters[] = {"system:masters", HFD_GROUP_AUTHENTICATED};
        const char *const *groups = user ? user->subject.groups : masters;
        size_t n_groups = user ? user->subject.n_groups : 2;

        hf__strbuf_puts(out, ",\"userInfo\":{");
        put_text(out, "username", user ? user->subject.name : SYSTEM_USER);
        if (user)
                put_optional(out, "uid", user->uid);
        for (size_t i = 0; i < n_groups; i++) {
                hf__strbuf_puts(out, i == 0 ? ",\"groups\":[" : ",");
                hf__strbuf_json(out, groups[i], strlen(groups[i]));
        }
        hf__strbuf_puts(out, n_groups > 0 ? "]" : "");
        if (user && user->n_extra > 0) {
                hf__strbuf_puts(out, ",\"extra\":");
                hfd_user_put_extra(out, user, HFD_EXTRA_JSON);
        }
        hf__strbuf_putc(out, '}');
}

/* The body of a subresource that has a kind of its own, such as Scale, is not converted: then only
 * the resource is that of `as`, and the kind is that of the body. */
void hfd_admission_review_print(struct hf__strbuf *out, const char *uid,
                                const struct hfd_admission_attributes *of,
                                const struct hfd_resource *as, const struct hf__json *object,
                                const struct hf__json *old, const struct hf__json *options) {
        bool is_part = of->kind != of->resource;
        const struct hfd_resource *kind = is_part ? of->kind : as;

        hf__strbuf_puts(out, "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
                             "\"request\":{");
        put_text(out, "uid", uid);
        put_row(out, "kind", kind, "kind", kind->kind);
        put_row(out, "resource", as, "resource", as->plural);
        put_optional(out, "subResource", of->subresource);
        put_row(out, "requestKind", of->kind, "kind", of->kind->kind);
        put_row(out, "requestResource", of->resource, "resource", of->resource->plural);
        put_optional(out, "requestSubResource", of->subresource);
        put_optional(out, "name", of->name);
        put_optional(out, "namespace", of->ns);
        hf__strbuf_putc(out, ',');
        put_text(out, "operation", hfd_admission_operation_name(of->operation));
        put_user(out, of->user);
        put_json(out, "object", object);
        put_json(out, "oldObject", old);
        hf__strbuf_printf(out, ",\"dryRun\":%s", of->dry_run ? "true" : "false");
        put_json(out, "options", options);
        hf__strbuf_puts(out, "}}");
}

/* ---- the response ---- */

/* The next two functions write the reason, and return HF_E_INVALID. */
static int refuse_review(char why[HFD_ADMISSION_REVIEW_WHY_MAX], const char *text) {
        (void)snprintf(why, HFD_ADMISSION_REVIEW_WHY_MAX, "received invalid webhook response: %s",
                       text);
        return HF_E_INVALID;
}

static int refuse_type(char why[HFD_ADMISSION_REVIEW_WHY_MAX], const char *field,
                       const char *type) {
        (void)snprintf(why, HFD_ADMISSION_REVIEW_WHY_MAX,
                       "failed to call webhook: json: cannot unmarshal the value of field "
                       "AdmissionReview.%s into Go value of type %s",
                       field, type);
        return HF_E_INVALID;
}

static bool is_absent(const struct hf__json *json) { return !json || hf__json_is_null(json); }

static bool is_map_of_texts(const struct hf__json *json) {
        if (!hf__json_is_object(json))
                return false;
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return false;
        return true;
}

static bool is_list_of_texts(const struct hf__json *json) {
        if (!hf__json_is_array(json))
                return false;
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return false;
        return true;
}

/* Checks the types of the members of the response. In Go a member that is null keeps its zero
 * value, so null is as good as no member. The texts name Go's types, which users know from
 * Kubernetes. */
static int check_types(const struct hf__json *response, char why[HFD_ADMISSION_REVIEW_WHY_MAX]) {
        static const struct {
                const char *name, *type;
                bool (*has_type)(const struct hf__json *json);
        } members[] = {{"uid", "types.UID", hf__json_is_string},
                       {"allowed", "bool", hf__json_is_bool},
                       {"status", "v1.Status", hf__json_is_object},
                       {"patch", "[]uint8", hf__json_is_string},
                       {"patchType", "v1.PatchType", hf__json_is_string},
                       {"auditAnnotations", "map[string]string", is_map_of_texts},
                       {"warnings", "[]string", is_list_of_texts}};
        char field[40];

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                const struct hf__json *member = hf__json_get(response, members[i].name);
                if (is_absent(member) || members[i].has_type(member))
                        continue;
                (void)snprintf(field, sizeof field, "response.%s", members[i].name);
                return refuse_type(why, field, members[i].type);
        }
        return 0;
}

/* Checks the uid, which shows that the response is for this request, and then the type of the
 * review. A response in which both are wrong gets the message about the uid, as in Kubernetes. */
static int check_identity(const struct hf__json *json, const char *uid,
                          char why[HFD_ADMISSION_REVIEW_WHY_MAX]) {
        const char *found = hf__json_string(json, "response.uid"),
                   *version = hf__json_string(json, "apiVersion"),
                   *kind = hf__json_string(json, "kind");
        /* - 60: refuse_review puts its own words in front. */
        char text[HFD_ADMISSION_REVIEW_WHY_MAX - 60], quoted[120];

        if (!found || strcmp(found, uid) != 0) {
                hfd_quote(found ? found : "", quoted, sizeof quoted);
                (void)snprintf(text, sizeof text, "expected response.uid=\"%s\", got %s", uid,
                               quoted);
                return refuse_review(why, text);
        }
        version = version ? version : "";
        kind = kind ? kind : "";
        if (strcmp(version, "admission.k8s.io/v1") == 0 && strcmp(kind, "AdmissionReview") == 0)
                return 0;
        /* Go prints a version without a group as "/v1". */
        (void)snprintf(text, sizeof text,
                       "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
                       "got %.60s%s, Kind=%.60s",
                       version, strchr(version, '/') ? "" : "/", kind);
        return refuse_review(why, text);
}

/* Decodes the patch, which is base64. A value in the patch may be as deep as a whole object, even
 * if that is too deep for the place where the patch puts it. Such a patch cannot be applied, so the
 * write is refused. If this function refused the patch, the call would have failed, and the
 * failurePolicy Ignore would let the write pass. */
static int read_patch(const char *text, struct hf__json **ret_patch,
                      char why[HFD_ADMISSION_REVIEW_WHY_MAX]) {
        char *data = NULL;
        size_t n = 0;
        int r = hf__base64_decode(text, strlen(text), &data, &n);

        if (r == HF_E_INVALID)
                return refuse_type(why, "response.patch", "[]uint8");
        if (r == 0)
                r = hf__utf8_valid(data, n)
                            ? hf__json_parse_envelope(data, n, PATCH_LEVELS, ret_patch, NULL)
                            : HF_E_INVALID;
        if (r == 0)
                r = hfd_strict_drop_duplicates(*ret_patch, NULL, NULL);
        free(data);
        bool good = r == 0 && hf__json_is_array(*ret_patch);
        for (const struct hf__json *m = hf__json_first(*ret_patch); good && m; m = hf__json_next(m))
                good = hf__json_is_object(m);
        if (good || r == -ENOMEM)
                return r;
        *ret_patch = hf__json_free(*ret_patch);
        (void)snprintf(why, HFD_ADMISSION_REVIEW_WHY_MAX,
                       "received undecodable patch in webhook response: the patch is not a list "
                       "of operations");
        return HF_E_INVALID;
}

/* Checks patch and patchType together, and decodes the patch if it will be applied. *ret_patch
 * stays NULL otherwise. 0, -ENOMEM or HF_E_INVALID. */
static int check_patch(const struct hf__json *response, bool mutating, struct hf__json **ret_patch,
                       char why[HFD_ADMISSION_REVIEW_WHY_MAX]) {
        const char *patch = hf__json_string(response, "patch"),
                   *type = hf__json_string(response, "patchType");
        bool has_patch = patch && *patch;
        char text[120], quoted[60];

        if (!mutating && has_patch)
                return refuse_review(why, "validating webhook may not return response.patch");
        if (!mutating && type)
                return refuse_review(why, "validating webhook may not return response.patchType");
        if (has_patch && !type)
                return refuse_review(why,
                                     "webhook returned response.patch but not response.patchType");
        if (!has_patch && type)
                return refuse_review(why,
                                     "webhook returned response.patchType but not response.patch");
        if (!has_patch)
                return 0;
        if (!*type)
                return refuse_review(why, "webhook returned invalid response.patchType of \"\"");
        if (!hf__json_bool(response, "allowed", false))
                return 0; /* the request is refused, so its object does not matter */
        if (strcmp(type, "JSONPatch") == 0)
                return read_patch(patch, ret_patch, why);
        hfd_quote(type, quoted, sizeof quoted);
        (void)snprintf(text, sizeof text, "unsupported patch type %s", quoted);
        (void)snprintf(why, HFD_ADMISSION_REVIEW_WHY_MAX, "%s", text);
        return HF_E_INVALID;
}

/* Parses the body, which must be an object. After an error *ret_json may be set all the same; the
 * caller frees it. */
static int parse_review(const void *body, size_t n, struct hf__json **ret_json,
                        char why[HFD_ADMISSION_REVIEW_WHY_MAX]) {
        size_t offset = 0;
        int r = hf__utf8_valid(body, n) ? hf__json_parse(body, n, ret_json, &offset) : HF_E_INVALID;

        if (r == 0)
                r = hfd_strict_drop_duplicates(*ret_json, NULL, NULL);
        if (r == -ENOMEM || (r == 0 && hf__json_is_object(*ret_json)))
                return r;
        if (n == 0)
                (void)snprintf(why, HFD_ADMISSION_REVIEW_WHY_MAX,
                               "failed to call webhook: unexpected end of JSON input");
        else
                (void)snprintf(why, HFD_ADMISSION_REVIEW_WHY_MAX,
                               "failed to call webhook: couldn't get version/kind; json parse "
                               "error: invalid JSON at offset %zu",
                               offset);
        return HF_E_INVALID;
}

int hfd_admission_review_read(const void *body, size_t n, const char *uid, bool mutating,
                              struct hfd_admission_review_response *ret_response,
                              char why[HFD_ADMISSION_REVIEW_WHY_MAX]) {
        struct hfd_admission_review_response review = {0};
        int r = parse_review(body, n, &review.json, why);
        const struct hf__json *response = hf__json_get(review.json, "response");

        if (r == 0 && is_absent(response))
                r = refuse_review(why, "webhook response was absent");
        if (r == 0 && !hf__json_is_object(response))
                r = refuse_type(why, "response", "v1.AdmissionResponse");
        if (r == 0)
                r = check_types(response, why);
        if (r == 0)
                r = check_identity(review.json, uid, why);
        if (r == 0)
                r = check_patch(response, mutating, &review.patch, why);
        if (r != 0) {
                hfd_admission_review_response_done(&review);
                return r;
        }
        review.allowed = hf__json_bool(response, "allowed", false);
        review.status = hf__json_get(response, "status");
        review.warnings = hf__json_get(response, "warnings");
        review.annotations = hf__json_get(response, "auditAnnotations");
        *ret_response = review;
        return 0;
}

void hfd_admission_review_response_done(struct hfd_admission_review_response *review) {
        hf__json_free(review->patch);
        hf__json_free(review->json);
        *review = (struct hfd_admission_review_response){0};
}
