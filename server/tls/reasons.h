/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The texts of OpenSSL's errors. OpenSSL loads all of them when it is initialized: 60 KB, and pages
 * of each of its parts, of which most are not used otherwise, 190 KB. A server needs them only to
 * report a failure.
 *
 * Threads: any.
 */

/* Keeps OpenSSL from loading the texts, and initializes it. Has no effect if OpenSSL has been used
 * before, because then they are loaded. */
void hfd_tls_reasons_defer(void);
/* Loads the texts if they were deferred: for code that reads them itself (libcurl). */
void hfd_tls_reasons_load(void);
/* The text of an error of OpenSSL's queue. Static. NULL: there is none, or code is 0. */
const char *hfd_tls_reason(unsigned long code);
