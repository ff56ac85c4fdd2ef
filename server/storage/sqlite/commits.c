/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the last commits of this process for its watcher.
 *
 * Invariant: there is no gap. Another process may write between two commits of this process, and
 * its writes are not here. Then the later commit replaces the earlier one, and the watcher, whose
 * position is before the later commit, reads the file.
 */
#include "server/storage/sqlite/commits.h"

#include <stdlib.h>
#include <string.h>

void hfd_sqlite_commits_deinit(struct hfd_sqlite_commits *commits) {
        hfd_sqlite_kvs_deinit(&commits->writes);
        *commits = (struct hfd_sqlite_commits){0};
}

static bool is_too_much(size_t n_writes, size_t n_bytes) {
        return n_writes > HFD_SQLITE_COMMITS_MAX || n_bytes > HFD_SQLITE_COMMITS_BYTES;
}

/* Moves the writes of `next` to the end of those of `commits`. False: out of memory. */
static bool append_commits(struct hfd_sqlite_commits *commits, struct hfd_sqlite_commits *next) {
        struct hfd_sqlite_kvs *all = &commits->writes;
        size_t n = all->n + next->writes.n;

        if (n > all->space) {
                struct hfd_kv *bigger = realloc(all->kvs, n * sizeof *bigger);

                if (!bigger)
                        return false;
                all->kvs = bigger;
                all->space = n;
        }
        memcpy(all->kvs + all->n, next->writes.kvs, next->writes.n * sizeof *all->kvs);
        all->n = n;
        commits->next = next->next;
        commits->n_bytes += next->n_bytes;
        next->writes.n = 0;
        return true;
}

void hfd_sqlite_commits_add(struct hfd_sqlite_commits *commits, struct hfd_sqlite_commits *next) {
        struct hfd_sqlite_commits old = *commits;
        bool follows = old.writes.n > 0 && old.history == next->history && old.next == next->first;

        for (size_t i = 0; i < next->writes.n; i++)
                if (next->writes.kvs[i].value)
                        next->n_bytes += next->writes.kvs[i].value->n;
        if (follows && !is_too_much(old.writes.n + next->writes.n, old.n_bytes + next->n_bytes) &&
            append_commits(commits, next))
                return;
        if (is_too_much(next->writes.n, next->n_bytes))
                hfd_sqlite_commits_deinit(next); /* the watcher reads them from the file */
        *commits = *next;
        *next = old;
}
