/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pause before a controller compares the default objects of a kind with the stored ones.
 *
 * In a new term all controllers begin at the same moment. Those that have work write what clients
 * wait for, and the comparisons, which read dozens of objects one by one, would delay these writes.
 */
#include <holdfast/informer.h>
#include <holdfast/leader.h>

/* Waits for a moment, or until the term drains, if the informer has objects of the kind. Otherwise
 * it returns at once, because the defaults may be missing. Thread: the controller's. */
void hfd_defaults_pause(struct hf_term *term, struct hf_informer *informer);
