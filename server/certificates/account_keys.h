/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The keys that sign and verify the tokens of service accounts. They come from the files that flags
 * name. If no flag names a key that signs, a generated key signs. */
#include <holdfast/error.h>

struct hfd_config;
struct hfd_jwt_key_set;

/*
 * Reads the files of --service-account-signing-key-file and --service-account-key-file. generated:
 * the PEM text of the generated key; NULL = it is not made yet, so without the first flag no key of
 * the set signs. 0, -ENOMEM, or an error of hfd_read_file or hfd_jwt_key_set_add. The message names
 * the file, unless memory has run out, and, if the user must correct something
 * (hfd_flag_is_mistake), the flag. Blocks on files. *ret_keys is set on success only; the caller
 * owns the reference. Thread: any; no state is kept between calls.
 */
int hfd_account_keys_read(const struct hfd_config *config, const char *generated,
                          struct hfd_jwt_key_set **ret_keys, struct hf_status *reterr_status);
