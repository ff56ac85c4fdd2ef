/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the administrator's kubeconfig.
 *
 * Invariant: only the owner can read the file, because its key allows everything. The file never
 * has another mode than 0600, and the copy in memory is overwritten before it is freed. If root has
 * given the file to another user, the new file belongs to that user, too. But a file that another
 * user could have put there does not decide who the owner is.
 */
#include "server/auth/pki/admin_kubeconfig.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/strbuf.h"
#include "server/auth/files.h"
#include "server/auth/pki/pki.h"
#include "server/auth/trusted_path.h"
#include "server/auth/write_file.h"

/* Appends text as a JSON string in base64, whose alphabet needs no escapes. */
static void add_base64_string(struct hf__strbuf *out, const char *text) {
        hf__strbuf_putc(out, '"');
        hf__base64_encode(out, text, strlen(text));
        hf__strbuf_putc(out, '"');
}

static void add_string(struct hf__strbuf *out, const char *text) {
        hf__strbuf_json(out, text, strlen(text));
}

/* Adds the extension from which libholdfast takes further servers. */
static void add_extension(struct hf__strbuf *out, const struct hfd_admin_servers *others) {
        hf__strbuf_puts(out, ",\n    \"extensions\": [{\"name\": \"holdfast.dev/servers\", "
                             "\"extension\": {\"servers\": [");
        for (size_t i = 0; i < others->n; i++) {
                hf__strbuf_puts(out, i > 0 ? ", " : "");
                add_string(out, others->servers[i].url);
        }
        hf__strbuf_puts(out, "]}}]");
}

/* others: NULL = the cluster gets no extension. */
static void add_cluster(struct hf__strbuf *out, const struct hfd_pki *pki, const char *name,
                        const char *url, const struct hfd_admin_servers *others) {
        hf__strbuf_puts(out, "{\"name\": ");
        add_string(out, name);
        hf__strbuf_puts(out, ", \"cluster\": {\n    \"server\": ");
        add_string(out, url);
        hf__strbuf_puts(out, ",\n    \"certificate-authority-data\": ");
        add_base64_string(out, pki->ca_pem);
        if (others && others->n > 0)
                add_extension(out, others);
        hf__strbuf_puts(out, "}}");
}

static void add_context(struct hf__strbuf *out, const char *name) {
        hf__strbuf_puts(out, "{\"name\": ");
        add_string(out, name);
        hf__strbuf_puts(out, ", \"context\": {\"cluster\": ");
        add_string(out, name);
        hf__strbuf_puts(out, ", \"user\": \"holdfast-admin\"}}");
}

/* ---- the file ---- */

/* Opens the directory of the file, after the check that others cannot replace the file. Errors as
 * hfd_admin_kubeconfig_check. */
static int open_directory(const char *path, int *ret_fd, struct hf_status *reterr_status) {
        char directory[PATH_MAX];
        int n = snprintf(directory, sizeof directory, "%s", path);
        int r = n < 0 || (size_t)n >= sizeof directory ? -ENAMETOOLONG : 0;

        if (r == 0)
                r = hfd_trusted_open(dirname(directory), HFD_TRUSTED_PARENT, ret_fd, reterr_status);
        return r < 0 ? hf_fail(reterr_status, r, "cannot write %.400s: %s", path, strerror(-r)) : r;
}

int hfd_admin_kubeconfig_check(const char *path, struct hf_status *reterr_status) {
        int fd = -1, r = open_directory(path, &fd, reterr_status);

        if (fd >= 0)
                (void)close(fd);
        return r;
}

/* Replaces the file. The owner of the old file counts only if others cannot write to the directory:
 * in a directory with the sticky bit any user may have made the file. */
static int replace_file(const char *path, const char *text, struct hf_status *reterr_status) {
        uid_t owner = geteuid();
        gid_t group = getegid();
        struct stat directory, old;
        int fd = -1, r = open_directory(path, &fd, reterr_status);

        if (r != 0)
                return r;
        if (fstat(fd, &directory) == 0 && (directory.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
            lstat(path, &old) == 0 && S_ISREG(old.st_mode)) {
                owner = old.st_uid;
                group = old.st_gid;
        }
        (void)close(fd);
        return hfd_write_file_of(path, text, 0600, owner, group, reterr_status);
}

int hfd_admin_kubeconfig_write(const struct hfd_pki *pki, const char *path, const char *server_url,
                               const struct hfd_admin_servers *others,
                               struct hf_status *reterr_status) {
        struct hf__strbuf out = {.secret = true};
        size_t n_others = others ? others->n : 0;
        int r;

        assert(pki->ca_pem && pki->admin_cert_pem && pki->admin_key_pem);
        hf__strbuf_puts(&out, "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Config\",\n  "
                              "\"clusters\": [");
        add_cluster(&out, pki, "holdfast", server_url, others);
        for (size_t i = 0; i < n_others; i++) {
                hf__strbuf_puts(&out, ", ");
                add_cluster(&out, pki, others->servers[i].context, others->servers[i].url, NULL);
        }
        hf__strbuf_puts(&out, "],\n  \"users\": [{\"name\": \"holdfast-admin\", \"user\": {\n    "
                              "\"client-certificate-data\": ");
        add_base64_string(&out, pki->admin_cert_pem);
        hf__strbuf_puts(&out, ",\n    \"client-key-data\": ");
        add_base64_string(&out, pki->admin_key_pem);
        hf__strbuf_puts(&out, "}}],\n  \"contexts\": [");
        add_context(&out, "holdfast");
        for (size_t i = 0; i < n_others; i++) {
                hf__strbuf_puts(&out, ", ");
                add_context(&out, others->servers[i].context);
        }
        hf__strbuf_puts(&out, "],\n  \"current-context\": \"holdfast\"\n}\n");
        if (out.error)
                r = hf_fail(reterr_status, out.error, "cannot write %s: %s", path,
                            hf_strerror(out.error));
        else
                r = replace_file(path, out.data, reterr_status);
        hf__strbuf_done(&out);
        return r;
}
