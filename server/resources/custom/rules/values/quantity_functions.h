/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' functions of quantities: quantity('1Gi').isLessThan(quantity('2Gi')). Immutable; ends
 * with a row without a name. Thread: any. */
#include "cel/values/function.h"

extern const struct hf__cel_row hfd_quantity_functions[];
