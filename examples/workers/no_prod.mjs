#!/usr/bin/env node
// A hook as a worker: it keeps writers out of production.
import path from "node:path";
import readline from "node:readline";

function noProd(call) {
  const file = path.posix.normalize(call.input.path);
  if ((file + "/").startsWith("/srv/prod/")) {
    return { decision: "deny", reason: "production is off limits" };
  }
  return null; // no opinion
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue; // a cancel: this worker answers before it could matter
  const answer = { jsonrpc: "2.0", id };
  try {
    answer.result = method === "hello" ? { v: 1 } : noProd(params.input);
  } catch (error) {
    answer.error = { code: -32000, message: String(error) }; // fails this run; at a gate that denies
  }
  console.log(JSON.stringify(answer));
}
