/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main of holdfastd-status, the program that `holdfastd status` starts in its place (exec.h).
 *
 * Invariant: it parses the command line in the same way as holdfastd, because holdfastd passes on
 * the arguments that it got.
 */
#include <signal.h>
#include <stdio.h>

#include "base/http/global.h"
#include "server/config/flags.h"
#include "server/status/status_command.h"
#include "server/systemd/log_sink.h"

/* Runs the command, and returns the exit status. Log lines would disturb the output of --watch on a
 * terminal, so they need --v=2 or more. */
static int run_status(const struct hfd_config *config) {
        struct hfd_log_sink sink;
        struct hfd_status_options options = {.kubeconfig = config->kubeconfig,
                                             .watch = config->watch,
                                             .json = config->output == HFD_OUTPUT_JSON};

        if (config->v > 1)
                hfd_log_sink_init(&sink, config, &options.log);
        return hfd_status_main(&options);
}

int main(int argc, char **argv) {
        struct hfd_config config;
        struct hf_status status = {0};
        int r = hfd_flags_parse(argc, argv, &config, &status);

        if (r != 0) {
                (void)fprintf(stderr, "holdfastd: %s\n", status.message);
                return r == HF_E_INVALID ? 2 : 1;
        }
        int exit_status = 1;
        /* libcurl's OpenSSL may write to a closed connection, and SIGPIPE would end the process. */
        (void)signal(SIGPIPE, SIG_IGN);
        r = hf__http_global_init();
        if (r != 0)
                (void)fprintf(stderr, "holdfastd: cannot set up libcurl: %s\n", hf_strerror(r));
        else if (config.command != HFD_COMMAND_STATUS)
                (void)fputs("holdfastd-status: run `holdfastd status` instead\n", stderr);
        else
                exit_status = run_status(&config);
        hfd_config_done(&config);
        return exit_status;
}
