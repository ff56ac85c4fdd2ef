/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The class of a new PersistentVolumeClaim or Ingress that names none: the StorageClass or
 * IngressClass that is marked as the default. Other writes pass. Thread: that of the write
 * (write.h). Nothing blocks.
 */
#include "server/registry/write/write.h"

/* Sets the class if there is a default. False: the response was sent, or another attempt was
 * started. */
bool hfd_write_class_assign(struct hfd_write *w);
