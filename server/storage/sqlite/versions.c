/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes versions of keys. The log is the list of all writes in the order of their
 * revisions; it is not SQLite's WAL. A sweep removes compacted versions, a few rows at a time.
 *
 * Invariants:
 *  - the row of the newest revision is never removed, so the revision never goes back: a sweep
 *    removes deletions only below the compacted revision, which is not above the newest;
 *  - a key that exists has a row, and its newest row is the current version;
 *  - the log returns whole revisions.
 */
#include "server/storage/sqlite/versions.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/storage/keys.h"

#define FIRST_REVISION 1 /* of a store that was never written to, as in etcd */
/* A reading of the log stops after values of this size, so that a watch that is far behind
 * takes little memory. The watcher reads on where it has stopped. */
#define LOG_BYTES   (4 * 1024 * 1024)
#define VISITED_MAX 8 /* versions of a key that a list steps over before it searches */

/* The ids of a revision's rows: see database.h. */
static int64_t first_id(uint64_t revision) { return (int64_t)(revision * HFD_TXN_MAX); }
static int64_t last_id(uint64_t revision) { return first_id(revision) + HFD_TXN_MAX - 1; }
static uint64_t revision_of(int64_t id) { return (uint64_t)id / HFD_TXN_MAX; }

void hfd_sqlite_kvs_deinit(struct hfd_sqlite_kvs *kvs) {
        for (size_t i = 0; i < kvs->n; i++) {
                free((char *)kvs->kvs[i].key);
                hf__buf_unref(kvs->kvs[i].value);
        }
        free(kvs->kvs);
        *kvs = (struct hfd_sqlite_kvs){0};
}

HF__CLEANUP_DEFINE(value_cleanup, struct hf__buf *, hf__buf_unref)

int hfd_sqlite_kvs_add(struct hfd_sqlite_kvs *kvs, char *key, struct hf__buf *value,
                       uint64_t revision, uint64_t created) {
        HF__CLEANUP(hf__free_cleanup) char *own_key = key;
        HF__CLEANUP(value_cleanup) struct hf__buf *own_value = value;

        if (kvs->n == kvs->space) {
                size_t space = kvs->space > 0 ? 2 * kvs->space : 4;
                struct hfd_kv *bigger = realloc(kvs->kvs, space * sizeof *bigger);

                if (!bigger)
                        return -ENOMEM;
                kvs->kvs = bigger;
                kvs->space = space;
        }
        if (!key)
                return -ENOMEM;
        kvs->kvs[kvs->n++] = (struct hfd_kv){.key = HF__TAKE(own_key),
                                             .value = HF__TAKE(own_value),
                                             .mod_revision = revision,
                                             .create_revision = created};
        return 0;
}

static int add_kv(struct hfd_sqlite_kvs *kvs, char *key, struct hf__buf *value, int64_t id,
                  uint64_t created) {
        return hfd_sqlite_kvs_add(kvs, key, value, revision_of(id), created);
}

/* A copy of a column's bytes. NULL: out of memory. */
static struct hf__buf *copy_column(sqlite3_stmt *statement, int column) {
        const void *data = hfd_sqlite.column_blob(statement, column);
        size_t n = (size_t)hfd_sqlite.column_bytes(statement, column);

        return hf__buf_copy(data ? data : "", data ? n : 0);
}

static int bind_key(struct hfd_sqlite_db *db, enum hfd_sqlite_statement which, const char *key,
                    sqlite3_stmt **ret_statement, struct hf_status *reterr_status) {
        *ret_statement = hfd_sqlite_db_statement(db, which);
        if (!*ret_statement ||
            hfd_sqlite.bind_text(*ret_statement, 1, key, -1, SQLITE_STATIC) != SQLITE_OK)
                return hfd_sqlite_db_fail(db, reterr_status);
        return 0;
}

