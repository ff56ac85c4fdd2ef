/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a PersistentVolumeClaim may ask for more, as kube-apiserver's admission plug-in
 * PersistentVolumeClaimResize decides. Other writes pass. Thread: that of the write (write.h).
 * Nothing blocks.
 */
#include "server/registry/write/write.h"

/* False: the response was sent, or another attempt was started. */
bool hfd_write_claim_may_grow(struct hfd_write *w);
