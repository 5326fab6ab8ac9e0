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
	return string(text[:len(text)-1]), nil // Encode adds a line break
}

// ErrUnreadable means that a row is damaged.
var ErrUnreadable = errors.New("a stored row is damaged")

// Decode decodes JSON text from encode. Empty text leaves the value unchanged.
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

func callRow(session string, c *belay.CallRecord) (table.PutCallParams, error) {
	row := table.PutCallParams{
		Session: session, Message: c.Message, Idx: int64(c.Index), ID: c.ID, Tool: c.Tool, State: string(c.State),
		Input: string(c.Input), Wait: c.Wait, Resumes: c.Resumes,
	}
	if row.Input != "" && !json.Valid(c.Input) {
		return row, fmt.Errorf("call %q: the input of the call is not JSON", c.ID)
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

// safeLength is the maximum length of a stored text that people read, in characters.
const safeLength = 512

// readLength is how many bytes of a text are searched for secrets. It is larger than
// safeLength, so that a secret at the cut is recognised.
const readLength = 16 * safeLength

// safe prepares a text that people read, such as a reason, for storage. It removes
// secrets, because the text can quote a command, and cuts the text to safeLength.
func safe(text string) string {
	if len(text) > readLength {
		text = strings.ToValidUTF8(text[:readLength], "") // the cut can split a character
	}
	return cut(redact.Text(text))
}

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

// approvalRows are the rows of an approval. Put sets the response that the approval belongs
// to. The texts of an approval may quote the call, so they are in a row of their own,
// without secrets.
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

// encodeDecision returns a decision as JSON, and its texts separately. It does not shorten
// a pattern, because a shorter pattern could cover more calls. belay.Approval.Accepts has
// already rejected patterns with a secret. Redaction is a second defence: a redacted
// pattern covers no call.
func encodeDecision(d belay.Decision) (string, table.DecideWordsParams, error) {
	words := table.DecideWordsParams{ID: d.Approval, Answer: safe(d.Reason), Pattern: redact.Text(d.Scope.Pattern)}
	d.By, d.Reason, d.Scope.Pattern = redact.Text(d.By), "", ""
	text, err := encode(d)
	return text, words, err
}

// ApprovalOf decodes an approval.
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
		// Files from before the fifth migration have the reason inside the decision.
		a.Decided.Reason, a.Decided.Scope.Pattern = cmp.Or(words.Answer, a.Decided.Reason), words.Pattern
	}
	return a, nil
}
