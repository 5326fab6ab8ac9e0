package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// resultText returns the text of a result. The protocols have no field for errors, so an error
// begins with the word Error.
func resultText(r *belay.ResultPart) string {
	switch {
	case !r.IsError:
		return r.Text
	case wire.IsBlank(r.Text):
		return "Error: the tool failed and did not say why."
	default:
		return "Error: " + r.Text
	}
}

// argumentsOf returns the input of a call as the service requires it: a text that is a JSON
// object.
func argumentsOf(input json.RawMessage) string {
	if !wire.IsObject(input) {
		return "{}"
	}
	return plain(wire.ReplaceLoneSurrogates(input))
}

// plain returns JSON without white space, and without the escapes that storing it adds. So an
// input has the same bytes before and after it was stored, and a model that reads its own
// calls does not learn to write < as \u003c.
func plain(input json.RawMessage) string {
	text := compact(input)
	if !bytes.Contains(text, []byte(`\u`)) {
		return string(text)
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		if i+5 < len(text) && text[i+1] == 'u' {
			if c, ok := storedEscapes[strings.ToLower(string(text[i+2:i+6]))]; ok {
				out = append(out, c...)
				i += 5
				continue
			}
		}
		out = append(out, text[i], text[i+1]) // skip the escaped character, which may be a backslash
		i++
	}
	return string(out)
}

// storedEscapes are the characters that encoding/json escapes although JSON does not require it.
var storedEscapes = map[string]string{"003c": "<", "003e": ">", "0026": "&", "2028": "\u2028", "2029": "\u2029"}

// media is an image or a file in a form that the service accepts. One kind of field is set.
type media struct {
	image          string // an address, which may be a data URL
	file, fileName string // likewise
	text           string // a text file, or a notice in place of the file
}

// mediaOf returns an image or a file, or a text in place of a file that the service does not
// accept.
func mediaOf(m *belay.Media) media {
	switch kind := wire.ImageType(m); {
	case kind != "" && len(m.Data) > 0:
		return media{image: dataURL(kind, m.Data)}
	case kind != "" && m.URL != "":
		return media{image: m.URL}
	case m.MIME == "application/pdf" && len(m.Data) > 0:
		return media{file: dataURL(m.MIME, m.Data), fileName: nameOf(m, "file.pdf")}
	case strings.HasPrefix(m.MIME, "text/") && !wire.IsBlank(string(m.Data)):
		return media{text: fmt.Sprintf("<file name=%q>\n%s\n</file>", nameOf(m, "file"), m.Data)}
	default:
		return media{text: wire.FileNotice(m)}
	}
}

// dataURL returns the content of a file as a data URL.
func dataURL(kind string, content []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(content)
}

func nameOf(m *belay.Media, otherwise string) string {
	if m.Name == "" {
		return otherwise
	}
	return m.Name
}

// opaque is the data that this package keeps with a part. The fields of one protocol mean
// nothing to the other.
type opaque struct {
	// ID and Encrypted belong to an item of thinking, and Summary is its texts if there are
	// several.
	ID        string   `json:"id,omitempty"`
	Encrypted string   `json:"encrypted,omitempty"`
	Summary   []string `json:"summary,omitempty"`
	// Phase is the kind of text, as the service classified it.
	Phase string `json:"phase,omitempty"`
	// Field is the field in which a Chat server sent its thinking. Detail is a detail of
	// thinking, without its text, that must be sent back to the server.
	Field  string          `json:"field,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// ours returns the data that this package keeps with a part, or false if the part is from
// another provider.
func ours(p *belay.Part, provider string) (opaque, bool) {
	var o opaque
	ok := p.Provider == provider && len(p.Opaque) > 0 && json.Unmarshal(p.Opaque, &o) == nil
	return o, ok
}
