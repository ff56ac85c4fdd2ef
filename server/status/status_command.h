/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sub-command `holdfastd status`: which instances there are, which of them leads what and since
 * when, and the latest hand-overs. Thread: main.
 */
#include <stdbool.h>

#include <holdfast/log.h>

struct hfd_status_options {
        const char *kubeconfig; /* path of the file whose server the Leases are read from */
        bool watch;             /* show changes until SIGINT or SIGTERM */
        bool json;              /* print JSON: one line for each output (render_json.h) */
        struct hf_log log;      /* for the HTTP clients; zero = silent */
};

/*
 * Runs the command and prints to stdout; one line to stderr on failure. Returns the exit status of
 * the process. With watch it blocks SIGINT and SIGTERM in the calling thread and handles them
 * itself, so no other thread may have been created before.
 */
int hfd_status_main(const struct hfd_status_options *options);
