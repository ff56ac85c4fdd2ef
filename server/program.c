/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line and runs the sub-command.
 *
 * Invariants. SIGPIPE and the number of heaps are set here, before any thread exists. Exit status 2
 * means a mistake that only the user can correct, on the command line or in a manifest: the systemd
 * unit does not restart the process then.
 */
#include "server/program.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "server/config/flags.h"
#include "server/controllers/controllers.h"
#include "server/handlers/version_handler.h"
#include "server/main_loop.h"
#include "server/process/process_limits.h"
#include "server/release.h"
#include "server/status/exec.h"
#include "server/systemd/sdnotify.h"

/* The maximum number of malloc's heaps (arenas). Each one costs resident memory, and glibc would
 * create up to eight for each processor. With four, the threads that allocate at the same time
 * (HTTP workers, channels to etcd, informers) seldom wait for each other. */
#define MAX_HEAPS 4

static int print_help(enum hfd_command command) {
        struct hf__strbuf text = {0};

        hfd_flags_help(command, &text);
        bool ok = text.error == 0 && fputs(text.data, stdout) != EOF;
        hf__strbuf_done(&text);
        return ok ? 0 : 1;
}

/* The first line contains only the name and the version, so that scripts can parse it. */
static int print_version(void) {
        const char *libsystemd =
                hfd_notify_supported()
                        ? "libsystemd: yes (readiness, watchdog, socket activation, journal fields)"
                        : "libsystemd: no (built without it: no readiness, watchdog, socket "
                          "activation)";

        bool ok = puts("holdfastd " HFD_VERSION) != EOF && puts(libsystemd) != EOF;
        return ok ? 0 : 1;
}

static int run_command(char **argv, const struct hfd_config *config,
                       const struct hfd_extra *extra) {
        switch (config->command) {
        case HFD_COMMAND_HELP: return print_help(config->help_command);
        case HFD_COMMAND_VERSION: return print_version();
        case HFD_COMMAND_RELEASE: return hfd_release_main(config);
        case HFD_COMMAND_STATUS: return hfd_status_exec(argv);
        case HFD_COMMAND_SERVE: break;
        }
        return hfd_main_loop_run(config, extra);
}

/* Parses the command line and checks --controllers. hfd_flags_parse cannot check it, because
 * config/ must not depend on the controllers. */
static int parse_command_line(int argc, char **argv, struct hfd_config *ret_config,
                              struct hf_status *reterr_status) {
        int r = hfd_flags_parse(argc, argv, ret_config, reterr_status);

        if (r == 0 && ret_config->command == HFD_COMMAND_SERVE) {
                r = hfd_config_check_controllers(ret_config, hfd_controllers_names(),
                                                 reterr_status);
                if (r != 0)
                        hfd_config_done(ret_config);
        }
        return r;
}

int hfd_program_main(int argc, char **argv, const struct hfd_extra *extra) {
        struct hfd_config config;
        struct hf_status status = {0};

        hfd_process_limits_hide_memory(); /* before any key or token is read */
        int r = parse_command_line(argc, argv, &config, &status);
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd: %s\n", status.message);
                return r == HF_E_INVALID ? 2 : 1;
        }
        (void)mallopt(M_ARENA_MAX, MAX_HEAPS);
        /* OpenSSL may write to a closed connection, and SIGPIPE would end the process. */
        (void)signal(SIGPIPE, SIG_IGN);
        int exit_status = run_command(argv, &config, extra);
        hfd_config_done(&config);
        return exit_status;
}
