/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* resourceVersions. Kubernetes calls them opaque, but every known server uses a 64-bit revision
 * that only increases. The informer relies on that order where it can. Pure. */
#include <stdint.h>

#define HF__RESOURCE_VERSION_MAX 32 /* bytes of a resourceVersion with its NUL */

/* Returns the revision of a resourceVersion. 0: it is NULL, empty, "0", or not a decimal number of
 * 64 bits. */
uint64_t hf__resource_version_number(const char *resource_version);
