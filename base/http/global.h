/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Initialisation of libcurl for the whole process. A program that embeds libholdfast does it
 * by itself (holdfast/host.h), so this function is for Holdfast's own programs only.
 */

/* Calls curl_global_init. Call it before anything else uses libcurl, and not on two threads at a
 * time. holdfastd calls it late, with its first call to a server outside (server/outbound), because
 * only such calls use libcurl. 0 or -ENOMEM. */
int hf__http_global_init(void);
