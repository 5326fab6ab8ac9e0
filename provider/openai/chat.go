package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// chatProtocol is the Chat Completions protocol. A conversation is a list of messages. The
// result of a tool is a separate message.
type chatProtocol struct {
	provider string
	shortIDs bool // call ids have nine characters, as Mistral requires
	// thoughtful adds a thinking field to each assistant message, even if the message has
	// no thinking. Some servers reject an assistant message without this field.
	thoughtful bool
}

func (chatProtocol) path() string { return "chat/completions" }

// mostDescription is the longest tool description, in characters, that all servers accept.
// OpenAI had this limit until 2025, and some services that run its models still have it.
const mostDescription = 1024

// If a description is split, splitEnd ends its first part. splitStart begins the second
// part, which is in the schema.
const (
	splitEnd   = " … (continued in the description of the parameters)"
	splitStart = "(continued) … "
)

// head encodes the beginning of a request.
func (chatProtocol) head(h *heading) ([]byte, error) {
	fields := object{{"model", quoted(h.model)}}
	if len(h.tools) > 0 {
		list := make([]json.RawMessage, len(h.tools))
		for i, t := range h.tools {
			t = shortened(t)
			function := object{{"name", quoted(t.Name)}}
			if t.Description != "" {
				function.set("description", quoted(t.Description))
			}
			function.set("parameters", t.InputSchema)
			list[i] = object{{"type", quoted("function")}, {"function", function.append(nil)}}.append(nil)
		}
		fields.set("tools", writeList(list))
	}
	if h.bound > 0 {
		// OpenAI's newer models reject max_tokens, and other servers do not know
		// max_completion_tokens.
		name := "max_tokens"
		if h.official {
			name = "max_completion_tokens"
		}
		fields.set(name, number(h.bound))
	}
	if h.effort != "" {
		fields.set("reasoning_effort", quoted(h.effort))
	}
	h.chat = true
	h.choose(&fields)
	if len(h.chosen.Stop) > 0 {
		stop := make([]json.RawMessage, len(h.chosen.Stop))
		for i, text := range h.chosen.Stop {
			stop[i] = quoted(text)
		}
		fields.set("stop", writeList(stop))
	}
	if len(h.chosen.Format) > 0 {
		fields.set("response_format", object{{"type", quoted("json_schema")}, {"json_schema", h.format().append(nil)}}.append(nil))
	}
	fields.set("stream_options", json.RawMessage(`{"include_usage":true}`))
	out, err := begin(h, fields, "messages")
	if err != nil {
		return nil, err
	}
	if !wire.IsBlank(h.system) {
		out = object{{"role", quoted("system")}, {"content", quoted(h.system)}}.append(out)
	}
	return out, nil
}

// shortened moves the end of a description that is too long into the description of the
// schema.
func shortened(d belay.ToolDeclaration) belay.ToolDeclaration {
	if utf8.RuneCountInString(d.Description) <= mostDescription {
		return d
	}
	schema, err := readObject(d.InputSchema)
	if err != nil {
		return d // cannot happen: fitSchema has decoded the schema
	}
	first, rest := split(d.Description, mostDescription-utf8.RuneCountInString(splitEnd))
	describeIn(&schema, splitStart+rest)
	d.Description, d.InputSchema = first+splitEnd, schema.append(nil)
	return d
}

// split divides a text that has more than most characters. The first part has at most
// that many. split cuts after a sentence, if one ends in the second half of the first
// part. Otherwise it cuts between words if possible. It drops white space at the cut.
func split(text string, most int) (first, rest string) {
	fits := 0
	for range most {
		_, n := utf8.DecodeRuneInString(text[fits:])
		fits += n
	}
	at, half := fits, fits/2
	if word := strings.LastIndexFunc(text[:fits], unicode.IsSpace); word >= half && !unicode.IsSpace(firstOf(text[fits:])) {
		at = word
	}
	ends := []string{". ", "! ", "? ", ".\n", "!\n", "?\n", "\n\n", "。"}
	sentence := -1
	for _, end := range ends {
		if i := strings.LastIndex(text[:fits], end); i >= half {
			sentence = max(sentence, i+len(strings.TrimRight(end, " \n")))
		}
	}
	if sentence >= 0 {
		at = sentence
	}
	return strings.TrimRightFunc(text[:at], unicode.IsSpace), strings.TrimLeftFunc(text[at:], unicode.IsSpace)
}

