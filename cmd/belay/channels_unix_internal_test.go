//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// "belay serve" sends what waits to its channels. A decision in the chat continues the turn. A
// server that is killed sends nothing twice, and takes the decision that was made meanwhile.
//
// SPEC N-01
func TestServeRunsChannels(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []map[string]any
	edited, updates := "", []map[string]any{}
	telegram := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body) // ignore errors: the fields are checked
		method := strings.TrimPrefix(r.URL.Path, "/bot12:hush/")
		mu.Lock()
		defer mu.Unlock()
		var result any = true
		switch method {
		case "sendMessage":
			sent = append(sent, body)
			result = map[string]any{"message_id": len(sent), "chat": map[string]any{"id": 7}}
		case "editMessageText":
			edited, _ = body["text"].(string)
		case "getUpdates":
			offset, _ := body["offset"].(float64)
			if wait, _ := body["timeout"].(float64); wait > 0 && (len(updates) == 0 || offset > 1) { // nothing comes any more
				mu.Unlock()
				<-r.Context().Done()
				mu.Lock()
			}
			if result = updates; offset > 1 {
				result = []any{}
			}
		case "answerCallbackQuery":
		default:
			t.Errorf("there is no method %s", r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result}) // ignore errors: the client was killed
	}))
	defer telegram.Close()
	dir := project(t, map[string]string{
		"s.yaml": "follow_transcript: true\nsteps:\n  - calls: [{tool: write, input: {path: notes.md, content: x}}]\n  - text: It is written.\n",
	})
	if err := os.MkdirAll(filepath.Join(dir, "belay"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("serve: {url: \"https://belay.example.com/\"}\nchannels:\n  ops: {kind: telegram, to: \"7\", url: %q, token_file: token, approvers: [\"1\"]}\n", telegram.URL)
	for name, text := range map[string]string{"belay.yaml": settings, "token": "12:hush\n"} {
		if err := os.WriteFile(filepath.Join(dir, "belay", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, stderr, code := belay(t, dir, "submit", "--as", "first", "write it"); code != 0 {
		t.Fatal(stderr)
	}
	first := start(t, dir, "serve", "--listen", "127.0.0.1:0", "--model", "scripted/s.yaml", "--mode", "strict")
	await(t, "the request is sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(sent) == 1
	})
	await(t, "it is remembered", func() bool {
		state, _ := os.ReadFile(filepath.Join(dir, ".belay", "channels", "ops.json"))
		return strings.Contains(string(state), `"place": "7 1"`)
	})
	if out, _, code := belay(t, dir, "channels", "list"); code != 0 || !strings.Contains(out, "ops") {
		t.Errorf("channels list: %d %s", code, out)
	}
	first.signal(syscall.SIGKILL)
	_, _ = first.ended()
	mu.Lock()
	out, _, _ := belay(t, dir, "approvals", "list", "--json")
	var waits struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(out), &waits); err != nil || waits.ID == "" || !strings.Contains(fmt.Sprint(sent[0]["text"]), "https://belay.example.com/approvals/"+waits.ID+"\n") {
		t.Errorf("the message has no link to the approval %s: %v", out, sent[0]["text"])
	}
	keyboard := fmt.Sprint(sent[0]["reply_markup"])
	_, rest, _ := strings.Cut(keyboard, "callback_data:approve ")
	key, _, _ := strings.Cut(rest, " ")
	updates = append(updates, map[string]any{"update_id": 1, "callback_query": map[string]any{"id": "q", "from": map[string]any{"id": 1}, "message": map[string]any{"message_id": 1, "chat": map[string]any{"id": 7}}, "data": "approve " + key}})
	mu.Unlock()
	second := start(t, dir, "serve", "--listen", "127.0.0.1:0", "--model", "scripted/s.yaml", "--mode", "strict")
	await(t, "the message shows the decision", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(edited, "Approved by telegram:1")
	})
	await(t, "the turn continues", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "notes.md"))
		return err == nil && string(text) == "x"
	})
	second.signal(syscall.SIGTERM)
	if rest, code := second.ended(); code != 0 {
		t.Errorf("exit code %d: %s", code, rest)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sent) != 1 {
		t.Errorf("%d messages were sent, want 1", len(sent))
	}
	if out, _, code := belay(t, dir, "approvals", "list", "--all", "--json"); code != 0 || !strings.Contains(out, `"by":"telegram:1"`) {
		t.Errorf("the approvals are %s", out)
	}
}

// await polls until f reports true.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(hanging)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		<-tick.C
	}
}
