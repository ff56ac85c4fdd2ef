/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Initialisation of libcurl for the whole process. It is the host's duty (holdfast/host.h), so this
 * is for Holdfast's own programs only and not part of libholdfast.
 */

/* Calls curl_global_init. Once, before the first thread starts. 0 or -ENOMEM. */
int hf__http_global_init(void);
