/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The service account of a new pod: its name, its token and its Secrets. Kubernetes' apiserver has
 * a plug-in of admission for it, ServiceAccount. Other writes pass, except those that add ephemeral
 * containers; everything passes if the registry assigns no accounts. Thread: that of the write
 * (write.h). Nothing blocks.
 */
#include "server/registry/write/write.h"

/* Sets the members that the pod leaves out. False: the response was sent, or another attempt was
 * started. */
bool hfd_write_account_assign(struct hfd_write *w);
/* Whether the pod, as admission has left it, may have its account. Also for ephemeral containers
 * that are added to a pod: whether the account allows their Secrets. False: the response was sent,
 * or another attempt was started. */
bool hfd_write_account_allows(struct hfd_write *w);
