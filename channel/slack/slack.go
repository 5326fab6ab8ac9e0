package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/belay-run/belay/channel"
)

// Options are the settings of a channel.
type Options struct {
	// To is the id of the channel in Slack, such as C0123. It is required.
	To string
	// BotToken (xoxb-…) and AppToken (xapp-…) are the tokens of the app. Both are required.
	BotToken, AppToken string
	// URL is the address of the Web API. Defaults to https://slack.com/api.
	URL string
	// Client sends the requests. Defaults to a client that follows no redirects.
	Client *http.Client
}

// Channel is a channel of Slack.
type Channel struct {
	opts Options
}

var _ channel.Channel = (*Channel)(nil)

// New returns a channel. It does not connect.
func New(opts *Options) (*Channel, error) {
	if opts == nil || opts.To == "" || opts.BotToken == "" || opts.AppToken == "" {
		return nil, errors.New("slack: To, BotToken or AppToken is missing: set all of them")
	}
	if !strings.HasPrefix(opts.BotToken, "xoxb-") || !strings.HasPrefix(opts.AppToken, "xapp-") {
		return nil, errors.New("slack: the bot token must begin with xoxb-, and the app token with xapp-")
	}
	c := &Channel{opts: *opts}
	c.opts.URL = strings.TrimSuffix(cmp.Or(c.opts.URL, "https://slack.com/api"), "/")
	if c.opts.Client == nil {
		c.opts.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c, nil
}

// Kind returns "slack".
func (*Channel) Kind() string { return "slack" }

// mostAnswer is the maximum size of an answer of Slack.
const mostAnswer = 1 << 20

// call calls a method of the Web API.
func (c *Channel) call(ctx context.Context, method, token string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("slack: %s: %w", method, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opts.URL+"/"+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("slack: %s: %w", method, err)
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.opts.Client.Do(r)
	if err != nil {
		return fmt.Errorf("slack: %s: %w", method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if it is absent: the usual pause applies
		return &channel.RetryError{After: time.Duration(seconds) * time.Second, Err: fmt.Errorf("slack: %s: too many requests", method)}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	var told struct {
		OK       bool   `json:"ok"`
		Error    string `json:"error"`
		Metadata struct {
			Messages []string `json:"messages"`
		} `json:"response_metadata"`
	}
	if err == nil {
		err = json.Unmarshal(data, &told)
	}
	switch {
	case err != nil:
		return fmt.Errorf("slack: %s: status %d: %w", method, resp.StatusCode, err)
	case !told.OK:
		return fmt.Errorf("slack: %s: %w", method, &refusal{told.Error, remedy(told.Error, told.Metadata.Messages)})
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("slack: %s: %w", method, err)
	}
	return nil
}

// refusal is an error of Slack: its own word for the problem, and what to do.
type refusal struct{ code, remedy string }

func (r *refusal) Error() string { return r.code + r.remedy }

// remedy says what to do about an error of Slack.
func remedy(code string, more []string) string {
	switch code {
	case "not_in_channel", "channel_not_found":
		return ": invite the app to the channel, and check the id of the channel"
	case "invalid_auth", "not_authed", "token_revoked", "account_inactive":
		return ": check the token"
	case "missing_scope", "not_allowed_token_type":
		return ": give the app the scopes chat:write (bot token) and connections:write (app token)"
	}
	if len(more) > 0 {
		return ": " + strings.Join(more, "; ")
	}
	return ""
}

// object is a JSON object.
type object = map[string]any

// mostSection is how many characters a section may have, after its text is escaped.
const mostSection = 2900 // Slack takes 3000

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape makes a text safe in Slack's own markup. It shortens the text to what Slack takes.
func escape(text string) string {
	first, rest := split(text, mostSection)
	if rest != "" {
		first += "…"
	}
	return first
}

// split escapes as much of a text as fits into a number of characters. It returns the rest.
func split(text string, most int) (escaped, rest string) {
	var b strings.Builder
	used := 0
	for i, r := range text {
		one := escaper.Replace(string(r))
		if used += len(utf16.Encode([]rune(one))); used > most {
			return b.String(), text[i:]
		}
		b.WriteString(one)
	}
	return b.String(), ""
}

// code shows a text as blocks of code. A text that is too long for one section has several.
func code(text string) []object {
	var all []object
	for text = strings.ReplaceAll(text, "```", "'''"); text != ""; {
		var part string
		part, text = split(text, mostSection)
		all = append(all, section("```\n"+part+"\n```"))
	}
	return all
}

func section(text string) object {
	return object{"type": "section", "text": object{"type": "mrkdwn", "text": text}}
}

// limit shortens a plain text to what Slack takes.
func limit(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func button(id, text, style, value string) object {
	b := object{"type": "button", "action_id": id, "text": object{"type": "plain_text", "text": limit(text, 75)}, "value": value}
	if style != "" {
		b["style"] = style
	}
	return b
}

// The ids of the buttons. Those of options are followed by their number.
const (
	actApprove = "approve"
	actDeny    = "deny"
	actReason  = "reason" // opens a form
	actAnswer  = "answer" // opens a form
	actOption  = "option-"
	actLink    = "link"
)

// patience is how long Slack may take to answer a request.
const patience = 30 * time.Second

// mostOptions is how many options become buttons. Others can be typed.
const mostOptions = 20

// blocks describes a request. The buttons are left out if it is decided.
func blocks(r *channel.Request, outcome string) []object {
	all := []object{section("*" + escape(r.Title) + "*")}
	all = append(all, code(r.Detail)...)
	about := "Approval " + r.Approval + " · session " + r.Session
	if r.Reason != "" {
		about = r.Reason + "\n" + about
	}
	elements := []object{{"type": "mrkdwn", "text": escape(about)}}
	if r.Link != "" {
		elements = append(elements, object{"type": "mrkdwn", "text": "<" + escape(r.Link) + "|open>"})
	}
	all = append(all, object{"type": "context", "elements": elements})
	if outcome != "" {
		return append(all, section("*"+escape(outcome)+"*"))
	}
	if r.Cut {
		all = append(all, section("*"+escape(r.Hint())+"*"))
	}
	var buttons []object
	switch {
	case r.Cut && r.Question:
		buttons = []object{button(actReason, "Refuse…", "danger", r.Key)}
	case r.Cut:
		buttons = []object{button(actDeny, "Deny", "danger", r.Key), button(actReason, "Deny with a reason…", "", r.Key)}
	case r.Question:
		for i, option := range r.Options[:min(len(r.Options), mostOptions)] {
			buttons = append(buttons, button(actOption+strconv.Itoa(i+1), option, "", r.Key))
		}
		buttons = append(buttons, button(actAnswer, "Answer…", "primary", r.Key), button(actReason, "Refuse…", "danger", r.Key))
	default:
		buttons = []object{button(actApprove, "Approve", "primary", r.Key), button(actDeny, "Deny", "danger", r.Key), button(actReason, "Deny with a reason…", "", r.Key)}
	}
	return append(all, object{"type": "actions", "block_id": "decision", "elements": buttons})
}

// message is a message of Slack.
type message struct {
	Channel string   `json:"channel"`
	TS      string   `json:"ts,omitempty"`
	Text    string   `json:"text"`
	Blocks  []object `json:"blocks,omitempty"`
	Unfurl  *bool    `json:"unfurl_links,omitempty"`
}

// Send shows a request. The place is the id of the channel and the time of the message.
func (c *Channel) Send(ctx context.Context, r *channel.Request) (string, error) {
	unfurl := false
	var sent message
	err := c.call(ctx, "chat.postMessage", c.opts.BotToken, &message{Channel: c.opts.To, Text: escape(r.Title), Blocks: blocks(r, ""), Unfurl: &unfurl}, &sent)
	if err != nil {
		return "", err
	}
	return sent.Channel + " " + sent.TS, nil
}

// Update shows how a request was decided, and removes the buttons.
func (c *Channel) Update(ctx context.Context, place string, r *channel.Request, outcome string) error {
	to, ts, _ := strings.Cut(place, " ")
	err := c.call(ctx, "chat.update", c.opts.BotToken, &message{Channel: to, TS: ts, Text: escape(r.Title + ": " + outcome), Blocks: blocks(r, outcome)}, nil)
	if no, ok := errors.AsType[*refusal](err); ok && slices.Contains([]string{"message_not_found", "cant_update_message", "edit_window_closed"}, no.code) {
		return nil // somebody has deleted the message, or the workspace forbids changes
	}
	return err
}

// Test sends a message, and checks the app token.
func (c *Channel) Test(ctx context.Context, text string) error {
	if err := c.call(ctx, "apps.connections.open", c.opts.AppToken, object{}, nil); err != nil {
		return err
	}
	return c.call(ctx, "chat.postMessage", c.opts.BotToken, &message{Channel: c.opts.To, Text: escape(text)}, nil)
}
