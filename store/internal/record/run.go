package record

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/store/internal/table"
)

// RunRows encodes runs as rows, without their positions.
func RunRows(holder string, runs []hook.Run) ([]table.PutRunParams, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	rows := make([]table.PutRunParams, len(runs))
	for i := range runs {
		if err := runRow(&rows[i], holder, &runs[i]); err != nil {
			return nil, fmt.Errorf("append: run %q: %w", runs[i].ID, err)
		}
	}
	return rows, nil
}

func runRow(row *table.PutRunParams, holder string, r *hook.Run) error {
	if r.ID == "" || r.State != hook.Started && !r.State.Final() {
		return errors.New("the run has no id or no state: set both")
	}
	*row = table.PutRunParams{
		ID: r.ID, Holder: holder, Subscription: r.Subscription, JobHandler: r.JobHandler, Version: r.Version, Phase: r.Phase, Dispatch: r.Dispatch,
		OriginKind: r.Origin.Kind.String(), OriginName: r.Origin.Name, OriginFile: r.Origin.File, OriginLine: int64(r.Origin.Line),
		Session: r.Scope.Session, Turn: r.Scope.Turn, Step: int64(r.Scope.Step), Agent: r.Scope.Agent,
		Execution: r.Execution.String(), State: r.State.String(), Shadow: r.Shadow, Visibility: r.Visibility.String(),
		Job: r.Job, Attempt: int64(r.Attempt), IdempotencyKey: r.Key, Started: Nanos(r.Started), Ended: Nanos(r.Ended), Latency: int64(r.Latency),
		ErrorClass: string(r.Class), Severity: r.Severity.String(),
	}
	return errors.Join(list(&row.Contributed, r.Contributed), list(&row.Audit, r.Audit), list(&row.Diagnostics, r.Diagnostics))
}

// list encodes a list as JSON. It leaves the text unchanged if the list is empty.
func list[T any](to *string, from []T) (err error) {
	if len(from) > 0 {
		*to, err = encode(from)
	}
	return err
}

// RunOf decodes a run.
func RunOf(row table.Run) (hook.Run, error) {
	r := hook.Run{
		ID: row.ID, Subscription: row.Subscription, JobHandler: row.JobHandler, Version: row.Version, Phase: row.Phase, Dispatch: row.Dispatch,
		Origin: hook.Origin{Name: row.OriginName, File: row.OriginFile, Line: int(row.OriginLine)},
		Scope:  hook.Scope{Session: row.Session, Turn: row.Turn, Step: int(row.Step), Agent: row.Agent},
		Shadow: row.Shadow, Job: row.Job, Attempt: int(row.Attempt), Key: row.IdempotencyKey,
		Started: Moment(row.Started), Ended: Moment(row.Ended), Latency: hook.Latency(row.Latency), Class: codes.Code(row.ErrorClass),
	}
	err := errors.Join(
		word(&r.Origin.Kind, row.OriginKind), word(&r.Execution, row.Execution), word(&r.State, row.State),
		word(&r.Visibility, row.Visibility), word(&r.Severity, row.Severity),
		Decode(row.Contributed, &r.Contributed), Decode(row.Audit, &r.Audit), Decode(row.Diagnostics, &r.Diagnostics))
	if err != nil {
		return r, fmt.Errorf("run %q: %w", row.ID, err)
	}
	return r, nil
}

// word decodes a value of an enumeration from its name.
func word(to encoding.TextUnmarshaler, text string) error {
	return to.UnmarshalText([]byte(text)) //nolint:wrapcheck // it names the enumeration and the word
}
