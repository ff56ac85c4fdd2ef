/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Simulates what a disk has kept of some files after a power loss. For each file it knows the bytes
 * that were written since the last fsync of that file, and the bytes that they replaced. It also
 * knows the names that were created or removed since the last fsync of the directory.
 * crash_disk_lose undoes all or a part of these changes.
 *
 * A disk may keep any part of the changes that were not synced, in any order: sectors of 512 bytes,
 * whole pages, the new or the old size of a file. Only the changes of the directory are kept in
 * their order.
 *
 * Thread: any, under one lock of the caller.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CRASH_DISK_FILES = 64 };

/* A file was opened for reading and writing. created: the name is new. Returns its number. */
unsigned crash_disk_opened(int fd, const char *path, int created);
/* Call these before n bytes are written at this place of the file, and before the file gets this
 * size. */
void crash_disk_writing(unsigned file, off_t at, size_t n);
void crash_disk_truncating(unsigned file, off_t size);
/* Call it before the name is removed. */
void crash_disk_unlinking(const char *path);
/* The file, or the directory, was synced. */
void crash_disk_synced(unsigned file);
void crash_disk_directory_synced(void);
/* Undoes changes that were not synced. seed 0: all of them. Otherwise a part that the seed selects,
 * by whole pages if the seed is even, by sectors if it is odd. */
void crash_disk_lose(uint64_t seed);
