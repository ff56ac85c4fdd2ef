/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches of a SQLite store, and the thread that serves them. A watch is a position in the rows
 * of the file; the watcher reads what was written from there on, by any process.
 *
 * The watcher looks for new rows when a process, perhaps this one, has written to the notify file
 * after a commit (inotify). A process that is killed between the commit and the notice gives one
 * too: the kernel closes its notify file. The watcher also looks every HFD_SQLITE_LOOK_INTERVAL,
 * because a process may be stopped (SIGSTOP) in between. Without inotify it looks every
 * LOOK_INTERVAL_WITHOUT_NOTICE. It reads rows for each watch that is behind, as every new one is,
 * and for all watches if SQLite says that there was a commit since the last look. It also ends
 * operations whose deadline has passed.
 *
 * The last writes of this process are in memory, unless they are too many (commits.h), so the
 * watcher delivers them without looking at the file. Another process may write at the same time,
 * and the watcher cannot tell the notices of that process from those of this one. So LOOK_AFTER
 * after a write of this process the watcher looks at the file, however many writes follow
 * meanwhile.
 *
 * Invariants:
 *  - a watch receives whole revisions, in order, because both hfd_sqlite_log and the commits in
 *    memory have whole revisions;
 *  - one snapshot of the file serves to compare a watch's position with the compacted revision and
 *    to read the rows, so no compaction removes rows between the two;
 *  - a watch exists until its end callback has returned. Only the watcher removes it.
 */
#include "server/storage/sqlite/watches.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mailbox.h"
#include "base/thread.h"
#include "server/storage/sqlite/sqlite.h"
#include "server/storage/sqlite/versions.h"

/* Rows that are read at once; exceeded only to complete a revision. */
#define EVENTS_MAX HFD_SQLITE_COMMITS_MAX
/* While this process writes, how soon another one's commit is seen at the latest. Until then the
 * processors are free for the threads that wait for the write: a new leader's controllers, for
 * example. */
#define LOOK_AFTER (10 * HF_NSEC_PER_MSEC)
/* Another process's commit is to be seen within 20 ms, and the look itself takes time, too. */
#define LOOK_INTERVAL_WITHOUT_NOTICE (15 * HF_NSEC_PER_MSEC)

struct hfd_sqlite_watch {
        struct hfd_sqlite_watch *next;
        /* Immutable. */
        uint64_t id;
        struct hfd_watch_handler handler;
        void *ctx;
        char *begin, *end; /* owned */
        /* Used by the watcher only. */
        uint64_t position; /* the next revision to deliver; 0 = the next one that is written */
        bool behind;       /* rows may be left that it has not received */
        /* Guarded by mu. */
        int error; /* not 0: the watcher must end the watch with this error */
};

static void free_watch(struct hfd_sqlite_watch *watch) {
        free(watch->begin);
        free(watch->end);
        free(watch);
}

HF__CLEANUP_DEFINE(watch_cleanup, struct hfd_sqlite_watch *, free_watch)

int hfd_sqlite_watch_start(struct hfd_store *store, const char *begin, const char *end,
                           uint64_t revision, const struct hfd_watch_handler *handler, void *ctx,
                           uint64_t *ret_id) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(store);
        HF__CLEANUP(watch_cleanup) struct hfd_sqlite_watch *watch = calloc(1, sizeof *watch);
        int r = 0;

        assert(handler->event && handler->end);
        if (!watch)
                return -ENOMEM;
        watch->handler = *handler;
        watch->ctx = ctx;
        watch->position = revision;
        watch->behind = true;
        watch->begin = strdup(begin);
        watch->end = strdup(end);
        if (!watch->begin || !watch->end)
                return -ENOMEM;
        pthread_mutex_lock(&sqlite->mu);
        if (sqlite->closing) {
                r = HF_E_CLOSED;
        } else {
                watch->id = ++sqlite->last_watch_id;
                if (ret_id)
                        *ret_id = watch->id;
                watch->next = sqlite->watches;
                sqlite->watches = HF__TAKE(watch);
        }
        pthread_mutex_unlock(&sqlite->mu);
        if (r == 0)
                hfd_sqlite_wake_watcher(sqlite);
        return r;
}