int hfd_sqlite_revision(struct hfd_sqlite_db *db, uint64_t *ret_revision,
                        struct hf_status *reterr_status) {
        sqlite3_stmt *statement = hfd_sqlite_db_statement(db, HFD_SQL_NEWEST);

        if (!statement || hfd_sqlite.step(statement) != SQLITE_ROW)
                return hfd_sqlite_db_fail(db, reterr_status);
        uint64_t revision = revision_of(hfd_sqlite.column_int64(statement, 0));
        (void)hfd_sqlite.reset(statement);
        *ret_revision = revision > FIRST_REVISION ? revision : FIRST_REVISION;
        return 0;
}

/* ---- reading ---- */

int hfd_sqlite_get(struct hfd_sqlite_db *db, const char *key, struct hfd_sqlite_kvs *kvs,
                   struct hf_status *reterr_status) {
        sqlite3_stmt *statement;
        int r = bind_key(db, HFD_SQL_CURRENT, key, &statement, reterr_status);

        if (r != 0)
                return r;
        int step = hfd_sqlite.step(statement);
        if (step == SQLITE_ROW && hfd_sqlite.column_type(statement, 2) != SQLITE_NULL) {
                struct hf__buf *value = copy_column(statement, 2);

                r = value ? add_kv(kvs, strdup(key), value, hfd_sqlite.column_int64(statement, 0),
                                   (uint64_t)hfd_sqlite.column_int64(statement, 1))
                          : -ENOMEM;
        } else if (step != SQLITE_ROW && step != SQLITE_DONE) {
                r = hfd_sqlite_db_fail(db, reterr_status);
        }
        (void)hfd_sqlite.reset(statement);
        return r;
}

/* Adds the version with this id, unless it is a deletion. */
static int add_version(struct hfd_sqlite_db *db, const char *key, int64_t id, bool keys_only,
                       struct hfd_sqlite_kvs *kvs, struct hf_status *reterr_status) {
        sqlite3_stmt *row =
                hfd_sqlite_db_statement(db, keys_only ? HFD_SQL_ROW_CREATED : HFD_SQL_ROW);
        struct hf__buf *value = NULL;
        int r = 0;

        if (!row || hfd_sqlite.bind_int64(row, 1, id) != SQLITE_OK ||
            hfd_sqlite.step(row) != SQLITE_ROW)
                return hfd_sqlite_db_fail(db, reterr_status);
        bool deleted = keys_only ? hfd_sqlite.column_int(row, 1) != 0
                                 : hfd_sqlite.column_type(row, 1) == SQLITE_NULL;
        if (!deleted && !keys_only) {
                value = copy_column(row, 1);
                r = value ? 0 : -ENOMEM;
        }
        if (!deleted && r == 0)
                r = add_kv(kvs, strdup(key), value, id, (uint64_t)hfd_sqlite.column_int64(row, 0));
        (void)hfd_sqlite.reset(row);
        return r;
}

/* The last version of a key that is not newer than an id; 0 = it has none. */
static int last_version(struct hfd_sqlite_db *db, const char *key, int64_t newest, int64_t *ret_id,
                        struct hf_status *reterr_status) {
        sqlite3_stmt *last;
        int r = bind_key(db, HFD_SQL_LAST_ID, key, &last, reterr_status);

        if (r != 0)
                return r;
        (void)hfd_sqlite.bind_int64(last, 2, newest);
        int step = hfd_sqlite.step(last);
        *ret_id = step == SQLITE_ROW ? hfd_sqlite.column_int64(last, 0) : 0;
        if (step != SQLITE_ROW && step != SQLITE_DONE)
                r = hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.reset(last);
        return r;
}

/* Removes the key that was added beyond the limit. True: there was one. */
static bool cut_to_limit(struct hfd_sqlite_kvs *kvs, size_t limit) {
        if (limit == 0 || kvs->n <= limit)
                return false;
        assert(kvs->n > 0);
        kvs->n--;
        free((char *)kvs->kvs[kvs->n].key);
        hf__buf_unref(kvs->kvs[kvs->n].value);
        return true;
}

