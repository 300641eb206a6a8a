"""PyMongo's side of the tests: one request as JSON on standard input, one answer as JSON on standard output.

A value in a request or an answer is JSON, with {"uuid": text}, {"binary": [subtype, hex]} and {"oid": hex} for what
JSON lacks. An answer adds "seconds" to an oid: the time that PyMongo reads from it.
"""

import calendar
import json
import sys
import uuid

import bson
import pymongo
from bson import json_util
from bson.binary import Binary, UuidRepresentation
from bson.codec_options import CodecOptions
from bson.objectid import ObjectId

REPRESENTATIONS = {
    "unspecified": UuidRepresentation.UNSPECIFIED,
    "standard": UuidRepresentation.STANDARD,
    "csharpLegacy": UuidRepresentation.CSHARP_LEGACY,
    "javaLegacy": UuidRepresentation.JAVA_LEGACY,
    "pythonLegacy": UuidRepresentation.PYTHON_LEGACY,
}


def build(v):
    if isinstance(v, list):
        return [build(x) for x in v]
    if not isinstance(v, dict):
        return v
    if set(v) == {"uuid"}:
        return uuid.UUID(v["uuid"])
    if set(v) == {"binary"}:
        return Binary(bytes.fromhex(v["binary"][1]), v["binary"][0])
    if set(v) == {"oid"}:
        return ObjectId(v["oid"])
    return {key: build(x) for key, x in v.items()}


def describe(v):
    if isinstance(v, (list, tuple)):
        return [describe(x) for x in v]
    if isinstance(v, dict):
        return {key: describe(x) for key, x in v.items()}
    if isinstance(v, uuid.UUID):
        return {"uuid": str(v)}
    if isinstance(v, Binary):
        return {"binary": [v.subtype, bytes(v).hex()]}
    if isinstance(v, bytes):
        return {"binary": [0, v.hex()]}
    if isinstance(v, ObjectId):
        return {"oid": str(v), "seconds": calendar.timegm(v.generation_time.utctimetuple())}
    return v


def json_options(request):
    return json_util.JSONOptions(
        json_mode=json_util.JSONMode.CANONICAL if request["canonical"] else json_util.JSONMode.RELAXED,
        uuid_representation=REPRESENTATIONS[request["representation"]],
    )


def answer(request):
    op = request["op"]
    if op == "version":
        return pymongo.version
    if op == "objectids":
        return [describe(ObjectId()) for _ in range(request["count"])]
    if op == "parse":
        return [describe(ObjectId(text)) for text in request["oids"]]
    if op == "bson":
        options = CodecOptions(uuid_representation=REPRESENTATIONS[request["representation"]])
        return bson.encode(build(request["document"]), codec_options=options).hex()
    if op == "dumps":
        return json_util.dumps(build(request["document"]), json_options=json_options(request))
    if op == "loads":
        return describe(json_util.loads(request["text"], json_options=json_options(request)))

    with pymongo.MongoClient(request["uri"], serverSelectionTimeoutMS=20000) as client:
        collection = client.get_default_database()[request["collection"]]
        if op == "insert":
            collection.insert_many([build(d) for d in request["documents"]])
            return None
        if op == "random":
            ids = [uuid.UUID(bytes=uuid.uuid4().bytes[:8] + uuid.uuid4().bytes[:8]) for _ in range(request["count"])]
            collection.insert_many([{"_id": u, "n": i} for i, u in enumerate(ids)])
            return [str(u) for u in ids]
        if op == "find":
            return [describe(d) for d in collection.find(build(request["filter"])).sort("n", 1)]
    raise ValueError(op)


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
