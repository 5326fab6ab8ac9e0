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
	"unicode/utf16"

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
	mostText   = 4000    // of a message, in UTF-16 code units
	mostAlert  = 190     // of an alert, in UTF-16 code units
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
	last := "Reply to this message to deny with a reason."
	switch {
	case outcome != "":
		last = outcome
	case r.Cut && r.Question:
		last = r.Hint()
	case r.Cut:
		last = r.Hint() + "\n\n" + last
	case r.Question:
		last = "Reply to this message to answer."
	}
	last = "\n\n" + limit(last, mostText/2)
	return limit(strings.Join(parts, "\n\n"), mostText-units(last)) + last // the end is never cut
}

// units counts a text as Telegram does: in UTF-16 code units.
func units(text string) int { return len(utf16.Encode([]rune(text))) }

// limit shortens a text to what Telegram takes.
func limit(text string, most int) string {
	if units(text) <= most {
		return text
	}
	used := 0
	for i, r := range text {
		if used += utf16.RuneLen(r); used >= most {
			return text[:i] + "…"
		}
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
	switch {
	case r.Cut && r.Question:
		rows = [][]object{{press("Refuse to answer", "deny")}}
	case r.Cut:
		rows = [][]object{{press("Deny", "deny")}}
	case r.Question:
		for i, option := range r.Options[:min(len(r.Options), mostOptions)] {
			rows = append(rows, []object{press(option, strconv.Itoa(i+1))})
		}
		rows = append(rows, []object{press("Refuse to answer", "deny")})
	default:
		rows = [][]object{{press("Approve", "approve"), press("Deny", "deny")}}
	}
	return object{"inline_keyboard": rows}
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

// place returns the place of a message: the id of the chat and the id of the message, which is
// unique in its chat only.
func (m *chatMessage) place() string { return fmt.Sprintf("%d %d", m.Chat.ID, m.ID) }

// Send shows a request.
func (c *Channel) Send(ctx context.Context, r *channel.Request) (string, error) {
	var sent chatMessage
	err := c.call(ctx, "sendMessage", object{"chat_id": c.opts.To, "text": text(r, ""), "reply_markup": keyboard(r), "link_preview_options": object{"is_disabled": true}}, &sent)
	return sent.place(), err
}

// Update shows how a request was decided, and removes the buttons.
func (c *Channel) Update(ctx context.Context, place string, r *channel.Request, outcome string) error {
	var m chatMessage
	if _, err := fmt.Sscanf(place, "%d %d", &m.Chat.ID, &m.ID); err != nil {
		return fmt.Errorf("telegram: place %q: %w", place, err)
	}
	err := c.call(ctx, "editMessageText", object{"chat_id": m.Chat.ID, "message_id": m.ID, "text": text(r, outcome), "link_preview_options": object{"is_disabled": true}}, nil)
	for _, fine := range []string{"message is not modified", "message to edit not found", "message can't be edited"} {
		if err != nil && strings.Contains(err.Error(), fine) {
			return nil // an earlier attempt has changed it, somebody has deleted it, or it is too old
		}
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

// offset is the number of the next update.
type offset struct {
	bot  string // each bot has its own numbers
	next int64
	at   time.Time // when the last update was handled
}

// keptUpdates is how long Telegram keeps updates. Later, an offset protects from nothing, and
// Telegram may choose new numbers.
const keptUpdates = 24 * time.Hour

// readOffset reads a mark. It returns the start for a mark of another bot.
func (c *Channel) readOffset(mark string) offset {
	o := offset{bot: strings.SplitN(c.opts.Token, ":", 2)[0]}
	bot, at := "", int64(0)
	if n, _ := fmt.Sscanf(mark, "%s %d %d", &bot, &o.next, &at); n < 3 || bot != o.bot {
		o.next = 0
	}
	o.at = time.Unix(at, 0)
	return o
}

// mark returns the text that readOffset reads.
func (o *offset) mark() string { return fmt.Sprintf("%s %d %d", o.bot, o.next, o.at.Unix()) }

// from returns the number to ask for, or 0 for all updates that Telegram has.
func (o *offset) from() int64 {
	if time.Since(o.at) > keptUpdates {
		return 0
	}
	return o.next
}

// Receive reads updates and passes on what people do. Telegram forgets an update when the next
// request names a higher number, which is after the update was handled. The number is kept, so
// that a restart handles no update again.
func (c *Channel) Receive(ctx context.Context, in *channel.Inbox) error {
	at := c.readOffset(in.Mark)
	for first := true; ; first = false {
		ask := object{"offset": at.from(), "timeout": int(c.opts.Wait.Seconds()), "allowed_updates": []string{"callback_query", "message"}}
		if first {
			ask["timeout"] = 0 // learn at once whether the token is valid
		}
		var updates []update
		calling, cancel := context.WithTimeout(ctx, c.opts.Wait+20*time.Second)
		err := c.call(calling, "getUpdates", ask, &updates)
		cancel()
		if err != nil {
			return err
		}
		if first {
			in.Connected()
		}
		for i := range updates {
			c.handle(ctx, &updates[i], in.Answer)
			if ctx.Err() != nil { // the answer may be lost: the update must come again
				return ctx.Err() // the runner knows that it has ended
			}
			at.next, at.at = updates[i].ID+1, time.Now()
			in.Keep(at.mark())
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
		a := &channel.Answer{Place: m.Reply.place(), User: strconv.FormatInt(m.From.ID, 10), Text: strings.TrimSpace(m.Text), Typed: true}
		if reply := answer(ctx, a); reply.Refused && reply.Text != "" {
			_ = c.call(ctx, "sendMessage", object{"chat_id": c.opts.To, "text": limit(reply.Text, mostText), "reply_parameters": object{"message_id": m.ID}}, nil) // ignore errors: the answer had no effect
		}
	}
}

// here reports whether a message is in the chat of the channel.
func (c *Channel) here(m *chatMessage) bool { return strconv.FormatInt(m.Chat.ID, 10) == c.opts.To }
