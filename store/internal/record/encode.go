package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/redact"
	"github.com/belay-run/belay/store/internal/table"
)

// encode returns a value as JSON, without HTML escaping.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	text := b.Bytes()
	return string(text[:len(text)-1]), nil // without the line end
}

// ErrUnreadable means that a row is damaged.
var ErrUnreadable = errors.New("a stored row is damaged")

// Decode reads what encode wrote. Empty text leaves the value unchanged.
func Decode(text string, v any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return nil
}

func messageOf(body string) (*belay.Message, error) {
	m := new(belay.Message)
	return m, Decode(body, m)
}

// callRow returns the row of a call.
func callRow(session string, c *belay.CallRecord) (table.PutCallParams, error) {
	row := table.PutCallParams{
		Session: session, Message: c.Message, Idx: int64(c.Index), ID: c.ID, Tool: c.Tool, State: string(c.State),
		Input: string(c.Input), Wait: c.Wait, Resumes: c.Resumes,
	}
	if row.Input != "" && !json.Valid(c.Input) {
		return row, fmt.Errorf("call %q: its input is not JSON", c.ID)
	}
	if c.Result != nil {
		var err error
		if row.Result, err = encode(c.Result); err != nil {
			return row, fmt.Errorf("call %q: %w", c.ID, err)
		}
	}
	return row, nil
}

func callOf(row table.Call) (belay.CallRecord, error) {
	c := belay.CallRecord{
		Message: row.Message, Index: int(row.Idx), ID: row.ID, Tool: row.Tool, State: belay.CallState(row.State),
		Wait: row.Wait, Resumes: row.Resumes,
	}
	if row.Input != "" {
		c.Input = json.RawMessage(row.Input)
	}
	if row.Result != "" {
		c.Result = new(belay.Result)
		if err := Decode(row.Result, c.Result); err != nil {
			return c, fmt.Errorf("call %q: %w", row.ID, err)
		}
	}
	return c, nil
}

// safeLength is the maximum length of a stored text for people, in
// characters.
const safeLength = 512

// readLength is how much of such a text is searched for secrets, in bytes: more than
// safeLength, so that a secret at the cut is recognised.
const readLength = 16 * safeLength

// safe returns a text for people in the form that is stored: without secrets, which
// a quoted command can contain, and cut to a maximum length.
func safe(text string) string {
	if len(text) > readLength {
		text = strings.ToValidUTF8(text[:readLength], "") // the last character can be incomplete
	}
	return cut(redact.Text(text))
}

// cut shortens a text for people.
func cut(text string) string {
	if len(text) <= safeLength || utf8.RuneCountInString(text) <= safeLength {
		return text
	}
	n := 0
	for i := range text {
		if n == safeLength {
			return text[:i]
		}
		n++
	}
	return text
}

// approvalRows returns the rows of an approval, without the response it belongs
// to. Its texts may quote the call. They are stored separately, without
// secrets.
type approvalRows struct {
	approval table.PutApprovalParams
	words    table.PutApprovalWordsParams
}

func approvalRow(a *belay.Approval) (approvalRows, error) {
	rows := approvalRows{
		table.PutApprovalParams{
			ID: a.ID, Session: a.Session, Turn: a.Turn, CallID: a.Call, Tool: a.Tool, Hash: a.Hash, AskedBy: redact.Text(a.By), Floor: a.Floor,
			Asked: Nanos(a.Asked), Expires: Nanos(a.Expires),
		},
		table.PutApprovalWordsParams{ID: a.ID, Reason: safe(a.Reason)},
	}
	if a.Decided != nil {
		text, words, err := encodeDecision(*a.Decided)
		if err != nil {
			return rows, fmt.Errorf("approval %q: %w", a.ID, err)
		}
		rows.approval.Decision, rows.words.Answer, rows.words.Pattern = text, words.Answer, words.Pattern
	}
	return rows, nil
}

// encodeDecision returns a decision as JSON, and its texts separately. A pattern is
// stored in full: a part of it could cover more. belay.Approval.Accepts rejects a
// pattern that holds a secret; if one gets here all the same, the redacted pattern
// covers nothing.
func encodeDecision(d belay.Decision) (string, table.DecideWordsParams, error) {
	words := table.DecideWordsParams{ID: d.Approval, Answer: safe(d.Reason), Pattern: redact.Text(d.Scope.Pattern)}
	d.By, d.Reason, d.Scope.Pattern = redact.Text(d.By), "", ""
	text, err := encode(d)
	return text, words, err
}

// ApprovalOf returns the approval of a row.
func ApprovalOf[Row table.ApprovalRow | table.ApprovalsSinceRow | table.ApprovalsOfSessionRow](stored Row) (belay.Approval, error) {
	both := table.ApprovalRow(stored)
	row, words := both.Approval, both.ApprovalWord
	a := belay.Approval{
		ID: row.ID, Session: row.Session, Turn: row.Turn, Call: row.CallID, Tool: row.Tool, Hash: row.Hash, Reason: words.Reason, By: row.AskedBy, Floor: row.Floor,
		Asked: Moment(row.Asked), Expires: Moment(row.Expires),
	}
	if row.Decision != "" {
		a.Decided = new(belay.Decision)
		if err := Decode(row.Decision, a.Decided); err != nil {
			return a, fmt.Errorf("approval %q: %w", row.ID, err)
		}
		// In a file from before the fifth migration, decisions still contain their
		// reasons.
		a.Decided.Reason, a.Decided.Scope.Pattern = cmp.Or(words.Answer, a.Decided.Reason), words.Pattern
	}
	return a, nil
}
