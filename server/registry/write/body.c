/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a write: an object, a patch or DeleteOptions.
 *
 * Invariant: an accepted body is valid UTF-8, has no duplicate keys, and an object has the form of
 * its kind's schema (for a custom resource, validation finds wrong types outside metadata). A list
 * response contains the stored bytes of each object, so one object that a client cannot decode
 * would make the whole list unreadable for that client.
 */
#include "server/registry/write/body.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "client/yaml_duplicates.h"
#include "server/registry/base/body_summary.h"
#include "server/registry/base/delete_options.h"
#include "server/registry/write/apply_body.h"
#include "server/resources/causes.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/resources/go_value.h"
#include "server/resources/meta.h"
#include "server/resources/objects/custom_object.h"
#include "server/schema/decode.h"

#define REASON_MAX 512 /* bytes of the reason why an object is refused */

/* Where mistakes in the body are collected; NULL = the client does not want to know them. The
 * unknown fields of an applied configuration are always collected, because it must not have any.
 * As in Kubernetes the mistakes in DeleteOptions never are. */
static struct hfd_strict *strict_of(struct hfd_write *w) {
        struct hfd_options *o = &w->request->options;

        if (w->request->verb == HFD_DELETE_OBJECT)
                return NULL;
        return o->field_validation == HFD_FIELDS_IGNORE && !w->accepts_config ? NULL : &o->strict;
}

/*
 * If fieldValidation is Strict and the body is YAML, replaces the duplicate fields that were found
 * by one mistake that names their lines, as Kubernetes' decoder does. False: memory is exhausted.
 */
static bool name_lines(struct hfd_write *w) {
        const struct hfd_request *request = w->request;
        struct hfd_strict *strict = &w->request->options.strict;
        struct hf__strbuf lines = {0};

        if (!request->yaml || strict->n == 0 ||
            request->options.field_validation != HFD_FIELDS_STRICT)
                return true;
        int r = hf__yaml_duplicates(request->yaml, request->n_yaml, HFD_STRICT_MAX, &lines);
        if (r == 0 && lines.n > 0) {
                hfd_strict_rewind(strict, (struct hfd_strict_mark){0});
                hf__strbuf_add(&strict->lines, lines.data, lines.n);
                strict->n = 1;
        }
        bool named = r != -ENOMEM && lines.error == 0;
        hf__strbuf_done(&lines);
        return named;
}

/*
 * Removes duplicate fields from the body. Some parsers use the first value and others the last, so
 * the value that was checked might not be the value that a client reads. schema: of an object of a
 * built-in kind in JSON, otherwise NULL. False: response is filled.
 */
static bool drop_duplicates(struct hfd_write *w, const struct hfd_schema *schema,
                            struct hfd_response *response) {
        /* After a conflict the body is read again, and its mistakes are found again. */
        hfd_strict_rewind(&w->request->options.strict, (struct hfd_strict_mark){0});
        int r = hfd_strict_drop_duplicates(w->body, schema, strict_of(w));
        w->unknown_reported = r == 1;
        if (r < 0 || !name_lines(w) || w->request->options.strict.lines.error != 0) {
                hfd_response_no_memory(response);
                return false;
        }
        w->strict_of_body = hfd_strict_mark(&w->request->options.strict);
        return true;
}

/* ---- objects ---- */

/*
 * Fills response with a 422 for the result of a patch that is not of the kind. As in Kubernetes the
 * message names no object: the wrong field is "patch", and its value is the result, or a strategic
 * patch itself.
 */
static void refuse_patched(const struct hfd_write *w, const struct hf__json *object,
                           const char *reason, struct hfd_response *response) {
        static const struct hfd_resource unnamed = {.kind = "", .group = ""};
        struct hf__strbuf value = {0};
        struct hfd_causes causes;

        if (w->request->patch == HFD_PATCH_STRATEGIC)
                hfd_go_value_print(&value, w->body);
        else
                hf__json_print(object, &value);
        if (value.error != 0) {
                hfd_response_no_memory(response);
        } else {
                hfd_causes_init(&causes);
                hfd_cause_invalid_text(&causes, "patch", value.data, reason);
                hfd_response_invalid(response, &unnamed, "", &causes);
        }
        hf__strbuf_done(&value);
}

/* Refuses an object that is not of the kind: with a 422 if it is the result of a patch other than
 * an apply, else with a 400. Returns false. */
static bool refuse_object(const struct hfd_write *w, const struct hf__json *object,
                          const char *reason, struct hfd_response *response) {
        const struct hfd_resource *resource = w->request->resource;

        if (w->request->verb == HFD_PATCH && w->request->patch != HFD_PATCH_APPLY) {
                refuse_patched(w, object, reason, response);
                return false;
        }
        hfd_response_bad_request(response, "%s in version \"%s\" cannot be handled as a %s: %s",
                                 resource->kind, resource->version, resource->kind, reason);
        return false;
}

