package slack_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/belay-run/belay/channel/internal/channeltest"
)

const (
	botToken = "xoxb-test"
	appToken = "xapp-test"
)

type object = map[string]any

// service is a strict Slack on loopback. It refuses methods, fields, blocks and tokens that the
// real one does not know.
type service struct {
	t   *testing.T
	url string

	mu         sync.Mutex
	calls      []call
	posted     int
	rate       int    // how many calls are refused with 429
	after      string // the header Retry-After of these
	fail       string // the error of the next calls
	conn       *websocket.Conn
	opened     int
	acks       map[string]json.RawMessage
	envelope   int
	disconnect bool // the next connection is closed after hello
}

// call is one call of a method.
type call struct {
	method string
	body   object
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, acks: make(map[string]json.RawMessage)}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	s.url = server.URL
	t.Cleanup(func() {
		s.mu.Lock()
		if s.conn != nil {
			_ = s.conn.CloseNow()
		}
		s.mu.Unlock()
		server.Close()
	})
	return s
}

// fields are the fields that each method knows, and the token that it needs.
var fields = map[string]struct {
	token string
	known []string
}{
	"apps.connections.open": {appToken, nil},
	"chat.postMessage":      {botToken, []string{"channel", "text", "blocks", "unfurl_links"}},
	"chat.update":           {botToken, []string{"channel", "ts", "text", "blocks"}},
	"chat.postEphemeral":    {botToken, []string{"channel", "user", "text"}},
	"views.open":            {botToken, []string{"trigger_id", "view"}},
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/socket" {
		s.socket(w, r)
		return
	}
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	reply := func(body object) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			s.t.Error(err)
		}
	}
	known, ok := fields[method]
	if !ok || r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		s.t.Errorf("Slack has no %s %s", r.Method, r.URL)
		reply(object{"ok": false, "error": "unknown_method"})
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+known.token {
		reply(object{"ok": false, "error": "invalid_auth"})
		return
	}
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Errorf("%s: %v", method, err)
	}
	if err := checkCall(body, known.known); err != nil {
		s.t.Errorf("%s: %v", method, err)
		reply(object{"ok": false, "error": "invalid_arguments"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rate > 0 {
		s.rate--
		w.Header().Set("Retry-After", s.after)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if s.fail != "" {
		reply(object{"ok": false, "error": s.fail})
		return
	}
	s.calls = append(s.calls, call{method, body})
	switch method {
	case "apps.connections.open":
		reply(object{"ok": true, "url": "ws" + strings.TrimPrefix(s.url, "http") + "/socket?ticket=hush"})
	case "chat.postMessage":
		s.posted++
		reply(object{"ok": true, "channel": body["channel"], "ts": fmt.Sprintf("17.%d", s.posted)})
	default:
		reply(object{"ok": true})
	}
}

// checkCall rejects what Slack would reject.
func checkCall(body object, known []string) error {
	for name := range body {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the field %s is unknown", name)
		}
	}
	blocks, _ := body["blocks"].([]any)
	if view, ok := body["view"].(object); ok {
		for name := range view {
			if !slices.Contains([]string{"type", "callback_id", "private_metadata", "title", "submit", "close", "blocks"}, name) {
				return fmt.Errorf("the field %s of a view is unknown", name)
			}
		}
		blocks, _ = view["blocks"].([]any)
	}
	for _, one := range blocks {
		block, _ := one.(object)
		switch block["type"] {
		case "section":
			text, _ := block["text"].(object)
			words, _ := text["text"].(string)
			if words == "" || len([]rune(words)) > 3000 || text["type"] != "mrkdwn" {
				return fmt.Errorf("a section is invalid: %v", block)
			}
		case "context":
			elements, _ := block["elements"].([]any)
			for _, one := range elements {
				if e, _ := one.(object); e["type"] != "mrkdwn" || len([]rune(fmt.Sprint(e["text"]))) > 3000 {
					return fmt.Errorf("a context is invalid: %v", block)
				}
			}
		case "actions", "input":
		default:
			return fmt.Errorf("there are no blocks of type %v", block["type"])
		}
		elements, _ := block["elements"].([]any)
		if len(elements) > 25 {
			return errors.New("there are more than 25 buttons")
		}
		for _, one := range elements {
			if e, _ := one.(object); e["type"] == "button" {
				text, _ := e["text"].(object)
				if words, _ := text["text"].(string); words == "" || len([]rune(words)) > 75 || e["action_id"] == "" {
					return fmt.Errorf("a button is invalid: %v", e)
				}
			}
		}
	}
	return nil
}

// socket accepts a connection of Socket Mode, and reads the acknowledgements.
func (s *service) socket(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ticket") != "hush" {
		http.Error(w, "no ticket", http.StatusForbidden)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer func() { _ = conn.CloseNow() }()
	s.mu.Lock()
	s.opened++
	refresh := s.disconnect
	s.disconnect = false
	if !refresh {
		s.conn = conn
	}
	s.mu.Unlock()
	_ = wsjson.Write(r.Context(), conn, object{"type": "hello", "num_connections": 1})
	if refresh {
		_ = wsjson.Write(r.Context(), conn, object{"type": "disconnect", "reason": "refresh_requested"})
	}
	for {
		var ack map[string]json.RawMessage
		if err := wsjson.Read(r.Context(), conn, &ack); err != nil {
			return
		}
		var id string
		if err := json.Unmarshal(ack["envelope_id"], &id); err != nil {
			s.t.Errorf("an acknowledgement is %v", ack)
		}
		for name := range ack {
			if name != "envelope_id" && name != "payload" {
				s.t.Errorf("an acknowledgement has the field %s", name)
			}
		}
		s.mu.Lock()
		s.acks[id] = append(json.RawMessage{'.'}, ack["payload"]...)
		s.mu.Unlock()
	}
}

// act sends what a person does, and waits for the acknowledgement. It returns its payload.
func (s *service) act(payload object) string {
	s.t.Helper()
	channeltest.Eventually(s.t, "the client connects", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.conn != nil
	})
	s.mu.Lock()
	s.envelope++
	id, conn := fmt.Sprintf("e%d", s.envelope), s.conn
	s.mu.Unlock()
	if err := wsjson.Write(s.t.Context(), conn, object{"type": "interactive", "envelope_id": id, "accepts_response_payload": true, "payload": payload}); err != nil {
		s.t.Fatal(err)
	}
	var ack json.RawMessage
	channeltest.Eventually(s.t, "the message is acknowledged", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		ack = s.acks[id]
		return ack != nil
	})
	return string(bytes.TrimPrefix(ack, []byte(".")))
}

// press presses a button.
func (s *service) press(user, action, key string) {
	s.t.Helper()
	s.act(object{
		"type": "block_actions", "user": object{"id": user}, "trigger_id": "t1", "container": object{"channel_id": "C1", "message_ts": "17.1"},
		"actions": []object{{"action_id": action, "value": key}},
	})
}

// submit sends a form.
func (s *service) submit(user, callback, key, text string) string {
	s.t.Helper()
	return s.act(object{
		"type": "view_submission", "user": object{"id": user},
		"view": object{"callback_id": callback, "private_metadata": key, "state": object{"values": object{"text": object{"text": object{"type": "plain_text_input", "value": text}}}}},
	})
}

// of returns the calls of a method.
func (s *service) of(method string) []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []object
	for _, c := range s.calls {
		if c.method == method {
			all = append(all, c.body)
		}
	}
	return all
}
