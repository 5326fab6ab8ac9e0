package telegram_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/channel/internal/channeltest"
	"github.com/belay-run/belay/channel/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "4711:hush"

type object = map[string]any

// service is a strict Telegram on loopback. It refuses methods and fields that the real one does
// not know, and forgets an update only when a later one is asked for.
type service struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	calls   map[string][]object
	updates []object
	number  int64
	fail    object // the answer to the next call of fails
	fails   string
	changed chan struct{} // closed when an update arrives
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, calls: make(map[string][]object), changed: make(chan struct{}), number: 100}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	s.url = server.URL
	t.Cleanup(server.Close)
	return s
}

// fields are the fields that each method knows.
var fields = map[string]string{
	"getUpdates":          " offset timeout allowed_updates ",
	"sendMessage":         " chat_id text reply_markup link_preview_options reply_parameters ",
	"editMessageText":     " chat_id message_id text link_preview_options ",
	"answerCallbackQuery": " callback_query_id text show_alert ",
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	reply := func(status int, body object) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // the client has left
	}
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+token+"/")
	if !ok {
		reply(http.StatusUnauthorized, object{"ok": false, "error_code": 401, "description": "Unauthorized"})
		return
	}
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || fields[method] == "" || r.Method != http.MethodPost {
		s.t.Errorf("Telegram has no %s %s: %v", r.Method, method, err)
		reply(http.StatusNotFound, object{"ok": false, "error_code": 404, "description": "Not Found"})
		return
	}
	for name := range body {
		if !strings.Contains(fields[method], " "+name+" ") {
			s.t.Errorf("%s has no field %s", method, name)
		}
	}
	if err := checkText(body); err != nil {
		s.t.Errorf("%s: %v", method, err)
	}
	s.mu.Lock()
	if s.fails == method {
		s.fails = ""
		s.mu.Unlock()
		code, _ := s.fail["error_code"].(int)
		reply(code, s.fail)
		return
	}
	s.calls[method] = append(s.calls[method], body)
	count := len(s.calls[method])
	s.mu.Unlock()
	switch method {
	case "getUpdates":
		reply(http.StatusOK, object{"ok": true, "result": s.next(r.Context(), body)})
	case "sendMessage":
		reply(http.StatusOK, object{"ok": true, "result": object{"message_id": count, "chat": object{"id": -100}}})
	default:
		reply(http.StatusOK, object{"ok": true, "result": true})
	}
}

// units counts a text as Telegram does.
func units(text string) int { return len(utf16.Encode([]rune(text))) }

// checkText rejects texts and buttons that are too long for Telegram.
func checkText(body object) error {
	if text, ok := body["text"].(string); ok && units(text) > 4096 || body["show_alert"] != nil && units(text) > 200 {
		return fmt.Errorf("the text has %d characters", units(text))
	}
	markup, _ := body["reply_markup"].(object)
	rows, _ := markup["inline_keyboard"].([]any)
	for _, row := range rows {
		buttons, _ := row.([]any)
		for _, one := range buttons {
			b, _ := one.(object)
			if data, _ := b["callback_data"].(string); data == "" || len(data) > 64 || b["text"] == "" {
				return fmt.Errorf("the button %v is invalid", b)
			}
		}
	}
	return nil
}

// next returns the updates from a number, and waits for some.
func (s *service) next(ctx context.Context, body object) []object {
	offset, _ := body["offset"].(float64)
	seconds, _ := body["timeout"].(float64)
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	for {
		s.mu.Lock()
		for len(s.updates) > 0 && s.updates[0]["update_id"].(int64) < int64(offset) {
			s.updates = s.updates[1:]
		}
		all, changed := s.updates, s.changed
		s.mu.Unlock()
		if len(all) > 0 || seconds == 0 {
			return append([]object{}, all...)
		}
		select {
		case <-changed:
		case <-timer.C:
			seconds = 0
		case <-ctx.Done():
			return nil
		}
	}
}

