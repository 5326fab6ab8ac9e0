// A client of belay serve that uses the official JavaScript SDK of OpenAI. It does the same as main.go.
import OpenAI from "openai";

const client = new OpenAI(); // the key and the address are in the environment
const toolTask = `call write {"path": "notes.md", "content": "x"}`;
const approvalTask = `call write {"path": "other.md", "content": "x"}`;
const chat = (model, text, more = {}, options = {}) => client.chat.completions.create({ model, messages: [{ role: "user", content: text }], ...more }, options);
const response = (model, input, more = {}, options = {}) => client.responses.create({ model, input, ...more }, options);

const names = [];
for await (const m of await client.models.list()) names.push(m.id);
console.log("models:", names.join(" "));

const one = await chat("main", "hello");
console.log("chat:", one.choices[0].message.content, one.choices[0].finish_reason, one.usage.total_tokens);
const two = await client.chat.completions.create(
  { model: "main", messages: [{ role: "user", content: "hello" }, one.choices[0].message, { role: "user", content: "again" }] },
  { headers: { "Belay-Session": one.belay.session } },
);
console.log("chat in the session:", two.choices[0].message.content);
const tool = await chat("main", toolTask);
console.log("chat with a tool:", tool.choices[0].message.content, tool.choices[0].finish_reason);

let [text, finish, parts, tokens] = ["", "", 0, 0];
for await (const chunk of await chat("main", "one two three", { stream: true, stream_options: { include_usage: true } })) {
  tokens += chunk.usage?.total_tokens ?? 0;
  for (const c of chunk.choices) {
    if (c.delta.content) {
      text += c.delta.content;
      parts++;
    }
    finish += c.finish_reason ?? "";
  }
}
console.log("streamed chat:", text, finish, tokens, "in parts:", parts > 1);

const first = await response("main", "hello");
console.log("response:", first.output_text, first.status, first.usage.total_tokens);
const second = await response("main", "again", { previous_response_id: first.id });
console.log("next response:", second.output_text, second.status, second.conversation.id === first.conversation.id);
const third = await response("main", "again", { previous_response_id: first.id });
console.log("branch:", third.output_text, third.conversation.id !== first.conversation.id);
const read = await client.responses.retrieve(first.id);
console.log("read:", read.output_text, read.status);
const used = await response("main", toolTask);
console.log("response with a tool:", used.output_text, used.status);

const kinds = new Set();
let [heard, status] = ["", ""];
for await (const e of await response("main", "one two three", { stream: true })) {
  kinds.add(e.type);
  if (e.type === "response.output_text.delta") heard += e.delta;
  if (e.type === "response.completed") status = `${e.response.status} ${e.response.output[0].content[0].text}`;
}
console.log("streamed response:", heard, "/", status);
console.log("events:", [...kinds].join(" "));

const failure = async (what, call) => {
  try {
    await call();
    console.log(what + ": no error");
  } catch (e) {
    if (!(e instanceof OpenAI.APIError)) throw e;
    console.log(what + ":", e.status, e.type, e.code, e.param ?? "");
  }
};
await failure("an unknown agent", () => chat("nobody", "hello"));
await failure("an unsupported field", () => chat("main", "hello", { temperature: 0.2 }));
await failure("another unsupported field", () => response("main", "hello", { max_output_tokens: 5 }));
const stranger = new OpenAI({ apiKey: "wrong" });
await failure("a wrong key", () => stranger.responses.create({ model: "main", input: "hello" }));

const waiting = await chat("careful", approvalTask);
console.log("waiting chat:", waiting.choices[0].finish_reason, waiting.choices[0].message.content.includes("needs approval (approval ap"));
const parked = await response("careful", approvalTask);
const approval = parked.belay.approvals[0];
console.log("waiting response:", parked.status, parked.incomplete_details.reason, parked.output_text.includes(approval));
try {
  await response("careful", "again", { previous_response_id: parked.id });
} catch (e) {
  console.log("a message while it waits:", e.status === 409, e.code);
}
const { hash } = await client.get(`/approvals/${approval}`);
await client.post(`/approvals/${approval}/decision`, { body: { hash, allow: true } });
for (;;) {
  const now = await client.responses.retrieve(parked.id);
  if (now.status !== "in_progress" && now.status !== "incomplete") {
    console.log("after the approval:", now.output_text, now.status);
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
}