func firstOf(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

func number(n int) json.RawMessage { return strconv.AppendInt(nil, int64(n), 10) }

// turn is an encoded message. When a request is sent, join combines the user messages
// between two responses. The service requires results directly after their calls, and many
// models require the other content in one message.
type turn struct {
	// whole is a complete message of the model. A turn of the user has no whole.
	whole []byte
	// results are messages with tool results, separated by commas.
	results []byte
	// text is the user's content as a JSON string without quotes. parts is the same content
	// as a JSON list without brackets. Images and files are only in parts.
	text, parts []byte
	media       bool
}

// The JSON around and between the parts of a user message. An empty line separates joined
// texts.
var (
	beginText, beginList = []byte(`{"role":"user","content":"`), []byte(`{"role":"user","content":[`)
	nextText, nextPart   = []byte(between), []byte(`,`)
	endText, endList     = []byte(`"}`), []byte(`]}`)
)

const between = `\n\n`

// join adds encoded messages to the request.
func (chatProtocol) join(messages *list, contents []any) {
	for len(contents) > 0 {
		if t := contents[0].(*turn); t.whole != nil {
			messages.item(t.whole)
			contents = contents[1:]
			continue
		}
		side := contents
		if end := slices.IndexFunc(side, func(c any) bool { return c.(*turn).whole != nil }); end >= 0 {
			side = side[:end]
		}
		contents = contents[len(side):]
		for _, c := range side {
			if t := c.(*turn); len(t.results) > 0 {
				messages.item(t.results)
			}
		}
		if slices.ContainsFunc(side, func(c any) bool { return len(c.(*turn).parts) > 0 }) {
			messages.separate()
			joinSaid(messages.Body, side)
		}
	}
}

// joinSaid adds the user's content other than results. It adds a string if possible, because
// not every server understands a list.
func joinSaid(b *wire.Body, side []any) {
	isList := slices.ContainsFunc(side, func(c any) bool { return c.(*turn).media })
	begin, next, end := beginText, nextText, endText
	if isList {
		begin, next, end = beginList, nextPart, endList
	}
	b.Add(begin)
	first := true
	for _, c := range side {
		t := c.(*turn)
		said := t.text
		if isList {
			said = t.parts
		}
		if len(said) == 0 {
			continue
		}
		if !first {
			b.Add(next)
		}
		first = false
		b.Add(said)
	}
	b.Add(end)
}

func (w chatProtocol) encode(m *belay.Message) (any, error) {
	if m.Role == belay.RoleAssistant {
		return w.answered(m), nil
	}
	t := &turn{}
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == belay.PartText && !wire.IsBlank(p.Text):
			t.say(p.Text)
		case p.Type == belay.PartMedia && p.Media != nil:
			t.show(p.Media)
		case p.Type == belay.PartResult && p.Result != nil:
			t.result(p.Result, w.id(p.Result.Call))
		}
	}
	return t, nil
}

// id returns a call id that the server accepts.
func (w chatProtocol) id(id string) string {
	if w.shortIDs {
		return shortID(id)
	}
	return wireID(id)
}

// say adds a text.
func (t *turn) say(text string) {
	if len(t.text) > 0 {
		t.text = append(t.text, between...)
	}
	written := quoted(text)
	t.text = append(t.text, written[1:len(written)-1]...)
	t.add(object{{"type", quoted("text")}, {"text", written}})
}

// show adds an image or a file.
func (t *turn) show(m *belay.Media) {
	switch shown := mediaOf(m); {
	case shown.image != "":
		t.media = true
		t.add(object{{"type", quoted("image_url")}, {"image_url", object{{"url", quoted(shown.image)}}.append(nil)}})
	case shown.file != "":
		t.media = true
		t.add(object{{"type", quoted("file")}, {"file", object{{"filename", quoted(shown.fileName)}, {"file_data", quoted(shown.file)}}.append(nil)}})
	default:
		t.say(shown.text)
	}
}

