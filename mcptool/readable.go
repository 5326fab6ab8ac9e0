package mcptool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// codeUnreadable is the code of the error that replaces an unreadable result.
	codeUnreadable = -32097
	// mostUnknown is how long unknown content may be, in bytes, before its long texts are
	// cut to mostUnknownText characters.
	mostUnknown     = 16 << 10
	mostUnknownText = 500
)

// list is a list in a result of the protocol.
type list struct {
	field string
	// into makes a value of the type that the SDK decodes the result into.
	into func() any
	// mend returns an entry that the SDK can read in place of one that it cannot.
	mend func(l *list, entry json.RawMessage) json.RawMessage
}

// lists are all lists whose entries the SDK decodes. One bad entry makes the SDK reject the
// whole result.
var lists = []*list{
	{"content", func() any { return new(mcp.CallToolResult) }, func(_ *list, piece json.RawMessage) json.RawMessage { return mendContent(piece) }},
	{"messages", func() any { return new(mcp.GetPromptResult) }, (*list).mendMessage},
	{"contents", func() any { return new(mcp.ReadResourceResult) }, (*list).mendResource},
	{"tools", func() any { return new(mcp.ListToolsResult) }, (*list).mendTool},
	{"resources", func() any { return new(mcp.ListResourcesResult) }, (*list).mendEntry},
	{"resourceTemplates", func() any { return new(mcp.ListResourceTemplatesResult) }, (*list).mendEntry},
	{"prompts", func() any { return new(mcp.ListPromptsResult) }, (*list).mendEntry},
}

// readable returns a message of a server in a form that the SDK can read. It replaces the
// entries of lists that the SDK cannot read. A result that it cannot mend becomes an error.
// It does not change other messages.
func readable(message []byte) []byte {
	var fields map[string]json.RawMessage
	if !bytes.Contains(message, []byte(`"result"`)) || json.Unmarshal(message, &fields) != nil || fields["result"] == nil {
		return message // not a response, or not a message
	}
	result, changed := mended(fields["result"])
	switch {
	case result == nil:
		delete(fields, "result")
		fields["error"] = encoded(map[string]any{"code": codeUnreadable, "message": "the result has a form that the protocol does not define"})
	case changed:
		fields["result"] = result
	default:
		return message
	}
	return encoded(fields)
}

// mended returns a result that the SDK can read, and whether it differs from the one that
// the server sent. Nil: the result cannot be mended.
func mended(result json.RawMessage) (out json.RawMessage, changed bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil || fields == nil {
		return nil, false
	}
	if isRead(result, fields) && !bytes.Contains(result, []byte("null")) {
		return result, false // as nearly all are
	}
	for _, l := range lists {
		if fields[l.field] != nil && l.mends(fields) {
			changed = true
		}
	}
	if changed {
		result = encoded(fields)
	}
	if !isRead(result, fields) {
		return nil, false
	}
	return result, changed
}

// isRead reports whether the SDK can read a result with these fields. The request is
// not known here, so a result without a list is read as the result of a tool.
func isRead(result json.RawMessage, fields map[string]json.RawMessage) bool {
	for i, l := range lists {
		if (i == 0 || fields[l.field] != nil) && json.Unmarshal(result, l.into()) != nil {
			return false
		}
	}
	return true
}

// mends replaces the entries of a list that the SDK cannot read, and reports whether there
// were any.
func (l *list) mends(fields map[string]json.RawMessage) (changed bool) {
	var entries []json.RawMessage
	if json.Unmarshal(fields[l.field], &entries) != nil {
		return false
	}
	for i, entry := range entries {
		if !l.reads(entry) {
			entries[i], changed = l.mend(l, entry), true
		}
	}
	if changed {
		fields[l.field] = encoded(entries)
	}
	return changed
}

// reads reports whether the SDK can read an entry. It reads null as a nil pointer, which
// callers do not expect.
func (l *list) reads(entry json.RawMessage) bool {
	return !bytes.Equal(bytes.TrimSpace(entry), []byte("null")) && json.Unmarshal(encoded(map[string][]json.RawMessage{l.field: {entry}}), l.into()) == nil
}

// only returns an entry with those of the named fields that the SDK can read.
func (l *list) only(entry json.RawMessage, names ...string) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(entry, &fields) // an entry that is no object has no fields
	kept := make(map[string]json.RawMessage)
	for _, name := range names {
		if fields[name] == nil {
			continue
		}
		if kept[name] = fields[name]; !l.reads(encoded(kept)) {
			delete(kept, name)
		}
	}
	return kept
}

// mendContent drops fields that are not needed to show a piece of content. If that does
// not help, it returns text instead.
func mendContent(piece json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(piece, &fields) == nil && fields != nil {
		for _, name := range []string{"annotations", "icons", "_meta"} {
			delete(fields, name)
		}
		plain := encoded(fields)
		if json.Unmarshal(encoded(map[string][]json.RawMessage{"content": {plain}}), new(mcp.CallToolResult)) == nil {
			return plain
		}
	}
	return encoded(map[string]string{"type": "text", "text": unknownContent(piece)})
}

