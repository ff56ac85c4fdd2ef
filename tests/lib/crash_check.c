/* SPDX-License-Identifier: Apache-2.0 */
/* See crash_check.h. The writes are put in the order of their revisions, and then repeated in
 * memory, to compare the result with the store. */
#undef NDEBUG
#include "crash_check.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "server/storage/sqlite/store.h"
#include "store_client.h"
#include "time_units.h"
#include "watch_recorder.h"

enum { KEYS_MAX = 128, FIRST_WRITTEN = 2, NONE = -1 };

/* A key as the writes have left it. */
struct key {
        char name[CRASH_PLAN_KEY];
        bool exists;
        uint64_t created, modified;
        size_t write, op;
        size_t n_value;
};

struct check {
        const struct crash_run *run;
        struct hfd_store *store;
        char *problem;
        size_t max_problem;
        uint64_t newest, watched_from;
        long *writes; /* the write of each revision up to the newest; NONE = not known */
        struct key keys[KEYS_MAX];
        size_t n_keys;
};

static const struct hf_host host = {.size = sizeof(struct hf_host)};

__attribute__((format(printf, 2, 3))) static bool wrong(struct check *check, const char *format,
                                                        ...) {
        va_list list;

        va_start(list, format);
        (void)vsnprintf(check->problem, check->max_problem, format, list);
        va_end(list);
        return false;
}

/* ---- the file ---- */

static bool check_integrity(struct check *check, const char *path) {
        sqlite3_stmt *statement = NULL;
        sqlite3 *db = NULL;
        const char *text = "no answer";

        if (sqlite3_open(path, &db) == SQLITE_OK &&
            sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL) == SQLITE_OK &&
            sqlite3_step(statement) == SQLITE_ROW)
                text = (const char *)sqlite3_column_text(statement, 0);
        bool ok = strcmp(text, "ok") == 0;
        if (!ok)
                (void)wrong(check, "the file is damaged: %s", text);
        (void)sqlite3_finalize(statement);
        (void)sqlite3_close(db);
        return ok;
}

/* ---- which write has which revision ---- */

static bool set_write(struct check *check, uint64_t revision, size_t index, const char *source) {
        if (revision < FIRST_WRITTEN || revision > check->newest)
                return wrong(check, "%s: write %zu has revision %llu, but the store has %llu",
                             source, index, (unsigned long long)revision,
                             (unsigned long long)check->newest);
        long *place = &check->writes[revision];
        if (*place != NONE && *place != (long)index)
                return wrong(check, "%s: revision %llu is write %zu, but it was write %ld", source,
                             (unsigned long long)revision, index, *place);
        *place = (long)index;
        return true;
}

static bool is_compaction(const struct check *check, size_t index) {
        struct crash_plan_write write;

        return crash_plan_write(check->run->plan, index, &write) && write.n_ops == 0;
}

/* Adds the writes of compacted revisions, which no watch delivers, by the records. Checks that
 * every other write that was acknowledged or delivered is in the store. */
static bool add_records(struct check *check) {
        for (size_t i = 0; i < check->run->n_records; i++) {
                const struct crash_record *it = &check->run->records[i];
                const char *source = it->kind == CRASH_ACKED ? "acknowledged" : "delivered";

                if ((it->kind != CRASH_ACKED && it->kind != CRASH_SEEN) ||
                    is_compaction(check, it->index))
                        continue;
                if (it->revision >= check->watched_from && it->revision <= check->newest &&
                    check->writes[it->revision] == NONE)
                        return wrong(check, "%s: write %llu is lost", source,
                                     (unsigned long long)it->index);
                if (!set_write(check, it->revision, it->index, source))
                        return false;
        }
        return true;
}

/* Waits until the watch has delivered the newest revision, or has ended. */
static void await_newest(struct watch_recorder *recorder, uint64_t newest) {
        hf_nsec until = in_msec(PATIENCE_MSEC);
        int r = 0;

        pthread_mutex_lock(&recorder->mu);
        while (!recorder->ended &&
               (recorder->n == 0 || recorder->events[recorder->n - 1].revision < newest)) {
                assert(r == 0); /* it did not wait too long */
                r = hf_clock_system()->wait(NULL, &recorder->cond, &recorder->mu, until);
        }
        pthread_mutex_unlock(&recorder->mu);
}

static bool is_value(const struct hf__buf *value, size_t index, size_t op, size_t n) {
        struct hf__buf *expected = crash_plan_value(index, op, n);

        assert(expected);
        bool same = value && value->n == n && memcmp(value->data, expected->data, n) == 0;
        hf__buf_unref(expected);
        return same;
}

