/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks by its place and its header whether a file can be a store: for code that opens the file,
 * and for code that only reports what a start would find. Threads: any. Blocks for the disk.
 */
#include <stdint.h>

#include <holdfast/error.h>

#define HFD_SQLITE_APPLICATION_ID 0x48464453 /* "HFDS", in the header of the file */
#define HFD_SQLITE_SCHEMA_VERSION 1

/* HF_E_INVALID: the file is, or would be, on a network file system, or is a device, a pipe or a
 * socket. Else 0. */
int hfd_sqlite_check_place(const char *path, struct hf_status *reterr_status);
/* Checks the application id and the user version of a file that is not empty. 0, or HF_E_INVALID:
 * the file belongs to another program, or to a later version of holdfastd. */
int hfd_sqlite_check_numbers(int64_t application, int64_t version, const char *path,
                             struct hf_status *reterr_status);
/*
 * Checks whether hfd_sqlite_store_new could use the file. Reads its header, changes nothing, and
 * takes no lock. This process must not use the file itself, because the call would drop its locks.
 * 0, also if there is no file yet and one can be made; or HF_E_INVALID.
 */
int hfd_sqlite_check_header(const char *path, struct hf_status *reterr_status);