/* Refuses an object with mistakes that a strict decoder finds. Returns false. */
static bool refuse_mistakes(const struct hfd_write *w, const struct hf__json *object,
                            struct hfd_response *response) {
        const struct hfd_strict *strict = &w->request->options.strict;
        struct hf__strbuf reason = {0};

        hf__strbuf_puts(&reason, "strict decoding error: ");
        /* A line that begins with a space belongs to the mistake before it. */
        for (const char *at = strict->lines.data; *at; at++)
                if (*at == '\n' && at[1] != ' ')
                        hf__strbuf_puts(&reason, ", ");
                else
                        hf__strbuf_putc(&reason, *at);
        if (reason.error != 0)
                hfd_response_no_memory(response);
        else
                (void)refuse_object(w, object, reason.data, response);
        hf__strbuf_done(&reason);
        return false;
}

/* An object of a custom resource must name its type. False: response is filled. */
static bool has_type(const struct hfd_write *w, const struct hf__json *object,
                     struct hfd_response *response) {
        static const char *const members[] = {"kind", "apiVersion"};
        static const char *const names[] = {"Kind", "apiVersion"};
        const struct hfd_request *request = w->request;

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                const char *text = hf__json_string(object, members[i]);
                if (text && *text)
                        continue;
                hfd_response_bad_request(response,
                                         "%s in version \"%s\" cannot be handled as a %s: Object "
                                         "'%s' is missing in '%.*s'",
                                         request->resource->kind, request->resource->version,
                                         request->resource->kind, names[i],
                                         (int)(request->n_body < 500 ? request->n_body : 500),
                                         request->body ? (const char *)request->body : "");
                return false;
        }
        return true;
}

typedef int (*decode_fn)(const struct hfd_schema *schema, struct hf__json *object,
                         struct hfd_strict *strict, char *reason, size_t max_reason);

/* How the body of the request becomes an object. */
static decode_fn decoder_of(const struct hfd_write *w) {
        if (w->accepts_config)
                return hfd_schema_decode_config;
        return w->request->verb == HFD_PATCH && w->request->patch == HFD_PATCH_STRATEGIC
                       ? hfd_schema_decode_patched
                       : hfd_schema_decode;
}

/*
 * Brings an object into the form of its kind: decodes it, and removes the fields that the kind does
 * not have, which strict gets (NULL = they are not reported). In a custom resource only metadata is
 * decoded here; a wrong type elsewhere is found by validation, as a cause of a 422. 0, -ENOMEM, or
 * HF_E_INVALID with the reason.
 */
static int decode_and_prune(const struct hfd_resource *resource, decode_fn decode,
                            struct hf__json *object, struct hfd_strict *strict,
                            char reason[REASON_MAX]) {
        const struct hfd_schema *schema =
                resource->custom ? &hfd_custom_meta_schema : resource->schema;
        int r = decode(schema, object, strict, reason, REASON_MAX);

        if (r == 0 && resource->custom)
                r = hfd_custom_schema_prune(resource->custom->schema, object, strict);
        return r;
}

bool hfd_write_body_decode(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response) {
        const struct hfd_resource *resource = w->request->resource;
        struct hfd_options *o = &w->request->options;
        char reason[REASON_MAX];

        assert(hf__json_is_object(object));
        if (resource->custom && !has_type(w, object, response))
                return false;
        if (!hfd_meta_accept_type(resource, object, response))
                return false;
        /* Each attempt of a patch decodes another object. */
        hfd_strict_rewind(&o->strict, w->strict_of_body);
        int r = decode_and_prune(resource, decoder_of(w), object,
                                 w->unknown_reported ? NULL : strict_of(w), reason);
        if (r == HF_E_INVALID)
                return refuse_object(w, object, reason, response);
        if (r == 0 && o->strict.n > 0 && o->field_validation == HFD_FIELDS_STRICT &&
            !w->accepts_config)
                return refuse_mistakes(w, object, response);
        if (r == 0 && resource->normalize)
                r = resource->normalize(object);
        if (r == 0)
                return true;
        hfd_response_no_memory(response);
        return false;
}

bool hfd_write_body_accept(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response) {
        const struct hfd_request *request = w->request;

        return hfd_write_body_decode(w, object, response) &&
               hfd_meta_accept(request->resource, request->ns, request->name, object, response);
}

/* Fills response with a 500 for an object that admission has made unusable. Returns false. */
static bool refuse_admitted(const char *reason, struct hfd_response *response) {
        char message[600];

        (void)snprintf(message, sizeof message, "Internal error occurred: %s", reason);
        hfd_response_status(response, HF_E_INVALID, 500, "InternalError", message, NULL);
        return false;
}

