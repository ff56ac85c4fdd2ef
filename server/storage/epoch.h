/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Values of the epoch key (keys.h). Instances notice by a new value that the store has another
 * history. Thread: any.
 */
#include <holdfast/error.h>

#include "base/time_format.h"

#define HFD_EPOCH_MAX (HF__MICROTIME_MAX + 20) /* bytes: the time, a dash, 16 digits, the NUL */

/* Makes a value that no other copy and no other restore has: the time and a random number. 0, or
 * -EIO with a message. */
int hfd_epoch_make(char epoch[HFD_EPOCH_MAX], struct hf_status *reterr_status);
