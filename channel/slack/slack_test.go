package slack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"go.uber.org/goleak"

	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/channel/internal/channeltest"
	"github.com/belay-run/belay/channel/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
		case "context", "actions", "input":
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

// world is a store, a Slack, and a channel that runs.
type world struct {
	*service
	*channeltest.Project
}

func newWorld(t *testing.T, tool, input string) (world, string, func() string) {
	t.Helper()
	w := world{newService(t), channeltest.New(t)}
	approval := w.Ask("s", tool, input)
	w.run(t)
	channeltest.Eventually(t, "the request is sent", func() bool { return len(w.of("chat.postMessage")) == 1 })
	text, err := json.Marshal(w.of("chat.postMessage")[0])
	if err != nil {
		t.Fatal(err)
	}
	key := ""
	for _, d := range w.status(t).Deliveries {
		key = d.Key
	}
	if !strings.Contains(string(text), key) || key == "" {
		t.Fatalf("the message has no key %q: %s", key, text)
	}
	return w, key, func() string {
		d := w.Decision(approval.ID)
		if d == nil {
			return ""
		}
		return fmt.Sprintf("%v %s %s", d.Allow, d.By, d.Reason)
	}
}

// run runs the channel until the test ends.
func (w *world) run(t *testing.T) {
	t.Helper()
	ch, err := slack.New(&slack.Options{To: "C1", BotToken: botToken, AppToken: appToken, URL: w.url + "/api"})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := channel.New("team", ch, w.Store, &channel.Options{Dir: w.Dir, Approvers: []string{"U1"}, Poll: 5 * time.Millisecond, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
}

func (w *world) status(t *testing.T) *channel.Status {
	t.Helper()
	s, err := channel.ReadStatus(w.Dir, "team")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// updated waits until the message shows a text.
func (w *world) updated(t *testing.T, text string) {
	t.Helper()
	channeltest.Eventually(t, "the message shows "+text, func() bool {
		for _, u := range w.of("chat.update") {
			data, _ := json.Marshal(u)
			if strings.Contains(string(data), text) && u["ts"] == "17.1" && !strings.Contains(string(data), `"button"`) {
				return true
			}
		}
		return false
	})
}

// People approve, deny, and deny with a reason. Slack's message changes and shows who decided.
//
// SPEC N-01
func TestButtons(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, tool, input string
		act               func(w world, key string)
		decided, shows    string
	}{
		{"a button approves", "shell", `{"command": "git push"}`, func(w world, key string) { w.press("U1", "approve", key) }, "true slack:U1 ", "Approved by slack:U1"},
		{"a button denies", "shell", `{"command": "git push"}`, func(w world, key string) { w.press("U1", "deny", key) }, "false slack:U1 ", "Denied by slack:U1"},
		{"a form denies with a reason", "shell", `{"command": "git push"}`, func(w world, key string) {
			w.press("U1", "reason", key)
			if views := w.of("views.open"); len(views) != 1 || views[0]["trigger_id"] != "t1" {
				w.service.t.Errorf("the forms are %v", views)
			}
			w.submit("U1", "reason", key, " not today ")
		}, "false slack:U1 not today", "Denied by slack:U1: not today"},
		{"a form answers a question", "ask_user", `{"question": "Which host?"}`, func(w world, key string) {
			w.press("U1", "answer", key)
			w.submit("U1", "answer", key, "staging")
		}, "true slack:U1 staging", "Answered by slack:U1: staging"},
		{"a button answers a question", "ask_user", `{"question": "Which host?", "options": ["2", "demo", "1"]}`, func(w world, key string) { w.press("U1", "option-2", key) }, "true slack:U1 demo", "Answered by slack:U1: demo"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			w, key, decided := newWorld(t, test.tool, test.input)
			test.act(w, key)
			if got := decided(); got != test.decided {
				t.Errorf("the decision is %q, want %q", got, test.decided)
			}
			w.updated(t, test.shows)
		})
	}
}

// A stranger gets a refusal that only they see. A form with an invalid answer stays open and says
// why. Nothing is decided.
//
// SPEC N-02
func TestRefusals(t *testing.T) {
	t.Parallel()
	w, key, decided := newWorld(t, "ask_user", `{"question": "Which?", "options": ["a", "b"]}`)
	w.press("U2", "option-1", key)
	if told := w.of("chat.postEphemeral"); len(told) != 1 || told[0]["user"] != "U2" || told[0]["channel"] != "C1" || !strings.Contains(fmt.Sprint(told[0]["text"]), "Sorry, you cannot decide this") {
		t.Errorf("the stranger was told %v", told)
	}
	for _, user := range []string{"U1", "U2"} {
		if ack := w.submit(user, "answer", key, "c"); !strings.Contains(ack, `"response_action":"errors"`) {
			t.Errorf("the form of %s is answered with %s", user, ack)
		}
	}
	w.press("U1", "unknown", key)
	w.press("U1", "approve", "no-such-key")
	if got := decided(); got != "" {
		t.Errorf("the decision is %q", got)
	}
	if refused := w.status(t).Refused; len(refused) != 2 || refused[0].User != "U2" {
		t.Errorf("the refusals are %v", refused)
	}
}

// Texts of the model cannot become markup, mentions or links of Slack.
//
// SPEC N-02
func TestMarkup(t *testing.T) {
	t.Parallel()
	w, _, _ := newWorld(t, "shell", "{\"command\": \"echo ```<!channel> <https://evil.example|ok> & *bold*\"}")
	data, err := json.Marshal(w.of("chat.postMessage")[0]["blocks"])
	if err != nil {
		t.Fatal(err)
	}
	var text string
	if err := json.Unmarshal([]byte(`"`+strings.ReplaceAll(string(data), `"`, `\"`)+`"`), &text); err != nil {
		text = string(data)
	}
	for _, forbidden := range []string{"<!channel>", "<https://evil", "```<", "echo ```"} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the message has %s: %s", forbidden, text)
		}
	}
}

