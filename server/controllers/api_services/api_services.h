/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller api-services: keeps an APIService for each group version that this server serves,
 * those of custom resources too, and the condition Available of all APIServices. Runs on the
 * leader.
 */
#include <holdfast/leader.h>

#define HFD_API_SERVICES "api-services"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_api_services_run(struct hf_term *term, void *ctx);
