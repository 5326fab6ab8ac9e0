package channel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/redact"
	"github.com/belay-run/belay/toolbox"
)

// Channel is a service that shows requests to people.
type Channel interface {
	// Kind is the name of the service, such as "slack".
	Kind() string
	// Send shows a request. It returns where the message is, for Update.
	Send(ctx context.Context, r *Request) (place string, err error)
	// Update changes a message, after its request was decided or has expired. It returns nil if
	// the message no longer exists or can never be changed: errors are tried again.
	Update(ctx context.Context, place string, r *Request, outcome string) error
	// Test sends a message that asks nothing.
	Test(ctx context.Context, text string) error
	// Receive passes the answers of people to the inbox, until ctx ends or the connection fails.
	// It shows each reply that has a text to the person who answered. It returns nil at once if
	// people cannot answer in this channel.
	Receive(ctx context.Context, in *Inbox) error
}

// Inbox takes what a channel receives. All its functions are set.
type Inbox struct {
	// Connected records that the service has accepted the connection.
	Connected func()
	// Answer takes the answer of a person.
	Answer func(context.Context, *Answer) Reply
	// Keep remembers a mark, such as the number of the last update. It survives a restart.
	Keep func(mark string)
	// Mark is the last mark that was kept, or "".
	Mark string
}

// Request is an approval or a question, as a channel shows it. Its texts contain no secrets that
// Belay recognises, and are short.
type Request struct {
	// Key names the request in this channel. It has at most 32 letters and digits.
	Key      string
	Approval string
	Session  string
	// Title is one line, such as "shell needs approval".
	Title string
	// Detail is the command, the change, or the question.
	Detail string
	Reason string
	// Question says that the model asks a question. The answer is a text, or one of Options.
	Question bool
	Options  []string
	// Cut says that Detail does not show everything. Then people can only deny here: show no
	// button that approves or answers, but the hint of [Request.Hint].
	Cut bool
	// Link is the address of the approval in the console, or "".
	Link    string
	Expires time.Time
}

// Hint says where people can see everything and decide. It is "" if the request is not cut.
func (r *Request) Hint() string {
	if !r.Cut {
		return ""
	}
	where := "run: belay approvals show " + r.Approval
	if r.Link != "" {
		where = "open " + r.Link + " or " + where
	}
	return "The text is too long for this channel and was cut, so you can only deny here. To see everything and decide, " + where
}

// Answer is what a person wants.
type Answer struct {
	// Key is the key of the request, or Place the place of its message.
	Key, Place string
	// User is the id of the person in the service.
	User  string
	Allow bool
	// Text is the reason of a denial, or the answer to a question.
	Text string
	// Option is the number of the option that the person chose, counted from 1. It replaces Text.
	Option int
	// Typed says that the person only typed a text. It answers a question, and denies a call.
	// Allow is ignored then.
	Typed bool
}

// Reply is what the person should see. It has no text if the answer was not about a request.
type Reply struct {
	Text string
	// Refused says that the answer had no effect.
	Refused bool
}

// RetryError is the error of a service that wants to be left alone for a while.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the service.
func (e *RetryError) Unwrap() error { return e.Err }

// Bounds of the texts, in UTF-16 code units: services count these.
const (
	mostDetail = 1500 // of a command, a change or a question
	mostReason = 300
	mostName   = 100
	mostLabel  = 30 // of an option: longer ones may not fit on a button
)

// newRequest describes a question. Its texts are made safe to send.
func newRequest(key string, q *belay.Question, link func(approval string) string) *Request {
	r := &Request{Key: key, Approval: q.ID, Session: q.Session, Title: clean(q.Tool, mostName) + " needs approval", Reason: clean(q.Reason, mostReason), Expires: q.Expires}
	var text string
	if asked, ok := toolbox.ReadQuestion(*q); ok {
		r.Question, r.Title, r.Reason = true, "The agent asks a question", ""
		text = redact.Text(asked.Question)
		list, long := "", false
		for i, option := range asked.Options {
			option = safe(strings.TrimSpace(option))
			r.Options = append(r.Options, option)
			list, long = fmt.Sprintf("%s\n%d. %s", list, i+1, option), long || utf8.RuneCountInString(option) > mostLabel
		}
		if long { // the buttons do not show the options
			text += "\n" + list
		}
	} else {
		text = detail(redact.JSON(q.Input))
	}
	r.Detail, r.Cut = shorten(printable(text), mostDetail)
	if link != nil {
		r.Link = link(q.ID)
	}
	return r
}

// detail returns the command or the change of a call.
func detail(input json.RawMessage) string {
	fields, ok := label.Fields(input)
	if !ok {
		return string(input)
	}
	text := make(map[string]string)
	for _, f := range fields {
		if f.Text {
			text[f.Key] = f.Value
		}
	}
	marked := func(mark, lines string) string {
		return mark + strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n"+mark)
	}
	path, before, after := text["path"], text["old_string"], text["new_string"]
	content, writes := text["content"]
	rest := func(shown ...string) string { // a decision is about all fields, so none is hidden
		var more strings.Builder
		for _, f := range fields {
			if !slices.Contains(shown, f.Key) {
				fmt.Fprintf(&more, "\n%s: %s", f.Key, f.Value)
			}
		}
		return more.String()
	}
	switch {
	case text["command"] != "":
		return "$ " + text["command"] + rest("command")
	case path != "" && (before != "" || after != ""):
		return path + "\n" + marked("- ", before) + "\n" + marked("+ ", after) + rest("path", "old_string", "new_string")
	case path != "" && writes:
		return path + "\n" + marked("+ ", content) + rest("path", "content")
	default:
		return string(input)
	}
}

// clean makes a text safe to send, and shortens it.
func clean(text string, most int) string {
	text, _ = shorten(safe(text), most)
	return text
}

// safe removes secrets and control characters.
func safe(text string) string { return printable(redact.Text(text)) }

// printable removes control characters.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "�")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069) {
			return -1 // control characters, and those that change the direction of the text
		}
		return r
	}, text)
}

// shorten cuts a text after a number of UTF-16 code units. It reports whether it did.
func shorten(text string, most int) (string, bool) {
	units := 0
	for i, r := range text {
		if units += utf16.RuneLen(r); units > most {
			return fmt.Sprintf("%s… (%d more characters)", text[:i], utf8.RuneCountInString(text[i:])), true
		}
	}
	return text, false
}

// outcomeOf says how an approval was decided.
func outcomeOf(a *belay.Approval) string {
	switch d := a.Decided; {
	case d == nil:
		return "Expired: nobody decided in time"
	case d.By == "cancel":
		return "Withdrawn: the turn has ended"
	case d.By == "expiry":
		return "Expired: nobody decided in time"
	case d.Allow && toolbox.IsQuestion(a):
		return fmt.Sprintf("Answered by %s: %s", clean(d.By, mostName), clean(d.Reason, mostReason))
	case d.Allow:
		return "Approved by " + clean(d.By, mostName)
	case d.Reason != "":
		return fmt.Sprintf("Denied by %s: %s", clean(d.By, mostName), clean(d.Reason, mostReason))
	default:
		return "Denied by " + clean(d.By, mostName)
	}
}
