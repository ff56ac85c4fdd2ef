/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The names of old log files, which are those of kube-apiserver: "audit.log" becomes
 * "audit-2026-11-23T08-38-07.123.log". The time is that when the file was moved away, in UTC. Pure.
 * Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the name, with the directory, of an old file of the log at path; ms: milliseconds since
 * 1970 UTC. False: it does not fit. */
bool hfd_audit_backup_name(const char *path, int64_t ms, char *out, size_t size);
/* Whether name, which has no directory, is that of an old file of the log at path. *ret_ms: the
 * time in the name; set on true only. */
bool hfd_audit_is_backup(const char *path, const char *name, int64_t *ret_ms);
/*
 * How many of the n old files to keep, counted from the newest. ended: the time in the name of each
 * file, the newest first. ended and now are milliseconds since 1970 UTC. max_backups and max_age
 * (days): 0 = no limit.
 */
size_t hfd_audit_backups_to_keep(const int64_t *ended, size_t n, int64_t now, int64_t max_backups,
                                 int64_t max_age);
