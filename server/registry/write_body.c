/* SPDX-License-Identifier: Apache-2.0 */
/* What a write sends: the object, or DeleteOptions, parsed and checked as far as that needs no
 * state. */
#include "server/registry/write_body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "server/resources/meta.h"
#include "server/resources/schema/field_types.h"
#include "server/resources/schema/unknown_fields.h"

/* ---- objects ---- */

/* Of two equal keys readers take the first or the last: neither is stored. False: answer is filled.
 */
static bool keys_unique(const struct hf__json *json, struct hfd_response *response) {
        int r = hf__json_check_unique(json, NULL);

        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else if (r != 0)
                hfd_response_bad_request(response, "the object provided has a key twice in one of "
                                                   "its objects");
        return r == 0;
}

/* What fieldValidation asks for. False: answer is filled. */
static bool fields_known(struct hfd_write *w, struct hf__json *object,
                         struct hfd_response *response) {
        const struct hfd_resource *r = w->request->resource;
        struct hfd_options *o = &w->request->options;
        char list[1600], *save = NULL;
        size_t n = 0;

        /* A retry has told already; but of a patch each attempt makes another object. */
        if (o->field_validation == HFD_FIELDS_IGNORE || (w->tries && w->request->verb != HFD_PATCH))
                return true;
        free(o->unknown_fields);
        if (hfd_unknown_fields(r, object, &o->unknown_fields)) {
                hfd_response_no_memory(response);
                return false;
        }
        if (!o->unknown_fields || o->field_validation == HFD_FIELDS_WARN)
                return true;
        for (char *line = strtok_r(o->unknown_fields, "\n", &save); line && n < sizeof list;
             line = strtok_r(NULL, "\n", &save))
                n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", line);
        hfd_response_bad_request(response,
                                 "%s in version \"%s\" cannot be handled as a %s: strict decoding "
                                 "error: %s",
                                 r->kind, r->version, r->kind, list);
        return false;
}

bool hfd_write_body_accept(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response) {
        const struct hfd_resource *r = w->request->resource;
        char reason[320];

        if (!hfd_meta_accept(r, w->request->ns, w->request->name, object, response) ||
            !fields_known(w, object, response))
                return false;
        if ((r->decode && !r->decode(object, reason, sizeof reason)) ||
            !hfd_field_types_check(r, object, reason, sizeof reason)) {
                hfd_response_bad_request(response,
                                         "%s in version \"%s\" cannot be handled as a %s: %s",
                                         r->kind, r->version, r->kind, reason);
                return false;
        }
        return true;
}

bool hfd_write_body_parse(const struct hfd_request *request, const char *type,
                          struct hf__json **ret_json, struct hfd_response *response) {
        size_t offset = 0;

        /* Clients read whole lists as UTF-8: one object that is not would hide all others from
         * them. */
        if (request->n_body && !hf__utf8_valid(request->body, request->n_body)) {
                hfd_response_bad_request(response,
                                         "the object provided is unrecognized (must be of type "
                                         "%s): "
                                         "it is not valid UTF-8",
                                         type);
                return false;
        }
        int r = hf__json_parse(request->body ? request->body : "", request->n_body, ret_json,
                               &offset);
        if (r == -ENOMEM) {
                hfd_response_no_memory(response);
                return false;
        }
        if (r != 0 || !hf__json_is_object(*ret_json)) {
                hfd_response_bad_request(response,
                                         "the object provided is unrecognized (must be of type "
                                         "%s): "
                                         "couldn't get version/kind; json parse "
                                         "error at offset %zu",
                                         type, offset);
                return false;
        }
        return keys_unique(*ret_json, response);
}

/* False: answer is filled. */
static bool parse_patch(struct hfd_write *w, struct hfd_response *response) {
        bool json_patch = w->request->patch == HFD_PATCH_JSON;
        char message[160];
        size_t offset = 0, n;

        bool utf8 = hf__utf8_valid(w->request->body ? w->request->body : "", w->request->n_body);
        int r = utf8 ? hf__json_parse(w->request->body ? w->request->body : "", w->request->n_body,
                                      &w->sent, &offset)
                     : HF_E_INVALID;
        if (r == -ENOMEM) {
                hfd_response_no_memory(response);
                return false;
        }
        if (r != 0 || (json_patch ? !hf__json_is_array(w->sent) : !hf__json_is_object(w->sent))) {
                hfd_response_bad_request(response,
                                         "error decoding patch: it is no JSON %s (offset %zu)",
                                         json_patch ? "array" : "object", offset);
                return false;
        }
        n = json_patch ? hf__json_count(w->sent) : 0;
        if (n > HFD_PATCH_OPS_MAX) {
                (void)snprintf(message, sizeof message,
                               "Request entity too large: The allowed maximum operations in a JSON "
                               "patch is %d, got %zu",
                               HFD_PATCH_OPS_MAX, n);
                hfd_response_status(response, HF_E_TOO_LARGE, 413, "RequestEntityTooLarge", message,
                                    NULL);
                return false;
        }
        return keys_unique(w->sent, response);
}

bool hfd_write_body_take(struct hfd_write *w, struct hfd_response *response) {
        bool deletes = w->request->verb == HFD_DELETE_ONE;

        if (w->request->verb == HFD_PATCH)
                return parse_patch(w, response);
        if ((!deletes || w->request->n_body) &&
            !hfd_write_body_parse(w->request,
                                  deletes ? "DeleteOptions" : w->request->resource->kind, &w->sent,
                                  response))
                return false;
        if (deletes)
                return hfd_options_read_delete(&w->request->options, w->sent, response);
        if (!hfd_write_body_accept(w, w->sent, response))
                return false;
        const char *revision = hf__json_string(w->sent, "metadata.resourceVersion");
        if (w->request->verb == HFD_CREATE && revision && *revision && strcmp(revision, "0") != 0) {
                hfd_response_bad_request(response,
                                         "resourceVersion should not be set on objects to be "
                                         "created");
                return false;
        }
        return true;
}
