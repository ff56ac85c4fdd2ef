/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of sets. The path of an object selects the set, in which the version that was kept first
 * gives way to a new one.
 *
 * Invariant: a set has at most one version of an object, and an entry whose tree was taken is
 * empty.
 */
#include "server/registry/parsed.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/object.h"

#define N_SETS 64
#define N_WAYS 4

struct entry {
        struct hfd_object *object; /* owned; NULL = the entry is empty */
        struct hf__json *json;     /* owned */
        uint64_t age;              /* a larger one was kept later */
};

struct hfd_parsed {
        pthread_mutex_t mu;
        uint64_t n_kept;                   /* guarded by mu */
        struct entry sets[N_SETS][N_WAYS]; /* guarded by mu */
};

int hfd_parsed_new(struct hfd_parsed **ret_parsed) {
        struct hfd_parsed *parsed = calloc(1, sizeof *parsed);

        if (!parsed)
                return -ENOMEM;
        int r = pthread_mutex_init(&parsed->mu, NULL);
        if (r != 0) {
                free(parsed);
                return -r;
        }
        *ret_parsed = parsed;
        return 0;
}

static void drop(struct entry *entry) {
        hfd_object_unref(entry->object);
        hf__json_free(entry->json);
}

struct hfd_parsed *hfd_parsed_free(struct hfd_parsed *parsed) {
        if (!parsed)
                return NULL;
        for (size_t i = 0; i < N_SETS; i++)
                for (size_t k = 0; k < N_WAYS; k++)
                        drop(&parsed->sets[i][k]);
        pthread_mutex_destroy(&parsed->mu);
        free(parsed);
        return NULL;
}

static struct entry *set_of(struct hfd_parsed *parsed, const struct hfd_object *object) {
        uint32_t hash = 2166136261u; /* FNV-1a */

        for (const char *at = object->path; *at; at++)
                hash = (hash ^ (unsigned char)*at) * 16777619u;
        return parsed->sets[(hash ^ hash >> 16) % N_SETS];
}

/* Whether both are versions of one object. */
static bool is_same(const struct hfd_object *a, const struct hfd_object *b) {
        return a->resource == b->resource && strcmp(a->path, b->path) == 0;
}

/* Whether both have the same bytes. Revisions would not do: a store that was replaced by its backup
 * gives them out again. */
static bool is_equal(const struct hfd_object *a, const struct hfd_object *b) {
        return a == b || (is_same(a, b) && a->bytes->n == b->bytes->n &&
                          memcmp(a->bytes->data, b->bytes->data, a->bytes->n) == 0);
}

/* The entry for a new version: that of another version of the object, an empty one, or the oldest.
 */
static struct entry *choose(struct entry *set, const struct hfd_object *object) {
        struct entry *best = &set[0];

        for (size_t k = 0; k < N_WAYS; k++) {
                struct entry *e = &set[k];
                if (e->object && is_same(e->object, object))
                        return e;
                if (best->object && (!e->object || e->age < best->age))
                        best = e;
        }
        return best;
}

void hfd_parsed_keep(struct hfd_parsed *parsed, struct hfd_object *object, struct hf__json *json) {
        struct entry kept = {.object = hfd_object_ref(object), .json = json}, previous;
        struct entry *set = set_of(parsed, object);

        pthread_mutex_lock(&parsed->mu);
        struct entry *e = choose(set, object);
        kept.age = ++parsed->n_kept;
        previous = *e;
        if (e->object && is_same(e->object, object) && e->object->revision > object->revision)
                previous = kept; /* replies may come in any order */
        else
                *e = kept;
        pthread_mutex_unlock(&parsed->mu);
        drop(&previous);
}

struct hf__json *hfd_parsed_take(struct hfd_parsed *parsed, const struct hfd_object *object) {
        struct entry *set = set_of(parsed, object), found = {0};

        pthread_mutex_lock(&parsed->mu);
        for (size_t k = 0; k < N_WAYS && !found.object; k++) {
                struct entry *e = &set[k];
                if (!e->object || !is_equal(e->object, object))
                        continue;
                found = *e;
                *e = (struct entry){0};
        }
        pthread_mutex_unlock(&parsed->mu);
        hfd_object_unref(found.object);
        return found.json;
}
