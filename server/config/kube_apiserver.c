/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites the command line of kube-apiserver for hfd_flags_parse.
 *
 * Invariant: no flag that restricts what clients may do is ignored, so that nobody relies on a
 * restriction that does not exist. The exceptions are flags that programs for tests pass:
 * --allow-privileged, --runtime-config, and the ranges of addresses and node ports of Services.
 */
#include "server/config/kube_apiserver.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "server/config/flags.h"

/* The most arguments that are added: --data-dir, --tls-cert-file, --tls-private-key-file,
 * --runtime-config, --controllers. */
#define ADDED_MAX 5

/* Excludes controllers that do the work of a kube-controller-manager and would interfere with a
 * test. A test that starts a kube-apiserver alone expects no kube-controller-manager: the test may
 * finalize namespaces itself, or use owners that do not exist. */
#define NO_MANAGER                                                                                 \
        ",-namespace-lifecycle,-garbage-collector,-default-service-account,-root-ca-publisher"

/* The flags that are left out (kube_apiserver.h). The value of a boolean one is never the next
 * argument. */
static const struct ignored {
        const char *name;
        bool boolean;
} ignored[] = {
        {"allow-privileged", true},
        {"apiserver-count", false},
        {"cloud-provider", false},
        {"contention-profiling", true},
        {"default-watch-cache-size", false},
        {"disable-admission-plugins", false},
        {"enable-aggregator-routing", true},
        {"enable-garbage-collector", true},
        {"enable-priority-and-fairness", true},
        {"endpoint-reconciler-type", false},
        {"etcd-count-metric-poll-period", false},
        {"etcd-db-metric-poll-interval", false},
        {"etcd-healthcheck-timeout", false},
        {"feature-gates", false},
        {"insecure-port", false},
        {"kubelet-client-certificate", false},
        {"kubelet-client-key", false},
        {"kubelet-preferred-address-types", false},
        {"lease-reuse-duration-seconds", false},
        {"logging-format", false},
        {"master-service-namespace", false},
        {"profiling", true},
        {"runtime-config", false},
        {"service-account-lookup", true},
        {"service-cluster-ip-range", false},
        {"service-node-port-range", false},
        {"storage-backend", false},
        {"storage-media-type", false},
        {"watch-cache", true},
        {"watch-cache-sizes", false},
};

/* The new command line. */
struct rewrite {
        char **argv; /* owned, as are the strings from n_borrowed on */
        int argc, n_borrowed;
        struct hf__strbuf left_out;       /* "--a, --b" */
        const char *cert_dir;             /* NULL = not given */
        bool has_data_dir, has_tls_files; /* the flags were given */
        bool has_controllers;             /* --controllers was given */
        bool no_workloads;                /* --runtime-config has api/workloads=false */
        bool is_alone;                    /* --disable-admission-plugins has ServiceAccount */
};

bool hfd_is_kube_apiserver(const char *argv0) {
        const char *slash = argv0 ? strrchr(argv0, '/') : NULL;

        return argv0 && strcmp(slash ? slash + 1 : argv0, "kube-apiserver") == 0;
}

static const struct ignored *find_ignored(const char *name, size_t n) {
        for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
                if (strlen(ignored[i].name) == n && memcmp(ignored[i].name, name, n) == 0)
                        return &ignored[i];
        return NULL;
}

static bool is_flag(const char *argument, const char *name) {
        size_t n = strlen(name);

        return strncmp(argument, "--", 2) == 0 && strncmp(argument + 2, name, n) == 0 &&
               (argument[2 + n] == '=' || argument[2 + n] == '\0');
}

/* Notes the flags on which the added arguments depend. The value of the flag `argument` is the text
 * after its '=', or else next. */
static void note_flag(struct rewrite *rewrite, const char *argument, const char *next) {
        const char *equals = strchr(argument, '=');

        if (is_flag(argument, "cert-dir"))
                rewrite->cert_dir = equals ? equals + 1 : next;
        rewrite->has_controllers = rewrite->has_controllers || is_flag(argument, "controllers");
        rewrite->has_data_dir = rewrite->has_data_dir || is_flag(argument, "data-dir");
        rewrite->has_tls_files = rewrite->has_tls_files || is_flag(argument, "tls-cert-file");
}

/* Notes the ignored flags on which the added arguments depend. value may be NULL. */
static void note_ignored(struct rewrite *rewrite, const char *name, const char *value) {
        if (strcmp(name, "runtime-config") == 0 && value && strstr(value, "api/workloads=false"))
                rewrite->no_workloads = true;
        if (strcmp(name, "disable-admission-plugins") == 0 && value &&
            strstr(value, "ServiceAccount"))
                rewrite->is_alone = true;
}

