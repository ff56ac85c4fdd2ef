/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An immutable index of FlowSchemas and priority levels, which finds the schema and the level of a
 * request as Kubernetes does: of the schemas that match, the one with the lowest number as its
 * matchingPrecedence counts, then the one whose name comes first. A schema whose level does not
 * exist matches nothing. The exception is `catch-all`: it is always the last, and matches whatever
 * the others leave. The mandatory schemas and levels (flow_objects.h) match even while they are not
 * stored.
 *
 * An index also holds the levels at work (flow_level.h) that its requests enter, unless it was made
 * without them.
 *
 * Thread: a builder belongs to one thread. An index: any.
 */
#include <stdint.h>

#include "server/http/request/response_header.h"
#include "server/rbac/attributes.h"

struct hf__json;
struct hfd_flow_builder;
struct hfd_flow_class;
struct hfd_flow_index;
struct hfd_flow_level;
struct hfd_flow_levels;

/* The property that distinguishes the flows of a schema. */
enum hfd_flow_distinguisher { HFD_FLOW_BY_NOTHING, HFD_FLOW_BY_USER, HFD_FLOW_BY_NAMESPACE };

/* The schema of a request, and its level. Belongs to the index. */
struct hfd_flow_match {
        const char *schema, *level; /* their names */
        bool is_exempt;             /* the level has no limits */
        /* The headers of the response: the UIDs of both. n_headers 0: they are not stored yet, or a
         * UID cannot be in a header. */
        struct hfd_checked_header headers[2];
        size_t n_headers;
        enum hfd_flow_distinguisher distinguisher;
        uint64_t seed;                     /* for the hash of a flow */
        struct hfd_flow_level *at_work;    /* NULL = the index was made without levels */
        struct hfd_flow_class *flow_class; /* of the schema in that level */
};

/* NULL: out of memory. */
struct hfd_flow_builder *hfd_flow_builder_new(void);
/* Accepts NULL, returns NULL. */
struct hfd_flow_builder *hfd_flow_builder_free(struct hfd_flow_builder *builder);
/* Add an object, which is copied. A malformed level counts as absent. Malformed rules of a schema
 * match nothing; its other malformed members count as absent. 0 or -ENOMEM; then the builder can
 * only be freed. */
int hfd_flow_builder_add_level(struct hfd_flow_builder *builder, const struct hf__json *object);
int hfd_flow_builder_add_schema(struct hfd_flow_builder *builder, const struct hf__json *object);
/*
 * Makes the index and frees the builder, also on failure. levels: gets the priority levels of the
 * builder as its configuration (hfd_flow_levels_apply), and the index holds a reference to each;
 * NULL = the index only matches. Returns NULL if memory runs out, or after another error of
 * hfd_flow_levels_apply; some levels may have the new configuration already.
 */
struct hfd_flow_index *hfd_flow_builder_finish(struct hfd_flow_builder *builder,
                                               struct hfd_flow_levels *levels);

/* Accepts NULL. Returns index. */
struct hfd_flow_index *hfd_flow_index_ref(struct hfd_flow_index *index);
/* Accepts NULL, returns NULL. */
struct hfd_flow_index *hfd_flow_index_unref(struct hfd_flow_index *index);

/* Never NULL: `catch-all` is the last to match. Takes time in proportion to the rules. */
const struct hfd_flow_match *hfd_flow_index_match(const struct hfd_flow_index *index,
                                                  const struct hfd_subject *subject,
                                                  const struct hfd_attributes *attributes);