// push adds an update.
func (s *service) push(kind string, what object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	s.updates = append(s.updates, object{"update_id": s.number, kind: what})
	close(s.changed)
	s.changed = make(chan struct{})
}

// press presses a button.
func (s *service) press(user int, data string, chat int) {
	s.push("callback_query", object{"id": fmt.Sprintf("q%d", user), "from": object{"id": user}, "message": object{"message_id": 1, "chat": object{"id": chat}}, "data": data})
}

// reply replies to a message.
func (s *service) reply(user int, text string) {
	s.push("message", object{"message_id": 50, "from": object{"id": user}, "chat": object{"id": -100}, "text": text, "reply_to_message": object{"message_id": 1, "chat": object{"id": -100}, "text": "Reply to this message to answer."}})
}

// of returns the calls of a method.
func (s *service) of(method string) []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]object{}, s.calls[method]...)
}

// start runs the channel, and returns the key of the request that waits.
func start(t *testing.T, s *service, p *channeltest.Project) (key string, stop func()) {
	t.Helper()
	ch, err := telegram.New(&telegram.Options{To: "-100", Token: token, URL: s.url, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	runner, stop := p.Run("ops", ch, "1")
	channeltest.Eventually(t, "the request is sent", func() bool {
		all := runner.Status().Deliveries
		return len(all) == 1 && all[0].Place == "-100 1"
	})
	return runner.Status().Deliveries[0].Key, stop
}

// People decide with buttons and replies. The message changes and shows who decided. Strangers and
// other chats decide nothing. A reply denies a call, whatever its text says.
//
// SPEC N-01, N-02
func TestDecisions(t *testing.T) {
	t.Parallel()
	question := `{"question": "Which?", "options": ["a", "b", "2"]}`
	for _, test := range []struct {
		rule, tool, input string
		act               func(s *service, key string)
		decided, shows    string
	}{
		{"a button approves", "shell", `{"command": "x"}`, func(s *service, key string) { s.press(1, "approve "+key, -100) }, "true telegram:1 ", "Approved by telegram:1"},
		{"a button denies", "shell", `{"command": "x"}`, func(s *service, key string) { s.press(1, "deny "+key, -100) }, "false telegram:1 ", "Denied by telegram:1"},
		{"a reply denies with a reason", "shell", `{"command": "Reply to this message to answer."}`, func(s *service, _ string) { s.reply(1, "not today") }, "false telegram:1 not today", "Denied by telegram:1: not today"},
		{"a button answers", "ask_user", question, func(s *service, key string) { s.press(1, "2 "+key, -100) }, "true telegram:1 b", "Answered by telegram:1: b"},
		{"a reply answers", "ask_user", question, func(s *service, _ string) { s.reply(1, "A") }, "true telegram:1 a", "Answered by telegram:1: a"},
		{"a stranger is refused", "shell", `{"command": "x"}`, func(s *service, key string) { s.press(2, "approve "+key, -100) }, "", "Sorry, you cannot decide this. Your id 2"},
		{"the reply of a stranger is refused", "shell", `{"command": "x"}`, func(s *service, _ string) { s.reply(2, "yes") }, "", "Sorry, you cannot decide this. Your id 2"},
		{"a cut text has no button to approve", "shell", `{"command": "` + strings.Repeat("x", 2000) + `"}`, func(s *service, key string) {
			first := s.of("sendMessage")[0]
			if markup := fmt.Sprint(first["reply_markup"]); strings.Contains(markup, "approve") || !strings.Contains(markup, "deny "+key) || !strings.Contains(fmt.Sprint(first["text"]), "run: belay approvals show ") {
				s.t.Errorf("the message is %v", first)
			}
			s.press(1, "approve "+key, -100)
		}, "", "The text is too long for this channel and was cut"},
		{"a cut question has no options", "ask_user", `{"question": "` + strings.Repeat("x", 2000) + `", "options": ["a", "b"]}`, func(s *service, key string) {
			if first := fmt.Sprint(s.of("sendMessage")[0]); strings.Contains(first, "callback_data:1 ") || !strings.Contains(first, "deny "+key) || strings.Contains(first, "Reply to this message to answer") {
				s.t.Errorf("the message is %v", first)
			}
			s.reply(1, "a")
		}, "", "The text is too long for this channel and was cut"},
		{"long texts fit as Telegram counts them", "shell", `{"command": "` + strings.Repeat("😀", 749) + `"}`, func(s *service, _ string) { s.reply(1, strings.Repeat("😀", 400)) }, "false telegram:1 " + strings.Repeat("😀", 400), "Denied by telegram:1: 😀"},
		{"an invalid answer is refused", "ask_user", question, func(s *service, _ string) { s.reply(1, "c") }, "", "This is not a valid answer"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			s, p := newService(t), channeltest.New(t)
			approval := p.Ask("s", test.tool, test.input)
			key, _ := start(t, s, p)
			s.press(1, "approve "+key, -999) // another chat
			test.act(s, key)
			channeltest.Eventually(t, "people see "+test.shows, func() bool {
				said := s.of("editMessageText")
				if test.decided == "" {
					said = append(s.of("answerCallbackQuery"), s.of("sendMessage")...)
				}
				for _, m := range said {
					if text, _ := m["text"].(string); strings.Contains(text, test.shows) {
						return true
					}
				}
				return false
			})
			if got := p.Decided(approval.ID); got != test.decided {
				t.Errorf("the decision is %q, want %q", got, test.decided)
			}
		})
	}
}

// A decision that arrives while nobody listens is taken after the restart, and no message is sent
// twice. An update that was handled before a crash does no harm when it comes again.
//
// SPEC N-01
func TestRestart(t *testing.T) {
	t.Parallel()
	s, p := newService(t), channeltest.New(t)
	approval := p.Ask("s", "shell", `{"command": "x"}`)
	key, stop := start(t, s, p)
	stop()
	s.press(1, "approve "+key, -100)
	s.press(1, "deny "+key, -100)
	start(t, s, p)
	channeltest.Eventually(t, "both updates are answered", func() bool { return len(s.of("answerCallbackQuery")) == 2 })
	if d := p.Decision(approval.ID); d == nil || !d.Allow {
		t.Errorf("the decision is %+v", d)
	}
	if second := s.of("answerCallbackQuery")[1]; second["show_alert"] != true || !strings.Contains(fmt.Sprint(second["text"]), "Somebody was faster. Approved by telegram:1") {
		t.Errorf("the second decision is answered with %v", second)
	}
	if sent := s.of("sendMessage"); len(sent) != 1 {
		t.Errorf("%d messages were sent", len(sent))
	}
}

// Talk in the chat that is not about a request, and what happens in other chats, is ignored. A
// reply in another chat does not count, even if its message has the same number there.
//
// SPEC N-02
func TestOtherTalk(t *testing.T) {
	t.Parallel()
	s, p := newService(t), channeltest.New(t)
	approval := p.Ask("s", "shell", `{"command": "x"}`)
	key, _ := start(t, s, p)
	talk := func(chat, to int) {
		s.push("message", object{"message_id": 50, "from": object{"id": 1}, "chat": object{"id": chat}, "text": "no", "reply_to_message": object{"message_id": to, "chat": object{"id": chat}}})
	}
	talk(-100, 7) // another message
	talk(-999, 1) // another chat
	s.press(1, "approve "+key, -999)
	s.press(2, "approve "+key, -100) // the last update: after its answer the others were handled
	channeltest.Eventually(t, "the last update is answered", func() bool { return len(s.of("answerCallbackQuery")) > 0 })
	if got := p.Decided(approval.ID); got != "" {
		t.Errorf("the decision is %q", got)
	}
	if sent, answered := s.of("sendMessage"), s.of("answerCallbackQuery"); len(sent) != 1 || len(answered) != 1 {
		t.Errorf("the bot said %v and answered %v", sent, answered)
	}
}

// A restart handles no update twice, even if Telegram did not learn before that it was handled. A
// mark of another bot or of another day does not count: the numbers may be others.
//
// SPEC N-01
func TestOffset(t *testing.T) {
	t.Parallel()
	s := newService(t)
	first, cancel := context.WithCancel(t.Context())
	kept, handled := "", 0
	receive := func(ctx context.Context, mark, bot string, answer func()) {
		t.Helper()
		ch, err := telegram.New(&telegram.Options{To: "-100", Token: bot, URL: s.url})
		if err != nil {
			t.Fatal(err)
		}
		err = ch.Receive(ctx, &channel.Inbox{
			Connected: func() {}, Mark: mark, Keep: func(mark string) { kept = mark },
			Answer: func(context.Context, *channel.Answer) channel.Reply { handled++; answer(); return channel.Reply{} },
		})
		if err == nil {
			t.Error("receive ended without a reason")
		}
	}
	s.press(1, "approve a", -100)
	s.press(1, "approve b", -100)
	receive(first, "", token, func() { // the process ends while it handles the second update
		if handled == 2 {
			cancel()
		}
	})
	if handled != 2 || !strings.HasPrefix(kept, "4711 102 ") {
		t.Fatalf("%d updates were handled, and the mark is %q", handled, kept)
	}
	for _, test := range []struct {
		rule, mark string
		want       float64
	}{
		{"the next update comes again", kept, 102},
		{"a mark of another bot", strings.Replace(kept, "4711", "4712", 1), 0},
		{"an old mark", "4711 102 1000000000", 0},
		{"a damaged mark", "4711 x", 0},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		receive(ctx, test.mark, token, cancel)
		cancel()
		asked := s.of("getUpdates")
		if got := asked[len(asked)-1]["offset"]; got != test.want {
			t.Errorf("%s: the offset is %v, want %v", test.rule, got, test.want)
		}
	}
}

// Errors say what is wrong and what to do, and never have the token.
//
// SPEC N-02
func TestErrors(t *testing.T) {
	t.Parallel()
	s := newService(t)
	open := func(secret, url string) *telegram.Channel {
		c, err := telegram.New(&telegram.Options{To: "-100", Token: secret, URL: url})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := open(token, s.url).Test(t.Context(), "hello"); err != nil {
		t.Error(err)
	}
	for _, test := range []struct{ rule, token, url, want string }{
		{"a wrong token", "4711:hush-wrong", s.url, "sendMessage: Unauthorized: check the token of the bot"},
		{"nobody there", token, "http://127.0.0.1:1", "sendMessage: "},
		{"no address", token, "http://[::1", "sendMessage: "},
	} {
		if err := open(test.token, test.url).Test(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error is %v", test.rule, err)
		}
	}
	s.fails, s.fail = "sendMessage", object{"ok": false, "error_code": 429, "description": "Too Many Requests", "parameters": object{"retry_after": 9}}
	var again *channel.RetryError
	if err := open(token, s.url).Test(t.Context(), "x"); !errors.As(err, &again) || again.After != 9*time.Second {
		t.Errorf("a limited rate gives %v", err)
	}
	s.fails, s.fail = "editMessageText", object{"ok": false, "error_code": 400, "description": "Bad Request: message is not modified"}
	if err := open(token, s.url).Update(t.Context(), "-100 1", &channel.Request{Title: "x"}, "done"); err != nil {
		t.Errorf("an update that was already made gives %v", err)
	}
	s.fails, s.fail = "editMessageText", object{"ok": false, "error_code": 400, "description": "Bad Request: message to edit not found"}
	if err := open(token, s.url).Update(t.Context(), "-100 1", &channel.Request{Title: "x"}, "done"); err != nil {
		t.Errorf("an update of a deleted message gives %v", err)
	}
	for _, o := range []*telegram.Options{nil, {To: "1"}, {Token: "x"}} {
		if _, err := telegram.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
