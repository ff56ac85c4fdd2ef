/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the source of a copy of a store: the keys below a prefix, in the order of their last
 * writes. A few keys of the store's own are left out, such as its epoch. The source is read before
 * the target is opened, so that a mistake about the source creates no target. Blocks; logs nothing.
 * Thread: any.
 */
#include "server/storage/patient.h"
#include "server/storage/store.h"

struct hfd_copy_entry {
        char *key; /* owned */
        uint64_t mod_revision;
};

struct hfd_copy_source {
        struct hfd_store *store;        /* borrowed */
        const char *prefix;             /* borrowed */
        uint64_t revision;              /* the revision at which the keys were read */
        struct hfd_copy_entry *entries; /* owned */
        size_t n_entries, space;
};

/*
 * Reads the keys. A list that fails because the store is unavailable is repeated for HFD_PATIENCE.
 * 0, HF_E_NOT_FOUND (there are no such keys), HF_E_INVALID (the store is an incomplete copy
 * itself), HF_E_TOO_LARGE (the prefix), the store's error, or -errno. hfd_copy_source_deinit frees
 * the keys, also after a failure.
 */
int hfd_copy_source_read(struct hfd_copy_source *source, struct hfd_store *store,
                         const char *prefix, struct hf_status *reterr_status);
void hfd_copy_source_deinit(struct hfd_copy_source *source);

/* A survey of the keys of a store that a copy includes: its parameters and its results. */
struct hfd_survey {
        const char *name;  /* of the store, for messages */
        uint64_t revision; /* the revision to read at; 0 = the current one, which is then set */
        size_t n_keys;
        uint64_t last_write;             /* the highest mod revision of a key */
        struct hfd_copy_source *entries; /* gets the keys; NULL = they are only counted */
};
/* 0, HF_E_TOO_LARGE (the prefix), the store's error, or -ENOMEM. */
int hfd_survey(struct hfd_patient *patient, struct hfd_store *store, const char *prefix,
               struct hfd_survey *survey);

/* Whether the store is an incomplete copy. deadline: boot time. 0, HF_E_TOO_LARGE (the prefix), the
 * store's error or -errno. */
int hfd_copy_is_incomplete(struct hfd_store *store, const char *prefix, hf_nsec deadline,
                           bool *ret_incomplete, struct hf_status *reterr_status);