/* Checks the n events of one revision: they are those of one write, and none of them is missing. */
static bool check_events(struct check *check, const struct watch_recorder_event *events, size_t n) {
        struct crash_plan_write write;
        size_t index = SIZE_MAX;

        for (size_t i = 0; i < n && index == SIZE_MAX; i++)
                index = crash_plan_find(check->run->plan, events[i].key, events[i].value);
        if (index == SIZE_MAX)
                return wrong(check, "revision %llu is no write of the plan: %s",
                             (unsigned long long)events[0].revision, events[0].key);
        (void)crash_plan_write(check->run->plan, index, &write);
        if (n != write.n_ops)
                return wrong(check, "write %zu is there in part: %zu of %zu keys", index, n,
                             write.n_ops);
        for (size_t i = 0; i < n; i++) {
                const struct crash_plan_op *op = &write.ops[i];
                bool same = strcmp(events[i].key, op->key) == 0 &&
                            (op->kind == HFD_DELETE
                                     ? events[i].type == HFD_WATCH_DELETE
                                     : events[i].type == HFD_WATCH_PUT &&
                                               is_value(events[i].value, index, i, op->n_value));

                if (!same)
                        return wrong(check, "write %zu has another key or value in %s", index,
                                     op->key);
        }
        return set_write(check, events[0].revision, index, "the watch");
}

static bool check_recorded(struct check *check, const struct watch_recorder *recorder) {
        for (size_t i = 0, n; i < recorder->n; i += n) {
                for (n = 1; i + n < recorder->n &&
                            recorder->events[i + n].revision == recorder->events[i].revision;)
                        n++;
                if (i > 0 && recorder->events[i].revision <= recorder->events[i - 1].revision)
                        return wrong(check, "the watch goes back to revision %llu",
                                     (unsigned long long)recorder->events[i].revision);
                if (!check_events(check, &recorder->events[i], n))
                        return false;
        }
        return true;
}

/* Watches from this revision on, and checks the events. *ret_gone: the revision is compacted. */
static bool watch_from(struct check *check, uint64_t revision, bool *ret_gone) {
        static struct watch_recorder recorder;
        bool ok = true;

        int r = watch_recorder_start(&recorder, check->store, "/", "", revision);
        assert(r == 0);
        await_newest(&recorder, check->newest);
        *ret_gone = recorder.ended;
        check->watched_from = revision;
        if (!recorder.ended)
                ok = check_recorded(check, &recorder);
        else if (recorder.error != HF_E_GONE)
                ok = wrong(check, "the watch from revision %llu has ended with %d",
                           (unsigned long long)revision, recorder.error);
        watch_recorder_stop(&recorder);
        return ok;
}

/*
 * Finds the compacted revision: the first one, or that of a compaction that was begun. The writes
 * before it are known from their acknowledgements, because a compaction begins only when all
 * earlier writes have ended.
 */
static bool watch_history(struct check *check) {
        uint64_t compacted = 0; /* by a compaction that was acknowledged */
        bool gone;

        check->watched_from = FIRST_WRITTEN;
        if (check->newest < FIRST_WRITTEN)
                return true;
        if (!watch_from(check, FIRST_WRITTEN, &gone))
                return false;
        for (size_t i = 0; i < check->run->n_records; i++) {
                const struct crash_record *it = &check->run->records[i];

                if (it->kind == CRASH_COMPACTING && gone && !watch_from(check, it->revision, &gone))
                        return false;
                if (it->kind == CRASH_ACKED && is_compaction(check, it->index))
                        compacted = it->revision;
        }
        if (gone)
                return wrong(check, "the store is compacted, and nobody asked for it");
        if (check->watched_from < compacted)
                return wrong(check, "the compaction at revision %llu is lost",
                             (unsigned long long)compacted);
        return true;
}

/* ---- the order, and the result ---- */

static struct key *key_of(struct check *check, const char *name) {
        for (size_t i = 0; i < check->n_keys; i++)
                if (strcmp(check->keys[i].name, name) == 0)
                        return &check->keys[i];
        assert(check->n_keys < KEYS_MAX);
        struct key *key = &check->keys[check->n_keys++];
        *key = (struct key){0};
        (void)strcpy(key->name, name);
        return key;
}

