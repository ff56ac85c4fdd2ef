/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A kind of custom resources: what one stored CustomResourceDefinition makes, while it is
 * Established. For each version of the definition that is served, and for the one in which objects
 * are stored, it has a struct hfd_custom_version, with a row (resource.h) for the rest of the
 * server. If a webhook converts the objects, the kind has one for every version.
 *
 * A kind has a reference count. It is immutable except for `terminating`, `retired`, its counters
 * of conversions, and the bytes and revision of its definition. A reference to a row is one to its
 * kind (hfd_resource_ref). A changed definition makes another kind; requests and objects that have
 * the old one keep it. Pure. Thread: any.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/resources/resource.h"

struct hf__json;
struct hfd_custom_rules;
struct hfd_custom_schema;
struct hfd_custom_kind;

#define HFD_CUSTOM_HASH 32 /* bytes */

struct hfd_custom_version {
        struct hfd_resource row;      /* row.custom is this struct */
        struct hfd_custom_kind *kind; /* which contains the version */
        bool served;
        struct hfd_custom_schema *schema; /* owned; never NULL */
        /* The schema in the definition cannot be compiled. `schema` then keeps every field. */
        bool lacks_schema;
        struct hfd_custom_rules *rules; /* owned; NULL = none */
        struct hfd_column *columns;     /* owned; their paths are JSON paths: ".spec.size" */
        size_t n_columns;
        const struct hf__json *selectable; /* borrowed; an array of {"jsonPath"}; NULL = none */
        char *warning; /* owned; the text of the warning to clients; NULL = not deprecated */
        struct hfd_scale_paths scale; /* row.scale, if the version has a scale; borrowed paths */
};

struct hfd_custom_kind {
        atomic_int refs;
        /* Creates are refused, because the definition is being deleted. */
        atomic_bool terminating;
        /* The kind is not served any more: another one has replaced it, or its definition is gone
         * or is not served any more. Set under the cacher's lock, which is kept until the watches
         * of the kind have ended: a watch that begins later reads the mark under the same lock. */
        atomic_bool retired;

        /* A webhook converts between the versions (registry/convert). Objects are cached in the
         * version in which they are stored, which may be the storage version of an earlier
         * definition. So `versions` has all versions of the definition. */
        bool is_converted_elsewhere;
        atomic_uint n_conversions; /* calls of the webhook for requests that are under way */
        /* Calls for watches that are under way; guarded by the lock of
         * registry/base/convert_turns.h. */
        unsigned n_watch_conversions;
        struct hf__json *names; /* owned; status.acceptedNames */
        struct hf__json *spec;  /* owned; without the schemas, and with versions */
        /* The revision of the definition (its last change) that `terminating` belongs to. A thread
         * that reads it first, and then `terminating`, gets a mark that is at least as new. */
        _Atomic uint64_t revision;
        /* Digests. Kinds with equal `hash` are the same kind; those with equal `form` have the
         * same objects in memory. */
        unsigned char hash[HFD_CUSTOM_HASH], form[HFD_CUSTOM_HASH];
        const struct hfd_custom_version *storage; /* one of versions */
        /* The different paths of the selectable fields of all versions. The array is owned; its
         * texts belong to spec. */
        const char **selectable;
        size_t n_selectable;
        pthread_mutex_t mu;
        /* Owned reference, guarded by mu: the definition, shared with the cache, and perhaps
         * packed. NULL = not known. */
        struct hf__buf *bytes;
        size_t n_versions;
        struct hfd_custom_version versions[]; /* by priority, the preferred one first */
};

/*
 * definition: a stored CustomResourceDefinition, which is not changed. bytes: the same, perhaps
 * packed (packed.h); the kind keeps a reference. NULL = its schemas cannot be shown. slot: the
 * permanent row of its group and plural (custom_table.h), which outlives the kind. Takes
 * milliseconds if a schema is large. 0; -ENOMEM; or HF_E_INVALID: the definition is not valid, so
 * it cannot be served. Nothing of definition is borrowed.
 */
int hfd_custom_kind_new(const struct hf__json *definition, struct hf__buf *bytes,
                        const struct hfd_resource *slot, uint64_t revision,
                        struct hfd_custom_kind **ret_kind);
/* The definition has changed in a way that leaves the kind as it is (the same hash). bytes: not
 * NULL; the kind keeps a reference. Thread: the one that follows the definitions. */
void hfd_custom_kind_update(struct hfd_custom_kind *kind, const struct hf__json *definition,
                            struct hf__buf *bytes, uint64_t revision);
/* The version of this name, or of this apiVersion ("group/version"); NULL = it has none. */
const struct hfd_custom_version *hfd_custom_kind_version(const struct hfd_custom_kind *kind,
                                                         const char *name);
const struct hfd_custom_version *hfd_custom_kind_api_version(const struct hfd_custom_kind *kind,
                                                             const char *api_version);
/* The openAPIV3Schema of a version, which the caller frees; NULL = it has none, or the kind was
 * made without bytes. Parses the definition, which takes milliseconds if it is large. 0 or -ENOMEM.
 */
int hfd_custom_version_props(const struct hfd_custom_version *version, struct hf__json **ret_props);
/* The hash that the kind of this definition would have. 0 or -ENOMEM. */
int hfd_custom_kind_hash(const struct hf__json *definition,
                         unsigned char ret_hash[HFD_CUSTOM_HASH]);
/* Whether the definition is served: whether it has the condition Established. */
bool hfd_custom_kind_is_established(const struct hf__json *definition);
struct hfd_custom_kind *hfd_custom_kind_ref(struct hfd_custom_kind *kind);
/* Accepts NULL; returns NULL. */
struct hfd_custom_kind *hfd_custom_kind_unref(struct hfd_custom_kind *kind);

/* A reference to a row, which is one to its kind. For NULL, built-in rows (resource_table.h) and
 * permanent rows of slots, both do nothing. ref returns its argument, unref NULL. */
const struct hfd_resource *hfd_resource_ref(const struct hfd_resource *resource);
const struct hfd_resource *hfd_resource_unref(const struct hfd_resource *resource);
/* The columns of the Table of any row; *ret_n of them. */
const struct hfd_column *hfd_resource_columns(const struct hfd_resource *resource, size_t *ret_n);

/* Whether the kinds of two rows have the same `form`. A row without a kind (a built-in one, or the
 * permanent row of a slot) has no form, and is the same only as itself. */
bool hfd_custom_same_form(const struct hfd_resource *a, const struct hfd_resource *b);
