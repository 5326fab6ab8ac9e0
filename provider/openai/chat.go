package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// chatWire is Chat Completions. A conversation is a list of messages, and what a
// tool answered is a message of its own.
type chatWire struct {
	provider string
	shortIDs bool // of calls, as Mistral wants them
	// thoughtful has every answer of the model say what it thought, though it be
	// nothing: what others answered would be refused.
	thoughtful bool
}

func (chatWire) path() string { return "chat/completions" }

// mostDescription is how many characters of a description every server takes. OpenAI
// itself took no more until 2025; some services that host its models still do not.
const mostDescription = 1024

// goesOn ends the first part of a description, and goneOn begins the second, which is in
// the schema.
const (
	goesOn = " … (continued in the description of the parameters)"
	goneOn = "(continued) … "
)

// head encodes the beginning of a request.
func (chatWire) head(h *heading) []byte {
	fields := object{{"model", quoted(h.model)}}
	if len(h.tools) > 0 {
		list := make([]json.RawMessage, len(h.tools))
		for i, t := range h.tools {
			t = shortened(t)
			function := object{{"name", quoted(t.name)}}
			if t.description != "" {
				function.set("description", quoted(t.description))
			}
			function.set("parameters", t.schema)
			list[i] = object{{"type", quoted("function")}, {"function", function.append(nil)}}.append(nil)
		}
		fields.set("tools", writeList(list))
	}
	if h.bound > 0 {
		// OpenAI's newer models refuse the older name, and other servers do not know
		// the newer one.
		name := "max_tokens"
		if h.official {
			name = "max_completion_tokens"
		}
		fields.set(name, number(h.bound))
	}
	if h.effort != "" {
		fields.set("reasoning_effort", quoted(h.effort))
	}
	fields.set("stream_options", json.RawMessage(`{"include_usage":true}`))
	out := begin(h, fields, "messages")
	if !blank(h.system) {
		out = object{{"role", quoted("system")}, {"content", quoted(h.system)}}.append(out)
	}
	return out
}

// shortened moves the end of a description that is too long into the schema's.
func shortened(d declaration) declaration {
	if utf8.RuneCountInString(d.description) <= mostDescription {
		return d
	}
	schema, err := readObject(d.schema)
	if err != nil {
		return d // it has been read before
	}
	first, rest := split(d.description, mostDescription-utf8.RuneCountInString(goesOn))
	describeIn(&schema, goneOn+rest)
	d.description, d.schema = first+goesOn, schema.append(nil)
	return d
}

// split divides a text that has more than so many characters: behind a sentence if one
// ends in the second half of what fits, else between two words, else anywhere. The space at
// the place is left out.
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

// turn is an encoded message. What the user's side says until the model answers is
// put together when it is sent: the service wants the results right behind their
// calls, and many models want the rest to be one message.
type turn struct {
	// whole is a message of the model.
	whole []byte
	// results are messages, separated by commas.
	results []byte
	// text is the content as a text, without quotes, and parts is the content as a
	// list, without brackets. If there is media, there is only the list.
	text, parts []byte
	media       bool
}

// What stands between the pieces of what is said. Texts that become one are
// separated by an empty line.
var (
	beginText, beginList = []byte(`{"role":"user","content":"`), []byte(`{"role":"user","content":[`)
	nextText, nextPart   = []byte(between), []byte(`,`)
	endText, endList     = []byte(`"}`), []byte(`]}`)
)

const between = `\n\n`

// join adds messages.
func (chatWire) join(messages *list, contents []any) {
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
			joinSaid(messages.body, side)
		}
	}
}

// joinSaid adds what the user's side says beside results: as a text if it can be,
// which every server understands.
func joinSaid(b *body, side []any) {
	isList := slices.ContainsFunc(side, func(c any) bool { return c.(*turn).media })
	begin, next, end := beginText, nextText, endText
	if isList {
		begin, next, end = beginList, nextPart, endList
	}
	b.add(begin)
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
			b.add(next)
		}
		first = false
		b.add(said)
	}
	b.add(end)
}

// encode encodes a message.
func (w chatWire) encode(m *belay.Message) (any, error) {
	if m.Role == belay.RoleAssistant {
		return w.answered(m), nil
	}
	t := &turn{}
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == belay.PartText && !blank(p.Text):
			t.say(p.Text)
		case p.Type == belay.PartMedia && p.Media != nil:
			t.show(p.Media)
		case p.Type == belay.PartResult && p.Result != nil:
			t.result(p.Result, w.id(p.Result.Call))
		}
	}
	return t, nil
}

// id returns the id of a call as the server takes it.
func (w chatWire) id(id string) string {
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

// add adds to the content as a list.
func (t *turn) add(part object) {
	if len(t.parts) > 0 {
		t.parts = append(t.parts, ',')
	}
	t.parts = part.append(t.parts)
}

// result adds the result of a call. It can hold text only: images and files are
// said behind the results.
func (t *turn) result(r *belay.ResultPart, id string) {
	if len(t.results) > 0 {
		t.results = append(t.results, ',')
	}
	t.results = object{
		{"role", quoted("tool")}, {"tool_call_id", quoted(id)}, {"content", quoted(resultText(r))},
	}.append(t.results)
	if len(r.Media) > 0 {
		t.say("The tool " + r.Tool + " also gave this:")
	}
	for i := range r.Media {
		t.show(&r.Media[i])
	}
}

// answered encodes a message of the model.
func (w chatWire) answered(m *belay.Message) *turn {
	var text []string
	var thinking object
	var details, calls []json.RawMessage
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == belay.PartText && !blank(p.Text):
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
		return &turn{} // thinking alone is not a message
	}
	if w.thoughtful && thinking.at("reasoning_content") == nil {
		thinking.set("reasoning_content", quoted(" ")) // an empty one is not taken by all
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

// wantsThoughts reports whether a server refuses answers without thinking once its models
// think: those of DeepSeek and Moonshot do, and others refuse the field.
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

// thinkingFields are where servers write what the model thinks.
var thinkingFields = map[string]bool{"reasoning_content": true, "reasoning": true}

// detailOf returns thinking as it came, with its text where it was.
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

// textOf reads a string; it is empty if there is none.
func textOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // what is no string says nothing
	return text
}