/*
 * The state of a list, which walks the index. The index is sorted by key and then by id. Of each
 * key the list returns the last version that is not newer than the revision of the list, unless
 * that version is a deletion.
 */
struct walk {
        int64_t newest;     /* ids above it are newer than the revision */
        sqlite3_stmt *rows; /* HFD_SQL_KEYS, or HFD_SQL_KEYS_AFTER after a key with many versions */
        char key[HFD_KEY_MAX];
        int64_t id;       /* the last version of `key` that is old enough; 0 = none yet */
        size_t n_visited; /* rows of `key` */
};

/*
 * After VISITED_MAX versions of a key: finds the version to return by a search, and continues at
 * the next key by another. So a key costs at most VISITED_MAX rows and two searches.
 */
static int skip_versions(struct hfd_sqlite_db *db, struct walk *walk,
                         struct hf_status *reterr_status) {
        int r = last_version(db, walk->key, walk->newest, &walk->id, reterr_status);

        if (r != 0)
                return r;
        (void)hfd_sqlite.reset(walk->rows);
        walk->rows = hfd_sqlite_db_statement(db, HFD_SQL_KEYS_AFTER);
        /* SQLite copies the key, because the walk overwrites walk->key. */
        if (!walk->rows ||
            hfd_sqlite.bind_text(walk->rows, 1, walk->key, -1, SQLITE_TRANSIENT) != SQLITE_OK)
                r = hfd_sqlite_db_fail(db, reterr_status);
        return r;
}

static int visit_row(struct hfd_sqlite_db *db, struct walk *walk, const char *key,
                     struct hf_status *reterr_status) {
        int64_t id = hfd_sqlite.column_int64(walk->rows, 1);

        if (strcmp(key, walk->key) != 0) {
                walk->n_visited = 0;
                (void)snprintf(walk->key, sizeof walk->key, "%s", key);
        }
        if (id <= walk->newest)
                walk->id = id;
        return ++walk->n_visited < VISITED_MAX ? 0 : skip_versions(db, walk, reterr_status);
}

int hfd_sqlite_list(struct hfd_sqlite_db *db, const struct hfd_sqlite_range *range,
                    struct hfd_sqlite_kvs *kvs, bool *ret_more, struct hf_status *reterr_status) {
        struct walk walk = {.newest = last_id(range->revision)};
        size_t n_prefix = strlen(range->prefix);
        int r = bind_key(db, HFD_SQL_KEYS, range->start, &walk.rows, reterr_status);

        while (r == 0 && range->go_on(range->ctx)) {
                int step = hfd_sqlite.step(walk.rows);
                const char *key = step == SQLITE_ROW
                                          ? (const char *)hfd_sqlite.column_text(walk.rows, 0)
                                          : NULL;
                bool in_range = key && strncmp(key, range->prefix, n_prefix) == 0;

                if (step != SQLITE_ROW && step != SQLITE_DONE)
                        r = hfd_sqlite_db_fail(db, reterr_status);
                if (r == 0 && walk.id != 0 && (!in_range || strcmp(key, walk.key) != 0)) {
                        r = add_version(db, walk.key, walk.id, range->keys_only, kvs,
                                        reterr_status);
                        walk.id = 0;
                }
                /* One key more than the limit shows that more follow. */
                if (r != 0 || !in_range || (range->limit > 0 && kvs->n > range->limit))
                        break;
                r = visit_row(db, &walk, key, reterr_status);
        }
        if (walk.rows)
                (void)hfd_sqlite.reset(walk.rows);
        *ret_more = r == 0 && cut_to_limit(kvs, range->limit);
        return r;
}

/* ---- writing ---- */

