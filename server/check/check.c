/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfastd --check`. Each function checks the files, directories or addresses that some flags
 * name, and reports the faults. Most functions call the code that a start runs, or a check that
 * belongs to this code. A fault does not keep the next function from running.
 *
 * Invariant: nothing is written (check.h). The store, the certificates and the audit log, which the
 * start would create, are checked if they exist already. The kubeconfig, which the start replaces,
 * is not read: only its path and its directory are checked.
 */
#include "server/check/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/audit/audit.h"
#include "server/auth/auth.h"
#include "server/auth/files.h"
#include "server/auth/pki/admin_kubeconfig.h"
#include "server/auth/pki/pki.h"
#include "server/auth/trusted_path.h"
#include "server/bootstrap_phases.h"
#include "server/certificates/account_keys.h"
#include "server/configured_admission/configured_admission.h"
#include "server/controllers/instances/identity.h"
#include "server/encryption/encryption_config.h"
#include "server/http/connection/tls.h"
#include "server/jwt/key_set.h"
#include "server/process/advertise.h"
#include "server/process/flag_files.h"
#include "server/server.h"
#include "server/storage/sqlite/engine/header.h"
#include "server/store/configured_store.h"

struct check {
        const struct hfd_config *config; /* borrowed */
        struct hf_host host;
        unsigned n_faults;
};

/* Prints the fault that a check has found. r: the result of the check; 0 = there is no fault. */
static void report_result(struct check *check, int r, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
static void report_result(struct check *check, int r, const char *format, ...) {
        va_list values;

        if (r == 0)
                return;
        check->n_faults++;
        va_start(values, format);
        (void)fputs("holdfastd: ", stderr);
        (void)vfprintf(stderr, format, values);
        (void)fputc('\n', stderr);
        va_end(values);
}

/* ---- directories ---- */

/* A directory that is missing is no fault if the start can make it. is_written: the start makes
 * files in the directory itself, so it needs the right to write there. */
static void check_directory(struct check *check, const char *flag, const char *path,
                            bool is_written) {
        struct hf_status status = {0};
        int fd = -1;

        if (!path[0])
                return; /* with --storage=memory there is none */
        int r = hfd_trusted_open(path, HFD_TRUSTED_FUTURE_DIRECTORY, &fd, &status);

        report_result(check, r, "flag --%s: %s", flag, status.message);
        if (r == 0 && is_written && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
                report_result(check, -errno, "flag --%s: cannot write to directory %s: %s", flag,
                              path, strerror(errno));
        if (fd >= 0)
                (void)close(fd);
}

/* Whether the paths are the same, apart from slashes at their ends. */
static bool is_same_path(const char *a, const char *b) {
        size_t n_a = strlen(a), n_b = strlen(b);

        while (n_a > 1 && a[n_a - 1] == '/')
                n_a--;
        while (n_b > 1 && b[n_b - 1] == '/')
                n_b--;
        return n_a == n_b && memcmp(a, b, n_a) == 0;
}

/* Whether the directory is missing and the start makes it before it opens the store or writes the
 * kubeconfig: because --data-dir, --shared-dir, --runtime-dir or --cert-dir names it, or names a
 * directory below it. */
static bool is_made_by_start(const struct check *check, const char *path) {
        const struct hfd_config *config = check->config;
        const char *const made[] = {config->data_dir, config->shared_dir, config->runtime_dir,
                                    config->cert_dir};
        size_t n = strlen(path);
        struct stat st;

        while (n > 1 && path[n - 1] == '/')
                n--;
        if (stat(path, &st) == 0 || errno != ENOENT)
                return false;
        for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
                if (strncmp(made[i], path, n) == 0 && (made[i][n] == '\0' || made[i][n] == '/'))
                        return true;
        return false;
}

/* Whether the path can only be that of a directory, which a file cannot replace. */
static bool names_directory(const char *path) {
        size_t n = strlen(path);
        struct stat st;

        return n > 0 && (path[n - 1] == '/' || (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)));
}

/* Checks the kubeconfig that the start would write. Its directory must exist, unless the start
 * makes it earlier. check_directory has reported the faults of the data directory. */
static void check_kubeconfig(struct check *check) {
        const char *path = check->config->admin_kubeconfig;
        char directory[PATH_MAX];
        struct hf_status status = {0};

        if (names_directory(path)) {
                report_result(check, -EISDIR, "flag --write-kubeconfig: %s is a directory", path);
                return;
        }
        (void)snprintf(directory, sizeof directory, "%s", path);
        const char *parent = dirname(directory);
        if (is_same_path(parent, check->config->data_dir) || is_made_by_start(check, parent))
                return;
        int r = hfd_admin_kubeconfig_check(path, &status);
        report_result(check, r, "flag --write-kubeconfig: %s", status.message);
        if (r == 0 && access(parent, W_OK | X_OK) != 0)
                report_result(check, -errno, "flag --write-kubeconfig: cannot write %s: %s", path,
                              strerror(errno));
}

/* ---- certificates and tokens ---- */

/* Reads the file of a flag. NULL: the flag was not given, or the file cannot be read, which is
 * reported. The caller frees the text with hfd_secret_free, because it may be a key. */
static char *read_text(struct check *check, const char *flag, const char *path) {
        struct hf_status status = {0};
        char *text = NULL;

        if (path[0])
                report_result(check, hfd_read_file(path, &text, &status), "flag --%s: %s", flag,
                              status.message);
        return text;
}

static void check_certificates(struct check *check) {
        const struct hfd_config *config = check->config;
        char *cert = read_text(check, "tls-cert-file", config->tls_cert_file);
        char *key = read_text(check, "tls-private-key-file", config->tls_key_file);
        char *client_ca = read_text(check, "client-ca-file", config->client_ca_file);
        struct hf_status status = {0};

        if (cert && key)
                report_result(check, hfd_tls_check_pair(cert, key, &status),
                              "flags --tls-cert-file and --tls-private-key-file: %s",
                              status.message);
        if (client_ca)
                report_result(check, hfd_tls_check_client_ca(client_ca, &status),
                              "flag --client-ca-file: %s", status.message);
        hfd_secret_free(cert);
        hfd_secret_free(key);
        hfd_secret_free(client_ca);
}

static void check_oidc(struct check *check) {
        const struct hfd_flag_pem file = {.flag = "oidc-ca-file",
                                          .path = check->config->oidc_ca_file,
                                          .kind = HFD_PEM_CA};
        struct hf_status status = {0};
        char *text = NULL;

        int r = hfd_flag_read_pem(&file, &text, &status);
        report_result(check, r, "%s", status.message);
        free(text);
}

/* Checks the certificates that the server makes itself. */
static void check_cert_dir(struct check *check) {
        const struct hfd_config *config = check->config;
        struct hfd_identity identity;
        struct hf_status status = {0};
        char advertised[INET6_ADDRSTRLEN];

        if (!config->cert_dir[0])
                return;
        hfd_advertise_address(config->advertise_address, config->bind_address, advertised);
        int r = hfd_identity_make(config->instance, &identity);
        if (r != 0) {
                report_result(check, r, "cannot make an identity for this process: %s",
                              hf_strerror(r));
                return;
        }
        const char *const names[] = {config->bind_address, advertised, identity.host, NULL};
        report_result(check, hfd_pki_check(config->cert_dir, names, &status), "flag --cert-dir: %s",
                      status.message);
}

static void check_tokens(struct check *check) {
        const char *path = check->config->token_auth_file;
        struct hf_status status = {0};
        struct hfd_auth *auth = NULL;

        if (!path[0])
                return;
        report_result(check, hfd_auth_new(&check->host, path, &auth, &status),
                      "flag --token-auth-file: %s", status.message);
        hfd_auth_free(auth);
}

/* Checks the keys that sign and verify tokens of service accounts. check_cert_dir checks the
 * generated key. */
static void check_account_keys(struct check *check) {
        struct hf_status status = {0};
        struct hfd_jwt_key_set *keys = NULL;

        report_result(check, hfd_account_keys_read(check->config, NULL, &keys, &status), "%s",
                      status.message);
        hfd_jwt_key_set_unref(keys);
}

static void check_encryption(struct check *check) {
        const char *path = check->config->encryption_config;
        struct hf_status status = {0};
        struct hfd_encryption *encryption = NULL;

        if (!path[0])
                return;
        report_result(check, hfd_encryption_read(path, &encryption, &status),
                      "flag --encryption-provider-config: %s", status.message);
        (void)hfd_encryption_unref(encryption);
}

/* ---- the others ---- */

static void check_audit(struct check *check) {
        const struct hfd_config *config = check->config;
        struct hfd_audit_policy *policy = NULL;
        struct hf_status status = {0};

        if (!config->audit_policy_file[0])
                return;
        report_result(check, hfd_audit_read_policy(config->audit_policy_file, &policy, &status),
                      "flag --audit-policy-file: %s", status.message);
        hfd_audit_policy_unref(policy);
        report_result(check, hfd_audit_file_check(config->audit_log_path, &status),
                      "flag --audit-log-path: %s", status.message);
}

static void check_admission(struct check *check) {
        struct hf_status status = {0};

        report_result(check, hfd_configured_admission_check(check->config, &status), "%s",
                      status.message);
}

/* For etcd, creates the store, which sends nothing before its first operation. For a file, reads
 * the header. */
static void check_store(struct check *check) {
        const struct hfd_config *config = check->config;
        struct hf_status status = {0};
        struct hfd_store *store = NULL;
        char directory[PATH_MAX];

        if (hfd_config_is_in_memory(config))
                return;
        if (config->n_etcd_servers > 0) {
                int r = hfd_configured_store_new(&check->host, config, &store, &status);
                report_result(check, r, "flags --etcd-*: %s", status.message);
                if (r == 0)
                        store->ops->free(store);
                return;
        }
        /* By default the file is in the shared directory, which need not exist yet. */
        (void)snprintf(directory, sizeof directory, "%s", config->store_file);
        if (is_made_by_start(check, dirname(directory)))
                return;
        report_result(check, hfd_sqlite_check_header(config->store_file, &status),
                      "flag --store: %s", status.message);
}

/* Prints the same message as the start would: only about the first fault that is found. */
static void check_manifests(struct check *check, const struct hfd_extra *extra) {
        struct hfd_server server;
        struct hf_status status = {0};
        int r = hfd_server_init(&server, check->config, extra);

        if (r != 0) {
                report_result(check, r, "cannot start: %s", hf_strerror(r));
                return;
        }
        report_result(check, hfd_bootstrap_phases_make(&server, &status), "%s", status.message);
        server.bootstrap = hf_bootstrap_free(server.bootstrap);
        hfd_server_done(&server);
}

/* Binds the address with a free port that the kernel chooses, because a running server may use
 * --secure-port. */
static void check_bind_address(struct check *check) {
        const char *text = check->config->bind_address;
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;

        if (!is_v4 && inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
                return; /* hfd_config_check has refused it */
        int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = fd < 0 ? -errno : 0;
        if (r == 0 && (is_v4 ? bind(fd, (struct sockaddr *)&v4, sizeof v4)
                             : bind(fd, (struct sockaddr *)&v6, sizeof v6)) != 0)
                r = -errno;
        report_result(check, r, "flag --bind-address: cannot listen on %s: %s", text, strerror(-r));
        if (fd >= 0)
                (void)close(fd);
}

int hfd_check_main(const struct hfd_config *config, const struct hfd_extra *extra) {
        struct check check = {.config = config,
                              .host = {.size = sizeof check.host, .clock = hf_clock_system()}};

        check_directory(&check, "data-dir", config->data_dir, true);
        if (strcmp(config->shared_dir, config->data_dir) != 0)
                check_directory(&check, "shared-dir", config->shared_dir, false);
        check_directory(&check, "runtime-dir", config->runtime_dir, true);
        if (config->leader_elect && config->leader_lock_dir[0])
                check_directory(&check, "leader-elect-lock-dir", config->leader_lock_dir, true);
        check_kubeconfig(&check);
        check_cert_dir(&check);
        check_certificates(&check);
        check_oidc(&check);
        check_tokens(&check);
        check_audit(&check);
        check_account_keys(&check);
        check_encryption(&check);
        check_admission(&check);
        check_store(&check);
        check_manifests(&check, extra);
        check_bind_address(&check);
        if (check.n_faults > 0)
                return 2;
        return puts("ok") != EOF && fflush(stdout) == 0 ? 0 : 1;
}
