/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The options in the query of a request. Names and allowed combinations are those of Kubernetes'
 * ListOptions, GetOptions, CreateOptions, UpdateOptions, PatchOptions and DeleteOptions.
 * DeleteOptions may also be in the body (delete_options.h). Pure. Thread: owner only.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/registry/base/write_options.h"
#include "server/resources/response.h"
#include "server/resources/selection/selector.h"
#include "server/schema/strict.h"

struct hfd_request;

/* resourceVersionMatch */
enum hfd_match { HFD_MATCH_UNSET, HFD_MATCH_NOT_OLDER, HFD_MATCH_EXACT, HFD_MATCH_UNKNOWN };
/* includeObject: the part of each object that the rows of a Table contain */
enum hfd_include { HFD_INCLUDE_METADATA, HFD_INCLUDE_NONE, HFD_INCLUDE_OBJECT };
/* propagationPolicy: what a delete does to the objects that the deleted object owns */
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
        char match_text[64]; /* as given; a longer text is cut off */
        uint64_t limit;      /* of a list or a deletecollection: at most so many objects; 0 = all */
        char *continue_token; /* owned; NULL = none */
        bool bookmarks;       /* for a watch: the client wants bookmarks */
        bool has_send_initial, send_initial;
        int64_t timeout_s; /* for a watch or a deletecollection; 0 = not given */
        hf_nsec timeout;   /* for every verb but a watch; 0 = not given */
        bool dry_run, pretty;
        enum hfd_propagation propagation; /* for deletes, from the query or the body */
        bool has_orphan, orphan; /* orphanDependents, the older form of propagationPolicy */
        /* gracePeriodSeconds in the query of a delete; for admission only */
        bool has_grace_period;
        int64_t grace_period_s;
        enum hfd_field_validation field_validation;
        struct hfd_strict strict; /* owned; what a strict decoder would refuse in the body */
        enum hfd_include include;
        char *field_manager; /* owned; who owns what this write changes; NULL = not given */
        bool force;          /* for an apply: take fields from other managers */
};

/*
 * Reads a query ("a=b&c=d", percent-encoded; NULL = none) into request->options, which are empty.
 * The request's verb and resource must be set, and of a patch its kind; the caller has already
 * distinguished a list from a watch. False: response contains the failure (400, 422, 500). The
 * caller calls hfd_options_done in any case.
 *
 * Unknown parameters are ignored, as in Kubernetes. If a parameter other than dryRun is repeated,
 * its first value is used. The filters authorize the first value, so the registry must use the
 * same.
 */
bool hfd_options_parse(struct hfd_request *request, const char *query,
                       struct hfd_response *response);
/* Frees the contents of options and zeroes them. */
void hfd_options_done(struct hfd_options *options);
/* Reads a propagationPolicy; "" is HFD_PROPAGATE_UNSET. False: the policy does not exist. */
bool hfd_propagation_parse(const char *text, enum hfd_propagation *ret_propagation);
