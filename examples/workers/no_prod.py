#!/usr/bin/env python3
"""A hook as a worker: it keeps writers out of production."""

import json
import posixpath
import sys


def no_prod(call):
    path = posixpath.normpath(call["input"]["path"])
    if (path + "/").startswith("/srv/prod/"):
        return {"decision": "deny", "reason": "production is off limits"}
    return None  # no opinion


for line in sys.stdin:  # ends when the worker is to end
    message = json.loads(line)
    if "id" not in message:
        continue  # a cancel: this worker answers before it could matter
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        hello = message["method"] == "hello"
        answer["result"] = {"v": 1} if hello else no_prod(message["params"]["input"])
    except Exception as error:  # fails this run; at a gate that denies
        answer["error"] = {"code": -32000, "message": repr(error)}
    print(json.dumps(answer), flush=True)
