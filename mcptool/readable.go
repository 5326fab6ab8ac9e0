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
	// mostUnknown is the maximum length of unknown content in bytes. In longer content,
	// each text is cut to mostUnknownText characters.
	mostUnknown     = 16 << 10
	mostUnknownText = 500
)

// list describes a list in a result of the protocol.
type list struct {
	field string
	// into returns a new value of the type into which the SDK decodes the result.
	into func() any
	// mend returns a readable replacement for an entry that the SDK cannot read.
	mend func(l *list, entry json.RawMessage) json.RawMessage
}

// lists are all lists whose entries the SDK decodes. Without a repair, one bad entry
// makes the SDK reject the whole result.
var lists = []*list{
	{"content", func() any { return new(mcp.CallToolResult) }, func(_ *list, piece json.RawMessage) json.RawMessage { return mendContent(piece) }},
	{"messages", func() any { return new(mcp.GetPromptResult) }, (*list).mendMessage},
	{"contents", func() any { return new(mcp.ReadResourceResult) }, (*list).mendResource},
	{"tools", func() any { return new(mcp.ListToolsResult) }, (*list).mendTool},
	{"resources", func() any { return new(mcp.ListResourcesResult) }, (*list).mendEntry},
	{"resourceTemplates", func() any { return new(mcp.ListResourceTemplatesResult) }, (*list).mendEntry},
	{"prompts", func() any { return new(mcp.ListPromptsResult) }, (*list).mendEntry},
}

// readable repairs a server's message so that the SDK can read it. It replaces list
// entries that the SDK cannot read. A result that cannot be repaired becomes an error.
// Other messages stay unchanged.
func readable(message []byte) []byte {
	var fields map[string]json.RawMessage
	if !bytes.Contains(message, []byte(`"result"`)) || json.Unmarshal(message, &fields) != nil || fields["result"] == nil {
		return message // not a response, or not a valid message
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

// mended returns a result that the SDK can read, and whether mended changed it. It
// returns nil if the result cannot be repaired.
func mended(result json.RawMessage) (out json.RawMessage, changed bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil || fields == nil {
		return nil, false
	}
	if isRead(result, fields) && !bytes.Contains(result, []byte("null")) {
		return result, false // nearly all results need no repair
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

// isRead reports whether the SDK can read a result with these fields. The request is not
// known here, so isRead treats a result without a known list as the result of a tool
// call.
func isRead(result json.RawMessage, fields map[string]json.RawMessage) bool {
	for i, l := range lists {
		if (i == 0 || fields[l.field] != nil) && json.Unmarshal(result, l.into()) != nil {
			return false
		}
	}
	return true
}

// mends replaces the entries of a list that the SDK cannot read. It reports whether it
// replaced any.
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

// reads reports whether the SDK can read an entry. It returns false for null: the SDK
// would decode null as a nil pointer, which callers do not expect.
func (l *list) reads(entry json.RawMessage) bool {
	return !bytes.Equal(bytes.TrimSpace(entry), []byte("null")) && json.Unmarshal(encoded(map[string][]json.RawMessage{l.field: {entry}}), l.into()) == nil
}

// only returns the named fields of an entry, without those that the SDK cannot read.
func (l *list) only(entry json.RawMessage, names ...string) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(entry, &fields) // an entry that is not an object has no fields
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

// mendContent drops the fields that are not needed to show a piece of content. If the SDK
// still cannot read the content, mendContent replaces it by a text.
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

// mendMessage repairs a message of a prompt.
func (l *list) mendMessage(message json.RawMessage) json.RawMessage {
	fields := l.only(message, "role", "content")
	if fields["role"] == nil {
		fields["role"] = json.RawMessage(`"user"`)
	}
	if fields["content"] == nil {
		var odd struct {
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(message, &odd) // on an error Content stays nil
		if odd.Content == nil {
			odd.Content = message
		}
		fields["content"] = mendContent(odd.Content)
	}
	return encoded(fields)
}

// mendResource repairs a part of a resource.
func (l *list) mendResource(part json.RawMessage) json.RawMessage {
	fields := l.only(part, "uri", "mimeType", "text", "blob")
	if fields["text"] == nil && fields["blob"] == nil {
		fields["text"] = encoded(unknownContent(part))
	}
	return encoded(fields)
}

// mendTool keeps the fields that a tool needs. It marks the tool as destructive, because
// the unreadable part may be the tool's annotations.
func (l *list) mendTool(tool json.RawMessage) json.RawMessage {
	fields := l.only(tool, "name", "title", "description", "inputSchema")
	fields["annotations"] = json.RawMessage(`{"destructiveHint":true}`)
	return encoded(fields)
}

// mendEntry keeps the fields that a resource or a prompt needs, such as its URI or name.
func (l *list) mendEntry(entry json.RawMessage) json.RawMessage {
	return encoded(l.only(entry, "uri", "uriTemplate", "name", "title", "description", "mimeType"))
}

// unknownContent returns a text with the JSON of unreadable content. It cuts long
// strings.
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

// encoded returns a value as JSON. It panics on an error: decoded JSON and strings can
// always be encoded.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// readableBody is a response body with one message, which it repairs with readable.
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

// readableEvents is a response body with a stream of events. It repairs each event when
// the event is complete. It does not collect events that are too long: the SDK rejects
// them.
type readableEvents struct {
	io.Closer

	from  *bufio.Reader
	event bytes.Buffer // the event as far as it was read
	fresh bool         // the next byte is the first of a line
	// announced is called when the server announces a change of its tools.
	announced func()
	out       []byte // the bytes that Read returns next
	err       error  // the error that Read returns after out
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

// next reads a line, or as much as fits the buffer. If the line ends an event, next puts
// the repaired event into e.out. The caller must return all of e.out before it calls next
// again.
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

// readableEvent returns an event whose message is repaired with readable.
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