bool hfd_write_body_settle(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response) {
        const struct hfd_resource *resource = w->request->resource;
        char reason[REASON_MAX];

        if (!hf__json_is_object(object))
                return refuse_admitted("the value is not an object after admission", response);
        if (!hfd_meta_accept_type(resource, object, response))
                return false;
        int r = decode_and_prune(resource, hfd_schema_decode, object, NULL, reason);
        if (r == HF_E_INVALID)
                return refuse_admitted(reason, response);
        if (r == 0 && resource->normalize)
                r = resource->normalize(object);
        if (r == 0 && resource->prepare)
                r = resource->prepare(object, w->old);
        if (r == 0 && resource->custom)
                r = hfd_custom_schema_default(resource->custom->schema, object);
        if (r == HF_E_TOO_LARGE)
                return refuse_admitted("the defaults add too much", response);
        if (r != 0) {
                hfd_response_no_memory(response);
                return false;
        }
        return hfd_meta_accept(resource, w->request->ns, w->request->name, object, response);
}

/* Fills response with a 400 and Kubernetes' message: the body has a number that no type can hold.
 */
static void refuse_number(const struct hfd_request *request, const char *type, size_t offset,
                          struct hfd_response *response) {
        const char *number = (const char *)request->body + offset;
        size_t n = 0;

        while (n < request->n_body - offset && n < 100 && number[n] && /* 100: enough to find it */
               strchr("+-.eE0123456789", number[n]))
                n++;
        hfd_response_bad_request(response,
                                 "%s in version \"%s\" cannot be handled as a %s: json: cannot "
                                 "unmarshal number %.*s into Go value of type float64",
                                 type, request->resource->version, type, (int)n, number);
}

/*
 * Fills response with a 400 for a body that is not a JSON object. json: the value of the body; NULL
 * = it is not JSON. Then, unless the body is empty, the message names the offset of the error,
 * where Kubernetes' message has the character there and the text before it.
 */
static void refuse_body(const struct hfd_request *request, const char *type,
                        const struct hf__json *json, size_t offset, struct hfd_response *response) {
        const char *body = request->body ? request->body : "";
        char summary[HFD_BODY_SUMMARY_MAX], why[200];

        if (json)
                (void)snprintf(why, sizeof why,
                               "json: cannot unmarshal %s into Go value of type struct { "
                               "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind "
                               "string \"json:\\\"kind,omitempty\\\"\" }",
                               hfd_write_body_type_name(json));
        else if (request->n_body == 0)
                (void)snprintf(why, sizeof why, "unexpected end of JSON input");
        else
                (void)snprintf(why, sizeof why, "invalid JSON at offset %zu", offset);
        hfd_body_summary(body, request->n_body, summary);
        hfd_response_bad_request(response,
                                 "the object provided is unrecognized (must be of type %s): "
                                 "couldn't get version/kind; json parse error: %s (%s)",
                                 type, why, summary);
}

/*
 * Parses the text of the body. type is its kind, for messages. 0; -EILSEQ: it is not valid UTF-8;
 * or HF_E_INVALID: it is not JSON, from *ret_offset on. With -ENOMEM, and with HF_E_TOO_LARGE (no
 * type holds a number in it), response is filled: objects and patches get the same one.
 */
static int parse_text(const struct hfd_request *request, const char *type,
                      struct hf__json **ret_json, size_t *ret_offset,
                      struct hfd_response *response) {
        const char *body = request->body ? request->body : "";

        assert(request->body || request->n_body == 0);
        *ret_offset = 0;
        if (!hf__utf8_valid(body, request->n_body))
                return -EILSEQ;
        int r = hf__json_parse(body, request->n_body, ret_json, ret_offset);
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else if (r == HF_E_TOO_LARGE)
                refuse_number(request, type, *ret_offset, response);
        return r;
}

bool hfd_write_body_parse(const struct hfd_request *request, const char *type,
                          struct hf__json **ret_json, struct hfd_response *response) {
        size_t offset;
        int r = parse_text(request, type, ret_json, &offset, response);

        if (r == -ENOMEM || r == HF_E_TOO_LARGE)
                return false;
        if (r == -EILSEQ) {
                hfd_response_bad_request(response,
                                         "the object provided is unrecognized (must be of type "
                                         "%s): it is not valid UTF-8",
                                         type);
                return false;
        }
        if (r != 0 || !hf__json_is_object(*ret_json)) {
                refuse_body(request, type, *ret_json, offset, response);
                return false;
        }
        return true;
}

