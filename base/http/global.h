/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Initialisation of libcurl for the whole process. The host must do it (holdfast/host.h), so this
 * function is for Holdfast's own programs only and is not part of libholdfast.
 */

/* Calls curl_global_init. Call it once, before the first thread starts. 0 or -ENOMEM. */
int hf__http_global_init(void);
