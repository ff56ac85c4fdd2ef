/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads an EncryptionConfiguration (apiserver.config.k8s.io/v1), in YAML or JSON.
 *
 * Stricter than Kubernetes where it would not encrypt what somebody means to encrypt, or where a
 * value could not be read back: a resource that is not served in a group that is, a resource or a
 * key's name that is given twice, Leases. The providers are aesgcm, aescbc and identity. Thread:
 * any.
 */
#include <holdfast/error.h>

#include "server/encryption/encryption.h"

/* Parses the n bytes of text. 0; -ENOMEM; HF_E_INVALID, HF_E_TOO_LARGE or HF_E_UNAVAILABLE (YAML,
 * and libyaml is not installed): the message is one line and has no secret. */
int hfd_encryption_parse(const char *text, size_t n, struct hfd_encryption **ret_encryption,
                         struct hf_status *reterr_status);
/* Reads and parses the file, which only root and the user of this process may be able to change.
 * Also the errors of hfd_read_file. The message names the file. Blocks on the file. */
int hfd_encryption_read(const char *path, struct hfd_encryption **ret_encryption,
                        struct hf_status *reterr_status);
