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

// resultText returns the text of a result. The protocols have no field for errors, so the
// text of an error begins with "Error:".
func resultText(r *belay.ResultPart) string {
	switch {
	case !r.IsError:
		return r.Text
	case wire.IsBlank(r.Text):
		return "Error: the tool failed and gave no reason."
	default:
		return "Error: " + r.Text
	}
}

// argumentsOf returns the input of a call as the service requires it: a JSON object in a
// string.
func argumentsOf(input json.RawMessage) string {
	if !wire.IsObject(input) {
		return "{}"
	}
	return plain(wire.ReplaceLoneSurrogates(input))
}

// plain returns JSON without white space and without the escapes that encoding/json adds. So
// an input has the same bytes before and after it was stored. And a model that reads its own
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
		out = append(out, text[i], text[i+1]) // also copy the escaped character, which may be a backslash
		i++
	}
	return string(out)
}

// storedEscapes are characters that encoding/json escapes although JSON does not require it.
var storedEscapes = map[string]string{"003c": "<", "003e": ">", "0026": "&", "2028": "\u2028", "2029": "\u2029"}

// media is an image or a file in a form that the service accepts. Only one of image, file
// and text is set.
type media struct {
	image          string // a URL, which may be a data URL
	file, fileName string // a data URL and the name of the file
	text           string // the content of a text file, or a notice about a file that is not sent
}

// mediaOf returns an image or a file. For a file that the service does not accept, it
// returns a text about the file.
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

func dataURL(kind string, content []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(content)
}

func nameOf(m *belay.Media, otherwise string) string {
	if m.Name == "" {
		return otherwise
	}
	return m.Name
}

// opaque is the data that this package stores in Part.Opaque. Each protocol has its own
// fields.
type opaque struct {
	// ID and Encrypted are fields of a reasoning item. Summary has the texts of the
	// item's summary if there are several.
	ID        string   `json:"id,omitempty"`
	Encrypted string   `json:"encrypted,omitempty"`
	Summary   []string `json:"summary,omitempty"`
	// Phase is the field "phase" of a text, as the service sent it.
	Phase string `json:"phase,omitempty"`
	// Field is the field in which a Chat server sent its thinking. Detail is a detail of
	// thinking without its text. Belay must send both back.
	Field  string          `json:"field,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// ours returns the data in Part.Opaque. It returns false if the part is from another
// provider or has no such data.
func ours(p *belay.Part, provider string) (opaque, bool) {
	var o opaque
	ok := p.Provider == provider && len(p.Opaque) > 0 && json.Unmarshal(p.Opaque, &o) == nil
	return o, ok
}
