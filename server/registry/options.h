/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The query parameters of a request, and DeleteOptions, which say the same in a body. Names and
 * combinations are those of Kubernetes' ListOptions, GetOptions and DeleteOptions. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "server/resources/response.h"
#include "server/resources/selector.h"

struct hfd_request;

/* resourceVersionMatch */
enum hfd_match { HFD_MATCH_UNSET, HFD_MATCH_NOT_OLDER, HFD_MATCH_EXACT };
/* includeObject: the part of each object that the rows of a Table contain */
enum hfd_include { HFD_INCLUDE_METADATA, HFD_INCLUDE_NONE, HFD_INCLUDE_OBJECT };
/*
 * fieldValidation: whether fields of a sent object that its kind does not have are accepted with a
 * Warning header, accepted silently, or refused.
 */
enum hfd_field_validation { HFD_FIELDS_WARN, HFD_FIELDS_IGNORE, HFD_FIELDS_STRICT };
/* propagationPolicy: what happens to the objects whose owner is deleted */
enum hfd_propagation {
        HFD_PROPAGATE_UNSET,
        HFD_PROPAGATE_ORPHAN,
        HFD_PROPAGATE_BACKGROUND,
        HFD_PROPAGATE_FOREGROUND
};

struct hfd_options {
        struct hfd_selector labels, fields; /* owned */
        bool has_revision;                  /* a resourceVersion that is not "" was given */
        uint64_t revision;
        enum hfd_match match;
        uint64_t limit;
        char *continue_token; /* owned; NULL = none */
        bool bookmarks;
        bool has_send_initial, send_initial;
        int64_t timeout_s; /* 0 = not given */
        bool dry_run, pretty;
        enum hfd_propagation propagation; /* of a delete, from the query or the body */
        bool has_orphan, orphan; /* orphanDependents, the older form of propagationPolicy */
        enum hfd_field_validation field_validation;
        /* owned; the unknown fields that were found and that Warnings name; NULL = none */
        char *unknown_fields;
        enum hfd_include include;
};

/*
 * Reads a query ("a=b&c=d", percent-encoded) into request->options. The request's verb and resource
 * must be set: whether it is a watch is decided already. False: response says why not (400, 422).
 * An unknown parameter is ignored, as Kubernetes does; of a repeated one the first value counts.
 */
bool hfd_options_parse(struct hfd_request *request, const char *query,
                       struct hfd_response *response);
/* Reads a body. sent: DeleteOptions; NULL = there was no body. False: response says why not. */
bool hfd_options_read_delete(struct hfd_options *options, const struct hf__json *sent,
                             struct hfd_response *response);
/* Frees what options own, and empties them. */
void hfd_options_done(struct hfd_options *options);
