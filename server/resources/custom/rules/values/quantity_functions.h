/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' functions of CEL for quantities: quantity('1Gi').isLessThan(quantity('2Gi')). */
#include "cel/values/function.h"

/* Static and immutable; ends with a row without a name. Thread: any. */
extern const struct hf__cel_row hfd_quantity_functions[];
