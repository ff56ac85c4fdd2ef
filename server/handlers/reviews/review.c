/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a review (an object that asks the server a question), passes it to the file for its kind,
 * and prints the response: the same object with a status.
 *
 * Invariant: the status that a client sends is dropped before the review is decided. So the status
 * in the response is the server's.
 */
#include "server/handlers/reviews/review.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/handlers/reviews/access_review.h"
#include "server/handlers/reviews/user_review.h"
#include "server/resources/meta.h"
#include "server/schema/decode.h"
#include "server/schema/strict.h"

/* Fills in the status of the object. False: response is the failure. */
typedef bool (*review_fn)(const struct hfd_review_context *context, struct hf__json *object,
                          struct hfd_response *response);

static review_fn find_review(const char *plural) {
        static const struct {
                const char *plural;
                review_fn fn;
        } kinds[] = {{"subjectaccessreviews", hfd_access_review},
                     {"localsubjectaccessreviews", hfd_access_review},
                     {"selfsubjectaccessreviews", hfd_access_review},
                     {"selfsubjectrulesreviews", hfd_rules_review},
                     {"selfsubjectreviews", hfd_self_review},
                     {"tokenreviews", hfd_token_review}};

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(kinds[i].plural, plural) == 0)
                        return kinds[i].fn;
        return NULL;
}

/* The type is checked before the members: a body of another kind gets the message about its kind,
 * not one about a member that only its kind has. */
struct hf__json *hfd_review_parse(const struct hfd_resource *resource, const void *body,
                                  size_t n_body, struct hfd_response *response) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *object = NULL;
        char reason[512];
        int r = hf__json_parse(body ? body : "", n_body, &object, NULL);

        if (r == 0 && hf__json_is_object(object))
                r = hfd_strict_drop_duplicates(object, NULL, NULL);
        else if (r != -ENOMEM)
                r = HF_E_INVALID;
        if (r == 0 && !hfd_meta_accept_type(resource, object, response))
                return NULL;
        (void)snprintf(reason, sizeof reason, "the body is not a JSON object");
        if (r == 0)
                r = hfd_schema_decode(resource->schema, object, NULL, reason, sizeof reason);
        if (r == 0)
                return HF__TAKE(object);
        if (r == HF_E_INVALID)
                hfd_response_bad_request(response,
                                         "%s in version \"%s\" cannot be handled as a %s: %s",
                                         resource->kind, resource->version, resource->kind, reason);
        else
                hfd_response_no_memory(response);
        return NULL;
}

/* Prints the members of Kubernetes' structs, in their order. What else a client has sent is left
 * out, and metadata is printed even if the client sent none, as Go prints a struct. */
struct hf__buf *hfd_review_print(const struct hfd_resource *resource,
                                 const struct hf__json *object) {
        static const char *const members[] = {"metadata", "spec", "status"};
        struct hf__strbuf out = {0};
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(resource, version);
        hf__strbuf_printf(&out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\"", resource->kind, version);
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                const struct hf__json *member = hf__json_get(object, members[i]);
                if (!member && i > 0)
                        continue;
                hf__strbuf_printf(&out, ",\"%s\":", members[i]);
                if (member)
                        hf__json_print(member, &out);
                else
                        hf__strbuf_puts(&out, "{}");
        }
        hf__strbuf_puts(&out, "}\n");
        struct hf__buf *buf = hf__strbuf_to_buf(&out);
        hf__strbuf_done(&out);
        return buf;
}

void hfd_review(const struct hfd_review_context *context, const void *body, size_t n_body,
                struct hfd_response *response) {
        review_fn fn = find_review(context->resource->plural);
        struct hf__json *object = hfd_review_parse(context->resource, body, n_body, response);

        assert(fn); /* the table above has every row with is_review that comes here */
        if (!object)
                return;
        hf__json_drop(object, "status");
        if (fn(context, object, response))
                hfd_response_ok(response, 201, hfd_review_print(context->resource, object));
        hf__json_free(object);
}
