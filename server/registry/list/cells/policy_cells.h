/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cells of admission policies and their bindings in a Table. Pure. Thread: any. */
struct hf__json;
struct hf__strbuf;

/* Both functions append a JSON string. */
/* The kind of the params of a policy, "v1/ConfigMap", or "<unset>". */
void hfd_policy_put_param_kind(struct hf__strbuf *s, const struct hf__json *policy);
/* The params of a binding: "default/a" (a missing namespace is shown as "*"), a selector, or
 * "<unset>". */
void hfd_policy_put_param_ref(struct hf__strbuf *s, const struct hf__json *binding);
