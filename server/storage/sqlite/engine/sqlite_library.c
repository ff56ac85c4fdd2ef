/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads SQLite.
 *
 * Invariant: the functions have the types that SQLite's header declares; the compiler checks it in
 * the table.
 */
#include "server/storage/sqlite/engine/sqlite_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include <holdfast/error.h>

struct hfd_sqlite_library hfd_sqlite;

/* sizeof evaluates nothing, so no function of SQLite is linked, but the compiler compares the types
 * of the assignment. */
#define FUNCTION(name)                                                                             \
        { "sqlite3_" #name, (void **)&hfd_sqlite.name, sizeof(hfd_sqlite.name = sqlite3_##name) }

/* Addresses are stored through void pointers, as POSIX recommends for dlsym. */
static const struct {
        const char *name;
        void **place;
        size_t checked;
} functions[] = {
        FUNCTION(bind_blob),       FUNCTION(bind_blob64),  FUNCTION(bind_int64),
        FUNCTION(bind_null),       FUNCTION(bind_text),    FUNCTION(busy_timeout),
        FUNCTION(close),           FUNCTION(column_blob),  FUNCTION(column_bytes),
        FUNCTION(column_int),      FUNCTION(column_int64), FUNCTION(column_text),
        FUNCTION(column_type),     FUNCTION(config),       FUNCTION(db_config),
        FUNCTION(db_filename),     FUNCTION(db_readonly),  FUNCTION(db_release_memory),
        FUNCTION(errcode),         FUNCTION(errmsg),       FUNCTION(exec),
        FUNCTION(file_control),    FUNCTION(finalize),     FUNCTION(get_autocommit),
        FUNCTION(open_v2),         FUNCTION(prepare_v2),   FUNCTION(prepare_v3),
        FUNCTION(reset),           FUNCTION(step),         FUNCTION(system_errno),
        FUNCTION(total_changes64), FUNCTION(vfs_find),     FUNCTION(vfs_register),
};

static bool is_loaded;

/*
 * For the whole process. By default SQLite sets 20 pages aside for each connection, 350 KiB for the
 * four of a store, and counts what it allocates, with a lock around each allocation. Nothing needs
 * either. This has no effect if something else in the process has used SQLite before.
 */
static void configure_library(void) {
        (void)hfd_sqlite.config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
        (void)hfd_sqlite.config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static void load_library(void) {
        void *handle = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);

        is_loaded = handle != NULL;
        for (size_t i = 0; i < sizeof functions / sizeof functions[0] && is_loaded; i++) {
                *functions[i].place = dlsym(handle, functions[i].name);
                is_loaded = *functions[i].place != NULL;
        }
        if (is_loaded)
                configure_library();
        else if (handle)
                (void)dlclose(handle);
}

int hfd_sqlite_load(struct hf_status *reterr_status) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        (void)pthread_once(&once, load_library);
        if (is_loaded)
                return 0;
        return hf_fail(reterr_status, HF_E_INVALID,
                       "a store in a file needs libsqlite3.so.0, version 3.40 or newer, which "
                       "cannot be loaded: install the package libsqlite3-0");
}

void hfd_sqlite_keep_wal(sqlite3 *db) {
        if (db)
                (void)hfd_sqlite.db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void hfd_sqlite_keep_filled_wal(sqlite3 *db) {
        const char *path = db ? hfd_sqlite.db_filename(db, "main") : NULL;
        char wal[PATH_MAX + sizeof "-wal"];
        struct stat info;

        if (!path)
                return; /* it was not opened */
        (void)snprintf(wal, sizeof wal, "%s-wal", path);
        if (stat(wal, &info) == 0 ? info.st_size > 0 : errno != ENOENT)
                hfd_sqlite_keep_wal(db);
}

int hfd_sqlite_close(sqlite3 *db) { return db ? hfd_sqlite.close(db) : SQLITE_OK; }
