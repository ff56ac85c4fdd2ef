/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The required content of the ConfigMap kube-root-ca.crt of a namespace. Pure. Thread: any. */
#include <holdfast/error.h>

struct hf__json;

#define HFD_ROOT_CA_NAME "kube-root-ca.crt"

enum hfd_root_ca_step {
        HFD_ROOT_CA_KEEP,   /* it has what it must have */
        HFD_ROOT_CA_UPDATE, /* hfd_root_ca_restore, then an update */
        HFD_ROOT_CA_REPLACE /* it is immutable: delete it, and create it again */
};

/* map: the ConfigMap. pem: the CA that it must have. */
enum hfd_root_ca_step hfd_root_ca_next(const struct hf__json *map, const char *pem);
/* Sets the data of the ConfigMap to the CA alone. Adds the annotation that describes the ConfigMap,
 * unless it has one. Other metadata stay. 0 or -ENOMEM. */
int hfd_root_ca_restore(struct hf__json *map, const char *pem);
/* A new ConfigMap. 0 or -ENOMEM. The caller frees it. */
int hfd_root_ca_new(const char *pem, struct hf__json **ret_map);
