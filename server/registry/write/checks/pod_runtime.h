/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The RuntimeClass that a new pod names: it must exist, and the pod gets its overhead, its node
 * selector and its tolerations. Other writes pass. Thread: that of the write (write.h). Nothing
 * blocks.
 */
#include "server/registry/write/write.h"

/* Sets overhead, node selector and tolerations from the class. False: the response was sent, or
 * another attempt was started. */
bool hfd_write_runtime_assign(struct hfd_write *w);
/* Whether the pod, as admission has left it, has the overhead of its class. False: the response was
 * sent, or another attempt was started. */
bool hfd_write_runtime_allows(struct hfd_write *w);
