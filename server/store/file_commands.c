/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sub-commands `holdfastd store backup`, `restore`, `check` and `compact`: they call the code
 * that does the work, and print the result. Each returns the exit status of the process.
 *
 * Invariant: a failure is one line on stderr, after the output of the program if one of etcd's
 * programs has failed. `check` prints one line to stdout for each of the first
 * HFD_SQLITE_FAULTS_MAX faults and, if the check was completed, one for the others together.
 */
#include "server/store/file_commands.h"

#include <stdio.h>
#include <string.h>

#include "server/storage/sqlite/files/backup.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/files/shrink.h"
#include "server/storage/waiter.h"
#include "server/store/location.h"
#include "server/store/snapshot_stamp.h"
#include "server/systemd/log_sink.h"

#define COMPACT_TIMEOUT (60 * HF_NSEC_PER_SEC) /* for both requests to etcd together */

/* Prints a failure. Returns the exit status: 0, or 1 after a failure. */
static int report_result(const char *command, int r, const struct hf_status *status) {
        if (r != 0)
                (void)fprintf(stderr, "holdfastd store %s: %s\n", command,
                              status->message[0] ? status->message : hf_strerror(r));
        return r == 0 ? 0 : 1;
}

int hfd_store_backup_main(const struct hfd_config *config) {
        struct hf_status status = {0};
        int r = hfd_sqlite_backup(config->arguments[0], config->arguments[1], &status);

        if (r == 0)
                (void)printf("wrote %s\n", config->arguments[1]);
        return report_result("backup", r, &status);
}

int hfd_store_restore_main(const struct hfd_config *config) {
        struct hf_status status = {0};
        const char *backup = config->arguments[0], *target = config->arguments[1];
        int r = config->etcd_snapshot
                        ? hfd_snapshot_stamp(backup, target, config->etcd_prefix, &status)
                        : hfd_sqlite_restore(backup, target, config->etcd_prefix, &status);

        if (r == 0)
                (void)printf("restored %s\n", target);
        return report_result("restore", r, &status);
}

/* A fault is a result, not a failure of the command, so it is printed to stdout. */
static void print_fault(void *ctx, const char *text) { (void)puts(text); }

int hfd_store_check_main(const struct hfd_config *config) {
        const char *file = config->arguments[0];
        struct hfd_sqlite_faults faults = {.report = print_fault};
        struct hf_status status = {0};
        int r = hfd_sqlite_check(file, &faults, &status);

        size_t n_more = faults.n > HFD_SQLITE_FAULTS_MAX ? faults.n - HFD_SQLITE_FAULTS_MAX : 0;
        if (r == 0 && n_more > 0)
                (void)printf("%zu more fault%s\n", n_more, n_more == 1 ? "" : "s");
        if (r == 0 && faults.n > 0)
                r = hf_fail(&status, HF_E_INVALID,
                            "%s is damaged: holdfastd store restore makes a new file from a backup",
                            file);
        if (r == 0)
                (void)printf("%s: nothing is wrong\n", file);
        return report_result("check", r, &status);
}

/* ---- compact ---- */

static int compact_file(const char *file, struct hf_status *reterr_status) {
        struct hfd_sqlite_shrunk shrunk;
        int r = hfd_sqlite_shrink(file, &shrunk, reterr_status);

        if (r == 0)
                (void)printf("compacted %s at revision %llu: %llu versions removed, %llu KiB "
                             "instead of %llu\n",
                             file, (unsigned long long)shrunk.revision,
                             (unsigned long long)shrunk.n_removed,
                             (unsigned long long)shrunk.n_bytes_after / 1024,
                             (unsigned long long)shrunk.n_bytes_before / 1024);
        return r;
}

/* Compacts at the newest revision, so only the current versions of keys stay. The store refuses a
 * revision that it has not reached, so the revision is read first. Blocks. */
static int compact_store(struct hfd_store *store, const char *name,
                         struct hf_status *reterr_status) {
        struct hfd_waiter waiter;
        struct hfd_result result = {0};
        int r = hfd_waiter_init(&waiter, store->host);

        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        hf_nsec deadline = hf_now(waiter.clock) + COMPACT_TIMEOUT;
        hfd_waiter_begin(&waiter, &result);
        r = hfd_waiter_end(&waiter, &result,
                           store->ops->revision(store, deadline, hfd_result_fill, &result));
        uint64_t revision = result.revision;
        if (r == 0) {
                hfd_waiter_begin(&waiter, &result);
                r = hfd_waiter_end(&waiter, &result,
                                   store->ops->compact(store, revision, deadline, hfd_result_fill,
                                                       &result));
        }
        if (r == HF_E_GONE) /* it was already compacted at this revision */
                r = 0;
        if (r == 0)
                (void)printf("compacted %s at revision %llu\n", name, (unsigned long long)revision);
        else
                *reterr_status = result.status;
        hfd_result_deinit(&result);
        hfd_waiter_deinit(&waiter);
        return r;
}

static int compact_etcd(const struct hfd_location *location, const struct hfd_config *config,
                        struct hf_status *reterr_status) {
        struct hf_host host = {.size = sizeof host, .clock = hf_clock_system()};
        struct hfd_log_sink sink;
        struct hfd_store *store;

        hfd_log_sink_init(&sink, config, &host.log);
        int r = hfd_location_open(location, &host, config, false, &store, reterr_status);
        if (r != 0)
                return r;
        r = compact_store(store, location->text, reterr_status);
        store->ops->free(store);
        return r;
}

int hfd_store_compact_main(const struct hfd_config *config) {
        const char *text = config->arguments[0];
        struct hfd_location location = {.text = text, .file = text};
        struct hf_status status = {0};
        int r = 0;

        /* A file may also be named without sqlite:, as backup, restore and check name files. */
        if (strncmp(text, "etcd:", 5) == 0 || strncmp(text, "sqlite:", 7) == 0)
                r = hfd_location_parse("argument STORE", text, &location, &status);
        if (r != 0) {
                (void)report_result("compact", r, &status);
                return 2;
        }
        r = location.file ? compact_file(location.file, &status)
                          : compact_etcd(&location, config, &status);
        hfd_location_deinit(&location);
        return report_result("compact", r, &status);
}
