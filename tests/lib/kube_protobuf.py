# SPDX-License-Identifier: Apache-2.0
"""A decoder of Kubernetes' protobuf responses, as strict as its encoder is regular: every field that is no pointer in Go must be there,
fields are in the order of their numbers and the keys of maps are sorted, and nothing is unknown. Shares nothing with the server but the
numbers, which never change."""
import base64
import datetime
import json

# A field is "name type", the number is its place in the list ("" = unused). Types: s text, i number, b boolean, x bytes, t Time, u MicroTime, a FieldsV1,
# or a message; ? = a pointer, [] = a list, {} = a map.
META = ["metadata ObjectMeta"]
TYPES = {
    "ObjectMeta": ["name s", "generateName s", "namespace s", "selfLink s", "uid s", "resourceVersion s", "generation i", "creationTimestamp t",
                   "deletionTimestamp t?", "deletionGracePeriodSeconds i?", "labels s{}", "annotations s{}", "ownerReferences OwnerReference[]",
                   "finalizers s[]", "", "", "managedFields ManagedFieldsEntry[]"],
    "OwnerReference": ["kind s", "", "name s", "uid s", "apiVersion s", "controller b?", "blockOwnerDeletion b?"],
    "ManagedFieldsEntry": ["manager s", "operation s", "apiVersion s", "time t?", "", "fieldsType s", "fieldsV1 a?", "subresource s"],
    "ListMeta": ["selfLink s", "resourceVersion s", "continue s", "remainingItemCount i?"],
    "Status": ["metadata ListMeta", "status s", "message s", "reason s", "details StatusDetails?", "code i"],
    "StatusDetails": ["name s", "group s", "kind s", "causes StatusCause[]", "retryAfterSeconds i", "uid s"],
    "StatusCause": ["reason s", "message s", "field s"],
    "PartialObjectMetadata": META,
    "ConfigMap": META + ["data s{}", "binaryData x{}", "immutable b?"],
    "Secret": META + ["data x{}", "type s", "stringData s{}", "immutable b?"],
    "ServiceAccount": META + ["secrets ObjectReference[]", "imagePullSecrets LocalObjectReference[]", "automountServiceAccountToken b?"],
    "ObjectReference": ["kind s", "namespace s", "name s", "uid s", "apiVersion s", "resourceVersion s", "fieldPath s"],
    "LocalObjectReference": ["name s"],
    "Namespace": META + ["spec NamespaceSpec", "status NamespaceStatus"],
    "NamespaceSpec": ["finalizers s[]"],
    "NamespaceStatus": ["phase s", "conditions NamespaceCondition[]"],
    "NamespaceCondition": ["type s", "status s", "", "lastTransitionTime t", "reason s", "message s"],
    "Event": META + ["involvedObject ObjectReference", "reason s", "message s", "source EventSource", "firstTimestamp t", "lastTimestamp t", "count i",
                     "type s", "eventTime u", "series EventSeries?", "action s", "related ObjectReference?", "reportingComponent s", "reportingInstance s"],
    "EventSource": ["component s", "host s"],
    "EventSeries": ["count i", "lastObservedTime u"],
    "Lease": META + ["spec LeaseSpec"],
    "LeaseSpec": ["holderIdentity s?", "leaseDurationSeconds i?", "acquireTime u?", "renewTime u?", "leaseTransitions i?", "strategy s?",
                  "preferredHolder s?"],
    "LeaseCandidate": META + ["spec LeaseCandidateSpec"],
    "LeaseCandidateSpec": ["leaseName s", "pingTime u?", "renewTime u?", "binaryVersion s", "emulationVersion s", "strategy s"],
    "Role": META + ["rules PolicyRule[]"],
    "ClusterRole": META + ["rules PolicyRule[]", "aggregationRule AggregationRule?"],
    "PolicyRule": ["verbs s[]", "apiGroups s[]", "resources s[]", "resourceNames s[]", "nonResourceURLs s[]"],
    "AggregationRule": ["clusterRoleSelectors LabelSelector[]"],
    "LabelSelector": ["matchLabels s{}", "matchExpressions LabelSelectorRequirement[]"],
    "LabelSelectorRequirement": ["key s", "operator s", "values s[]"],
    "RoleBinding": META + ["subjects Subject[]", "roleRef RoleRef"],
    "ClusterRoleBinding": META + ["subjects Subject[]", "roleRef RoleRef"],
    "Subject": ["kind s", "apiGroup s", "name s", "namespace s"],
    "RoleRef": ["apiGroup s", "kind s", "name s"],
    "SelfSubjectReview": META + ["status SelfSubjectReviewStatus"],
    "SelfSubjectReviewStatus": ["userInfo UserInfo"],
    "UserInfo": ["username s", "uid s", "groups s[]", "extra ExtraValue{}"],
    "ExtraValue": ["items s[]"],
    "SelfSubjectAccessReview": META + ["spec SelfSubjectAccessReviewSpec", "status SubjectAccessReviewStatus"],
    "SelfSubjectAccessReviewSpec": ["resourceAttributes ResourceAttributes?", "nonResourceAttributes NonResourceAttributes?"],
    "ResourceAttributes": ["namespace s", "verb s", "group s", "version s", "resource s", "subresource s", "name s"],
    "NonResourceAttributes": ["path s", "verb s"],
    "SubjectAccessReviewStatus": ["allowed b", "reason s", "evaluationError s", "denied b"],
    "TokenRequest": META + ["spec TokenRequestSpec", "status TokenRequestStatus"],
    "TokenRequestSpec": ["audiences s[]", "", "boundObjectRef BoundObjectReference?", "expirationSeconds i?"],
    "BoundObjectReference": ["kind s", "apiVersion s", "name s", "uid s"],
    "TokenRequestStatus": ["token s", "expirationTimestamp t"],
    "FlowSchema": META + ["spec FlowSchemaSpec", "status FlowSchemaStatus"],
    "FlowSchemaSpec": ["priorityLevelConfiguration PriorityLevelConfigurationReference", "matchingPrecedence i", "distinguisherMethod FlowDistinguisherMethod?",
                       "rules PolicyRulesWithSubjects[]"],
    "PriorityLevelConfigurationReference": ["name s"],
    "FlowDistinguisherMethod": ["type s"],
    "PolicyRulesWithSubjects": ["subjects FlowSubject[]", "resourceRules ResourcePolicyRule[]", "nonResourceRules NonResourcePolicyRule[]"],
    "FlowSubject": ["kind s", "user NamedSubject?", "group NamedSubject?", "serviceAccount ServiceAccountSubject?"],
    "NamedSubject": ["name s"],
    "ServiceAccountSubject": ["namespace s", "name s"],
    "ResourcePolicyRule": ["verbs s[]", "apiGroups s[]", "resources s[]", "clusterScope b", "namespaces s[]"],
    "NonResourcePolicyRule": ["verbs s[]", "", "", "", "", "nonResourceURLs s[]"],
    "FlowSchemaStatus": ["conditions FlowCondition[]"],
    "FlowCondition": ["type s", "status s", "lastTransitionTime t", "reason s", "message s"],
    "PriorityLevelConfiguration": META + ["spec PriorityLevelConfigurationSpec", "status FlowSchemaStatus"],
    "PriorityLevelConfigurationSpec": ["type s", "limited LimitedPriorityLevelConfiguration?", "exempt ExemptPriorityLevelConfiguration?"],
    "LimitedPriorityLevelConfiguration": ["nominalConcurrencyShares i?", "limitResponse LimitResponse", "lendablePercent i?", "borrowingLimitPercent i?"],
    "ExemptPriorityLevelConfiguration": ["nominalConcurrencyShares i?", "lendablePercent i?"],
    "LimitResponse": ["type s", "queuing QueuingConfiguration?"],
    "QueuingConfiguration": ["queues i", "handSize i", "queueLengthLimit i"],
    "Unknown": ["typeMeta TypeMeta", "raw x", "contentEncoding s", "contentType s"],
    "TypeMeta": ["apiVersion s", "kind s"],
    "WatchEvent": ["type s", "object RawExtension"],
    "RawExtension": ["raw x"],
    "Timestamp": ["seconds i", "nanos i"],
    "Raw": ["raw x"],
}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def wire_fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, "only varints and bytes are used"
            n, at = varint(data, at)
            assert at + n <= len(data), "the message is cut"
            value, at = data[at:at + n], at + n
        yield key >> 3, value


