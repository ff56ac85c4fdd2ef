/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* HTTP/1.1 as a connection's protocol (protocol.h). Thread: the connection's worker. */
#include "server/http/connection/protocol.h"

extern const struct hfd_protocol hfd_h1;
