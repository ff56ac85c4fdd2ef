/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Group versions for which the server maintains an APIService: those of its built-in resources, and
 * those of CustomResourceDefinitions. Immutable. Thread: any. */
#include <stdbool.h>

/* A group version that this server serves. The strings are borrowed: static ones of a built-in
 * resource, or those of a definition or of a buffer of the caller. */
struct hfd_api_version {
        const char *group, *version;
        int group_priority, version_priority;
        /* The APIService is deleted when no definition serves the version any more. */
        bool is_custom;
};
