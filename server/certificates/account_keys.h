/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The keys of the tokens of service accounts: those of flags, and otherwise the generated one. */
#include <holdfast/error.h>

struct hfd_config;
struct hfd_jwt_key_set;

/*
 * Reads the files of --service-account-signing-key-file and --service-account-key-file. generated:
 * the PEM text of the key that signs if the former is not given; NULL = it is not made yet, so the
 * set has no such key. HF_E_INVALID and errors of hfd_read_file, with a message that names the flag
 * and the file. Blocks on files. The caller owns the reference.
 */
int hfd_account_keys_read(const struct hfd_config *config, const char *generated,
                          struct hfd_jwt_key_set **ret_keys, struct hf_status *reterr_status);