// Slack asks for a new connection, closes connections and limits rates. Nothing is lost.
//
// SPEC N-01, N-02
func TestConnections(t *testing.T) {
	t.Parallel()
	w := world{newService(t), channeltest.New(t)}
	w.disconnect, w.rate, w.after = true, 1, "0"
	approval := w.Ask("s", "shell", `{"command": "x"}`)
	w.run(t)
	channeltest.Eventually(t, "a second connection is open", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.opened == 2 && w.conn != nil
	})
	w.mu.Lock()
	_ = w.conn.CloseNow()
	w.conn = nil
	w.mu.Unlock()
	channeltest.Eventually(t, "the request is sent", func() bool { return len(w.of("chat.postMessage")) == 1 })
	w.press("U1", "approve", w.status(t).Deliveries[0].Key)
	if d := w.Decision(approval.ID); d == nil || d.By != "slack:U1" {
		t.Errorf("the decision is %+v", d)
	}
}

// Errors say what is wrong and what to do, and have no secret.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := newService(t)
	open := func(bot, app string) *slack.Channel {
		c, err := slack.New(&slack.Options{To: "C1", BotToken: bot, AppToken: app, URL: s.url + "/api"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := open(botToken, appToken).Test(t.Context(), "hello"); err != nil {
		t.Error(err)
	}
	if sent := s.of("chat.postMessage"); len(sent) != 1 || sent[0]["text"] != "hello" {
		t.Errorf("the test sent %v", sent)
	}
	if err := open("xoxb-wrong-hush", appToken).Test(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "chat.postMessage: invalid_auth: check the token") || strings.Contains(err.Error(), "hush") {
		t.Errorf("a wrong bot token gives %v", err)
	}
	if err := open(botToken, "xapp-wrong").Test(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "apps.connections.open: invalid_auth") {
		t.Errorf("a wrong app token gives %v", err)
	}
	s.fail = "not_in_channel"
	if err := open(botToken, appToken).Test(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "invite the app to the channel") {
		t.Errorf("a channel without the app gives %v", err)
	}
	s.fail, s.rate, s.after = "", 1, "7"
	var again *channel.RetryError
	if err := open(botToken, appToken).Test(t.Context(), "x"); !errors.As(err, &again) || again.After != 7*time.Second {
		t.Errorf("a limited rate gives %v", err)
	}
	for _, o := range []*slack.Options{nil, {To: "C1"}, {To: "C1", BotToken: appToken, AppToken: botToken}} {
		if _, err := slack.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