// add adds a part to t.parts.
func (t *turn) add(part object) {
	if len(t.parts) > 0 {
		t.parts = append(t.parts, ',')
	}
	t.parts = part.append(t.parts)
}

// result adds the result of a call. The result can only be text, so its images and files
// come in the user's content after the results.
func (t *turn) result(r *belay.ResultPart, id string) {
	if len(t.results) > 0 {
		t.results = append(t.results, ',')
	}
	t.results = object{
		{"role", quoted("tool")}, {"tool_call_id", quoted(id)}, {"content", quoted(resultText(r))},
	}.append(t.results)
	if len(r.Media) > 0 {
		t.say("The tool " + r.Tool + " also returned this:")
	}
	for i := range r.Media {
		t.show(&r.Media[i])
	}
}

// answered encodes a message of the model.
func (w chatProtocol) answered(m *belay.Message) *turn {
	var text []string
	var thinking object
	var details, calls []json.RawMessage
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == belay.PartText && !wire.IsBlank(p.Text):
			text = append(text, p.Text)
		case p.Type == belay.PartThinking:
			o, ok := ours(p, w.provider)
			switch {
			case ok && len(o.Detail) > 0:
				details = append(details, detailOf(p, &o))
			case ok && thinkingFields[o.Field]:
				thinking.set(o.Field, quoted(textOf(thinking.at(o.Field))+p.Text))
			}
		case p.Type == belay.PartCall && p.Call != nil:
			function := object{{"name", quoted(wireName(p.Call.Tool))}, {"arguments", quoted(argumentsOf(p.Call.Input))}}
			calls = append(calls, object{
				{"id", quoted(w.id(p.Call.ID))}, {"type", quoted("function")}, {"function", function.append(nil)},
			}.append(nil))
		}
	}
	if len(text) == 0 && len(calls) == 0 {
		return &turn{} // the server rejects a message with only thinking
	}
	if w.thoughtful && thinking.at("reasoning_content") == nil {
		thinking.set("reasoning_content", quoted(" ")) // some servers reject an empty string
	}
	message := object{{"role", quoted("assistant")}, {"content", json.RawMessage(`null`)}}
	if len(text) > 0 {
		message.set("content", quoted(strings.Join(text, "\n\n")))
	}
	message = append(message, thinking...)
	if len(details) > 0 {
		message.set("reasoning_details", writeList(details))
	}
	if len(calls) > 0 {
		message.set("tool_calls", writeList(calls))
	}
	return &turn{whole: message.append(nil)}
}

// wantsThoughts reports whether a server requires thinking in all messages of a model that
// thinks. DeepSeek and Moonshot do. Other servers reject the field.
func wantsThoughts(provider, host string) bool {
	for _, name := range []string{"deepseek", "moonshot", "kimi"} {
		if strings.HasPrefix(provider, name) {
			return true
		}
	}
	for _, domain := range []string{"deepseek.com", "moonshot.ai", "moonshot.cn", "kimi.com", "siliconflow.com", "siliconflow.cn"} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// thinkingFields are the fields in which servers send thinking as text.
var thinkingFields = map[string]bool{"reasoning_content": true, "reasoning": true}

// detailOf returns a detail of thinking as the server sent it. It puts the text back into
// the detail.
func detailOf(p *belay.Part, o *opaque) json.RawMessage {
	detail, err := readObject([]byte(plain(o.Detail)))
	if err != nil || p.Text == "" {
		return json.RawMessage(plain(o.Detail))
	}
	field := "text"
	if textOf(detail.at("type")) == "reasoning.summary" {
		field = "summary"
	}
	detail.set(field, quoted(p.Text))
	return detail.append(nil)
}

// textOf decodes a JSON string. It returns an empty string if raw is not a string.
func textOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // on an error text stays empty
	return text
}
