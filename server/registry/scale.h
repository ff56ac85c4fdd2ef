/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The subresource scale of custom resources: an object shown as a Scale of autoscaling/v1, whose
 * replicas are at the paths that the definition names. Pure. Thread: owner of the object.
 */
#include "server/resources/causes.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/response.h"

struct hf__json;

/* The row of the kind Scale, which is in no table. */
const struct hfd_resource *hfd_scale_row(void);
/* Returns the Scale of an object of the version, which the caller frees. NULL = out of memory. */
struct hf__json *hfd_scale_make(const struct hfd_custom_version *version,
                                const struct hf__json *object);
/* Whether the object has replicas; a Scale cannot be read without them. */
bool hfd_scale_has_replicas(const struct hfd_custom_version *version,
                            const struct hf__json *object);
/* Sets the object's replicas to those of scale. 0 or -ENOMEM. */
int hfd_scale_set(const struct hfd_custom_version *version, const struct hf__json *scale,
                  struct hf__json *object);
/* Whether a Scale of a client is valid. False: response is a 422. */
bool hfd_scale_validate(const struct hf__json *scale, const char *name,
                        struct hfd_response *response);
/* Adds a cause if the object has something at the paths that is no number of replicas. */
void hfd_scale_validate_object(const struct hfd_custom_version *version,
                               const struct hf__json *object, struct hfd_causes *causes);
