package mcptool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// codeUnreadable is the code of an error that takes the place of a result which cannot be
// read.
const codeUnreadable = -32097

// readable returns a message of a server in a form that the SDK reads. The SDK refuses a
// whole result for one piece of content that it does not know or that is malformed. Here
// such a piece becomes text: the JSON that the server wrote. A result that cannot be read
// at all becomes an error. Other messages stay as they are.
func readable(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"result"`)) || isReadable(message) {
		return message
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(message, &fields) != nil || fields["result"] == nil {
		return message // it is no answer, or no message at all
	}
	fields["result"] = withText(fields["result"])
	if fixed := encoded(fields); isReadable(fixed) {
		return fixed
	}
	delete(fields, "result")
	fields["error"] = encoded(map[string]any{"code": codeUnreadable, "message": "it is not a result that the protocol knows"})
	return encoded(fields)
}

// isReadable reports whether the SDK can read the result of a message as that of a tool and
// as a prompt. Results of other requests share no field with those.
func isReadable(message []byte) bool {
	var tool struct {
		Result mcp.CallToolResult `json:"result"`
	}
	var prompt struct {
		Result mcp.GetPromptResult `json:"result"`
	}
	return json.Unmarshal(message, &tool) == nil && (!bytes.Contains(message, []byte(`"messages"`)) || json.Unmarshal(message, &prompt) == nil)
}

// withText is the result of a tool, or a prompt, with text for what the SDK cannot read.
func withText(result json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil {
		return result
	}
	var content []json.RawMessage
	if json.Unmarshal(fields["content"], &content) == nil {
		for i := range content {
			content[i] = asText(content[i])
		}
		fields["content"] = encoded(content)
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(fields["messages"], &messages) == nil {
		for _, m := range messages {
			if m != nil {
				m["content"] = asText(m["content"])
			}
		}
		fields["messages"] = encoded(messages)
	}
	return encoded(fields)
}

// asText is a piece of content, or text in its place if the SDK cannot read it.
func asText(piece json.RawMessage) json.RawMessage {
	if len(piece) == 0 {
		piece = json.RawMessage("null")
	}
	if json.Unmarshal(encoded(map[string][]json.RawMessage{"content": {piece}}), new(mcp.CallToolResult)) == nil {
		return piece
	}
	return encoded(map[string]string{"type": "text", "text": string(piece)})
}

// encoded is a value as JSON. Values that were JSON, and texts, always have a form.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// readableBody is the body of an answer with one message.
type readableBody struct {
	io.ReadCloser

	message *bytes.Reader // nil before the first read
}

func (b *readableBody) Read(p []byte) (int, error) {
	if b.message == nil {
		whole, err := io.ReadAll(b.ReadCloser)
		if err != nil {
			return 0, err //nolint:wrapcheck // a reader passes on what it gets
		}
		b.message = bytes.NewReader(readable(whole))
	}
	return b.message.Read(p) //nolint:wrapcheck // likewise
}

// readableEvents is the body of an answer with a stream of events. It passes each event on
// when it is whole. An event that is too long is passed on as it comes: the SDK bounds it.
type readableEvents struct {
	io.Closer

	from  *bufio.Reader
	event bytes.Buffer // as far as it was read
	fresh bool         // the next byte begins a line
	// announced is called when the server announces other tools.
	announced func()
	out       []byte // that is to be passed on
	err       error  // that comes behind it
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

// next reads a line, or as much of it as fits the buffer, and passes on the event if that
// was its last. What is passed on is read before next is called again.
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

// readableEvent is an event with its message in a form that the SDK reads.
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
