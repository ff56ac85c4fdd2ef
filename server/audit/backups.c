/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and recognises the names of old log files.
 *
 * Invariant: only a name that hfd_audit_backup_name can make counts as that of an old file, because
 * old files are removed.
 */
#include "server/audit/backups.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/time_format.h"

#define MS_PER_DAY ((int64_t)24 * 3600 * 1000)
#define STAMP      "2026-11-23T08-38-07.123" /* an example: only its length is used */

/* The parts of a path: the directory with its slash, the name, and its extension with the dot. */
struct parts {
        int n_directory, n_name;
        const char *name, *extension;
};

static struct parts split_path(const char *path) {
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
        const char *end = dot ? dot : name + strlen(name);

        return (struct parts){.n_directory = (int)(name - path),
                              .n_name = (int)(end - name),
                              .name = name,
                              .extension = end};
}

bool hfd_audit_backup_name(const char *path, int64_t ms, char *out, size_t size) {
        struct parts parts = split_path(path);
        char time[HF__MICROTIME_MAX];

        hf__microtime_format(ms * 1000, time); /* "2026-11-23T08:38:07.123000Z" */
        time[13] = time[16] = '-';
        time[sizeof STAMP - 1] = '\0';
        int n = snprintf(out, size, "%.*s%.*s-%s%s", parts.n_directory, path, parts.n_name,
                         parts.name, time, parts.extension);
        return n > 0 && (size_t)n < size;
}

bool hfd_audit_is_backup(const char *path, const char *name, int64_t *ret_ms) {
        struct parts parts = split_path(path);
        size_t n_name = (size_t)parts.n_name, n_stamp = sizeof STAMP - 1;
        char time[HF__MICROTIME_MAX];
        int64_t usec;

        if (strlen(name) != n_name + 1 + n_stamp + strlen(parts.extension) ||
            strncmp(name, parts.name, n_name) != 0 || name[n_name] != '-' ||
            strcmp(name + n_name + 1 + n_stamp, parts.extension) != 0)
                return false;
        (void)snprintf(time, sizeof time, "%.*s000Z", (int)n_stamp, name + n_name + 1);
        if (time[13] != '-' || time[16] != '-')
                return false;
        time[13] = time[16] = ':';
        if (hf__microtime_parse(time, &usec) != 0)
                return false;
        *ret_ms = usec / 1000;
        return true;
}

size_t hfd_audit_backups_to_keep(const int64_t *ended, size_t n, int64_t now, int64_t max_backups,
                                 int64_t max_age) {
        size_t keep = 0;

        assert(max_backups >= 0 && max_age >= 0);
        while (keep < n && (max_backups == 0 || keep < (size_t)max_backups) &&
               (max_age == 0 || ended[keep] >= now - max_age * MS_PER_DAY))
                keep++;
        return keep;
}
