/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks the certificate requests (PKCS #10) of clients, and issues certificates for them. Input is
 * PEM text of n bytes, which needs no NUL at the end. It comes from clients, so it may be anything.
 * Apart from random numbers, results depend on the arguments only.
 *
 * Threads: any, no lock. hfd_pki_request_fault verifies one signature, and hfd_pki_issue also makes
 * one. The other functions only parse.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>

/* Why the text is not a request with a valid signature by its own key, or why its key or its
 * alternative names are not accepted; "" when all is well; NULL = out of memory. Static storage.
 * The words are those of Go's libraries where these have a fixed text. */
const char *hfd_pki_request_fault(const char *pem, size_t n);
/* The same for the subject of a request that this server is to sign. The approver may read the
 * request with a program in Go, which shows one common name only, and no string of an unusual type.
 * Requests to other signers may have any subject. */
const char *hfd_pki_request_subject_fault(const char *pem, size_t n);
/* Whether the subject of the request has that organisation, compared as in the certificate of a
 * client. 1: it has; 0: it has not, or the text is not a request; or -ENOMEM. */
int hfd_pki_request_in(const char *pem, size_t n, const char *organisation);
/* Why the PEM blocks of the text are not one or more certificates and nothing else; "" when they
 * are; NULL = out of memory. As in Kubernetes, text outside the blocks is ignored. Static
 * storage. */
const char *hfd_pki_certificates_fault(const char *pem, size_t n);

/* Describes a certificate to issue. All texts are borrowed. */
struct hfd_pki_issue {
        const char *ca_cert_pem, *ca_key_pem;
        const char *request_pem;
        size_t n_request;
        bool digital_signature, key_encipherment; /* the usages of the key */
        int64_t now;     /* seconds since 1970; the certificate is valid from 5 minutes before */
        int64_t seconds; /* the lifetime, above 0; from 8 hours on it includes these 5 minutes */
};
/*
 * Issues a certificate for a client, with the subject and the names of the request as far as
 * Kubernetes copies them. It is valid for the lifetime, or until the CA expires if that is sooner.
 * The caller frees *ret_cert_pem. 0; -ENOMEM; -EIO (OpenSSL failed); HF_E_UNAVAILABLE: the CA has
 * expired or cannot be used; or HF_E_INVALID: no certificate is issued for the request, and
 * *ret_fault (static storage) is the reason.
 */
int hfd_pki_issue(const struct hfd_pki_issue *issue, char **ret_cert_pem, const char **ret_fault);
