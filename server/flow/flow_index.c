/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of FlowSchemas: the schemas in the order in which they are tried, each with its rules
 * and the headers that its requests get.
 *
 * Invariant: the last schema is `catch-all`, whatever is stored, so that there is always a match.
 */
#include "server/flow/flow_index.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/flow/core/dealer.h"
#include "server/flow/flow_level.h"
#include "server/flow/flow_level_spec.h"
#include "server/flow/flow_levels.h"
#include "server/flow/flow_rule.h"
#include "server/resources/strategies/flow/flow_objects.h"

static const char schema_header[] = "x-kubernetes-pf-flowschema-uid",
                  level_header[] = "x-kubernetes-pf-prioritylevel-uid";

/* A PriorityLevelConfiguration. */
struct level {
        char *name, *uid;                /* owned; uid "" = not stored */
        struct hfd_flow_level_spec spec; /* its name is `name` */
        struct hfd_flow_level *at_work;  /* owned reference; NULL = none */
};

/* A FlowSchema. */
struct schema {
        char *name, *uid, *level; /* owned */
        int64_t precedence;
        struct hf__json *rules; /* owned; NULL = matches nothing */
        struct hfd_flow_match match;
};

struct hfd_flow_index {
        atomic_size_t n_refs;
        struct level *levels;
        size_t n_levels;
        struct schema *schemas; /* sorted once it is finished */
        size_t n_schemas;
};

/* A builder is the index before it is finished. */
struct hfd_flow_builder {
        struct hfd_flow_index *index;
};

/* Also for an index that is not finished. The classes (flow_level.h) go first: they belong to the
 * levels, to which the references are dropped below. */
static void index_free(struct hfd_flow_index *index) {
        for (size_t i = 0; i < index->n_schemas; i++) {
                const struct hfd_flow_match *match = &index->schemas[i].match;
                hfd_flow_level_drop_class(match->at_work, match->flow_class);
                free(index->schemas[i].name);
                free(index->schemas[i].uid);
                free(index->schemas[i].level);
                hf__json_free(index->schemas[i].rules);
        }
        for (size_t i = 0; i < index->n_levels; i++) {
                hfd_flow_level_unref(index->levels[i].at_work);
                free(index->levels[i].name);
                free(index->levels[i].uid);
        }
        free(index->levels);
        free(index->schemas);
        free(index);
}

/* Relaxed is enough: the caller has a reference, or holds the mutex that keeps flow_control.c from
 * dropping its own. */
struct hfd_flow_index *hfd_flow_index_ref(struct hfd_flow_index *index) {
        assert(!index || atomic_load_explicit(&index->n_refs, memory_order_relaxed) > 0);
        if (index)
                (void)atomic_fetch_add_explicit(&index->n_refs, 1, memory_order_relaxed);
        return index;
}

/* Release and acquire: what other threads did with the index happens before it is freed. */
struct hfd_flow_index *hfd_flow_index_unref(struct hfd_flow_index *index) {
        assert(!index || atomic_load_explicit(&index->n_refs, memory_order_relaxed) > 0);
        if (index && atomic_fetch_sub_explicit(&index->n_refs, 1, memory_order_acq_rel) == 1)
                index_free(index);
        return NULL;
}

/* ---- building ---- */

struct hfd_flow_builder *hfd_flow_builder_new(void) {
        struct hfd_flow_builder *builder = calloc(1, sizeof *builder);

        if (!builder)
                return NULL;
        builder->index = calloc(1, sizeof *builder->index);
        if (!builder->index) {
                free(builder);
                return NULL;
        }
        atomic_init(&builder->index->n_refs, 1);
        return builder;
}

struct hfd_flow_builder *hfd_flow_builder_free(struct hfd_flow_builder *builder) {
        if (builder && builder->index)
                index_free(builder->index);
        free(builder);
        return NULL;
}

/* Adds an element to the array, and 1 to *n. The element is zero, so that index_free can free it
 * when a later step fails. Returns the array, which may have moved. NULL = out of memory; nothing
 * has changed. */
static void *grow_array(void *array, size_t *n, size_t size) {
        char *larger = realloc(array, (*n + 1) * size);

        if (larger)
                memset(larger + (*n)++ * size, 0, size);
        return larger;
}

