package openai

import (
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// responsesProtocol is the Responses API. A conversation is a list of items: messages,
// thinking, calls and their outputs.
type responsesProtocol struct {
	provider string
	// quiet leaves out thinking, because OpenAI rejects it for a model that does not think.
	quiet bool
}

func (responsesProtocol) path() string { return "responses" }

// leastOutput is the smallest limit on a response that the service accepts, in tokens.
const leastOutput = 16

// head encodes the beginning of a request. The request asks the service to store nothing,
// and to return its thinking encrypted.
func (responsesProtocol) head(h *heading) ([]byte, error) {
	fields := object{{"model", quoted(h.model)}}
	if !wire.IsBlank(h.system) {
		fields.set("instructions", quoted(h.system))
	}
	if len(h.tools) > 0 {
		list := make([]json.RawMessage, len(h.tools))
		for i, t := range h.tools {
			tool := object{{"type", quoted("function")}, {"name", quoted(t.Name)}}
			if t.Description != "" {
				tool.set("description", quoted(t.Description))
			}
			tool.set("parameters", t.InputSchema)
			tool.set("strict", json.RawMessage(`false`)) // strict mode does not support all schemas
			list[i] = tool.append(nil)
		}
		fields.set("tools", writeList(list))
	}
	if h.bound > 0 {
		fields.set("max_output_tokens", number(max(h.bound, leastOutput)))
	}
	var reasoning object
	if h.effort != "" {
		reasoning.set("effort", quoted(h.effort))
	}
	if h.summary != "" {
		reasoning.set("summary", quoted(h.summary))
	}
	if len(reasoning) > 0 {
		fields.set("reasoning", reasoning.append(nil))
	}
	if h.thinking() {
		fields.set("include", json.RawMessage(`["reasoning.encrypted_content"]`))
	}
	h.choose(&fields)
	if len(h.chosen.Format) > 0 {
		format := append(object{{"type", quoted("json_schema")}}, h.format()...)
		fields.set("text", object{{"format", format.append(nil)}}.append(nil))
	}
	fields.set("store", json.RawMessage(`false`))
	return begin(h, fields, "input")
}

// items is an encoded message: items in JSON, separated by commas. All requests with the
// message share these items, so they must not change.
type items []byte

// join adds the items of messages to the request.
func (responsesProtocol) join(messages *list, contents []any) {
	for _, c := range contents {
		if some := c.(items); len(some) > 0 {
			messages.item(some)
		}
	}
}

// itemList collects the items of a message.
type itemList struct {
	json items
	// said are the parts of the current user message.
	said []json.RawMessage
	// thought is thinking that add puts before the next item. The service rejects thinking
	// with no item after it, as in a response that was cut off.
	thought []object
}

// encode encodes a message. The result has no items if the service would reject all parts of
// the message.
func (w responsesProtocol) encode(m *belay.Message) (any, error) {
	var list itemList
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Type == belay.PartText && wire.IsBlank(p.Text):
		case p.Type == belay.PartText && m.Role == belay.RoleAssistant:
			list.add(w.spoken(p))
		case p.Type == belay.PartText:
			list.said = append(list.said, inputText(p.Text))
		case p.Type == belay.PartThinking:
			if o, ok := ours(p, w.provider); ok && !w.quiet && o.ID != "" && o.Encrypted != "" {
				list.thought = append(list.thought, reasoningOf(p, &o))
			}
		case p.Type == belay.PartMedia && p.Media != nil:
			list.said = append(list.said, inputMedia(p.Media))
		case p.Type == belay.PartCall && p.Call != nil:
			list.add(object{
				{"type", quoted("function_call")},
				{"call_id", quoted(wireID(p.Call.ID))},
				{"name", quoted(wireName(p.Call.Tool))},
				{"arguments", quoted(argumentsOf(p.Call.Input))},
			})
		case p.Type == belay.PartResult && p.Result != nil:
			list.add(object{
				{"type", quoted("function_call_output")}, {"call_id", quoted(wireID(p.Result.Call))}, {"output", outputOf(p.Result)},
			})
		}
	}
	list.flush()
	return list.json, nil
}

// add adds an item. Before the item it adds the current user message and the waiting thinking.
func (l *itemList) add(item object) {
	l.flush()
	for _, thought := range l.thought {
		l.append(thought)
	}
	l.thought = nil
	l.append(item)
}

// flush adds the current user message to the items.
func (l *itemList) flush() {
	if len(l.said) == 0 {
		return
	}
	said := l.said
	l.said = nil
	l.append(object{{"type", quoted("message")}, {"role", quoted("user")}, {"content", writeList(said)}})
}

func (l *itemList) append(item object) {
	if len(l.json) > 0 {
		l.json = append(l.json, ',')
	}
	l.json = item.append(l.json)
}

// spoken encodes a text part of an assistant message as a message item of the Responses
// API.
func (w responsesProtocol) spoken(p *belay.Part) object {
	text := object{{"type", quoted("output_text")}, {"text", quoted(p.Text)}}
	item := object{
		{"type", quoted("message")},
		{"role", quoted("assistant")},
		{"content", writeList([]json.RawMessage{text.append(nil)})},
	}
	if o, ok := ours(p, w.provider); ok && o.Phase != "" {
		item.set("phase", quoted(o.Phase))
	}
	return item
}

// reasoningOf encodes a thinking part as a reasoning item, with the data that the service
// sent.
func reasoningOf(p *belay.Part, o *opaque) object {
	texts := o.Summary
	if len(texts) == 0 && p.Text != "" {
		texts = []string{p.Text}
	}
	summary := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		summary[i] = object{{"type", quoted("summary_text")}, {"text", quoted(text)}}.append(nil)
	}
	return object{
		{"type", quoted("reasoning")},
		{"id", quoted(o.ID)},
		{"summary", writeList(summary)},
		{"encrypted_content", quoted(o.Encrypted)},
	}
}

// outputOf returns the output of a call: a text, or a list if the result has images or
// files.
func outputOf(r *belay.ResultPart) json.RawMessage {
	text := resultText(r)
	if len(r.Media) == 0 {
		return quoted(text)
	}
	var list []json.RawMessage
	if !wire.IsBlank(text) {
		list = append(list, inputText(text))
	}
	for i := range r.Media {
		list = append(list, inputMedia(&r.Media[i]))
	}
	return writeList(list)
}

func inputText(text string) json.RawMessage {
	return object{{"type", quoted("input_text")}, {"text", quoted(text)}}.append(nil)
}

func inputMedia(m *belay.Media) json.RawMessage {
	// The service downloads PDF files, so send only the URL.
	if m.MIME == "application/pdf" && len(m.Data) == 0 && m.URL != "" {
		return object{{"type", quoted("input_file")}, {"file_url", quoted(m.URL)}}.append(nil)
	}
	switch shown := mediaOf(m); {
	case shown.image != "":
		return object{{"type", quoted("input_image")}, {"detail", quoted("auto")}, {"image_url", quoted(shown.image)}}.append(nil)
	case shown.file != "":
		return object{{"type", quoted("input_file")}, {"filename", quoted(shown.fileName)}, {"file_data", quoted(shown.file)}}.append(nil)
	default:
		return inputText(shown.text)
	}
}
