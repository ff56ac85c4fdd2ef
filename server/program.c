/* SPDX-License-Identifier: Apache-2.0 */
/* The program: the command line, and which sub-command runs. What the process owns (SIGPIPE,
 * libcurl's globals) is set here. */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include "base/http/global.h"
#include "base/strbuf.h"
#include "server/config/flags.h"
#include "server/program.h"
#include "server/systemd/sdnotify.h"
#include "server/server.h"
#include "server/status/status.h"

static int print_help(enum hfd_command about) {
        struct hf__strbuf text = {0};

        hfd_flags_help(about, &text);
        int r = text.error || fputs(text.data ? text.data : "", stdout) == EOF;
        hf__strbuf_done(&text);
        return r != 0 ? 1 : 0;
}

/* The first line is the version alone, for scripts. */
static int print_version(void) {
        const char *libsystemd =
                hfd_notify_supported()
                        ? "libsystemd: yes (readiness, watchdog, socket activation, journal fields)"
                        : "libsystemd: no (built without it: no readiness, watchdog, socket "
                          "activation)";

        return puts("holdfastd " HFD_VERSION) == EOF || puts(libsystemd) == EOF;
}

static int run_status(const struct hfd_config *config) {
        struct hfd_log_sink sink;
        struct hfd_status_options options = {.kubeconfig = config->kubeconfig,
                                             .watch = config->watch};

        if (config->v > 1)
                hfd_log_sink_init(&sink, config, &options.log);
        return hfd_status_main(&options);
}

static int run_command(const struct hfd_config *config, const struct hfd_extra *extra) {
        switch (config->command) {
        case HFD_COMMAND_HELP: return print_help(config->help_about);
        case HFD_COMMAND_VERSION: return print_version();
        case HFD_COMMAND_RELEASE: return hfd_release_main(config);
        case HFD_COMMAND_STATUS: return run_status(config);
        case HFD_COMMAND_SERVE: break;
        }
        return hfd_server_run(config, extra);
}

int hfd_program_main(int argc, char **argv, const struct hfd_extra *extra) {
        struct hfd_config config;
        struct hf_status status = {0};

        int r = hfd_flags_parse(argc, argv, &config, &status);
        if (r == 0 && config.command == HFD_COMMAND_SERVE) {
                r = hfd_config_check_controllers(&config, hfd_controllers_names(), &status);
                if (r != 0)
                        hfd_config_done(&config);
        }
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd: %s\n", status.message);
                return r == HF_E_INVALID ? 2 : 1;
        }
        /* Two heaps for all threads: each further one costs resident memory, and a mapping when a
         * thread allocates first. */
        (void)mallopt(M_ARENA_MAX, 2);
        (void)signal(SIGPIPE, SIG_IGN);
        r = hf__http_global_init();
        if (r != 0)
                (void)fprintf(stderr, "holdfastd: libcurl: %s\n", hf_strerror(r));
        int exit_status = r != 0 ? 1 : run_command(&config, extra);
        hfd_config_done(&config);
        return exit_status;
}
