/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The JSON paths of definitions: `.spec.size`, `.spec.list[0].name`, `.metadata.labels.app\.x`,
 * `.metadata.annotations['x.y']`, `.status.conditions[?(@.type=="Ready")].status`, `.spec.list[*]`.
 * Pure. Thread: any.
 */
struct hf__json;

/*
 * Returns the first value in json that the path selects, borrowed from json. NULL: there is none,
 * or the path has another form or exceeds a limit (json_path.c).
 */
const struct hf__json *hfd_json_path_first(const struct hf__json *json, const char *path);
