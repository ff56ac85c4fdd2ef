/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the CustomResourceDefinitions, and keeps the set of all kinds current.
 *
 * When a definition becomes Established, its kind gets an informer. The informer starts when the
 * server serves the kind. When the informer has its first list, the thread makes a new set that has
 * the kind too, and replaces the current set. The controllers that run with a set (hfd_kinds_run:
 * garbage collection, deletion of namespaces and of definitions, quotas) then end their loops and
 * begin again with the new set. Like a new leader they get the keys of all objects. That costs more
 * than adding one informer to a running loop. But nothing that a loop uses changes while the loop
 * runs, and the new loop checks again whatever the old one missed because it lacked a kind, such as
 * an owner of an unknown kind. New sets follow each other at a distance (SET_DISTANCE), so that
 * installing many definitions does not restart the loops for each of them.
 *
 * One thread does all this. The handler of the informer of definitions only counts events and wakes
 * the thread. The thread then reads all definitions from that informer. For a definition whose text
 * has not changed, it only compares a hash.
 *
 * Invariants:
 *
 *  - Only the thread uses the entries, until it has been joined. Other threads see only sets, which
 *    are immutable.
 *  - A kind is freed when neither its entry nor a set has it any more. That happens on the thread
 *    of this file, on the thread of a controller, or in hfd_custom_kinds_free; never on an
 *    informer's thread (kind_set.h).
 *  - `settled` says that, as of the count `scanned`, the current set has all kinds that have to be
 *    in it. When hf_informer_wait for a revision returns, the handler has counted the events up to
 *    that revision in `changed`. So if a thread has waited, and then finds the set complete, it
 *    knows all kinds that were Established at that revision, except those that LIST_MAX leaves out.
 */
#include "server/controllers/kinds/custom_kinds.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/thread.h"
#include "client/key_index.h"
#include "server/controllers/kinds/definition_row.h"

#define SET_DISTANCE (1 * HF_NSEC_PER_SEC) /* the least time between two new sets */
/* The same while a kind has waited for its first list for less than LIST_MAX, because the next set
 * should have that kind too. */
#define LONG_DISTANCE (5 * HF_NSEC_PER_SEC)
/* A kind that has no list this long after it was made is not waited for any more: a set without it
 * counts as complete (hfd_kinds_is_complete). */
#define LIST_MAX    (60 * HF_NSEC_PER_SEC)
#define NOMEM_PAUSE (100 * HF_NSEC_PER_MSEC)
/* Limits of the time between two checks whether a first list is complete. The time is a quarter of
 * how long the newest kind without a list has waited for it. */
#define POLL_MIN (10 * HF_NSEC_PER_MSEC)
#define POLL_MAX (1 * HF_NSEC_PER_SEC)

/* A definition, and the kind that it defines. */
struct entry {
        struct hf__keyed keyed; /* first member; the key is name */
        char name[HF_NAME_MAX + 1];
        uint64_t hash; /* of the definition's text */
        uint64_t scan; /* the number of the last scan that found the definition */
        char *text;    /* owned; a new text of n_text bytes; NULL = `kind` is up to date */
        size_t n_text;
        /* A reference. NULL = the definition makes no kind: hfd_definition_row returns false, or a
         * built-in kind has its name. */
        struct hfd_kind *kind;
        hf_nsec since; /* boot time at which the kind was made */
        bool started;  /* the informer of the kind was started */
};

struct hfd_custom_kinds {
        /* immutable after start */
        struct hfd_kind_sources sources;
        const struct hf_clock *clock;
        struct hfd_kind_set *built_in;      /* a reference */
        const struct hfd_kind *definitions; /* borrowed */
        struct hf_informer_handler *handler;
        pthread_t thread;
        bool started;
        pthread_mutex_t mu;
        pthread_cond_t wake;

        /* the thread only */
        struct hf__key_index entries; /* owned, with the items */
        uint64_t scan;                /* the number of the current scan */
        size_t next_id;
        hf_nsec set_at; /* boot time at which the current set was made; 0 = it is the first set */

