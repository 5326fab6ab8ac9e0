package serve_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// A message can have images and files. The transcript keeps them, and a body with files may be
// larger than other bodies.
//
// SPEC V-02
func TestFilesOfAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	picture := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{1}, 1<<20)...)
	file := func(name, mime string, data []byte) map[string]any {
		return map[string]any{"name": name, "mime": mime, "data": base64.StdEncoding.EncodeToString(data)}
	}
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "", "wait": "end", "files": []any{
		file("design.png", "", picture), file("go.json", "application/json", []byte(`{"a": 1}`)), file("blob", "application/x-thing", []byte{0, 1}),
	}}, nil)
	var list struct{ Messages []*belay.Message }
	w.call("admin", "GET", "/v1/sessions/"+id+"/messages", nil, &list)
	var kinds []string
	for i := range list.Messages[0].Parts {
		if m := list.Messages[0].Parts[i].Media; m != nil {
			kinds = append(kinds, m.Name+" "+m.MIME)
			if m.Name == "design.png" && !bytes.Equal(m.Data, picture) {
				t.Error("the stored picture differs")
			}
		}
	}
	if got := strings.Join(kinds, ", "); got != "design.png image/png, go.json text/plain, blob application/x-thing" {
		t.Errorf("the parts are %s", got)
	}
	for field, files := range map[string]any{
		"/files/0/data": []any{file("empty", "text/plain", nil)},
		"/files/0/mime": []any{file("odd", "no type", []byte("x"))},
		"/text":         []any{},
	} {
		if p := w.send("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "", "files": files}, nil).problem(t); p.Status != 422 || p.Field != field {
			t.Errorf("%v: %+v, want the field %s", files, p, field)
		}
	}
	long := strings.Repeat("x", 1<<20)
	if p := w.send("admin", "POST", "/v1/sessions", map[string]any{"title": long}, nil).problem(t); p.Status != 413 {
		t.Errorf("another operation accepts a large body: %+v", p)
	}
	if p := w.send("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": strings.Repeat(long, 17)}, nil).problem(t); p.Status != 413 {
		t.Errorf("a body over the limit: %+v", p)
	}
}
