/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Adds causes for what is wrong with a value, in the words of Kubernetes. Most messages name the
 * value as "spec.list[0].name in body". A cause that is there already is not added again. The
 * functions borrow their arguments for the call only. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/resources/causes.h"
#include "server/schema/place.h"

#define HFD_REPORT_PATH_MAX 160 /* as in struct hfd_cause */
/* Bytes of a value in a cause, with the NUL; longer ones are cut. */
#define HFD_REPORT_VALUE_MAX 310

struct hf__json;

struct hfd_check_report {
        struct hfd_causes *causes; /* borrowed */
        const char *prefix;        /* of the fields of causes; "" = none; borrowed */
};

/* Whether the causes have no room for another one. The functions that add a cause then return at
 * once; a caller that prints something for a cause asks first. */
bool hfd_check_report_is_full(const struct hfd_check_report *report);

/* Writes the path of a place as messages have it: "spec.list[0].name". */
void hfd_check_report_path(const struct hfd_place *place, char path[HFD_REPORT_PATH_MAX]);
/* Writes the field of a cause that the caller itself adds: the prefix and the path. A key of a map
 * (a place without `in`) is in brackets: "spec.map[key]". */
void hfd_check_report_field(const struct hfd_check_report *report, const struct hfd_place *place,
                            char field[HFD_REPORT_PATH_MAX]);
/* Writes a value as Kubernetes prints it in a cause: a text in quotes, anything else as JSON. */
void hfd_check_report_value(const struct hf__json *value, char text[HFD_REPORT_VALUE_MAX]);

/* "PATH in body DETAIL", an Invalid value. */
__attribute__((format(printf, 4, 5))) void
hfd_check_report_invalid(const struct hfd_check_report *report, const struct hfd_place *place,
                         const struct hf__json *value, const char *format, ...);
/* The same where the bad value is a number of elements or members. */
__attribute__((format(printf, 4, 5))) void
hfd_check_report_count(const struct hfd_check_report *report, const struct hfd_place *place,
                       size_t n, const char *format, ...);
/* The value has the type `found`, not `wanted`; or the format, where scalar.c compares formats. */
void hfd_check_report_type(const struct hfd_check_report *report, const struct hfd_place *place,
                           const char *wanted, const char *found);
/* The text does not have the format. */
void hfd_check_report_format(const struct hfd_check_report *report, const struct hfd_place *place,
                             const char *format, const char *text);
/* The member at `place` is missing. */
void hfd_check_report_required(const struct hfd_check_report *report,
                               const struct hfd_place *place);
/* A text has more than `max` characters, which Kubernetes' message calls bytes. */
void hfd_check_report_too_long(const struct hfd_check_report *report, const struct hfd_place *place,
                               int64_t max);
/* A list or an object has n elements or members, more than `max`. */
void hfd_check_report_too_many(const struct hfd_check_report *report, const struct hfd_place *place,
                               size_t n, int64_t max);
/* The value is not one of `values`, the array of an enum. */
void hfd_check_report_enum(const struct hfd_check_report *report, const struct hfd_place *place,
                           const struct hf__json *value, const struct hf__json *values);
/* An Invalid value with a whole message. value: as the cause shows it. */
void hfd_check_report_detail(const struct hfd_check_report *report, const struct hfd_place *place,
                             const char *value, const char *detail);
/* A whole message whose cause does not have the path as its field, but only the prefix, or "<nil>"
 * if there is none. */
__attribute__((format(printf, 2, 3))) void
hfd_check_report_message(const struct hfd_check_report *report, const char *format, ...);
