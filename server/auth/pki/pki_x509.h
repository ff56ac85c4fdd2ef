/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Steps that are the same for several kinds of certificates. Private to server/auth/pki/. A
 * function may leave entries in OpenSSL's error queue, which its caller empties. Threads: any, no
 * lock.
 */
#include <stdbool.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

/* A copy of the text that was written to a memory BIO; the caller frees it. 0 or -ENOMEM. */
int hfd_pki_x509_text(BIO *bio, char **ret_text);
/* Sets a random serial number. False: OpenSSL failed. */
bool hfd_pki_x509_set_serial(X509 *cert);
/* Adds an extension; value has the syntax of OpenSSL's configuration. False: OpenSSL failed. */
bool hfd_pki_x509_extend(X509 *cert, X509 *issuer, int nid, const char *value);
/* Limits the lifetime to the CA's, because verifiers reject a chain whose CA has expired. False:
 * OpenSSL failed. */
bool hfd_pki_x509_limit(X509 *cert, X509 *ca);
/* Signs the certificate and prints it; the caller frees the text. 0, -ENOMEM or -EIO. Empties the
 * error queue. */
int hfd_pki_x509_sign(X509 *cert, EVP_PKEY *signer, char **ret_cert_pem);