        /* guarded by mu */
        /* A reference. Only the thread changes it, so the thread reads it without the lock. */
        struct hfd_kind_set *set;
        uint64_t changed; /* events of definitions so far */
        uint64_t scanned; /* the value of `changed` that the last scan covers */
        bool settled, stop;
};

/* ---- entries ---- */

static void free_entry(struct hfd_custom_kinds *custom, struct entry *entry) {
        hf__key_index_remove(&custom->entries, entry->name);
        hfd_kind_unref(entry->kind);
        free(entry->text);
        free(entry);
}

static struct entry *first_entry(const struct hfd_custom_kinds *custom) {
        return (struct entry *)hf__key_index_lower_bound(&custom->entries, "");
}

static struct entry *next_entry(const struct hfd_custom_kinds *custom, const char *name) {
        return (struct entry *)hf__key_index_after(&custom->entries, name);
}

static struct entry *add_entry(struct hfd_custom_kinds *custom, const char *name) {
        struct entry *entry = calloc(1, sizeof *entry);

        if (!entry)
                return NULL;
        (void)snprintf(entry->name, sizeof entry->name, "%s", name);
        entry->keyed.key = entry->name;
        if (hf__key_index_insert(&custom->entries, &entry->keyed) == 0)
                return entry;
        free(entry);
        return NULL;
}

/* Hashes a text with FNV-1a. */
static uint64_t hash_text(const char *text, size_t n) {
        uint64_t hash = UINT64_C(14695981039346656037);

        for (size_t i = 0; i < n; i++)
                hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
        return hash;
}

struct scan {
        struct hfd_custom_kinds *custom;
        int error;
};

/* Runs under the informer's lock, so it only copies the texts that have changed. */
static void scan_definition(void *ctx, const char *ns, const char *name, const char *object,
                            size_t n) {
        struct scan *scan = ctx;
        struct hfd_custom_kinds *custom = scan->custom;
        struct entry *entry = (struct entry *)hf__key_index_find(&custom->entries, name);
        uint64_t hash = hash_text(object, n);

        if (!entry) {
                entry = add_entry(custom, name);
                if (entry) /* any other hash, so that the text counts as changed below */
                        entry->hash = hash + 1;
        }
        if (!entry) {
                scan->error = -ENOMEM;
                return;
        }
        entry->scan = custom->scan;
        if (entry->hash == hash)
                return;
        char *copy = malloc(n + 1);
        if (!copy) {
                scan->error = -ENOMEM;
                return;
        }
        free(entry->text);
        entry->text = memcpy(copy, object, n);
        entry->n_text = n;
        entry->hash = hash;
}

/* ---- kinds ---- */

/* Copies the strings of a row into one block. */
static int copy_row(struct hfd_kind *kind, const struct hfd_kind_row *row) {
        const char *const texts[] = {row->resource.group, row->resource.version,
                                     row->resource.plural, row->kind};
        const char **const places[] = {&kind->row.resource.group, &kind->row.resource.version,
                                       &kind->row.resource.plural, &kind->row.kind};
        size_t n = 0;

        for (size_t i = 0; i < 4; i++)
                n += strlen(texts[i]) + 1;
        char *at = kind->texts = malloc(n);
        if (!at)
                return -ENOMEM;
        kind->row.namespaced = row->namespaced;
        for (size_t i = 0; i < 4; i++) {
                *places[i] = at;
                at = stpcpy(at, texts[i]) + 1;
        }
        assert(at == kind->texts + n);
        return 0;
}

HF__CLEANUP_DEFINE(kind_cleanup, struct hfd_kind *, hfd_kind_unref)

static int new_kind(struct hfd_custom_kinds *custom, const struct hfd_kind_row *row,
                    struct hfd_kind **ret_kind) {
        HF__CLEANUP(kind_cleanup) struct hfd_kind *kind = calloc(1, sizeof *kind);

        if (!kind)
                return -ENOMEM;
        kind->is_custom = true;
        atomic_init(&kind->refs, 1);
        int r = copy_row(kind, row);
        if (r != 0)
                return r;
        r = hfd_kind_new_informer(&custom->sources, &kind->row, &kind->informer);
        if (r != 0)
                return r;
        kind->id = custom->next_id++;
        *ret_kind = HF__TAKE(kind);
        return 0;
}

