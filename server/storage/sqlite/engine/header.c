/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the place and the header of a file, without SQLite.
 *
 * Invariants: nothing is created or changed, because the file may belong to another program. Only
 * hfd_sqlite_check_header opens the file: when it is called, this process must have no connection
 * of SQLite to the file, because the close() would drop the locks of that connection, as POSIX
 * demands.
 */
#include "server/storage/sqlite/engine/header.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* On a network file system, and on a disk that hosts share, locks may not hold, and hosts do not
 * share the memory of the WAL. The numbers are those that statfs(2) returns. FUSE is not in the
 * list: containers have local files on it too. */
static const char *network_file_system(const char *path) {
        static const struct {
                long type;
                const char *name;
        } types[] = {{0x6969, "NFS"},        {0x517b, "SMB"},        {0xff534d42, "CIFS"},
                     {0xfe534d42, "SMB"},    {0x00c36400, "Ceph"},   {0x5346414f, "AFS"},
                     {0x01021997, "9P"},     {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
                     {0x19830326, "BeeGFS"}, {0x73757245, "Coda"},   {0x7461636f, "OCFS2"},
                     {0x01161970, "GFS2"},   {0x6b414653, "AFS"}};
        char copy[PATH_MAX];
        struct statfs fs;

        (void)snprintf(copy, sizeof copy, "%s", path);
        if (statfs(dirname(copy), &fs) != 0)
                return NULL;
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if ((unsigned long)fs.f_type == (unsigned long)types[i].type)
                        return types[i].name;
        return NULL;
}

int hfd_sqlite_check_place(const char *path, struct hf_status *reterr_status) {
        const char *network = network_file_system(path);
        struct stat info;

        /* For a device, a pipe or a socket SQLite would report an I/O error, as if the disk were
         * bad. Its message about a directory is clear. */
        if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s cannot be opened: it is not a regular file", path);
        if (!network)
                return 0;
        return hf_fail(reterr_status, HF_E_INVALID,
                       "%s is on a network file system (%s), where SQLite's locks do not hold: use "
                       "a local disk, or etcd",
                       path, network);
}

int hfd_sqlite_check_numbers(int64_t application, int64_t version, const char *path,
                             struct hf_status *reterr_status) {
        assert(path);
        if (application != HFD_SQLITE_APPLICATION_ID)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is a database of another program, not a store of holdfastd",
                               path);
        if (version > HFD_SQLITE_SCHEMA_VERSION)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s was written by a later version of holdfastd (schema %lld; this "
                               "one knows %d)",
                               path, (long long)version, HFD_SQLITE_SCHEMA_VERSION);
        return 0;
}

/* The file's header. SQLite's file format defines the place of each number in it; all of them are
 * big endian. */
#define HEADER_BYTES   100
#define PAGES_AT       28
#define USER_AT        60
#define APPLICATION_AT 68

static uint32_t read_u32(const unsigned char *bytes) {
        return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
               bytes[3];
}

/* Until the first tables leave the WAL, the header has no application id and counts one page. */
static int check_owner(const unsigned char header[HEADER_BYTES], const char *path,
                       struct hf_status *reterr_status) {
        uint32_t application = read_u32(header + APPLICATION_AT);
        uint32_t version = read_u32(header + USER_AT);

        if (memcmp(header, "SQLite format 3", sizeof "SQLite format 3") != 0)
                return hf_fail(reterr_status, HF_E_INVALID, "%s is not a file of SQLite", path);
        if (application == 0 && version == 0 && read_u32(header + PAGES_AT) <= 1)
                return 0;
        return hfd_sqlite_check_numbers(application, version, path, reterr_status);
}

int hfd_sqlite_check_header(const char *path, struct hf_status *reterr_status) {
        int r = hfd_sqlite_check_place(path, reterr_status);
        unsigned char header[HEADER_BYTES];
        char copy[PATH_MAX];
        struct stat info;

        if (r != 0)
                return r;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = errno;
        /* A symbolic link to nothing does not count as a missing file: create_file (database.c)
         * would not replace the link, and the server's start would fail. */
        if (fd < 0 && error == ENOENT && lstat(path, &info) != 0) {
                (void)snprintf(copy, sizeof copy, "%s", path);
                if (access(dirname(copy), W_OK | X_OK) == 0)
                        return 0;
                return hf_fail(reterr_status, HF_E_INVALID, "%s cannot be created: %s", path,
                               strerror(errno));
        }
        if (fd < 0)
                return hf_fail(reterr_status, HF_E_INVALID, "%s cannot be opened: %s", path,
                               strerror(error));
        ssize_t n = pread(fd, header, sizeof header, 0);
        (void)close(fd);
        if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
                return hf_fail(reterr_status, HF_E_INVALID, "%s cannot be written: %s", path,
                               strerror(errno));
        if (n == 0)
                return 0; /* empty: it becomes a store */
        if (n != (ssize_t)sizeof header)
                return hf_fail(reterr_status, HF_E_INVALID, "%s is not a file of SQLite", path);
        return check_owner(header, path, reterr_status);
}
