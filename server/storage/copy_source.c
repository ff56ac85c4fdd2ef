/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a store that a copy includes (copy_source.h).
 *
 * Invariant: all pages of a survey are read at the revision of its first page, so it sees one state
 * of the store.
 */
#include "server/storage/copy_source.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/keys.h"

/* Keys in one list. A list of all keys of a large store might not end within HFD_PATIENT_TIMEOUT.
 */
#define PAGE 1000

#define SOURCE "the source" /* in messages */

/* Whether a key is not copied: it names revisions of its own store, or the copy writes it anew. */
static bool is_left_out(const char *prefix, const char *key) {
        static const char *const names[] = {"compact", "progress", "epoch", "copying"};
        char own[HFD_KEY_MAX];

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (hfd_key_own(own, prefix, names[i]) == 0 && strcmp(own, key) == 0)
                        return true;
        return false;
}

/* Takes the key from kv. 0 or -ENOMEM. */
static int add_entry(struct hfd_copy_source *source, struct hfd_kv *kv) {
        assert(source->n_entries <= source->space);
        if (source->n_entries == source->space) {
                size_t space = source->space > 0 ? 2 * source->space : PAGE;
                struct hfd_copy_entry *bigger = realloc(source->entries, space * sizeof *bigger);

                if (!bigger)
                        return -ENOMEM;
                source->entries = bigger;
                source->space = space;
        }
        source->entries[source->n_entries++] =
                (struct hfd_copy_entry){.key = (char *)kv->key, .mod_revision = kv->mod_revision};
        kv->key = NULL;
        return 0;
}

/* ---- surveys ---- */

static int survey_page(const char *prefix, struct hfd_survey *survey, struct hfd_result *page) {
        int r = 0;

        for (size_t i = 0; i < page->n_kvs && r == 0; i++) {
                struct hfd_kv *kv = &page->kvs[i];

                if (is_left_out(prefix, kv->key))
                        continue;
                survey->n_keys++;
                if (kv->mod_revision > survey->last_write)
                        survey->last_write = kv->mod_revision;
                if (survey->entries)
                        r = add_entry(survey->entries, kv);
        }
        return r;
}

/* Looks at the keys that begin with `beginning`, a page at a time. */
static int survey_beginning(struct hfd_patient *patient, struct hfd_store *store,
                            const char *prefix, const char *beginning, struct hfd_survey *survey) {
        char start[HFD_KEY_MAX] = "";
        struct hfd_result page = {0};
        bool more = true;
        int r = 0;

        while (more && r == 0) {
                const struct hfd_patient_range range = {.store = store,
                                                        .name = survey->name,
                                                        .prefix = beginning,
                                                        .start = start[0] ? start : NULL,
                                                        .revision = survey->revision,
                                                        .limit = PAGE,
                                                        .keys_only = true};

                r = hfd_patient_list(patient, &range, &page);
                if (r != 0)
                        break;
                if (survey->revision == 0)
                        survey->revision = page.revision;
                more = page.more && page.n_kvs > 0;
                if (more)
                        hfd_key_after(start, page.kvs[page.n_kvs - 1].key);
                more = more && start[0]; /* "": no key can follow (hfd_key_after) */
                r = survey_page(prefix, survey, &page);
                if (r != 0)
                        (void)hf_fail(patient->status, r, "%s", hf_strerror(r));
        }
        hfd_result_deinit(&page);
        return r;
}

int hfd_survey(struct hfd_patient *patient, struct hfd_store *store, const char *prefix,
               struct hfd_survey *survey) {
        /* In the order of keys: '.' sorts before '/'. */
        const char *const endings[] = {".holdfast/", "/"};
        char beginning[HFD_KEY_MAX];
        int r = 0;

        for (size_t i = 0; i < sizeof endings / sizeof endings[0] && r == 0; i++) {
                int n = snprintf(beginning, sizeof beginning, "%s%s", prefix, endings[i]);

                if (n < 0 || (size_t)n >= sizeof beginning)
                        return hf_fail(patient->status, HF_E_TOO_LARGE, "the prefix is too long");
                r = survey_beginning(patient, store, prefix, beginning, survey);
        }
        return r;
}

/* ---- the source ---- */

/* Keys are copied in this order, so the revisions in the target have the order of those in the
 * source. The keys of one transaction have one revision, and follow each other by name. */
static int by_revision(const void *a, const void *b) {
        const struct hfd_copy_entry *x = a, *y = b;

        if (x->mod_revision != y->mod_revision)
                return x->mod_revision < y->mod_revision ? -1 : 1;
        return strcmp(x->key, y->key);
}

static int find_mark(struct hfd_patient *patient, const struct hfd_copy_source *source,
                     bool *ret_incomplete) {
        struct hf_status why = {0};
        hf_nsec give_up = 0;
        int r;

        do
                r = hfd_copy_is_incomplete(source->store, source->prefix,
                                           hfd_patient_deadline(patient), ret_incomplete, &why);
        while (hfd_patient_may_repeat(patient, r, &give_up));
        return r == 0 ? 0 : hf_fail(patient->status, r, SOURCE ": %s", why.message);
}

static int read_keys(struct hfd_patient *patient, struct hfd_copy_source *source) {
        struct hfd_survey found = {.name = SOURCE, .entries = source};
        bool incomplete = false;
        int r = hfd_survey(patient, source->store, source->prefix, &found);

        if (r == 0)
                r = find_mark(patient, source, &incomplete);
        if (r != 0)
                return r;
        if (incomplete)
                return hf_fail(patient->status, HF_E_INVALID,
                               "the source is a copy that was not completed");
        if (found.n_keys == 0)
                return hf_fail(patient->status, HF_E_NOT_FOUND,
                               "the source has no key below %s: see --etcd-prefix", source->prefix);
        source->revision = found.revision;
        qsort(source->entries, source->n_entries, sizeof *source->entries, by_revision);
        return 0;
}

int hfd_copy_source_read(struct hfd_copy_source *source, struct hfd_store *store,
                         const char *prefix, struct hf_status *reterr_status) {
        struct hfd_patient patient;

        *source = (struct hfd_copy_source){.store = store, .prefix = prefix};
        int r = hfd_patient_init(&patient, store->host, reterr_status);
        if (r != 0)
                return r;
        r = read_keys(&patient, source);
        hfd_patient_deinit(&patient);
        return r;
}

void hfd_copy_source_deinit(struct hfd_copy_source *source) {
        for (size_t i = 0; i < source->n_entries; i++)
                free(source->entries[i].key);
        free(source->entries);
        *source = (struct hfd_copy_source){0};
}

int hfd_copy_is_incomplete(struct hfd_store *store, const char *prefix, hf_nsec deadline,
                           bool *ret_incomplete, struct hf_status *reterr_status) {
        struct hfd_waiter waiter;
        struct hfd_result found = {0};
        char key[HFD_KEY_MAX];
        int r = hfd_key_own(key, prefix, "copying");

        if (r == 0)
                r = hfd_waiter_init(&waiter, store->host);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        hfd_waiter_begin(&waiter, &found);
        r = hfd_waiter_end(&waiter, &found,
                           store->ops->get(store, key, false, deadline, hfd_result_fill, &found));
        *ret_incomplete = r == 0 && found.n_kvs > 0;
        if (r != 0)
                *reterr_status = found.status;
        hfd_result_deinit(&found);
        hfd_waiter_deinit(&waiter);
        return r;
}
