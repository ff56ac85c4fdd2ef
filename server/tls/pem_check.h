/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks PEM texts before they are used, so that the message can say which file is at fault.
 *
 * Threads: any. OpenSSL's error queue of the thread is empty afterwards.
 */
#include <stdbool.h>

#include <holdfast/error.h>

enum hfd_pem_kind {
        HFD_PEM_CHAIN, /* a certificate, followed by its chain */
        HFD_PEM_KEY,   /* a private key */
        HFD_PEM_CA,    /* certificates that are trusted */
};

/* Checks that the text can be used in a TLS context. 0, -ENOMEM, or HF_E_INVALID: the message
 * begins with `name`, which says where the text is from, and has the reason and the remedy. */
int hfd_pem_check(enum hfd_pem_kind kind, const char *name, const char *pem,
                  struct hf_status *reterr_status);
/* Whether the key belongs to the first certificate. hfd_pem_check must have accepted both texts.
 * Also false if memory has run out. */
bool hfd_pem_is_pair(const char *cert_pem, const char *key_pem);
