/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line and runs the sub-command.
 *
 * Invariants. SIGPIPE, the number of heaps and the allocator of JSON are set here, before any
 * thread exists. Exit status 2 means a mistake that only the user can correct, on the command line,
 * in a manifest, in another file that a flag names, or in the socket that systemd passes: the
 * systemd unit does not restart the process then.
 */
#include "server/main/program.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json_blocks.h"
#include "base/strbuf.h"
#include "server/check/check.h"
#include "server/config/config_check.h"
#include "server/config/flags.h"
#include "server/config/kube_apiserver.h"
#include "server/controllers/controllers.h"
#include "server/handlers/version_handler.h"
#include "server/main/main_loop.h"
#include "server/manual/manual.h"
#include "server/pki/pki_command.h"
#include "server/process/process_limits.h"
#include "server/release/release.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/status/exec.h"
#include "server/store/copy_command.h"
#include "server/store/file_commands.h"
#include "server/systemd/sdnotify.h"
#include "server/tls/reasons.h"

/* The maximum number of malloc's heaps (arenas). Each one costs resident memory, and glibc would
 * create up to eight for each processor. With four, the threads that allocate at the same time
 * (HTTP workers, channels to etcd, informers) seldom wait for each other. */
#define MAX_HEAPS 4
/* The thresholds of the allocator, in bytes: a heap whose free end exceeds FREE_TOP_MAX shrinks,
 * and a block of HEAP_BLOCK_MAX or more gets pages of its own. By default glibc raises both with
 * the size of the largest block that was freed. Then about that much memory may stay free at the
 * end of each heap but the first, because malloc_trim does not return it: for example 20 MiB after
 * a start with definitions of 1 MB. */
#define FREE_TOP_MAX   (1 << 20)
#define HEAP_BLOCK_MAX (4 << 20)

static int print_help(enum hfd_command command) {
        struct hf__strbuf text = {0};

        hfd_flags_help(command, &text);
        bool ok = text.error == 0 && fputs(text.data, stdout) != EOF && fflush(stdout) == 0;
        hf__strbuf_done(&text);
        return ok ? 0 : 1;
}

/* The first line contains only the name and the version, so that scripts can parse it. */
static int print_version(void) {
        const char *libsystemd =
                hfd_sdnotify_supported()
                        ? "libsystemd: yes (readiness, watchdog, socket activation, journal fields)"
                        : "libsystemd: no (built without it: no readiness, watchdog, socket "
                          "activation)";

        bool ok = puts("holdfastd " HFD_VERSION) != EOF && puts(libsystemd) != EOF &&
                  fflush(stdout) == 0;
        return ok ? 0 : 1;
}

/* Whether it is `help --man` or `help --completion`. --help takes precedence, as for commands. */
static bool is_manual(int argc, char **argv) {
        if (argc < 3 || strcmp(argv[1], "help") != 0 ||
            (strcmp(argv[2], "--man") != 0 && strcmp(argv[2], "--completion") != 0))
                return false;
        for (int i = 3; i < argc; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return false;
        return true;
}

static int run_command(int argc, char **argv, const struct hfd_config *config,
                       const struct hfd_extra *extra) {
        switch (config->command) {
        case HFD_COMMAND_HELP:
                if (is_manual(argc, argv))
                        return hfd_manual_main(argc - 2, argv + 2);
                return print_help(config->help_command);
        case HFD_COMMAND_VERSION: return print_version();
        case HFD_COMMAND_RELEASE: return hfd_release_main(config);
        case HFD_COMMAND_STATUS: return hfd_status_exec(argv);
        case HFD_COMMAND_PKI_INIT: return hfd_pki_init_main(config);
        case HFD_COMMAND_PKI_SHOW: return hfd_pki_show_main(config);
        case HFD_COMMAND_PKI_EXPORT: return hfd_pki_export_main(config);
        case HFD_COMMAND_PKI_JOIN: return hfd_pki_join_main(config);
        case HFD_COMMAND_STORE_COPY: return hfd_store_copy_main(config);
        case HFD_COMMAND_STORE_BACKUP: return hfd_store_backup_main(config);
        case HFD_COMMAND_STORE_RESTORE: return hfd_store_restore_main(config);
        case HFD_COMMAND_STORE_CHECK: return hfd_store_check_main(config);
        case HFD_COMMAND_STORE_COMPACT: return hfd_store_compact_main(config);
        case HFD_COMMAND_PKI:
        case HFD_COMMAND_STORE: break; /* refused by the parser of the command line */
        case HFD_COMMAND_SERVE:
                if (config->check)
                        return hfd_check_main(config, extra);
                hfd_tls_reasons_defer(); /* before anything uses OpenSSL */
                return hfd_main_loop_run(config, extra);
        }
        return 1;
}

/* Parses the command line and checks --controllers. hfd_flags_parse cannot check it, because
 * config/ must not depend on the controllers. Extends the resource table of the process if the
 * server serves workloads. */
static int parse_command_line(int argc, char **argv, struct hfd_config *ret_config,
                              struct hf_status *reterr_status) {
        int r = hfd_is_kube_apiserver(argv[0])
                        ? hfd_kube_apiserver_parse(argc, argv, ret_config, reterr_status)
                        : hfd_flags_parse(argc, argv, ret_config, reterr_status);

        if (r == 0 && ret_config->command == HFD_COMMAND_SERVE) {
                if (ret_config->serves_workloads)
                        hfd_resources_add_workloads();
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

        if (hfd_process_limits_reserve_standard() != 0)
                return 1;                 /* without /dev/null there is no place for a message */
        hfd_process_limits_hide_memory(); /* before any key or token is read */
        int r = parse_command_line(argc, argv, &config, &status);
        if (r != 0) {
                /* A systemd unit runs `release` with the server's flags after the server has ended,
                 * so the server has already reported the same mistake. */
                if (argc < 2 || strcmp(argv[1], "release") != 0 || !hfd_release_after_mistake())
                        (void)fprintf(stderr, "holdfastd: %s\n", status.message);
                return r == HF_E_INVALID ? 2 : 1;
        }
        (void)mallopt(M_ARENA_MAX, MAX_HEAPS);
        (void)mallopt(M_TRIM_THRESHOLD, FREE_TOP_MAX);
        (void)mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_MAX);
        hf__json_blocks_init();
        /* OpenSSL may write to a closed connection, and SIGPIPE would end the process. */
        (void)signal(SIGPIPE, SIG_IGN);
        int exit_status = run_command(argc, argv, &config, extra);
        hfd_config_done(&config);
        return exit_status;
}
