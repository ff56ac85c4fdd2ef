/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a patch with the functions of server/patch/, and handles their results.
 *
 * Invariant: the patch itself is never changed or consumed, because the next attempt applies it to
 * a newer version of the object. A patch that fails on an old version may succeed on the newest, so
 * an error that depends on the object is sent only if the current version is fresh.
 */
#include "server/registry/write/patches/patch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/patch/json_patch.h"
#include "server/patch/merge_patch.h"
#include "server/patch/strategic_patch.h"
#include "server/registry/write/body.h"
#include "server/registry/write/patches/apply.h"
#include "server/registry/write/reply.h"

void hfd_write_patch_refuse(int r, const struct hfd_patch_outcome *outcome,
                            struct hfd_response *response) {
        char message[HFD_PATCH_WHY + 120];

        assert(r != 0);
        if (r == -ENOMEM) {
                hfd_response_no_memory(response);
        } else if (r == HF_E_TOO_LARGE) {
                (void)snprintf(message, sizeof message, "Request entity too large: %s",
                               outcome->why);
                hfd_response_status(response, HF_E_TOO_LARGE, 413, "RequestEntityTooLarge", message,
                                    NULL);
        } else if (outcome->malformed) {
                hfd_response_bad_request(response, "%s", outcome->why);
        } else {
                (void)snprintf(message, sizeof message,
                               "the server rejected our request due to an error in our request: %s",
                               outcome->why);
                hfd_response_status(response, HF_E_INVALID, 422, "Invalid", message, NULL);
        }
}

/* Handles a patch that could not be applied: responds, or refetches if current is not fresh. */
static void reply_failed(struct hfd_write *w, int r, const struct hfd_patch_outcome *outcome) {
        struct hfd_response response = {0};

        if (r != -ENOMEM && !w->fresh && !outcome->malformed) {
                hfd_write_refetch(w);
                return;
        }
        hfd_write_patch_refuse(r, outcome, &response);
        hfd_write_reply(w, &response);
}

int hfd_write_patch_object(struct hfd_write *w, struct hfd_patch_outcome *outcome) {
        const struct hfd_resource *resource = w->request->resource;
        int r;

        if (w->request->patch == HFD_PATCH_JSON)
                r = hfd_json_patch_apply(&w->object, w->body, outcome);
        else if (w->request->patch == HFD_PATCH_MERGE)
                r = hfd_merge_patch_apply(&w->object, w->body, outcome);
        else
                r = hfd_strategic_patch_apply(resource, &w->object, w->body, outcome);
        if (r == 0 && !hf__json_is_object(w->object))
                r = hfd_patch_refuse(outcome,
                                     "json: cannot unmarshal %s into Go value of type %s.%s",
                                     hfd_write_body_type_name(w->object), resource->version,
                                     resource->kind);
        return r;
}

/* Whether an object of a patch has a directive ("$..."), or the member managedFields. A value that
 * is no object replaces what is there, so it counts, too. */
static bool is_special(const struct hf__json *patch) {
        if (!hf__json_is_object(patch))
                return true;
        for (const struct hf__json *m = hf__json_first(patch); m; m = hf__json_next(m))
                if (hf__json_key(m)[0] == '$' || strcmp(hf__json_key(m), "managedFields") == 0)
                        return true;
        return false;
}

bool hfd_write_patch_reads_managers(const struct hfd_write *w) {
        const struct hf__json *metadata = hf__json_get(w->body, "metadata");

        if (w->request->patch != HFD_PATCH_MERGE && w->request->patch != HFD_PATCH_STRATEGIC)
                return true;
        return is_special(w->body) || (metadata && is_special(metadata));
}

bool hfd_write_patch_apply(struct hfd_write *w, const struct hf__json *old) {
        struct hfd_response response = {0};
        struct hfd_patch_outcome outcome = {0};
        int r;

        assert(w->request->verb == HFD_PATCH && w->body && w->current);
        if (w->request->patch == HFD_PATCH_APPLY)
                return hfd_write_apply(w, old);
        hf__json_free(w->object);
        w->object = hf__json_dup(old);
        r = w->object ? hfd_write_patch_object(w, &outcome) : -ENOMEM;
        if (r != 0) {
                reply_failed(w, r, &outcome);
                return false;
        }
        /* managedFields that the patch has left as text are not a part of the client's new object.
         */
        if (hf__json_raw(hf__json_path(w->object, "metadata.managedFields")))
                hf__json_remove(w->object, "metadata.managedFields");
        if (hfd_write_body_accept(w, w->object, &response))
                return true;
        if (w->fresh) {
                hfd_write_reply(w, &response);
        } else {
                hfd_response_done(&response);
                hfd_write_refetch(w);
        }
        return false;
}