static int read_current(struct hfd_sqlite_db *db, const char *key,
                        struct hfd_sqlite_current *ret_current, struct hf_status *reterr_status) {
        struct hfd_head head;
        sqlite3_stmt *statement;

        *ret_current = (struct hfd_sqlite_current){.key = key};
        if (hfd_heads_find(&db->heads, key, &head)) {
                ret_current->id = head.id;
                ret_current->created = head.created;
                ret_current->exists = true;
                return 0;
        }
        int r = bind_key(db, HFD_SQL_CURRENT_ID, key, &statement, reterr_status);
        if (r != 0)
                return r;
        int step = hfd_sqlite.step(statement);
        if (step == SQLITE_ROW)
                *ret_current =
                        (struct hfd_sqlite_current){.key = key,
                                                    .id = hfd_sqlite.column_int64(statement, 0),
                                                    .created = (uint64_t)hfd_sqlite
                                                                       .column_int64(statement, 1),
                                                    .exists = hfd_sqlite.column_int(statement, 2) ==
                                                              0};
        else if (step != SQLITE_DONE)
                r = hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.reset(statement);
        return r;
}

/* Whether the value equals that of the compare or, for HFD_VALUE_BEGINS, is longer and begins with
 * it. */
static bool holds_for(const struct hfd_compare *compare, const struct hfd_sqlite_kvs *found) {
        const struct hf__buf *value = found->n > 0 ? found->kvs[0].value : NULL;

        if (!value || (compare->kind == HFD_VALUE_EQUALS ? value->n != compare->n_value
                                                         : value->n <= compare->n_value))
                return false;
        return compare->n_value == 0 || memcmp(value->data, compare->value, compare->n_value) == 0;
}

/* *ret_current: for HFD_MOD_EQUALS the newest row of the key; otherwise it stays as it is. */
static int evaluate_compare(struct hfd_sqlite_db *db, const struct hfd_compare *compare,
                            bool *ret_holds, struct hfd_sqlite_current *ret_current,
                            struct hf_status *reterr_status) {
        struct hfd_sqlite_kvs found = {0};
        int r;

        if (compare->kind == HFD_MOD_EQUALS) {
                r = read_current(db, compare->key, ret_current, reterr_status);
                *ret_holds = (ret_current->exists ? revision_of(ret_current->id) : 0) ==
                             compare->revision;
                return r;
        }
        r = hfd_sqlite_get(db, compare->key, &found, reterr_status);
        *ret_holds = holds_for(compare, &found);
        hfd_sqlite_kvs_deinit(&found);
        return r;
}

int hfd_sqlite_compare(struct hfd_sqlite_db *db, const struct hfd_txn *txn, bool *ret_holds,
                       struct hfd_sqlite_current *ret_first, struct hf_status *reterr_status) {
        struct hfd_sqlite_current further;
        int r = 0;

        *ret_holds = true;
        *ret_first = (struct hfd_sqlite_current){0};
        for (size_t i = 0; i < txn->n_compares && *ret_holds && r == 0; i++)
                r = evaluate_compare(db, &txn->compares[i], ret_holds,
                                     i == 0 ? ret_first : &further, reterr_status);
        return r;
}

/* Notes a write for the watcher. If memory runs out, the notes are given up: the watcher then reads
 * the file instead. */
static void note_written(struct hfd_sqlite_db *db, int64_t id, uint64_t created,
                         const struct hfd_op *op) {
        bool put = op->kind == HFD_PUT;

        if (db->written && add_kv(db->written, strdup(op->key), put ? hf__buf_ref(op->value) : NULL,
                                  id, put ? created : 0) != 0)
                db->written = NULL;
}

/* A put keeps the create revision of the version before it. After a deletion the key is a new one,
 * as in etcd, and so is its create revision. */
