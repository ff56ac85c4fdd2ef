/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The names that the electors of a set have taken: of their Leases, and of the controllers of each
 * cluster. Needed only while electors are added.
 *
 * Thread: the one that adds electors; there is no lock.
 */
#include <holdfast/error.h>
#include <holdfast/leader.h>

#include "client/key_index.h"

/* Zero = nothing is taken. */
struct hf__taken_names {
        struct hf__key_index index;    /* owns its entries */
        struct hf__taken_name *newest; /* the names of the last elector; in the index too */
};

/* The names of one elector. The texts are borrowed until hf__taken_names_done. */
struct hf__names_of_elector {
        const char *label, *old_label; /* of its Leases; "" = there is no old one */
        const char *cluster;
        const struct hf_controller *controllers;
        size_t n_controllers;
};

/* Takes the names of an elector's Leases and controllers. 0, HF_E_EXISTS or -ENOMEM; after an error
 * none of them is taken. */
int hf__taken_names_take(struct hf__taken_names *names, const struct hf__names_of_elector *elector,
                         struct hf_status *reterr_status);
/* Frees the memory. Afterwards no name is taken. */
void hf__taken_names_done(struct hf__taken_names *names);
