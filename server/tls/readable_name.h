/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which strings of a name (a subject, for example) programs in Go can read. Go's library refuses a
 * certificate with any other string, so no such program sees whom the certificate names.
 *
 * Pure. Thread: any.
 */
#include <stdbool.h>

#include <openssl/x509.h>

bool hfd_readable_string(const ASN1_STRING *string);
/* Whether all strings of the name are readable. */
bool hfd_readable_name(const X509_NAME *name);
