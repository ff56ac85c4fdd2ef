/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the tests of server-side apply share: a kind that has every type of list and map, and random
 * objects of that kind. Thread: that of the test. */
#include <stdint.h>

struct hf__json;
struct hfd_schema;

extern const struct hfd_schema *const apply_fixture_thing;

/* Parses JSON in which ' stands for ". */
struct hf__json *apply_fixture_parse(const char *text);
/* Prints JSON with ' for ", into one of eight static buffers in turn. */
const char *apply_fixture_print(const struct hf__json *json);

/* The next number of a sequence: 0 .. n - 1. The seed must not be 0. */
unsigned apply_fixture_random(uint64_t *seed, unsigned n);
/* A random object. part: 0 = an object with fields of all kinds; 1 .. 4 = only the fields of that
 * part, so that objects of different parts have no field in common. */
struct hf__json *apply_fixture_random_thing(uint64_t *seed, unsigned part);
