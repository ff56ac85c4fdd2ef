/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts that ConfigMaps and Secrets have in common: maps whose keys must be valid file names,
 * and the field `immutable`. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_causes;

#define HFD_DATA_MAP_MAX (1u << 20) /* bytes of all values of an object, decoded */

/* Adds a cause for each key of the map `part` of object that hfd_is_config_key refuses. */
void hfd_data_map_validate_keys(const struct hf__json *object, const char *part,
                                struct hfd_causes *causes);
/* A map of an object. */
struct hfd_data_part {
        const char *name;
        bool is_base64; /* its values are bytes in base64 */
};

/*
 * If old is immutable, adds a cause for each of the parts that differs between old and object, and
 * for an attempt to clear `immutable`. old NULL = a create, which is never refused.
 */
void hfd_data_map_validate_immutable(const struct hf__json *object, const struct hf__json *old,
                                     const struct hfd_data_part *parts, size_t n_parts,
                                     struct hfd_causes *causes);