static bool is_row_of(const struct hfd_kind *kind, const struct hfd_kind_row *row) {
        return strcmp(kind->row.resource.group, row->resource.group) == 0 &&
               strcmp(kind->row.resource.version, row->resource.version) == 0 &&
               strcmp(kind->row.resource.plural, row->resource.plural) == 0 &&
               strcmp(kind->row.kind, row->kind) == 0 && kind->row.namespaced == row->namespaced;
}

/* A definition cannot take the place of a built-in kind. */
static bool is_built_in(const struct hfd_custom_kinds *custom, const struct hfd_kind_row *row) {
        for (size_t i = 0; i < custom->built_in->n; i++) {
                const struct hfd_kind_row *other = &custom->built_in->kinds[i]->row;
                if (strcmp(other->resource.group, row->resource.group) == 0 &&
                    (strcmp(other->resource.plural, row->resource.plural) == 0 ||
                     strcmp(other->kind, row->kind) == 0))
                        return true;
        }
        return false;
}

/* Makes the kind of a definition whose text has changed. 0, or -errno: the entry keeps the text, so
 * that the next scan tries again. */
static int update_entry(struct hfd_custom_kinds *custom, struct entry *entry) {
        assert(entry->text);
        struct hfd_kind_row row;
        struct hf__json *definition = NULL;
        struct hfd_kind *kind = NULL;
        int r = hf__json_parse(entry->text, entry->n_text, &definition, NULL);

        if (r == -ENOMEM)
                return r;
        bool served = r == 0 && hfd_definition_row(definition, &row) && !is_built_in(custom, &row);
        bool same = served && entry->kind && is_row_of(entry->kind, &row);
        r = served && !same ? new_kind(custom, &row, &kind) : 0;
        hf__json_free(definition);
        if (r != 0)
                return r;
        free(entry->text);
        entry->text = NULL;
        if (same)
                return 0;
        hfd_kind_unref(entry->kind);
        entry->kind = kind;
        entry->since = hf_now(custom->clock);
        entry->started = false;
        return 0;
}

/* Starts the informer of the kind, unless it was started or the server does not serve the kind yet.
 * 0, or -errno: try again. */
static int start_entry(const struct hfd_custom_kinds *custom, struct entry *entry) {
        const struct hfd_kind_serving_functions *serving = &custom->sources.serving;

        if (!entry->kind || entry->started ||
            (serving->serves && !serving->serves(serving->ctx, &entry->kind->row.resource)))
                return 0;
        int r = hf_informer_start(entry->kind->informer);
        entry->started = r == 0;
        return r;
}

/* Brings the entries up to date with the informer. 0 or -errno: try again. */
static int scan_definitions(struct hfd_custom_kinds *custom) {
        struct scan scan = {.custom = custom};
        struct entry *next;
        int r = 0;

        custom->scan++;
        hf_informer_each(custom->definitions->informer, scan_definition, &scan);
        for (struct entry *entry = first_entry(custom); entry; entry = next) {
                next = next_entry(custom, entry->name);
                if (entry->scan != custom->scan && scan.error == 0)
                        free_entry(custom, entry);
                else if (entry->text && r == 0)
                        r = update_entry(custom, entry);
        }
        return scan.error != 0 ? scan.error : r;
}

/* ---- sets ---- */

/* The set that the entries allow now. */
struct next_set {
        struct hfd_kind **kinds; /* owned; in the order of their ids */
        size_t n;
        bool is_listing;     /* a kind has waited for its first list for less than LIST_MAX */
        bool has_unlisted;   /* a kind waits for its first list, however long */
        hf_nsec listing_for; /* how long the newest waiting kind has waited; HF_NSEC_NEVER = none */
};

static int compare_ids(const void *a, const void *b) {
        size_t first = (*(struct hfd_kind *const *)a)->id,
               second = (*(struct hfd_kind *const *)b)->id;

        return (first > second) - (first < second);
}

