/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Validates the names of signers of certificates: in certificate requests, and in the volumes of
 * pods that get certificates or trust anchors. Pure. Thread: any.
 */
#include <stdbool.h>

struct hfd_causes;

/* "DOMAIN/PATH". Adds a cause for each rule that the name breaks. "" is a "Required value". field:
 * the path of the name, for the causes. */
void hfd_signer_name_validate(const char *name, const char *field, struct hfd_causes *causes);
/* Whether the domain is kubernetes.io, or below it. */
bool hfd_is_kubernetes_signer(const char *name);
