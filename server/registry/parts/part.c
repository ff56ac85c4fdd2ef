/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the subresources of another kind share: reading the body, and the requests to the object.
 *
 * Invariant: a part is freed once, by hfd_part_finish, which is the last that touches it. So a
 * function that sends a request returns at once: the request may have ended the part already.
 */
#include "server/registry/parts/part.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/list/table.h"
#include "server/registry/write/body.h"
#include "server/resources/meta.h"
#include "server/schema/decode.h"

#define CONFLICTS_MAX 5 /* as in Kubernetes */

void hfd_part_finish(struct hfd_part *part, const struct hfd_response *response) {
        struct hfd_request *outer = part->outer;

        hf__json_free(part->body);
        hf__buf_unref(part->inner_body);
        free(part);
        outer->done(outer, response);
}

void hfd_part_finish_no_memory(struct hfd_part *part) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

void hfd_part_finish_json(struct hfd_part *part, int code, struct hf__json *json) {
        struct hfd_response response = {0};
        struct hf__strbuf text = {0};

        if (json && part->outer->format == HFD_AS_TABLE && part->outer->verb == HFD_GET) {
                hfd_response_ok(&response, code,
                                hfd_table_render_json(part->registry, part->outer, json));
        } else {
                if (json)
                        hf__json_print(json, &text);
                hfd_response_ok(&response, code, text.n > 0 ? hf__strbuf_to_buf(&text) : NULL);
        }
        hf__json_free(json);
        hf__strbuf_done(&text);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

void hfd_part_send(struct hfd_part *part, enum hfd_verb verb, const struct hf__json *body,
                   void (*done)(struct hfd_request *inner, const struct hfd_response *response)) {
        struct hf__strbuf text = {0};

        hf__buf_unref(part->inner_body);
        part->inner_body = NULL;
        if (body) {
                hf__json_print(body, &text);
                part->inner_body = hf__strbuf_to_buf(&text);
                hf__strbuf_done(&text);
                if (!part->inner_body) {
                        hfd_part_finish_no_memory(part);
                        return;
                }
        }
        struct hfd_request *inner = &part->inner;
        inner->verb = verb;
        inner->body = body ? part->inner_body->data : NULL;
        inner->n_body = body ? part->inner_body->n : 0;
        inner->done = done;
        hfd_registry_serve(part->registry, inner);
}

bool hfd_part_may_retry(struct hfd_part *part, const struct hfd_response *response) {
        if (response->status.error != HF_E_CONFLICT || part->n_conflicts == CONFLICTS_MAX)
                return false;
        part->n_conflicts++;
        return true;
}

/* Parses the body of a create or an update. False: response is filled. */
static bool read_body(struct hfd_part *part, struct hfd_response *response) {
        const struct hfd_request *outer = part->outer;
        const struct hfd_resource *kind = outer->resource;
        char reason[400];

        if (!hfd_write_body_parse(outer, kind->kind, &part->body, response) ||
            !hfd_meta_accept_type(kind, part->body, response))
                return false;
        int r = hfd_schema_decode(kind->schema, part->body, NULL, reason, sizeof reason);
        if (r == 0)
                return hfd_meta_accept(kind, outer->ns, outer->name, part->body, response);
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else
                hfd_response_bad_request(response,
                                         "%s in version \"%s\" cannot be handled as a %s: %s",
                                         kind->kind, kind->version, kind->kind, reason);
        return false;
}

void hfd_part_serve(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_part *part = calloc(1, sizeof *part);
        struct hfd_response response = {0};

        assert(request->part_of && request->part_of != request->resource);
        if (!part) {
                hfd_response_no_memory(&response);
                request->done(request, &response);
                hfd_response_done(&response);
                return;
        }
        part->registry = registry;
        part->outer = request;
        /* The inner request borrows what the outer one owns, but reports no mistakes of bodies: it
         * is made here. */
        part->inner = *request;
        part->inner.resource = part->inner.part_of = request->part_of;
        part->inner.options.strict = (struct hfd_strict){0};
        part->inner.options.field_validation = HFD_FIELDS_IGNORE;
        part->inner.protobuf = part->inner.takes_list_body = false;
        part->inner.format = HFD_AS_JSON;
        part->inner.subresource = HFD_SUB_NONE;
        bool has_body = request->verb == HFD_CREATE || request->verb == HFD_UPDATE;
        if (has_body && !read_body(part, &response)) {
                hfd_part_finish(part, &response);
                hfd_response_done(&response);
                return;
        }
        if (request->subresource == HFD_SUB_SCALE)
                hfd_scale_serve(part);
        else if (request->subresource == HFD_SUB_BINDING)
                hfd_binding_serve(part);
        else
                hfd_eviction_serve(part);
}