static int examine_entries(struct hfd_custom_kinds *custom, struct next_set *next) {
        const struct hfd_kind_set *built_in = custom->built_in;
        hf_nsec now = hf_now(custom->clock);

        *next = (struct next_set){.listing_for = HF_NSEC_NEVER};
        /* One more, because calloc of nothing may return NULL. */
        next->kinds = calloc(built_in->n + custom->entries.n + 1, sizeof(struct hfd_kind *));
        if (!next->kinds)
                return -ENOMEM;
        for (; next->n < built_in->n; next->n++)
                next->kinds[next->n] = built_in->kinds[next->n];
        for (struct entry *entry = first_entry(custom); entry;
             entry = next_entry(custom, entry->name)) {
                hf_nsec waited = now - entry->since;
                if (!entry->kind)
                        continue;
                if (hf_informer_synced(entry->kind->informer)) {
                        next->kinds[next->n++] = entry->kind;
                        continue;
                }
                next->has_unlisted = true;
                next->is_listing = next->is_listing || waited < LIST_MAX;
                if (waited < next->listing_for)
                        next->listing_for = waited;
        }
        qsort(next->kinds, next->n, sizeof(struct hfd_kind *), compare_ids);
        return 0;
}

static bool is_current(const struct hfd_custom_kinds *custom, const struct next_set *next) {
        if (custom->set->n != next->n)
                return false;
        for (size_t i = 0; i < next->n; i++)
                if (custom->set->kinds[i] != next->kinds[i])
                        return false;
        return true;
}

/* Puts a new set in the place of the current one. The order matters: whoever sees that its set was
 * replaced must find the new one. */
static int replace_set(struct hfd_custom_kinds *custom, const struct next_set *next) {
        struct hfd_kind_set *set, *former = custom->set;
        int r = hfd_kind_set_new(custom->clock, next->kinds, next->n, &set);

        if (r != 0)
                return r;
        hf_log(&custom->sources.host->log, HF_LOG_DEBUG, "custom-kinds", "%zu kinds", set->n);
        (void)pthread_mutex_lock(&custom->mu);
        custom->set = set;
        (void)pthread_mutex_unlock(&custom->mu);
        custom->set_at = hf_now(custom->clock);
        hf_cancel_fire(former->replaced, HF_CANCEL_STOPPING);
        hfd_kind_set_unref(former);
        return 0;
}

/* ---- the thread ---- */

static hf_nsec poll_delay(const struct next_set *next) {
        hf_nsec delay = next->listing_for / 4;

        if (delay < POLL_MIN)
                return POLL_MIN;
        return delay < POLL_MAX ? delay : POLL_MAX;
}

/*
 * One iteration of the thread's loop. rescan: the definitions may have changed. *ret_settled: the
 * new value of custom->settled. *ret_delay: the time until the next iteration if no event comes
 * before; HF_NSEC_NEVER = only an event. 0, or -errno: neither counts, and the caller tries again.
 */
static int run_iteration(struct hfd_custom_kinds *custom, bool rescan, bool *ret_settled,
                         hf_nsec *ret_delay) {
        struct next_set next;
        int r = rescan ? scan_definitions(custom) : 0;

        for (struct entry *entry = first_entry(custom); entry && r == 0;
             entry = next_entry(custom, entry->name))
                r = start_entry(custom, entry);
        if (r == 0)
                r = examine_entries(custom, &next);
        if (r != 0)
                return r;
        hf_nsec distance = next.is_listing ? LONG_DISTANCE : SET_DISTANCE,
                passed = hf_now(custom->clock) - custom->set_at;
        bool current = is_current(custom, &next),
             may_replace = !custom->set_at || passed >= distance;
        *ret_delay = next.has_unlisted ? poll_delay(&next) : HF_NSEC_NEVER;
        if (!current && may_replace) {
                r = replace_set(custom, &next);
                current = r == 0;
        } else if (!current && distance - passed < *ret_delay) {
                *ret_delay = distance - passed;
        }
        *ret_settled = current && !next.is_listing;
        free(next.kinds);
        return r;
}

