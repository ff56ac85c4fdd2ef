/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file of --encryption-provider-config: read when the server starts, and at each reload.
 *
 * Threads: hfd_object_encryption_start runs on that of hfd_assembly_make,
 * hfd_object_encryption_reload on that of the reload. Both block on the file, and the reload also
 * on the store.
 */
#include <holdfast/error.h>

struct hfd_server;

/* If the flag is given: reads the file, and makes server->store one that encrypts. On an error
 * server->store stays as it is. 0; an error of hfd_encryption_read, whose message names the flag if
 * the user must correct something; or one of hfd_encrypted_store_new. */
int hfd_object_encryption_start(struct hfd_server *server, struct hf_status *reterr_status);
/* If the flag is given: reads the file again. If its rules have changed, uses them from now on,
 * fills the cache again and waits until it is filled, but 60 s at most. HF_E_CANCELED: the server
 * stops. HF_E_TIMEOUT: the new keys are in use, but the store does not respond, and the cache is
 * filled later. After any other error the previous keys remain in use. */
int hfd_object_encryption_reload(struct hfd_server *server, struct hf_status *reterr_status);