static int insert_version(struct hfd_sqlite_db *db, int64_t id,
                          const struct hfd_sqlite_current *current, const struct hfd_op *op,
                          struct hf_status *reterr_status) {
        sqlite3_stmt *statement = hfd_sqlite_db_statement(db, HFD_SQL_INSERT);
        bool put = op->kind == HFD_PUT;
        uint64_t created = put && current->exists ? current->created : revision_of(id);

        if (!statement)
                return hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.bind_int64(statement, 1, id);
        (void)hfd_sqlite.bind_int64(statement, 2, current->id);
        (void)hfd_sqlite.bind_int64(statement, 3, (sqlite3_int64)created);
        (void)hfd_sqlite.bind_text(statement, 4, op->key, -1, SQLITE_STATIC);
        if (put)
                (void)hfd_sqlite.bind_blob64(statement, 5, op->value->data, op->value->n,
                                             SQLITE_STATIC);
        else
                (void)hfd_sqlite.bind_null(statement, 5);
        int r = hfd_sqlite_db_finish(db, statement, reterr_status);
        if (r != 0)
                return r;
        hfd_heads_set(&db->heads, op->key, put ? &(struct hfd_head){id, created} : NULL);
        note_written(db, id, created, op);
        return 0;
}

int hfd_sqlite_write(struct hfd_sqlite_db *db, const struct hfd_txn *txn,
                     const struct hfd_sqlite_current *first, uint64_t *revision,
                     struct hf_status *reterr_status) {
        int64_t id = first_id(*revision + 1);

        for (size_t i = 0; i < txn->n_ops; i++) {
                struct hfd_sqlite_current current = *first;
                int r = 0;

                /* What the compare has read is true for the first op only. If two ops delete the
                 * same key, the key does not exist any more for the second one. */
                if (i > 0 || !first->key || strcmp(first->key, txn->ops[i].key) != 0)
                        r = read_current(db, txn->ops[i].key, &current, reterr_status);
                if (r == 0 && (txn->ops[i].kind == HFD_PUT || current.exists))
                        r = insert_version(db, id++, &current, &txn->ops[i], reterr_status);
                if (r != 0)
                        return r;
        }
        if (id != first_id(*revision + 1))
                ++*revision;
        return 0;
}

/* ---- the log ---- */

/* Adds one row of HFD_SQL_LOG. */
static int add_logged(sqlite3_stmt *log, struct hfd_sqlite_kvs *kvs) {
        const char *key = (const char *)hfd_sqlite.column_text(log, 2);
        struct hf__buf *value = NULL;

        if (hfd_sqlite.column_type(log, 3) != SQLITE_NULL) {
                value = copy_column(log, 3);
                if (!value)
                        return -ENOMEM;
        }
        return add_kv(kvs, key ? strdup(key) : NULL, value, hfd_sqlite.column_int64(log, 0),
                      value ? (uint64_t)hfd_sqlite.column_int64(log, 1) : 0);
}

int hfd_sqlite_log(struct hfd_sqlite_db *db, uint64_t *position, size_t max,
                   struct hfd_sqlite_kvs *kvs, bool *ret_more, struct hf_status *reterr_status) {
        sqlite3_stmt *log = hfd_sqlite_db_statement(db, HFD_SQL_LOG);
        uint64_t reached = *position;
        size_t n_bytes = 0;
        int step = SQLITE_DONE, r = 0;

        if (!log)
                return hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.bind_int64(log, 1, first_id(*position));
        /* Room for the rest of a revision, and for a row of the next one, which ends the loop. */
        (void)hfd_sqlite.bind_int64(log, 2, (sqlite3_int64)(max + HFD_TXN_MAX));
        while (r == 0 && (step = hfd_sqlite.step(log)) == SQLITE_ROW) {
                uint64_t revision = revision_of(hfd_sqlite.column_int64(log, 0));

                if ((kvs->n >= max || n_bytes >= LOG_BYTES) && revision >= reached)
                        break;
                reached = revision + 1;
                n_bytes += (size_t)hfd_sqlite.column_bytes(log, 3);
                r = add_logged(log, kvs);
        }
        if (r == 0 && step != SQLITE_ROW && step != SQLITE_DONE)
                r = hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.reset(log);
        if (r == 0)
                *position = reached;
        *ret_more = r == 0 && step == SQLITE_ROW;
        return r;
}