/* Copies all arguments but the ignored flags with their values. */
static void copy_arguments(struct rewrite *rewrite, int argc, char *const argv[]) {
        rewrite->argv[rewrite->argc++] = argv[0];
        for (int i = 1; i < argc; i++) {
                bool is_long = strncmp(argv[i], "--", 2) == 0;
                size_t n = is_long ? strcspn(argv[i] + 2, "=") : 0;
                const struct ignored *flag = is_long ? find_ignored(argv[i] + 2, n) : NULL;
                if (!flag) {
                        note_flag(rewrite, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
                        rewrite->argv[rewrite->argc++] = argv[i];
                        continue;
                }
                hf__strbuf_printf(&rewrite->left_out, "%s--%s", rewrite->left_out.n > 0 ? ", " : "",
                                  flag->name);
                const char *value = argv[i][2 + n] == '=' ? argv[i] + 3 + n : NULL;
                if (!flag->boolean && !value && i + 1 < argc)
                        value = argv[++i];
                note_ignored(rewrite, flag->name, value);
        }
        rewrite->n_borrowed = rewrite->argc;
}

/* Adds "--", flag, "=", directory and file, with nothing in between: the file of a path begins with
 * '/'. For other values, directory and file are two parts of the value. 0 or -ENOMEM. */
static int add_argument(struct rewrite *rewrite, const char *flag, const char *directory,
                        const char *file) {
        char **argument = &rewrite->argv[rewrite->argc];

        assert(rewrite->argc - rewrite->n_borrowed < ADDED_MAX);
        if (asprintf(argument, "--%s=%s%s", flag, directory, file) < 0) {
                *argument = NULL;
                return -ENOMEM;
        }
        rewrite->argc++;
        return 0;
}

static bool has_file(const char *directory, const char *file) {
        char path[4096];
        int n = snprintf(path, sizeof path, "%s%s", directory, file);

        return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

/* Adds the arguments that holdfastd needs in place of kube-apiserver's defaults (kube_apiserver.h).
 * 0 or -ENOMEM. */
static int add_arguments(struct rewrite *rewrite) {
        int r = 0;

        assert(rewrite->argc > 0);
        if (!rewrite->no_workloads)
                r = add_argument(rewrite, "runtime-config", "api/workloads", "=true");
        if (r == 0 && rewrite->is_alone && !rewrite->has_controllers)
                r = add_argument(rewrite, "controllers", "*", NO_MANAGER);
        if (r != 0 || !rewrite->cert_dir)
                return r;
        if (!rewrite->has_data_dir)
                r = add_argument(rewrite, "data-dir", rewrite->cert_dir, "");
        if (r != 0 || rewrite->has_tls_files || !has_file(rewrite->cert_dir, "/apiserver.crt") ||
            !has_file(rewrite->cert_dir, "/apiserver.key"))
                return r;
        r = add_argument(rewrite, "tls-cert-file", rewrite->cert_dir, "/apiserver.crt");
        if (r == 0)
                r = add_argument(rewrite, "tls-private-key-file", rewrite->cert_dir,
                                 "/apiserver.key");
        return r;
}

int hfd_kube_apiserver_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                             struct hf_status *reterr_status) {
        struct rewrite rewrite = {.argv = calloc((size_t)argc + ADDED_MAX + 1, sizeof(char *))};
        int r = rewrite.argv ? 0 : -ENOMEM;

        if (r == 0) {
                copy_arguments(&rewrite, argc, argv);
                r = add_arguments(&rewrite);
        }
        const char *names = rewrite.left_out.data ? rewrite.left_out.data : "";
        char *left_out = r == 0 ? strdup(names) : NULL;
        if (!left_out || rewrite.left_out.error != 0)
                r = hf_fail(reterr_status, -ENOMEM, "out of memory");
        else
                r = hfd_flags_parse(rewrite.argc, rewrite.argv, ret_config, reterr_status);
        if (r == 0) {
                ret_config->ignored_flags = left_out;
                ret_config->pods_lack_accounts = rewrite.is_alone;
        } else {
                free(left_out);
        }
        for (int i = rewrite.n_borrowed; i < rewrite.argc; i++)
                free(rewrite.argv[i]);
        free(rewrite.argv);
        hf__strbuf_done(&rewrite.left_out);
        return r;
}
