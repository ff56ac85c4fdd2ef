/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A call as the core sees it, whether it came by HTTP (rest.c) or in process (loopback.c).
 *
 * The adapter allocates the call (as first member of its own struct), fills it and hands it to
 * hfd_api_call; the core answers by done, exactly once, on any thread, perhaps before hfd_api_call
 * returns. The adapter frees the call in done; the answer is borrowed until done returns. Watches
 * are not calls: see watch.h.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/fence.h>

#include "server/patch/patch.h"
#include "server/registry/registry.h"
#include "server/resources/response.h"
#include "server/resources/selector.h"

enum hfd_verb {
        HFD_GET,
        HFD_LIST,
        HFD_WATCH,
        HFD_CREATE,
        HFD_UPDATE,
        HFD_PATCH,
        HFD_DELETE_ONE,
        HFD_DELETE_MANY
};
enum hfd_match { HFD_MATCH_UNSET, HFD_MATCH_NOT_OLDER, HFD_MATCH_EXACT };
enum hfd_format { HFD_AS_JSON, HFD_AS_TABLE, HFD_AS_PARTIAL };
enum hfd_include { HFD_INCLUDE_METADATA, HFD_INCLUDE_NONE, HFD_INCLUDE_OBJECT };

/* Fields of a sent object that its kind does not have: taken silently, taken with a Warning,
 * refused. */
enum hfd_field_validation { HFD_FIELDS_WARN, HFD_FIELDS_IGNORE, HFD_FIELDS_STRICT };

/* What becomes of the objects that name a deleted one as their owner. */
enum hfd_propagation {
        HFD_PROPAGATE_UNSET,
        HFD_PROPAGATE_ORPHAN,
        HFD_PROPAGATE_BACKGROUND,
        HFD_PROPAGATE_FOREGROUND
};

/* The query parameters of the field. */
struct hfd_options {
        struct hfd_selector labels, fields; /* owned */
        bool has_revision;                  /* a resourceVersion that is not "" was given */
        uint64_t revision;
        enum hfd_match match;
        uint64_t limit;
        char *continue_token; /* owned; NULL = none */
        bool watch, bookmarks;
        bool has_send_initial, send_initial;
        int64_t timeout_s; /* 0 = not given */
        bool dry_run, pretty;
        enum hfd_propagation propagation; /* of a delete; the body's is added here */
        bool has_orphan, orphan;          /* orphanDependents, the older way to say it */
        enum hfd_field_validation field_validation;
        char *unknown_fields; /* owned; what was found and is to be warned of, one per line; NULL =
                                 nothing */
        enum hfd_include include;
};

struct hfd_request {
        enum hfd_verb verb;
        const struct hfd_resource *resource;
        char ns[HF_NAME_MAX + 1];   /* "" = all, or cluster scope */
        char name[HF_NAME_MAX + 1]; /* "" = the collection */
        char only_uid[64]; /* of a delete: any other object of that name counts as not found; "" =
                              whichever it is */
        enum hfd_subresource subresource;
        enum hfd_patch patch; /* which of them the body of HFD_PATCH is */
        struct hfd_options options;
        enum hfd_format format;
        char table_version[16]; /* "v1", "v1beta1" */
        const void *body;       /* owned by the adapter until done */
        size_t n_body;
        const struct hf_fence *fence; /* the adapter's until done; NULL = not fenced */
        bool in_process;              /* of holdfastd's own client */
        hf_nsec deadline;
        void (*done)(struct hfd_request *request, const struct hfd_response *response);
};

void hfd_api_call(struct hfd_api *api, struct hfd_request *request);
/* Frees what options own. */
void hfd_options_done(struct hfd_options *options);
/*
 * Reads a query ("a=b&c=d", percent-encoded) into call->options; call->verb and resource must be
 * set. False: answer says why (400, 422). An unknown parameter is passed over, as the field does.
 */
bool hfd_options_parse(struct hfd_request *request, const char *query,
                       struct hfd_response *response);
/* "Orphan", "Background", "Foreground"; "" is unset. False: none of them. */
bool hfd_propagation_parse(const char *text, enum hfd_propagation *ret_propagation);
/* Decodes %xx (and + when plus) in place; false when malformed or when a NUL would come of it. */
bool hfd_url_decode(char *text, bool plus);

/* The verbs, each in its file. */
void hfd_read_get(struct hfd_api *api, struct hfd_request *request);
void hfd_read_list(struct hfd_api *api, struct hfd_request *request);
void hfd_write_start(struct hfd_api *api, struct hfd_request *request);
void hfd_delete_collection(struct hfd_api *api, struct hfd_request *request);
