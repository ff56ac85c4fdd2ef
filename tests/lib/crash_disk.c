/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what a power loss may undo, and undoes it.
 *
 * Invariants:
 *  - a file is used through a duplicate of the descriptor that opened it first, which is never
 *    closed: closing any descriptor of a file drops the POSIX locks that SQLite has on it;
 *  - for each write since the last sync, `before` has the content that each sector had just before
 *    the write. So the k-th entry of a sector, counted from 0, is its content after k writes.
 */
#undef _FILE_OFFSET_BITS
#undef NDEBUG
#include "crash_disk.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECTOR           512
#define SECTORS_PER_PAGE 8

struct file {
        dev_t device;
        ino_t inode;
        int fd;
        off_t synced_size;
};

struct sector {
        unsigned file;
        off_t number;
        size_t order;
        unsigned char bytes[SECTOR];
};

/* A change of the directory that was not synced. */
struct change {
        char path[PATH_MAX];
        /* a second name of the removed file; "" = the name was created */
        char saved[PATH_MAX + 16];
};

static struct file files[CRASH_DISK_FILES];
static unsigned n_files;
static struct sector *before;
static size_t n_before, space_before;
static struct change changes[CRASH_DISK_FILES];
static size_t n_changes;

/* ---- recording ---- */

static off_t size_of(int fd) {
        struct stat info;
        int r = fstat(fd, &info);

        assert(r == 0);
        return info.st_size;
}

unsigned crash_disk_opened(int fd, const char *path, int created) {
        struct stat info;
        int r = fstat(fd, &info);

        assert(r == 0);
        for (unsigned i = 0; i < n_files; i++)
                if (files[i].device == info.st_dev && files[i].inode == info.st_ino)
                        return i;
        assert(n_files < CRASH_DISK_FILES);
        files[n_files] = (struct file){.device = info.st_dev,
                                       .inode = info.st_ino,
                                       .fd = fcntl(fd, F_DUPFD_CLOEXEC, 100),
                                       .synced_size = info.st_size};
        assert(files[n_files].fd >= 0);
        if (created) {
                assert(n_changes < CRASH_DISK_FILES);
                (void)snprintf(changes[n_changes].path, PATH_MAX, "%s", path);
                changes[n_changes++].saved[0] = '\0';
        }
        return n_files++;
}

void crash_disk_writing(unsigned file, off_t at, size_t n) {
        for (off_t number = at / SECTOR; number * SECTOR < at + (off_t)n; number++) {
                if (n_before == space_before) {
                        space_before = space_before > 0 ? 2 * space_before : 1024;
                        before = reallocarray(before, space_before, sizeof *before);
                        assert(before);
                }
                struct sector *sector = &before[n_before];

                *sector = (struct sector){.file = file, .number = number, .order = n_before};
                n_before++;
                (void)!pread(files[file].fd, sector->bytes, SECTOR, number * SECTOR);
        }
}

void crash_disk_truncating(unsigned file, off_t size) {
        off_t old = size_of(files[file].fd);

        if (old > size)
                crash_disk_writing(file, size, (size_t)(old - size));
}

void crash_disk_unlinking(const char *path) {
        struct change *change = &changes[n_changes];
        static unsigned number;

        assert(n_changes < CRASH_DISK_FILES);
        (void)snprintf(change->path, sizeof change->path, "%s", path);
        (void)snprintf(change->saved, sizeof change->saved, "%s.lost%u", path, number++);
        if (link(path, change->saved) == 0)
                n_changes++;
}

void crash_disk_synced(unsigned file) {
        size_t n = 0;

        files[file].synced_size = size_of(files[file].fd);
        for (size_t i = 0; i < n_before; i++)
                if (before[i].file != file)
                        before[n++] = before[i];
        n_before = n;
}

void crash_disk_directory_synced(void) {
        for (size_t i = 0; i < n_changes; i++)
                if (changes[i].saved[0])
                        (void)syscall(SYS_unlinkat, AT_FDCWD, changes[i].saved, 0);
        n_changes = 0;
}

/* ---- the power loss ---- */

/* A number that depends on all three (the finalizer of splitmix64). */
static uint64_t mix(uint64_t seed, uint64_t a, uint64_t b) {
        uint64_t x = seed * 0x9e3779b97f4a7c15u + a * 0xbf58476d1ce4e5b9u + b + 1;

        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
}

static int compare_sectors(const void *a, const void *b) {
        const struct sector *x = a, *y = b;

        if (x->file != y->file)
                return x->file < y->file ? -1 : 1;
        if (x->number != y->number)
                return x->number < y->number ? -1 : 1;
        return x->order < y->order ? -1 : 1;
}

/* How many of the n writes of a sector are kept. An even seed decides for whole pages, as
 * crash_disk_lose promises. */
static size_t n_kept(uint64_t seed, const struct sector *sector, size_t n) {
        uint64_t number = (uint64_t)sector->number;

        if (seed == 0)
                return 0;
        if (seed % 2 == 0)
                return mix(seed, sector->file, number / SECTORS_PER_PAGE) % 2 == 0 ? 0 : n;
        return mix(seed, sector->file, number) % (n + 1);
}

static void lose_bytes(uint64_t seed) {
        qsort(before, n_before, sizeof *before, compare_sectors);
        for (size_t i = 0, n; i < n_before; i += n) {
                for (n = 1; i + n < n_before && before[i + n].file == before[i].file &&
                            before[i + n].number == before[i].number;)
                        n++;
                size_t kept = n_kept(seed, &before[i], n);
                const struct sector *old = &before[i + kept];

                if (kept < n && syscall(SYS_pwrite64, files[old->file].fd, old->bytes,
                                        (size_t)SECTOR, old->number * SECTOR) != SECTOR)
                        abort();
        }
}

static void lose_sizes(uint64_t seed, const off_t *sizes) {
        for (unsigned i = 0; i < n_files; i++) {
                bool old = seed == 0 || mix(seed, i, UINT64_MAX) % 2 == 0;

                if (syscall(SYS_ftruncate, files[i].fd, old ? files[i].synced_size : sizes[i]) != 0)
                        abort();
        }
}

static void lose_names(uint64_t seed) {
        size_t kept = seed == 0 ? 0 : mix(seed, n_changes, 0) % (n_changes + 1);

        while (n_changes > kept) {
                const struct change *change = &changes[--n_changes];

                if (change->saved[0])
                        (void)rename(change->saved, change->path);
                else
                        (void)syscall(SYS_unlinkat, AT_FDCWD, change->path, 0);
        }
}

void crash_disk_lose(uint64_t seed) {
        off_t sizes[CRASH_DISK_FILES];

        for (unsigned i = 0; i < n_files; i++)
                sizes[i] = size_of(files[i].fd);
        lose_bytes(seed);
        lose_sizes(seed, sizes);
        lose_names(seed);
}
