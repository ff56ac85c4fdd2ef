/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a CA that was handed over as one text into its certificate and its key (hfd_pki_ca_parse).
 *
 * Invariant: the results contain only blocks of PEM, never the text around them, and the key is
 * only in the text of the key. So the key cannot reach the file of the certificate, which all may
 * read.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"

/* One block: from "-----BEGIN x-----", where x is the label, to the last dashes of the next line
 * that begins with "-----END ". Borrowed. */
struct block {
        const char *text, *label;
        size_t n, n_label;
};

/* Finds the next block at or after *at, and moves *at past the block. False: there is none, or it
 * is malformed: its first line lacks the dashes at the end, no line ends the block, that line has
 * another label or more than white space after the dashes, or another block begins before it. A
 * malformed block could contain a key under the label of a certificate. So the caller ignores it
 * and what follows it. */
static bool next_block(const char **at, struct block *ret_block) {
        static const char begin[] = "-----BEGIN ", end[] = "\n-----END ", dashes[] = "-----";
        const char *text = strstr(*at, begin);
        const char *label = text ? text + strlen(begin) : NULL;
        const char *after = label ? strstr(label, dashes) : NULL;
        const char *last = after ? strstr(after, end) : NULL;
        const char *other = label ? strstr(label, begin) : NULL;

        if (!last || memchr(label, '\n', (size_t)(after - label)) || (other && other < last))
                return false;
        last += strlen(end);
        if (strncmp(last, label, (size_t)(after - label)) != 0 ||
            strncmp(last + (after - label), dashes, strlen(dashes)) != 0)
                return false; /* the label at the end is another one */
        last += (size_t)(after - label) + strlen(dashes);
        const char *rest = last + strspn(last, " \t\r");
        if (*rest != '\n' && *rest != '\0')
                return false;
        *ret_block = (struct block){.text = text,
                                    .label = label,
                                    .n = (size_t)(last - text),
                                    .n_label = (size_t)(after - label)};
        *at = last;
        return true;
}

/* Whether the label of the block ends with `end`. The labels of keys have several beginnings. */
static bool is_labelled(const struct block *block, const char *end) {
        size_t n = strlen(end);

        return block->n_label >= n && memcmp(block->label + block->n_label - n, end, n) == 0;
}

/* Appends the block and a newline to text, which has *n bytes, then only NULs, and enough space. */
static void append_block(char *text, size_t *n, const struct block *block) {
        memcpy(text + *n, block->text, block->n);
        *n += block->n;
        text[(*n)++] = '\n';
}

static const char *fault_of(const struct hfd_pki_ca *ca, size_t n_certs, size_t n_keys) {
        if (n_certs == 0)
                return "it has no certificate in PEM form";
        if (n_keys != 1)
                return n_keys == 0 ? "it has no private key in PEM form" : "it has several keys";
        const char *fault = hfd_pki_key_fault(ca->key_pem);
        if (fault[0])
                return "its key is not an unencrypted private key in PEM form";
        return hfd_pki_ca_fault(ca->cert_pem, ca->key_pem);
}

int hfd_pki_ca_parse(const char *pem, const char *name, struct hfd_pki_ca *ret_ca,
                     struct hf_status *reterr_status) {
        /* + 2: a newline, which the last block may lack, and the NUL. */
        size_t space = strlen(pem) + 2, n_cert = 0, n_key = 0, n_certs = 0, n_keys = 0;
        HF__CLEANUP(hfd_pki_ca_done)
        struct hfd_pki_ca ca = {.cert_pem = calloc(1, space), .key_pem = calloc(1, space)};
        struct block block;

        if (!ca.cert_pem || !ca.key_pem)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        for (const char *at = pem; next_block(&at, &block);) {
                if (is_labelled(&block, "PRIVATE KEY")) {
                        append_block(ca.key_pem, &n_key, &block);
                        n_keys++;
                } else if (is_labelled(&block, "CERTIFICATE")) {
                        append_block(ca.cert_pem, &n_cert, &block);
                        n_certs++;
                }
        }
        const char *fault = fault_of(&ca, n_certs, n_keys);
        if (fault[0])
                return hf_fail(reterr_status, HF_E_INVALID, "%s is not a CA with its key: %s", name,
                               fault);
        *ret_ca = (struct hfd_pki_ca){.cert_pem = HF__TAKE(ca.cert_pem),
                                      .key_pem = HF__TAKE(ca.key_pem)};
        return 0;
}
