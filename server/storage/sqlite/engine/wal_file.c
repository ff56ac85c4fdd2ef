/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the frames of a commit to the WAL together.
 *
 * SQLite's own functions read and write all files. But for the WAL, SQLite calls the functions
 * below, which collect consecutive writes and then call SQLite's own. The order of writes between
 * two syncs does not matter to SQLite: a commit counts when the sync after its last frame has
 * returned, and each frame has a checksum.
 *
 * Invariants:
 *  - kept frames are written before this connection reads, syncs, cuts or measures the WAL, so a
 *    sync covers them, and a read finds them;
 *  - kept frames belong to the transaction of this connection, which excludes all other writers.
 *    hfd_sqlite_wal_drop forgets them at the end of the transaction.
 */
#include "server/storage/sqlite/engine/wal_file.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX ((size_t)64 * 1024)

struct wal_file {
        sqlite3_file base;  /* first member */
        sqlite3_file *file; /* SQLite's own, which follows this struct in memory */
        char *kept;         /* owned; KEPT_MAX bytes; NULL after a sync */
        size_t n;
        sqlite3_int64 at; /* the place of the kept bytes in the WAL */
};

static sqlite3_vfs *own_vfs; /* SQLite's own; immutable after the registration */

static struct wal_file *wal_of(sqlite3_file *file) { return (struct wal_file *)file; }

/* Writes the kept frames. After an error they are lost: SQLite then rolls the commit back. */
static int flush_frames(struct wal_file *wal) {
        size_t n = wal->n;

        wal->n = 0;
        return n > 0 ? wal->file->pMethods->xWrite(wal->file, wal->kept, (int)n, wal->at)
                     : SQLITE_OK;
}

static int wal_close(sqlite3_file *file) {
        struct wal_file *wal = wal_of(file);

        assert(wal->n == 0 || wal->kept);
        free(wal->kept);
        wal->kept = NULL;
        wal->n = 0;
        return wal->file->pMethods->xClose(wal->file);
}

static int wal_read(sqlite3_file *file, void *data, int n, sqlite3_int64 at) {
        struct wal_file *wal = wal_of(file);
        int code = flush_frames(wal);

        return code == SQLITE_OK ? wal->file->pMethods->xRead(wal->file, data, n, at) : code;
}

static int wal_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at) {
        struct wal_file *wal = wal_of(file);
        int code = SQLITE_OK;

        if (wal->n > 0 && (at != wal->at + (sqlite3_int64)wal->n || wal->n + (size_t)n > KEPT_MAX))
                code = flush_frames(wal);
        if (code != SQLITE_OK)
                return code;
        if (!wal->kept)
                wal->kept = malloc(KEPT_MAX);
        if (!wal->kept || (size_t)n > KEPT_MAX)
                return wal->file->pMethods->xWrite(wal->file, data, n, at);
        if (wal->n == 0)
                wal->at = at;
        memcpy(wal->kept + wal->n, data, (size_t)n);
        wal->n += (size_t)n;
        return SQLITE_OK;
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size) {
        struct wal_file *wal = wal_of(file);
        int code = flush_frames(wal);

        return code == SQLITE_OK ? wal->file->pMethods->xTruncate(wal->file, size) : code;
}

/* The commit is written. The memory is freed, because the largest commits would leave all of it
 * resident; another block costs less than a microsecond. */
static int wal_sync(sqlite3_file *file, int flags) {
        struct wal_file *wal = wal_of(file);
        int code = flush_frames(wal);

        free(wal->kept);
        wal->kept = NULL;
        return code == SQLITE_OK ? wal->file->pMethods->xSync(wal->file, flags) : code;
}

static int wal_size(sqlite3_file *file, sqlite3_int64 *ret_size) {
        struct wal_file *wal = wal_of(file);
        int code = flush_frames(wal);

        return code == SQLITE_OK ? wal->file->pMethods->xFileSize(wal->file, ret_size) : code;
}

static int wal_lock(sqlite3_file *file, int kind) {
        return wal_of(file)->file->pMethods->xLock(wal_of(file)->file, kind);
}

static int wal_unlock(sqlite3_file *file, int kind) {
        return wal_of(file)->file->pMethods->xUnlock(wal_of(file)->file, kind);
}

static int wal_check_lock(sqlite3_file *file, int *ret_locked) {
        return wal_of(file)->file->pMethods->xCheckReservedLock(wal_of(file)->file, ret_locked);
}

static int wal_control(sqlite3_file *file, int op, void *arg) {
        return wal_of(file)->file->pMethods->xFileControl(wal_of(file)->file, op, arg);
}

static int wal_sector_size(sqlite3_file *file) {
        return wal_of(file)->file->pMethods->xSectorSize(wal_of(file)->file);
}

static int wal_characteristics(sqlite3_file *file) {
        return wal_of(file)->file->pMethods->xDeviceCharacteristics(wal_of(file)->file);
}

/* Version 1 has no methods for memory that the processes share (xShmMap): that memory belongs to
 * the file of the database, not to the WAL. */
static const sqlite3_io_methods wal_methods = {
        .iVersion = 1,
        .xClose = wal_close,
        .xRead = wal_read,
        .xWrite = wal_write,
        .xTruncate = wal_truncate,
        .xSync = wal_sync,
        .xFileSize = wal_size,
        .xLock = wal_lock,
        .xUnlock = wal_unlock,
        .xCheckReservedLock = wal_check_lock,
        .xFileControl = wal_control,
        .xSectorSize = wal_sector_size,
        .xDeviceCharacteristics = wal_characteristics,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags) {
        struct wal_file *wal = wal_of(file);

        if ((flags & SQLITE_OPEN_WAL) == 0)
                return own_vfs->xOpen(own_vfs, name, file, flags, ret_flags);
        *wal = (struct wal_file){.file = (sqlite3_file *)(wal + 1)};
        int code = own_vfs->xOpen(own_vfs, name, wal->file, flags, ret_flags);
        if (code == SQLITE_OK)
                wal->base.pMethods = &wal_methods;
        return code;
}

static int register_result = SQLITE_ERROR; /* of register_vfs */

static void register_vfs(void) {
        static sqlite3_vfs vfs;

        own_vfs = hfd_sqlite.vfs_find(NULL);
        if (!own_vfs)
                return;
        vfs = *own_vfs;
        vfs.zName = HFD_SQLITE_VFS;
        vfs.pNext = NULL;
        vfs.szOsFile += (int)sizeof(struct wal_file);
        vfs.xOpen = open_file;
        register_result = hfd_sqlite.vfs_register(&vfs, 0);
}

int hfd_sqlite_wal_register(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        (void)pthread_once(&once, register_vfs);
        return register_result;
}

void hfd_sqlite_wal_drop(sqlite3 *db, bool free_memory) {
        sqlite3_file *file = NULL;

        if (hfd_sqlite.file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK ||
            !file || file->pMethods != &wal_methods)
                return;
        wal_of(file)->n = 0;
        if (!free_memory)
                return;
        free(wal_of(file)->kept);
        wal_of(file)->kept = NULL;
}