/* ---- compaction ---- */

struct swept_row {
        int64_t id, previous;
        bool is_deletion;
};

#define SWEEP_MAX 256 /* rows; the array is on the stack */

/* Reads the rows before any of them is deleted: what a statement returns is undefined once another
 * one has deleted rows of the same table. */
static int read_swept(struct hfd_sqlite_db *db, int64_t after, int64_t to, size_t max,
                      struct swept_row *rows, size_t *ret_n, struct hf_status *reterr_status) {
        sqlite3_stmt *sweep = hfd_sqlite_db_statement(db, HFD_SQL_SWEEP);
        int step = SQLITE_DONE;

        *ret_n = 0;
        if (!sweep)
                return hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.bind_int64(sweep, 1, after);
        (void)hfd_sqlite.bind_int64(sweep, 2, to);
        (void)hfd_sqlite.bind_int64(sweep, 3, (sqlite3_int64)max);
        while (*ret_n < max && (step = hfd_sqlite.step(sweep)) == SQLITE_ROW)
                rows[(*ret_n)++] = (struct swept_row){hfd_sqlite.column_int64(sweep, 0),
                                                      hfd_sqlite.column_int64(sweep, 1),
                                                      hfd_sqlite.column_int(sweep, 2) != 0};
        int r = step == SQLITE_ROW || step == SQLITE_DONE ? 0
                                                          : hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.reset(sweep);
        return r;
}

static int delete_row(struct hfd_sqlite_db *db, int64_t id, struct hf_status *reterr_status) {
        sqlite3_stmt *statement = hfd_sqlite_db_statement(db, HFD_SQL_DELETE);

        if (!statement || hfd_sqlite.bind_int64(statement, 1, id) != SQLITE_OK)
                return hfd_sqlite_db_fail(db, reterr_status);
        return hfd_sqlite_db_finish(db, statement, reterr_status);
}

int hfd_sqlite_sweep(struct hfd_sqlite_db *db, size_t max, bool *ret_done,
                     struct hf_status *reterr_status) {
        struct swept_row rows[SWEEP_MAX];
        uint64_t compacted = 0, swept = 0;
        size_t n = 0;

        assert(max > 0 && max <= SWEEP_MAX);
        int r = hfd_sqlite_db_meta(db, "compacted", &compacted, reterr_status);
        if (r == 0)
                r = hfd_sqlite_db_meta(db, "swept", &swept, reterr_status);
        if (r == 0 && compacted == 0) {
                *ret_done = true;
                return 0;
        }
        if (r == 0)
                r = read_swept(db, (int64_t)swept, last_id(compacted), max, rows, &n,
                               reterr_status);
        for (size_t i = 0; i < n && r == 0; i++) {
                /* A read at the compacted revision or later finds this row, or a newer one. */
                if (rows[i].previous != 0)
                        r = delete_row(db, rows[i].previous, reterr_status);
                /* A watch from the compacted revision itself still sees its deletions. */
                if (r == 0 && rows[i].is_deletion && revision_of(rows[i].id) < compacted)
                        r = delete_row(db, rows[i].id, reterr_status);
        }
        if (r != 0)
                return r;
        *ret_done = n < max;
        /* The deletions of the compacted revision itself are looked at again by the next sweep. */
        int64_t reached = last_id(compacted - 1);
        if (!*ret_done && rows[n - 1].id < reached)
                reached = rows[n - 1].id;
        if (reached > (int64_t)swept)
                r = hfd_sqlite_db_set_meta(db, "swept", (uint64_t)reached, reterr_status);
        return r;
}