static void redo(struct check *check, uint64_t revision, const struct crash_plan_write *write) {
        for (size_t i = 0; i < write->n_ops; i++) {
                struct key *key = key_of(check, write->ops[i].key);

                if (write->ops[i].kind == HFD_PUT && !key->exists)
                        key->created = revision;
                key->exists = write->ops[i].kind == HFD_PUT;
                key->modified = revision;
                key->write = (size_t)check->writes[revision];
                key->op = i;
                key->n_value = write->ops[i].n_value;
        }
}

/* Lists all keys as they were at the revision, and compares them with what was done again. */
static bool check_list(struct check *check, uint64_t revision) {
        struct store_reply reply;
        size_t n_expected = 0;
        bool ok = true;

        for (size_t i = 0; i < check->n_keys; i++)
                n_expected += check->keys[i].exists;
        int r = store_client_list(check->store, "/", NULL, revision, 0, false, &reply);
        if (r != 0)
                ok = wrong(check, "the list at revision %llu fails: %s",
                           (unsigned long long)revision, reply.status.message);
        else if (reply.n_kvs != n_expected)
                ok = wrong(check, "the list at revision %llu has %zu keys instead of %zu",
                           (unsigned long long)revision, reply.n_kvs, n_expected);
        for (size_t i = 0; i < reply.n_kvs && ok; i++) {
                const struct store_reply_kv *kv = &reply.kvs[i];
                const struct key *key = key_of(check, kv->key);

                if (!key->exists || kv->mod_revision != key->modified ||
                    kv->create_revision != key->created ||
                    !is_value(kv->value, key->write, key->op, key->n_value))
                        ok = wrong(check, "%s at revision %llu is not what was written last",
                                   kv->key, (unsigned long long)revision);
        }
        store_reply_deinit(&reply);
        return ok;
}

/* Does the writes again, in memory. Checks that each is in the store at most once, and not at all
 * if its error said so. */
static bool check_writes(struct check *check) {
        struct crash_plan_write write;
        size_t phase = 0;

        for (uint64_t revision = FIRST_WRITTEN; revision <= check->newest; revision++) {
                long index = check->writes[revision];

                if (index == NONE)
                        return wrong(check, "nothing is known of revision %llu",
                                     (unsigned long long)revision);
                (void)crash_plan_write(check->run->plan, (size_t)index, &write);
                if (write.phase < phase)
                        return wrong(check, "write %ld comes after a later phase", index);
                phase = write.phase;
                for (uint64_t other = revision + 1; other <= check->newest; other++)
                        if (check->writes[other] == index)
                                return wrong(check, "write %ld is there twice", index);
                for (size_t i = 0; i < check->run->n_records; i++)
                        if (check->run->records[i].kind == CRASH_FAILED &&
                            check->run->records[i].error == HF_E_UNAVAILABLE &&
                            check->run->records[i].index == (uint64_t)index)
                                return wrong(check, "write %ld is there, although it failed",
                                             index);
                redo(check, revision, &write);
                if (revision == check->watched_from && revision > FIRST_WRITTEN &&
                    !check_list(check, revision))
                        return false;
        }
        return check_list(check, 0);
}

static bool check_store(struct check *check, const char *path) {
        check->newest = store_client_revision(check->store);
        if (check->newest == 0)
                return wrong(check, "the store's revision cannot be read");
        check->writes = calloc(check->newest + 1, sizeof *check->writes);
        assert(check->writes);
        for (uint64_t i = 0; i <= check->newest; i++)
                check->writes[i] = NONE;
        if (!check_integrity(check, path) || !watch_history(check) || !add_records(check) ||
            !check_writes(check))
                return false;
        uint64_t next = store_client_put(check->store, "/after", "x");
        if (next != check->newest + 1)
                return wrong(check, "the next write has revision %llu after %llu",
                             (unsigned long long)next, (unsigned long long)check->newest);
        return true;
}

struct hfd_store *crash_check_open(const char *path, char *problem, size_t max_problem) {
        struct hfd_store *store = NULL;
        struct hf_status status = {0};

        if (hfd_sqlite_store_new(&host, path, true, &store, &status) != 0)
                (void)snprintf(problem, max_problem, "the store does not open: %s", status.message);
        return store;
}

bool crash_check(struct hfd_store *store, const char *path, const struct crash_run *run,
                 char *problem, size_t max_problem) {
        struct check check = {.run = run,
                              .store = store,
                              .problem = problem,
                              .max_problem = max_problem};

        bool ok = check_store(&check, path);
        store->ops->free(store);
        free(check.writes);
        return ok;
}
