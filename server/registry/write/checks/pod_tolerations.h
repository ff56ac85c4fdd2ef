/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tolerations that a pod has for some minutes on a node that is lost. Other writes pass.
 * Kubernetes' apiserver has a plug-in of admission for it, DefaultTolerationSeconds. Thread: that
 * of the write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

/* Adds what w->object, a pod, has not. False: the response was sent. */
bool hfd_write_tolerate(struct hfd_write *w);
