/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row-per-commit FILE [SECONDS]: updates per second in a new file of SQLite, with the table and the
 * statements that a known bridge from the etcd API to SQL uses (kine): one table with a row for
 * each version, which contains the value before as well; a query that joins each key with its
 * newest row; one insertion, which is a commit, for each update; WAL and synchronous=FULL. 64 keys
 * of 400 bytes, 64 threads. Each thread has a connection, and they take turns to insert by a mutex,
 * which is kinder than SQLite's own waiting.
 *
 * It is a measure for tests/bench/stores.py, and is not installed.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "time_units.h"

#define N_LANES 64
#define N_VALUE 400

static const char schema[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE kine(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, created "
        "INTEGER, deleted INTEGER, create_revision INTEGER NOT NULL, prev_revision INTEGER, lease "
        "INTEGER, value BLOB, old_value BLOB);"
        "CREATE INDEX by_name ON kine(name);"
        "CREATE INDEX by_name_id ON kine(name, id);"
        "CREATE INDEX by_id_deleted ON kine(id, deleted);"
        "CREATE INDEX by_prev_revision ON kine(prev_revision);"
        "CREATE UNIQUE INDEX by_name_prev_revision ON kine(name, prev_revision);";
static const char newest[] =
        "SELECT (SELECT max(id) FROM kine), "
        "(SELECT max(prev_revision) FROM kine WHERE name = 'compact_rev_key'), "
        "row.id, row.create_revision, row.value FROM kine AS row JOIN "
        "(SELECT max(id) AS id FROM kine WHERE name LIKE ?1 GROUP BY name) AS last "
        "ON last.id = row.id WHERE row.deleted = 0 ORDER BY row.id LIMIT 1";
static const char insertion[] =
        "INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease, value, "
        "old_value) VALUES(?1, ?2, 0, ?3, ?4, 0, ?5, ?6)";

static const char *path;
static hf_nsec until;
static atomic_long n_done;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static void require(bool holds, sqlite3 *db) {
        if (holds)
                return;
        fprintf(stderr, "row-per-commit: %s\n", db ? sqlite3_errmsg(db) : "cannot start");
        exit(1);
}

static sqlite3 *open_file(void) {
        sqlite3 *db;

        require(sqlite3_open(path, &db) == SQLITE_OK, db);
        (void)sqlite3_busy_timeout(db, 30000);
        require(sqlite3_exec(db, "PRAGMA synchronous=FULL", NULL, NULL, NULL) == SQLITE_OK, db);
        return db;
}

static void update(sqlite3 *db, sqlite3_stmt *read, sqlite3_stmt *insert, const char *name) {
        char old[N_VALUE];
        sqlite3_int64 id = 0, created = 0;

        (void)sqlite3_reset(read);
        (void)sqlite3_bind_text(read, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(read) == SQLITE_ROW) {
                id = sqlite3_column_int64(read, 2);
                created = sqlite3_column_int64(read, 3);
                memcpy(old, sqlite3_column_blob(read, 4), N_VALUE);
        }
        (void)sqlite3_reset(read);
        (void)sqlite3_reset(insert);
        (void)sqlite3_bind_text(insert, 1, name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int(insert, 2, id == 0);
        (void)sqlite3_bind_int64(insert, 3, created);
        (void)sqlite3_bind_int64(insert, 4, id);
        (void)sqlite3_bind_blob(insert, 5, old, N_VALUE, SQLITE_STATIC);
        (void)sqlite3_bind_blob(insert, 6, old, id ? N_VALUE : 0, SQLITE_STATIC);
        pthread_mutex_lock(&mu);
        require(sqlite3_step(insert) == SQLITE_DONE, db);
        (void)sqlite3_reset(insert);
        pthread_mutex_unlock(&mu);
}

static void *lane_main(void *ctx) {
        sqlite3 *db = open_file();
        sqlite3_stmt *read, *insert;

        require(sqlite3_prepare_v2(db, newest, -1, &read, NULL) == SQLITE_OK, db);
        require(sqlite3_prepare_v2(db, insertion, -1, &insert, NULL) == SQLITE_OK, db);
        while (hf_now(hf_clock_system()) < until) {
                update(db, read, insert, ctx);
                atomic_fetch_add(&n_done, 1);
        }
        (void)sqlite3_finalize(read);
        (void)sqlite3_finalize(insert);
        (void)sqlite3_close(db);
        return NULL;
}

int main(int argc, char **argv) {
        double seconds = argc > 2 ? atof(argv[2]) : 2;
        char names[N_LANES][32];
        pthread_t lanes[N_LANES];

        if (argc < 2) {
                fprintf(stderr, "usage: row-per-commit FILE [SECONDS]\n");
                return 2;
        }
        path = argv[1];
        sqlite3 *db = open_file();
        require(sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK, db);
        hf_nsec start = hf_now(hf_clock_system());
        until = start + (hf_nsec)(seconds * 1e9);
        for (int i = 0; i < N_LANES; i++) {
                (void)snprintf(names[i], sizeof names[i], "/registry/leases/default/%d", i);
                require(pthread_create(&lanes[i], NULL, lane_main, names[i]) == 0, NULL);
        }
        for (int i = 0; i < N_LANES; i++)
                (void)pthread_join(lanes[i], NULL);
        printf("%.0f\n", (double)n_done * 1e9 / (double)(hf_now(hf_clock_system()) - start));
        (void)sqlite3_close(db);
        return 0;
}
