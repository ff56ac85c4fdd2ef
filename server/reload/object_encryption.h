/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file of --encryption-provider-config: read when the server starts, and at each reload.
 *
 * Threads: hfd_object_encryption_start runs on that of hfd_assembly_make,
 * hfd_object_encryption_reload on that of the reload. Both block on the file.
 */
#include <holdfast/error.h>

struct hfd_server;

/* If the flag is given: reads the file, and makes server->store one that encrypts. 0; -ENOMEM; or
 * an error of hfd_encryption_read, whose message names the flag. */
int hfd_object_encryption_start(struct hfd_server *server, struct hf_status *reterr_status);
/* If the flag is given: reads the file again. If it has changed, uses it from now on, and fills the
 * cache again, for which it waits. After an error of the file, the previous keys remain in use.
 * HF_E_CANCELED: the server stops. HF_E_TIMEOUT: the store does not respond, and the cache is
 * filled later. */
int hfd_object_encryption_reload(struct hfd_server *server, struct hf_status *reterr_status);