static void *thread_main(void *ctx) {
        struct hfd_custom_kinds *custom = ctx;
        hf_nsec due = HF_NSEC_NEVER;

        (void)pthread_mutex_lock(&custom->mu);
        while (!custom->stop) {
                uint64_t changed = custom->changed;
                bool rescan = changed != custom->scanned, settled = false;
                hf_nsec delay = 0;
                if (!rescan && hf_now(custom->clock) < due) {
                        (void)custom->clock->wait(custom->clock->ctx, &custom->wake, &custom->mu,
                                                  due);
                        continue;
                }
                (void)pthread_mutex_unlock(&custom->mu);
                int r = run_iteration(custom, rescan, &settled, &delay);
                (void)pthread_mutex_lock(&custom->mu);
                if (r == 0) {
                        custom->scanned = changed;
                        custom->settled = settled;
                        due = delay == HF_NSEC_NEVER ? delay : hf_now(custom->clock) + delay;
                        continue;
                }
                /* Try again after a pause. Pause here and not by `due`: if `changed` still differs
                 * from `scanned`, the loop does not wait for `due`. */
                due = 0;
                if (!custom->stop)
                        (void)custom->clock->wait(custom->clock->ctx, &custom->wake, &custom->mu,
                                                  hf_now(custom->clock) + NOMEM_PAUSE);
        }
        (void)pthread_mutex_unlock(&custom->mu);
        return NULL;
}

static void on_definition(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                          const char *object, size_t n) {
        struct hfd_custom_kinds *custom = ctx;

        (void)pthread_mutex_lock(&custom->mu);
        custom->changed++;
        (void)pthread_cond_signal(&custom->wake);
        (void)pthread_mutex_unlock(&custom->mu);
}

/* ---- life cycle ---- */

int hfd_custom_kinds_new(const struct hfd_kind_sources *sources, struct hfd_kind_set *built_in,
                         const struct hfd_kind *definitions, struct hfd_custom_kinds **ret_custom) {
        struct hfd_custom_kinds *custom = calloc(1, sizeof *custom);

        if (!custom)
                return -ENOMEM;
        custom->sources = *sources;
        custom->clock = hf_host_clock(sources->host);
        custom->definitions = definitions;
        custom->next_id = built_in->n;
        custom->settled = true;
        int r = hf__mutex_cond_init(&custom->mu, &custom->wake);
        if (r != 0) {
                free(custom);
                return r;
        }
        custom->built_in = hfd_kind_set_ref(built_in);
        custom->set = hfd_kind_set_ref(built_in);
        *ret_custom = custom;
        return 0;
}

int hfd_custom_kinds_start(struct hfd_custom_kinds *custom) {
        int r = hf__thread_start(custom->sources.host, "hf-kinds", thread_main, custom,
                                 &custom->thread);

        custom->started = r == 0;
        if (r == 0)
                r = hf_informer_add_handler(custom->definitions->informer, on_definition, custom,
                                            &custom->handler);
        return r;
}

struct hfd_custom_kinds *hfd_custom_kinds_free(struct hfd_custom_kinds *custom) {
        if (!custom)
                return NULL;
        hf_informer_remove_handler(custom->definitions->informer, custom->handler);
        (void)pthread_mutex_lock(&custom->mu);
        custom->stop = true;
        (void)pthread_cond_signal(&custom->wake);
        (void)pthread_mutex_unlock(&custom->mu);
        if (custom->started)
                (void)hf__thread_join(custom->thread);
        hfd_kind_set_unref(custom->set);
        hfd_kind_set_unref(custom->built_in);
        for (struct entry *entry = first_entry(custom); entry; entry = first_entry(custom))
                free_entry(custom, entry);
        hf__key_index_done(&custom->entries);
        (void)pthread_cond_destroy(&custom->wake);
        (void)pthread_mutex_destroy(&custom->mu);
        free(custom);
        return NULL;
}

struct hfd_kind_set *hfd_custom_kinds_get(struct hfd_custom_kinds *custom) {
        (void)pthread_mutex_lock(&custom->mu);
        struct hfd_kind_set *set = hfd_kind_set_ref(custom->set);
        (void)pthread_mutex_unlock(&custom->mu);
        return set;
}

bool hfd_custom_kinds_is_complete(struct hfd_custom_kinds *custom, const struct hfd_kind_set *set) {
        (void)pthread_mutex_lock(&custom->mu);
        bool complete = custom->set == set && custom->settled && custom->scanned == custom->changed;
        (void)pthread_mutex_unlock(&custom->mu);
        return complete;
}
