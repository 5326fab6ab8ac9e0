package slack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/belay-run/belay/channel"
)

// silence is how long a connection may be silent. Slack sends a ping every few seconds.
const silence = time.Minute

// envelope is a message of Slack on the connection.
type envelope struct {
	Type    string  `json:"type"`
	ID      string  `json:"envelope_id"`
	Reason  string  `json:"reason"`
	Payload payload `json:"payload"`
}

// payload is what a person did.
type payload struct {
	Type string `json:"type"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Trigger   string `json:"trigger_id"`
	Container struct {
		Channel string `json:"channel_id"`
	} `json:"container"`
	Actions []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
	} `json:"actions"`
	View struct {
		Form     string `json:"callback_id"`
		Metadata string `json:"private_metadata"`
		State    struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// acknowledgement tells Slack that a message was handled.
type acknowledgement struct {
	ID      string `json:"envelope_id"`
	Payload any    `json:"payload,omitempty"`
}

// errRefresh means that Slack wants a new connection.
var errRefresh = errors.New("slack: the connection is renewed")

// Receive opens connections, one after the other, and passes on what people do.
func (c *Channel) Receive(ctx context.Context, in *channel.Inbox) error {
	for {
		if err := c.connect(ctx, in); !errors.Is(err, errRefresh) {
			return err
		}
	}
}

// connect opens one connection and reads it until it ends.
func (c *Channel) connect(ctx context.Context, in *channel.Inbox) error {
	var opened struct {
		URL string `json:"url"`
	}
	if err := c.call(ctx, "apps.connections.open", c.opts.AppToken, object{}, &opened); err != nil {
		return err
	}
	alive := make(chan struct{}, 1) // gets a value for each ping
	stir := func(context.Context, []byte) bool {
		select {
		case alive <- struct{}{}:
		default:
		}
		return true
	}
	dialing, stop := context.WithTimeout(ctx, patience)
	conn, _, err := websocket.Dial(dialing, opened.URL, &websocket.DialOptions{HTTPClient: c.opts.Client, OnPingReceived: stir}) //nolint:bodyclose // the library closes it
	stop()
	if err != nil {
		return fmt.Errorf("slack: connect: %w", hideQuery(err))
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(mostAnswer)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go watch(ctx, cancel, alive) // ends with ctx
	for {
		var e envelope
		if err := wsjson.Read(ctx, conn, &e); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("slack: read: %w", err)
		}
		stir(ctx, nil)
		switch e.Type {
		case "hello":
			in.Connected()
		case "disconnect":
			_ = conn.Close(websocket.StatusNormalClosure, "") // ignore errors: Slack closes it, too
			return errRefresh
		case "interactive":
			if err := wsjson.Write(ctx, conn, acknowledgement{e.ID, c.act(ctx, &e.Payload, in.Answer)}); err != nil {
				return fmt.Errorf("slack: acknowledge: %w", err)
			}
		default: // something that the app subscribed to, and Belay does not need
			if e.ID != "" {
				if err := wsjson.Write(ctx, conn, acknowledgement{ID: e.ID}); err != nil {
					return fmt.Errorf("slack: acknowledge: %w", err)
				}
			}
		}
	}
}

// watch ends a connection that is silent for too long.
func watch(ctx context.Context, cancel context.CancelCauseFunc, alive <-chan struct{}) {
	for {
		timer := time.NewTimer(silence)
		select {
		case <-alive:
			timer.Stop()
		case <-timer.C:
			cancel(errors.New("the connection was silent for too long"))
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// hideQuery removes the query of an address from an error: it has a ticket.
func hideQuery(err error) error {
	text := err.Error()
	if at := strings.IndexByte(text, '?'); at >= 0 {
		end := strings.IndexAny(text[at:], "\" \n")
		if end < 0 {
			end = len(text) - at
		}
		return errors.New(text[:at] + text[at+end:])
	}
	return err
}

// act does what a person wants. It returns the payload of the acknowledgement, or nil.
func (c *Channel) act(ctx context.Context, p *payload, answer func(context.Context, *channel.Answer) channel.Reply) any {
	switch p.Type {
	case "block_actions":
		if !c.here(p.Container.Channel) {
			return nil // another use of the app
		}
		for _, a := range p.Actions {
			c.press(ctx, p, a.ID, a.Value, answer)
		}
	case "view_submission":
		a := &channel.Answer{Key: p.View.Metadata, User: p.User.ID, Allow: p.View.Form == actAnswer, Text: strings.TrimSpace(p.View.State.Values["text"]["text"].Value)}
		if reply := answer(ctx, a); reply.Refused {
			return object{"response_action": "errors", "errors": object{"text": limit(reply.Text, 150)}}
		}
	}
	return nil
}

// here reports whether a channel is the one of the settings. If these name a person, Slack chooses
// the channel.
func (c *Channel) here(id string) bool {
	return id == c.opts.To || !strings.ContainsAny(c.opts.To[:1], "CDG")
}

// press handles a button.
func (c *Channel) press(ctx context.Context, p *payload, id, key string, answer func(context.Context, *channel.Answer) channel.Reply) {
	a := &channel.Answer{Key: key, User: p.User.ID}
	option, isOption := strings.CutPrefix(id, actOption)
	switch {
	case id == actReason || id == actAnswer:
		if err := c.ask(ctx, p.Trigger, id, key); err != nil {
			c.tell(ctx, p, "The form could not be opened. Try again.")
		}
		return
	case isOption:
		a.Allow = true
		a.Option, _ = strconv.Atoi(option) // 0 if it is no number: then there is no answer, which is refused
	case id == actApprove:
		a.Allow = true
	case id != actDeny:
		return // a link, or a button of another version
	}
	if reply := answer(ctx, a); reply.Refused {
		c.tell(ctx, p, reply.Text)
	}
}

// ask opens a form for a reason or an answer.
func (c *Channel) ask(ctx context.Context, trigger, what, key string) error {
	title, label, optional := "Deny", "Reason, for the agent", true
	if what == actAnswer {
		title, label, optional = "Answer", "Answer, for the agent", false
	}
	plain := func(text string) object { return object{"type": "plain_text", "text": text} }
	return c.call(ctx, "views.open", c.opts.BotToken, object{"trigger_id": trigger, "view": object{
		"type": "modal", "callback_id": what, "private_metadata": key, "title": plain(title), "submit": plain(title), "close": plain("Cancel"),
		"blocks": []object{{
			"type": "input", "block_id": "text", "optional": optional, "label": plain(label),
			"element": object{"type": "plain_text_input", "action_id": "text", "multiline": true, "max_length": 3000},
		}},
	}}, nil)
}

// tell shows a text to one person only.
func (c *Channel) tell(ctx context.Context, p *payload, text string) {
	_ = c.call(ctx, "chat.postEphemeral", c.opts.BotToken, object{"channel": p.Container.Channel, "user": p.User.ID, "text": escape(text)}, nil) // ignore errors: the answer had no effect, and the message did not change
}
