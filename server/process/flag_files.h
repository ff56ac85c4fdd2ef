/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files and directories that flags name. A message about a fault that only the user can correct
 * names the flag and the path; at the start, the caller then ends the process with status 2.
 *
 * Thread: any. Only hfd_flag_read_pem blocks, on the file.
 */
#include <stdbool.h>

#include <holdfast/error.h>

#include "server/tls/pem_check.h"

/* Whether r, the result of using a file or directory, says that the user must correct something.
 * False for faults that may pass: a full disk, a lost disk, no memory, no descriptors, a lock that
 * another process holds. */
bool hfd_flag_is_mistake(int r);
/* Puts "flag --<flag>: " in front of the message if r is a mistake and the message names no flag
 * yet. Returns r. */
int hfd_flag_result(const char *flag, int r, struct hf_status *reterr_status);

/* One file of PEM text that a flag names. */
struct hfd_flag_pem {
        const char *flag, *path; /* path: "" = the flag is not given */
        enum hfd_pem_kind kind;
};

/* Reads the file and checks its text. The caller frees *ret_text; if a key may be in it, by
 * hfd_secret_free: the file of a certificate may contain its key. *ret_text is NULL if the flag is
 * not given, and after an error. 0, or an error of hfd_read_file or hfd_pem_check. */
int hfd_flag_read_pem(const struct hfd_flag_pem *file, char **ret_text,
                      struct hf_status *reterr_status);
/* Checks that the key belongs to the certificate. Neither text is NULL. 0 or HF_E_INVALID, also if
 * memory has run out. */
int hfd_flag_check_pair(const struct hfd_flag_pem *cert, const char *cert_pem,
                        const struct hfd_flag_pem *key, const char *key_pem,
                        struct hf_status *reterr_status);