void hfd_sqlite_watch_cancel(struct hfd_store *store, uint64_t id) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(store);

        pthread_mutex_lock(&sqlite->mu);
        for (struct hfd_sqlite_watch *watch = sqlite->watches; watch; watch = watch->next)
                if (watch->id == id && watch->error == 0)
                        watch->error = HF_E_CANCELED;
        pthread_mutex_unlock(&sqlite->mu);
        hfd_sqlite_wake_watcher(sqlite);
}

/* ---- delivering ---- */

/* Reads what the watch has not received, in one snapshot. HF_E_GONE: its position is compacted. */
static int read_log(struct hfd_sqlite_db *db, struct hfd_sqlite_watch *watch,
                    struct hfd_sqlite_kvs *kvs, bool *ret_more, struct hf_status *reterr_status) {
        struct hf_status ignored = {0};
        uint64_t compacted = 0, revision = 0;
        int r = hfd_sqlite_db_run(db, HFD_SQL_BEGIN_READ, reterr_status);

        if (r == 0)
                r = hfd_sqlite_db_meta(db, "compacted", &compacted, reterr_status);
        if (r == 0 && watch->position == 0) {
                r = hfd_sqlite_revision(db, &revision, reterr_status);
                watch->position = r == 0 ? revision + 1 : 0;
        }
        if (r == 0 && watch->position < compacted)
                r = hf_fail(reterr_status, HF_E_GONE, "revision %llu of the watch is compacted",
                            (unsigned long long)watch->position);
        if (r == 0)
                r = hfd_sqlite_log(db, &watch->position, EVENTS_MAX, kvs, ret_more, reterr_status);
        if (hfd_sqlite.get_autocommit(db->handle) == 0)
                (void)hfd_sqlite_db_run(db, HFD_SQL_COMMIT, &ignored);
        return r == 0 || r == HF_E_GONE ? r : HF_E_UNAVAILABLE;
}

static bool is_in_range(const struct hfd_sqlite_watch *watch, const char *key) {
        return strcmp(key, watch->begin) >= 0 && (!*watch->end || strcmp(key, watch->end) < 0);
}

/* Delivers the events from the revision `from` on. */
static void deliver_events(struct hfd_sqlite_watch *watch, const struct hfd_sqlite_kvs *kvs,
                           uint64_t from) {
        struct hfd_watch_event events[EVENTS_MAX + HFD_TXN_MAX];
        size_t n = 0;

        assert(kvs->n <= sizeof events / sizeof events[0]);
        for (size_t i = 0; i < kvs->n; i++) {
                const struct hfd_kv *kv = &kvs->kvs[i];

                if (kv->mod_revision >= from && is_in_range(watch, kv->key))
                        events[n++] = (struct hfd_watch_event){.type = kv->value ? HFD_WATCH_PUT
                                                                                 : HFD_WATCH_DELETE,
                                                               .kv = *kv,
                                                               .revision = kv->mod_revision};
        }
        if (n > 0)
                watch->handler.event(watch->ctx, events, n);
}

/* Removes the watch from the list, calls its end callback with mu released, and frees it.
 * why->error is 0 if the watch was canceled. */
static void end_watch_locked(struct hfd_sqlite *sqlite, struct hfd_sqlite_watch **link,
                             const struct hf_status *why) {
        struct hfd_sqlite_watch *watch = *link;
        struct hf_status status = *why;

        hf__mutex_assert_held(&sqlite->mu);
        assert(watch->error != 0);
        *link = watch->next;
        pthread_mutex_unlock(&sqlite->mu);
        if (status.error == 0)
                (void)hf_fail(&status, watch->error, "the watch was canceled");
        watch->handler.end(watch->ctx, watch->error, &status);
        free_watch(watch);
        pthread_mutex_lock(&sqlite->mu);
}

/* Serves one watch; releases mu meanwhile. Only this thread removes watches, and other threads add
 * new ones at the head of the list. So the watch stays in the list, and its next stays as it is. */
