/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The formats of strings that Kubernetes checks in custom resources. A format that it does not know
 * is ignored, as is one that does not belong to the type. Pure. Thread: any.
 */
#include <stdbool.h>

struct hfd_custom_node;

/* Whether values of the node are checked by this format. */
bool hfd_custom_format_applies(const char *format, const struct hfd_custom_node *node);
/* Whether the text has the format; true if the format is not one of strings. */
bool hfd_custom_format_matches(const char *format, const char *text);
