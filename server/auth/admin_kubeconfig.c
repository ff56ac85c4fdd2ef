/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the administrator's kubeconfig.
 *
 * Invariant: nobody else can read the file, because whoever has the key in it may do everything.
 * The file never has a mode other than 0600, and the copy in memory is overwritten before it is
 * freed.
 */
#include "server/auth/admin_kubeconfig.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"
#include "base/strbuf.h"
#include "server/auth/files.h"
#include "server/auth/pki.h"

/* Appends text as a JSON string in base64, whose alphabet needs no escapes. */
static void add_base64_string(struct hf__strbuf *out, const char *text) {
        hf__strbuf_putc(out, '"');
        hf__base64_encode(out, text, strlen(text));
        hf__strbuf_putc(out, '"');
}

int hfd_admin_kubeconfig_write(const struct hfd_pki *pki, const char *path, const char *server_url,
                               struct hf_status *reterr_status) {
        struct hf__strbuf out = {.secret = true};
        int r;

        assert(pki->ca_pem && pki->admin_cert_pem && pki->admin_key_pem);
        hf__strbuf_puts(&out, "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Config\",\n  "
                              "\"clusters\": [{\"name\": \"holdfast\", \"cluster\": {\n"
                              "    \"server\": ");
        hf__strbuf_json(&out, server_url, strlen(server_url));
        hf__strbuf_puts(&out, ",\n    \"certificate-authority-data\": ");
        add_base64_string(&out, pki->ca_pem);
        hf__strbuf_puts(&out, "}}],\n  \"users\": [{\"name\": \"holdfast-admin\", \"user\": {\n    "
                              "\"client-certificate-data\": ");
        add_base64_string(&out, pki->admin_cert_pem);
        hf__strbuf_puts(&out, ",\n    \"client-key-data\": ");
        add_base64_string(&out, pki->admin_key_pem);
        hf__strbuf_puts(&out, "}}],\n  \"contexts\": [{\"name\": \"holdfast\", \"context\": "
                              "{\"cluster\": \"holdfast\", \"user\": \"holdfast-admin\"}}],\n  "
                              "\"current-context\": \"holdfast\"\n}\n");
        if (out.error)
                r = hf_fail(reterr_status, out.error, "cannot write %s: %s", path,
                            hf_strerror(out.error));
        else
                r = hfd_write_file(path, out.data, 0600, reterr_status);
        hf__strbuf_done(&out);
        return r;
}
