package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// encode returns a value as JSON, with what HTML would escape left as it is.
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

// decode reads what encode wrote; nothing leaves the value as it is.
func decode(text string, v any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("what is stored cannot be read: %w", err)
	}
	return nil
}

func messageOf(body string) (*belay.Message, error) {
	m := new(belay.Message)
	return m, decode(body, m)
}

// callRow is how a call is stored.
func callRow(session string, c *belay.Call) (table.PutCallParams, error) {
	row := table.PutCallParams{
		Session: session, Message: c.Message, Idx: int64(c.Index), ID: c.ID, Tool: c.Tool, State: string(c.State),
		Input: string(c.Input), Wait: c.Wait, Resumes: c.Resumes,
	}
	if row.Input != "" && !json.Valid(c.Input) {
		return row, fmt.Errorf("call %q: its input is no JSON", c.ID)
	}
	if c.Result != nil {
		var err error
		if row.Result, err = encode(c.Result); err != nil {
			return row, fmt.Errorf("call %q: %w", c.ID, err)
		}
	}
	return row, nil
}

func callOf(row table.Call) (belay.Call, error) {
	c := belay.Call{
		Message: row.Message, Index: int(row.Idx), ID: row.ID, Tool: row.Tool, State: belay.CallState(row.State),
		Wait: row.Wait, Resumes: row.Resumes,
	}
	if row.Input != "" {
		c.Input = json.RawMessage(row.Input)
	}
	if row.Result != "" {
		c.Result = new(belay.Result)
		if err := decode(row.Result, c.Result); err != nil {
			return c, fmt.Errorf("call %q: %w", row.ID, err)
		}
	}
	return c, nil
}

// safeLength is how much is kept of a text that is for people, in characters.
const safeLength = 512

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

// approvalRow is how an approval is stored, but for the response it is about.
func approvalRow(a *belay.Approval) (table.PutApprovalParams, error) {
	row := table.PutApprovalParams{
		ID: a.ID, Session: a.Session, Turn: a.Turn, CallID: a.Call, Tool: a.Tool, Hash: a.Hash, Reason: cut(a.Reason), AskedBy: a.By,
		Asked: nanos(a.Asked), Expires: nanos(a.Expires),
	}
	if a.Decided != nil {
		var err error
		if row.Decision, err = encodeDecision(*a.Decided); err != nil {
			return row, fmt.Errorf("approval %q: %w", a.ID, err)
		}
	}
	return row, nil
}

func encodeDecision(d belay.Decision) (string, error) {
	d.Reason = cut(d.Reason)
	return encode(d)
}

func approvalOf(row table.Approval) (belay.Approval, error) {
	a := belay.Approval{
		ID: row.ID, Session: row.Session, Turn: row.Turn, Call: row.CallID, Tool: row.Tool, Hash: row.Hash, Reason: row.Reason, By: row.AskedBy,
		Asked: moment(row.Asked), Expires: moment(row.Expires),
	}
	if row.Decision != "" {
		a.Decided = new(belay.Decision)
		if err := decode(row.Decision, a.Decided); err != nil {
			return a, fmt.Errorf("approval %q: %w", row.ID, err)
		}
	}
	return a, nil
}

// all decodes rows.
func all[Row, T any](rows []Row, of func(Row) (T, error)) ([]T, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	list := make([]T, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = of(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}