// mendMessage makes a message of a prompt readable.
func (l *list) mendMessage(message json.RawMessage) json.RawMessage {
	fields := l.only(message, "role", "content")
	if fields["role"] == nil {
		fields["role"] = json.RawMessage(`"user"`)
	}
	if fields["content"] == nil {
		var odd struct {
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(message, &odd) // then there is no content
		if odd.Content == nil {
			odd.Content = message
		}
		fields["content"] = mendContent(odd.Content)
	}
	return encoded(fields)
}

// mendResource makes a part of a resource readable.
func (l *list) mendResource(part json.RawMessage) json.RawMessage {
	fields := l.only(part, "uri", "mimeType", "text", "blob")
	if fields["text"] == nil && fields["blob"] == nil {
		fields["text"] = encoded(unknownContent(part))
	}
	return encoded(fields)
}

// mendTool keeps the fields that a tool needs. Its annotations may be the unreadable part,
// so the tool counts as destructive.
func (l *list) mendTool(tool json.RawMessage) json.RawMessage {
	fields := l.only(tool, "name", "title", "description", "inputSchema")
	fields["annotations"] = json.RawMessage(`{"destructiveHint":true}`)
	return encoded(fields)
}

// mendEntry keeps the fields that an entry needs: its URI or name, and its description.
func (l *list) mendEntry(entry json.RawMessage) json.RawMessage {
	return encoded(l.only(entry, "uri", "uriTemplate", "name", "title", "description", "mimeType"))
}

// unknownContent returns the text for unreadable content: its JSON, with long strings cut.
func unknownContent(piece json.RawMessage) string {
	var value any
	if len(piece) > mostUnknown && json.Unmarshal(piece, &value) == nil {
		piece = encoded(shorter(value))
	}
	return "[content that Belay cannot read: " + cutText(string(piece), mostUnknown) + "]"
}

// shorter returns a JSON value with long strings cut.
func shorter(value any) any {
	switch v := value.(type) {
	case string:
		if utf8.RuneCountInString(v) > mostUnknownText {
			return cutText(v, mostUnknownText)
		}
	case []any:
		for i := range v {
			v[i] = shorter(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shorter(v[name])
		}
	}
	return value
}

// encoded returns a value as JSON. Decoded JSON and strings can always be encoded.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// readableBody is the body of a response with one message.
type readableBody struct {
	io.ReadCloser

	message *bytes.Reader // nil before the first read
}

func (b *readableBody) Read(p []byte) (int, error) {
	if b.message == nil {
		whole, err := io.ReadAll(b.ReadCloser)
		if err != nil {
			return 0, err
		}
		b.message = bytes.NewReader(readable(whole))
	}
	return b.message.Read(p) //nolint:wrapcheck // likewise
}

// readableEvents is the body of a response with a stream of events. It passes on each
// event when it is complete. An event that is too long is passed on as it comes: the SDK
// bounds it.
type readableEvents struct {
	io.Closer

	from  *bufio.Reader
	event bytes.Buffer // the part read so far
	fresh bool         // the next byte begins a line
	// announced is called when the server announces a change of its tools.
	announced func()
	out       []byte // the part to pass on
	err       error  // the part after it
}

func newReadableEvents(body io.ReadCloser, announced func()) *readableEvents {
	return &readableEvents{Closer: body, announced: announced, from: bufio.NewReader(body), fresh: true}
}

func (e *readableEvents) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.next()
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// next reads a line, or as much as fits the buffer, and passes on the event if the line
// was its last. The passed part is read before next is called again.
func (e *readableEvents) next() {
	if e.out != nil {
		e.out = nil
		e.event.Reset()
	}
	line, err := e.from.ReadSlice('\n')
	blank := e.fresh && err == nil && len(bytes.TrimRight(line, "\r\n")) == 0
	e.fresh = err == nil
	e.event.Write(line)
	switch {
	case err != nil && !errors.Is(err, bufio.ErrBufferFull):
		e.out, e.err = e.event.Bytes(), err
	case blank:
		if bytes.Contains(e.event.Bytes(), []byte(listChanged)) {
			e.announced()
		}
		e.out = readableEvent(e.event.Bytes())
	case e.event.Len() > mostMessage:
		e.out = e.event.Bytes()
	}
}

// readableEvent returns an event with its message in a form that the SDK can
// read.
func readableEvent(event []byte) []byte {
	var data, others []byte
	for line := range bytes.Lines(event) {
		value, isData := bytes.CutPrefix(line, []byte("data:"))
		if !isData {
			if len(bytes.TrimRight(line, "\r\n")) > 0 {
				others = append(others, line...)
			}
			continue
		}
		if data != nil {
			data = append(data, '\n')
		}
		data = append(data, bytes.TrimPrefix(bytes.TrimRight(value, "\r\n"), []byte(" "))...)
	}
	message := readable(data)
	if bytes.Equal(message, data) {
		return event
	}
	others = append(append(others, "data: "...), message...)
	return append(others, "\n\n"...)
}
