/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the administrator's kubeconfig.
 *
 * Invariant: the file holds a key that may do everything. It never exists with another mode than
 * 0600, and the copy in memory is overwritten before it is freed.
 */
#include "server/auth/admin_kubeconfig.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/auth/files.h"
#include "server/auth/pki.h"

/* A JSON string with text in base64, whose alphabet needs no escaping. */
static void add_base64(struct hf__strbuf *out, const char *text) {
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        size_t n = strlen(text);
        hf__strbuf_putc(out, '"');
        for (size_t i = 0; i < n; i += 3) {
                size_t n_left = n - i;
                uint32_t bits = (uint32_t)(unsigned char)text[i] << 16;
                bits |= n_left > 1 ? (uint32_t)(unsigned char)text[i + 1] << 8 : 0;
                bits |= n_left > 2 ? (uint32_t)(unsigned char)text[i + 2] : 0;
                hf__strbuf_putc(out, digits[bits >> 18]);
                hf__strbuf_putc(out, digits[bits >> 12 & 63]);
                hf__strbuf_putc(out, n_left > 1 ? digits[bits >> 6 & 63] : '=');
                hf__strbuf_putc(out, n_left > 2 ? digits[bits & 63] : '=');
        }
        hf__strbuf_putc(out, '"');
}

int hfd_admin_kubeconfig_write(const struct hfd_pki *pki, const char *path, const char *server_url,
                               struct hf_status *reterr_status) {
        struct hf__strbuf out = {0};
        int r;

        assert(pki->ca_pem && pki->admin_cert_pem && pki->admin_key_pem);
        hf__strbuf_puts(&out, "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Config\",\n  "
                              "\"clusters\": [{\"name\": \"holdfast\", \"cluster\": {\n"
                              "    \"server\": ");
        hf__strbuf_json(&out, server_url, strlen(server_url));
        hf__strbuf_puts(&out, ",\n    \"certificate-authority-data\": ");
        add_base64(&out, pki->ca_pem);
        hf__strbuf_puts(&out, "}}],\n  \"users\": [{\"name\": \"holdfast-admin\", \"user\": {\n    "
                              "\"client-certificate-data\": ");
        add_base64(&out, pki->admin_cert_pem);
        hf__strbuf_puts(&out, ",\n    \"client-key-data\": ");
        add_base64(&out, pki->admin_key_pem);
        hf__strbuf_puts(&out, "}}],\n  \"contexts\": [{\"name\": \"holdfast\", \"context\": "
                              "{\"cluster\": \"holdfast\", \"user\": \"holdfast-admin\"}}],\n  "
                              "\"current-context\": \"holdfast\"\n}\n");
        if (out.error)
                r = hf_fail(reterr_status, out.error, "cannot write %s: %s", path,
                            hf_strerror(out.error));
        else
                r = hfd_write_file(path, out.data, 0600, reterr_status);
        if (out.data)
                explicit_bzero(out.data, out.n);
        hf__strbuf_done(&out);
        return r;
}
