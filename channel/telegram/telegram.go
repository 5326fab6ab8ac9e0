package telegram

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/channel"
)

// Options are the settings of a channel.
type Options struct {
	// To is the id of the chat, such as -100123. It is required.
	To string
	// Token is the token of the bot. It is required.
	Token string
	// URL is the address of the API. Defaults to https://api.telegram.org.
	URL string
	// Wait is how long a request for updates may wait. Defaults to 50 seconds.
	Wait time.Duration
	// Client sends the requests. Defaults to a client that follows no redirects.
	Client *http.Client
}

// Channel is a chat of Telegram.
type Channel struct {
	opts Options
}

var _ channel.Channel = (*Channel)(nil)

// New returns a channel. It does not connect.
func New(opts *Options) (*Channel, error) {
	if opts == nil || opts.To == "" || opts.Token == "" {
		return nil, errors.New("telegram: To or Token is missing: set both")
	}
	c := &Channel{opts: *opts}
	c.opts.URL = strings.TrimSuffix(cmp.Or(c.opts.URL, "https://api.telegram.org"), "/")
	c.opts.Wait = cmp.Or(c.opts.Wait, 50*time.Second)
	if c.opts.Client == nil {
		c.opts.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c, nil
}

// Kind returns "telegram".
func (*Channel) Kind() string { return "telegram" }

// Bounds of Telegram's API.
const (
	mostAnswer = 4 << 20 // of an answer, in bytes
	mostText   = 4000    // of a message, in characters
	mostAlert  = 190     // of an alert, in characters
)

// call calls a method of the API.
func (c *Channel) call(ctx context.Context, method string, in, out any) error {
	fail := func(err error) error {
		return fmt.Errorf("telegram: %s: %s", method, strings.ReplaceAll(err.Error(), c.opts.Token, "TOKEN")) // the error may quote the address, which has the token
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fail(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opts.URL+"/bot"+c.opts.Token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.opts.Client.Do(r)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return fail(err)
	}
	var told struct {
		OK          bool            `json:"ok"`
		Description string          `json:"description"`
		Result      json.RawMessage `json:"result"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
		} `json:"parameters"`
	}
	switch err := json.Unmarshal(data, &told); {
	case err != nil:
		return fail(fmt.Errorf("status %d: %w", resp.StatusCode, err))
	case told.Parameters.RetryAfter > 0:
		return &channel.RetryError{After: time.Duration(told.Parameters.RetryAfter) * time.Second, Err: fail(errors.New(told.Description))}
	case !told.OK:
		return fail(errors.New(told.Description + remedy(resp.StatusCode)))
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(told.Result, out); err != nil {
		return fail(err)
	}
	return nil
}

// remedy says what to do about an error of Telegram.
func remedy(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusNotFound:
		return ": check the token of the bot"
	case http.StatusForbidden:
		return ": add the bot to the chat"
	case http.StatusConflict:
		return ": another program reads the updates of this bot, or it has a webhook: use a bot of its own"
	default:
		return ""
	}
}

// object is a JSON object.
type object = map[string]any

// text describes a request.
func text(r *channel.Request, outcome string) string {
	parts := []string{r.Title}
	if r.Detail != "" {
		parts = append(parts, r.Detail)
	}
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	about := "Approval " + r.Approval + ", session " + r.Session
	if r.Link != "" {
		about += "\n" + r.Link
	}
	parts = append(parts, about)
	switch {
	case outcome != "":
		parts = append(parts, outcome)
	case r.Question:
		parts = append(parts, "Reply to this message to answer.")
	default:
		parts = append(parts, "Reply to this message to deny with a reason.")
	}
	return limit(strings.Join(parts, "\n\n"), mostText)
}

// limit shortens a text to what Telegram takes.
func limit(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// mostOptions is how many options become buttons. Others can be typed.
const mostOptions = 20

// keyboard returns the buttons of a request. Their data is the answer and the key.
func keyboard(r *channel.Request) object {
	press := func(label, data string) object {
		return object{"text": limit(label, 60), "callback_data": data + " " + r.Key}
	}
	var rows [][]object
	if r.Question {
		for i, option := range r.Options[:min(len(r.Options), mostOptions)] {
			rows = append(rows, []object{press(option, strconv.Itoa(i+1))})
		}
		rows = append(rows, []object{press("Refuse to answer", "deny")})
	} else {
		rows = [][]object{{press("Approve", "approve"), press("Deny", "deny")}}
	}
	return object{"inline_keyboard": rows}
}

// Send shows a request. The place is the id of the message.
func (c *Channel) Send(ctx context.Context, r *channel.Request) (string, error) {
	var sent struct {
		ID int64 `json:"message_id"`
	}
	err := c.call(ctx, "sendMessage", object{"chat_id": c.opts.To, "text": text(r, ""), "reply_markup": keyboard(r), "link_preview_options": object{"is_disabled": true}}, &sent)
	return strconv.FormatInt(sent.ID, 10), err
}

// Update shows how a request was decided, and removes the buttons.
func (c *Channel) Update(ctx context.Context, place string, r *channel.Request, outcome string) error {
	id, err := strconv.ParseInt(place, 10, 64)
	if err != nil {
		return fmt.Errorf("telegram: place %q: %w", place, err)
	}
	err = c.call(ctx, "editMessageText", object{"chat_id": c.opts.To, "message_id": id, "text": text(r, outcome), "link_preview_options": object{"is_disabled": true}}, nil)
	if err != nil && strings.Contains(err.Error(), "message is not modified") {
		return nil // an earlier attempt has changed it
	}
	return err
}

// Test sends a message.
func (c *Channel) Test(ctx context.Context, text string) error {
	return c.call(ctx, "sendMessage", object{"chat_id": c.opts.To, "text": text}, nil)
}

// user is a person.
type user struct {
	ID int64 `json:"id"`
}

// chatMessage is a message in a chat.
type chatMessage struct {
	ID   int64 `json:"message_id"`
	From user  `json:"from"`
	Chat struct {
		ID int64 `json:"id"`
	} `json:"chat"`
	Text  string       `json:"text"`
	Reply *chatMessage `json:"reply_to_message"`
}

// update is something that a person did.
type update struct {
	ID      int64 `json:"update_id"`
	Pressed *struct {
		ID      string       `json:"id"`
		From    user         `json:"from"`
		Message *chatMessage `json:"message"`
		Data    string       `json:"data"`
	} `json:"callback_query"`
	Message *chatMessage `json:"message"`
}

// Receive reads updates and passes on what people do. Telegram forgets an update when the next
// request names a higher number, which is after the update was handled.
func (c *Channel) Receive(ctx context.Context, connected func(), answer func(context.Context, *channel.Answer) channel.Reply) error {
	next := int64(0)
	for first := true; ; first = false {
		in := object{"offset": next, "timeout": int(c.opts.Wait.Seconds()), "allowed_updates": []string{"callback_query", "message"}}
		if first {
			in["timeout"] = 0 // learn at once whether the token is valid
		}
		var updates []update
		calling, cancel := context.WithTimeout(ctx, c.opts.Wait+20*time.Second)
		err := c.call(calling, "getUpdates", in, &updates)
		cancel()
		if err != nil {
			return err
		}
		if first {
			connected()
		}
		for i := range updates {
			c.handle(ctx, &updates[i], answer)
			next = updates[i].ID + 1
		}
	}
}

// handle passes one update on.
func (c *Channel) handle(ctx context.Context, u *update, answer func(context.Context, *channel.Answer) channel.Reply) {
	switch b, m := u.Pressed, u.Message; {
	case b != nil && b.Message != nil && c.here(b.Message):
		what, key, _ := strings.Cut(b.Data, " ")
		a := &channel.Answer{Key: key, User: strconv.FormatInt(b.From.ID, 10), Allow: what != "deny"}
		if what != "approve" && what != "deny" {
			a.Option, _ = strconv.Atoi(what) // 0 if it is no number: then there is no answer, which is refused
		}
		reply := answer(ctx, a)
		_ = c.call(ctx, "answerCallbackQuery", object{"callback_query_id": b.ID, "text": limit(reply.Text, mostAlert), "show_alert": reply.Refused}, nil) // ignore errors: the message shows the decision, too
	case m != nil && m.Reply != nil && c.here(m):
		a := &channel.Answer{Place: strconv.FormatInt(m.Reply.ID, 10), User: strconv.FormatInt(m.From.ID, 10), Text: strings.TrimSpace(m.Text), Typed: true}
		if reply := answer(ctx, a); reply.Refused {
			_ = c.call(ctx, "sendMessage", object{"chat_id": c.opts.To, "text": limit(reply.Text, mostText), "reply_parameters": object{"message_id": m.ID}}, nil) // ignore errors: the answer had no effect
		}
	}
}

// here reports whether a message is in the chat of the channel.
func (c *Channel) here(m *chatMessage) bool { return strconv.FormatInt(m.Chat.ID, 10) == c.opts.To }
