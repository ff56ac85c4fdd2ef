/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A write of a CertificateSigningRequest: the checks that depend on its user, on its path, and on
 * X.509. For other kinds these functions do nothing. Thread: that of the write (write.h). Nothing
 * blocks.
 */
#include "server/registry/write/write.h"

struct hf__json;
struct hfd_causes;

/* Sets the members of w->object that the server decides. old NULL = a create. 0 or -ENOMEM. */
int hfd_write_certificate_prepare(struct hfd_write *w, const struct hf__json *old);
/* Adds the causes that the strategy cannot know. */
void hfd_write_certificate_validate(struct hfd_write *w, const struct hf__json *old,
                                    struct hfd_causes *causes);
/*
 * Whether the user may ask for, approve or sign the certificate of w->object, which is valid.
 * False: the response was sent, or another attempt was started.
 */
bool hfd_write_may_certify(struct hfd_write *w, const struct hf__json *old);
