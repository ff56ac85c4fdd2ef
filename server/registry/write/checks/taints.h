/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The taint of a new node, and the tolerations that let a pod stay for some minutes on a node that
 * is not ready or not reachable. Other writes pass. Kubernetes' apiserver has plug-ins of admission
 * for them, TaintNodesByCondition and DefaultTolerationSeconds. Thread: that of the write
 * (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

/* Adds to w->object, if it is a pod or a new node, the tolerations or the taint that it does not
 * have yet. False: the response was sent. */
bool hfd_write_taint(struct hfd_write *w);
