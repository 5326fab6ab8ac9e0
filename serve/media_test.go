package serve_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve"
)

// The images and files of a message have addresses, and a list of messages can leave out their
// bytes. A browser that opens such an address runs nothing, whatever the file says it is.
//
// SPEC V-02, V-06
func TestMedia(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	picture := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{1}, 1<<20)...)
	page := []byte("<script>alert(1)</script>")
	file := func(name, mime string, data []byte) map[string]any {
		return map[string]any{"name": name, "mime": mime, "data": base64.StdEncoding.EncodeToString(data)}
	}
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "look", "wait": "end", "files": []any{
		file("design.png", "image/png", picture), file("a\r\nb \"ü\".bin", "text/html", page), file("x.svg", "image/svg+xml", []byte("<svg/>")),
	}}, nil)

	var all, few struct{ Messages []*belay.Message }
	for _, order := range []string{"", "&newest=true"} {
		w.call("admin", "GET", "/v1/sessions/"+id+"/messages?limit=500"+order, nil, &all)
		w.call("admin", "GET", "/v1/sessions/"+id+"/messages?limit=500&no_media=true"+order, nil, &few)
		if diff := cmp.Diff(all.Messages, few.Messages, cmpopts.IgnoreUnexported(belay.Message{}), cmpopts.IgnoreFields(belay.Media{}, "Data")); diff != "" {
			t.Errorf("without media the messages differ in more than their bytes: %s", diff)
		}
		for _, m := range few.Messages {
			for i := range m.Parts {
				if media := m.Parts[i].Media; media != nil && len(media.Data) > 0 {
					t.Errorf("%s has its bytes", media.Name)
				}
			}
		}
	}

	for at, want := range []struct {
		kind, disposition string
		data              []byte
	}{
		{"image/png", `inline; filename=design.png`, picture},
		{"application/octet-stream", "attachment; filename*=utf-8''a%0D%0Ab%20%22%C3%BC%22.bin", page},
		{"application/octet-stream", "attachment; filename=x.svg", []byte("<svg/>")},
	} {
		r := w.send("admin", "GET", fmt.Sprintf("/v1/sessions/%s/messages/1/media/%d", id, at), nil, nil)
		h := r.header
		if r.status != 200 || h.Get("Content-Type") != want.kind || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" || !bytes.Equal(r.body, want.data) {
			t.Errorf("file %d: status %d with %v and %d bytes", at, r.status, h, len(r.body))
		}
		if got := h.Get("Content-Disposition"); got != want.disposition {
			t.Errorf("file %d: Content-Disposition is %q, want %q", at, got, want.disposition)
		}
	}
	for _, path := range []string{"/messages/1/media/3", "/messages/2/media/0", "/messages/9/media/0"} {
		if p := w.send("admin", "GET", "/v1/sessions/"+id+path, nil, nil).problem(t); p.Status != 404 {
			t.Errorf("%s: %+v", path, p)
		}
	}
	for _, path := range []string{"/messages/x/media/0", "/messages/0/media/0", "/messages/1/media/-1"} {
		if p := w.send("admin", "GET", "/v1/sessions/"+id+path, nil, nil).problem(t); p.Status != 422 {
			t.Errorf("%s: %+v", path, p)
		}
	}
	w.token("other", map[string]string{"team": "other"}, serve.RoleAdmin)
	if p := w.send("other", "GET", "/v1/sessions/"+id+"/messages/1/media/0", nil, nil).problem(t); p.Status != 404 {
		t.Errorf("another tenant: %+v", p)
	}
}