static char *copy_text(const struct hf__json *object, const char *path) {
        const char *text = hf__json_string(object, path);

        return strdup(text ? text : "");
}

int hfd_flow_builder_add_level(struct hfd_flow_builder *builder, const struct hf__json *object) {
        struct hfd_flow_index *index = builder->index;
        struct hfd_flow_level_spec spec;

        if (!hfd_flow_level_spec_read(object, &spec))
                return 0;
        struct level *levels = grow_array(index->levels, &index->n_levels, sizeof *levels);
        if (!levels)
                return -ENOMEM;
        index->levels = levels;
        struct level *level = &levels[index->n_levels - 1];
        level->name = copy_text(object, "metadata.name");
        level->uid = copy_text(object, "metadata.uid");
        level->spec = spec;
        level->spec.name = level->name;
        return level->name && level->uid ? 0 : -ENOMEM;
}

/* The defaults of the API are applied here again, because another program may have written the
 * object into the store. Without a known distinguisher all requests of the schema are one flow. */
int hfd_flow_builder_add_schema(struct hfd_flow_builder *builder, const struct hf__json *object) {
        struct hfd_flow_index *index = builder->index;
        struct schema *schemas = grow_array(index->schemas, &index->n_schemas, sizeof *schemas);
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *rules = hf__json_get(spec, "rules");

        if (!schemas)
                return -ENOMEM;
        index->schemas = schemas;
        struct schema *schema = &schemas[index->n_schemas - 1];
        schema->name = copy_text(object, "metadata.name");
        schema->uid = copy_text(object, "metadata.uid");
        schema->level = copy_text(spec, "priorityLevelConfiguration.name");
        schema->precedence = HFD_FLOW_PRECEDENCE_NONE;
        (void)hf__json_i64(spec, "matchingPrecedence", &schema->precedence);
        const struct hf__json *method = hf__json_get(spec, "distinguisherMethod");
        if (hf__json_has_text(method, "type", "ByUser"))
                schema->match.distinguisher = HFD_FLOW_BY_USER;
        else if (hf__json_has_text(method, "type", "ByNamespace"))
                schema->match.distinguisher = HFD_FLOW_BY_NAMESPACE;
        schema->rules = rules ? hf__json_dup(rules) : NULL;
        return schema->name && schema->uid && schema->level && (!rules || schema->rules) ? 0
                                                                                         : -ENOMEM;
}

/* ---- finishing ---- */

static const struct level *find_level(const struct hfd_flow_index *index, const char *name) {
        for (size_t i = 0; i < index->n_levels; i++)
                if (strcmp(index->levels[i].name, name) == 0)
                        return &index->levels[i];
        return NULL;
}

static bool has_schema(const struct hfd_flow_index *index, const char *name) {
        for (size_t i = 0; i < index->n_schemas; i++)
                if (strcmp(index->schemas[i].name, name) == 0)
                        return true;
        return false;
}

/* Adds the mandatory schemas and levels that are not stored. 0 or -ENOMEM. */
static int add_mandatory(struct hfd_flow_builder *builder) {
        size_t n;
        const struct hfd_flow_object *objects = hfd_flow_objects(&n);
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                bool is_level = strcmp(objects[i].kind, HFD_FLOW_LEVEL_KIND) == 0;
                if (!objects[i].mandatory ||
                    (is_level ? find_level(builder->index, objects[i].name) != NULL
                              : has_schema(builder->index, objects[i].name)))
                        continue;
                struct hf__json *object = hfd_flow_object_make(&objects[i]);
                if (!object)
                        return -ENOMEM;
                r = is_level ? hfd_flow_builder_add_level(builder, object)
                             : hfd_flow_builder_add_schema(builder, object);
                hf__json_free(object);
        }
        return r;
}

static bool is_catch_all(const struct schema *schema) {
        return strcmp(schema->name, HFD_FLOW_CATCH_ALL) == 0;
}

/* catch-all comes last, because hfd_flow_index_match takes the last schema without looking at its
 * rules. Others with the same precedence are in the order of their names. */
