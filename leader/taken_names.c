/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One index has all names that are taken, so that a look-up is fast also with ten thousand
 * electors. The key of a Lease is "L/" and its label. The key of a controller is "C", its cluster,
 * a slash and its name.
 *
 * Invariant: two names have the same key only if they are the same, because a cluster's name has no
 * slash.
 */
#include "leader/taken_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hf__taken_name {
        struct hf__keyed keyed;      /* first; its key is the entry's own */
        struct hf__taken_name *next; /* of the same elector */
        const char *by;              /* the label of the elector that has taken it */
        char key[];
};

/* Adds the entry, which the index then owns. name: for the message. 0, -ENOMEM, or HF_E_EXISTS: the
 * name is taken. After an error the caller keeps the entry. */
static int take_name(struct hf__taken_names *names, const struct hf__names_of_elector *elector,
                     struct hf__taken_name *entry, const char *name,
                     struct hf_status *reterr_status) {
        entry->keyed.key = entry->key;
        entry->by = elector->label;
        const struct hf__taken_name *other =
                (const struct hf__taken_name *)hf__key_index_find(&names->index, entry->key);
        if (!other) {
                int r = hf__key_index_insert(&names->index, &entry->keyed);
                if (r != 0)
                        return r;
                entry->next = names->newest;
                names->newest = entry;
                return 0;
        }
        if (entry->key[0] == 'L')
                return hf_fail(reterr_status, HF_E_EXISTS,
                               "there already is an elector for the Lease %s", name);
        return hf_fail(reterr_status, HF_E_EXISTS,
                       "elector %s: controller \"%s\" is already registered with %s",
                       elector->label, name, other->by);
}

/* Sets the parts of the key for the elector's i-th name: 0 and 1 are its Leases, the others its
 * controllers. False: it has no second Lease. */
static bool name_at(const struct hf__names_of_elector *elector, size_t i, const char *parts[3]) {
        bool is_lease = i < 2;

        if (i == 1 && !*elector->old_label)
                return false;
        parts[0] = is_lease ? "L" : "C";
        parts[1] = is_lease ? "" : elector->cluster;
        parts[2] = i == 0 ? elector->label : elector->old_label;
        if (!is_lease)
                parts[2] = elector->controllers[i - 2].name;
        return true;
}

static struct hf__taken_name *make_entry(const char *const parts[3]) {
        size_t size = strlen(parts[0]) + strlen(parts[1]) + 1 + strlen(parts[2]) + 1;
        struct hf__taken_name *entry = malloc(sizeof *entry + size);

        if (entry)
                (void)snprintf(entry->key, size, "%s%s/%s", parts[0], parts[1], parts[2]);
        return entry;
}

/* Frees the entries of the elector that is being added. */
static void drop_newest(struct hf__taken_names *names) {
        while (names->newest) {
                struct hf__taken_name *entry = names->newest;
                names->newest = entry->next;
                hf__key_index_remove(&names->index, entry->key);
                free(entry);
        }
}

int hf__taken_names_take(struct hf__taken_names *names, const struct hf__names_of_elector *elector,
                         struct hf_status *reterr_status) {
        const char *parts[3];

        names->newest = NULL;
        for (size_t i = 0; i < 2 + elector->n_controllers; i++) {
                if (!name_at(elector, i, parts))
                        continue;
                struct hf__taken_name *entry = make_entry(parts);
                int r = entry ? take_name(names, elector, entry, parts[2], reterr_status) : -ENOMEM;
                if (r == 0)
                        continue;
                free(entry);
                drop_newest(names);
                return r;
        }
        return 0;
}

void hf__taken_names_done(struct hf__taken_names *names) {
        hf__key_index_free_items(&names->index);
        names->newest = NULL;
}
