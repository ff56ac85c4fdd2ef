/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells when the certificates in use expire: a metric, a warning, and the time at which the
 * generated ones are due. A reload then renews them.
 */
#include <stdbool.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

struct hfd_server;

/* Call it when hfd_certificates_read has read the certificates, and has renewed those that it can.
 * Updates the metric and the time of the next renewal. Warns of each certificate that still expires
 * within 30 days, because only the operator can replace it. Thread: as hfd_certificates_read. */
void hfd_certificate_expiry_note(struct hfd_server *server);
/* The boot time at which a renewal may be due, HF_NSEC_NEVER if never. It is not before next_try.
 * Thread: main. */
hf_nsec hfd_certificate_expiry_next(struct hfd_server *server, hf_nsec now, hf_nsec next_try);
/* Whether a generated certificate is to be renewed now, by a reload. If so, sets *next_try to a
 * day from now, because the reload may fail. *next_try is a boot time, which the caller keeps;
 * first 0. Thread: main. */
bool hfd_certificate_expiry_is_due(struct hfd_server *server, hf_nsec now, hf_nsec *next_try);