static int compare_schemas(const void *a, const void *b) {
        const struct schema *x = a, *y = b;

        if (is_catch_all(x) || is_catch_all(y))
                return is_catch_all(x) ? 1 : -1;
        if (x->precedence != y->precedence)
                return x->precedence < y->precedence ? -1 : 1;
        return strcmp(x->name, y->name);
}

/* Finds the level of a schema. A schema whose level does not exist matches nothing, as in
 * Kubernetes. 0 or -ENOMEM. */
static int finish_schema(const struct hfd_flow_index *index, struct schema *schema) {
        const struct level *level = find_level(index, schema->level);
        struct hfd_flow_match *match = &schema->match;

        /* catch-all matches whatever the others leave, also if the stored object names a level that
         * does not exist. Its own level always exists. */
        if (!level && is_catch_all(schema))
                level = find_level(index, HFD_FLOW_CATCH_ALL);
        if (!level) {
                schema->rules = hf__json_free(schema->rules);
                return 0;
        }
        *match = (struct hfd_flow_match){.schema = schema->name,
                                         .level = level->name,
                                         .is_exempt = level->spec.shares.is_exempt,
                                         .distinguisher = match->distinguisher,
                                         .seed = hfd_dealer_hash(0, schema->name)};
        /* A mandatory object that is not stored yet has no UID, and an empty header would say
         * nothing. */
        if (*schema->uid && *level->uid &&
            hfd_header_check(schema_header, schema->uid, &match->headers[0]) &&
            hfd_header_check(level_header, level->uid, &match->headers[1]))
                match->n_headers = 2;
        if (!level->at_work)
                return 0;
        match->flow_class = hfd_flow_level_class(level->at_work, schema->name);
        match->at_work = match->flow_class ? level->at_work : NULL;
        return match->flow_class ? 0 : -ENOMEM;
}

/* Makes or changes the levels in which requests run, and keeps a reference to each. 0 or -errno. */
static int apply_levels(struct hfd_flow_index *index, struct hfd_flow_levels *levels) {
        struct hfd_flow_level_spec *specs = calloc(index->n_levels, sizeof *specs);
        struct hfd_flow_level **at_work = calloc(index->n_levels, sizeof at_work[0]);
        int r = specs && at_work ? 0 : -ENOMEM;

        for (size_t i = 0; i < index->n_levels && r == 0; i++)
                specs[i] = index->levels[i].spec;
        if (r == 0)
                r = hfd_flow_levels_apply(levels, specs, index->n_levels, at_work);
        for (size_t i = 0; i < index->n_levels && r == 0; i++)
                index->levels[i].at_work = at_work[i];
        free(specs);
        free(at_work);
        return r;
}

/* The order matters: the mandatory levels are applied and the mandatory schemas are sorted like the
 * others, and a schema finds its class in a level that apply_levels has made. Once the index is
 * returned, no schema may move: hfd_flow_index_match returns pointers into the array. */
struct hfd_flow_index *hfd_flow_builder_finish(struct hfd_flow_builder *builder,
                                               struct hfd_flow_levels *levels) {
        struct hfd_flow_index *index = builder->index;
        int r = add_mandatory(builder);

        if (r == 0 && levels)
                r = apply_levels(index, levels);
        if (r == 0)
                qsort(index->schemas, index->n_schemas, sizeof *index->schemas, compare_schemas);
        for (size_t i = 0; i < index->n_schemas && r == 0; i++)
                r = finish_schema(index, &index->schemas[i]);
        if (r != 0) {
                hfd_flow_builder_free(builder);
                return NULL;
        }
        free(builder);
        assert(index->n_schemas > 0 && is_catch_all(&index->schemas[index->n_schemas - 1]));
        return index;
}

/* ---- matching ---- */

const struct hfd_flow_match *hfd_flow_index_match(const struct hfd_flow_index *index,
                                                  const struct hfd_subject *subject,
                                                  const struct hfd_attributes *attributes) {
        size_t i = 0;

        while (i + 1 < index->n_schemas &&
               !hfd_flow_rules_match(index->schemas[i].rules, subject, attributes))
                i++;
        return &index->schemas[i].match;
}
