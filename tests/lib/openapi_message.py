# SPDX-License-Identifier: Apache-2.0
"""A decoder of OpenAPI documents as protobuf, which gives back their JSON form. Shares nothing with the server but the numbers of gnostic's
OpenAPIv2.proto and OpenAPIv3.proto, which never change. A field that is not in the tables is an error."""
import struct

import yaml

# A field is "name type". Types: s text, b boolean, i int64, d double, y YAML in an Any, or a message; [] = a list. "= type": the message is a oneof, and
# has the value of its field; "* type": it is a map of such values, in pairs of a name and a value. "x": extensions, which are a map of Any.
SCHEMA_3 = {1: "nullable b", 3: "readOnly b", 6: "externalDocs Docs", 7: "example y", 9: "title s", 10: "multipleOf d", 11: "maximum d",
            12: "exclusiveMaximum b", 13: "minimum d", 14: "exclusiveMinimum b", 15: "maxLength i", 16: "minLength i", 17: "pattern s", 18: "maxItems i",
            19: "minItems i", 20: "uniqueItems b", 21: "maxProperties i", 22: "minProperties i", 23: "required s[]", 24: "enum y[]", 25: "type s",
            26: "allOf SchemaOrReference[]", 27: "oneOf SchemaOrReference[]", 28: "anyOf SchemaOrReference[]", 29: "not Schema", 30: "items Items",
            31: "properties Schemas", 32: "additionalProperties Additional", 33: "default Default", 34: "description s", 35: "format s", 36: "x"}
V3 = {
    "Document": {1: "openapi s", 2: "info Info", 4: "paths Paths", 5: "components Components"},
    "Info": {1: "title s", 2: "description s", 6: "version s"},
    "Components": {1: "schemas Schemas"},
    "Schemas": {1: "* SchemaOrReference"},
    "SchemaOrReference": {1: "= Schema", 2: "= Reference"},
    "Reference": {1: "$ref s"},
    "Items": {1: "= SchemaOrReference"},
    "Additional": {1: "= SchemaOrReference", 2: "= b"},
    "Default": {1: "= d", 2: "= b", 3: "= s"},
    "Docs": {1: "description s", 2: "url s"},
    "Schema": SCHEMA_3,
    "Paths": {1: "* Path"},
    "Path": {4: "get Operation", 5: "put Operation", 6: "post Operation", 7: "delete Operation", 10: "patch Operation",
             13: "parameters ParameterOrReference[]"},
    "Operation": {5: "operationId s", 6: "parameters ParameterOrReference[]", 7: "requestBody BodyOrReference", 8: "responses Responses", 13: "x"},
    "ParameterOrReference": {1: "= Parameter"},
    "Parameter": {1: "name s", 2: "in s", 3: "description s", 4: "required b", 10: "schema SchemaOrReference"},
    "BodyOrReference": {1: "= Body"},
    "Body": {2: "content Content", 3: "required b"},
    "Content": {1: "* Media"},
    "Media": {1: "schema SchemaOrReference"},
    "Responses": {2: "* ResponseOrReference"},
    "ResponseOrReference": {1: "= Response"},
    "Response": {1: "description s", 3: "content Content"},
}
SCHEMA_2 = {1: "$ref s", 2: "format s", 3: "title s", 4: "description s", 5: "default y", 6: "multipleOf d", 7: "maximum d", 8: "exclusiveMaximum b",
            9: "minimum d", 10: "exclusiveMinimum b", 11: "maxLength i", 12: "minLength i", 13: "pattern s", 14: "maxItems i", 15: "minItems i",
            16: "uniqueItems b", 17: "maxProperties i", 18: "minProperties i", 19: "required s[]", 20: "enum y[]", 21: "additionalProperties Additional",
            22: "type Type", 23: "items Items", 25: "properties Schemas", 29: "externalDocs Docs", 30: "example y", 31: "x"}
V2 = {
    "Document": {1: "swagger s", 2: "info Info", 8: "paths Paths", 9: "definitions Schemas"},
    "Info": {1: "title s", 2: "version s"},
    "Schemas": {1: "* Schema"},
    "Type": {1: "= s"},
    "Items": {1: "= Schema"},
    "Additional": {1: "= Schema", 2: "= b"},
    "Docs": {1: "description s", 2: "url s"},
    "Schema": SCHEMA_2,
    "Paths": {2: "* Path"},
    "Path": {2: "get Operation", 3: "put Operation", 4: "post Operation", 5: "delete Operation", 8: "patch Operation",
             9: "parameters ParameterOrReference[]"},
    "Operation": {5: "operationId s", 6: "produces s[]", 7: "consumes s[]", 8: "parameters ParameterOrReference[]", 9: "responses Responses", 13: "x"},
    "ParameterOrReference": {1: "= Parameter"},
    "Parameter": {1: "= Body", 2: "= Other"},
    "Other": {3: "= Query", 4: "= PathParameter"},
    "Body": {2: "name s", 3: "in s", 4: "required b", 5: "schema Schema"},
    "Query": {1: "required b", 2: "in s", 4: "name s", 6: "type s"},
    "PathParameter": {1: "required b", 2: "in s", 4: "name s", 5: "type s"},
    "Responses": {1: "* ResponseOrReference"},
    "ResponseOrReference": {1: "= Response"},
    "Response": {1: "description s", 2: "schema ResponseSchema"},
    "ResponseSchema": {1: "= Schema"},
}


def media_type(version, older=False):
    return f"application/com.github.proto-openapi.spec.v{version}{'@' if older else '.'}v1.0+protobuf"


def varint(data, at):
    value = shift = 0
    while data[at] & 128:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def wire_fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            (value,), at = struct.unpack("<d", data[at:at + 8]), at + 8
        else:
            assert key & 7 == 2, "only varints, doubles and bytes are used"
            n, at = varint(data, at)
            assert at + n <= len(data), "the message is cut"
            value, at = data[at:at + n], at + n
        yield key >> 3, value


def scalar(types, kind, value):
    if kind == "s":
        return value.decode()
    if kind == "b":
        assert value in (0, 1)
        return bool(value)
    if kind == "i":
        return value - (1 << 64) if value >> 63 else value
    if kind == "d":
        assert isinstance(value, float)
        return value
    if kind == "y":
        ((number, text),) = wire_fields(value)
        assert number == 2
        return yaml.safe_load(text.decode())
    return message_of(types, kind, value)


def add_pair(types, message, kind, pair):
    (first, name), (second, value) = wire_fields(pair)
    assert (first, second) == (1, 2) and name.decode() not in message
    message[name.decode()] = scalar(types, kind, value)


def message_of(types, type_, data):
    message = {}
    for number, value in wire_fields(data):
        assert number in types[type_], f"{type_} has no field {number}"
        field = types[type_][number]
        name, _, kind = field.partition(" ")
        if name == "=":
            assert not message
            return scalar(types, kind, value)
        if name == "*":
            add_pair(types, message, kind, value)
        elif name == "x":
            add_pair(types, message, "y", value)
        elif kind.endswith("[]"):
            message.setdefault(name, []).append(scalar(types, kind[:-2], value))
        else:
            assert name not in message
            message[name] = scalar(types, kind, value)
    return message


def decode(types, data):
    """types: V2 or V3."""
    return message_of(types, "Document", data)