def time_text(data, kind):
    if not data:
        return None
    parts = decode("Timestamp", data)
    moment = EPOCH + datetime.timedelta(seconds=parts["seconds"], microseconds=parts["nanos"] // 1000)
    assert kind == "u" or parts["nanos"] == 0
    return moment.strftime("%Y-%m-%dT%H:%M:%S" + (".%fZ" if kind == "u" else "Z"))


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def scalar(kind, value):
    if kind in ("s", "x", "t", "u", "a") or kind in TYPES:
        assert isinstance(value, bytes)
    if kind == "s":
        return value.decode()
    if kind == "x":
        return value
    if kind == "i":
        return signed(value)
    if kind == "b":
        assert value in (0, 1)
        return bool(value)
    if kind in ("t", "u"):
        return time_text(value, kind)
    if kind == "a":
        return json.loads(decode("Raw", value)["raw"])
    return decode(kind, value)


def put(message, name, kind, value):
    base = kind.rstrip("?[]{}")
    if kind.endswith("[]"):
        message.setdefault(name, []).append(scalar(base, value))
    elif kind.endswith("{}"):
        entry = dict(wire_fields(value))
        assert set(entry) == {1, 2}
        key, map_ = entry[1].decode(), message.setdefault(name, {})
        assert not map_ or max(k.encode() for k in map_) < entry[1], "keys are sorted"
        map_[key] = scalar(base, entry[2])
        if base == "x":
            map_[key] = base64.b64encode(map_[key]).decode()
        if base == "ExtraValue":
            map_[key] = map_[key].get("items", [])
    else:
        assert name not in message, name
        message[name] = scalar(base, value)


def decode(type_, data):
    """The message as a dict, with every field that is there. List types need no table."""
    fields = TYPES.get(type_) or ["metadata ListMeta", f"items {type_.removesuffix('List')}[]"]
    message, last = {}, 0
    for number, value in wire_fields(data):
        assert last <= number <= len(fields) and fields[number - 1], f"{type_}: field {number} after {last}"
        last = number
        put(message, *fields[number - 1].split(), value)
    for field in filter(None, fields):
        name, kind = field.split()
        assert name in message or kind[-1] in "?]}x", f"{type_} lacks {name}"
    return message


def decode_answer(data):
    """An enclosed object, with its kind and apiVersion."""
    assert data[:4] == b"k8s\0"
    unknown = decode("Unknown", data[4:])
    assert unknown["contentEncoding"] == unknown["contentType"] == ""
    return {**unknown["typeMeta"], **decode(unknown["typeMeta"]["kind"], unknown["raw"])}


def decode_frames(data):
    """The events of a watch, as (type, object)."""
    while data:
        n = int.from_bytes(data[:4], "big")
        assert n > 0 and len(data) >= 4 + n
        event = decode("WatchEvent", data[4:4 + n])
        yield event["type"], decode_answer(event["object"]["raw"])
        data = data[4 + n:]


def pruned(value):
    """Without what Go's JSON leaves out, to compare a message with JSON."""
    if isinstance(value, dict):
        members = {key: pruned(member) for key, member in value.items()}
        return {key: member for key, member in members.items() if member not in (None, "", [], {}) and member is not False and member != 0}
    if isinstance(value, list):
        return [pruned(member) for member in value]
    return value
