/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The writes that crash-writer makes in a store, and its records about them. Crash-writer and the
 * test that checks the file afterwards share these definitions. Pure, apart from the memory of a
 * value.
 *
 * A plan is a list of writes in phases. The writes of a phase are on different keys and start at
 * the same time; the next phase starts when all of them were answered. A compaction is a phase of
 * its own, at the revision that the store has at its beginning.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/store.h"

enum crash_plan_kind {
        CRASH_PLAN_SHORT, /* each kind of write, 10 bytes to 100 KiB */
        CRASH_PLAN_LONG,  /* about 11 MB, so that SQLite checkpoints and reuses its log */
        CRASH_PLAN_PUTS,  /* about 600 KB, nothing is deleted */
};
enum { CRASH_PLAN_OPS = 3, CRASH_PLAN_KEY = 32 };

struct crash_plan_op {
        enum hfd_op_kind kind;
        char key[CRASH_PLAN_KEY];
        size_t n_value;
};
struct crash_plan_write {
        size_t phase;
        size_t n_ops; /* 0: a compaction */
        struct crash_plan_op ops[CRASH_PLAN_OPS];
};

/* The write number i. False: the plan has no more. */
bool crash_plan_write(enum crash_plan_kind kind, size_t i, struct crash_plan_write *ret_write);
/* The value of put `op` of write i: its bytes depend on both, and on their place. */
struct hf__buf *crash_plan_value(size_t i, size_t op, size_t n);
/*
 * Finds the write that made an event. The value of a put has the number of its write. A deletion is
 * found by its key, because only one write of a plan is the deletion of this key alone. SIZE_MAX:
 * there is no such write.
 */
size_t crash_plan_find(enum crash_plan_kind kind, const char *key, const struct hf__buf *value);

enum crash_record_kind {
        CRASH_ACKED,  /* write `index` was answered with success and this revision */
        CRASH_FAILED, /* write `index` failed with this error */
        CRASH_SEEN,   /* a watch delivered write `index` with this revision */
        /* The next write is a compaction at this revision, and may be done from now on. */
        CRASH_COMPACTING,
};
/* Written to a pipe as it is. */
struct crash_record {
        enum crash_record_kind kind;
        int error;
        uint64_t index, revision;
};
