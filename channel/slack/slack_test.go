package slack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/channel/internal/channeltest"
	"github.com/belay-run/belay/channel/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	for _, d := range w.Status("team").Deliveries {
		key = d.Key
	}
	if !strings.Contains(string(text), key) || key == "" {
		t.Fatalf("the message has no key %q: %s", key, text)
	}
	return w, key, func() string { return w.Decided(approval.ID) }
}

// run runs the channel until the test ends.
func (w *world) run(t *testing.T) {
	t.Helper()
	ch, err := slack.New(&slack.Options{To: "C1", BotToken: botToken, AppToken: appToken, URL: w.url + "/api"})
	if err != nil {
		t.Fatal(err)
	}
	w.Run("team", ch, "U1")
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
	if refused := w.Status("team").Refused; len(refused) != 2 || refused[0].User != "U2" {
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

// The limits of Slack apply to the escaped text: a message that becomes longer has more blocks,
// and shows everything that Belay shows.
//
// SPEC N-01
func TestLongTexts(t *testing.T) {
	t.Parallel()
	w, _, _ := newWorld(t, "shell", `{"command": "`+strings.Repeat("&", 1498)+`"}`)
	shown := ""
	blocks, _ := w.of("chat.postMessage")[0]["blocks"].([]any)
	for _, one := range blocks {
		block, _ := one.(object)
		text, _ := block["text"].(object)
		shown += fmt.Sprint(text["text"])
	}
	if got := strings.Count(shown, "&amp;"); got != 1498 {
		t.Errorf("%d characters are shown: %s", got, shown)
	}
}

// A text that was cut has no button to approve or to answer, and says where to decide. A button of
// an older message does not approve it either.
//
// SPEC N-01
func TestCutTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for _, test := range []struct{ rule, tool, input, press, want, deny string }{
		{"a command", "shell", `{"command": "` + long + `"}`, "approve", "deny reason", "deny"},
		{"a question", "ask_user", `{"question": "` + long + `", "options": ["a", "b"]}`, "option-1", "reason", "deny"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			w, key, decided := newWorld(t, test.tool, test.input)
			var ids []string
			sent := w.of("chat.postMessage")[0]
			blocks, _ := sent["blocks"].([]any)
			for _, one := range blocks {
				block, _ := one.(object)
				elements, _ := block["elements"].([]any)
				for _, one := range elements {
					if e, _ := one.(object); e["type"] == "button" {
						ids = append(ids, fmt.Sprint(e["action_id"]))
					}
				}
			}
			if got := strings.Join(ids, " "); got != test.want || !strings.Contains(fmt.Sprint(sent), "belay approvals show ") {
				t.Errorf("the buttons are %s, want %s: %v", got, test.want, sent)
			}
			w.press("U1", test.press, key)
			if told := w.of("chat.postEphemeral"); decided() != "" || len(told) != 1 || !strings.Contains(fmt.Sprint(told[0]["text"]), "was cut") {
				t.Errorf("the decision is %q, and the person was told %v", decided(), told)
			}
			w.press("U1", test.deny, key)
			w.updated(t, "Denied by slack:U1")
		})
	}
}

// Buttons in other channels are ignored: other programs may use the app, too.
//
// SPEC N-02
func TestOtherChannels(t *testing.T) {
	t.Parallel()
	w, key, decided := newWorld(t, "shell", `{"command": "x"}`)
	for _, value := range []string{key, "unknown"} {
		w.act(object{
			"type": "block_actions", "user": object{"id": "U1"}, "container": object{"channel_id": "C2", "message_ts": "17.1"},
			"actions": []object{{"action_id": "approve", "value": value}},
		})
	}
	if told := w.of("chat.postEphemeral"); decided() != "" || len(told) != 0 {
		t.Errorf("the decision is %q, and the person was told %v", decided(), told)
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
	w.press("U1", "approve", w.Status("team").Deliveries[0].Key)
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
	s.fail = "message_not_found"
	if err := open(botToken, appToken).Update(t.Context(), "C1 17.1", &channel.Request{Title: "x"}, "done"); err != nil {
		t.Errorf("an update of a deleted message gives %v", err)
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
