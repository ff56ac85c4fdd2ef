/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads an EncryptionConfiguration (apiserver.config.k8s.io/v1), in YAML or JSON.
 *
 * Some configurations are refused that Kubernetes accepts, because they would leave an object
 * unencrypted that an administrator means to encrypt, or make a value unreadable. They name Leases
 * or a resource that a built-in group does not have, give two keys the same name, or have a colon
 * in the name of a key. The providers are aesgcm, aescbc and identity. Thread: any.
 */
#include <holdfast/error.h>

#include "server/encryption/encryption.h"

/* Parses the n bytes of text, which a NUL follows. 0: the caller owns the reference.
 * -ENOMEM, HF_E_INVALID, HF_E_TOO_LARGE or HF_E_UNAVAILABLE (the text is YAML, and libyaml is not
 * installed): the message is one line and has no secret. */
int hfd_encryption_parse(const char *text, size_t n, struct hfd_encryption **ret_encryption,
                         struct hf_status *reterr_status);
/* Reads the file and parses it in the same way. Refuses a file that users other than root and the
 * user of this process could change. Returns also the errors of hfd_read_file. The message names
 * the file. Blocks on the file. */
int hfd_encryption_read(const char *path, struct hfd_encryption **ret_encryption,
                        struct hf_status *reterr_status);