static void serve_locked(struct hfd_sqlite *sqlite, struct hfd_sqlite_watch *watch,
                         struct hf_status *ret_why) {
        struct hfd_sqlite_kvs kvs = {0};
        struct hf_status status = {0};
        bool more = false;

        hf__mutex_assert_held(&sqlite->mu);
        pthread_mutex_unlock(&sqlite->mu);
        int r = read_log(&sqlite->watch_db, watch, &kvs, &more, &status);
        if (r == 0)
                deliver_events(watch, &kvs, 0);
        hfd_sqlite_kvs_deinit(&kvs);
        watch->behind = more;
        pthread_mutex_lock(&sqlite->mu);
        /* A watch that was canceled meanwhile ends as canceled. */
        if (r != 0 && watch->error == 0) {
                watch->error = r;
                *ret_why = status;
                ret_why->error = r;
        }
}

static struct hfd_sqlite_watch **link_of_locked(struct hfd_sqlite *sqlite,
                                                const struct hfd_sqlite_watch *watch) {
        struct hfd_sqlite_watch **link = &sqlite->watches;

        hf__mutex_assert_held(&sqlite->mu);
        while (*link != watch)
                link = &(*link)->next;
        return link;
}

/* Serves the watches that are behind, once each, or all when there was a commit. Ends those that
 * have an error, or all if the store is closing. True: one is still behind, or was when it ended.
 */
static bool serve_all_locked(struct hfd_sqlite *sqlite, bool committed) {
        struct hfd_sqlite_watch *watch = sqlite->watches;
        bool more = false;

        hf__mutex_assert_held(&sqlite->mu);
        while (watch) {
                struct hf_status why = {0};

                if (sqlite->closing && watch->error == 0)
                        watch->error = HF_E_CANCELED;
                if (watch->error == 0 && (committed || watch->behind))
                        serve_locked(sqlite, watch, &why);
                struct hfd_sqlite_watch *next = watch->next;
                more = more || watch->behind;
                if (watch->error != 0)
                        end_watch_locked(sqlite, link_of_locked(sqlite, watch), &why);
                watch = next;
        }
        return more;
}

/* Delivers commits to the watches whose positions are among them; releases mu meanwhile, as
 * serve_locked does. True: there were commits, and no watch needs older ones. */
static bool serve_commits_locked(struct hfd_sqlite *sqlite,
                                 const struct hfd_sqlite_commits *commits) {
        bool all = commits->writes.n > 0;

        hf__mutex_assert_held(&sqlite->mu);
        for (struct hfd_sqlite_watch *watch = sqlite->watches; watch; watch = watch->next) {
                uint64_t from = watch->position;

                if (from < commits->first)
                        all = false;
                /* The watch may have got these commits from the file already. */
                if (watch->error != 0 || from < commits->first || from >= commits->next)
                        continue;
                watch->position = commits->next;
                pthread_mutex_unlock(&sqlite->mu);
                deliver_events(watch, &commits->writes, from);
                pthread_mutex_lock(&sqlite->mu);
        }
        return all;
}

/* Whether there was a commit since the last look, by this process or another. True also if SQLite
 * cannot tell: reading the rows then fails as well, and the watches end (HF_E_UNAVAILABLE). */
static bool was_committed(struct hfd_sqlite *sqlite, int64_t *seen) {
        sqlite3_stmt *changes = hfd_sqlite_db_statement(&sqlite->watch_db, HFD_SQL_CHANGES);
        int64_t now = 0;

        if (!changes || hfd_sqlite.step(changes) != SQLITE_ROW)
                return true;
        now = hfd_sqlite.column_int64(changes, 0);
        (void)hfd_sqlite.reset(changes);
        bool committed = now != *seen;
        *seen = now;
        return committed;
}

/* ---- the thread ---- */

