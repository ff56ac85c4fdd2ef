/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A kind with its informer, and the set of all kinds at one moment. Built-in kinds are in every
 * set. When a kind of a CustomResourceDefinition is added or removed (custom_kinds.h), a new set
 * replaces the old one. A set is immutable, and keeps its kinds and their informers alive. So a
 * controller works with one set until it begins again with the next (hfd_kinds_run).
 *
 * Thread: any. But do not drop the last reference to a set or a custom kind on an informer's
 * thread: it would free informers, and freeing one waits for this thread.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include <holdfast/client.h>
#include <holdfast/informer.h>

/* The names of a kind, from the server's table of resources or from a definition. In a struct
 * hfd_kind, the strings live as long as the kind; those of built-in kinds are static. */
struct hfd_kind_row {
        struct hf_resource resource;
        const char *kind;
        bool namespaced;
};

struct hfd_kind {
        struct hfd_kind_row row;
        struct hf_informer *informer; /* owned */
        size_t id;                    /* unique in its struct hfd_kinds; never used again */
        bool is_custom;
        /* The next two are for custom kinds; a built-in one lives as long as the hfd_kinds. */
        atomic_int refs;
        char *texts; /* owned; the strings of row */
};

/* Return and drop a reference. They do nothing for a built-in kind. unref accepts NULL. */
struct hfd_kind *hfd_kind_ref(struct hfd_kind *kind);
void hfd_kind_unref(struct hfd_kind *kind);

struct hfd_kind_set {
        atomic_int refs;
        struct hf_cancel *replaced; /* owned; fires when a new set has replaced this one */
        size_t n;
        struct hfd_kind **kinds;         /* owned; by id; a reference to each */
        const struct hfd_kind **by_name; /* owned; the same kinds, by group and kind */
};

/* Makes a set of n kinds, which are in the order of their ids. 0 or -errno. */
int hfd_kind_set_new(const struct hf_clock *clock, struct hfd_kind *const *kinds, size_t n,
                     struct hfd_kind_set **ret_set);
struct hfd_kind_set *hfd_kind_set_ref(struct hfd_kind_set *set);
/* Accepts NULL; returns NULL. */
struct hfd_kind_set *hfd_kind_set_unref(struct hfd_kind_set *set);

/* The next three return NULL if the set has no such kind. The kind is borrowed from the set. */
const struct hfd_kind *hfd_kind_set_find(const struct hfd_kind_set *set, const char *group,
                                         const char *plural);
const struct hfd_kind *hfd_kind_set_find_by_id(const struct hfd_kind_set *set, size_t id);
/* Finds a kind by the apiVersion ("v1", "group/version") and kind of an object or owner reference;
 * both may be NULL. The version is ignored, because all versions of a kind show the same objects.
 */
const struct hfd_kind *hfd_kind_set_find_by_name(const struct hfd_kind_set *set,
                                                 const char *api_version, const char *kind);
