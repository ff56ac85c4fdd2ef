/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The status model as text for people. Pure: the caller passes the time and prints the text.
 */
#include <stdint.h>

struct hf__strbuf;
struct hfd_status_model;

#define HFD_STATUS_AGE_MAX      48 /* bytes of a rendered age, with its NUL */
#define HFD_STATUS_IDENTITY_MAX 48 /* bytes of a shortened identity, with its NUL */

/* Appends the tables of instances, Leases and hand-overs. Ages are relative to now_us
 * (microseconds since 1970). An error is recorded in out->error. */
void hfd_status_render(const struct hfd_status_model *model, int64_t now_us,
                       struct hf__strbuf *out);

/* Appends the facts that change neither with time nor with a renewal. If two models have the same
 * text, printing the second one would show nothing new, apart from ages, "(silent)" and another
 * message of a read error. */
void hfd_status_render_facts(const struct hfd_status_model *model, struct hf__strbuf *out);

/* Formats an age in microseconds as kubectl does: "12s", "3m4s", "5h". Negative ages are "0s". */
void hfd_status_render_age(int64_t age_us, char text[HFD_STATUS_AGE_MAX]);

/* Shortens an identity of the form that holdfastd creates: host_a_boot_91d0123456789abc becomes
 * "a/91d0". Any other identity is copied; one of more than 40 characters is cut to 39 and "~". */
void hfd_status_render_identity(const char *identity, char text[HFD_STATUS_IDENTITY_MAX]);
