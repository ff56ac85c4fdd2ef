/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The copies of texts for an elector's core that a test or the simulator drives. Equal texts are
 * kept once, and never freed. Thread: one of the process. */
#include "leader/core.h"

struct hf__core_texts_port *core_texts(void);