/* Sleeps until there may be something to do, at most until the deadline. */
static void sleep_until(struct hfd_sqlite *sqlite, int inotify_fd, hf_nsec deadline) {
        /* poll ignores inotify_fd if it is -1. */
        struct pollfd fds[] = {{.fd = sqlite->wake_fd, .events = POLLIN},
                               {.fd = inotify_fd, .events = POLLIN}};
        hf_nsec pause = inotify_fd >= 0 ? HFD_SQLITE_LOOK_INTERVAL : LOOK_INTERVAL_WITHOUT_NOTICE;
        hf_nsec left = deadline - hf_now(hf_host_clock(sqlite->store.host));
        char buffer[1024];

        /* Rounded up to milliseconds, so that the deadline has passed when poll returns. */
        if (left < pause)
                pause = left > 0 ? left + HF_NSEC_PER_MSEC - 1 : 0;
        if (poll(fds, 2, (int)(pause / HF_NSEC_PER_MSEC)) <= 0)
                return;
        if (fds[0].revents)
                (void)!read(sqlite->wake_fd, buffer, sizeof(uint64_t));
        if (fds[1].revents)
                (void)!read(inotify_fd, buffer, sizeof buffer);
}

/* Opens a descriptor for notices. -1: there are none, and the watcher looks more often. */
static int open_inotify(const char *path) {
        int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

        if (fd >= 0 && inotify_add_watch(fd, path, IN_MODIFY | IN_CLOSE_WRITE) < 0) {
                close(fd);
                fd = -1;
        }
        return fd;
}

/* The watcher's state between two looks. Used by its thread only. */
struct looks {
        int64_t seen; /* SQLite's number for the file (HFD_SQL_CHANGES) at the last look */
        hf_nsec due;  /* boot time of a look that was put off; HF_NSEC_NEVER = none was */
};

/* Whether the file has commits that no look has seen. served: this process has committed, and the
 * watches have got these commits from memory. Then the look is put off for up to LOOK_AFTER, and
 * the result is false meanwhile. */
static bool has_new_commits(struct hfd_sqlite *sqlite, struct looks *looks, bool served) {
        hf_nsec now = hf_now(hf_host_clock(sqlite->store.host));

        if (served && looks->due == HF_NSEC_NEVER)
                looks->due = now + LOOK_AFTER;
        if (served && now < looks->due)
                return false;
        looks->due = HF_NSEC_NEVER;
        return was_committed(sqlite, &looks->seen);
}

/* One commit may concern many watches of clients: when a Lease has a new holder, for example, every
 * informer in this process gets a bookmark. The event callbacks wake the threads of these clients.
 * All wakes are delayed until the watches have been served (base/mailbox.h), and made without mu,
 * because a delayed call may call the store. */
void *hfd_sqlite_watcher_main(void *ctx) {
        struct hfd_sqlite *sqlite = ctx;
        int inotify_fd = open_inotify(sqlite->file_lock.path);
        struct looks looks = {.seen = -1, .due = HF_NSEC_NEVER};

        atomic_store(&sqlite->without_notices, inotify_fd < 0);
        pthread_mutex_lock(&sqlite->mu);
        for (;;) {
                struct hfd_sqlite_commits commits = sqlite->commits;

                sqlite->commits = (struct hfd_sqlite_commits){0};
                sqlite->iterations++;
                hf__mailbox_delay_wakes();
                bool served = serve_commits_locked(sqlite, &commits);
                pthread_mutex_unlock(&sqlite->mu);
                hf__mailbox_wake_delayed();
                hfd_sqlite_commits_deinit(&commits);
                bool committed = has_new_commits(sqlite, &looks, served);
                pthread_mutex_lock(&sqlite->mu);
                hf__mailbox_delay_wakes();
                bool more = serve_all_locked(sqlite, committed);
                pthread_mutex_unlock(&sqlite->mu);
                hf__mailbox_wake_delayed();
                pthread_mutex_lock(&sqlite->mu);
                hf_nsec deadline = hfd_sqlite_expire_locked(sqlite);

                if (more)
                        continue;
                if (sqlite->drained && !sqlite->watches)
                        break;
                pthread_mutex_unlock(&sqlite->mu);
                sleep_until(sqlite, inotify_fd, looks.due < deadline ? looks.due : deadline);
                pthread_mutex_lock(&sqlite->mu);
        }
        pthread_mutex_unlock(&sqlite->mu);
        if (inotify_fd >= 0)
                close(inotify_fd);
        return NULL;
}