/* The schema with which a strict decoder reports duplicate and unknown fields together, in the
 * order of the body. NULL: the duplicate fields come first, because Kubernetes decodes a custom
 * resource without a type, and finds those of YAML before it decodes the object. */
static const struct hfd_schema *body_schema(const struct hfd_request *request) {
        return request->resource->custom || request->yaml ? NULL : request->resource->schema;
}

/*
 * Reads the object of a create or an update. A create must not name a resourceVersion other than
 * "0", because there is no version yet; as in Kubernetes it is refused after other mistakes. False:
 * response is filled.
 */
static bool read_object(struct hfd_write *w, struct hfd_response *response) {
        const char *revision;

        if (!hfd_write_body_parse(w->request, w->request->resource->kind, &w->body, response) ||
            !drop_duplicates(w, body_schema(w->request), response) ||
            !hfd_write_body_accept(w, w->body, response))
                return false;
        revision = hf__json_string(w->body, "metadata.resourceVersion");
        w->names_revision = revision && *revision && strcmp(revision, "0") != 0;
        return true;
}

/* ---- patches ---- */

static bool is_patch_of(enum hfd_patch patch, const struct hf__json *json) {
        return patch == HFD_PATCH_JSON ? hf__json_is_array(json) : hf__json_is_object(json);
}

/*
 * Limits the number of operations, because a small body could otherwise cause much work. False:
 * response is filled.
 */
static bool check_operations(const struct hf__json *patch, struct hfd_response *response) {
        size_t n = hf__json_count(patch);
        char message[160];

        if (n <= HFD_PATCH_OPS_MAX)
                return true;
        (void)snprintf(message, sizeof message,
                       "Request entity too large: The allowed maximum operations in a JSON patch "
                       "is %d, got %zu",
                       HFD_PATCH_OPS_MAX, n);
        hfd_response_status(response, HF_E_TOO_LARGE, 413, "RequestEntityTooLarge", message, NULL);
        return false;
}

const char *hfd_write_body_type_name(const struct hf__json *json) {
        if (hf__json_is_object(json))
                return "object";
        if (hf__json_is_array(json))
                return "array";
        if (hf__json_is_string(json))
                return "string";
        if (hf__json_is_number(json))
                return "number";
        return hf__json_is_bool(json) ? "bool" : "null";
}

/* Whether the body has the JSON type that a patch of this format needs. The messages are those of
 * Kubernetes. False: response is filled. */
static bool check_patch_types(enum hfd_patch patch, const struct hf__json *json,
                              struct hfd_response *response) {
        const char *wanted =
                patch == HFD_PATCH_JSON ? "[]handlers.jsonPatchOp" : "map[string]interface {}";
        const struct hf__json *wrong = is_patch_of(patch, json) ? NULL : json;

        for (const struct hf__json *m = hf__json_first(json);
             m && patch == HFD_PATCH_JSON && !wrong; m = hf__json_next(m))
                if (!hf__json_is_object(m)) {
                        wanted = "handlers.jsonPatchOp";
                        wrong = m;
                }
        if (!wrong)
                return true;
        hfd_response_bad_request(response, "%sjson: cannot unmarshal %s into Go value of type %s",
                                 patch == HFD_PATCH_STRATEGIC ? "" : "error decoding patch: ",
                                 hfd_write_body_type_name(wrong), wanted);
        return false;
}

/* Reads a patch, which is applied later (patches/patch.c). False: response is filled. */
static bool read_patch(struct hfd_write *w, struct hfd_response *response) {
        enum hfd_patch patch = w->request->patch;
        size_t offset;
        int r = parse_text(w->request, w->request->resource->kind, &w->body, &offset, response);

        if (r == -ENOMEM || r == HF_E_TOO_LARGE)
                return false;
        if (r != 0) {
                hfd_response_bad_request(response,
                                         "error decoding patch: json: syntax error at offset %zu",
                                         offset);
                return false;
        }
        if (!check_patch_types(patch, w->body, response))
                return false;
        if (patch == HFD_PATCH_JSON && !check_operations(w->body, response))
                return false;
        if (!drop_duplicates(w, NULL, response))
                return false;
        return patch != HFD_PATCH_APPLY || hfd_write_apply_body_accept(w, response);
}

/* ---- any body ---- */

bool hfd_write_body_read(struct hfd_write *w, struct hfd_response *response) {
        assert(!w->body && !w->awaiting);
        if (w->request->verb == HFD_PATCH)
                return read_patch(w, response);
        if (w->request->verb != HFD_DELETE_OBJECT)
                return read_object(w, response);
        if (w->request->n_body &&
            (!hfd_write_body_parse(w->request, "DeleteOptions", &w->body, response) ||
             !drop_duplicates(w, NULL, response)))
                return false;
        return hfd_delete_options_read(&w->request->options, w->body, response);
}
