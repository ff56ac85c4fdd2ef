/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfastd pki`: instances on two hosts have one CA when one host exports it and the other joins.
 *
 * Invariants. An export that is not written to the standard output is a new file of mode 0600, and
 * replaces nothing (new_file.h). A CA is never replaced. Nothing but PEM goes to the standard
 * output of `export -`.
 */
#include "server/pki/pki_command.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/time_format.h"
#include "server/auth/files.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"
#include "server/config/config.h"
#include "server/storage/new_file.h"

#define INPUT_MAX ((size_t)1 << 20) /* bytes; as hfd_read_file has it for files */

/* Prints why the action failed. Returns the exit status. */
static int print_failure(const char *action, int r, const struct hf_status *status) {
        (void)fprintf(stderr, "holdfastd pki %s: %s\n", action,
                      status->message[0] ? status->message : hf_strerror(r));
        return 1;
}

/* The exit status after everything was printed. */
static int finish_output(const char *action) {
        if (fflush(stdout) == 0 && !ferror(stdout))
                return 0;
        (void)fprintf(stderr, "holdfastd pki %s: cannot write to the standard output\n", action);
        return 1;
}

/* Prints the directory of a CA, its fingerprint, and until when it is valid. */
static void print_ca(const char *before, const char *cert_dir, const struct hfd_pki_ca *ca) {
        char fingerprint[HFD_PKI_FINGERPRINT_MAX] = "", until[HF__MICROTIME_MAX];

        (void)hfd_pki_fingerprint(ca->cert_pem, fingerprint);
        hf__time_format(hfd_pki_valid_until(ca->cert_pem), until);
        (void)printf("%s %s: %s, valid until %s\n", before, cert_dir, fingerprint, until);
}

/* ---- init ---- */

/* The commands need no cancel token (hf_cancel_never): a signal ends the process, and the wait for
 * the lock has its own limit. After a signal the next command finds a directory that is complete or
 * has keys only (pki.c). */
int hfd_pki_init_main(const struct hfd_config *config) {
        struct hf_status status = {0};
        struct hfd_pki_ca ca;
        int r = hfd_pki_ca_init(config->cert_dir, hf_cancel_never(), &ca, &status);

        if (r != 0)
                return print_failure("init", r, &status);
        print_ca("made a CA in", config->cert_dir, &ca);
        hfd_pki_ca_done(&ca);
        return finish_output("init");
}

/* ---- export ---- */

/* The certificate and the key as one text, which the caller frees with hfd_secret_free. NULL:
 * out of memory. */
static char *join_texts(const struct hfd_pki_ca *ca) {
        assert(ca->cert_pem && ca->key_pem);
        size_t n_cert = strlen(ca->cert_pem), n_key = strlen(ca->key_pem);
        char *text = malloc(n_cert + n_key + 2); /* with a line break between them, and a NUL */

        if (!text)
                return NULL;
        memcpy(text, ca->cert_pem, n_cert);
        if (n_cert > 0 && text[n_cert - 1] != '\n')
                text[n_cert++] = '\n';
        memcpy(text + n_cert, ca->key_pem, n_key + 1);
        return text;
}

static int fail_write(const char *name, struct hf_status *reterr_status) {
        return hf_fail(reterr_status, -errno, "cannot write to %s: %s", name,
                       strerrordesc_np(errno));
}

/* Writes the text without a buffer, in which a copy of the key would stay. */
static int write_text(FILE *to, const char *name, const char *text,
                      struct hf_status *reterr_status) {
        (void)setvbuf(to, NULL, _IONBF, 0);
        return fputs(text, to) == EOF ? fail_write(name, reterr_status) : 0;
}

static int write_new_file(const char *file, const char *text, struct hf_status *reterr_status) {
        char temporary[PATH_MAX];

        assert(file && text);
        int r = hfd_new_file_begin(file, temporary, reterr_status);
        if (r != 0)
                return r;
        FILE *to = fopen(temporary, "we");
        r = to ? write_text(to, file, text, reterr_status) : fail_write(file, reterr_status);
        if (to && fclose(to) != 0 && r == 0)
                r = fail_write(file, reterr_status);
        if (r == 0)
                r = hfd_new_file_publish(temporary, file, reterr_status);
        if (r != 0)
                (void)unlink(temporary);
        return r;
}

static int write_export(const char *file, const char *text, struct hf_status *reterr_status) {
        return strcmp(file, "-") == 0
                       ? write_text(stdout, "the standard output", text, reterr_status)
                       : write_new_file(file, text, reterr_status);
}

int hfd_pki_export_main(const struct hfd_config *config) {
        struct hf_status status = {0};
        struct hfd_pki_ca ca = {0};
        char *text = NULL;
        int r = hfd_pki_ca_read(config->cert_dir, &ca, &status);

        if (r == 0 && !ca.key_pem)
                r = hf_fail(&status, HF_E_NOT_FOUND,
                            "the CA's key %s/ca.key is missing, and no instance could make its "
                            "certificate without it",
                            config->cert_dir);
        if (r == 0) {
                text = join_texts(&ca);
                r = text ? write_export(config->arguments[0], text, &status)
                         : hf_fail(&status, -ENOMEM, "out of memory");
        }
        hfd_secret_free(text);
        hfd_pki_ca_done(&ca);
        if (r != 0)
                return print_failure("export", r, &status);
        if (strcmp(config->arguments[0], "-") != 0)
                (void)printf("wrote the CA with its key to %s: remove it after the join, because "
                             "whoever has it is an administrator\n",
                             config->arguments[0]);
        return finish_output("export");
}

/* ---- join ---- */

/* Reads the standard input to its end. After a failure, too, *n bytes of text are filled, and the
 * caller overwrites them. Uses no FILE, whose buffer would keep a copy of the key. The last byte is
 * for noticing that there is more; after a success it is free for a NUL. */
static int fill_text(char text[INPUT_MAX + 1], size_t *n, struct hf_status *reterr_status) {
        while (*n <= INPUT_MAX) {
                ssize_t got = read(STDIN_FILENO, text + *n, INPUT_MAX + 1 - *n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return hf_fail(reterr_status, -errno, "cannot read the standard input: %s",
                                       strerrordesc_np(errno));
                if (got == 0)
                        return 0;
                *n += (size_t)got;
        }
        return hf_fail(reterr_status, HF_E_TOO_LARGE, "the standard input has more than %zu bytes",
                       INPUT_MAX);
}

/* Reads the standard input into malloc'ed text. */
static int read_input(char **ret_text, struct hf_status *reterr_status) {
        char *text = malloc(INPUT_MAX + 1);
        size_t n = 0;

        if (!text)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        int r = fill_text(text, &n, reterr_status);
        if (r == 0 && memchr(text, '\0', n))
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "cannot use the standard input: it has a NUL byte, so it is not text");
        if (r != 0) {
                explicit_bzero(text, n);
                free(text);
                return r;
        }
        text[n] = '\0';
        *ret_text = text;
        return 0;
}

/* A file that another user could replace is refused (hfd_read_file): its CA would be trusted. */
static int read_ca_file(const char *file, struct hfd_pki_ca *ret_ca,
                        struct hf_status *reterr_status) {
        bool from_input = strcmp(file, "-") == 0;
        char *text = NULL;
        int r = from_input ? read_input(&text, reterr_status)
                           : hfd_read_file(file, &text, reterr_status);

        if (r == 0)
                r = hfd_pki_ca_parse(text, from_input ? "the standard input" : file, ret_ca,
                                     reterr_status);
        hfd_secret_free(text);
        return r;
}

int hfd_pki_join_main(const struct hfd_config *config) {
        struct hf_status status = {0};
        HF__CLEANUP(hfd_pki_ca_done) struct hfd_pki_ca ca = {0};
        bool joined = false;
        int r = read_ca_file(config->arguments[0], &ca, &status);

        if (r == 0)
                r = hfd_pki_ca_join(config->cert_dir, &ca, hf_cancel_never(), &joined, &status);
        if (r != 0)
                return print_failure("join", r, &status);
        print_ca(joined ? "the CA is now in" : "the CA is already in", config->cert_dir, &ca);
        return finish_output("join");
}

/* ---- show ---- */

/* The fingerprint and the key id of the CA are what users compare between two hosts. */
static void print_description(const struct hfd_pki_description *d, bool is_ca, bool has_key) {
        char until[HF__MICROTIME_MAX];

        hf__time_format(d->valid_until, until);
        (void)printf("  subject      %s\n", d->subject);
        if (d->names[0])
                (void)printf("  names        %s\n", d->names);
        if (is_ca)
                (void)printf("  fingerprint  %s\n", d->fingerprint);
        if (is_ca && d->key_id[0])
                (void)printf("  key id       %s\n", d->key_id);
        if (!is_ca && d->from_ca)
                (void)printf("  issued by    the CA above\n");
        else if (!is_ca)
                (void)printf("  issued by    another CA: %s%s%s\n", d->issuer,
                             d->issuer_key_id[0] ? ", key id " : "", d->issuer_key_id);
        (void)printf("  valid until  %s\n", until);
        if (!has_key)
                (void)printf("  key          missing\n");
}

/* Reads a file that may be missing; then *ret_text stays as it is. */
static int read_optional(const char *path, char **ret_text, struct hf_status *reterr_status) {
        int r = hfd_read_file(path, ret_text, reterr_status);

        return r == HF_E_NOT_FOUND ? 0 : r;
}

/* Shows <cert-dir>/<name>.crt, which may be missing. */
static int show_certificate(const char *cert_dir, const char *name, const struct hfd_pki_ca *ca,
                            struct hf_status *reterr_status) {
        char cert_path[PATH_MAX], key_path[PATH_MAX];
        int n = snprintf(cert_path, sizeof cert_path, "%s/%s.crt", cert_dir, name);
        struct hfd_pki_description description;
        char *cert = NULL, *key = NULL;

        if (n < 0 || (size_t)n >= sizeof cert_path)
                return hf_fail(reterr_status, -ENAMETOOLONG, "certificate directory %.200s: %s",
                               cert_dir, strerrordesc_np(ENAMETOOLONG));
        (void)snprintf(key_path, sizeof key_path, "%s/%s.key", cert_dir, name);
        int r = read_optional(cert_path, &cert, reterr_status);
        if (r == 0)
                r = read_optional(key_path, &key, reterr_status);
        if (r == 0 && cert) {
                r = hfd_pki_describe(ca->cert_pem, cert, &description);
                if (r == HF_E_INVALID)
                        r = hf_fail(reterr_status, r, "%s is not a certificate in PEM form",
                                    cert_path);
        }
        if (r == 0) {
                (void)printf("%s%s\n", cert_path, cert ? "" : ": missing, the next start makes it");
                if (cert)
                        print_description(&description, strcmp(name, "ca") == 0, key != NULL);
        }
        free(cert);
        hfd_secret_free(key);
        return r;
}

int hfd_pki_show_main(const struct hfd_config *config) {
        static const char *const names[] = {"ca", "server", "admin"};
        struct hf_status status = {0};
        struct hfd_pki_ca ca = {0};
        int r = hfd_pki_ca_read(config->cert_dir, &ca, &status);

        for (size_t i = 0; r == 0 && i < sizeof names / sizeof names[0]; i++)
                r = show_certificate(config->cert_dir, names[i], &ca, &status);
        hfd_pki_ca_done(&ca);
        if (r != 0) {
                (void)fflush(stdout);
                return print_failure("show", r, &status);
        }
        return finish_output("show");
}
