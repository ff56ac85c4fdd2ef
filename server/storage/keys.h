/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where things lie in the store, for a prefix P (--etcd-prefix, "/registry"):
 *
 *      P/<resource>/<ns>/<name>   objects, as JSON without resourceVersion (cluster-scoped:
 * P/<resource>/<name>). <resource> is the plural, for a group other than the core and coordination
 * groups "<group>/<plural>" P.holdfast/terms/<ns>/<name>  term records (term_record.h), outside P/
 * as the design asks P.holdfast/compact            the compactor's agreement
 *
 * '.' sorts before '/', and both before '0', so one watch of [P., P0) sees objects and term records
 * in one order.
 */
#include <stdbool.h>
#include <stddef.h>

#define HFD_KEY_MAX 1024

int hfd_key_terms(char *key, const char *prefix, const char *ns,
                  const char *name); /* 0 or HF_E_TOO_LARGE */
bool hfd_key_is_of_terms(const char *key, const char *prefix);
/*
 * The first key behind all keys with the prefix, so that they are [prefix, end). Empty when there
 * is none (the prefix is empty or all 0xff). 0 or HF_E_TOO_LARGE. end has HFD_KEY_MAX bytes.
 */
int hfd_key_prefix_end(char *end, const char *prefix);
