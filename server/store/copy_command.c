/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfastd store copy`.
 *
 * Invariant: a failure is reported in one line. If the target is incomplete, the line names it and
 * says what to do.
 */
#include "server/store/copy_command.h"

#include <stdio.h>

#include "server/storage/copy.h"
#include "server/storage/sqlite/files/file_use.h"
#include "server/store/location.h"
#include "server/systemd/log_sink.h"

/* Thread: main. */
static void print_progress(void *ctx, size_t n_copied, size_t n_keys) {
        (void)fprintf(stderr, "holdfastd store copy: %zu of %zu keys\n", n_copied, n_keys);
}

static int copy_store(const struct hfd_copy_source *source, struct hfd_store *to,
                      const struct hfd_location *target, struct hf_status *reterr_status) {
        const struct hfd_copy what = {.source = source, .to = to, .on_progress = print_progress};
        struct hfd_copy_result result;
        struct hf_status why = {0};
        int r = hfd_copy_run(&what, &result, &why);

        if (r == 0)
                (void)fprintf(stderr,
                              "holdfastd store copy: copied %zu keys of revision %llu to %s\n",
                              source->n_entries, (unsigned long long)source->revision,
                              target->text);
        else if (result.incomplete)
                (void)hf_fail(reterr_status, r, "%s; %s is incomplete: %s before the next attempt",
                              why.message, target->text,
                              target->file ? "remove the file" : "delete its keys");
        else
                *reterr_status = why;
        return r;
}

/* Opening the target may create it, so the source is read first. */
static int read_and_copy(const struct hf_host *host, const struct hfd_config *config,
                         struct hfd_store *from, const struct hfd_location *target,
                         struct hf_status *reterr_status) {
        struct hfd_copy_source source;
        struct hfd_store *to;
        int r = hfd_copy_source_read(&source, from, config->etcd_prefix, reterr_status);

        if (r == 0)
                r = hfd_location_open(target, host, config, true, &to, reterr_status);
        if (r == 0) {
                r = copy_store(&source, to, target, reterr_status);
                to->ops->free(to);
        }
        hfd_copy_source_deinit(&source);
        return r;
}

static int open_and_copy(const struct hf_host *host, const struct hfd_config *config,
                         const struct hfd_location *source, const struct hfd_location *target,
                         struct hf_status *reterr_status) {
        struct hfd_store *from;
        int r = source->file ? hfd_sqlite_check_unused(source->file, reterr_status) : 0;

        if (r == 0)
                r = hfd_location_open(source, host, config, false, &from, reterr_status);
        if (r != 0)
                return r;
        r = read_and_copy(host, config, from, target, reterr_status);
        from->ops->free(from);
        return r;
}

int hfd_store_copy_main(const struct hfd_config *config) {
        struct hf_host host = {.size = sizeof host, .clock = hf_clock_system()};
        struct hfd_location source = {0}, target = {0};
        struct hfd_log_sink sink;
        struct hf_status status = {0};
        int r = hfd_location_parse("flag --from", config->copy_from, &source, &status);

        if (r == 0)
                r = hfd_location_parse("flag --to", config->copy_to, &target, &status);
        int exit_status = r == HF_E_INVALID ? 2 : 1; /* a mistake on the command line */
        hfd_log_sink_init(&sink, config, &host.log);
        if (r == 0)
                r = open_and_copy(&host, config, &source, &target, &status);
        if (r != 0)
                (void)fprintf(stderr, "holdfastd store copy: %s\n",
                              status.message[0] ? status.message : hf_strerror(r));
        hfd_location_deinit(&source);
        hfd_location_deinit(&target);
        return r == 0 ? 0 : exit_status;
}
