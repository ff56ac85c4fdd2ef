/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Work that is divided over all instances: n shards, each with a Lease of its own. An instance runs
 * the controllers of the shards that it holds. So every shard has a term, a client and a fence of
 * its own, and at most one instance acts for it.
 *
 * The Leases are "<name>-0" to "<name>-<n-1>". Each instance announces itself by a Lease
 * "<name>-member-<hash of its identity>". All have the label holdfast.dev/shards=<name>. A while
 * after the last instance has come or gone, the numbers of shards that instances hold differ by at
 * most one:
 *
 *  - A new instance counts after its first renewal, and half a retry period later the others hand
 *    its share over to it: they drain, release, and name it the successor. So a shard waits for no
 *    expiry, and only as many move as the new one needs.
 *  - An instance that stops releases its shards; the others take them at once. The shards of one
 *    that crashed are taken when its Leases expire. No other shard moves.
 *  - If the Leases cannot be watched, the shards keep their holders. An instance takes a shard that
 *    has been free for three retry periods even if it is not its turn.
 *
 * All instances must have the same name and the same n. To change n, use another name. The client
 * needs get, list, watch, create, update and delete of Leases in the namespace.
 *
 * Which key belongs to which shard is up to the controllers; hf_shard_of is a hash for it. A
 * controller ignores the keys of other shards.
 */
#include <stddef.h>

#include <holdfast/leader.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_SHARDS_MAX      1024
#define HF_SHARDS_NAME_MAX 63 /* bytes of the name, because it is also a label's value */

struct hf_shards;

struct hf_shard_controller {
        size_t size;      /* sizeof(struct hf_shard_controller) */
        const char *name; /* required; "<name>-<shard>" is the controller's name; copied */
        /* As hf_controller.run, for one shard. The calls for several shards run at the same time,
         * each on a thread of its own. */
        int (*run)(struct hf_term *term, unsigned shard, void *ctx);
        void *ctx; /* passed to run; borrowed */
};

struct hf_shards_config {
        size_t size; /* sizeof(struct hf_shards_config) */
        /*
         * What all the electors have in common; required; borrowed for the call. Its members are
         * copied or borrowed as struct hf_elector_config says. `name` is the group's name.
         * `controllers`, `migrate_from` and `coordinated` must not be set. on_change is called for
         * the shards; info->name is the Lease.
         */
        const struct hf_elector_config *elector;
        unsigned n_shards;                             /* 1 to HF_SHARDS_MAX */
        const struct hf_shard_controller *controllers; /* required; n_controllers; copied */
        size_t n_controllers;
};

/*
 * Adds n_shards + 1 electors. Call it before hf_electors_start. HF_E_INVALID: reterr_status names
 * the mistake; else as hf_electors_add. After an error some electors may have been added: free the
 * electors, do not start them. *ret_shards (may be NULL) is owned by electors.
 */
HF_MUST_CHECK int hf_shards_add(struct hf_electors *electors, const struct hf_shards_config *config,
                                struct hf_shards **ret_shards, struct hf_status *reterr_status);
/* The elector of one shard, for hf_elector_info and hf_elector_may_act. Owned by the electors;
 * NULL: there is no such shard. Thread: any. */
struct hf_elector *hf_shards_elector(struct hf_shards *shards, unsigned shard);

/* The shard of a key, from 0 to n_shards - 1, for n_shards > 0. The same in every version, on every
 * machine. Pure. */
unsigned hf_shard_of(const char *key, unsigned n_shards);

#ifdef __cplusplus
}
#endif
